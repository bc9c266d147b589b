//! The reader of SQLite's files. It reads any bytes without a fault, and in bounded time; and it counts as many rows as it reads.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use zenobe_transfer::sqlite::{SqliteError, SqliteFile, Table};

/// A schema may name the same pages many times.
const TABLES_MAX: usize = 8;

fuzz_target!(|input: &[u8]| {
    let Ok(mut file) = SqliteFile::open(Cursor::new(input)) else { return };
    let Ok(tables) = file.tables() else { return };
    for table in tables.iter().take(TABLES_MAX) {
        if let Ok(read) = rows(&mut file, table) {
            let counted = file.rows(table).and_then(|rows| rows.count());
            assert_eq!(counted.expect("what can be read can be counted"), read, "{table:?}");
        }
    }
});

fn rows(file: &mut SqliteFile<Cursor<&[u8]>>, table: &Table) -> Result<u64, SqliteError> {
    let mut rows = file.rows(table)?;
    let mut read = 0;
    while rows.next_row()?.is_some() {
        read += 1;
    }
    Ok(read)
}
