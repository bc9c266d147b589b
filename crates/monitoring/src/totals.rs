//! What tables and accounts did since the process started, for `/metrics`.
//!
//! **Counters never go down.** The traffic is taken every minute, so it is summed here when it is taken, and
//! a reader adds what is still pending. Whoever takes or reads holds the lock, so nothing is missed or
//! counted twice. A table that is deleted keeps its counters until another table needs its place; if it
//! comes back afterwards, it begins at zero.
//!
//! **Bounded.** [`TABLES_MAX`] tables and [`ACCOUNTS_MAX`] accounts have counters of their own; the others
//! are summed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use zenobe_api::Operation;
use zenobe_engine::Engine;
use zenobe_engine::command::{StreamName, TableName};
use zenobe_engine::gauges::ReturnedRecords;
use zenobe_engine::schema::{IndexId, Namespace, TableId};
use zenobe_engine::throughput::report::Consumption;

use crate::traffic::{InjectedErrors, OTHER, PendingRow, RequestSums, Traffic, TrafficMinute};

/// How many tables have counters of their own.
pub const TABLES_MAX: usize = 200;
/// How many accounts do.
pub const ACCOUNTS_MAX: usize = 64;
/// A table has 20 global indexes. More names than this are those of deleted ones.
const INDEXES_MAX: usize = 64;

#[derive(Default)]
pub struct Totals(Mutex<State>);

#[derive(Default)]
struct State {
    sums: Sums,
    /// What tables and indexes had consumed when somebody last asked.
    consumed: HashMap<(TableId, Option<IndexId>), Consumed>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sums {
    pub tables: BTreeMap<TableName, TableSums>,
    pub other_tables: TableSums,
    pub user_errors: BTreeMap<Arc<Namespace>, u64>,
    pub other_user_errors: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableSums {
    pub requests: BTreeMap<Operation, RequestSums>,
    /// By index; the table's own has an empty name.
    pub consumed: BTreeMap<String, Consumed>,
    pub expired_items: u64,
    pub returned_records: u64,
    pub returned_bytes: u64,
}

/// What a table or a global index has consumed, and the limits that it met.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Consumed {
    pub read_units: f64,
    pub write_units: f64,
    /// By the name of the reason, such as `TableReadKeyRangeThroughputExceeded`.
    pub throttle_events: BTreeMap<&'static str, u64>,
}

impl Totals {
    /// Takes what happened since the last call, and sums it.
    pub fn take(&self, engine: &Engine, traffic: &Traffic, start_ms: u64) -> TrafficMinute {
        let mut state = self.0.lock();
        let minute = TrafficMinute {
            start_ms,
            rows: traffic.take(),
            injected_errors: traffic.take_injected_errors(),
            expired_items: engine.take_expired_items(),
            returned_records: engine.take_returned_records(),
        };
        state.sums.add_minute(&minute);
        // Now nothing is pending that has been shown as another table's.
        state.sums.forget_deleted(engine);
        minute
    }

    /// The sums with what has not been taken yet. Without traffic, nobody takes anything.
    pub fn read(&self, engine: &Engine, traffic: Option<&Traffic>) -> Sums {
        let mut state = self.0.lock();
        state.add_consumption(&engine.consumption());
        let requests = traffic.map(Traffic::pending).unwrap_or_default();
        let injected_errors = traffic.map(Traffic::pending_injected_errors).unwrap_or_default();
        let pending = Pending {
            requests: &requests,
            injected_errors: &injected_errors,
            expired_items: &engine.expired_items_by_table(),
            returned_records: &engine.returned_records(),
        };
        // Who is shown by name must be added up by name.
        pending.reserve(&mut state.sums);
        let mut sums = state.sums.clone();
        if traffic.is_none() {
            state.sums.forget_deleted(engine);
        }
        drop(state);
        pending.add_to(&mut sums);
        sums
    }
}

/// What has not been taken yet.
struct Pending<'p> {
    requests: &'p [PendingRow],
    injected_errors: &'p [InjectedErrors],
    expired_items: &'p [(TableName, u64)],
    returned_records: &'p [(StreamName, ReturnedRecords)],
}

impl Pending<'_> {
    fn reserve(&self, sums: &mut Sums) {
        let expired = self.expired_items.iter().map(|(table, _)| table.clone());
        let returned = self.returned_records.iter().map(|(stream, _)| stream.table.clone());
        let requested = self.requests.iter().filter_map(PendingRow::table);
        let injected = self.injected_errors.iter().map(|errors| errors.table.clone());
        for table in requested.chain(expired).chain(returned).chain(injected) {
            sums.table(&table);
        }
        for row in self.requests {
            sums.add_user_errors(row.namespace(), 0);
        }
    }

    fn add_to(&self, sums: &mut Sums) {
        for row in self.requests {
            sums.add_requests(row.namespace(), row.table().as_ref(), row.operation, &row.sums);
        }
        sums.add_injected(self.injected_errors);
        sums.add_expired(self.expired_items);
        sums.add_returned(self.returned_records);
    }
}

impl State {
    /// Adds what has been consumed since the last call. The counters of a table end with it, and start
    /// anew with another store.
    fn add_consumption(&mut self, all: &[Consumption]) {
        let mut consumed = HashMap::with_capacity(all.len());
        for one in all {
            let resource = &one.resource;
            let id = (resource.table_id, resource.index.as_ref().map(|(_, index)| *index));
            let now = Consumed::of(one);
            let new = now.since(self.consumed.get(&id));
            self.sums.add_consumed(&resource.table, resource.index_name(), &new);
            consumed.insert(id, now);
        }
        self.consumed = consumed;
    }
}

impl Sums {
    fn is_own(&self, table: &TableName) -> bool {
        let is_one = table.name != OTHER;
        is_one && (self.tables.contains_key(table) || self.tables.len() < TABLES_MAX)
    }

    /// The sums of a table; those of the others if there are too many.
    fn table(&mut self, name: &TableName) -> &mut TableSums {
        match self.is_own(name) {
            true => self.tables.entry(name.clone()).or_default(),
            false => &mut self.other_tables,
        }
    }

    fn add_user_errors(&mut self, namespace: &Arc<Namespace>, errors: u64) {
        // Callers whose signatures nobody verifies may call themselves anything.
        let is_one = namespace.account != OTHER || namespace.region != OTHER;
        let has_room = is_one && self.user_errors.len() < ACCOUNTS_MAX;
        match self.user_errors.get_mut(namespace) {
            Some(known) => *known += errors,
            None if has_room => _ = self.user_errors.insert(Arc::clone(namespace), errors),
            None => self.other_user_errors += errors,
        }
    }

    fn add_minute(&mut self, minute: &TrafficMinute) {
        for row in &minute.rows {
            let (namespace, name) = (Arc::clone(&row.key.namespace), row.key.table.clone());
            let table = name.map(|name| TableName { namespace, name });
            let sums = RequestSums::of(&row.counts);
            self.add_requests(&row.key.namespace, table.as_ref(), row.key.operation, &sums);
        }
        self.add_injected(&minute.injected_errors);
        self.add_expired(&minute.expired_items);
        self.add_returned(&minute.returned_records);
    }

    fn add_requests(
        &mut self,
        namespace: &Arc<Namespace>,
        table: Option<&TableName>,
        operation: Operation,
        sums: &RequestSums,
    ) {
        self.add_user_errors(namespace, sums.user_errors);
        if let Some(table) = table {
            self.table(table).requests.entry(operation).or_default().add(sums);
        }
    }

    fn add_injected(&mut self, injected: &[InjectedErrors]) {
        for InjectedErrors { table, operation, count } in injected {
            let sums = self.table(table).requests.entry(*operation).or_default();
            let (requests, errors) = (*count, *count);
            sums.add(&RequestSums {
                requests,
                system_errors: errors,
                injected_errors: errors,
                ..RequestSums::default()
            });
        }
    }

    fn add_expired(&mut self, expired: &[(TableName, u64)]) {
        for (table, count) in expired {
            self.table(table).expired_items += count;
        }
    }

    fn add_returned(&mut self, returned: &[(StreamName, ReturnedRecords)]) {
        for (stream, returned) in returned {
            let table = self.table(&stream.table);
            table.returned_records += returned.records;
            table.returned_bytes += returned.size_bytes;
        }
    }

    fn add_consumed(&mut self, table: &TableName, index: Option<&str>, consumed: &Consumed) {
        // The indexes of the other tables are summed, too.
        let index = index.filter(|_| self.is_own(table)).unwrap_or_default();
        let sums = self.table(table);
        match sums.consumed.get_mut(index) {
            Some(known) => known.add(consumed),
            None => _ = sums.consumed.insert(index.to_owned(), consumed.clone()),
        }
    }

    /// Makes room, if there is none, by dropping what no longer exists.
    fn forget_deleted(&mut self, engine: &Engine) {
        let known = engine.known_tables();
        if self.tables.len() >= TABLES_MAX {
            self.tables.retain(|name, _| known.contains_key(name));
        }
        if self.user_errors.len() >= ACCOUNTS_MAX {
            let with_tables: HashSet<_> = known.keys().map(|table| &table.namespace).collect();
            self.user_errors.retain(|namespace, _| with_tables.contains(namespace));
        }
        for (name, sums) in &mut self.tables {
            if sums.consumed.len() <= INDEXES_MAX {
                continue;
            }
            let exists = |index: &str| {
                let of_table = known.get(name).map(|table| &table.definition().global_indexes);
                of_table.is_some_and(|indexes| indexes.iter().any(|it| it.name == index))
            };
            sums.consumed.retain(|index, _| index.is_empty() || exists(index));
        }
    }
}

impl Consumed {
    fn of(consumption: &Consumption) -> Consumed {
        let events = consumption.throttle_events.iter();
        Consumed {
            read_units: consumption.read_units,
            write_units: consumption.write_units,
            throttle_events: events.map(|(reason, count)| (reason.name(), *count)).collect(),
        }
    }

    /// What was added since an earlier moment. Counters that are lower than then have begun anew.
    fn since(&self, before: Option<&Consumed>) -> Consumed {
        let Some(before) = before else { return self.clone() };
        let is_older = |(reason, count): (&&str, &u64)| {
            self.throttle_events.get(reason).is_some_and(|now| now >= count)
        };
        let has_gone_on = self.read_units >= before.read_units
            && self.write_units >= before.write_units
            && before.throttle_events.iter().all(is_older);
        if !has_gone_on {
            return self.clone();
        }
        let events = self.throttle_events.iter().map(|(reason, count)| {
            (*reason, count - before.throttle_events.get(reason).copied().unwrap_or(0))
        });
        Consumed {
            read_units: self.read_units - before.read_units,
            write_units: self.write_units - before.write_units,
            throttle_events: events.collect(),
        }
    }

    fn add(&mut self, other: &Consumed) {
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        for (reason, count) in &other.throttle_events {
            *self.throttle_events.entry(reason).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests;
