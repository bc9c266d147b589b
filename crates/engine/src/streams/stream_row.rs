//! The row of a stream: everything needed to read it, even without its table.

use zenobe_store::{Batch, Key, Reader, Value};

use crate::catalog::definition_row::{decode_keys, decode_stream, encode_keys, encode_stream};
use crate::command::StreamName;
use crate::error::{Error, Result, StreamError};
use crate::keyspace;
use crate::row::Fields;
use crate::schema::{KeySchema, Namespace, StreamSettings, TableDefinition, TableId};

use super::shards::Shard;

const FORMAT: u64 = 1;
const WHAT: &str = "a stream's row";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamRow {
    pub namespace: Namespace,
    pub table_name: String,
    pub table_id: TableId,
    /// The table's id as clients see it.
    pub table_uuid: String,
    pub keys: KeySchema,
    pub settings: StreamSettings,
    pub disabled_at_ms: Option<u64>,
}

/// Writes the row of the definition's stream, if it has one. A caller that holds the table's rows
/// may do so, because they determine the row of an enabled stream.
pub(crate) fn put_row(definition: &TableDefinition, batch: &mut Batch) {
    if let Some(row) = StreamRow::of(definition, None) {
        batch.put(row.key(), row.encode());
    }
}

/// Writes the row of a stream that ends now because it was disabled or its table was deleted.
pub(crate) fn retire(before: &TableDefinition, now_ms: u64, batch: &mut Batch) {
    if let Some(row) = StreamRow::of(before, Some(now_ms)) {
        batch.put(row.key(), row.encode());
    }
}

impl StreamRow {
    fn of(definition: &TableDefinition, disabled_at_ms: Option<u64>) -> Option<StreamRow> {
        Some(StreamRow {
            namespace: definition.namespace.clone(),
            table_name: definition.name.clone(),
            table_id: definition.id,
            table_uuid: definition.uuid.clone(),
            keys: definition.keys.clone(),
            settings: definition.stream.clone()?,
            disabled_at_ms,
        })
    }

    pub async fn read(reader: &dyn Reader, name: &StreamName) -> Result<StreamRow> {
        let key = keyspace::stream_row(&name.table.namespace, &name.table.name, &name.label);
        match reader.get(&key).await? {
            Some(row) => StreamRow::decode(&row),
            None => Err(Error::Stream(StreamError::NotFound)),
        }
    }

    pub fn key(&self) -> Key {
        keyspace::stream_row(&self.namespace, &self.table_name, &self.settings.label)
    }

    /// Whether the stream ended so long ago that it can no longer be read.
    pub fn is_past(&self, horizon_ms: u64) -> bool {
        self.disabled_at_ms.is_some_and(|disabled_at_ms| disabled_at_ms <= horizon_ms)
    }

    /// The shards that may hold records from after `horizon_ms`.
    pub fn shards_since(&self, horizon_ms: u64) -> impl Iterator<Item = Shard> + '_ {
        let shards = self.settings.shards(self.disabled_at_ms);
        shards.filter(move |shard| shard.closed_at_ms.is_none_or(|closed| closed > horizon_ms))
    }

    pub fn log(&self, shard: u32) -> Key {
        keyspace::stream_log(self.table_id, &self.settings.label, shard)
    }

    fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.number("format", FORMAT);
        fields.text("account", &self.namespace.account);
        fields.text("region", &self.namespace.region);
        fields.text("table_name", &self.table_name);
        fields.number("table_id", self.table_id.0);
        fields.text("table_uuid", &self.table_uuid);
        fields.map("keys", encode_keys(&self.keys));
        fields.map("stream", encode_stream(&self.settings));
        fields.optional_number("disabled_at_ms", self.disabled_at_ms);
        fields.encode()
    }

    pub fn decode(row: &[u8]) -> Result<StreamRow> {
        let mut fields = Fields::decode(row, WHAT)?;
        fields.check_format(WHAT, FORMAT)?;
        Ok(StreamRow {
            namespace: Namespace {
                account: fields.take_text("account")?,
                region: fields.take_text("region")?,
            },
            table_name: fields.take_text("table_name")?,
            table_id: TableId(fields.take_number("table_id")?),
            table_uuid: fields.take_text("table_uuid")?,
            keys: decode_keys(fields.take_map("keys")?)?,
            settings: decode_stream(fields.take_map("stream")?)?,
            disabled_at_ms: fields.take_optional_number("disabled_at_ms")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use zenobe_value::{AttributeValue, EncodedItem, Number};

    use super::*;
    use crate::schema::{KeyAttribute, ScalarType, ShardGeneration, StreamViewType};
    use crate::streams::shards::Children;

    fn row(disabled_at_ms: Option<u64>) -> StreamRow {
        let attribute = |name: &str, scalar_type| KeyAttribute { name: name.into(), scalar_type };
        StreamRow {
            namespace: Namespace { account: "1".into(), region: "r".into() },
            table_name: "t".into(),
            table_id: TableId(7),
            table_uuid: "0a1b2c3d-0000-4000-8000-000000000000".into(),
            keys: KeySchema {
                partition: vec![attribute("pk", ScalarType::S)],
                sort: vec![attribute("sk", ScalarType::B)],
            },
            settings: StreamSettings {
                view_type: StreamViewType::OldImage,
                label: "2026-10-09T05:53:25.330".into(),
                created_at_ms: 1_000,
                slots: 2,
                generations: vec![ShardGeneration::of_stream(4, 5_000, 2)],
            },
            disabled_at_ms,
        }
    }

    #[test]
    fn rows_survive_the_round_trip() {
        for disabled_at_ms in [None, Some(9_000)] {
            let row = row(disabled_at_ms);
            assert_eq!(StreamRow::decode(&row.encode()).unwrap(), row);
        }
    }

    /// The bytes of a row as first released. If this fails, existing streams can't be read.
    #[test]
    fn the_stored_form_is_pinned() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/engine/stream-row.hex");
        let bytes = row(Some(9_000)).encode();
        let lines = bytes
            .chunks(32)
            .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n");
        let actual: String = lines.collect();
        if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &actual).unwrap();
        }
        assert_eq!(actual, std::fs::read_to_string(&path).unwrap());
    }

    #[test]
    fn rows_that_are_not_understood_are_errors() {
        let bytes = row(None).encode();
        let attributes = EncodedItem::from_bytes(bytes.clone()).unwrap().as_item().decode();
        for required in ["format", "table_name", "table_id", "table_uuid", "keys", "stream"] {
            let mut attributes = attributes.clone();
            attributes.remove(required);
            let damaged = EncodedItem::encode(&attributes);
            assert!(StreamRow::decode(damaged.as_bytes()).is_err(), "{required}");
        }
        let mut newer = attributes;
        newer.insert("format".into(), AttributeValue::N(Number::from(2_u64)));
        assert!(StreamRow::decode(EncodedItem::encode(&newer).as_bytes()).is_err());
        assert!(StreamRow::decode(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn shards_are_readable_until_their_end_is_past() {
        let mut row = row(Some(9_000));
        row.settings.open_children(Children::One, 6_000);
        let numbers = |horizon_ms| -> Vec<u32> {
            row.shards_since(horizon_ms).map(|shard| shard.id.number).collect()
        };
        assert_eq!(numbers(5_999), [9, 10, 11, 12]);
        assert_eq!(numbers(6_000), [11, 12]);
        assert_eq!(numbers(9_000), Vec::<u32>::new());
        assert!(!row.is_past(8_999));
        assert!(row.is_past(9_000));
    }
}
