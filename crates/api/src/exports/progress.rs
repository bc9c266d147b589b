//! The progress of an export, as it is stored.

use zenobe_value::{AttributeValue, Attributes};

use super::request::number;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ExportProgress {
    /// Where the next data file begins: behind this item. Everything before it is in files.
    pub(crate) position: Option<Vec<u8>>,
    /// Whether the data files are complete.
    pub(crate) is_written: bool,
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) items: u64,
    /// The sizes of what was read.
    pub(crate) size_bytes: u64,
    /// How often in a row the object store could not be reached.
    pub(crate) attempts: u64,
}

/// A data file in the object store. Its key follows from its place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenFile {
    pub(crate) items: u64,
    pub(crate) md5: [u8; 16],
    pub(crate) etag: String,
}

impl ExportProgress {
    pub(crate) fn encode(&self) -> Attributes {
        let numbers = [
            ("is_written", u64::from(self.is_written)),
            ("items", self.items),
            ("size_bytes", self.size_bytes),
            ("attempts", self.attempts),
        ];
        let mut row: Attributes = numbers
            .into_iter()
            .map(|(name, number)| (name.to_owned(), AttributeValue::N(number.into())))
            .collect();
        if let Some(position) = &self.position {
            row.insert("position".to_owned(), AttributeValue::B(position.clone()));
        }
        row.insert("files".to_owned(), AttributeValue::B(encode_files(&self.files)));
        row
    }

    pub(crate) fn decode(row: &Attributes) -> ExportProgress {
        let number = |name: &str| number(row, name).unwrap_or(0);
        let bytes = |name: &str| match row.get(name) {
            Some(AttributeValue::B(bytes)) => Some(bytes.clone()),
            _ => None,
        };
        ExportProgress {
            position: bytes("position"),
            is_written: number("is_written") > 0,
            files: decode_files(&bytes("files").unwrap_or_default()),
            items: number("items"),
            size_bytes: number("size_bytes"),
            attempts: number("attempts"),
        }
    }

    /// What is worth keeping once the manifest lists the files.
    pub(crate) fn ended(&self) -> ExportProgress {
        ExportProgress { position: None, files: Vec::new(), ..self.clone() }
    }
}

/// Compact, because the list is stored with each further file: a count, a digest, and a tag with its length.
fn encode_files(files: &[WrittenFile]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(files.len() * 64);
    for file in files {
        bytes.extend_from_slice(&file.items.to_be_bytes());
        bytes.extend_from_slice(&file.md5);
        let length = u8::try_from(file.etag.len()).unwrap_or(0);
        bytes.push(length);
        bytes.extend_from_slice(&file.etag.as_bytes()[..usize::from(length)]);
    }
    bytes
}

fn decode_files(mut bytes: &[u8]) -> Vec<WrittenFile> {
    let mut files = Vec::new();
    while let Some((file, rest)) = decode_file(bytes) {
        files.push(file);
        bytes = rest;
    }
    files
}

fn decode_file(bytes: &[u8]) -> Option<(WrittenFile, &[u8])> {
    let (items, bytes) = bytes.split_first_chunk()?;
    let (md5, bytes) = bytes.split_first_chunk()?;
    let (length, bytes) = bytes.split_first()?;
    let (etag, rest) = bytes.split_at_checked(usize::from(*length))?;
    let file = WrittenFile {
        items: u64::from_be_bytes(*items),
        md5: *md5,
        etag: String::from_utf8_lossy(etag).into_owned(),
    };
    Some((file, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_storage() {
        let file =
            |items: u64, etag: &str| WrittenFile { items, md5: [7; 16], etag: etag.to_owned() };
        let progress = ExportProgress {
            position: Some(vec![0, 255]),
            is_written: true,
            files: vec![file(1, "\"abc\""), file(0, "")],
            items: 1,
            size_bytes: 2,
            attempts: 3,
        };
        assert_eq!(ExportProgress::decode(&progress.encode()), progress);
        assert_eq!(ExportProgress::decode(&Attributes::new()), ExportProgress::default());
        let ended = ExportProgress::decode(&progress.ended().encode());
        assert_eq!((ended.files.len(), ended.items), (0, 1));
    }
}
