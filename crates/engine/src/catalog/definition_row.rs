//! A table's definition as a stored row.

use std::collections::BTreeMap;

use zenobe_store::Value;
use zenobe_value::{AttributeValue, Attributes};

use crate::error::Result;
use crate::row::{Fields, corrupt, into_text, unexpected};
use crate::schema::{
    BillingMode, ContributorInsights, Filling, HistorySettings, Hold, IndexDefinition, IndexId,
    IndexKind, IndexProjection, IndexStatus, InsightsMode, InsightsStatus, KeyAttribute, KeySchema,
    Namespace, RestoreSource, ScalarType, ShardGeneration, StreamSettings, StreamViewType,
    TableClass, TableDefinition, TableId, Throughput,
};

/// Rises when older readers must not touch a row.
const FORMAT: u64 = 1;
/// While a backup is being copied, every change must write an undo row. Earlier versions would not,
/// so they must not write to the table.
const FORMAT_WITH_HOLDS: u64 = 2;
const WHAT: &str = "a table's row";

pub(crate) fn encode_row(definition: &TableDefinition) -> Value {
    encode(definition).encode()
}

pub(crate) fn decode_row(row: &[u8]) -> Result<TableDefinition> {
    decode(Fields::decode(row, WHAT)?)
}

/// The fields of a row, for rows that contain a definition.
pub(crate) fn encode(definition: &TableDefinition) -> Fields {
    let TableDefinition { namespace, throughput, .. } = definition;
    let mut fields = Fields::default();
    let has_holds = !definition.holds.is_empty();
    fields.number("format", if has_holds { FORMAT_WITH_HOLDS } else { FORMAT });
    fields.number("id", definition.id.0);
    fields.text("uuid", &definition.uuid);
    fields.text("account", &namespace.account);
    fields.text("region", &namespace.region);
    fields.text("name", &definition.name);
    fields.number("created_at_ms", definition.created_at_ms);
    fields.number("version", definition.version);
    fields.map("attribute_types", encode_types(&definition.attribute_types));
    fields.map("keys", encode_keys(&definition.keys));
    fields.list("local_indexes", definition.local_indexes.iter().map(encode_index));
    fields.list("global_indexes", definition.global_indexes.iter().map(encode_index));
    fields.number("next_index_id", u64::from(definition.next_index_id));
    fields.text("billing_mode", name_of(BILLING_MODES, definition.billing_mode));
    fields.optional_number("on_demand_since_ms", definition.on_demand_since_ms);
    fields.map("throughput", encode_throughput(throughput));
    if let Some(stream) = &definition.stream {
        fields.map("stream", encode_stream(stream));
    }
    fields.optional_text("latest_stream_label", definition.latest_stream_label.as_deref());
    fields.optional_text("kms_key_arn", definition.kms_key_arn.as_deref());
    if let Some((class, changed_at_ms)) = definition.table_class {
        fields.text("table_class", name_of(TABLE_CLASSES, class));
        fields.optional_number("table_class_changed_at_ms", changed_at_ms);
    }
    fields.optional_number(
        "previous_table_class_change_ms",
        definition.previous_table_class_change_ms,
    );
    fields.flag("deletion_protection", definition.deletion_protection);
    fields.map("tags", encode_texts(&definition.tags));
    fields.optional_text("ttl_attribute", definition.ttl_attribute.as_deref());
    fields.optional_number("ttl_changed_at_ms", definition.ttl_changed_at_ms);
    fields.flag("ttl_indexed", definition.ttl_indexed);
    if let Some(history) = &definition.history {
        fields.map("history", encode_history(history));
    }
    if has_holds {
        fields.list("holds", definition.holds.iter().map(encode_hold));
    }
    if definition.history_eras > 0 {
        fields.number("history_eras", u64::from(definition.history_eras));
    }
    if let Some(insights) = &definition.insights {
        fields.map("insights", encode_insights(insights));
    }
    if let Some(filling) = &definition.filling {
        fields.map("filling", encode_filling(filling));
    }
    fields
}

fn encode_history(history: &HistorySettings) -> Attributes {
    let mut fields = Fields::default();
    fields.number("era", u64::from(history.era));
    fields.number("since_ms", history.since_ms);
    fields.number("period_days", u64::from(history.period_days));
    fields.0
}

fn decode_history(attributes: Attributes) -> Result<HistorySettings> {
    let mut fields = Fields(attributes);
    Ok(HistorySettings {
        era: fields.take_u32("era")?,
        since_ms: fields.take_number("since_ms")?,
        period_days: fields.take_u32("period_days")?,
    })
}

fn encode_hold(hold: &Hold) -> Attributes {
    let mut fields = Fields::default();
    fields.number("era", u64::from(hold.era));
    fields.text("backup", &hold.backup);
    fields.0
}

fn decode_hold(attributes: Attributes) -> Result<Hold> {
    let mut fields = Fields(attributes);
    Ok(Hold { era: fields.take_u32("era")?, backup: fields.take_text("backup")? })
}

fn encode_insights(insights: &ContributorInsights) -> Attributes {
    let mut fields = Fields::default();
    fields.text("status", name_of(INSIGHTS_STATUSES, insights.status));
    fields.text("mode", name_of(INSIGHTS_MODES, insights.mode));
    fields.number("changed_at_ms", insights.changed_at_ms);
    fields.optional_number("accessed_rules_since_ms", insights.accessed_rules_since_ms);
    fields.optional_number("throttled_rules_since_ms", insights.throttled_rules_since_ms);
    fields.0
}

fn decode_insights(attributes: Attributes) -> Result<ContributorInsights> {
    let mut fields = Fields(attributes);
    Ok(ContributorInsights {
        status: value_of(INSIGHTS_STATUSES, &fields.take_text("status")?)?,
        mode: value_of(INSIGHTS_MODES, &fields.take_text("mode")?)?,
        changed_at_ms: fields.take_number("changed_at_ms")?,
        accessed_rules_since_ms: fields.take_optional_number("accessed_rules_since_ms")?,
        throttled_rules_since_ms: fields.take_optional_number("throttled_rules_since_ms")?,
    })
}

fn encode_filling(filling: &Filling) -> Attributes {
    let mut fields = Fields::default();
    fields.text("job_kind", &filling.job_kind);
    fields.text("job_id", &filling.job_id);
    if let Some(source) = &filling.source {
        fields.optional_text("table_arn", source.table_arn.as_deref());
        fields.optional_text("backup_arn", source.backup_arn.as_deref());
        fields.number("restored_to_ms", source.restored_to_ms);
    }
    fields.0
}

fn decode_filling(filling: Attributes) -> Result<Filling> {
    let mut fields = Fields(filling);
    let (table_arn, backup_arn) =
        (fields.take_optional_text("table_arn")?, fields.take_optional_text("backup_arn")?);
    let restored_to_ms = fields.take_optional_number("restored_to_ms")?;
    let source = restored_to_ms.map(|restored_to_ms| RestoreSource {
        table_arn,
        backup_arn,
        restored_to_ms,
    });
    Ok(Filling {
        job_kind: fields.take_text("job_kind")?,
        job_id: fields.take_text("job_id")?,
        source,
    })
}

pub(crate) fn decode(mut fields: Fields) -> Result<TableDefinition> {
    fields.check_format(WHAT, FORMAT_WITH_HOLDS)?;
    Ok(TableDefinition {
        id: TableId(fields.take_number("id")?),
        uuid: fields.take_text("uuid")?,
        namespace: Namespace {
            account: fields.take_text("account")?,
            region: fields.take_text("region")?,
        },
        name: fields.take_text("name")?,
        created_at_ms: fields.take_number("created_at_ms")?,
        version: fields.take_number("version")?,
        attribute_types: decode_types(fields.take_map("attribute_types")?)?,
        keys: decode_keys(fields.take_map("keys")?)?,
        local_indexes: fields.take_list("local_indexes", decode_index)?,
        global_indexes: fields.take_list("global_indexes", decode_index)?,
        next_index_id: fields.take_u32("next_index_id")?,
        billing_mode: value_of(BILLING_MODES, &fields.take_text("billing_mode")?)?,
        on_demand_since_ms: fields.take_optional_number("on_demand_since_ms")?,
        throughput: decode_throughput(fields.take_map("throughput")?)?,
        stream: fields.take_optional_map("stream")?.map(decode_stream).transpose()?,
        latest_stream_label: fields.take_optional_text("latest_stream_label")?,
        kms_key_arn: fields.take_optional_text("kms_key_arn")?,
        table_class: take_table_class(&mut fields)?,
        previous_table_class_change_ms: fields
            .take_optional_number("previous_table_class_change_ms")?,
        deletion_protection: fields.take_flag("deletion_protection")?,
        tags: decode_texts(fields.take_map("tags")?)?,
        ttl_attribute: fields.take_optional_text("ttl_attribute")?,
        ttl_changed_at_ms: fields.take_optional_number("ttl_changed_at_ms")?,
        ttl_indexed: fields.take_flag("ttl_indexed")?,
        history: fields.take_optional_map("history")?.map(decode_history).transpose()?,
        holds: match fields.0.contains_key("holds") {
            true => fields.take_list("holds", decode_hold)?,
            false => Vec::new(),
        },
        history_eras: match fields.0.contains_key("history_eras") {
            true => fields.take_u32("history_eras")?,
            false => 0,
        },
        insights: fields.take_optional_map("insights")?.map(decode_insights).transpose()?,
        filling: fields.take_optional_map("filling")?.map(decode_filling).transpose()?,
    })
}

fn encode_index(index: &IndexDefinition) -> Attributes {
    let mut fields = Fields::default();
    fields.number("id", u64::from(index.id.0));
    fields.text("name", &index.name);
    fields.text("kind", name_of(INDEX_KINDS, index.kind));
    fields.map("keys", encode_keys(&index.keys));
    fields.text("status", name_of(INDEX_STATUSES, index.status));
    fields.map("throughput", encode_throughput(&index.throughput));
    if let Some(insights) = &index.insights {
        fields.map("insights", encode_insights(insights));
    }
    match &index.projection {
        IndexProjection::All => fields.text("projection", "ALL"),
        IndexProjection::KeysOnly => fields.text("projection", "KEYS_ONLY"),
        IndexProjection::Include(names) => {
            let names = names.iter().cloned().map(AttributeValue::S).collect();
            fields.text("projection", "INCLUDE");
            fields.put("included", AttributeValue::L(names));
        }
    }
    fields.0
}

fn decode_index(attributes: Attributes) -> Result<IndexDefinition> {
    let mut fields = Fields(attributes);
    let projection = match fields.take_text("projection")?.as_str() {
        "ALL" => IndexProjection::All,
        "KEYS_ONLY" => IndexProjection::KeysOnly,
        "INCLUDE" => match fields.take("included")? {
            AttributeValue::L(names) => {
                IndexProjection::Include(names.into_iter().map(into_text).collect::<Result<_>>()?)
            }
            other => return Err(unexpected("included", &other)),
        },
        other => return Err(corrupt(format!("projection {other:?} in a row"))),
    };
    Ok(IndexDefinition {
        id: IndexId(fields.take_u32("id")?),
        name: fields.take_text("name")?,
        kind: value_of(INDEX_KINDS, &fields.take_text("kind")?)?,
        keys: decode_keys(fields.take_map("keys")?)?,
        projection,
        status: value_of(INDEX_STATUSES, &fields.take_text("status")?)?,
        throughput: decode_throughput(fields.take_map("throughput")?)?,
        insights: fields.take_optional_map("insights")?.map(decode_insights).transpose()?,
    })
}

pub(crate) fn encode_keys(keys: &KeySchema) -> Attributes {
    let encode_attribute = |attribute: &KeyAttribute| {
        let mut fields = Fields::default();
        fields.text("name", &attribute.name);
        fields.text("type", name_of(SCALAR_TYPES, attribute.scalar_type));
        fields.0
    };
    let mut fields = Fields::default();
    fields.list("partition", keys.partition.iter().map(encode_attribute));
    fields.list("sort", keys.sort.iter().map(encode_attribute));
    fields.0
}

pub(crate) fn decode_keys(attributes: Attributes) -> Result<KeySchema> {
    let decode_attribute = |attributes: Attributes| {
        let mut fields = Fields(attributes);
        Ok(KeyAttribute {
            name: fields.take_text("name")?,
            scalar_type: value_of(SCALAR_TYPES, &fields.take_text("type")?)?,
        })
    };
    let mut fields = Fields(attributes);
    Ok(KeySchema {
        partition: fields.take_filled_list("partition", decode_attribute)?,
        sort: fields.take_list("sort", decode_attribute)?,
    })
}

fn encode_throughput(throughput: &Throughput) -> Attributes {
    let mut fields = Fields::default();
    fields.number("read_units", throughput.read_units);
    fields.number("write_units", throughput.write_units);
    fields.optional_number("last_increase_ms", throughput.last_increase_ms);
    fields.optional_number("last_decrease_ms", throughput.last_decrease_ms);
    fields.number("decreases_today", u64::from(throughput.decreases_today));
    fields.optional_number("on_demand_max_read_units", throughput.on_demand_max_read_units);
    fields.optional_number("on_demand_max_write_units", throughput.on_demand_max_write_units);
    fields.number("warm_read_units", throughput.warm_read_units);
    fields.number("warm_write_units", throughput.warm_write_units);
    fields.0
}

fn decode_throughput(attributes: Attributes) -> Result<Throughput> {
    let mut fields = Fields(attributes);
    Ok(Throughput {
        read_units: fields.take_number("read_units")?,
        write_units: fields.take_number("write_units")?,
        last_increase_ms: fields.take_optional_number("last_increase_ms")?,
        last_decrease_ms: fields.take_optional_number("last_decrease_ms")?,
        decreases_today: fields.take_u32("decreases_today")?,
        on_demand_max_read_units: fields.take_optional_number("on_demand_max_read_units")?,
        on_demand_max_write_units: fields.take_optional_number("on_demand_max_write_units")?,
        warm_read_units: fields.take_number("warm_read_units")?,
        warm_write_units: fields.take_number("warm_write_units")?,
    })
}

pub(crate) fn encode_stream(stream: &StreamSettings) -> Attributes {
    let encode_generation = |generation: &ShardGeneration| {
        let mut fields = Fields::default();
        let ShardGeneration { number, opened_at_ms, slots, first_shard } = *generation;
        fields.number("number", u64::from(number));
        fields.number("opened_at_ms", opened_at_ms);
        if *generation != ShardGeneration::of_stream(number, opened_at_ms, stream.slots) {
            fields.number("slots", u64::from(slots));
            fields.number("first_shard", u64::from(first_shard));
        }
        fields.0
    };
    let mut fields = Fields::default();
    fields.text("view_type", name_of(VIEW_TYPES, stream.view_type));
    fields.text("label", &stream.label);
    fields.number("created_at_ms", stream.created_at_ms);
    fields.number("slots", u64::from(stream.slots));
    fields.list("generations", stream.generations.iter().map(encode_generation));
    fields.0
}

pub(crate) fn decode_stream(attributes: Attributes) -> Result<StreamSettings> {
    let mut fields = Fields(attributes);
    let slots = take_slots(&mut fields)?;
    let decode_generation = |attributes: Attributes| {
        let mut fields = Fields(attributes);
        let (number, opened_at_ms) =
            (fields.take_u32("number")?, fields.take_number("opened_at_ms")?);
        let unsplit = ShardGeneration::of_stream(number, opened_at_ms, slots);
        if !fields.0.contains_key("slots") {
            return Ok(unsplit);
        }
        let slots = take_slots(&mut fields)?;
        Ok(ShardGeneration { slots, first_shard: fields.take_u32("first_shard")?, ..unsplit })
    };
    Ok(StreamSettings {
        view_type: value_of(VIEW_TYPES, &fields.take_text("view_type")?)?,
        label: fields.take_text("label")?,
        created_at_ms: fields.take_number("created_at_ms")?,
        slots,
        generations: fields.take_filled_list("generations", decode_generation)?,
    })
}

fn take_slots(fields: &mut Fields) -> Result<u32> {
    match fields.take_u32("slots")? {
        0 => Err(corrupt("a stream without slots in a row".to_owned())),
        slots => Ok(slots),
    }
}

fn take_table_class(fields: &mut Fields) -> Result<Option<(TableClass, Option<u64>)>> {
    let Some(class) = fields.take_optional_text("table_class")? else { return Ok(None) };
    let changed_at_ms = fields.take_optional_number("table_class_changed_at_ms")?;
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

const INSIGHTS_STATUSES: Names<InsightsStatus> = &[
    ("ENABLED", InsightsStatus::Enabled),
    ("DISABLED", InsightsStatus::Disabled),
    ("FAILED", InsightsStatus::Failed),
];

const INSIGHTS_MODES: Names<InsightsMode> = &[
    ("ACCESSED_AND_THROTTLED_KEYS", InsightsMode::AccessedAndThrottledKeys),
    ("THROTTLED_KEYS", InsightsMode::ThrottledKeys),
];

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

#[cfg(test)]
pub(crate) mod tests;
