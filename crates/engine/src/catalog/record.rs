//! A table's definition as a stored row: an item in the engine's own item encoding, so rows
//! describe themselves and a later version can add attributes.
//!
//! Reading is strict about known attributes and ignores unknown ones: a missing or mistyped
//! attribute is an error, an attribute from a later version is skipped.

use std::collections::BTreeMap;

use bytes::Bytes;
use zenobe_store::Value;
use zenobe_value::{AttributeValue, Attributes, EncodedItem, Number};

use crate::error::{Error, Result};
use crate::schema::{
    BillingMode, IndexDefinition, IndexId, IndexKind, IndexProjection, IndexStatus, KeyAttribute,
    KeySchema, Namespace, ScalarType, ShardGeneration, StreamSettings, StreamViewType, TableClass,
    TableDefinition, TableId, Throughput,
};

/// Rises when older readers must not touch a row.
const FORMAT: u64 = 1;

pub(crate) fn encode_row(definition: &TableDefinition) -> Value {
    EncodedItem::encode(&encode(definition)).as_bytes().clone()
}

pub(crate) fn decode_row(row: &[u8]) -> Result<TableDefinition> {
    let item = EncodedItem::from_bytes(Bytes::copy_from_slice(row))
        .map_err(|error| corrupt(format!("a table row: {error:?}")))?;
    decode(item.as_item().decode())
}

fn encode(definition: &TableDefinition) -> Attributes {
    let TableDefinition { namespace, throughput, .. } = definition;
    let mut record = Record::default();
    record.number("format", FORMAT);
    record.number("id", definition.id.0);
    record.text("uuid", &definition.uuid);
    record.text("account", &namespace.account);
    record.text("region", &namespace.region);
    record.text("name", &definition.name);
    record.number("created_at_ms", definition.created_at_ms);
    record.number("version", definition.version);
    record.map("attribute_types", encode_types(&definition.attribute_types));
    record.map("keys", encode_keys(&definition.keys));
    record.list("local_indexes", definition.local_indexes.iter().map(encode_index));
    record.list("global_indexes", definition.global_indexes.iter().map(encode_index));
    record.number("next_index_id", u64::from(definition.next_index_id));
    record.text("billing_mode", name_of(BILLING_MODES, definition.billing_mode));
    record.optional_number("on_demand_since_ms", definition.on_demand_since_ms);
    record.map("throughput", encode_throughput(throughput));
    if let Some(stream) = &definition.stream {
        record.map("stream", encode_stream(stream));
    }
    record.optional_text("latest_stream_label", definition.latest_stream_label.as_deref());
    record.optional_text("kms_key_arn", definition.kms_key_arn.as_deref());
    if let Some((class, changed_at_ms)) = definition.table_class {
        record.text("table_class", name_of(TABLE_CLASSES, class));
        record.optional_number("table_class_changed_at_ms", changed_at_ms);
    }
    record.optional_number(
        "previous_table_class_change_ms",
        definition.previous_table_class_change_ms,
    );
    record.flag("deletion_protection", definition.deletion_protection);
    record.map("tags", encode_texts(&definition.tags));
    record.optional_text("ttl_attribute", definition.ttl_attribute.as_deref());
    record.optional_number("ttl_changed_at_ms", definition.ttl_changed_at_ms);
    record.flag("ttl_indexed", definition.ttl_indexed);
    record.0
}

fn decode(attributes: Attributes) -> Result<TableDefinition> {
    let mut record = Record(attributes);
    let format = record.take_number("format")?;
    if format != FORMAT {
        return Err(corrupt(format!("a table row of format {format}, expected {FORMAT}")));
    }
    Ok(TableDefinition {
        id: TableId(record.take_number("id")?),
        uuid: record.take_text("uuid")?,
        namespace: Namespace {
            account: record.take_text("account")?,
            region: record.take_text("region")?,
        },
        name: record.take_text("name")?,
        created_at_ms: record.take_number("created_at_ms")?,
        version: record.take_number("version")?,
        attribute_types: decode_types(record.take_map("attribute_types")?)?,
        keys: decode_keys(record.take_map("keys")?)?,
        local_indexes: record.take_list("local_indexes", decode_index)?,
        global_indexes: record.take_list("global_indexes", decode_index)?,
        next_index_id: record.take_u32("next_index_id")?,
        billing_mode: value_of(BILLING_MODES, &record.take_text("billing_mode")?)?,
        on_demand_since_ms: record.take_optional_number("on_demand_since_ms")?,
        throughput: decode_throughput(record.take_map("throughput")?)?,
        stream: record.take_optional_map("stream")?.map(decode_stream).transpose()?,
        latest_stream_label: record.take_optional_text("latest_stream_label")?,
        kms_key_arn: record.take_optional_text("kms_key_arn")?,
        table_class: take_table_class(&mut record)?,
        previous_table_class_change_ms: record
            .take_optional_number("previous_table_class_change_ms")?,
        deletion_protection: record.take_flag("deletion_protection")?,
        tags: decode_texts(record.take_map("tags")?)?,
        ttl_attribute: record.take_optional_text("ttl_attribute")?,
        ttl_changed_at_ms: record.take_optional_number("ttl_changed_at_ms")?,
        ttl_indexed: record.take_flag("ttl_indexed")?,
    })
}

fn encode_index(index: &IndexDefinition) -> Attributes {
    let mut record = Record::default();
    record.number("id", u64::from(index.id.0));
    record.text("name", &index.name);
    record.text("kind", name_of(INDEX_KINDS, index.kind));
    record.map("keys", encode_keys(&index.keys));
    record.text("status", name_of(INDEX_STATUSES, index.status));
    record.map("throughput", encode_throughput(&index.throughput));
    match &index.projection {
        IndexProjection::All => record.text("projection", "ALL"),
        IndexProjection::KeysOnly => record.text("projection", "KEYS_ONLY"),
        IndexProjection::Include(names) => {
            let names = names.iter().cloned().map(AttributeValue::S).collect();
            record.text("projection", "INCLUDE");
            record.put("included", AttributeValue::L(names));
        }
    }
    record.0
}

fn decode_index(attributes: Attributes) -> Result<IndexDefinition> {
    let mut record = Record(attributes);
    let projection = match record.take_text("projection")?.as_str() {
        "ALL" => IndexProjection::All,
        "KEYS_ONLY" => IndexProjection::KeysOnly,
        "INCLUDE" => match record.take("included")? {
            AttributeValue::L(names) => {
                IndexProjection::Include(names.into_iter().map(into_text).collect::<Result<_>>()?)
            }
            other => return Err(unexpected("included", &other)),
        },
        other => return Err(corrupt(format!("projection {other:?} in a row"))),
    };
    Ok(IndexDefinition {
        id: IndexId(record.take_u32("id")?),
        name: record.take_text("name")?,
        kind: value_of(INDEX_KINDS, &record.take_text("kind")?)?,
        keys: decode_keys(record.take_map("keys")?)?,
        projection,
        status: value_of(INDEX_STATUSES, &record.take_text("status")?)?,
        throughput: decode_throughput(record.take_map("throughput")?)?,
    })
}

pub(crate) fn encode_keys(keys: &KeySchema) -> Attributes {
    let encode_attribute = |attribute: &KeyAttribute| {
        let mut record = Record::default();
        record.text("name", &attribute.name);
        record.text("type", name_of(SCALAR_TYPES, attribute.scalar_type));
        record.0
    };
    let mut record = Record::default();
    record.list("partition", keys.partition.iter().map(encode_attribute));
    record.list("sort", keys.sort.iter().map(encode_attribute));
    record.0
}

pub(crate) fn decode_keys(attributes: Attributes) -> Result<KeySchema> {
    let decode_attribute = |attributes: Attributes| {
        let mut record = Record(attributes);
        Ok(KeyAttribute {
            name: record.take_text("name")?,
            scalar_type: value_of(SCALAR_TYPES, &record.take_text("type")?)?,
        })
    };
    let mut record = Record(attributes);
    Ok(KeySchema {
        partition: record.take_filled_list("partition", decode_attribute)?,
        sort: record.take_list("sort", decode_attribute)?,
    })
}

fn encode_throughput(throughput: &Throughput) -> Attributes {
    let mut record = Record::default();
    record.number("read_units", throughput.read_units);
    record.number("write_units", throughput.write_units);
    record.optional_number("last_increase_ms", throughput.last_increase_ms);
    record.optional_number("last_decrease_ms", throughput.last_decrease_ms);
    record.number("decreases_today", u64::from(throughput.decreases_today));
    record.optional_number("on_demand_max_read_units", throughput.on_demand_max_read_units);
    record.optional_number("on_demand_max_write_units", throughput.on_demand_max_write_units);
    record.number("warm_read_units", throughput.warm_read_units);
    record.number("warm_write_units", throughput.warm_write_units);
    record.0
}

fn decode_throughput(attributes: Attributes) -> Result<Throughput> {
    let mut record = Record(attributes);
    Ok(Throughput {
        read_units: record.take_number("read_units")?,
        write_units: record.take_number("write_units")?,
        last_increase_ms: record.take_optional_number("last_increase_ms")?,
        last_decrease_ms: record.take_optional_number("last_decrease_ms")?,
        decreases_today: record.take_u32("decreases_today")?,
        on_demand_max_read_units: record.take_optional_number("on_demand_max_read_units")?,
        on_demand_max_write_units: record.take_optional_number("on_demand_max_write_units")?,
        warm_read_units: record.take_number("warm_read_units")?,
        warm_write_units: record.take_number("warm_write_units")?,
    })
}

pub(crate) fn encode_stream(stream: &StreamSettings) -> Attributes {
    let encode_generation = |generation: &ShardGeneration| {
        let mut record = Record::default();
        record.number("number", u64::from(generation.number));
        record.number("opened_at_ms", generation.opened_at_ms);
        record.0
    };
    let mut record = Record::default();
    record.text("view_type", name_of(VIEW_TYPES, stream.view_type));
    record.text("label", &stream.label);
    record.number("created_at_ms", stream.created_at_ms);
    record.number("slots", u64::from(stream.slots));
    record.list("generations", stream.generations.iter().map(encode_generation));
    record.0
}

pub(crate) fn decode_stream(attributes: Attributes) -> Result<StreamSettings> {
    let decode_generation = |attributes: Attributes| {
        let mut record = Record(attributes);
        Ok(ShardGeneration {
            number: record.take_u32("number")?,
            opened_at_ms: record.take_number("opened_at_ms")?,
        })
    };
    let mut record = Record(attributes);
    Ok(StreamSettings {
        view_type: value_of(VIEW_TYPES, &record.take_text("view_type")?)?,
        label: record.take_text("label")?,
        created_at_ms: record.take_number("created_at_ms")?,
        slots: take_slots(&mut record)?,
        generations: record.take_filled_list("generations", decode_generation)?,
    })
}

fn take_slots(record: &mut Record) -> Result<u32> {
    match record.take_u32("slots")? {
        0 => Err(corrupt("a stream without slots in a row".to_owned())),
        slots => Ok(slots),
    }
}

fn take_table_class(record: &mut Record) -> Result<Option<(TableClass, Option<u64>)>> {
    let Some(class) = record.take_optional_text("table_class")? else { return Ok(None) };
    let changed_at_ms = record.take_optional_number("table_class_changed_at_ms")?;
    Ok(Some((value_of(TABLE_CLASSES, &class)?, changed_at_ms)))
}

fn encode_types(types: &BTreeMap<String, ScalarType>) -> Attributes {
    let encode = |scalar_type| AttributeValue::S(name_of(SCALAR_TYPES, scalar_type).to_owned());
    types.iter().map(|(name, &scalar_type)| (name.clone(), encode(scalar_type))).collect()
}

fn decode_types(attributes: Attributes) -> Result<BTreeMap<String, ScalarType>> {
    let decode = |value| value_of(SCALAR_TYPES, &into_text(value)?);
    attributes.into_iter().map(|(name, value)| Ok((name, decode(value)?))).collect()
}

fn encode_texts(texts: &BTreeMap<String, String>) -> Attributes {
    texts.iter().map(|(key, text)| (key.clone(), AttributeValue::S(text.clone()))).collect()
}

fn decode_texts(attributes: Attributes) -> Result<BTreeMap<String, String>> {
    attributes.into_iter().map(|(key, value)| Ok((key, into_text(value)?))).collect()
}

// ---- names of enumerated values -----------------------------------------------------------------

type Names<T> = &'static [(&'static str, T)];

const SCALAR_TYPES: Names<ScalarType> =
    &[("S", ScalarType::S), ("N", ScalarType::N), ("B", ScalarType::B)];

const BILLING_MODES: Names<BillingMode> =
    &[("PROVISIONED", BillingMode::Provisioned), ("PAY_PER_REQUEST", BillingMode::PayPerRequest)];

const INDEX_KINDS: Names<IndexKind> = &[("LOCAL", IndexKind::Local), ("GLOBAL", IndexKind::Global)];

const INDEX_STATUSES: Names<IndexStatus> = &[
    ("ALLOCATING", IndexStatus::Creating { backfilling: false }),
    ("BACKFILLING", IndexStatus::Creating { backfilling: true }),
    ("ACTIVE", IndexStatus::Active),
    ("DELETING", IndexStatus::Deleting),
];

const VIEW_TYPES: Names<StreamViewType> = &[
    ("KEYS_ONLY", StreamViewType::KeysOnly),
    ("NEW_IMAGE", StreamViewType::NewImage),
    ("OLD_IMAGE", StreamViewType::OldImage),
    ("NEW_AND_OLD_IMAGES", StreamViewType::NewAndOldImages),
];

const TABLE_CLASSES: Names<TableClass> = &[
    ("STANDARD", TableClass::Standard),
    ("STANDARD_INFREQUENT_ACCESS", TableClass::StandardInfrequentAccess),
];

fn name_of<T: Copy + PartialEq>(names: Names<T>, value: T) -> &'static str {
    let named = names.iter().find(|(_, named)| *named == value);
    named.map(|(name, _)| *name).expect("every value of an enumeration has a name")
}

fn value_of<T: Copy>(names: Names<T>, name: &str) -> Result<T> {
    let named = names.iter().find(|(named, _)| *named == name);
    named.map(|(_, value)| *value).ok_or_else(|| corrupt(format!("{name:?} in a row")))
}

// ---- typed access to a map of attributes --------------------------------------------------------

#[derive(Default)]
pub(crate) struct Record(pub(crate) Attributes);

impl Record {
    pub(crate) fn put(&mut self, name: &str, value: AttributeValue) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.put(name, AttributeValue::S(text.to_owned()));
    }

    pub(crate) fn optional_text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    pub(crate) fn number(&mut self, name: &str, number: u64) {
        self.put(name, AttributeValue::N(Number::from(number)));
    }

    pub(crate) fn optional_number(&mut self, name: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    pub(crate) fn flag(&mut self, name: &str, flag: bool) {
        self.put(name, AttributeValue::Bool(flag));
    }

    pub(crate) fn map(&mut self, name: &str, map: Attributes) {
        self.put(name, AttributeValue::M(map));
    }

    pub(crate) fn list(&mut self, name: &str, maps: impl Iterator<Item = Attributes>) {
        self.put(name, AttributeValue::L(maps.map(AttributeValue::M).collect()));
    }

    pub(crate) fn take(&mut self, name: &str) -> Result<AttributeValue> {
        self.0.remove(name).ok_or_else(|| corrupt(format!("a row without {name}")))
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Result<String> {
        into_text(self.take(name)?)
    }

    pub(crate) fn take_optional_text(&mut self, name: &str) -> Result<Option<String>> {
        self.0.remove(name).map(into_text).transpose()
    }

    pub(crate) fn take_number(&mut self, name: &str) -> Result<u64> {
        as_number(&self.take(name)?)
    }

    pub(crate) fn take_u32(&mut self, name: &str) -> Result<u32> {
        let number = self.take_number(name)?;
        u32::try_from(number).map_err(|_| corrupt(format!("{name} is {number} in a row")))
    }

    pub(crate) fn take_optional_number(&mut self, name: &str) -> Result<Option<u64>> {
        self.0.remove(name).as_ref().map(as_number).transpose()
    }

    pub(crate) fn take_flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name)? {
            AttributeValue::Bool(flag) => Ok(flag),
            other => Err(unexpected(name, &other)),
        }
    }

    pub(crate) fn take_map(&mut self, name: &str) -> Result<Attributes> {
        into_map(self.take(name)?)
    }

    pub(crate) fn take_optional_map(&mut self, name: &str) -> Result<Option<Attributes>> {
        self.0.remove(name).map(into_map).transpose()
    }

    pub(crate) fn take_list<T>(
        &mut self,
        name: &str,
        decode: impl Fn(Attributes) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self.take(name)? {
            AttributeValue::L(list) => {
                list.into_iter().map(|value| decode(into_map(value)?)).collect()
            }
            other => Err(unexpected(name, &other)),
        }
    }

    /// A list that is never empty: other code relies on its first or last element.
    fn take_filled_list<T>(
        &mut self,
        name: &str,
        decode: impl Fn(Attributes) -> Result<T>,
    ) -> Result<Vec<T>> {
        let list = self.take_list(name, decode)?;
        if list.is_empty() {
            return Err(corrupt(format!("an empty list of {name} in a row")));
        }
        Ok(list)
    }
}

fn into_text(value: AttributeValue) -> Result<String> {
    match value {
        AttributeValue::S(text) => Ok(text),
        other => Err(unexpected("a text", &other)),
    }
}

fn as_number(value: &AttributeValue) -> Result<u64> {
    let number = match value {
        AttributeValue::N(number) => number.to_i64().and_then(|number| u64::try_from(number).ok()),
        _ => None,
    };
    number.ok_or_else(|| unexpected("a whole number", value))
}

fn into_map(value: AttributeValue) -> Result<Attributes> {
    match value {
        AttributeValue::M(map) => Ok(map),
        other => Err(unexpected("a map", &other)),
    }
}

fn unexpected(expected: &str, value: &AttributeValue) -> Error {
    corrupt(format!("{value:?} in place of {expected} in a row"))
}

fn corrupt(detail: String) -> Error {
    Error::Corrupt { detail }
}

#[cfg(test)]
mod tests;
