//! One open RocksDB in its data directory.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBPinnableSlice, DEFAULT_COLUMN_FAMILY_NAME,
    ErrorKind, FlushOptions, ReadOptions, WriteBatch, WriteOptions,
};
use zenobe_store::{Error, Key, Result};

use crate::damaged_table_files::damaged_table_files;
use crate::directory::Directory;
use crate::options::{Durability, Options, entries_options, rocksdb_options};
use crate::prefix_extractor::PrefixExtractor;
use crate::write_ahead_log::{self, AcceptDamage};

/// The column family with the end of each log. It is apart from the caller's keys, because an end must outlive the
/// entries of its log.
const LOG_ENDS: &str = "sequences";

pub(crate) struct RocksDatabase {
    rocks: DB,
    durability: Durability,
    prefixes: Option<PrefixExtractor>,
    /// The last sequence number that a sync of the log is known to have covered.
    synced: AtomicU64,
    /// Dropped after the database is closed, so that no other process opens it earlier.
    directory: Arc<Directory>,
}

/// What became of a write that does not wait for stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteAttempt {
    Written,
    /// Flushes or compactions are behind, so RocksDB would have delayed the write. It is not written.
    Stalled,
}

impl RocksDatabase {
    /// The caller decides about [`Options::accept_log_damage`], because it applies to one opening only.
    pub fn open(
        directory: Arc<Directory>,
        options: &Options,
        accept_damage: AcceptDamage,
    ) -> Result<RocksDatabase> {
        let path = directory.rocksdb_path();
        let mut rocks = rocksdb_options(options);
        let is_new = !directory.holds_database()?;
        if !is_new {
            write_ahead_log::mend_manifest(&path, directory.nonce(), options)?;
            write_ahead_log::check(&path, directory.nonce(), options, accept_damage)?;
        }
        rocks.create_if_missing(is_new);
        rocks.create_missing_column_families(true);
        let families = [
            ColumnFamilyDescriptor::new(
                DEFAULT_COLUMN_FAMILY_NAME,
                entries_options(&rocks, options),
            ),
            ColumnFamilyDescriptor::new(LOG_ENDS, rocks.clone()),
        ];
        let rocks = DB::open_cf_descriptors(&rocks, &path, families)
            .map_err(|error| open_error(&path, &error))?;
        // Not only when it is new: the process that created it may have been interrupted before this.
        directory.sync()?;
        // What was replayed has been moved into tables, which are synced.
        let synced = AtomicU64::new(rocks.latest_sequence_number());
        let Options { durability, prefixes, .. } = *options;
        Ok(RocksDatabase { rocks, durability, prefixes, synced, directory })
    }

    pub fn rocks(&self) -> &DB {
        &self.rocks
    }

    pub fn prefixes(&self) -> Option<&PrefixExtractor> {
        self.prefixes.as_ref()
    }

    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The horizon: the last sequence number that is durable in the chosen mode.
    pub fn horizon(&self) -> u64 {
        match self.durability {
            Durability::Sync => self.synced.load(Ordering::Acquire),
            // Every write has been handed to the system when it returns.
            Durability::Os => self.rocks.latest_sequence_number(),
        }
    }

    /// The values of the caller's keys, which ascend.
    pub fn read_sorted<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Key>,
        options: &ReadOptions,
    ) -> Vec<Result<Option<DBPinnableSlice<'_>>, rocksdb::Error>> {
        self.rocks.batched_multi_get_cf_opt(self.entries(), keys, true, options)
    }

    /// Writes to the write-ahead log and the memtable. Under [`Durability::Sync`] the log is only a buffer until it is synced.
    pub fn write(&self, write: WriteBatch) -> Result<()> {
        let written = self.rocks.write_opt(write, &WriteOptions::default());
        written.map_err(|error| rocksdb_error(&error))
    }

    /// Like [`RocksDatabase::write`], but writes nothing while RocksDB stalls writes.
    pub fn write_unless_stalled(&self, write: WriteBatch) -> Result<WriteAttempt> {
        let mut options = WriteOptions::default();
        options.set_no_slowdown(true);
        match self.rocks.write_opt(write, &options) {
            Ok(()) => Ok(WriteAttempt::Written),
            Err(error) if error.kind() == ErrorKind::Incomplete => Ok(WriteAttempt::Stalled),
            Err(error) => Err(rocksdb_error(&error)),
        }
    }

    /// Bypasses the write-ahead log. It is durable after [`RocksDatabase::flush`].
    pub fn write_without_log(&self, batch: &[u8]) -> Result<()> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        let written = self.rocks.write_opt(WriteBatch::from_data(batch), &options);
        written.map_err(|error| rocksdb_error(&error))
    }

    /// Makes everything durable that has been written.
    pub fn sync_log(&self) -> Result<()> {
        // Numbers become visible after they have been written, so the sync covers all up to this one.
        let covered = self.rocks.latest_sequence_number();
        self.rocks.flush_wal(true).map_err(|error| rocksdb_error(&error))?;
        self.synced.store(covered, Ordering::Release);
        Ok(())
    }

    /// Writes the horizon by itself, for groups that no other group follows. It need not be durable.
    pub fn write_horizon(&self, horizon: u64) -> Result<()> {
        self.write(write_ahead_log::batch_with_horizon(self.directory.nonce(), horizon, 0))?;
        self.rocks.flush_wal(false).map_err(|error| rocksdb_error(&error))
    }

    /// Flushes memtables and write-ahead log to table files.
    pub fn flush(&self) -> Result<()> {
        let families = [self.entries(), self.log_ends()];
        let flushed = self.rocks.flush_cfs_opt(&families, &FlushOptions::default());
        flushed.map_err(|error| rocksdb_error(&error))
    }

    fn entries(&self) -> &ColumnFamily {
        let entries = self.rocks.cf_handle(DEFAULT_COLUMN_FAMILY_NAME);
        entries.expect("every database has this column family")
    }

    pub fn log_ends(&self) -> &ColumnFamily {
        self.rocks.cf_handle(LOG_ENDS).expect("the database was opened with this column family")
    }
}

/// Why a database could not be opened.
pub(crate) fn open_error(path: &Path, error: &rocksdb::Error) -> Error {
    let detail = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::Corruption => match &damaged_table_files(path)[..] {
            [] => Error::Corrupt { detail },
            // RocksDB may have blamed another file.
            names => Error::Corrupt {
                detail: format!("{detail} The damaged table files are: {}", names.join(", ")),
            },
        },
        _ => Error::Open { detail },
    }
}

/// RocksDB's error as ours. To a caller, everything but corruption is a failure of input or output.
pub(crate) fn rocksdb_error(error: &rocksdb::Error) -> Error {
    let detail = error.to_string();
    match error.kind() {
        ErrorKind::Corruption => Error::Corrupt { detail },
        _ => Error::Io { detail },
    }
}

pub(crate) fn io_error(what: impl std::fmt::Display, error: &io::Error) -> Error {
    Error::Io { detail: format!("{what}: {error}") }
}
