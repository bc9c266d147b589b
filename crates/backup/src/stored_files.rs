//! Storing the files of a data directory, or only those that an earlier snapshot has not stored.
//!
//! A table file never changes, but its number may be given to another file after a restore. So a file is known by its name, its size
//! and a checksum of its end. The end of a table holds RocksDB's own identity of it: the session that wrote it, and its number there. The whole
//! file is read, hashed and stored only if no manifest has one like it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use zenobe_store::Stamp;
use zenobe_transfer::objects::{PART_BYTES, UploadTag};

use crate::cpu_share::CpuShare;
use crate::error::{BackupError, Result, io_error};
use crate::manifest::{ContentSums, FileEntry, Manifest};
use crate::names::file_key;
use crate::repository::Repository;

/// How much of a file's end is its identity. The properties of a table are in its last kilobytes.
const TAIL_BYTES: u64 = 64 << 10;

/// How many earlier snapshots are asked for files that need not be stored again.
const EARLIER_MAX: usize = 8;

/// How often a file is stored that the object store then does not hold.
const ATTEMPTS_MAX: u32 = 3;

/// What a snapshot is of.
#[derive(Debug, Clone)]
pub struct Subject {
    pub id: String,
    pub generation: Option<String>,
    pub database: u64,
    pub sequence: u64,
    pub at: Stamp,
    pub content: Option<ContentSums>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileProgress {
    pub files: u64,
    pub files_total: u64,
    pub bytes: u64,
    pub bytes_total: u64,
    /// What an earlier snapshot has stored already.
    pub files_known: u64,
    pub bytes_known: u64,
}

/// Announces a snapshot. From here on nobody prunes files that it may rely on.
///
/// # Errors
/// If the repository can't be used, or is another database's.
pub async fn begin(repository: &Repository, id: &str, database: u64) -> Result<Earlier> {
    repository.mark_started(id).await?;
    earlier(repository, database).await
}

/// The files that are stored already.
#[derive(Debug, Default)]
pub struct Earlier {
    files: HashMap<(String, u64, [u8; 32]), FileEntry>,
    /// The newest time that any snapshot or segment shows. The clock may have been set back since.
    pub newest: Stamp,
}

/// # Errors
/// If the repository can't be used, or is another database's.
pub async fn earlier(repository: &Repository, database: u64) -> Result<Earlier> {
    let contents = repository.contents().await?;
    let mut earlier = Earlier::default();
    for generation in contents.generations.values() {
        let until_ms = generation.segments.last().map_or(0, |segment| segment.until_ms);
        earlier.newest = earlier.newest.max(Stamp::last_of_ms(until_ms));
    }
    for id in contents.finished().rev().take(EARLIER_MAX) {
        // One that is damaged is reported by those who need it. Here its files are only stored again.
        let manifest = match repository.manifest(id).await {
            Err(BackupError::Damaged { object, problem }) => {
                tracing::error!(object, problem, "a backup is damaged; its files are stored again");
                continue;
            }
            manifest => manifest?,
        };
        if manifest.database != database {
            return Err(BackupError::OtherDatabase { place: repository.place().to_owned() });
        }
        earlier.newest = earlier.newest.max(manifest.at);
        for file in manifest.files {
            let Some(object) = &file.object else { continue };
            let stored =
                contents.snapshots.values().find_map(|snapshot| snapshot.files.get(object));
            if stored == Some(&file.size_bytes) {
                let identity = (file.path.clone(), file.size_bytes, file.tail);
                earlier.files.entry(identity).or_insert(file);
            }
        }
    }
    Ok(earlier)
}

/// Stores the files of a directory that nobody changes, and then the manifest.
///
/// # Errors
/// If a file can't be read, or is not stored however often it is tried. There is no manifest then.
pub async fn store(
    repository: &Repository,
    directory: &Path,
    subject: Subject,
    earlier: &Earlier,
    cpu_share: &mut CpuShare,
    observe: &(dyn Fn(FileProgress) + Send + Sync),
) -> Result<Manifest> {
    let found = files_of(directory)?;
    let mut progress = FileProgress {
        files_total: found.len() as u64,
        bytes_total: found.iter().map(|(_, size_bytes)| size_bytes).sum(),
        ..FileProgress::default()
    };
    observe(progress);
    let mut files = Vec::with_capacity(found.len());
    for (path, size_bytes) in found {
        let tail = hash_tail(&directory.join(&path), size_bytes)?;
        let identity = (path, size_bytes, tail);
        let entry = match earlier.files.get(&identity) {
            _ if size_bytes == 0 => {
                progress.files_known += 1;
                FileEntry { path: identity.0, size_bytes, sha256: tail, tail, object: None }
            }
            Some(known) => {
                progress.files_known += 1;
                progress.bytes_known += size_bytes;
                progress.bytes += size_bytes;
                known.clone()
            }
            None => {
                let (path, size_bytes, tail) = identity;
                let file = NewFile { directory, id: &subject.id, path, size_bytes, tail };
                file.store(repository, cpu_share, &mut |bytes| {
                    progress.bytes += bytes;
                    observe(progress);
                })
                .await?
            }
        };
        progress.files += 1;
        observe(progress);
        files.push(entry);
    }
    let Subject { id, generation, database, sequence, at, content } = subject;
    let manifest = Manifest { id, generation, database, sequence, at, files, content };
    repository.put_manifest(&manifest).await?;
    Ok(manifest)
}

/// The regular files of a data directory, in a fixed order, with their sizes. Lock files belong to processes.
fn files_of(directory: &Path) -> Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let mut folders: Vec<(PathBuf, String)> = vec![(directory.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(io_error(&folder))? {
            let entry = entry.map_err(io_error(&folder))?;
            let metadata = entry.metadata().map_err(io_error(&folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if metadata.is_dir() {
                folders.push((entry.path(), format!("{path}/")));
            } else if name != "LOCK" {
                found.push((path, metadata.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn hash_tail(path: &Path, size_bytes: u64) -> Result<[u8; 32]> {
    let read = || -> std::io::Result<[u8; 32]> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(size_bytes.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        Ok(Sha256::digest(&tail).into())
    };
    read().map_err(io_error(path))
}

/// A file that no snapshot has stored.
struct NewFile<'a> {
    directory: &'a Path,
    id: &'a str,
    path: String,
    size_bytes: u64,
    tail: [u8; 32],
}

impl NewFile<'_> {
    async fn store(
        self,
        repository: &Repository,
        cpu_share: &mut CpuShare,
        stored: &mut (dyn FnMut(u64) + Send),
    ) -> Result<FileEntry> {
        let key = file_key(self.id, &self.path);
        for attempt in 1.. {
            match self.store_once(repository, &key, cpu_share).await {
                Ok(sha256) => {
                    stored(self.size_bytes);
                    let object = Some(key);
                    let NewFile { path, size_bytes, tail, .. } = self;
                    return Ok(FileEntry { path, size_bytes, sha256, tail, object });
                }
                Err(error) if error.is_transient() && attempt < ATTEMPTS_MAX => {
                    tracing::warn!(file = self.path, %error, "storing a file of a backup again");
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    async fn store_once(
        &self,
        repository: &Repository,
        key: &str,
        cpu_share: &mut CpuShare,
    ) -> Result<[u8; 32]> {
        let path = self.directory.join(&self.path);
        let mut reader = Reader {
            file: File::open(&path).map_err(io_error(&path))?,
            digest: Sha256::new(),
            tag: (repository.is_s3() && self.size_bytes >= PART_BYTES as u64)
                .then(UploadTag::default),
        };
        let mut part = reader.next(&path, cpu_share).await?;
        if part.len() < PART_BYTES {
            repository.put(key, part).await?;
            Ok(reader.digest.finalize().into())
        } else {
            let mut upload = repository.begin_upload(key).await?;
            while !part.is_empty() {
                if let Err(error) = upload.add(part).await {
                    upload.abort().await;
                    return Err(repository.upload_failed(error));
                }
                part = reader.next(&path, cpu_share).await?;
            }
            let etag = upload.finish().await.map_err(|error| repository.upload_failed(error))?;
            repository.check_stored(key, self.size_bytes).await?;
            let sha256 = reader.digest.finalize().into();
            // Where the store's own checksum does not say so, the object itself must.
            if etag.is_none() || etag != reader.tag.map(UploadTag::finish) {
                repository.check_content(key, self.size_bytes, sha256, cpu_share).await?;
            }
            Ok(sha256)
        }
    }
}

struct Reader {
    file: File,
    digest: Sha256,
    tag: Option<UploadTag>,
}

impl Reader {
    /// The next part of the file, or nothing at its end.
    async fn next(&mut self, path: &Path, cpu_share: &mut CpuShare) -> Result<Bytes> {
        let begin = Instant::now();
        let mut part = Vec::with_capacity(PART_BYTES.min(1 << 16));
        let read = Read::by_ref(&mut self.file).take(PART_BYTES as u64).read_to_end(&mut part);
        read.map_err(io_error(path))?;
        self.digest.update(&part);
        if let Some(tag) = self.tag.as_mut().filter(|_| !part.is_empty()) {
            tag.add(&part);
        }
        cpu_share.rest_since(begin).await;
        Ok(part.into())
    }
}
