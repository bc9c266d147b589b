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

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use zenobe_api::Operation;
use zenobe_api::observer::{ObservedRequest, RequestObserver};
use zenobe_engine::schema::Namespace;

use self::counts::Ended;
use self::stripe::Stripe;

pub use counts::{LATENCY_BUCKETS, Latency, TrafficCounts, bucket_limit_us, bucket_of};
pub use pattern::{Pattern, QueryPattern, SortCondition, UnknownPattern};
pub use stripe::{NAMESPACES_MAX, ROWS_MAX};

/// The table name of traffic for which there was no room.
pub const OTHER: &str = "other";

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
}

impl TrafficKey {
    /// Whether only the patterns may differ.
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

/// Stores traffic.
pub trait TrafficSink: Send + Sync {
    /// Adds what happened in a minute. It may be called several times for the same minute, each time
    /// with what has been counted since; and without rows for a minute without requests.
    fn store_minute<'a>(
        &'a self,
        minute_start_ms: u64,
        rows: &'a [TrafficRow],
    ) -> BoxFuture<'a, ()>;
}

/// Counts requests, separately for each thread that serves them.
pub struct Traffic {
    stripes: Vec<Padded>,
    /// Whether requests that reached no table count: they do while anything is metered.
    is_metering: AtomicBool,
    /// Requests that were not counted, for lack of room.
    uncounted: AtomicU64,
}

/// Keeps the locks of different threads on different cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Padded(Mutex<Stripe>);

/// More threads than this share stripes.
const STRIPES_MAX: usize = 16;

impl Default for Traffic {
    fn default() -> Traffic {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let stripes = threads.next_power_of_two().min(STRIPES_MAX);
        Traffic {
            stripes: (0..stripes).map(|_| Padded::default()).collect(),
            is_metering: AtomicBool::new(false),
            uncounted: AtomicU64::new(0),
        }
    }
}

impl Traffic {
    /// What happened since the last call. A kind of request appears once.
    pub fn take(&self) -> Vec<TrafficRow> {
        stripe::merge(self.stripes.iter().map(|stripe| stripe.0.lock().take()))
    }

    /// Whether requests that reach no table are counted. Others are counted if their table is metered.
    pub fn set_metering(&self, is_metering: bool) {
        self.is_metering.store(is_metering, Ordering::Relaxed);
    }

    /// Requests that were not counted, for lack of room.
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
        let stripe = &self.stripes[thread_number() % self.stripes.len()];
        let counted = match (facts.parts.is_empty(), request.namespace) {
            (false, _) => stripe.0.lock().add(request.operation, facts, &ended),
            (true, Some(namespace)) if self.is_metering.load(Ordering::Relaxed) => {
                stripe.0.lock().add_without_table(request.operation, namespace, &ended)
            }
            (true, _) => true,
        };
        if !counted {
            self.uncounted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Numbers threads in the order of their first request.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    const UNKNOWN: usize = usize::MAX;
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    }
    match NUMBER.get() {
        UNKNOWN => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            NUMBER.set(number);
            number
        }
        number => number,
    }
}

#[cfg(test)]
mod tests;
