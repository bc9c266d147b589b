//! The per-user cache, shared by all clones on a machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::process::Failure;

/// `${XDG_CACHE_HOME:-~/.cache}/zenobe`, created if necessary.
pub fn directory() -> Result<PathBuf, Failure> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => std::env::home_dir()
            .ok_or_else(|| Failure::new("no home directory; set XDG_CACHE_HOME"))?
            .join(".cache"),
    };
    let directory = base.join("zenobe");
    create(&directory)?;
    Ok(directory)
}

pub fn create(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| Failure::file("create", directory, &error))
}

/// Held while a run fills the cache. The operating system releases it when the process ends,
/// however it ends, so a killed run leaves no stale lock behind.
pub struct Lock {
    _file: File,
}

/// Waits until no other run is filling `entry`, and says so.
pub fn lock(entry: &Path) -> Result<Lock, Failure> {
    let announce = || eprintln!("xtask: waiting for another run that fills {}", entry.display());
    lock_after(entry, announce)
}

/// The same for a part of the run that fills it.
pub fn lock_silently(entry: &Path) -> Result<Lock, Failure> {
    lock_after(entry, || {})
}

fn lock_after(entry: &Path, announce: impl FnOnce()) -> Result<Lock, Failure> {
    let path = beside(entry, "lock");
    let file = File::create(&path).map_err(|error| Failure::file("create", &path, &error))?;
    if file.try_lock().is_err() {
        announce();
        file.lock().map_err(|error| Failure::file("lock", &path, &error))?;
    }
    Ok(Lock { _file: file })
}

/// A name next to an entry's, for files that belong to it but are not part of it.
pub fn beside(entry: &Path, suffix: &str) -> PathBuf {
    let mut name = entry.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// Gives a finished directory its final name in one step, so no run ever sees half an entry.
pub fn publish(finished: &Path, entry: &Path) -> Result<(), Failure> {
    if entry.exists() {
        remove(entry)?;
    }
    fs::rename(finished, entry).map_err(|error| Failure::file("rename", finished, &error))
}

/// Removes a directory of the cache, if it exists.
pub fn remove(directory: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::file("remove", directory, &error))
        }
        _ => Ok(()),
    }
}
