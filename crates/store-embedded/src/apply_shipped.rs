//! Applying shipped groups to a restored copy of the files, before anybody serves it.

use std::path::Path;
use std::sync::Arc;

use zenobe_store::shipping::LogGroup;
use zenobe_store::{Error, Result};

use crate::directory::Directory;
use crate::options::Options;
use crate::rocks_database::RocksDatabase;
use crate::write_ahead_log::{self, AcceptDamage};

/// A data directory that is being restored.
pub struct RestoringDirectory {
    database: RocksDatabase,
}

impl RestoringDirectory {
    /// Opens a directory whose files are all there. It may carry the mark of an unfinished restore.
    ///
    /// # Errors
    /// Like those of opening a store.
    pub fn open(directory: &Path, options: &Options) -> Result<RestoringDirectory> {
        let directory = Arc::new(Directory::open_unfinished(directory)?);
        let options = Options { is_served: false, ..options.clone() };
        let database = RocksDatabase::open(directory, &options, AcceptDamage::No)?;
        Ok(RestoringDirectory { database })
    }

    /// The number of the last entry that the copy holds.
    pub fn last_sequence(&self) -> u64 {
        self.database.rocks().latest_sequence_number()
    }

    /// Applies the next group. One that the copy holds already is left out: nothing, and `false`.
    ///
    /// # Errors
    /// If groups are missing before it, or if it is not what it says.
    pub fn apply(&mut self, group: &LogGroup) -> Result<bool> {
        let expected = self.last_sequence() + 1;
        if group.next() <= expected {
            return Ok(false);
        }
        let damaged = |problem: String| Error::Corrupt {
            detail: format!("the group with sequence number {}: {problem}", group.first),
        };
        if group.first != expected {
            return Err(damaged(format!("expected sequence number {expected}")));
        }
        let entries = write_ahead_log::entries_of(&group.bytes);
        if entries == 0 || entries != group.entries {
            return Err(damaged(format!("{entries} entries instead of {}", group.entries)));
        }
        self.database.write_without_log(&group.bytes)?;
        match self.last_sequence() + 1 {
            next if next == group.next() => Ok(true),
            next => Err(damaged(format!("the next number is {next} instead of {}", group.next()))),
        }
    }

    /// Makes everything durable, and closes the files.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(self) -> Result<()> {
        self.database.flush()
    }
}
