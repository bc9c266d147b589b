use std::path::PathBuf;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use zenobe_value::Number;

use super::*;
use crate::error::Error;

proptest! {
    #[test]
    fn definitions_survive_the_round_trip(definition in definitions()) {
        let row = encode_row(&definition);
        prop_assert_eq!(decode_row(&row).unwrap(), definition);
    }

    #[test]
    fn a_cut_row_is_an_error(definition in definitions(), kept in 0.0..1.0_f64) {
        let row = encode_row(&definition);
        let length = (row.len() as f64 * kept) as usize;
        let is_error = matches!(decode_row(&row[..length]), Err(Error::Corrupt { .. }));
        prop_assert!(is_error);
    }
}

#[test]
fn a_later_version_may_add_attributes_but_not_drop_any() {
    let definition = sample();
    let Fields(mut attributes) = encode(&definition);
    attributes.insert("from_the_future".to_owned(), AttributeValue::Bool(true));
    assert_eq!(decode(Fields(attributes.clone())).unwrap(), definition);
    for required in ["id", "keys", "throughput", "tags", "format", "global_indexes"] {
        let mut attributes = attributes.clone();
        attributes.remove(required);
        assert!(matches!(decode(Fields(attributes)), Err(Error::Corrupt { .. })), "{required}");
    }
    attributes.insert("format".to_owned(), AttributeValue::N(Number::from(3_u64)));
    assert!(matches!(decode(Fields(attributes)), Err(Error::Corrupt { .. })));
}

#[test]
fn lists_that_others_rely_on_are_never_empty() {
    type Damage = fn(&mut TableDefinition);
    let cases: [(&str, Damage); 4] = [
        ("no partition key", |it| it.keys.partition.clear()),
        ("an index without one", |it| it.global_indexes[0].keys.partition.clear()),
        ("no slots", |it| it.stream.as_mut().unwrap().slots = 0),
        ("no generations", |it| it.stream.as_mut().unwrap().generations.clear()),
    ];
    for (name, damage) in cases {
        let mut definition = sample();
        damage(&mut definition);
        let decoded = decode_row(&encode_row(&definition));
        assert!(matches!(decoded, Err(Error::Corrupt { .. })), "{name}: {decoded:?}");
    }
}

/// Versions from before backups would not keep what a running backup needs, so they must refuse the
/// table, and only as long as that takes.
#[test]
fn a_table_that_is_being_backed_up_has_another_format() {
    let format = |definition: &TableDefinition| encode(definition).take_number("format").unwrap();
    let mut definition = sample();
    assert_eq!(format(&definition), 1);
    definition.holds.push(Hold { era: 1, backup: "01".to_owned() });
    assert_eq!(format(&definition), 2);
}

/// The bytes of a row as first released. If this fails, existing stores can't be read: the change
/// needs a new format number and code that reads the old one.
#[test]
fn the_stored_form_is_pinned() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/engine/table-row.hex");
    let bytes = encode_row(&sample());
    let lines = bytes
        .chunks(32)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n");
    let actual: String = lines.collect();
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &actual).unwrap();
    }
    assert_eq!(actual, std::fs::read_to_string(&path).unwrap());
}

/// A table with every setting.
pub(crate) fn sample() -> TableDefinition {
    let key = |name: &str, scalar_type| KeyAttribute { name: name.to_owned(), scalar_type };
    let keys = |partition, sort| KeySchema { partition: vec![partition], sort: vec![sort] };
    let throughput = Throughput {
        read_units: 10,
        write_units: 5,
        last_increase_ms: Some(1_791_525_205_330),
        last_decrease_ms: Some(1_791_525_205_331),
        decreases_today: 2,
        on_demand_max_read_units: Some(100),
        on_demand_max_write_units: Some(200),
        warm_read_units: 12_000,
        warm_write_units: 4_000,
    };
    let index = |id, name: &str, kind, projection, status| IndexDefinition {
        id: IndexId(id),
        name: name.to_owned(),
        kind,
        keys: keys(key("pk", ScalarType::S), key("at", ScalarType::N)),
        projection,
        status,
        throughput: throughput.clone(),
        insights: None,
    };
    let include = IndexProjection::Include(vec!["b".to_owned(), "a".to_owned()]);
    TableDefinition {
        id: TableId(7),
        uuid: "0a1b2c3d-0000-4000-8000-000000000000".to_owned(),
        namespace: Namespace { account: "123456789012".into(), region: "eu-west-1".into() },
        name: "Orders".to_owned(),
        created_at_ms: 1_791_525_205_330,
        version: 3,
        attribute_types: [("pk", ScalarType::S), ("sk", ScalarType::B), ("at", ScalarType::N)]
            .map(|(name, scalar_type)| (name.to_owned(), scalar_type))
            .into(),
        keys: keys(key("pk", ScalarType::S), key("sk", ScalarType::B)),
        local_indexes: vec![index(
            1,
            "by-time",
            IndexKind::Local,
            IndexProjection::KeysOnly,
            IndexStatus::Active,
        )],
        global_indexes: vec![index(
            2,
            "all",
            IndexKind::Global,
            include,
            IndexStatus::Creating { backfilling: true },
        )],
        next_index_id: 3,
        billing_mode: BillingMode::PayPerRequest,
        on_demand_since_ms: Some(1_791_525_205_330),
        throughput: throughput.clone(),
        stream: Some(StreamSettings {
            view_type: StreamViewType::NewAndOldImages,
            label: "2026-10-09T05:53:25.330".to_owned(),
            created_at_ms: 1_791_525_205_330,
            slots: 2,
            generations: vec![
                ShardGeneration::of_stream(3, 1_791_525_205_330, 2),
                ShardGeneration::of_stream(4, 1_791_525_305_330, 2),
            ],
        }),
        latest_stream_label: Some("2026-10-09T05:53:25.330".to_owned()),
        kms_key_arn: Some("arn:aws:kms:eu-west-1:123456789012:key/k".to_owned()),
        table_class: Some((TableClass::StandardInfrequentAccess, Some(1_791_525_205_330))),
        previous_table_class_change_ms: Some(1_791_525_205_000),
        deletion_protection: true,
        tags: [("team".to_owned(), "orders".to_owned())].into(),
        ttl_attribute: Some("expires".to_owned()),
        ttl_changed_at_ms: Some(1_791_525_205_330),
        ttl_indexed: true,
        history: None,
        holds: Vec::new(),
        history_eras: 0,
        insights: None,
        filling: None,
    }
}

// ---- generators ---------------------------------------------------------------------------------

prop_compose! {
    fn definitions()(
        (id, version, created_at_ms, next_index_id) in (numbers(), numbers(), numbers(), any::<u32>()),
        (uuid, account, region, name) in (texts(), texts(), texts(), texts()),
        attribute_types in btree_map(texts(), named(SCALAR_TYPES), 0..4),
        keys in key_schemas().boxed(),
        local_indexes in vec(indexes().boxed(), 0..3),
        global_indexes in vec(indexes().boxed(), 0..3),
        (billing_mode, on_demand_since_ms) in (named(BILLING_MODES), option::of(numbers())),
        throughput in throughputs().boxed(),
        stream in option::of(streams().boxed()),
        (latest_stream_label, kms_key_arn) in (option::of(texts()), option::of(texts())),
        table_class in option::of((named(TABLE_CLASSES), option::of(numbers()))),
        previous_table_class_change_ms in option::of(numbers()),
        (deletion_protection, tags) in (any::<bool>(), btree_map(texts(), texts(), 0..4)),
        (ttl_attribute, ttl_changed_at_ms) in (option::of(texts()), option::of(numbers())),
        (ttl_indexed, filling) in (any::<bool>(), option::of(fillings().boxed())),
        (history, history_eras, holds, insights) in
            (option::of(histories()), any::<u32>(), holds(), option::of(contributor_insights())),
    ) -> TableDefinition {
        TableDefinition {
            id: TableId(id),
            namespace: Namespace { account, region },
            stream, uuid, name, created_at_ms, version, attribute_types, keys, local_indexes,
            global_indexes, next_index_id, billing_mode, on_demand_since_ms, throughput,
            latest_stream_label, kms_key_arn, table_class, previous_table_class_change_ms,
            deletion_protection, tags, ttl_attribute, ttl_changed_at_ms, ttl_indexed, filling,
            history, history_eras, holds, insights,
        }
    }
}

prop_compose! {
    fn fillings()(
        (job_kind, job_id) in (texts(), texts()),
        source in option::of((option::of(texts()), option::of(texts()), numbers())),
    ) -> Filling {
        let source = source.map(|(table_arn, backup_arn, restored_to_ms)| {
            RestoreSource { table_arn, backup_arn, restored_to_ms }
        });
        Filling { job_kind, job_id, source }
    }
}

prop_compose! {
    fn histories()(
        (era, since_ms, period_days) in (any::<u32>(), numbers(), 1..=35_u32),
    ) -> HistorySettings {
        HistorySettings { era, since_ms, period_days }
    }
}

fn holds() -> BoxedStrategy<Vec<Hold>> {
    vec((any::<u32>(), texts()).prop_map(|(era, backup)| Hold { era, backup }), 0..3).boxed()
}

prop_compose! {
    fn contributor_insights()(
        (status, mode) in (named(INSIGHTS_STATUSES), named(INSIGHTS_MODES)),
        changed_at_ms in numbers(),
        accessed_rules_since_ms in option::of(numbers()),
        throttled_rules_since_ms in option::of(numbers()),
    ) -> ContributorInsights {
        ContributorInsights {
            status, mode, changed_at_ms, accessed_rules_since_ms, throttled_rules_since_ms,
        }
    }
}

prop_compose! {
    fn streams()(
        (view_type, label) in (named(VIEW_TYPES), texts()),
        (created_at_ms, slots) in (numbers(), 1..=u32::MAX),
        generations in vec((any::<u32>(), numbers(), option::of((1..=u32::MAX, any::<u32>()))), 1..3),
    ) -> StreamSettings {
        let generation = |(number, opened_at_ms, split): (_, _, Option<(u32, u32)>)| {
            let unsplit = ShardGeneration::of_stream(number, opened_at_ms, slots);
            let (slots, first_shard) = split.unwrap_or((unsplit.slots, unsplit.first_shard));
            ShardGeneration { slots, first_shard, ..unsplit }
        };
        let generations = generations.into_iter().map(generation).collect();
        StreamSettings { view_type, label, created_at_ms, slots, generations }
    }
}

prop_compose! {
    fn indexes()(
        id in any::<u32>(),
        name in texts(),
        kind in named(INDEX_KINDS),
        keys in key_schemas().boxed(),
        projection in prop_oneof![
            Just(IndexProjection::All),
            Just(IndexProjection::KeysOnly),
            vec(texts(), 0..4).prop_map(IndexProjection::Include),
        ],
        status in named(INDEX_STATUSES),
        throughput in throughputs().boxed(),
        insights in option::of(contributor_insights()),
    ) -> IndexDefinition {
        let id = IndexId(id);
        IndexDefinition { id, name, kind, keys, projection, status, throughput, insights }
    }
}

prop_compose! {
    fn key_schemas()(
        partition in vec((texts(), named(SCALAR_TYPES)), 1..5),
        sort in vec((texts(), named(SCALAR_TYPES)), 0..5),
    ) -> KeySchema {
        let attribute = |(name, scalar_type)| KeyAttribute { name, scalar_type };
        KeySchema {
            partition: partition.into_iter().map(attribute).collect(),
            sort: sort.into_iter().map(attribute).collect(),
        }
    }
}

prop_compose! {
    fn throughputs()(
        (read_units, write_units) in (numbers(), numbers()),
        (last_increase_ms, last_decrease_ms) in (option::of(numbers()), option::of(numbers())),
        decreases_today in any::<u32>(),
        on_demand_max_read_units in option::of(numbers()),
        on_demand_max_write_units in option::of(numbers()),
        (warm_read_units, warm_write_units) in (numbers(), numbers()),
    ) -> Throughput {
        Throughput {
            read_units, write_units, last_increase_ms, last_decrease_ms, decreases_today,
            on_demand_max_read_units, on_demand_max_write_units, warm_read_units, warm_write_units,
        }
    }
}

// Boxed, because the generators of a whole definition would otherwise form one value too large for
// a test's stack.

fn named<T: Copy + std::fmt::Debug + 'static>(names: Names<T>) -> BoxedStrategy<T> {
    select(names).prop_map(|(_, value)| value).boxed()
}

/// Every number in a definition is a time, a size or a count: far below 2^63.
fn numbers() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), 0..100_u64, 0..=i64::MAX as u64].boxed()
}

fn texts() -> BoxedStrategy<String> {
    prop_oneof!["[a-zA-Z0-9_.-]{0,12}", any::<String>()].boxed()
}
