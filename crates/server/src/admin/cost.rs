//! The recorded traffic of tables, and their sizes, from which `zenobe cost` computes prices.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::backups::ListBackups;
use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::schema::{IndexKind, ItemStatistics, Namespace, TableClass, TableDescription};
use zenobe_engine::throughput::report::units;
use zenobe_monitoring::cost::needed_capacity::MinuteUse;
use zenobe_monitoring::cost::observed::{self, EntryCounts, EntryKey, ResourceUse};

use super::{Admin, AdminError, check_method};

const HOUR_MS: u64 = 60 * 60 * 1_000;
const HOURS_PER_DAY: u64 = 24;
/// How many names are read at once.
const PAGE: usize = 100;

impl Admin {
    pub(super) async fn answer_cost(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        query: &str,
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        self.store_traffic().await;
        let window = self.window(query)?;
        let read = self.read_cost(namespace, &window).await;
        read.map_err(|error| AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    async fn read_cost(&self, namespace: &Namespace, window: &Window) -> Result<Value, Error> {
        let (engine, hours) = (&self.engine, || window.hours.clone());
        let observed = observed::observed_minutes(engine, hours()).await?;
        let observed: Vec<[u64; 2]> =
            observed.iter().map(|range| [range.start, range.end]).collect();
        Ok(json!({
            "now_ms": window.now_ms,
            "since_ms": window.hours.start.saturating_mul(HOUR_MS),
            "until_ms": window.hours.end.saturating_mul(HOUR_MS),
            "retention_days": self.observability.cost_retention_days,
            "metered": engine.is_metering(),
            "observed_minutes": observed,
            "stream_reads": observed::stream_reads(engine, namespace, hours()).await?,
            "tables": self.tables(namespace).await?,
        }))
    }

    /// The tables that exist, and those that have traffic or backups.
    async fn tables(&self, namespace: &Namespace) -> Result<BTreeSet<String>, Error> {
        let recorded = observed::tables(&self.engine, namespace).await?;
        let mut names: BTreeSet<String> = recorded.into_iter().collect();
        let mut last: Option<String> = None;
        loop {
            let page = self.engine.list_tables(namespace, last.as_deref(), PAGE).await?;
            last = page.names.last().cloned();
            names.extend(page.names);
            if !page.more {
                break;
            }
        }
        let backups = self.engine.backup_sizes().await?;
        let own = backups.into_iter().filter(|backups| backups.namespace == *namespace);
        names.extend(own.map(|backups| backups.table));
        Ok(names)
    }

    pub(super) async fn answer_table_cost(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        table: &str,
        query: &str,
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        let window = self.window(query)?;
        let read = self.read_table_cost(namespace, table, window.hours).await;
        read.map_err(|error| AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    async fn read_table_cost(
        &self,
        namespace: &Arc<Namespace>,
        table: &str,
        hours: Range<u64>,
    ) -> Result<Value, Error> {
        let name = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
        let described = match self.engine.describe_table(&name).await {
            Ok(described) => Some(described),
            Err(Error::TableNotFound { .. } | Error::ResourceNotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let traffic = observed::traffic(&self.engine, namespace, table, hours).await?;
        Ok(json!({
            "table": table,
            "now": described.as_ref().map(describe),
            "backups_size_bytes": self.backups_size_bytes(namespace, table).await?,
            "entries": traffic.entries.iter().map(entry).collect::<Vec<_>>(),
            "minutes": traffic.uses.iter().map(minutes).collect::<Vec<_>>(),
        }))
    }

    /// The backups that users have made. The backups that are kept of deleted tables are free on AWS.
    async fn backups_size_bytes(&self, namespace: &Namespace, table: &str) -> Result<u64, Error> {
        let (mut size_bytes, mut after) = (0, None::<String>);
        loop {
            let request = ListBackups {
                namespace,
                table: Some(table),
                users: true,
                systems: false,
                created_at_ms: 0..u64::MAX,
                after: after.as_deref().map(|id| (id, table)),
                limit: PAGE,
            };
            let list = self.engine.list_backups(&request).await?;
            size_bytes +=
                list.backups.iter().map(|backup| backup.statistics.size_bytes).sum::<u64>();
            after = list.backups.last().map(|backup| backup.id.clone());
            if !list.has_more || after.is_none() {
                return Ok(size_bytes);
            }
        }
    }

    /// The hours that a query asks for: `since_ms` and `until_ms`, or the `last_ms` before it. Traffic is
    /// recorded by the hour, so both ends are moved outward to full hours.
    fn window(&self, query: &str) -> Result<Window, AdminError> {
        if self.minutes.is_none() || self.observability.cost_retention_days == 0 {
            let message = "no traffic is recorded here: start the server with --cost-retention-days above 0, or ask the original server if this is a fork";
            return Err(AdminError::new(StatusCode::CONFLICT, message));
        }
        let now_ms = self.engine.clock().now_ms();
        let (mut since_ms, mut until_ms, mut last_ms) = (None, None, None);
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let place = match name {
                "since_ms" => &mut since_ms,
                "until_ms" => &mut until_ms,
                "last_ms" => &mut last_ms,
                _ => return Err(unknown_query()),
            };
            *place = Some(value.parse::<u64>().map_err(|_| unknown_query())?);
        }
        let kept_hours = u64::from(self.observability.cost_retention_days) * HOURS_PER_DAY;
        let end = until_ms.unwrap_or(now_ms + 1).div_ceil(HOUR_MS);
        let start = match (since_ms, last_ms) {
            (Some(since_ms), _) => since_ms / HOUR_MS,
            (None, Some(last_ms)) => until_ms.unwrap_or(now_ms).saturating_sub(last_ms) / HOUR_MS,
            (None, None) => end.saturating_sub(kept_hours + 1),
        };
        match start < end {
            true => Ok(Window { now_ms, hours: start..end }),
            false => {
                Err(AdminError::new(StatusCode::BAD_REQUEST, "the period ends before it begins"))
            }
        }
    }
}

struct Window {
    now_ms: u64,
    hours: Range<u64>,
}

fn unknown_query() -> AdminError {
    let message = "expected since_ms, until_ms and last_ms with whole numbers";
    AdminError::new(StatusCode::BAD_REQUEST, message)
}

fn describe(table: &TableDescription) -> Value {
    let definition = &table.definition;
    let class = definition.table_class.map_or(TableClass::Standard, |(class, _)| class);
    let of_indexes = |kind: Option<IndexKind>| {
        let all = definition.local_indexes.iter().chain(&definition.global_indexes);
        let chosen = all.filter(move |index| kind.is_none_or(|kind| index.kind == kind));
        chosen.filter_map(|index| table.index_statistics.get(&index.name).copied())
    };
    let global = definition.global_indexes.iter().map(|index| &index.name);
    json!({
        "table_class": match class {
            TableClass::Standard => "STANDARD",
            TableClass::StandardInfrequentAccess => "STANDARD_INFREQUENT_ACCESS",
        },
        "global_indexes": global.collect::<Vec<_>>(),
        "stored": stored(table.statistics, of_indexes(None)),
        "recoverable": stored(table.statistics, of_indexes(Some(IndexKind::Local))),
        "point_in_time_recovery": definition.history.is_some(),
    })
}

fn stored(table: ItemStatistics, indexes: impl Iterator<Item = ItemStatistics>) -> Value {
    let (mut size_bytes, mut items) = (0, 0);
    for statistics in std::iter::once(table).chain(indexes) {
        size_bytes += statistics.size_bytes;
        items += statistics.item_count;
    }
    json!({ "size_bytes": size_bytes, "items": items })
}

fn entry((key, counts): (&EntryKey, &EntryCounts)) -> Value {
    json!({
        "index": key.index,
        "operation": key.operation.name(),
        "pattern": key.pattern.to_string(),
        "requests": counts.requests,
        "read_units": units(counts.read_halves),
        "write_units": units(counts.write_halves),
        "returned_items": counts.returned_items,
    })
}

/// Minutes since the epoch, each with its units.
fn minutes((index, used): (&Option<String>, &ResourceUse)) -> Value {
    let list = |uses: &[MinuteUse]| -> Vec<(u64, f64)> {
        uses.iter().map(|used| (used.minute, units(used.halves))).collect()
    };
    json!({ "index": index, "read": list(&used.read), "write": list(&used.write) })
}
