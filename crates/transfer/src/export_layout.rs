//! Where AWS puts the files of an export, and what it calls them. `_started` says that the export has begun; the manifests
//! ([`crate::manifest`]) are beside it, and the data files below.

use crate::Format;

/// Where the files of one export are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: String,
    export_id: String,
}

impl Layout {
    /// `export_id` is the end of the export's ARN.
    pub fn new(prefix: Option<&str>, export_id: &str) -> Layout {
        let root = match prefix.filter(|prefix| !prefix.is_empty()) {
            None => "AWSDynamoDB".to_owned(),
            Some(prefix) => format!("{}/AWSDynamoDB", prefix.strip_suffix('/').unwrap_or(prefix)),
        };
        Layout { root, export_id: export_id.to_owned() }
    }

    pub fn started(&self) -> String {
        self.beside("_started")
    }

    pub fn summary(&self) -> String {
        self.beside("manifest-summary.json")
    }

    pub fn summary_md5(&self) -> String {
        self.beside("manifest-summary.md5")
    }

    pub fn files(&self) -> String {
        self.beside("manifest-files.json")
    }

    pub fn files_md5(&self) -> String {
        self.beside("manifest-files.md5")
    }

    /// A data file. Incremental exports of a table share their folder.
    pub fn data_file(&self, random: u128, format: Format, is_incremental: bool) -> String {
        let extension = if format == Format::Ion { "ion.gz" } else { "json.gz" };
        let name = data_file_name(random);
        match is_incremental {
            true => format!("{}/data/{name}.{extension}", self.root),
            false => self.beside(&format!("data/{name}.{extension}")),
        }
    }

    fn beside(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.root, self.export_id)
    }
}

/// 26 characters of base32.
fn data_file_name(random: u128) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digit = |position: u32| char::from(ALPHABET[(random >> (5 * position)) as usize % 32]);
    (0..26).map(digit).collect()
}

/// The key of the file list of the export that contains this data file or folder.
pub fn files_beside(data_key: &str) -> Option<String> {
    let (export, _) = data_key.rsplit_once("/data/")?;
    export.contains("AWSDynamoDB/").then(|| format!("{export}/manifest-files.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_where_aws_puts_them() {
        let layout = Layout::new(Some("some/where/"), "01-ab");
        assert_eq!(layout.started(), "some/where/AWSDynamoDB/01-ab/_started");
        assert_eq!(layout.files_md5(), "some/where/AWSDynamoDB/01-ab/manifest-files.md5");
        let layout = Layout::new(None, "01-ab");
        let file = layout.data_file(0, Format::DynamoDbJson, false);
        assert_eq!(file, format!("AWSDynamoDB/01-ab/data/{}.json.gz", "a".repeat(26)));
        assert_eq!(files_beside(&file).as_deref(), Some("AWSDynamoDB/01-ab/manifest-files.json"));
        assert_eq!(files_beside("AWSDynamoDB/01-ab/data/"), Some(layout.files()));
        assert_eq!(files_beside("data/x"), None);
        let shared = layout.data_file(u128::MAX, Format::Ion, true);
        assert_eq!(shared, format!("AWSDynamoDB/data/{}h.ion.gz", "7".repeat(25)));
    }
}
