//! Copies of a database in a directory.

use std::path::{Path, PathBuf};

use zenobe_store::Store;
use zenobe_store_embedded::{Durability, checkpoint_path};

use crate::{Database, Location, OpenError, Options};

/// Enough for a test. Many copies may be open at once.
const CACHE_BYTES_MAX: usize = 32 << 20;

/// A copy of a database beside its files. It takes milliseconds, whatever the size: the files of
/// tables are linked. The copy is removed when the value is dropped; what a killed process leaves
/// behind is removed when the directory is opened next.
#[derive(Debug)]
pub struct DirectoryCopy {
    path: PathBuf,
}

impl Database {
    /// Copies a database that is in a directory, as it is now: every request that has been answered
    /// is in it. `None` if it is not in a directory. The copy lies in `directory`, which must be that
    /// of a data directory on the same file system.
    ///
    /// # Errors
    /// If the files can't be linked or written.
    pub async fn copy_directory(
        &self,
        directory: &Path,
        name: &str,
    ) -> Result<Option<DirectoryCopy>, zenobe_store::Error> {
        let Some(store) = &self.open.embedded else { return Ok(None) };
        let copy = DirectoryCopy { path: checkpoint_path(directory, name) };
        store.checkpoint(&copy.path).await?;
        Ok(Some(copy))
    }
}

impl DirectoryCopy {
    /// Opens the copy, once. It need not outlive the machine, so nothing is synced. The location in
    /// the options has no effect.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub async fn open(&self, options: Options) -> Result<Database, OpenError> {
        let location = Location::Directory { path: self.path.clone(), durability: Durability::Os };
        let cache_size_bytes = options.cache_size_bytes.min(CACHE_BYTES_MAX);
        Database::open_with(Options { location, cache_size_bytes, ..options }).await
    }
}

impl Drop for DirectoryCopy {
    fn drop(&mut self) {
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove the copy {}: {error}", self.path.display());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use zenobe_testing::TemporaryDirectory;

    use super::*;
    use crate::sample_table::{create, has_items, put};

    #[tokio::test]
    async fn a_copy_is_independent_and_leaves_nothing_behind() {
        let directory = TemporaryDirectory::new("directory-copy");
        let database = Database::open(directory.path()).await.unwrap();
        create(&database).await;
        put(&database, "a").await;
        let first = database.copy_directory(directory.path(), "first").await.unwrap().unwrap();
        let copied = first.open(Options::default()).await.unwrap();
        put(&database, "b").await;
        put(&copied, "c").await;
        put(&copied, "d").await;
        // Beside the first one, so that it may outlive it.
        let second = copied.copy_directory(directory.path(), "second").await.unwrap().unwrap();
        copied.close().await.unwrap();
        drop(first);
        let copied = second.open(Options::default()).await.unwrap();
        assert!(has_items(&database, 2).await);
        assert!(has_items(&copied, 3).await);
        copied.close().await.unwrap();
        drop(second);
        assert_eq!(std::fs::read_dir(directory.path().join("CHECKPOINTS")).unwrap().count(), 0);
        let in_memory = Database::in_memory().await.unwrap();
        assert!(in_memory.copy_directory(directory.path(), "none").await.unwrap().is_none());
    }
}
