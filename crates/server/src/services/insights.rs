//! Reports of Contributor Insights for CloudWatch, from the sketches of hot keys.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use zenobe_engine::Engine;
use zenobe_engine::schema::{ContributorInsights, KeySchema, Namespace, TableId};
use zenobe_engine::throughput::cause::Resource;
use zenobe_engine::throughput::report::units;
use zenobe_monitoring::cloudwatch::{Contributor, InsightReport, InsightReports};
use zenobe_value::AttributeValue;

use crate::hot_keys::HotKeys;
use crate::hot_keys::sketch::Counter;

pub struct HotKeyReports {
    pub hot_keys: Arc<HotKeys>,
    pub engine: Arc<Engine>,
}

impl InsightReports for HotKeyReports {
    fn report<'a>(
        &'a self,
        namespace: &'a Arc<Namespace>,
        rule: &'a str,
    ) -> BoxFuture<'a, Option<InsightReport>> {
        let report = self.find(namespace, rule).map(|rule| self.report_of(namespace, &rule));
        std::future::ready(report).boxed()
    }
}

/// What a rule counts.
struct InsightRule {
    table: TableId,
    index: Option<String>,
    keys: KeySchema,
    /// Whole keys, rather than partition keys.
    with_sort: bool,
    is_throttled: bool,
}

impl HotKeyReports {
    /// The rule with a name such as `DynamoDBContributorInsights-PKC-Orders-1700000000000`.
    fn find(&self, namespace: &Namespace, name: &str) -> Option<InsightRule> {
        let rest = name.strip_prefix("DynamoDBContributorInsights-")?;
        let (kind, place) = rest.split_once('-')?;
        let (with_sort, is_throttled) = match kind {
            "PKC" => (false, false),
            "SKC" => (true, false),
            "PKT" => (false, true),
            "SKT" => (true, true),
            _ => return None,
        };
        let is_it = |index: Option<&str>, table: &str, insights: Option<ContributorInsights>| {
            let since_ms = insights.and_then(|insights| match is_throttled {
                true => insights.throttled_rules_since_ms,
                false => insights.accessed_rules_since_ms,
            });
            since_ms.is_some_and(|since_ms| match index {
                None => place == format!("{table}-{since_ms}"),
                Some(index) => place == format!("{table}-{index}-{since_ms}"),
            })
        };
        let tables = self.engine.known_tables();
        let tables = tables.values().filter(|table| *table.name().namespace == *namespace);
        for definition in tables.map(|table| table.definition()) {
            let rule = |index: Option<&str>, keys: &KeySchema| InsightRule {
                table: definition.id,
                index: index.map(str::to_owned),
                keys: keys.clone(),
                with_sort,
                is_throttled,
            };
            if is_it(None, &definition.name, definition.insights) {
                return Some(rule(None, &definition.keys));
            }
            for index in &definition.global_indexes {
                if is_it(Some(&index.name), &definition.name, index.insights) {
                    return Some(rule(Some(&index.name), &index.keys));
                }
            }
        }
        None
    }

    fn report_of(&self, namespace: &Namespace, rule: &InsightRule) -> InsightReport {
        let mut contributors = Vec::new();
        for keys in self.hot_keys.resources(Some(namespace)) {
            let mut keys = keys.lock();
            let resource = Arc::clone(&keys.resource);
            if resource.table_id != rule.table || resource.index_name() != rule.index.as_deref() {
                continue;
            }
            let now = self.hot_keys.minute();
            let ranked =
                if rule.with_sort { keys.item_keys(now) } else { keys.partition_keys(now) };
            let counters = if rule.is_throttled { &ranked.throttled } else { &ranked.accessed };
            let counters = counters.iter().filter(|counter| counter.certain() > 0);
            contributors.extend(counters.filter_map(|it| contributor(&resource, it, rule)));
        }
        let KeySchema { partition, sort } = &rule.keys;
        let sort = if rule.with_sort { &sort[..] } else { &[] };
        InsightReport {
            key_labels: partition.iter().chain(sort).map(|it| it.name.clone()).collect(),
            contributors,
            from_ms: self.hot_keys.window_start_ms(),
            to_ms: self.hot_keys.now_ms(),
        }
    }
}

/// A key that is too long to be kept whole is left out.
fn contributor(resource: &Resource, counter: &Counter, rule: &InsightRule) -> Option<Contributor> {
    let attributes = resource.key_attributes(&counter.key, rule.with_sort)?;
    let text = |(_, value): (String, AttributeValue)| match value {
        AttributeValue::S(text) => text,
        AttributeValue::N(number) => number.to_string(),
        AttributeValue::B(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    };
    let value = match rule.is_throttled {
        true => counter.certain() as f64,
        false => units(counter.certain()),
    };
    Some(Contributor { keys: attributes.into_iter().map(text).collect(), value })
}
