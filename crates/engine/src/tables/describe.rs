//! DescribeTable.

use std::iter::repeat;
use std::sync::Arc;

use zenobe_store::{Key, Value, decode_counter};

use crate::Engine;
use crate::catalog::{GuardCheck, StatisticsKeys, Table};
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::schema::{ItemStatistics, TableDefinition, TableDescription, Throughput};
use crate::tables::throughput;

impl Engine {
    pub async fn describe_table(&self, name: &TableName) -> Result<TableDescription> {
        // Background work does not slow down for this request: clients that wait for a restore send it again and again.
        let mut table = self.catalog.find_ready_or_filling(&*self.store, name).await?;
        loop {
            let (guard, statistics) = self.read_statistics(&table).await?;
            if let GuardCheck::Current = table.check_guard(guard.as_ref()) {
                return Ok(self.describe(&table, &statistics));
            }
            table = match self.refresh(&table).await {
                Err(Error::TableNotFound { .. }) => {
                    self.catalog.find_ready_or_filling(&*self.store, name).await?
                }
                refreshed => refreshed?,
            };
        }
    }

    /// A definition with its current figures, whether or not the definition is still current. It is
    /// for responses to committed changes, which must not fail any more: if necessary, the figures
    /// are left out.
    pub(super) async fn describe_as_is(&self, table: &Table) -> TableDescription {
        let statistics = match self.read_statistics(table).await {
            Ok((_, statistics)) => statistics,
            Err(error) => {
                let table = &table.definition().name;
                tracing::error!(table, %error, "the statistics of a changed table could not be read");
                Vec::new()
            }
        };
        self.describe(table, &statistics)
    }

    /// The value of the table's version row, and the counters of the table and then of each index,
    /// all from one state of the store.
    async fn read_statistics(&self, table: &Table) -> Result<(Option<Value>, Vec<[i64; 2]>)> {
        let counters = |keys: &StatisticsKeys| [keys.item_count.clone(), keys.size_bytes.clone()];
        let mut keys: Vec<Key> = vec![table.guard_key().clone()];
        keys.extend(counters(table.statistics()));
        keys.extend(table.indexes().flat_map(|index| counters(index.statistics)));
        let mut values = self.store.get_many(&keys).await?.into_iter();
        let guard = values.next().flatten();
        let mut statistics = Vec::with_capacity(keys.len() / 2);
        while let (Some(item_count), Some(size_bytes)) = (values.next(), values.next()) {
            let counter = |value: Option<Value>| decode_counter(value.as_deref());
            statistics.push([counter(item_count)?, counter(size_bytes)?]);
        }
        Ok((guard, statistics))
    }

    fn describe(&self, table: &Table, counters: &[[i64; 2]]) -> TableDescription {
        let definition = table.definition();
        let statistics = |index: Option<&str>, [item_count, size_bytes]: [i64; 2]| {
            let unsigned = |count| unsigned_or_zero(&definition.name, index, count);
            ItemStatistics { item_count: unsigned(item_count), size_bytes: unsigned(size_bytes) }
        };
        let mut counters = counters.iter().copied();
        let of_table = statistics(None, counters.next().unwrap_or_default());
        let index_statistics = definition
            .indexes()
            .zip(counters.chain(repeat([0; 2])))
            .map(|(index, counters)| (index.name.clone(), statistics(Some(&index.name), counters)))
            .collect();
        TableDescription {
            statistics: of_table,
            index_statistics,
            definition: with_current_day(definition, self.clock.now_ms()),
        }
    }
}

/// Statistics are only informative. A negative one is a defect worth logging, but no reason to fail
/// the description of a table.
fn unsigned_or_zero(table: &str, index: Option<&str>, count: i64) -> u64 {
    u64::try_from(count).unwrap_or_else(|_| {
        tracing::error!(table, index, count, "a statistic is negative");
        0
    })
}

/// The definition with the decreases of capacity counted for the day of `now_ms`: earlier ones
/// expire.
fn with_current_day(definition: &Arc<TableDefinition>, now_ms: u64) -> Arc<TableDefinition> {
    let aged = |it: &Throughput| it.decreases_today != throughput::decreases_today(it, now_ms);
    let global = &definition.global_indexes;
    if !aged(&definition.throughput) && !global.iter().any(|index| aged(&index.throughput)) {
        return Arc::clone(definition);
    }
    let mut definition = TableDefinition::clone(definition);
    let throughputs = definition.global_indexes.iter_mut().map(|index| &mut index.throughput);
    for it in throughputs.chain([&mut definition.throughput]) {
        it.decreases_today = throughput::decreases_today(it, now_ms);
    }
    Arc::new(definition)
}
