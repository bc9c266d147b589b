//! The manifests of an export: `manifest-summary.json` says what it is, and `manifest-files.json` which data files it has, one per
//! line. Each manifest has its MD5 in base64 beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use crate::Format;

/// The summary of an export. Times are ISO 8601 with milliseconds, keys begin at the bucket's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub export_arn: String,
    pub start_time: String,
    pub end_time: String,
    pub table_arn: String,
    pub table_id: String,
    pub window: ExportWindow,
    pub bucket: String,
    pub prefix: Option<String>,
    pub sse_algorithm: String,
    pub sse_kms_key_id: Option<String>,
    pub files_key: String,
    pub billed_size_bytes: u64,
    pub item_count: u64,
    pub format: Format,
}

/// What of the table's life an export holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportWindow {
    /// All items as of a moment.
    Full { export_time: String },
    /// What changed between two moments.
    Incremental { from: String, to: String, output_view: String },
}

impl Summary {
    pub fn to_json(&self) -> Vec<u8> {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
        let is_full = matches!(self.window, ExportWindow::Full { .. });
        add("version", if is_full { "2020-06-30" } else { "2023-08-01" }.into());
        add("exportArn", self.export_arn.clone().into());
        add("startTime", self.start_time.clone().into());
        add("endTime", self.end_time.clone().into());
        add("tableArn", self.table_arn.clone().into());
        add("tableId", self.table_id.clone().into());
        match &self.window {
            ExportWindow::Full { export_time } => add("exportTime", export_time.clone().into()),
            ExportWindow::Incremental { from, to, .. } => {
                add("exportFromTime", from.clone().into());
                add("exportToTime", to.clone().into());
            }
        }
        add("s3Bucket", self.bucket.clone().into());
        add("s3Prefix", self.prefix.clone().into());
        add("s3SseAlgorithm", self.sse_algorithm.clone().into());
        add("s3SseKmsKeyId", self.sse_kms_key_id.clone().into());
        add("manifestFilesS3Key", self.files_key.clone().into());
        add("billedSizeBytes", self.billed_size_bytes.into());
        add("itemCount", self.item_count.into());
        add("outputFormat", self.format.name().into());
        if let ExportWindow::Incremental { output_view, .. } = &self.window {
            add("exportType", "INCREMENTAL_EXPORT".into());
            add("outputView", output_view.clone().into());
        }
        Value::Object(members).to_string().into_bytes()
    }

    /// The key of `manifest-files.json` and the format of the data, which is all that a reader
    /// needs.
    pub fn parse(json: &[u8]) -> Option<(String, Format)> {
        let summary: Value = serde_json::from_slice(json).ok()?;
        let format = match summary["outputFormat"].as_str()? {
            "DYNAMODB_JSON" => Format::DynamoDbJson,
            "ION" => Format::Ion,
            _ => return None,
        };
        Some((summary["manifestFilesS3Key"].as_str()?.to_owned(), format))
    }
}

/// A line of `manifest-files.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    pub item_count: u64,
    /// The MD5 of the compressed file, in base64.
    pub md5: String,
    pub etag: String,
    pub key: String,
}

pub fn files_to_json(files: &[DataFile]) -> Vec<u8> {
    let line = |file: &DataFile| {
        let line = json!({
            "itemCount": file.item_count,
            "md5Checksum": file.md5,
            "etag": file.etag,
            "dataFileS3Key": file.key,
        });
        format!("{line}\n")
    };
    files.iter().map(line).collect::<String>().into_bytes()
}

/// The data files that a manifest lists, or `None` if it is damaged.
pub fn parse_files(json: &[u8]) -> Option<Vec<DataFile>> {
    let text = std::str::from_utf8(json).ok()?;
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(DataFile {
            item_count: line["itemCount"].as_u64()?,
            md5: line["md5Checksum"].as_str()?.to_owned(),
            etag: line["etag"].as_str().unwrap_or_default().to_owned(),
            key: line["dataFileS3Key"].as_str()?.to_owned(),
        })
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(parse).collect()
}

/// The MD5 of some bytes, as manifests write it.
pub fn md5_base64(bytes: &[u8]) -> String {
    base64(&Md5::digest(bytes))
}

pub fn base64(digest: &[u8]) -> String {
    STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_have_awss_members_and_are_read_again() {
        let mut summary = Summary {
            export_arn: "arn:aws:dynamodb:us-east-1:1:table/t/export/01-ab".into(),
            start_time: "2026-11-16T08:00:00.000Z".into(),
            end_time: "2026-11-16T08:00:01.000Z".into(),
            table_arn: "arn:aws:dynamodb:us-east-1:1:table/t".into(),
            table_id: "id".into(),
            window: ExportWindow::Full { export_time: "2026-11-16T07:59:00.000Z".into() },
            bucket: "bucket".into(),
            prefix: None,
            sse_algorithm: "AES256".into(),
            sse_kms_key_id: None,
            files_key: "AWSDynamoDB/01-ab/manifest-files.json".into(),
            billed_size_bytes: 12,
            item_count: 3,
            format: Format::Ion,
        };
        let json: Value = serde_json::from_slice(&summary.to_json()).unwrap();
        assert_eq!(json["version"], "2020-06-30");
        assert_eq!(json["s3SseKmsKeyId"], Value::Null);
        assert_eq!(json.as_object().unwrap().len(), 15);
        let parsed = Summary::parse(&summary.to_json());
        assert_eq!(parsed, Some((summary.files_key.clone(), Format::Ion)));
        summary.window = ExportWindow::Incremental {
            from: "a".into(),
            to: "b".into(),
            output_view: "NEW_AND_OLD_IMAGES".into(),
        };
        let json: Value = serde_json::from_slice(&summary.to_json()).unwrap();
        assert_eq!(json["exportType"], "INCREMENTAL_EXPORT");
        assert_eq!(json["version"], "2023-08-01");
        assert_eq!(Summary::parse(b"{}"), None);
        let file = |key: &str| DataFile {
            item_count: 1,
            md5: md5_base64(b"x"),
            etag: "e-1".into(),
            key: key.into(),
        };
        let files = [file("a"), file("b\n")];
        assert_eq!(parse_files(&files_to_json(&files)), Some(files.to_vec()));
        assert_eq!(parse_files(b"{}\n"), None);
        assert_eq!(md5_base64(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
    }
}
