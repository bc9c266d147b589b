//! Copies of a database in memory.

use zenobe_store::memory::MemoryStore;

use crate::{Database, Location, OpenError, OpenedStore, Options};

/// A database in memory as it was. Taking one, and opening a database on it, takes the same time
/// whatever its size: what nobody changes is shared.
pub struct MemorySnapshot {
    store: MemoryStore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("only a database in memory (--memory) can return to an earlier state")]
pub struct NotInMemory;

impl Database {
    /// The database as it is now: every request that has been answered is in it.
    ///
    /// # Errors
    /// If the database is not in memory.
    pub fn snapshot(&self) -> Result<MemorySnapshot, NotInMemory> {
        let store = self.open.memory.as_ref().ok_or(NotInMemory)?.fork();
        Ok(MemorySnapshot { store })
    }
}

impl MemorySnapshot {
    /// Of a database without tables.
    pub fn empty() -> MemorySnapshot {
        MemorySnapshot { store: MemoryStore::new() }
    }

    /// Opens a database with the content of the snapshot, which itself never changes. The location in
    /// the options has no effect.
    ///
    /// # Errors
    /// If the system can't start the background thread.
    pub async fn open(&self, options: Options) -> Result<Database, OpenError> {
        let options = Options { location: Location::Memory, ..options };
        Database::open_on(OpenedStore::in_memory(self.store.fork()), options).await
    }
}

#[cfg(test)]
mod tests {
    use zenobe_testing::TemporaryDirectory;

    use super::*;
    use crate::sample_table::{create, has_items, put};

    #[tokio::test]
    async fn databases_on_one_snapshot_are_independent() {
        let database = Database::in_memory().await.unwrap();
        create(&database).await;
        put(&database, "a").await;
        let snapshot = database.snapshot().unwrap();
        put(&database, "b").await;
        let one = snapshot.open(Options::default()).await.unwrap();
        let other = snapshot.open(Options::default()).await.unwrap();
        put(&one, "c").await;
        put(&one, "d").await;
        database.close().await.unwrap();
        assert!(has_items(&one, 3).await);
        assert!(has_items(&other, 1).await);
        let empty = MemorySnapshot::empty().open(Options::default()).await.unwrap();
        assert!(empty.call("Scan", r#"{"TableName": "tab"}"#).await.is_err());
    }

    #[tokio::test]
    async fn a_directory_is_not_copied() {
        let directory = TemporaryDirectory::new("not-in-memory");
        let database = Database::open(directory.path()).await.unwrap();
        assert_eq!(database.snapshot().err(), Some(NotInMemory));
    }
}
