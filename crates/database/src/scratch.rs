//! Directories that only one process needs. If it is killed, the next one of the same kind removes them.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Locked as long as the directory is needed.
const LOCK: &str = "lock";
const DATA: &str = "data";

/// A directory that goes with this.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    _lock: File,
}

impl ScratchDirectory {
    /// Creates a directory in `parent`, and removes those of the same kind whose processes were killed.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn create(parent: &Path, kind: &str) -> io::Result<ScratchDirectory> {
        fs::create_dir_all(parent)?;
        let process = std::process::id();
        for number in 0.. {
            let path = parent.join(format!("{kind}-{process}-{number}"));
            match only_for_its_owner().create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            let lock = File::create_new(path.join(LOCK))?;
            if let Err(error) = lock.lock() {
                // Nobody else can lock it either, so it stays.
                tracing::debug!(path = %path.display(), %error, "a scratch directory can't be locked");
            }
            // Before it was locked, another process may have taken it for one that nobody needs.
            if path.join(LOCK).exists() {
                remove_abandoned(parent, kind, &path);
                return Ok(ScratchDirectory { path, _lock: lock });
            }
        }
        unreachable!("there is always another number")
    }

    /// Where the content goes. It does not exist yet.
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove a scratch directory");
        }
    }
}

fn only_for_its_owner() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(false);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Removes directories beside `own` that no process holds. Those that can't be removed stay.
fn remove_abandoned(parent: &Path, kind: &str, own: &Path) {
    let Ok(owner) = fs::symlink_metadata(own).map(|metadata| owner(&metadata)) else { return };
    let begin = format!("{kind}-");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        // The parent may be everybody's. What is a link, or belongs to others, is left alone.
        let is_ours = fs::symlink_metadata(&path)
            .is_ok_and(|metadata| metadata.is_dir() && self::owner(&metadata) == owner);
        let is_of_kind = entry.file_name().to_string_lossy().starts_with(&begin);
        if path == own || !is_ours || !is_of_kind {
            continue;
        }
        let Ok(lock) = File::options().read(true).write(true).open(path.join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_err() {
            continue;
        }
        match remove(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "removed what a killed process left"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot remove what a killed process left");
            }
        }
    }
}

/// The content goes first: if this is cut off, the next process still finds the lock, and that nobody holds it.
fn remove(path: &Path) -> io::Result<()> {
    let data = path.join(DATA);
    if data.exists() {
        fs::remove_dir_all(data)?;
    }
    fs::remove_dir_all(path)
}

#[cfg(unix)]
fn owner(metadata: &Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use zenobe_testing::TemporaryDirectory;

    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn fill(directory: &ScratchDirectory) {
        fs::create_dir(directory.data()).unwrap();
        fs::write(directory.data().join("file"), "x").unwrap();
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let parent = TemporaryDirectory::new("scratch");
        let parent = parent.path();
        let held = ScratchDirectory::create(parent, "drill").unwrap();
        fill(&held);
        // As after a kill: the lock is there, and nobody holds it.
        let abandoned = parent.join("drill-1-0");
        fs::create_dir_all(abandoned.join(DATA)).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        // Not one of these, though its name is like theirs.
        fs::create_dir(parent.join("drill-notes")).unwrap();
        fs::create_dir(parent.join("other-1-0")).unwrap();
        fs::write(parent.join("other-1-0").join(LOCK), "").unwrap();
        let second = ScratchDirectory::create(parent, "drill").unwrap();
        assert!(!abandoned.exists());
        assert!(held.data().join("file").exists(), "a directory that is held stays");
        assert_eq!(names(parent).len(), 4, "{:?}", names(parent));
        drop(held);
        drop(second);
        assert_eq!(names(parent), ["drill-notes", "other-1-0"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let parent = TemporaryDirectory::new("scratch-link");
        let elsewhere = TemporaryDirectory::new("scratch-elsewhere");
        fs::create_dir(elsewhere.path().join(DATA)).unwrap();
        fs::write(elsewhere.path().join(LOCK), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join("drill-1-0")).unwrap();
        drop(ScratchDirectory::create(parent.path(), "drill").unwrap());
        assert!(elsewhere.path().join(DATA).exists());
    }
}
