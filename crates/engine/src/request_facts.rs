//! What a request did, for its observers: metrics, logs, traces, sketches of hot keys.
//!
//! A caller that wants facts runs the request inside [`gather`]. The engine then records what each
//! part of the request read, wrote or was refused. Without such a caller it records nothing, which
//! costs one read of a thread-local.
//!
//! Facts travel beside commands and outcomes, in a thread-local that is set while the request's
//! future is polled, as tracing does with spans. Passing them through every function would make
//! every caller carry them for the sake of the observers.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use zenobe_store::Key;

use crate::command::TableName;
use crate::throughput::cause::{Access, CauseSet, Resource, ThrottleEvents, ThrottleReason};
use crate::throughput::partition_map::hash_of;

/// What a request did. Bounded: a request of many parts keeps the first, and counts the others.
#[derive(Debug, Clone, Default)]
pub struct RequestFacts {
    pub parts: Vec<Part>,
    /// How many parts there were beyond those kept.
    pub parts_omitted: u64,
    /// What the other parts consumed and were refused, so that the sums are right.
    pub omitted: Vec<OmittedParts>,
    /// The limits that the request met, each once, whether or not it was refused for them. Each part
    /// knows its own.
    pub throttled: Vec<ThrottleReason>,
    /// The pages of tables and indexes that it read.
    pub pages: Vec<PageFacts>,
    /// How many pages there were beyond those kept.
    pub pages_omitted: u64,
    /// What the statement does, if the request is a single one.
    pub verb: Option<Verb>,
}

/// What a PartiQL statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Verb {
    Select = 1,
    Insert = 2,
    Update = 3,
    Delete = 4,
}

/// What a request did to one table or index, with one key.
#[derive(Debug, Clone)]
pub struct Part {
    pub resource: Arc<Resource>,
    pub access: Access,
    /// Consumed half units; zero if the part was refused.
    pub halves: u64,
    /// The key of the item or index entry, or where a page began, without its prefix.
    pub key: Key,
    /// What the key stands for.
    pub scope: KeyScope,
    pub partition: u32,
    /// The limits that it met.
    pub causes: CauseSet,
}

/// What the parts that are not kept did to one table or index.
#[derive(Debug, Clone)]
pub struct OmittedParts {
    pub resource: Arc<Resource>,
    pub access: Access,
    pub halves: u64,
    pub throttled: ThrottleEvents,
}

/// What a request did with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    /// Read or wrote the item or index entry with this key.
    Item,
    /// Read several items with this partition key.
    Collection,
    /// Read on from here, whatever the keys.
    Range,
}

/// A page of a Query or a Scan, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFacts {
    pub table: TableName,
    pub index: Option<String>,
    pub access: PageAccess,
    pub is_backward: bool,
    pub has_filter: bool,
    pub scanned: u64,
    pub returned: u64,
}

/// How a page finds its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAccess {
    /// By partition key, and by the sort key if a condition on it is named here.
    Query {
        sort_condition: Option<&'static str>,
    },
    Scan,
}

/// The first half of the hash of the partition key, of a key without its prefix.
pub fn key_hash(key: &[u8]) -> u64 {
    (hash_of(key) >> 64) as u64
}

/// A transaction has 100 items, and each may touch indexes.
const PARTS_MAX: usize = 256;
/// A transaction touches 100 tables at most, each with up to 20 global indexes; more than a few of
/// them is an attack.
const OMITTED_MAX: usize = 256;
const REASONS_MAX: usize = 16;
/// A batch has 25 statements, and a statement reads few pages.
const PAGES_MAX: usize = 64;

impl RequestFacts {
    /// The half units consumed in all, by reads or by writes.
    pub fn halves(&self, access: Access) -> u64 {
        let kept = self.parts.iter().map(|part| (part.access, part.halves));
        let omitted = self.omitted.iter().map(|parts| (parts.access, parts.halves));
        kept.chain(omitted).filter(|(of, _)| *of == access).map(|(_, halves)| halves).sum()
    }

    /// How many of its parts met a limit.
    pub fn throttle_events(&self) -> u64 {
        let kept = self.parts.iter().filter(|part| part.is_throttled()).count() as u64;
        kept + self.omitted.iter().map(|parts| parts.throttled.total).sum::<u64>()
    }

    fn omit(&mut self, part: &Part) {
        self.parts_omitted += 1;
        let is_same = |it: &OmittedParts| {
            let (known, resource) = (&it.resource, &part.resource);
            it.access == part.access
                && known.table_id == resource.table_id
                && known.index == resource.index
        };
        let place = match self.omitted.iter().position(is_same) {
            Some(place) => place,
            None if self.omitted.len() < OMITTED_MAX => {
                self.omitted.push(OmittedParts {
                    resource: Arc::clone(&part.resource),
                    access: part.access,
                    halves: 0,
                    throttled: ThrottleEvents::default(),
                });
                self.omitted.len() - 1
            }
            None => return,
        };
        self.omitted[place].halves += part.halves;
        self.omitted[place].throttled.add(part.causes);
    }
}

impl Part {
    /// Whether it met a limit.
    pub fn is_throttled(&self) -> bool {
        !self.causes.is_empty()
    }
}

thread_local! {
    /// The facts of the request that this thread is polling, if they are gathered.
    static CURRENT: RefCell<Option<RequestFacts>> = const { RefCell::new(None) };
}

/// Runs a request and gathers its facts.
pub fn gather<F: Future + Unpin>(request: F) -> Gather<F> {
    Gather { request, facts: Some(RequestFacts::default()) }
}

pub struct Gather<F> {
    request: F,
    /// `None` while the request runs.
    facts: Option<RequestFacts>,
}

impl<F: Future + Unpin> Future for Gather<F> {
    type Output = (F::Output, RequestFacts);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut turn = Turn { before: CURRENT.replace(this.facts.take()), facts: &mut this.facts };
        let polled = Pin::new(&mut this.request).poll(context);
        turn.end();
        drop(turn);
        polled.map(|output| (output, this.facts.take().unwrap_or_default()))
    }
}

/// Restores the thread-local, even if the request panics.
struct Turn<'a> {
    before: Option<RequestFacts>,
    facts: &'a mut Option<RequestFacts>,
}

impl Turn<'_> {
    fn end(&mut self) {
        if self.facts.is_none() {
            *self.facts = CURRENT.replace(self.before.take());
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the facts of the current request are gathered.
pub(super) fn are_wanted() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Adds a part, if facts are gathered. `part` is called only then.
pub(super) fn note(part: impl FnOnce() -> Part, reasons: &[ThrottleReason]) {
    CURRENT.with_borrow_mut(|facts| {
        let Some(facts) = facts else { return };
        match facts.parts.len() < PARTS_MAX {
            true => facts.parts.push(part()),
            false => facts.omit(&part()),
        }
        for reason in reasons {
            if facts.throttled.len() < REASONS_MAX && !facts.throttled.contains(reason) {
                facts.throttled.push(reason.clone());
            }
        }
    });
}

/// Says what the request's statement does, if facts are gathered.
pub fn note_verb(verb: Verb) {
    CURRENT.with_borrow_mut(|facts| {
        if let Some(facts) = facts {
            facts.verb = Some(verb);
        }
    });
}

/// Adds a page that was read, if facts are gathered. `page` is called only then.
pub(crate) fn note_page(page: impl FnOnce() -> PageFacts) {
    CURRENT.with_borrow_mut(|facts| {
        let Some(facts) = facts else { return };
        match facts.pages.len() < PAGES_MAX {
            true => facts.pages.push(page()),
            false => facts.pages_omitted += 1,
        }
    });
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::command::TableName;
    use crate::schema::{KeySchema, Namespace, TableId};
    use crate::throughput::cause::ThrottleCause;

    fn part(halves: u64) -> Part {
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let table = TableName { namespace, name: "t".into() };
        let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
        let resource = Arc::new(Resource { table, table_id: TableId(1), index: None, keys });
        let (key, access) = (Key::from_static(&[7; 20]), Access::Read);
        let scope = KeyScope::Item;
        Part { resource, access, halves, key, scope, partition: 0, causes: CauseSet::default() }
    }

    #[test]
    fn facts_are_gathered_for_the_request_that_asked() {
        note(|| unreachable!("nobody asked"), &[]);
        let request = Box::pin(async {
            note(|| part(3), &[]);
            let mut has_waited = false;
            std::future::poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            note(|| part(4), &[]);
        });
        let mut gathering = gather(request);
        assert!((&mut gathering).now_or_never().is_none());
        // Another request on the same thread, while the first one waits.
        note(|| unreachable!("nobody asked"), &[]);
        let ((), other) = gather(Box::pin(async { note(|| part(9), &[]) })).now_or_never().unwrap();
        let ((), facts) = gathering.now_or_never().unwrap();
        assert_eq!((facts.halves(Access::Read), other.halves(Access::Read)), (7, 9));
        assert_eq!(facts.halves(Access::Write), 0);
        assert_eq!(key_hash(&facts.parts[0].key), u64::from_be_bytes([7; 8]));
    }

    #[test]
    fn facts_are_bounded_and_survive_a_panic() {
        let causes = || [ThrottleCause::KeyRange].into_iter().collect();
        let many = Box::pin(async {
            (0..1_000).for_each(|_| note(|| Part { causes: causes(), ..part(1) }, &[]));
        });
        let ((), facts) = gather(many).now_or_never().unwrap();
        assert_eq!((facts.parts.len(), facts.parts_omitted), (PARTS_MAX, 1_000 - PARTS_MAX as u64));
        assert_eq!((facts.halves(Access::Read), facts.throttle_events()), (1_000, 1_000));
        assert!(facts.omitted.len() <= OMITTED_MAX);
        let panics = std::panic::AssertUnwindSafe(gather(Box::pin(async { panic!("oh") })));
        assert!(panics.catch_unwind().now_or_never().unwrap().is_err());
        note(|| unreachable!("nobody asked"), &[]);
    }
}
