//! With a file that DynamoDB Local made: tests/dynamodb-local.

use std::io::{Cursor, Read};

use super::*;

fn fixture() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/dynamodb-local/database.db.gz");
    let mut bytes = Vec::new();
    let compressed = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(compressed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn open(bytes: Vec<u8>) -> Result<SqliteFile<Cursor<Vec<u8>>>, SqliteError> {
    SqliteFile::open(Cursor::new(bytes))
}

/// Reads everything that there is, and returns how many values.
fn read_all(bytes: Vec<u8>) -> Result<usize, SqliteError> {
    let mut file = open(bytes)?;
    let mut count = 0;
    for table in file.tables()? {
        let mut rows = file.rows(&table)?;
        while let Some(row) = rows.next_row()? {
            count += row.len();
        }
    }
    Ok(count)
}

#[test]
fn every_row_is_found_once() {
    let mut file = open(fixture()).unwrap();
    let tables = file.tables().unwrap();
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["cf", "dm", "sm", "ss", "us", "tr", "Orders", "many.rows-2", "empty"]);
    for (name, expected) in [("cf", 1), ("dm", 3), ("Orders", 1), ("many.rows-2", 61), ("empty", 0)]
    {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        assert_eq!(file.rows(table).unwrap().count().unwrap(), expected, "{name}");
        let column = table.column("hashKey").unwrap_or(0);
        let mut rows = file.rows(table).unwrap();
        let mut found = std::collections::BTreeSet::new();
        while let Some(row) = rows.next_row().unwrap() {
            assert_eq!(row.len(), table.columns.len(), "{name}");
            found.insert(format!("{:?}", row[column]));
        }
        assert_eq!(found.len() as u64, expected, "{name}");
    }
}

#[test]
fn a_row_continues_on_overflow_pages() {
    let mut file = open(fixture()).unwrap();
    let tables = file.tables().unwrap();
    let table = tables.iter().find(|table| table.name == "many.rows-2").unwrap();
    let column = table.column("ObjectJSON").unwrap();
    let mut rows = file.rows(table).unwrap();
    let mut longest = Vec::new();
    while let Some(mut row) = rows.next_row().unwrap() {
        let json = row.swap_remove(column).into_bytes().unwrap();
        longest = if json.len() > longest.len() { json } else { longest };
    }
    let text = String::from_utf8(longest).unwrap();
    assert!(text.contains(&"long text, ".repeat(500)), "{text}");
}

#[test]
fn other_files_are_told_apart() {
    for bytes in [Vec::new(), b"SQLite format 3\0".to_vec(), vec![0; 200], b"{}".repeat(100)] {
        assert!(matches!(open(bytes), Err(SqliteError::NotSqlite)));
    }
    let mut utf16 = fixture();
    utf16[59] = 2;
    assert!(matches!(open(utf16), Err(SqliteError::Unsupported(_))));
}

/// Damage is an error or goes unnoticed, but never a panic or a loop.
#[test]
fn damaged_files_end() {
    let sound = fixture();
    let values = read_all(sound.clone()).unwrap();
    let mut errors = 0;
    // Every byte of the headers of pages, with the values that matter most.
    for position in (0..sound.len()).filter(|position| position % 1024 < 14 || *position < 120) {
        for value in [0x00, 0x05, 0xFF] {
            let mut bytes = sound.clone();
            bytes[position] = value;
            match read_all(bytes) {
                Ok(found) => assert!(found <= 2 * values, "{position} {value}: {found}"),
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > 100, "{errors}");
    for length in (0..sound.len()).step_by(997) {
        assert!(read_all(sound[..length].to_vec()).is_err(), "{length}");
    }
}
