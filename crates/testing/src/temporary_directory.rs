//! Directories that go away after a passing test.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process, thread};

/// A fresh directory, removed on drop. A failing test keeps it and prints its path: the files of a
/// store that lost a write are the evidence.
#[derive(Debug)]
pub struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    /// # Panics
    /// If the directory cannot be created.
    pub fn new(name: &str) -> TemporaryDirectory {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("zenobe-{name}-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a temporary directory can be created");
        TemporaryDirectory { path }
    }

    /// Writes a file that only its owner may read, as files with access keys must be.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn secret_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::write(&path, text).expect("a file can be written");
        let owner_only = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, owner_only).expect("a mode can be changed");
        path
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("kept for inspection: {}", self.path.display());
        } else {
            // A directory that cannot be removed is litter, not a failed test.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_differ_and_are_removed() {
        let (first, second) = (TemporaryDirectory::new("t"), TemporaryDirectory::new("t"));
        assert_ne!(first.path(), second.path());
        let path = first.path().to_owned();
        assert!(path.is_dir());
        drop(first);
        assert!(!path.exists());
    }
}
