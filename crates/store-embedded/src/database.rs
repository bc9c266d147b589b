//! One open RocksDB in its data directory.

use std::io;
use std::sync::Arc;

use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, ErrorKind, FlushOptions};
use zenobe_store::{Error, Result};

use crate::directory::Directory;
use crate::options::{Options, rocksdb_options};

/// Where each log's last sequence number lies, apart from the caller's keys: they go on after the log's
/// entries, or all entries, have been deleted.
const SEQUENCES: &str = "sequences";

pub(crate) struct Database {
    rocks: DB,
    /// Dropped after the database is closed, so that nobody else opens it earlier.
    directory: Arc<Directory>,
}

impl Database {
    pub fn open(directory: Arc<Directory>, options: &Options) -> Result<Database> {
        let path = directory.rocksdb_path();
        let mut rocks = rocksdb_options(options);
        rocks.create_if_missing(!directory.holds_database()?);
        rocks.create_missing_column_families(true);
        let families = [rocksdb::DEFAULT_COLUMN_FAMILY_NAME, SEQUENCES]
            .map(|name| ColumnFamilyDescriptor::new(name, rocks.clone()));
        let rocks = DB::open_cf_descriptors(&rocks, &path, families).map_err(|error| {
            let detail = format!("{}: {error}", path.display());
            match error.kind() {
                ErrorKind::Corruption => Error::Corrupt { detail },
                _ => Error::Open { detail },
            }
        })?;
        Ok(Database { rocks, directory })
    }

    pub fn rocks(&self) -> &DB {
        &self.rocks
    }

    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Moves everything from memory and log into tables.
    pub fn flush(&self) -> Result<()> {
        let entries = self.rocks.cf_handle(rocksdb::DEFAULT_COLUMN_FAMILY_NAME);
        let families: Vec<&ColumnFamily> = entries.into_iter().chain([self.sequences()]).collect();
        let flushed = self.rocks.flush_cfs_opt(&families, &FlushOptions::default());
        flushed.map_err(|error| rocksdb_error(&error))
    }

    pub fn sequences(&self) -> &ColumnFamily {
        self.rocks.cf_handle(SEQUENCES).expect("the database was opened with this column family")
    }
}

/// RocksDB's status as ours. What is not corruption is a failure of input or output to a caller.
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
