//! The traffic of tables and indexes since the last minute: the one observer behind metrics and costs.
//!
//! It runs on the thread that served the request. Every thread has a stripe of its own, so its lock is
//! uncontended except once a minute, when the counts are taken. A request whose kind is known
//! allocates nothing.
//!
//! **Bounded memory.** A stripe holds [`ROWS_MAX`] kinds of requests; the others are summed under
//! the table name [`OTHER`], for [`NAMESPACES_MAX`] namespaces. That is at most 7 MB per thread for a server
//! under attack, and some kilobytes for an ordinary one.

mod counts;
mod pattern;
mod stripe;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use zenobe_api::Operation;
use zenobe_api::observer::{ObservedRequest, RequestObserver};
use zenobe_engine::command::{StreamName, TableName};
use zenobe_engine::gauges::ReturnedRecords;
use zenobe_engine::request_facts::Verb;
use zenobe_engine::schema::Namespace;

use self::counts::Ended;
use self::stripe::ThreadTraffic;
use crate::striped::Striped;

pub use counts::{
    LATENCY_BUCKETS, Latency, RequestSums, TrafficCounts, bucket_limit_us, bucket_of,
};
pub use pattern::{Pattern, QueryPattern, SortCondition, UnknownPattern};
pub use stripe::{NAMESPACES_MAX, PendingRow, ROWS_MAX};

/// The table name of traffic that is not counted by table. No table can have it.
pub const OTHER: &str = "(other)";

/// A kind of request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrafficKey {
    pub namespace: Arc<Namespace>,
    /// `None` if no table was reached.
    pub table: Option<String>,
    /// The global index. Local ones use their table's capacity.
    pub index: Option<String>,
    pub operation: Operation,
    pub pattern: Pattern,
    /// What the statement does, if the operation is ExecuteStatement.
    pub verb: Option<Verb>,
}

impl TrafficKey {
    /// Whether only the patterns and verbs may differ.
    pub fn is_like(&self, other: &TrafficKey) -> bool {
        (&self.namespace, self.operation) == (&other.namespace, other.operation)
            && (&self.table, &self.index) == (&other.table, &other.index)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficRow {
    pub key: TrafficKey,
    pub counts: TrafficCounts,
}

/// What happened in a minute, or in a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficMinute {
    pub start_ms: u64,
    /// Empty for a minute without requests.
    pub rows: Vec<TrafficRow>,
    /// Items that were deleted because they had expired.
    pub expired_items: Vec<(TableName, u64)>,
    pub injected_errors: Vec<InjectedErrors>,
    /// What streams returned to requests.
    pub returned_records: Vec<(StreamName, ReturnedRecords)>,
}

/// Requests that failed with a 5xx status because a test asked for it. They reached no table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedErrors {
    pub table: TableName,
    pub operation: Operation,
    pub count: u64,
}

/// How many tables and operations have injected errors in a minute; those of others are not counted.
const INJECTED_ERRORS_MAX: usize = 1_000;

/// Stores traffic.
pub trait TrafficSink: Send + Sync {
    /// Adds what happened in a minute. It may be called several times for the same minute, each time
    /// with what has been counted since.
    fn store_minute<'a>(&'a self, minute: &'a TrafficMinute) -> BoxFuture<'a, ()>;
}

/// Counts requests, separately for each thread that serves them.
#[derive(Default)]
pub struct Traffic {
    stripes: Striped<ThreadTraffic>,
    /// Whether requests that reached no table count: they do while anything is metered.
    is_metering: AtomicBool,
    /// Requests that were not counted, because there were too many kinds of them.
    uncounted: AtomicU64,
    injected_errors: Mutex<BTreeMap<(TableName, Operation), u64>>,
}

impl Traffic {
    /// What happened since the last call. A kind of request appears once.
    pub fn take(&self) -> Vec<TrafficRow> {
        stripe::merge(self.stripes.iter().map(|mut stripe| stripe.take()))
    }

    /// What the next [`Traffic::take`] will return, if nothing else happens. A kind of request may appear
    /// several times.
    pub fn pending(&self) -> Vec<PendingRow> {
        self.stripes.iter().flat_map(|stripe| stripe.pending()).collect()
    }

    /// Counts a request for a table that failed with a 5xx status because a test asked for it.
    pub fn note_injected_error(&self, table: TableName, operation: Operation) {
        let mut errors = self.injected_errors.lock();
        let has_room = errors.len() < INJECTED_ERRORS_MAX;
        match errors.get_mut(&(table.clone(), operation)) {
            Some(known) => *known += 1,
            None if has_room => _ = errors.insert((table, operation), 1),
            None => _ = self.uncounted.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The injected errors since they were taken.
    pub fn pending_injected_errors(&self) -> Vec<InjectedErrors> {
        let errors = self.injected_errors.lock();
        let pending = |((table, operation), count): (&(TableName, Operation), &u64)| {
            InjectedErrors { table: table.clone(), operation: *operation, count: *count }
        };
        errors.iter().map(pending).collect()
    }

    pub fn take_injected_errors(&self) -> Vec<InjectedErrors> {
        let errors = std::mem::take(&mut *self.injected_errors.lock());
        let taken = |((table, operation), count)| InjectedErrors { table, operation, count };
        errors.into_iter().map(taken).collect()
    }

    /// Whether requests that reach no table are counted. Others are counted if their table is metered.
    pub fn set_metering(&self, is_metering: bool) {
        self.is_metering.store(is_metering, Ordering::Relaxed);
    }

    /// Requests that were not counted, because there were too many kinds of them.
    pub fn uncounted(&self) -> u64 {
        self.uncounted.load(Ordering::Relaxed)
    }
}

impl RequestObserver for Traffic {
    fn observe(&self, request: ObservedRequest<'_>) {
        let facts = request.facts;
        let ended = Ended {
            status: request.status,
            error: request.error,
            elapsed: request.elapsed,
            is_throttled: !facts.throttled.is_empty(),
            is_counted: false,
        };
        let counted = match (facts.parts.is_empty(), request.namespace) {
            (false, _) => self.stripes.local().add(request.operation, facts, &ended),
            (true, Some(namespace)) if self.is_metering.load(Ordering::Relaxed) => {
                self.stripes.local().add_without_table(request.operation, namespace, &ended)
            }
            (true, _) => true,
        };
        if !counted {
            self.uncounted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
