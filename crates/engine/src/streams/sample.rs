//! A stream record for tests of the crates above, which can't write one without a whole table.

use std::sync::Arc;

use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use super::{SequenceNumber, StreamEvent};
use crate::command::{StreamName, StreamRecord, TableName};
use crate::schema::{Namespace, StreamViewType};

/// An expired item's record. Its partition key contains quotation marks.
pub fn sample_record() -> (StreamName, StreamRecord) {
    let namespace = Namespace { account: "1".to_owned(), region: "r".to_owned() };
    let table = TableName { namespace: Arc::new(namespace), name: "t".to_owned() };
    let stream = StreamName { table, label: "l".to_owned() };
    let keys = Attributes::from([("pk".to_owned(), AttributeValue::S(r#""a""#.to_owned()))]);
    let keys = EncodedItem::encode(&keys);
    let record = StreamRecord {
        id: 0xAB,
        event: StreamEvent::Remove,
        by_service: true,
        created_at_ms: 5_000,
        sequence_number: SequenceNumber { shard: 1, entry: 7 },
        view_type: StreamViewType::OldImage,
        size_bytes: 6,
        keys: keys.clone(),
        new: None,
        old: Some(keys),
    };
    (stream, record)
}
