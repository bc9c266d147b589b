//! What a request to export says, checked and as it is stored.

use zenobe_transfer::Format;
use zenobe_transfer::objects::Encryption;
use zenobe_value::{AttributeValue, Attributes};

use super::Filter;
use crate::constraints::Enumeration;
use crate::json::Writer;

pub(crate) static EXPORT_FORMAT: Enumeration<Format> =
    Enumeration(&[("ION", Format::Ion), ("DYNAMODB_JSON", Format::DynamoDbJson)]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportType {
    Full,
    Incremental,
}

pub(crate) static EXPORT_TYPE: Enumeration<ExportType> = Enumeration(&[
    ("FULL_EXPORT", ExportType::Full),
    ("INCREMENTAL_EXPORT", ExportType::Incremental),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportView {
    NewImage,
    NewAndOldImages,
}

pub(crate) static EXPORT_VIEW: Enumeration<ExportView> = Enumeration(&[
    ("NEW_IMAGE", ExportView::NewImage),
    ("NEW_AND_OLD_IMAGES", ExportView::NewAndOldImages),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SseAlgorithm {
    Aes256,
    Kms,
}

impl SseAlgorithm {
    pub(crate) fn encryption(self, kms_key: Option<&str>) -> Encryption {
        match self {
            SseAlgorithm::Aes256 => Encryption::Default,
            SseAlgorithm::Kms => Encryption::Kms { key: kms_key.map(str::to_owned) },
        }
    }
}

pub(crate) static SSE_ALGORITHM: Enumeration<SseAlgorithm> =
    Enumeration(&[("AES256", SseAlgorithm::Aes256), ("KMS", SseAlgorithm::Kms)]);

/// The members of a request. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub(crate) table_arn: String,
    pub(crate) export_time_ms: Option<u64>,
    pub(crate) bucket: String,
    pub(crate) owner: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) sse: Option<SseAlgorithm>,
    pub(crate) kms_key: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) export_type: Option<ExportType>,
    pub(crate) incremental: Option<Incremental>,
    pub(crate) filter: Option<Filter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incremental {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: Option<u64>,
    pub(crate) view: Option<ExportView>,
}

impl Given {
    pub(crate) fn format(&self) -> Format {
        self.format.unwrap_or(Format::DynamoDbJson)
    }

    pub(crate) fn sse(&self) -> SseAlgorithm {
        self.sse.unwrap_or(SseAlgorithm::Aes256)
    }

    pub(super) fn encode(&self) -> Attributes {
        let mut row = Attributes::new();
        let texts = [
            ("table_arn", Some(self.table_arn.as_str())),
            ("bucket", Some(self.bucket.as_str())),
            ("owner", self.owner.as_deref()),
            ("prefix", self.prefix.as_deref()),
            ("sse", self.sse.map(|sse| SSE_ALGORITHM.name_of(&sse))),
            ("kms_key", self.kms_key.as_deref()),
            ("format", self.format.map(|format| EXPORT_FORMAT.name_of(&format))),
            ("export_type", self.export_type.map(|of| EXPORT_TYPE.name_of(&of))),
        ];
        put_texts(&mut row, texts);
        put_number(&mut row, "export_time_ms", self.export_time_ms);
        if let Some(Incremental { from_ms, to_ms, view }) = self.incremental {
            put_number(&mut row, "from_ms", Some(from_ms));
            put_number(&mut row, "to_ms", to_ms);
            put_texts(&mut row, [("view", view.map(|view| EXPORT_VIEW.name_of(&view)))]);
        }
        if let Some(filter) = &self.filter {
            row.insert("filter".to_owned(), AttributeValue::M(filter.encode()));
        }
        row
    }

    pub(super) fn decode(row: &Attributes) -> Option<Given> {
        let incremental = number(row, "from_ms").map(|from_ms| Incremental {
            from_ms,
            to_ms: number(row, "to_ms"),
            view: value_of(&EXPORT_VIEW, row, "view"),
        });
        let filter = match row.get("filter") {
            Some(AttributeValue::M(filter)) => Some(Filter::decode(filter)?),
            _ => None,
        };
        Some(Given {
            table_arn: text(row, "table_arn")?,
            export_time_ms: number(row, "export_time_ms"),
            bucket: text(row, "bucket")?,
            owner: text(row, "owner"),
            prefix: text(row, "prefix"),
            sse: value_of(&SSE_ALGORITHM, row, "sse"),
            kms_key: text(row, "kms_key"),
            format: value_of(&EXPORT_FORMAT, row, "format"),
            export_type: value_of(&EXPORT_TYPE, row, "export_type"),
            incremental,
            filter,
        })
    }

    /// The members that a description repeats, with defaults. `to_ms` is where an incremental export ends.
    pub(super) fn write(&self, writer: &mut Writer, to_ms: u64) {
        writer.name("S3Bucket").string(&self.bucket);
        let optional = [("S3BucketOwner", &self.owner), ("S3Prefix", &self.prefix)];
        for (name, text) in optional {
            if let Some(text) = text {
                writer.name(name).string(text);
            }
        }
        writer.name("S3SseAlgorithm").string(SSE_ALGORITHM.name_of(&self.sse()));
        if let Some(key) = &self.kms_key {
            writer.name("S3SseKmsKeyId").string(key);
        }
        writer.name("ExportFormat").string(EXPORT_FORMAT.name_of(&self.format()));
        if let Some(export_type) = self.export_type {
            writer.name("ExportType").string(EXPORT_TYPE.name_of(&export_type));
        }
        if let Some(incremental) = self.incremental {
            writer.name("IncrementalExportSpecification").object(|writer| {
                writer.name("ExportFromTime").timestamp(incremental.from_ms);
                writer.name("ExportToTime").timestamp(to_ms);
                writer.name("ExportViewType").string(EXPORT_VIEW.name_of(&incremental.view()));
            });
        }
        if let Some(filter) = &self.filter {
            filter.write(writer.name("FilterSpecification"));
        }
    }
}

impl Incremental {
    pub(crate) fn view(self) -> ExportView {
        self.view.unwrap_or(ExportView::NewAndOldImages)
    }
}

fn put_texts<const N: usize>(row: &mut Attributes, texts: [(&str, Option<&str>); N]) {
    let given = texts.into_iter().filter_map(|(name, text)| Some((name, text?)));
    row.extend(given.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))));
}

fn put_number(row: &mut Attributes, name: &str, number: Option<u64>) {
    row.extend(number.map(|number| (name.to_owned(), AttributeValue::N(number.into()))));
}

pub(super) fn text(row: &Attributes, name: &str) -> Option<String> {
    match row.get(name) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    }
}

pub(super) fn number(row: &Attributes, name: &str) -> Option<u64> {
    match row.get(name) {
        Some(AttributeValue::N(number)) => {
            number.to_i64().and_then(|number| u64::try_from(number).ok())
        }
        _ => None,
    }
}

fn value_of<T: Copy>(enumeration: &Enumeration<T>, row: &Attributes, name: &str) -> Option<T> {
    let wanted = text(row, name)?;
    enumeration.0.iter().find(|(known, _)| *known == wanted).map(|(_, value)| *value)
}
