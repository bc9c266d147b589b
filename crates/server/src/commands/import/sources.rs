//! What there is to import: the files at a place, their formats and their checksums.

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;
use zenobe_transfer::objects::{
    Bucket, Object, ObjectError, ObjectLocation, ObjectStoreEndpoint, ObjectStoreOptions,
};
use zenobe_transfer::{Compression, Format, manifest};

use super::ImportError;

const OBJECTS_MAX: usize = 1_000_000;
const MANIFEST_SIZE_BYTES_MAX: u64 = 256 << 20;
const SUMMARY: &str = "manifest-summary.json";

/// The formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// As DynamoDB has it, or lines of plain JSON objects, whichever they are.
    Json,
    Ion,
    Csv,
}

impl FromStr for ImportFormat {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<ImportFormat, &'static str> {
        match name.to_ascii_lowercase().as_str() {
            "dynamodb-json" | "dynamodb_json" | "json" | "jsonl" => Ok(ImportFormat::Json),
            "ion" => Ok(ImportFormat::Ion),
            "csv" => Ok(ImportFormat::Csv),
            _ => Err("it must be dynamodb-json, ion, csv or json"),
        }
    }
}

#[derive(Debug, Clone)]
pub struct SourceFile {
    pub object: Object,
    pub key: String,
    pub format: ImportFormat,
    pub compression: Compression,
    pub md5: Option<String>,
}

impl SourceFile {
    /// What changes with the content of the file. In a directory, it is made of its time and inode.
    pub fn version(&self) -> String {
        let Object { size_bytes, etag, .. } = &self.object;
        format!("{size_bytes} {}", etag.as_deref().unwrap_or_default())
    }

    pub fn is_tsv(&self) -> bool {
        self.key.contains(".tsv")
    }
}

pub struct ImportSource {
    pub bucket: Bucket,
    objects: Vec<Object>,
}

impl ImportSource {
    pub async fn open(
        location: &ObjectLocation,
        s3_endpoint: &ObjectStoreEndpoint,
    ) -> Result<ImportSource, ImportError> {
        let (name, bucket, mut objects) = match location {
            ObjectLocation::Objects { bucket, prefix } => {
                let options = ObjectStoreOptions::new(s3_endpoint.clone());
                let name = format!("s3://{bucket}/{prefix}");
                let bucket = Bucket::open(&options, bucket)?;
                let objects = bucket.list(prefix, OBJECTS_MAX).await?;
                (name, bucket, objects)
            }
            ObjectLocation::Path(path) => {
                let name = path.display().to_string();
                let missing = || ImportError::Missing(name.clone());
                let absolute = std::path::absolute(path).map_err(|_| missing())?;
                let (folder, place) = SourcePath::of(&absolute);
                let bucket = Bucket::in_directory(folder, &name).map_err(|_| missing())?;
                let objects = match place {
                    SourcePath::File(file) => vec![bucket.find(&file).await?],
                    SourcePath::Folder(prefix) => bucket.list(&prefix, OBJECTS_MAX).await?,
                };
                (name, bucket, objects)
            }
        };
        if let Some(shared) = shared_data(&objects) {
            objects.extend(bucket.list(&shared, OBJECTS_MAX).await?);
        }
        match objects.is_empty() {
            true => Err(ImportError::Missing(name)),
            false => Ok(ImportSource { bucket, objects }),
        }
    }

    /// The model of NoSQL Workbench that the source is, if it is one.
    pub async fn model(&self) -> Result<Option<Value>, ImportError> {
        let [object] = &self.objects[..] else { return Ok(None) };
        let is_json = object.key.ends_with(".json");
        if !is_json || object.size_bytes > MANIFEST_SIZE_BYTES_MAX {
            return Ok(None);
        }
        let bytes = self.bucket.get(&object.key, MANIFEST_SIZE_BYTES_MAX).await?;
        let model: Option<Value> = serde_json::from_slice(&bytes).ok();
        Ok(model.filter(|model| model["DataModel"].is_array()))
    }

    pub async fn files(
        &self,
        format: Option<ImportFormat>,
    ) -> Result<Vec<SourceFile>, ImportError> {
        let is_summary = |object: &&Object| object.key.rsplit('/').next() == Some(SUMMARY);
        match self.objects.iter().find(is_summary) {
            Some(summary) => self.export(summary).await,
            None => self.plain_files(format).await,
        }
    }

    /// The data files of an export, once its manifests are known to be whole.
    async fn export(&self, summary: &Object) -> Result<Vec<SourceFile>, ImportError> {
        let folder = summary.key.strip_suffix(SUMMARY).unwrap_or_default();
        let summary = self.manifest(&summary.key).await?;
        let damaged = |what: &str| ImportError::Export(format!("{what} does not parse"));
        let (_, format) = manifest::Summary::parse(&summary).ok_or_else(|| damaged(SUMMARY))?;
        let files = self.manifest(&format!("{folder}manifest-files.json")).await?;
        let files = manifest::parse_files(&files).ok_or_else(|| damaged("manifest-files.json"))?;
        let format = if format == Format::Ion { ImportFormat::Ion } else { ImportFormat::Json };
        let mut found = Vec::with_capacity(files.len());
        for file in files {
            // Keys begin at the root of the bucket, but a copy may begin anywhere.
            let name = file.key.rsplit('/').next().unwrap_or_default();
            let end = format!("data/{name}");
            let object = self.objects.iter().find(|object| object.key.ends_with(&end));
            let Some(object) = object else {
                match file.item_count {
                    // Listing leaves out empty objects.
                    0 => continue,
                    _ => return Err(ImportError::Export(format!("{} is missing", file.key))),
                }
            };
            found.push(SourceFile {
                object: object.clone(),
                key: object.key.clone(),
                format,
                compression: Compression::Gzip,
                md5: Some(file.md5),
            });
        }
        Ok(found)
    }

    /// A manifest, compared with its checksum.
    async fn manifest(&self, key: &str) -> Result<Vec<u8>, ImportError> {
        let bytes = self.bucket.get(key, MANIFEST_SIZE_BYTES_MAX).await?;
        let stem = key.strip_suffix(".json").unwrap_or(key);
        for extension in ["md5", "checksum"] {
            match self.bucket.get(&format!("{stem}.{extension}"), 1_024).await {
                Ok(md5) if md5.trim_ascii() != manifest::md5_base64(&bytes).as_bytes() => {
                    return Err(ImportError::Export(format!("the checksum of {key} is wrong")));
                }
                Ok(_) | Err(ObjectError::NoSuchKey { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes.to_vec())
    }

    async fn plain_files(
        &self,
        given: Option<ImportFormat>,
    ) -> Result<Vec<SourceFile>, ImportError> {
        let mut files = Vec::with_capacity(self.objects.len());
        // The mark of a complete folder holds no items.
        let is_mark = |object: &&Object| object.key.rsplit('/').next() == Some("_SUCCESS");
        for object in self.objects.iter().filter(|object| !is_mark(object)) {
            let (stem, compression) = match object.key.rsplit_once('.') {
                Some((stem, "gz")) => (stem, Compression::Gzip),
                Some((stem, "zst" | "zstd")) => (stem, Compression::Zstd),
                _ => (object.key.as_str(), Compression::None),
            };
            let format = match stem.rsplit_once('.').map(|(_, extension)| extension) {
                Some("parquet") => return Err(ImportError::Parquet(object.key.clone())),
                Some("json" | "jsonl" | "ndjson") => Some(ImportFormat::Json),
                Some("ion" | "10n") => Some(ImportFormat::Ion),
                Some("csv" | "tsv") => Some(ImportFormat::Csv),
                _ => None,
            };
            let Some(format) = given.or(format) else {
                if self.is_sqlite(object).await? {
                    return Err(ImportError::DatabaseFile(object.key.clone()));
                }
                return Err(ImportError::Format(object.key.clone()));
            };
            files.push(SourceFile {
                object: object.clone(),
                key: object.key.clone(),
                format,
                compression,
                md5: None,
            });
        }
        Ok(files)
    }

    async fn is_sqlite(&self, object: &Object) -> Result<bool, ImportError> {
        let start = self.bucket.get_start(&object.key, 16).await?;
        Ok(start.starts_with(b"SQLite format 3\0"))
    }
}

/// What of a folder that acts as a bucket is the source.
enum SourcePath {
    File(String),
    /// Everything with this prefix.
    Folder(String),
}

impl SourcePath {
    /// The folder of an export lies in another one, which may hold its data.
    fn of(path: &Path) -> (&Path, SourcePath) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        match (path.parent(), name) {
            (Some(parent), Some(name)) if path.is_file() => (parent, SourcePath::File(name)),
            (Some(parent), Some(name)) if path.join(SUMMARY).is_file() => {
                (parent, SourcePath::Folder(format!("{name}/")))
            }
            _ => (path, SourcePath::Folder(String::new())),
        }
    }
}

/// Incremental exports share a folder for their data, beside those of their manifests: `AWSDynamoDB/data/`.
fn shared_data(objects: &[Object]) -> Option<String> {
    let folder = objects.iter().find_map(|object| object.key.strip_suffix(SUMMARY))?;
    let data = format!("{folder}data/");
    let (parent, _) = folder.strip_suffix('/')?.rsplit_once('/').unwrap_or_default();
    let has_data = objects.iter().any(|object| object.key.starts_with(&data));
    (!has_data)
        .then(|| if parent.is_empty() { "data/".to_owned() } else { format!("{parent}/data/") })
}
