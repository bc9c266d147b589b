//! CloudWatch's metrics of tables, indexes and accounts, for `/metrics`.
//!
//! Latency has a sum and a count, because a histogram for each operation of each table would be too many
//! series: CloudWatch has its percentiles, and `zenobe_request_duration_seconds` those of all tables.

use std::collections::BTreeSet;

use tokio::time::timeout;
use zenobe_engine::command::TableName;
use zenobe_engine::gauges::IndexProgress;
use zenobe_engine::throughput::cause::Access;
use zenobe_monitoring::gauges::{AccountGauges, Gauges, ThroughputGauge};
use zenobe_monitoring::totals::{ACCOUNTS_MAX, Consumed, Sums, TABLES_MAX, TableSums};
use zenobe_monitoring::traffic::{OTHER, RequestSums};

use super::Admin;
use super::history::PATIENCE;
use crate::prometheus::MetricType::{Counter, Gauge, Summary};
use crate::prometheus::{Exposition, Seconds};

impl Admin {
    pub(super) async fn render_tables(&self, out: &mut Exposition) {
        let engine = &self.engine;
        let sums = self.observability.totals.read(engine, self.observability.traffic.as_deref());
        render_sums(&sums, out);
        let gauges = Gauges::of(engine);
        let shown = shown(&gauges, &sums);
        render_throughput(&gauges, &shown, out);
        if let Ok(Ok(filling)) = timeout(PATIENCE, engine.filling_indexes()).await {
            render_filling(&filling, &shown, out);
        }
        render_accounts(&gauges, &sums, out);
    }
}

/// What identifies the series of a table.
#[derive(Clone, Copy)]
struct SeriesOwner<'l> {
    table: &'l str,
    account: &'l str,
    region: &'l str,
}

impl<'l> SeriesOwner<'l> {
    const OTHER: SeriesOwner<'static> = SeriesOwner { table: OTHER, account: OTHER, region: OTHER };

    fn of(table: &'l TableName) -> SeriesOwner<'l> {
        let (account, region) = (&table.namespace.account, &table.namespace.region);
        SeriesOwner { table: &table.name, account, region }
    }

    /// With further labels between the table and its account.
    fn with(self, further: &[(&'l str, &'l str)]) -> Vec<(&'l str, &'l str)> {
        let mut labels = vec![("table", self.table)];
        labels.extend(further);
        labels.extend([("account", self.account), ("region", self.region)]);
        labels
    }
}

fn render_sums(sums: &Sums, out: &mut Exposition) {
    let named = sums.tables.iter().map(|(table, sums)| (SeriesOwner::of(table), sums));
    let mut tables: Vec<(SeriesOwner<'_>, &TableSums)> = named.collect();
    if sums.other_tables != TableSums::default() {
        tables.push((SeriesOwner::OTHER, &sums.other_tables));
    }
    render_consumed(&tables, out);
    render_requests(&tables, out);
    render_counts(&tables, out);
    let mut metric = out.metric("zenobe_account_user_errors_total", Counter);
    for (namespace, errors) in &sums.user_errors {
        metric.sample(&[("account", &namespace.account), ("region", &namespace.region)], errors);
    }
    if sums.other_user_errors > 0 {
        metric.sample(&[("account", OTHER), ("region", OTHER)], sums.other_user_errors);
    }
}

fn render_consumed(tables: &[(SeriesOwner<'_>, &TableSums)], out: &mut Exposition) {
    type Units = fn(&Consumed) -> f64;
    let metrics: [(&str, Units); 2] = [
        ("zenobe_consumed_read_capacity_units_total", |consumed| consumed.read_units),
        ("zenobe_consumed_write_capacity_units_total", |consumed| consumed.write_units),
    ];
    for (name, units) in metrics {
        let mut metric = out.metric(name, Counter);
        for (labels, sums) in tables {
            for (index, consumed) in &sums.consumed {
                metric.sample(&labels.with(&[("index", index)]), units(consumed));
            }
        }
    }
    let mut metric = out.metric("zenobe_throttle_events_total", Counter);
    for (labels, sums) in tables {
        for (index, consumed) in &sums.consumed {
            for (reason, count) in &consumed.throttle_events {
                metric.sample(&labels.with(&[("index", index), ("reason", reason)]), count);
            }
        }
    }
}

/// Metrics by operation.
fn render_requests(tables: &[(SeriesOwner<'_>, &TableSums)], out: &mut Exposition) {
    let mut latency = out.metric("zenobe_table_successful_request_latency_seconds", Summary);
    for (labels, sums) in tables {
        for (operation, sums) in &sums.requests {
            let labels = labels.with(&[("operation", operation.name())]);
            let seconds = Seconds::FromMicroseconds(sums.latency_us);
            latency.sample_of("_sum", &labels, seconds);
            latency.sample_of("_count", &labels, sums.succeeded);
        }
    }
    type Count = fn(&RequestSums) -> u64;
    let metrics: [(&str, Count); 5] = [
        ("zenobe_table_requests_total", |sums| sums.requests),
        ("zenobe_table_throttled_requests_total", |sums| sums.throttled_requests),
        ("zenobe_table_system_errors_total", |sums| sums.system_errors),
        ("zenobe_table_fault_injection_service_induced_errors_total", |sums| sums.injected_errors),
        ("zenobe_table_returned_items_total", |sums| sums.returned_items),
    ];
    for (name, count) in metrics {
        let mut metric = out.metric(name, Counter);
        for (labels, sums) in tables {
            for (operation, sums) in &sums.requests {
                metric.sample(&labels.with(&[("operation", operation.name())]), count(sums));
            }
        }
    }
}

/// Metrics of whole tables.
fn render_counts(tables: &[(SeriesOwner<'_>, &TableSums)], out: &mut Exposition) {
    type Count = fn(&TableSums) -> u64;
    let metrics: [(&str, Count); 5] = [
        ("zenobe_table_conditional_check_failed_requests_total", |sums| {
            sums.requests.values().map(|it| it.conditional_check_failures).sum()
        }),
        ("zenobe_table_transaction_conflicts_total", |sums| {
            sums.requests.values().map(|it| it.transaction_conflicts).sum()
        }),
        ("zenobe_table_expired_items_total", |sums| sums.expired_items),
        ("zenobe_table_returned_records_total", |sums| sums.returned_records),
        ("zenobe_table_returned_bytes_total", |sums| sums.returned_bytes),
    ];
    for (name, count) in metrics {
        let mut metric = out.metric(name, Counter);
        for (labels, sums) in tables {
            metric.sample(&labels.with(&[]), count(sums));
        }
    }
}

/// The tables whose gauges are shown: those with counters of their own, then the oldest.
fn shown<'g>(gauges: &'g Gauges, sums: &Sums) -> BTreeSet<&'g TableName> {
    let tables = || gauges.throughput.iter().filter(|it| it.index.is_none()).map(|it| &it.table);
    let mut shown: BTreeSet<_> = tables().filter(|it| sums.tables.contains_key(*it)).collect();
    for table in tables() {
        if shown.len() >= TABLES_MAX {
            break;
        }
        shown.insert(table);
    }
    shown
}

fn render_throughput(gauges: &Gauges, shown: &BTreeSet<&TableName>, out: &mut Exposition) {
    type Units = fn(&ThroughputGauge) -> Option<u64>;
    let metrics: [(&str, bool, Units); 4] = [
        ("zenobe_table_provisioned_read_capacity_units", true, |it| it.read_units),
        ("zenobe_table_provisioned_write_capacity_units", true, |it| it.write_units),
        ("zenobe_table_on_demand_max_read_request_units", false, |it| it.read_units),
        ("zenobe_table_on_demand_max_write_request_units", false, |it| it.write_units),
    ];
    for (name, is_provisioned, units) in metrics {
        let mut metric = out.metric(name, Gauge);
        let all = gauges.throughput.iter().filter(|it| shown.contains(&it.table));
        for gauge in all.filter(|it| it.is_provisioned == is_provisioned) {
            let index = gauge.index.as_deref().unwrap_or_default();
            if let Some(units) = units(gauge) {
                metric.sample(&SeriesOwner::of(&gauge.table).with(&[("index", index)]), units);
            }
        }
    }
}

fn render_filling(filling: &[IndexProgress], shown: &BTreeSet<&TableName>, out: &mut Exposition) {
    let filling = || filling.iter().filter(|it| shown.contains(&it.table));
    let mut metric = out.metric("zenobe_table_online_index_percentage_progress", Gauge);
    for IndexProgress { table, index, percent } in filling() {
        metric.sample(&SeriesOwner::of(table).with(&[("index", index)]), percent);
    }
    // Filling an index is free and never throttled.
    for name in [
        "zenobe_table_online_index_consumed_write_capacity_units_total",
        "zenobe_table_online_index_throttle_events_total",
    ] {
        let mut metric = out.metric(name, Counter);
        for IndexProgress { table, index, .. } in filling() {
            metric.sample(&SeriesOwner::of(table).with(&[("index", index)]), 0);
        }
    }
}

/// The accounts that have counters of their own come first.
fn render_accounts(gauges: &Gauges, sums: &Sums, out: &mut Exposition) {
    type Value = fn(&AccountGauges) -> f64;
    let metrics: [(&str, Value); 11] = [
        ("zenobe_account_tables", |it| it.tables as f64),
        ("zenobe_account_max_reads", |it| it.units_quota as f64),
        ("zenobe_account_max_writes", |it| it.units_quota as f64),
        ("zenobe_account_max_table_level_reads", |it| it.table_units_quota as f64),
        ("zenobe_account_max_table_level_writes", |it| it.table_units_quota as f64),
        ("zenobe_account_provisioned_read_capacity_units", |it| it.read_units as f64),
        ("zenobe_account_provisioned_write_capacity_units", |it| it.write_units as f64),
        ("zenobe_account_provisioned_read_capacity_utilization", |it| it.utilization(Access::Read)),
        ("zenobe_account_provisioned_write_capacity_utilization", |it| {
            it.utilization(Access::Write)
        }),
        ("zenobe_account_max_provisioned_table_read_capacity_utilization", |it| {
            it.table_utilization(Access::Read)
        }),
        ("zenobe_account_max_provisioned_table_write_capacity_utilization", |it| {
            it.table_utilization(Access::Write)
        }),
    ];
    let (counted, others): (Vec<_>, Vec<_>) = gauges
        .accounts
        .iter()
        .partition(|(namespace, _)| sums.user_errors.contains_key(*namespace));
    let shown: Vec<_> = counted.into_iter().chain(others).take(ACCOUNTS_MAX).collect();
    for (name, value) in metrics {
        let mut metric = out.metric(name, Gauge);
        for (namespace, account) in &shown {
            let labels = [("account", &*namespace.account), ("region", &*namespace.region)];
            metric.sample(&labels, value(account));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_api::Operation;
    use zenobe_engine::schema::{Namespace, TableId};

    use super::*;

    fn table(account: &str, name: &str) -> TableName {
        let namespace = Arc::new(Namespace { account: account.into(), region: "r".into() });
        TableName { namespace, name: name.to_owned() }
    }

    #[test]
    fn tables_of_different_accounts_have_series_of_their_own() {
        let mut sums = Sums::default();
        let requests = RequestSums {
            requests: 5,
            succeeded: 3,
            latency_us: 1_500_000,
            conditional_check_failures: 2,
            ..RequestSums::default()
        };
        let consumed = Consumed {
            read_units: 0.5,
            write_units: 2.0,
            throttle_events: [("IndexReadKeyRangeThroughputExceeded", 3)].into(),
        };
        let of_table = TableSums {
            requests: [(Operation::PutItem, requests), (Operation::UpdateItem, requests)].into(),
            consumed: [("i".to_owned(), consumed)].into(),
            expired_items: 7,
            ..TableSums::default()
        };
        for (account, expired_items) in [("1", 7), ("2", 8)] {
            let of_table = TableSums { expired_items, ..of_table.clone() };
            sums.tables.insert(table(account, "T"), of_table);
            sums.user_errors.insert(table(account, "T").namespace, expired_items);
        }
        sums.other_tables.returned_records = 9;
        sums.other_user_errors = 10;
        let mut out = Exposition::default();
        render_sums(&sums, &mut out);
        let text = out.into_text();
        let put = "table=\"T\",operation=\"PutItem\",account=\"1\",region=\"r\"";
        let of = |account: &str| format!("table=\"T\",account=\"{account}\",region=\"r\"");
        let index = "table=\"T\",index=\"i\"";
        let other = "account=\"(other)\",region=\"(other)\"";
        for expected in [
            format!("zenobe_table_requests_total{{{put}}} 5"),
            format!("zenobe_table_successful_request_latency_seconds_sum{{{put}}} 1.500000"),
            format!("zenobe_table_successful_request_latency_seconds_count{{{put}}} 3"),
            format!("zenobe_table_system_errors_total{{{put}}} 0"),
            format!("zenobe_table_conditional_check_failed_requests_total{{{}}} 4", of("1")),
            format!("zenobe_table_expired_items_total{{{}}} 7", of("1")),
            format!("zenobe_table_expired_items_total{{{}}} 8", of("2")),
            format!("zenobe_table_returned_records_total{{table=\"(other)\",{other}}} 9"),
            "zenobe_account_user_errors_total{account=\"2\",region=\"r\"} 8".to_owned(),
            format!("zenobe_account_user_errors_total{{{other}}} 10"),
            format!(
                "zenobe_consumed_read_capacity_units_total{{{index},account=\"1\",region=\"r\"}} 0.5"
            ),
            format!(
                "zenobe_throttle_events_total{{{index},reason=\"IndexReadKeyRangeThroughputExceeded\",\
                 account=\"2\",region=\"r\"}} 3"
            ),
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
    }

    #[test]
    fn indexes_that_are_filled_have_their_progress_and_zeros() {
        let [one, hidden] = ["t", "hidden"].map(|name| table("1", name));
        let progress = |table: &TableName| IndexProgress {
            table: table.clone(),
            index: "i".to_owned(),
            percent: 12.5,
        };
        let mut out = Exposition::default();
        render_filling(&[progress(&one), progress(&hidden)], &[&one].into(), &mut out);
        let text = out.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let labels = "{table=\"t\",index=\"i\",account=\"1\",region=\"r\"}";
        let expected = [
            ("percentage_progress", "12.5"),
            ("consumed_write_capacity_units_total", "0"),
            ("throttle_events_total", "0"),
        ];
        let expected = expected
            .map(|(name, value)| format!("zenobe_table_online_index_{name}{labels} {value}"));
        assert_eq!(samples, expected);
    }

    #[test]
    fn gauges_of_tables_with_requests_come_first() {
        let gauge = |id: u64| ThroughputGauge {
            table: table("1", &format!("t{id:04}")),
            table_id: TableId(id),
            index: None,
            is_provisioned: true,
            read_units: Some(id),
            write_units: None,
        };
        let all = 1..=TABLES_MAX as u64 + 10;
        let gauges = Gauges { throughput: all.map(gauge).collect(), accounts: [].into() };
        let mut sums = Sums::default();
        sums.tables.insert(table("1", "t0205"), TableSums::default());
        let mut out = Exposition::default();
        render_throughput(&gauges, &shown(&gauges, &sums), &mut out);
        let text = out.into_text();
        let labels =
            |name: &str| format!("{{table=\"{name}\",index=\"\",account=\"1\",region=\"r\"}}");
        let name = "zenobe_table_provisioned_read_capacity_units";
        for (table, value) in [("t0001", 1), ("t0199", 199), ("t0205", 205)] {
            let expected = format!("{name}{} {value}", labels(table));
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        assert_eq!(text.lines().filter(|line| line.contains("{table=")).count(), TABLES_MAX);
    }
}
