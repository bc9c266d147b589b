//! `TableDescription`, as CreateTable, DescribeTable, UpdateTable and DeleteTable show it.

use std::collections::BTreeMap;

use zenobe_engine::schema::{
    BillingMode, IndexDefinition, IndexKind, IndexProjection, IndexStatus, ItemStatistics,
    KeySchema, RestoreSource, StreamSettings, TableDefinition, TableDescription, Throughput,
};

use crate::json::Writer;
use crate::operations::enumerations::{BILLING_MODE, SCALAR_TYPE, STREAM_VIEW_TYPE, TABLE_CLASS};

const DAY_MS: u64 = 86_400_000;

/// What an operation shows differently from the plain state.
pub(crate) struct Presentation<'a> {
    /// The table's status, if it differs from the one that its indexes imply.
    pub(crate) table_status: Option<&'static str>,
    /// Statuses of indexes by name, where they differ from the stored ones.
    pub(crate) index_status: BTreeMap<String, &'static str>,
    /// Whether indexes under creation say if they are being backfilled.
    pub(crate) shows_backfilling: bool,
    /// Whether the summary of an on-demand table says since when it is on demand.
    pub(crate) shows_on_demand_since: bool,
    pub(crate) warm_throughput: ShownWarmThroughput<'a>,
    pub(crate) encryption_status: &'static str,
    /// Removed maxima, read and write, are echoed as -1.
    pub(crate) removed_maxima: (bool, bool),
    pub(crate) now_ms: u64,
}

/// Which warm throughputs to show.
pub(crate) enum ShownWarmThroughput<'a> {
    /// All, as settled.
    All,
    /// All. Those of the table (`None`) or of indexes listed here appear as changing.
    Updating(&'a [Option<String>]),
    /// Only the listed ones, as changing.
    Only(&'a [Option<String>]),
}

impl Presentation<'_> {
    /// The plain state: what DescribeTable shows.
    pub(crate) fn described(now_ms: u64) -> Presentation<'static> {
        Presentation {
            table_status: None,
            index_status: BTreeMap::new(),
            shows_backfilling: true,
            shows_on_demand_since: true,
            warm_throughput: ShownWarmThroughput::All,
            encryption_status: "ENABLED",
            removed_maxima: (false, false),
            now_ms,
        }
    }
}

pub(crate) fn write_table(
    writer: &mut Writer,
    table: &TableDescription,
    presentation: &Presentation<'_>,
) {
    let definition = &*table.definition;
    writer.object(|writer| {
        write_attribute_definitions(writer.name("AttributeDefinitions"), definition);
        writer.name("TableName").string(&definition.name);
        write_key_schema(writer.name("KeySchema"), &definition.keys);
        let status = presentation.table_status.unwrap_or_else(|| implied_status(definition));
        writer.name("TableStatus").string(status);
        writer.name("CreationDateTime").timestamp(definition.created_at_ms);
        write_capacity(writer, definition, presentation);
        write_size(writer, "TableSizeBytes", table.statistics);
        writer.name("TableArn").string(&definition.arn());
        writer.name("TableId").string(&definition.uuid);
        write_indexes(writer, table, presentation);
        write_stream(writer, definition);
        write_encryption(writer, definition, presentation);
        write_table_class(writer, definition);
        write_restore(writer, definition);
        writer.name("DeletionProtectionEnabled").bool(definition.deletion_protection);
    });
}

/// What the table is being restored from. The member is gone when the table is active.
fn write_restore(writer: &mut Writer, definition: &TableDefinition) {
    let source = definition.filling.as_ref().and_then(|filling| filling.source.as_ref());
    let Some(RestoreSource { table_arn, backup_arn, restored_to_ms }) = source else { return };
    writer.name("RestoreSummary").object(|writer| {
        if let Some(arn) = backup_arn {
            writer.name("SourceBackupArn").string(arn);
        }
        if let Some(arn) = table_arn {
            writer.name("SourceTableArn").string(arn);
        }
        writer.name("RestoreDateTime").timestamp(*restored_to_ms);
        writer.name("RestoreInProgress").bool(true);
    });
}

/// DeleteTable shows neither keys nor indexes.
pub(crate) fn write_deleted_table(writer: &mut Writer, table: &TableDescription, now_ms: u64) {
    let definition = &*table.definition;
    writer.object(|writer| {
        writer.name("TableName").string(&definition.name);
        writer.name("TableStatus").string("DELETING");
        write_provisioned(writer.name("ProvisionedThroughput"), &definition.throughput, now_ms);
        write_size(writer, "TableSizeBytes", table.statistics);
        writer.name("TableArn").string(&definition.arn());
        writer.name("TableId").string(&definition.uuid);
        write_billing_mode(writer, definition, true);
        writer.name("DeletionProtectionEnabled").bool(definition.deletion_protection);
    });
}

/// A table is CREATING until the job that fills it has ended, and UPDATING while an index is allocated or deleted; backfilling an index leaves the
/// table active.
fn implied_status(definition: &TableDefinition) -> &'static str {
    if definition.filling.is_some() {
        return "CREATING";
    }
    let in_flux = definition.global_indexes.iter().any(|index| {
        matches!(index.status, IndexStatus::Creating { backfilling: false } | IndexStatus::Deleting)
    });
    if in_flux { "UPDATING" } else { "ACTIVE" }
}

fn write_attribute_definitions(writer: &mut Writer, definition: &TableDefinition) {
    writer.array(&definition.attribute_types, |writer, (name, scalar_type)| {
        writer.object(|writer| {
            writer.name("AttributeName").string(name);
            writer.name("AttributeType").string(SCALAR_TYPE.name_of(scalar_type));
        });
    });
}

pub(crate) fn write_key_schema(writer: &mut Writer, keys: &KeySchema) {
    let partition = keys.partition.iter().map(|key| (key, "HASH"));
    let sort = keys.sort.iter().map(|key| (key, "RANGE"));
    writer.array(partition.chain(sort), |writer, (key, key_type)| {
        writer.object(|writer| {
            writer.name("AttributeName").string(&key.name);
            writer.name("KeyType").string(key_type);
        });
    });
}

fn write_size(writer: &mut Writer, size_member: &str, statistics: ItemStatistics) {
    writer.name(size_member).integer(statistics.size_bytes);
    writer.name("ItemCount").integer(statistics.item_count);
}

fn write_capacity(
    writer: &mut Writer,
    definition: &TableDefinition,
    presentation: &Presentation<'_>,
) {
    let throughput = &definition.throughput;
    write_provisioned(writer.name("ProvisionedThroughput"), throughput, presentation.now_ms);
    write_billing_mode(writer, definition, presentation.shows_on_demand_since);
    write_on_demand_maxima(writer, throughput, presentation.removed_maxima);
    write_warm_throughput(writer, throughput, None, presentation);
}

fn write_provisioned(writer: &mut Writer, throughput: &Throughput, now_ms: u64) {
    let decreased_today =
        throughput.last_decrease_ms.is_some_and(|last_ms| last_ms / DAY_MS == now_ms / DAY_MS);
    writer.object(|writer| {
        if let Some(time_ms) = throughput.last_increase_ms {
            writer.name("LastIncreaseDateTime").timestamp(time_ms);
        }
        if let Some(time_ms) = throughput.last_decrease_ms {
            writer.name("LastDecreaseDateTime").timestamp(time_ms);
        }
        let decreases_today = if decreased_today { throughput.decreases_today } else { 0 };
        writer.name("NumberOfDecreasesToday").integer(decreases_today);
        writer.name("ReadCapacityUnits").integer(throughput.read_units);
        writer.name("WriteCapacityUnits").integer(throughput.write_units);
    });
}

fn write_billing_mode(writer: &mut Writer, definition: &TableDefinition, shows_since: bool) {
    let since_ms = definition.on_demand_since_ms;
    if since_ms.is_none() && definition.billing_mode == BillingMode::Provisioned {
        return;
    }
    writer.name("BillingModeSummary").object(|writer| {
        writer.name("BillingMode").string(BILLING_MODE.name_of(&definition.billing_mode));
        if let Some(since_ms) = since_ms.filter(|_| shows_since) {
            writer.name("LastUpdateToPayPerRequestDateTime").timestamp(since_ms);
        }
    });
}

/// The maxima that are set. Those that a request has just removed are shown as -1.
pub(crate) fn write_on_demand_maxima(
    writer: &mut Writer,
    throughput: &Throughput,
    removed: (bool, bool),
) {
    let shown = |maximum: Option<u64>, removed: bool| match maximum {
        Some(units) => Some(i64::try_from(units).unwrap_or(i64::MAX)),
        None => removed.then_some(-1),
    };
    let read = shown(throughput.on_demand_max_read_units, removed.0);
    let write = shown(throughput.on_demand_max_write_units, removed.1);
    if read.is_none() && write.is_none() {
        return;
    }
    writer.name("OnDemandThroughput").object(|writer| {
        if let Some(units) = read {
            writer.name("MaxReadRequestUnits").integer(units);
        }
        if let Some(units) = write {
            writer.name("MaxWriteRequestUnits").integer(units);
        }
    });
}

fn write_warm_throughput(
    writer: &mut Writer,
    throughput: &Throughput,
    index: Option<&str>,
    presentation: &Presentation<'_>,
) {
    let listed = |names: &[Option<String>]| names.iter().any(|name| name.as_deref() == index);
    let status = match &presentation.warm_throughput {
        ShownWarmThroughput::All => "ACTIVE",
        ShownWarmThroughput::Updating(names) if !listed(names) => "ACTIVE",
        ShownWarmThroughput::Only(names) if !listed(names) => return,
        ShownWarmThroughput::Updating(_) | ShownWarmThroughput::Only(_) => "UPDATING",
    };
    writer.name("WarmThroughput").object(|writer| {
        writer.name("ReadUnitsPerSecond").integer(throughput.warm_read_units);
        writer.name("WriteUnitsPerSecond").integer(throughput.warm_write_units);
        writer.name("Status").string(status);
    });
}

fn write_indexes(writer: &mut Writer, table: &TableDescription, presentation: &Presentation<'_>) {
    let definition = &*table.definition;
    let lists = [
        ("LocalSecondaryIndexes", &definition.local_indexes),
        ("GlobalSecondaryIndexes", &definition.global_indexes),
    ];
    for (member, indexes) in lists {
        if !indexes.is_empty() {
            writer.name(member).array(indexes, |writer, index| {
                write_index(writer, table, index, presentation);
            });
        }
    }
}

fn write_index(
    writer: &mut Writer,
    table: &TableDescription,
    index: &IndexDefinition,
    presentation: &Presentation<'_>,
) {
    let statistics = table.index_statistics.get(&index.name).copied().unwrap_or_default();
    writer.object(|writer| {
        writer.name("IndexName").string(&index.name);
        write_key_schema(writer.name("KeySchema"), &index.keys);
        write_projection(writer.name("Projection"), &index.projection);
        if index.kind == IndexKind::Global {
            write_index_status(writer, index, presentation);
            let throughput = &index.throughput;
            write_provisioned(
                writer.name("ProvisionedThroughput"),
                throughput,
                presentation.now_ms,
            );
            write_on_demand_maxima(writer, throughput, (false, false));
            write_warm_throughput(writer, throughput, Some(&index.name), presentation);
        }
        write_size(writer, "IndexSizeBytes", statistics);
        let arn = format!("{}/index/{}", table.definition.arn(), index.name);
        writer.name("IndexArn").string(&arn);
    });
}

fn write_index_status(
    writer: &mut Writer,
    index: &IndexDefinition,
    presentation: &Presentation<'_>,
) {
    let stored = match index.status {
        IndexStatus::Creating { .. } => "CREATING",
        IndexStatus::Active => "ACTIVE",
        IndexStatus::Deleting => "DELETING",
    };
    let status = presentation.index_status.get(&index.name).copied().unwrap_or(stored);
    writer.name("IndexStatus").string(status);
    if status == "CREATING" && presentation.shows_backfilling {
        let backfilling = index.status == IndexStatus::Creating { backfilling: true };
        writer.name("Backfilling").bool(backfilling);
    }
}

fn write_projection(writer: &mut Writer, projection: &IndexProjection) {
    let (name, attributes) = match projection {
        IndexProjection::All => ("ALL", None),
        IndexProjection::KeysOnly => ("KEYS_ONLY", None),
        IndexProjection::Include(attributes) => ("INCLUDE", Some(attributes)),
    };
    writer.object(|writer| {
        writer.name("ProjectionType").string(name);
        if let Some(attributes) = attributes {
            let mut sorted: Vec<&str> = attributes.iter().map(String::as_str).collect();
            sorted.sort_unstable();
            writer.name("NonKeyAttributes").array(sorted, Writer::string);
        }
    });
}

fn write_stream(writer: &mut Writer, definition: &TableDefinition) {
    if let Some(StreamSettings { view_type, .. }) = &definition.stream {
        writer.name("StreamSpecification").object(|writer| {
            writer.name("StreamEnabled").bool(true);
            writer.name("StreamViewType").string(STREAM_VIEW_TYPE.name_of(view_type));
        });
    }
    if let Some(label) = &definition.latest_stream_label {
        writer.name("LatestStreamLabel").string(label);
        let arn = format!("{}/stream/{label}", definition.arn());
        writer.name("LatestStreamArn").string(&arn);
    }
}

fn write_encryption(
    writer: &mut Writer,
    definition: &TableDefinition,
    presentation: &Presentation<'_>,
) {
    if let Some(key_arn) = &definition.kms_key_arn {
        writer.name("SSEDescription").object(|writer| {
            writer.name("Status").string(presentation.encryption_status);
            writer.name("SSEType").string("KMS");
            writer.name("KMSMasterKeyArn").string(key_arn);
        });
    }
}

fn write_table_class(writer: &mut Writer, definition: &TableDefinition) {
    if let Some((class, changed_at_ms)) = &definition.table_class {
        writer.name("TableClassSummary").object(|writer| {
            writer.name("TableClass").string(TABLE_CLASS.name_of(class));
            if let Some(changed_at_ms) = changed_at_ms {
                writer.name("LastUpdateDateTime").timestamp(*changed_at_ms);
            }
        });
    }
}

/// The features of a table that a backup records, as far as it has them.
pub(crate) fn write_features(writer: &mut Writer, definition: &TableDefinition) {
    writer.object(|writer| {
        let lists = [
            ("LocalSecondaryIndexes", &definition.local_indexes),
            ("GlobalSecondaryIndexes", &definition.global_indexes),
        ];
        for (member, indexes) in lists {
            if !indexes.is_empty() {
                writer.name(member).array(indexes, write_recorded_index);
            }
        }
        if let Some(StreamSettings { view_type, .. }) = &definition.stream {
            writer.name("StreamDescription").object(|writer| {
                writer.name("StreamEnabled").bool(true);
                writer.name("StreamViewType").string(STREAM_VIEW_TYPE.name_of(view_type));
            });
        }
        if let Some(attribute) = &definition.ttl_attribute {
            writer.name("TimeToLiveDescription").object(|writer| {
                writer.name("TimeToLiveStatus").string("ENABLED");
                writer.name("AttributeName").string(attribute);
            });
        }
        write_encryption(writer, definition, &Presentation::described(0));
    });
}

fn write_recorded_index(writer: &mut Writer, index: &IndexDefinition) {
    writer.object(|writer| {
        writer.name("IndexName").string(&index.name);
        write_key_schema(writer.name("KeySchema"), &index.keys);
        write_projection(writer.name("Projection"), &index.projection);
        if index.kind == IndexKind::Global {
            writer.name("ProvisionedThroughput").object(|writer| {
                writer.name("ReadCapacityUnits").integer(index.throughput.read_units);
                writer.name("WriteCapacityUnits").integer(index.throughput.write_units);
            });
            write_on_demand_maxima(writer, &index.throughput, (false, false));
        }
    });
}
