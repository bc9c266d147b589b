//! The place in an object store that holds backups: objects by their keys, stored, checked and repeated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use zenobe_transfer::objects::{
    Bucket, Object, ObjectError, ObjectLocation, ObjectStoreOptions, PART_BYTES,
};

use crate::cpu_share::CpuShare;
use crate::error::{BackupError, Result, io_error};
use crate::head::Head;
use crate::manifest::Manifest;
use crate::names::{
    SEGMENTS, SNAPSHOTS, SegmentName, head_key, manifest_key, segment_key, started_key, time_of_id,
};
use crate::segment::{Checksum, LogSegment};

/// More than any backup has: a snapshot has a file for every 64 MiB, and a generation a segment for every second.
const OBJECTS_MAX: usize = 20_000_000;
const DOCUMENT_BYTES_MAX: u64 = 1 << 30;
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// As many as one request to S3 may name.
const DELETED_MAX: usize = 1_000;

/// The client repeats requests by itself. This is for answers that it takes for good, and that are not.
const ATTEMPTS_MAX: u32 = 4;
const PAUSE_FIRST: Duration = Duration::from_millis(250);

#[derive(Debug, Clone)]
pub struct Repository {
    bucket: Bucket,
    /// Ends with `/`, unless it is empty.
    prefix: String,
    place: String,
}

impl Repository {
    /// A directory is created if it is missing and `creates` says so. `options` are for `s3://` places.
    ///
    /// # Errors
    /// If the bucket or the directory can't be used.
    pub fn open(
        location: &ObjectLocation,
        options: Option<&ObjectStoreOptions>,
        creates: bool,
    ) -> Result<Repository> {
        match location {
            ObjectLocation::Path(path) => {
                let path = std::path::absolute(path).map_err(io_error(path))?;
                if creates {
                    std::fs::create_dir_all(&path).map_err(io_error(&path))?;
                }
                let place = path.display().to_string();
                let bucket = Bucket::in_directory(&path, &place)
                    .map_err(|_| BackupError::NoBackup { place: place.clone() })?;
                Ok(Repository { bucket, prefix: String::new(), place })
            }
            ObjectLocation::Objects { bucket: name, prefix } => {
                let place = format!("s3://{name}/{}", prefix.trim_matches('/'));
                let failed = |error| BackupError::Objects { place: place.clone(), error };
                let options = options.ok_or_else(|| {
                    BackupError::Source(format!(
                        "{place} needs --s3-endpoint: `aws`, or the URL of the object store"
                    ))
                })?;
                let bucket = Bucket::open(options, name).map_err(failed)?;
                Ok(Repository::over(bucket, prefix, &place))
            }
        }
    }

    pub fn over(bucket: Bucket, prefix: &str, place: &str) -> Repository {
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Repository { bucket, prefix, place: place.to_owned() }
    }

    pub fn place(&self) -> &str {
        &self.place
    }

    /// An object as operators know it.
    pub fn name_of(&self, key: &str) -> String {
        format!("{}/{key}", self.place.trim_end_matches('/'))
    }

    fn failed(&self, error: ObjectError) -> BackupError {
        BackupError::Objects { place: self.place.clone(), error }
    }

    /// Stores an object, and asks the store whether it has it.
    ///
    /// # Errors
    /// If the store can't be reached, or does not hold what it was given, however often it is repeated.
    pub async fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<()> {
        let bytes: Bytes = bytes.into();
        repeat(|| async {
            let full = format!("{}{key}", self.prefix);
            // Not every store compares the checksum that it gets with the object.
            let stored = self.bucket.put_checked(&full, bytes.clone()).await;
            stored.map_err(|error| self.failed(error))?;
            self.check_stored(key, bytes.len() as u64).await
        })
        .await
    }

    /// Whether the store has an object of this size.
    pub(crate) async fn check_stored(&self, key: &str, size_bytes: u64) -> Result<()> {
        let not_stored = |problem: String| BackupError::NotStored {
            place: self.place.clone(),
            key: key.to_owned(),
            problem,
        };
        let full = format!("{}{key}", self.prefix);
        match self.bucket.find(&full).await {
            Ok(object) if object.size_bytes == size_bytes => Ok(()),
            Ok(Object { size_bytes: found, .. }) => {
                Err(not_stored(format!("it has {found} bytes instead of {size_bytes}")))
            }
            Err(ObjectError::NoSuchKey { .. }) => Err(not_stored("it is not there".to_owned())),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads an object again that was stored, and compares it with what it should be.
    pub(crate) async fn check_content(
        &self,
        key: &str,
        size_bytes: u64,
        sha256: [u8; 32],
        cpu_share: &mut CpuShare,
    ) -> Result<()> {
        let mut digest = Sha256::new();
        let mut read_bytes = 0;
        while read_bytes < size_bytes {
            let part = self.get_part(key, read_bytes, PART_BYTES as u64).await?;
            if part.is_empty() {
                break;
            }
            let begin = Instant::now();
            digest.update(&part);
            cpu_share.rest_since(begin).await;
            read_bytes += part.len() as u64;
        }
        if digest.finalize()[..] == sha256 {
            return Ok(());
        }
        let (place, key) = (self.place.clone(), key.to_owned());
        let problem = "its SHA-256 is another one".to_owned();
        Err(BackupError::NotStored { place, key, problem })
    }

    /// Whether entity tags may be checksums.
    pub(crate) fn is_s3(&self) -> bool {
        self.bucket.is_s3()
    }

    /// # Errors
    /// If there is no such object, or if it has more than `bytes_max` bytes.
    pub async fn get(&self, key: &str, bytes_max: u64) -> Result<Bytes> {
        let full = format!("{}{key}", self.prefix);
        repeat(|| async {
            let found = self.bucket.get(&full, bytes_max).await;
            found.map_err(|error| self.missing_or(key, error))
        })
        .await
    }

    /// Reads an object that says itself whether it is whole. It may have been damaged only on its way.
    async fn read<T>(
        &self,
        key: &str,
        bytes_max: u64,
        decode: impl Fn(&str, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let name = self.name_of(key);
        for attempt in 1.. {
            let bytes = self.get(key, bytes_max).await?;
            match decode(&name, &bytes) {
                Err(error) if attempt < ATTEMPTS_MAX => {
                    tracing::debug!(%error, "reading an object again");
                }
                outcome => return outcome,
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Bytes of an object; fewer if it ends before.
    pub(crate) async fn get_part(&self, key: &str, start: u64, length: u64) -> Result<Bytes> {
        let full = format!("{}{key}", self.prefix);
        repeat(|| async {
            let found = self.bucket.get_part(&full, start, length).await;
            found.map_err(|error| self.missing_or(key, error))
        })
        .await
    }

    /// An object that a manifest or a list names must be there.
    fn missing_or(&self, key: &str, error: ObjectError) -> BackupError {
        match error {
            ObjectError::NoSuchKey { .. } => {
                BackupError::damaged(self.name_of(key), "it is missing")
            }
            error => self.failed(error),
        }
    }

    pub(crate) async fn begin_upload(&self, key: &str) -> Result<zenobe_transfer::objects::Upload> {
        let full = format!("{}{key}", self.prefix);
        self.bucket.begin_upload(&full).await.map_err(|error| self.failed(error))
    }

    pub(crate) fn upload_failed(&self, error: ObjectError) -> BackupError {
        self.failed(error)
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<()> {
        let full = format!("{}{key}", self.prefix);
        repeat(|| async { self.bucket.delete(&full).await.map_err(|error| self.failed(error)) })
            .await
    }

    /// Deletes many objects with few requests. Some stores that are compatible with S3 don't know such requests; there, one by one.
    pub(crate) async fn delete_many(&self, keys: &[String]) -> Result<()> {
        let full: Vec<String> = keys.iter().map(|key| format!("{}{key}", self.prefix)).collect();
        for (full, keys) in full.chunks(DELETED_MAX).zip(keys.chunks(DELETED_MAX)) {
            let deleted = repeat(|| async {
                self.bucket.delete_many(full).await.map_err(|error| self.failed(error))
            });
            match deleted.await {
                Ok(()) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "deleting objects one by one");
                    for key in keys {
                        self.delete(key).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The objects below a folder: their keys, in order, and their sizes. Empty objects are left out.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let full = format!("{}{folder}", self.prefix);
        let listed = repeat(|| async {
            self.bucket.list(&full, OBJECTS_MAX).await.map_err(|error| self.failed(error))
        });
        let key = |object: Object| {
            let key = object.key.strip_prefix(&self.prefix).unwrap_or(&object.key).to_owned();
            (key, object.size_bytes)
        };
        match listed.await {
            Ok(objects) => Ok(objects.into_iter().map(key).collect()),
            // Some stores say so where nothing has been stored yet.
            Err(BackupError::Objects { error: ObjectError::NoSuchKey { .. }, .. }) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// What there is, by the names of the objects.
    ///
    /// # Errors
    /// If the store can't be listed.
    pub async fn contents(&self) -> Result<Contents> {
        let mut contents = Contents::default();
        for (key, size_bytes) in self.list(SNAPSHOTS).await? {
            let parts = key.strip_prefix(SNAPSHOTS).and_then(|rest| rest.split_once('/'));
            let Some((id, rest)) = parts.filter(|(id, _)| time_of_id(id).is_some()) else {
                continue;
            };
            let snapshot = contents.snapshots.entry(id.to_owned()).or_default();
            match rest {
                "manifest" => snapshot.has_manifest = true,
                "started" => snapshot.has_begun = true,
                _ => {
                    snapshot.files.insert(key.clone(), size_bytes);
                }
            }
        }
        for (key, size_bytes) in self.list(SEGMENTS).await? {
            let parts = key.strip_prefix(SEGMENTS).and_then(|rest| rest.split_once('/'));
            let Some((id, rest)) = parts.filter(|(id, _)| time_of_id(id).is_some()) else {
                continue;
            };
            let generation = contents.generations.entry(id.to_owned()).or_default();
            generation.size_bytes += size_bytes;
            match SegmentName::parse(rest) {
                Some(name) => generation.segments.push(name),
                None => generation.has_head |= rest == "head",
            }
        }
        contents.generations.values_mut().for_each(|generation| generation.segments.sort());
        Ok(contents)
    }

    /// # Errors
    /// If it is missing or damaged.
    pub async fn manifest(&self, id: &str) -> Result<Manifest> {
        let key = manifest_key(id);
        let manifest = self.read(&key, DOCUMENT_BYTES_MAX, Manifest::decode).await?;
        match manifest.id == id {
            true => Ok(manifest),
            false => {
                let problem = format!("it is the manifest of {}", manifest.id);
                Err(BackupError::damaged(self.name_of(&key), problem))
            }
        }
    }

    pub(crate) async fn put_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.put(&manifest_key(&manifest.id), manifest.encode()).await
    }

    pub(crate) async fn mark_started(&self, id: &str) -> Result<()> {
        self.put(&started_key(id), "a snapshot is being made\n").await
    }

    /// # Errors
    /// If it is damaged.
    pub async fn head(&self, generation: &str) -> Result<Head> {
        self.read(&head_key(generation), DOCUMENT_BYTES_MAX, Head::decode).await
    }

    pub(crate) async fn put_head(&self, generation: &str, head: &Head) -> Result<()> {
        self.put(&head_key(generation), head.encode()).await
    }

    /// Reads a segment with its checksum, and checks that it is undamaged and the one that the name says.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub async fn segment(
        &self,
        generation: &str,
        name: &SegmentName,
    ) -> Result<(LogSegment, Checksum)> {
        let key = segment_key(generation, name);
        let (segment, checksum) = self.read(&key, SEGMENT_BYTES_MAX, LogSegment::decode).await?;
        match segment.name() == *name {
            true => Ok((segment, checksum)),
            false => {
                let problem = format!("it is segment {}", segment.name());
                Err(BackupError::damaged(self.name_of(&key), problem))
            }
        }
    }

    pub(crate) async fn put_segment(&self, segment: &LogSegment) -> Result<(Checksum, u64)> {
        let (bytes, checksum) = segment.encode();
        let size_bytes = bytes.len() as u64;
        self.put(&segment_key(&segment.generation, &segment.name()), bytes).await?;
        Ok((checksum, size_bytes))
    }

    pub(crate) fn segment_object(&self, generation: &str, name: &SegmentName) -> String {
        self.name_of(&segment_key(generation, name))
    }
}

/// What a repository holds.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// By their ids, oldest first.
    pub snapshots: BTreeMap<String, SnapshotObjects>,
    pub generations: BTreeMap<String, Generation>,
}

#[derive(Debug, Clone, Default)]
pub struct SnapshotObjects {
    pub has_begun: bool,
    pub has_manifest: bool,
    /// The sizes of the files that it has stored itself.
    pub files: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default)]
pub struct Generation {
    /// In the order of their numbers.
    pub segments: Vec<SegmentName>,
    pub has_head: bool,
    pub size_bytes: u64,
}

impl SnapshotObjects {
    /// Whether it is being made, or was cut off. One that was removed may have left files that others need.
    pub fn is_unfinished(&self) -> bool {
        self.has_begun && !self.has_manifest
    }
}

impl Contents {
    /// The ids of finished snapshots, oldest first.
    pub fn finished(&self) -> impl DoubleEndedIterator<Item = &str> {
        let finished = self.snapshots.iter().filter(|(_, objects)| objects.has_manifest);
        finished.map(|(id, _)| id.as_str())
    }
}

/// Repeats what may succeed the next time, with growing pauses.
async fn repeat<T, F: Future<Output = Result<T>>>(attempt: impl Fn() -> F) -> Result<T> {
    let mut pause = PAUSE_FIRST;
    for number in 1.. {
        match attempt().await {
            Err(error) if error.is_transient() && number < ATTEMPTS_MAX => {
                tracing::debug!(%error, "trying a request to the object store again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            outcome => return outcome,
        }
    }
    unreachable!("the last attempt returns")
}
