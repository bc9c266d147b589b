//! Fetching the files of a snapshot into a directory. Every one is compared with its checksum before it gets its name.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zenobe_transfer::objects::PART_BYTES;

use crate::error::{BackupError, Result, io_error};
use crate::manifest::{FileEntry, Manifest};
use crate::repository::Repository;
use crate::stored_files::FileProgress;

/// How often a file that arrives damaged is fetched.
const ATTEMPTS_MAX: u32 = 3;
/// The end of the name of a file that is not whole.
const UNFINISHED: &str = ".part";

/// Fetches all files of a snapshot. Those that an interrupted attempt has fetched are kept, if they are whole. Everything else
/// in the directory is removed, except for the names in `own`.
///
/// # Errors
/// If an object is missing or damaged: the error names it.
pub async fn files(
    repository: &Repository,
    manifest: &Manifest,
    directory: &Path,
    own: &[&str],
    observe: &(dyn Fn(FileProgress) + Send + Sync),
) -> Result<()> {
    let mut progress = FileProgress {
        files_total: manifest.files.len() as u64,
        bytes_total: manifest.size_bytes(),
        ..FileProgress::default()
    };
    observe(progress);
    remove_strangers(manifest, directory, own)?;
    for file in &manifest.files {
        let target = directory.join(&file.path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(io_error(parent))?;
        }
        if is_whole(file, &target)? {
            progress.files_known += 1;
            progress.bytes_known += file.size_bytes;
        } else {
            fetch(repository, file, &target).await?;
        }
        progress.files += 1;
        progress.bytes += file.size_bytes;
        observe(progress);
    }
    sync_folders(manifest, directory)
}

/// Removes what is not a file of the snapshot, such as what a database has written that was opened after an earlier attempt.
fn remove_strangers(manifest: &Manifest, directory: &Path, own: &[&str]) -> Result<()> {
    let mut folders = vec![String::new()];
    while let Some(prefix) = folders.pop() {
        let folder = directory.join(&prefix);
        for entry in fs::read_dir(&folder).map_err(io_error(&folder))? {
            let entry = entry.map_err(io_error(&folder))?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(io_error(&folder))?.is_dir() {
                folders.push(format!("{path}/"));
            } else if !own.contains(&path.as_str())
                && manifest.files.iter().all(|file| file.path != path)
            {
                fs::remove_file(entry.path()).map_err(io_error(&entry.path()))?;
            }
        }
    }
    Ok(())
}

fn is_whole(file: &FileEntry, target: &Path) -> Result<bool> {
    match fs::metadata(target) {
        Ok(metadata) if metadata.len() == file.size_bytes => {}
        _ => return Ok(false),
    }
    let mut source = File::open(target).map_err(io_error(target))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match source.read(&mut buffer).map_err(io_error(target))? {
            0 => return Ok(<[u8; 32]>::from(digest.finalize()) == file.sha256),
            length => digest.update(&buffer[..length]),
        }
    }
}

async fn fetch(repository: &Repository, file: &FileEntry, target: &Path) -> Result<()> {
    let mut partial = target.as_os_str().to_owned();
    partial.push(UNFINISHED);
    let partial = Path::new(&partial);
    for attempt in 1.. {
        match fetch_once(repository, file, partial).await {
            Ok(()) => break,
            // It may have been damaged on its way.
            Err(error @ BackupError::Damaged { .. }) if attempt < ATTEMPTS_MAX => {
                tracing::warn!(%error, "fetching a file of a backup again");
            }
            Err(error) => {
                let _ = fs::remove_file(partial);
                return Err(error);
            }
        }
    }
    fs::rename(partial, target).map_err(io_error(target))
}

async fn fetch_once(repository: &Repository, file: &FileEntry, partial: &Path) -> Result<()> {
    let mut target = File::create(partial).map_err(io_error(partial))?;
    let mut digest = Sha256::new();
    let mut done = 0;
    while done < file.size_bytes {
        let object = file.object.as_deref().unwrap_or_default();
        let length = (file.size_bytes - done).min(PART_BYTES as u64);
        let part = repository.get_part(object, done, length).await?;
        if part.len() as u64 != length {
            let found = done + part.len() as u64;
            let problem = format!("{} ends after {found} of {} bytes", file.path, file.size_bytes);
            return Err(BackupError::damaged(repository.name_of(object), problem));
        }
        digest.update(&part);
        target.write_all(&part).map_err(io_error(partial))?;
        done += length;
    }
    if <[u8; 32]>::from(digest.finalize()) != file.sha256 {
        let object = file.object.as_deref().unwrap_or(&file.path);
        let problem = format!("the SHA-256 of {} is another than the manifest says", file.path);
        return Err(BackupError::damaged(repository.name_of(object), problem));
    }
    target.sync_all().map_err(io_error(partial))
}

fn sync_folders(manifest: &Manifest, directory: &Path) -> Result<()> {
    let mut folders: Vec<&Path> =
        manifest.files.iter().filter_map(|file| Path::new(&file.path).parent()).collect();
    folders.push(Path::new(""));
    folders.sort();
    folders.dedup();
    for folder in folders {
        let folder = directory.join(folder);
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.map_err(io_error(&folder))?;
    }
    Ok(())
}
