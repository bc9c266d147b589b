//! Numbers, and conversions of items between bytes, trees and JSON.

use std::hint::black_box;
use std::sync::Arc;

use zenobe_api::stream_records::{RecordForm, write_record};
use zenobe_engine::command::{StreamEvent, StreamName, StreamRecord, TableName};
use zenobe_engine::schema::{Namespace, StreamViewType};
use zenobe_engine::streams::SequenceNumber;
use zenobe_value::{EncodedItem, Number};

use crate::case::{Case, Measured};
use crate::samples::{attributes, product, text};

/// Short, long, signed, fractional, exponential.
const NUMBERS: [&str; 8] = [
    "0",
    "42",
    "1700000000",
    "-273.15",
    "1299.95",
    "6.02214076E+23",
    "0.000000000000000000000000000000000001",
    "12345678901234567890123456789012345678",
];

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "number-parse", iterations: 8192, prepare: parse_number },
        Case { name: "item-encode", iterations: 1024, prepare: encode },
        Case { name: "item-validate", iterations: 1024, prepare: validate },
        Case { name: "item-decode", iterations: 1024, prepare: decode },
        Case { name: "item-render", iterations: 1024, prepare: render },
    ]
}

fn parse_number() -> Measured {
    Box::new(|iterations| {
        for text in NUMBERS.iter().cycle().take(iterations) {
            assert!(black_box(Number::parse(black_box(text))).is_ok());
        }
    })
}

fn encode() -> Measured {
    let item = product();
    Box::new(move |iterations| {
        for _ in 0..iterations {
            black_box(EncodedItem::encode(black_box(&item)));
        }
    })
}

/// The price of every read of a stored item.
fn validate() -> Measured {
    let bytes = EncodedItem::encode(&product()).into_bytes();
    Box::new(move |iterations| {
        for _ in 0..iterations {
            assert!(black_box(EncodedItem::from_bytes(black_box(&bytes).clone())).is_ok());
        }
    })
}

fn decode() -> Measured {
    let item = EncodedItem::encode(&product());
    Box::new(move |iterations| {
        for _ in 0..iterations {
            black_box(black_box(item.as_item()).decode());
        }
    })
}

/// Renders a stream record's new image: items are rendered the same way everywhere.
fn render() -> Measured {
    let namespace = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
    let table = TableName { namespace: Arc::new(namespace), name: "products".into() };
    let stream = StreamName { table, label: "2026-01-01T00:00:00.000".into() };
    let new = EncodedItem::encode(&product());
    let record = StreamRecord {
        id: 1,
        event: StreamEvent::Insert,
        by_service: false,
        created_at_ms: 1_700_000_000_000,
        sequence_number: SequenceNumber { shard: 1, entry: 1 },
        view_type: StreamViewType::NewImage,
        size_bytes: new.as_bytes().len() as u64,
        keys: EncodedItem::encode(&attributes([("pk", text("product#000000004711"))])),
        new: Some(new),
        old: None,
    };
    let mut out = Vec::new();
    Box::new(move |iterations| {
        for _ in 0..iterations {
            out.clear();
            write_record(&mut out, &stream, black_box(&record), RecordForm::Api);
            black_box(&out);
        }
    })
}
