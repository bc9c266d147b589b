//! The log of slow requests: one line for each, with what it read and consumed and who sent it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zenobe_engine::request_facts::{PageAccess, PageFacts, RequestFacts};
use zenobe_engine::throughput::cause::Access;
use zenobe_engine::throughput::report::units;

use crate::observer::{ObservedRequest, RequestObserver};

/// At most this many lines per second are logged. When everything is slow, more would not tell more.
const LINES_PER_SECOND_MAX: u32 = 10;
/// A line shows at most this many tables, and as many pages. A statement may read more.
const SHOWN_MAX: usize = 4;

pub struct SlowRequests {
    threshold: Duration,
    rate: Mutex<LineLimit>,
}

/// How many lines were logged in the current second.
#[derive(Debug, Default)]
struct LineLimit {
    second: Option<Instant>,
    lines: u32,
    /// Since the last line that was logged.
    suppressed: u64,
}

impl SlowRequests {
    pub fn new(threshold: Duration) -> SlowRequests {
        SlowRequests { threshold, rate: Mutex::default() }
    }
}

impl RequestObserver for SlowRequests {
    fn observe(&self, request: ObservedRequest<'_>) {
        if request.elapsed < self.threshold {
            return;
        }
        let Some(suppressed) = self.rate.lock().admit(Instant::now()) else { return };
        let facts = request.facts;
        let plan = plan(facts);
        tracing::warn!(
            request_id = request.request_id,
            operation = request.operation.name(),
            error = request.error,
            tables = resources(facts),
            plan = (!plan.is_empty()).then_some(plan),
            read_units = units(facts.halves(Access::Read)),
            write_units = units(facts.halves(Access::Write)),
            throttled = throttled(facts),
            elapsed_ms = request.elapsed.as_secs_f64() * 1e3,
            access_key = request.access_key(),
            suppressed = (suppressed > 0).then_some(suppressed),
            "slow request"
        );
    }
}

impl LineLimit {
    /// How many lines were left out since the last one, or `None` if this one is left out too.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_new = self.second.is_none_or(|second| now - second >= Duration::from_secs(1));
        if is_new {
            self.second = Some(now);
            self.lines = 0;
        }
        if self.lines == LINES_PER_SECOND_MAX {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// The tables and global indexes that the request used, such as `Orders,Orders/by-owner`. What has
/// no capacity of its own is in the plan.
fn resources(facts: &RequestFacts) -> Option<String> {
    let of_parts = facts.parts.iter().map(|part| {
        let table = part.resource.table.name.as_str();
        (table, part.resource.index_name())
    });
    let of_pages = facts.pages.iter().map(|page| (page.table.name.as_str(), None));
    let names: BTreeSet<_> = of_parts.chain(of_pages).collect();
    let mut text = String::new();
    for (position, (table, index)) in names.iter().take(SHOWN_MAX).enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let _ = write!(text, "{separator}{table}");
        if let Some(index) = index {
            let _ = write!(text, "/{index}");
        }
    }
    add_rest(&mut text, names.len().saturating_sub(SHOWN_MAX) as u64);
    (!text.is_empty()).then_some(text)
}

/// How the pages were read, such as `Query Orders/by-owner sort begins_with, filtered, 120 scanned, 3
/// returned`. Reads and writes of single items need no plan.
fn plan(facts: &RequestFacts) -> String {
    let mut text = String::new();
    for (position, page) in facts.pages.iter().take(SHOWN_MAX).enumerate() {
        text.push_str(if position == 0 { "" } else { "; " });
        describe(page, &mut text);
    }
    let rest = facts.pages.len().saturating_sub(SHOWN_MAX) as u64 + facts.pages_omitted;
    add_rest(&mut text, rest);
    text
}

fn describe(page: &PageFacts, out: &mut String) {
    let name = match page.access {
        PageAccess::Query { .. } => "Query",
        PageAccess::Scan => "Scan",
    };
    let _ = write!(out, "{name} {}", page.table.name);
    if let Some(index) = &page.index {
        let _ = write!(out, "/{index}");
    }
    if let PageAccess::Query { sort_condition: Some(operator) } = page.access {
        let _ = write!(out, " sort {operator}");
    }
    if page.has_filter {
        out.push_str(", filtered");
    }
    let _ = write!(out, ", {} scanned, {} returned", page.scanned, page.returned);
}

fn add_rest(text: &mut String, rest: u64) {
    if rest > 0 {
        let _ = write!(text, " and {rest} more");
    }
}

fn throttled(facts: &RequestFacts) -> Option<String> {
    let names: Vec<&str> = facts.throttled.iter().map(|reason| reason.name()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_engine::command::TableName;
    use zenobe_engine::schema::Namespace;

    use super::*;

    fn page(index: Option<&str>, access: PageAccess, has_filter: bool) -> PageFacts {
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let table = TableName { namespace, name: "Orders".into() };
        let index = index.map(str::to_owned);
        let (scanned, returned) = (120, 3);
        PageFacts { table, index, access, is_backward: false, has_filter, scanned, returned }
    }

    #[test]
    fn plans_say_what_was_read() {
        let sort_condition = Some("begins_with");
        let mut facts = RequestFacts::default();
        assert_eq!(plan(&facts), "");
        facts.pages.push(page(Some("by-owner"), PageAccess::Query { sort_condition }, true));
        facts.pages.push(page(None, PageAccess::Scan, false));
        assert_eq!(
            plan(&facts),
            "Query Orders/by-owner sort begins_with, filtered, 120 scanned, 3 returned; \
             Scan Orders, 120 scanned, 3 returned"
        );
        assert_eq!(resources(&facts).as_deref(), Some("Orders"));
        (0..10).for_each(|_| facts.pages.push(page(None, PageAccess::Scan, false)));
        facts.pages_omitted = 5;
        assert!(plan(&facts).ends_with("returned and 13 more"), "{}", plan(&facts));
    }

    #[test]
    fn a_flood_is_counted_and_not_logged() {
        let (mut rate, start) = (LineLimit::default(), Instant::now());
        let admitted = (0..1_000).filter(|_| rate.admit(start).is_some()).count();
        assert_eq!(admitted, LINES_PER_SECOND_MAX as usize);
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(990));
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(0));
    }
}
