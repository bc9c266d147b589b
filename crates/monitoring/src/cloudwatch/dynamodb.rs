//! DynamoDB's metrics: what a minute of traffic, the tables' definitions and the engine's counters mean
//! in CloudWatch's names and dimensions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use zenobe_api::Operation;
use zenobe_engine::Engine;
use zenobe_engine::command::{StreamName, TableName};
use zenobe_engine::error::Result;
use zenobe_engine::gauges::ReturnedRecords;
use zenobe_engine::request_facts::Verb;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::{Access, ThrottleCause};
use zenobe_engine::throughput::report::units;

use super::distribution::Distribution;
use super::metric::{Metric, Unit};
use super::statistics::StatisticSet;
use super::storage::Point;
use crate::gauges::{AccountGauges, Gauges, ThroughputGauge};
use crate::traffic::{
    InjectedErrors, Latency, TrafficCounts, TrafficKey, TrafficRow, bucket_limit_us,
};

/// The points of one minute, by namespace. Points of one metric are added up.
#[derive(Default)]
pub struct MinutePoints(BTreeMap<Arc<Namespace>, BTreeMap<(Metric, Unit), StatisticSet>>);

impl MinutePoints {
    fn add(
        &mut self,
        namespace: &Arc<Namespace>,
        name: &str,
        dimensions: &[(&str, &str)],
        unit: Unit,
        statistics: StatisticSet,
    ) {
        self.add_metric(namespace, Metric::dynamodb(name, dimensions), unit, statistics);
    }

    fn add_metric(
        &mut self,
        namespace: &Arc<Namespace>,
        metric: Metric,
        unit: Unit,
        statistics: StatisticSet,
    ) {
        let points = self.0.entry(Arc::clone(namespace)).or_default();
        match points.entry((metric, unit)) {
            Entry::Occupied(mut known) => known.get_mut().merge(&statistics),
            Entry::Vacant(place) => _ = place.insert(statistics),
        }
    }

    /// Adds events that count one each; nothing if there were none.
    fn count(
        &mut self,
        namespace: &Arc<Namespace>,
        name: &str,
        dimensions: &[(&str, &str)],
        events: u64,
    ) {
        if events > 0 {
            let statistics = StatisticSet::uniform(1.0, events as f64);
            self.add(namespace, name, dimensions, Unit::COUNT, statistics);
        }
    }

    pub fn into_points(self, at_ms: u64) -> impl Iterator<Item = (Arc<Namespace>, Vec<Point>)> {
        self.0.into_iter().map(move |(namespace, points)| {
            let point = |((metric, unit), statistics)| Point { metric, unit, at_ms, statistics };
            (namespace, points.into_iter().map(point).collect())
        })
    }

    /// Adds what requests did.
    pub fn add_traffic(&mut self, rows: &[TrafficRow]) {
        // CloudWatch does not tell access patterns apart. A request with several is counted in the row of one of them.
        for rows in rows.chunk_by(|one, next| one.key.is_like(&next.key)) {
            let key = &rows[0].key;
            let mut counts = TrafficCounts::default();
            rows.iter().for_each(|row| counts.merge(&row.counts));
            let namespace = &key.namespace;
            self.count(namespace, "UserErrors", &[], counts.user_errors);
            let Some(table) = &key.table else { continue };
            let table = ("TableName", table.as_str());
            let operation = ("Operation", key.operation.name());
            match &key.index {
                None => self.add_consumption(namespace, &[table], &counts),
                Some(index) => {
                    let index = ("GlobalSecondaryIndexName", index.as_str());
                    self.add_consumption(namespace, &[table, index], &counts);
                }
            }
            let failures = counts.conditional_check_failures;
            self.count(namespace, "ConditionalCheckFailedRequests", &[table], failures);
            self.count(namespace, "TransactionConflict", &[table], counts.transaction_conflicts);
            self.add_requests(namespace, &[table, operation], &counts);
            let mut of_statements: BTreeMap<(&str, &str), TrafficCounts> = BTreeMap::new();
            for row in rows {
                if let Some(dimension) = dimension_of_statements(&row.key) {
                    of_statements.entry(dimension).or_default().merge(&row.counts);
                }
            }
            for (dimension, counts) in &of_statements {
                self.add_requests(namespace, &[table, operation, *dimension], counts);
            }
        }
    }

    fn add_requests(
        &mut self,
        namespace: &Arc<Namespace>,
        dimensions: &[(&str, &str)],
        counts: &TrafficCounts,
    ) {
        self.count(namespace, "ThrottledRequests", dimensions, counts.throttled_requests);
        self.count(namespace, "SystemErrors", dimensions, counts.system_errors);
        if let Some(latency) = latency(&counts.latency) {
            let name = "SuccessfulRequestLatency";
            self.add(namespace, name, dimensions, Unit::MILLISECONDS, latency);
        }
        if counts.returned_items > 0 {
            let returned = average(counts.returned_items as f64, counts.succeeded);
            self.add(namespace, "ReturnedItemCount", dimensions, Unit::COUNT, returned);
        }
    }

    /// Adds the errors that tests asked for. On AWS, too, they are system errors.
    pub fn add_injected_errors(&mut self, injected: &[InjectedErrors]) {
        for InjectedErrors { table, operation, count } in injected {
            let dimensions = [("TableName", table.name.as_str()), ("Operation", operation.name())];
            for name in ["SystemErrors", "FaultInjectionServiceInducedErrors"] {
                self.count(&table.namespace, name, &dimensions, *count);
            }
        }
    }

    fn add_consumption(
        &mut self,
        namespace: &Arc<Namespace>,
        dimensions: &[(&str, &str)],
        counts: &TrafficCounts,
    ) {
        let consumed = [
            ("ConsumedReadCapacityUnits", counts.read_halves, counts.consuming_reads),
            ("ConsumedWriteCapacityUnits", counts.write_halves, counts.consuming_writes),
        ];
        for (name, halves, requests) in consumed.into_iter().filter(|(_, halves, _)| *halves > 0) {
            let statistics = average(units(halves), requests);
            self.add(namespace, name, dimensions, Unit::COUNT, statistics);
        }
        for (access, events) in
            [("Read", &counts.throttled_reads), ("Write", &counts.throttled_writes)]
        {
            self.count(namespace, &format!("{access}ThrottleEvents"), dimensions, events.total);
            for cause in ThrottleCause::ALL {
                let (name, events) = (throttle_metric(cause), events.of(cause));
                self.count(namespace, &format!("{access}{name}"), dimensions, events);
            }
        }
    }

    /// Adds the items that have expired.
    pub fn add_expired(&mut self, expired: &[(TableName, u64)]) {
        for (table, count) in expired {
            let dimensions = [("TableName", table.name.as_str())];
            self.count(&table.namespace, "TimeToLiveDeletedItemCount", &dimensions, *count);
        }
    }

    /// Adds the records that requests have read from streams.
    pub fn add_returned_records(&mut self, streams: &[(StreamName, ReturnedRecords)]) {
        for (stream, returned) in streams {
            let dimensions = [
                ("TableName", stream.table.name.as_str()),
                ("Operation", Operation::GetRecords.name()),
                ("StreamLabel", stream.label.as_str()),
            ];
            let namespace = &stream.table.namespace;
            let metrics = [
                ("ReturnedRecordsCount", Unit::COUNT, returned.records),
                ("ReturnedBytes", Unit::BYTES, returned.size_bytes),
            ];
            for (name, unit, sum) in metrics {
                let statistics = average(sum as f64, returned.requests);
                self.add(namespace, name, &dimensions, unit, statistics);
            }
        }
    }

    /// Adds what does not depend on requests. One node does so for all.
    pub async fn add_gauges(&mut self, engine: &Engine) -> Result<()> {
        let gauges = Gauges::of(engine);
        for gauge in &gauges.throughput {
            self.add_throughput(gauge);
        }
        for (namespace, account) in &gauges.accounts {
            self.add_account(namespace, account);
            self.add_usage(namespace, account);
        }
        for filling in engine.filling_indexes().await? {
            let dimensions = [
                ("TableName", filling.table.name.as_str()),
                ("GlobalSecondaryIndexName", filling.index.as_str()),
            ];
            let (namespace, percent) = (&filling.table.namespace, filling.percent);
            let statistics = StatisticSet::uniform(percent, 1.0);
            let name = "OnlineIndexPercentageProgress";
            self.add(namespace, name, &dimensions, Unit::PERCENT, statistics);
            // Filling an index is free and never throttled, so AWS records zeros.
            for name in ["OnlineIndexConsumedWriteCapacity", "OnlineIndexThrottleEvents"] {
                let statistics = StatisticSet::uniform(0.0, 1.0);
                self.add(namespace, name, &dimensions, Unit::COUNT, statistics);
            }
        }
        Ok(())
    }

    fn add_throughput(&mut self, gauge: &ThroughputGauge) {
        let mut dimensions = vec![("TableName", gauge.table.name.as_str())];
        let index = gauge.index.as_deref();
        dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName", index)));
        let names = match gauge.is_provisioned {
            true => ["ProvisionedReadCapacityUnits", "ProvisionedWriteCapacityUnits"],
            false => ["OnDemandMaxReadRequestUnits", "OnDemandMaxWriteRequestUnits"],
        };
        for (name, units) in names.into_iter().zip([gauge.read_units, gauge.write_units]) {
            if let Some(units) = units {
                let statistics = StatisticSet::uniform(units as f64, 1.0);
                self.add(&gauge.table.namespace, name, &dimensions, Unit::COUNT, statistics);
            }
        }
    }

    fn add_account(&mut self, namespace: &Arc<Namespace>, account: &AccountGauges) {
        let (all, of_table) = (account.units_quota as f64, account.table_units_quota as f64);
        let (read, write) = (Access::Read, Access::Write);
        let gauges = [
            ("AccountMaxReads", Unit::COUNT, all),
            ("AccountMaxWrites", Unit::COUNT, all),
            ("AccountMaxTableLevelReads", Unit::COUNT, of_table),
            ("AccountMaxTableLevelWrites", Unit::COUNT, of_table),
            ("AccountProvisionedReadCapacityUtilization", Unit::PERCENT, account.utilization(read)),
            (
                "AccountProvisionedWriteCapacityUtilization",
                Unit::PERCENT,
                account.utilization(write),
            ),
            (
                "MaxProvisionedTableReadCapacityUtilization",
                Unit::PERCENT,
                account.table_utilization(read),
            ),
            (
                "MaxProvisionedTableWriteCapacityUtilization",
                Unit::PERCENT,
                account.table_utilization(write),
            ),
        ];
        for (name, unit, value) in gauges {
            self.add(namespace, name, &[], unit, StatisticSet::uniform(value, 1.0));
        }
    }

    /// Adds how much of its quotas an account uses, as Service Quotas reads it.
    fn add_usage(&mut self, namespace: &Arc<Namespace>, account: &AccountGauges) {
        let resources = [
            ("AccountProvisionedReadCapacityUnits", account.read_units),
            ("AccountProvisionedWriteCapacityUnits", account.write_units),
            ("TableCount", account.tables),
        ];
        for (resource, count) in resources {
            let statistics = StatisticSet::uniform(count as f64, 1.0);
            self.add_metric(namespace, Metric::usage(resource), Unit::COUNT, statistics);
        }
    }
}

/// The metric of the events of one cause, after `Read` or `Write`.
fn throttle_metric(cause: ThrottleCause) -> &'static str {
    match cause {
        ThrottleCause::Provisioned => "ProvisionedThroughputThrottleEvents",
        ThrottleCause::AccountLimit => "AccountLimitThrottleEvents",
        ThrottleCause::KeyRange => "KeyRangeThroughputThrottleEvents",
        ThrottleCause::MaxOnDemand => "MaxOnDemandThroughputThrottleEvents",
    }
}

/// What AWS tells apart of an operation that executes PartiQL statements.
fn dimension_of_statements(key: &TrafficKey) -> Option<(&'static str, &'static str)> {
    match key.operation {
        Operation::ExecuteStatement => Some(match key.verb? {
            Verb::Select => ("Verb", "PartiQLSelect"),
            Verb::Insert => ("Verb", "PartiQLInsert"),
            Verb::Update => ("Verb", "PartiQLUpdate"),
            Verb::Delete => ("Verb", "PartiQLDelete"),
        }),
        Operation::ExecuteTransaction | Operation::BatchExecuteStatement => {
            Some(match key.pattern.access()? {
                Access::Read => ("OperationType", "Read"),
                Access::Write => ("OperationType", "Write"),
            })
        }
        _ => None,
    }
}

/// A sum over requests. The values of single requests are not known, so minimum and maximum are the
/// average.
fn average(sum: f64, requests: u64) -> StatisticSet {
    let count = requests.max(1) as f64;
    let value = sum / count;
    StatisticSet { count, sum, min: value, max: value, distribution: None }
}

/// Latencies in milliseconds. Within a bucket of the counters, values are taken to lie in the middle.
fn latency(latency: &Latency) -> Option<StatisticSet> {
    if latency.count == 0 {
        return None;
    }
    let milliseconds = |us: u64| us as f64 / 1_000.0;
    let buckets = latency.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    let values = buckets.map(|(bucket, count)| {
        let low = bucket.checked_sub(1).map_or(0, bucket_limit_us);
        let high = bucket_limit_us(bucket).min(latency.max_us.max(low));
        (milliseconds(low) / 2.0 + milliseconds(high) / 2.0, f64::from(*count))
    });
    Some(StatisticSet {
        count: latency.count as f64,
        sum: milliseconds(latency.sum_us),
        min: milliseconds(latency.min_us),
        max: milliseconds(latency.max_us),
        distribution: Distribution::from_values(values),
    })
}

#[cfg(test)]
mod tests;
