//! What a snapshot consists of.

use serde_json::{Value, json};
use zenobe_store::copying::RangeSum;
use zenobe_store::{KeyRange, Stamp};

use crate::error::{BackupError, Result};
use crate::json::{Members, seal, unseal};

const KIND: &str = "backup";
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub id: String,
    /// The generation of the log that continues after the snapshot; `None` if the log is not shipped.
    pub generation: Option<String>,
    /// A number that all copies of the database share.
    pub database: u64,
    /// The last sequence number in the files.
    pub sequence: u64,
    /// No group in the files is after this.
    pub at: Stamp,
    pub files: Vec<FileEntry>,
    /// What the files hold, if somebody has read them.
    pub content: Option<ContentSums>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// In the data directory, with `/` between its parts.
    pub path: String,
    pub size_bytes: u64,
    pub sha256: [u8; 32],
    /// The SHA-256 of its end, by which the same file is recognised ([`crate::stored_files`]).
    pub tail: [u8; 32],
    /// The key of the object with its content. An empty file has none.
    pub object: Option<String>,
}

/// The checksums of the store's content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentSums {
    /// They follow each other, and cover all keys.
    pub ranges: Vec<RangeSum>,
    pub log_ends: u64,
    pub log_ends_checksum: u128,
}

impl ContentSums {
    pub fn rows(&self) -> u64 {
        self.ranges.iter().map(|range| range.rows).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.bytes).sum()
    }
}

impl Manifest {
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    pub fn encode(&self) -> Vec<u8> {
        let document = json!({
            "id": self.id,
            "generation": self.generation,
            "database": hex::encode(self.database.to_be_bytes()),
            "sequence": self.sequence,
            "at": self.at.to_bits(),
            "files": self.files.iter().map(file).collect::<Vec<Value>>(),
            "content": self.content.as_ref().map(content),
        });
        seal(KIND, VERSION, &document)
    }

    /// # Errors
    /// If the bytes are damaged. `object` is where they were found.
    pub fn decode(object: &str, bytes: &[u8]) -> Result<Manifest> {
        let value = &unseal(KIND, VERSION, object, bytes)?;
        let members = Members { object, value };
        let files = members.list("files")?.iter().map(parse_file).collect::<Result<_>>()?;
        let content = match &value["content"] {
            Value::Null => None,
            value => Some(parse_content(&Members { object, value })?),
        };
        Ok(Manifest {
            id: members.text("id")?,
            generation: members.optional_text("generation"),
            database: u64::from_be_bytes(members.bytes("database")?),
            sequence: members.number("sequence")?,
            at: Stamp::from_bits(members.number("at")?),
            files,
            content,
        })
    }
}

fn file(file: &FileEntry) -> Value {
    json!({
        "path": file.path,
        "size": file.size_bytes,
        "sha256": hex::encode(file.sha256),
        "tail": hex::encode(file.tail),
        "object": file.object,
    })
}

fn parse_file(members: &Members<'_>) -> Result<FileEntry> {
    let entry = FileEntry {
        path: members.text("path")?,
        size_bytes: members.number("size")?,
        sha256: members.bytes("sha256")?,
        tail: members.bytes("tail")?,
        object: members.optional_text("object"),
    };
    // A path is joined to a directory, and must not leave it.
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    match entry.path.split('/').all(is_plain) && !entry.path.contains('\\') {
        true => Ok(entry),
        false => {
            let problem = format!("`{}` is not the path of a file in a data directory", entry.path);
            Err(BackupError::damaged(members.object, problem))
        }
    }
}

fn content(content: &ContentSums) -> Value {
    let range = |sum: &RangeSum| {
        json!({
            "start": hex::encode(&sum.range.start),
            "end": sum.range.end.as_ref().map(hex::encode),
            "rows": sum.rows,
            "bytes": sum.bytes,
            "checksum": hex::encode(sum.checksum.to_be_bytes()),
        })
    };
    json!({
        "ranges": content.ranges.iter().map(range).collect::<Vec<Value>>(),
        "log_ends": content.log_ends,
        "log_ends_checksum": hex::encode(content.log_ends_checksum.to_be_bytes()),
    })
}

fn parse_content(members: &Members<'_>) -> Result<ContentSums> {
    let parse_range = |members: &Members<'_>| {
        let end = match &members.value["end"] {
            Value::Null => None,
            _ => Some(members.key("end")?.into()),
        };
        Ok(RangeSum {
            range: KeyRange { start: members.key("start")?.into(), end },
            rows: members.number("rows")?,
            bytes: members.number("bytes")?,
            checksum: u128::from_be_bytes(members.bytes("checksum")?),
        })
    };
    Ok(ContentSums {
        ranges: members.list("ranges")?.iter().map(parse_range).collect::<Result<_>>()?,
        log_ends: members.number("log_ends")?,
        log_ends_checksum: u128::from_be_bytes(members.bytes("log_ends_checksum")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |path: &str, object: Option<&str>| FileEntry {
            path: path.into(),
            size_bytes: 9,
            sha256: [7; 32],
            tail: [8; 32],
            object: object.map(str::to_owned),
        };
        let range = KeyRange { start: vec![0, 255].into(), end: None };
        Manifest {
            id: "01794816000123-12345678".into(),
            generation: Some("01794816000000-12345678".into()),
            database: u64::MAX,
            sequence: 77,
            at: Stamp::last_of_ms(1_794_816_000_123),
            files: vec![file("FORMAT", Some("snapshots/x")), file("rocksdb/000004.log", None)],
            content: Some(ContentSums {
                ranges: vec![RangeSum { range, rows: 1, bytes: 2, checksum: u128::MAX }],
                log_ends: 3,
                log_ends_checksum: 4,
            }),
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = manifest();
        assert_eq!(Manifest::decode("m", &manifest.encode()).unwrap(), manifest);
        let plain = Manifest { generation: None, content: None, ..manifest };
        assert_eq!(Manifest::decode("m", &plain.encode()).unwrap(), plain);
    }

    /// Whatever happens to a byte of it, it is refused, and the text names it.
    #[test]
    fn a_damaged_manifest_is_refused() {
        let bytes = manifest().encode();
        for at in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            let error = Manifest::decode("place/m", &altered).unwrap_err().to_string();
            assert!(error.starts_with("the backup is damaged: place/m: "), "{error}");
            Manifest::decode("place/m", &bytes[..at]).unwrap_err();
        }
    }

    #[test]
    fn a_path_stays_in_the_directory() {
        for path in ["../x", "/etc/passwd", "rocksdb/../../x", "", "a\\b"] {
            let mut manifest = manifest();
            manifest.files[0].path = path.into();
            let error = Manifest::decode("m", &manifest.encode()).unwrap_err().to_string();
            assert!(error.contains("not the path of a file"), "{path}: {error}");
        }
    }
}
