//! Where the files of an export go, and what is there already.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use zenobe_database::ScratchDirectory;
use zenobe_transfer::objects::{Bucket, ObjectLocation, ObjectStoreEndpoint, ObjectStoreOptions};

use super::spool::UNNAMED;
use super::{ExportError, ExportFormat};

/// More than any export has.
const OBJECTS_MAX: usize = 1_000_000;
/// Says that the files are complete. Spark writes one, too, and readers ignore it.
const SUCCESS: &str = "_SUCCESS";
const EXTENSIONS: [&str; 4] = ["parquet", "csv.gz", "json.gz", "ion.gz"];

pub struct Destination {
    bucket: Bucket,
    /// What the user calls the place.
    name: String,
    /// The keys of all files begin with this.
    root: String,
    format: ExportFormat,
    /// The number of the next part of each entity.
    entity: Option<String>,
    part: usize,
    written: BTreeSet<String>,
    spool: Waiting,
}

/// Where items wait until they are written.
enum Waiting {
    Scratch(ScratchDirectory),
    /// Beside the files, where the next export of the table replaces it.
    Beside(PathBuf),
}

impl Destination {
    pub fn open(
        location: &ObjectLocation,
        s3_endpoint: &ObjectStoreEndpoint,
        table: &str,
        format: ExportFormat,
    ) -> Result<Destination, ExportError> {
        let folder = format!("table={table}/");
        let (bucket, name, root, spool) = match location {
            ObjectLocation::Objects { bucket, prefix } => {
                let options = ObjectStoreOptions::new(s3_endpoint.clone());
                let prefix = prefix.trim_end_matches('/');
                let root = match prefix {
                    "" => folder,
                    _ => format!("{prefix}/{folder}"),
                };
                let name = format!("s3://{bucket}/{root}");
                let temporary = std::env::temp_dir();
                let failed = |error| ExportError::Write { path: temporary.clone(), error };
                let scratch =
                    ScratchDirectory::create(&temporary, "zenobe-export").map_err(failed)?;
                (Bucket::open(&options, bucket)?, name, root, Waiting::Scratch(scratch))
            }
            ObjectLocation::Path(path) => {
                let failed = |error| ExportError::Write { path: path.clone(), error };
                std::fs::create_dir_all(path).map_err(failed)?;
                let absolute = std::path::absolute(path).map_err(failed)?;
                let name = path.join(&folder).display().to_string();
                let spool = absolute.join(format!(".zenobe-export-{table}"));
                (Bucket::in_directory(&absolute, &name)?, name, folder, Waiting::Beside(spool))
            }
        };
        let (entity, part, written) = (None, 0, BTreeSet::new());
        Ok(Destination { bucket, name, root, format, entity, part, written, spool })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many files have been written.
    pub fn files(&self) -> usize {
        self.written.len()
    }

    /// Where items may wait.
    pub fn spool_directory(&self) -> PathBuf {
        match &self.spool {
            Waiting::Scratch(scratch) => scratch.data(),
            Waiting::Beside(path) => path.clone(),
        }
    }

    /// The files of an earlier export, which this one replaces.
    pub async fn earlier(&self, overwrite: bool) -> Result<Vec<String>, ExportError> {
        let found = self.bucket.list(&self.root, OBJECTS_MAX).await?;
        let keys: Vec<String> = found.into_iter().map(|object| object.key).collect();
        if let Some(foreign) = keys.iter().find(|key| !self.is_own(key)) {
            return Err(ExportError::Foreign(self.name.clone(), foreign.clone()));
        }
        // Without the mark, it was interrupted.
        match keys.contains(&self.success()) && !overwrite {
            true => Err(ExportError::Exists(self.name.clone())),
            false => Ok(keys),
        }
    }

    /// From now on the files are not those of the earlier export.
    pub async fn begin(&self, earlier: &[String]) -> Result<(), ExportError> {
        match earlier.contains(&self.success()) {
            true => Ok(self.bucket.delete(&self.success()).await?),
            false => Ok(()),
        }
    }

    /// Writes the next part of an entity.
    pub async fn put(&mut self, entity: Option<&str>, bytes: Vec<u8>) -> Result<(), ExportError> {
        if self.entity.as_deref() != entity {
            self.entity = entity.map(str::to_owned);
            self.part = 0;
        }
        let folder =
            entity.map_or_else(String::new, |entity| format!("entity={}/", escaped(entity)));
        let (part, extension) = (self.part, self.format.extension());
        let key = format!("{}{folder}part-{part:05}.{extension}", self.root);
        self.bucket.put_checked(&key, bytes.into()).await?;
        self.part += 1;
        self.written.insert(key);
        Ok(())
    }

    /// Removes what is left of the earlier export, and says that this one is complete.
    pub async fn finish(&self, earlier: &[String], items: u64) -> Result<(), ExportError> {
        for key in earlier.iter().filter(|key| !self.written.contains(*key)) {
            self.bucket.delete(key).await?;
        }
        let summary = json!({"items": items, "files": self.written.len()}).to_string();
        self.bucket.put_checked(&self.success(), summary.into_bytes().into()).await?;
        Ok(())
    }

    fn success(&self) -> String {
        format!("{}{SUCCESS}", self.root)
    }

    /// Whether a file is one that an export writes.
    fn is_own(&self, key: &str) -> bool {
        let name = key.strip_prefix(&self.root).unwrap_or(key);
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let is_part = || {
            let (part, extension) = file.split_once('.')?;
            let number = part.strip_prefix("part-")?;
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            (is_number && EXTENSIONS.contains(&extension)).then_some(())
        };
        let is_entity = folder.is_empty() || folder.starts_with("entity=") && !folder.contains('/');
        is_entity && (name == SUCCESS || is_part().is_some())
    }
}

/// A value in the name of a folder, as Hive escapes it.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    let character = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    match value {
        // A folder must have a name.
        "" => UNNAMED.to_owned(),
        _ => value.bytes().map(character).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_exports_are_replaced() {
        let directory = std::env::temp_dir();
        let location = ObjectLocation::Path(directory);
        let open =
            Destination::open(&location, &ObjectStoreEndpoint::Aws, "t", ExportFormat::Parquet);
        let destination = open.unwrap();
        for own in ["_SUCCESS", "part-00000.parquet", "entity=A%2F/part-00001.json.gz"] {
            assert!(destination.is_own(&format!("table=t/{own}")), "{own}");
        }
        for other in ["notes.txt", "part-1x.parquet", "entity=A/_SUCCESS/x", "other/part-0.csv.gz"]
        {
            assert!(!destination.is_own(&format!("table=t/{other}")), "{other}");
        }
        assert_eq!(escaped("a/b=é"), "a%2Fb%3D%C3%A9");
    }
}
