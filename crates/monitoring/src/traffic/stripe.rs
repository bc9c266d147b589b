//! The counts of one thread.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use zenobe_api::Operation;
use zenobe_engine::command::TableName;
use zenobe_engine::request_facts::{KeyScope, PageFacts, Part, RequestFacts, Verb};
use zenobe_engine::schema::{Namespace, TableId};
use zenobe_engine::throughput::cause::{Access, Resource};

use super::counts::{Ended, RequestSums, TrafficCounts};
use super::pattern::Pattern;
use super::{OTHER, TrafficKey, TrafficRow};

/// How many kinds of requests a thread tells apart in a minute, besides those of no table.
pub const ROWS_MAX: usize = 4_096;
/// How many namespaces have requests of no table, or of tables beyond the limit.
pub const NAMESPACES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct ThreadTraffic {
    rows: Vec<Row>,
    /// The position of each row.
    places: HashMap<Slot, usize, BuildHasherDefault<SlotHasher>>,
    /// The row that was used last: requests of a kind come in runs.
    last: usize,
    /// The owners of rows without a table.
    nobodies: Namespaces,
    /// The owners of rows of tables beyond the limit.
    others: Namespaces,
}

/// Namespaces, numbered.
#[derive(Default)]
struct Namespaces(Vec<Arc<Namespace>>);

struct Row {
    slot: Slot,
    owner: Owner,
    kind: Kind,
    counts: TrafficCounts,
}

/// What a request does, besides where.
#[derive(Clone, Copy)]
struct Kind {
    operation: Operation,
    pattern: Pattern,
    verb: Option<Verb>,
}

/// What identifies a row, in two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Slot {
    /// The id of a table, or [`NO_TABLE`] or [`OTHER_TABLES`].
    table: u64,
    /// The id of an index, or the number of a namespace; the operation; the verb; the pattern.
    rest: u64,
}

/// Tables have small ids.
const NO_TABLE: u64 = u64::MAX;
const OTHER_TABLES: u64 = u64::MAX - 1;

#[derive(Debug, Clone)]
enum Owner {
    Resource(Arc<Resource>),
    Nobody(Arc<Namespace>),
    Others(Arc<Namespace>),
}

impl Owner {
    fn namespace(&self) -> &Arc<Namespace> {
        match self {
            Owner::Nobody(namespace) | Owner::Others(namespace) => namespace,
            Owner::Resource(resource) => &resource.table.namespace,
        }
    }

    fn table(&self) -> Option<&str> {
        match self {
            Owner::Nobody(_) => None,
            Owner::Others(_) => Some(OTHER),
            Owner::Resource(resource) => Some(&resource.table.name),
        }
    }

    fn index(&self) -> Option<&str> {
        match self {
            Owner::Nobody(_) | Owner::Others(_) => None,
            Owner::Resource(resource) => resource.index_name(),
        }
    }
}

/// What one thread has counted of a kind of request since the counts were taken.
#[derive(Debug, Clone)]
pub struct PendingRow {
    owner: Owner,
    pub operation: Operation,
    pub sums: RequestSums,
}

impl PendingRow {
    pub fn namespace(&self) -> &Arc<Namespace> {
        self.owner.namespace()
    }

    /// `None` if no table was reached.
    pub fn table(&self) -> Option<TableName> {
        let name = self.owner.table()?.to_owned();
        Some(TableName { namespace: Arc::clone(self.namespace()), name })
    }
}

impl Slot {
    fn new(table: u64, number: u32, kind: Kind) -> Slot {
        let Kind { operation, pattern, verb } = kind;
        let verb = verb.map_or(0, |verb| verb as u8);
        let kind = u64::from(operation as u8) << 16 | u64::from(verb) << 8;
        Slot { table, rest: u64::from(number) << 32 | kind | u64::from(pattern.code()) }
    }

    fn of(resource: &Resource, kind: Kind) -> Slot {
        // Ids of indexes are counted from small numbers.
        let index = resource.index.as_ref().map_or(u32::MAX, |(_, id)| id.0);
        Slot::new(resource.table_id.0, index, kind)
    }
}

/// Slots are numbers of our own, so nobody chooses them to collide.
#[derive(Default)]
struct SlotHasher(u64);

impl Hasher for SlotHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        // The map uses the highest and the lowest bits.
        self.0 ^ (self.0 >> 32)
    }
}

impl ThreadTraffic {
    /// Counts a request that reached tables. Returns whether all of it could be counted.
    pub fn add(&mut self, operation: Operation, facts: &RequestFacts, ended: &Ended) -> bool {
        let mut pages = facts.pages.iter();
        let mut is_complete = true;
        for (number, part) in facts.parts.iter().enumerate() {
            let page = page_of(part, &mut pages);
            let kind = Kind { operation, pattern: Pattern::of(part, page), verb: facts.verb };
            let Some(counts) = self.counts(&part.resource, kind) else {
                is_complete = false;
                continue;
            };
            counts.add_halves(part.access, part.halves);
            if is_first_to_consume(&facts.parts, number) {
                counts.add_consumer(part.access);
            }
            counts.returned_items += page.map_or(0, |page| page.returned);
            counts.throttled(part.access).add(part.causes);
            if is_first_of_table(&facts.parts, number) {
                let is_throttled =
                    ended.is_throttled && has_met_limit(facts, part.resource.table_id);
                counts.add_request(&Ended { is_throttled, is_counted: number > 0, ..*ended });
            }
        }
        for omitted in &facts.omitted {
            let pattern = match (omitted.access, &omitted.resource.index) {
                (Access::Read, _) => Pattern::Key,
                (Access::Write, None) => Pattern::Write,
                (Access::Write, Some(_)) => Pattern::IndexWrite,
            };
            let kind = Kind { operation, pattern, verb: facts.verb };
            match self.counts(&omitted.resource, kind) {
                Some(counts) => {
                    counts.add_halves(omitted.access, omitted.halves);
                    counts.throttled(omitted.access).merge(&omitted.throttled);
                }
                None => is_complete = false,
            }
        }
        is_complete
    }

    /// Counts a request that reached no table.
    pub fn add_without_table(
        &mut self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        ended: &Ended,
    ) -> bool {
        let Some(number) = self.nobodies.number(namespace) else { return false };
        let kind = Kind { operation, pattern: Pattern::Other, verb: None };
        let owner = || Owner::Nobody(Arc::clone(namespace));
        self.row(Slot::new(NO_TABLE, number, kind), kind, owner).add_request(ended);
        true
    }

    /// The counts of a kind of request; those of other tables if there are too many kinds.
    fn counts(&mut self, resource: &Arc<Resource>, kind: Kind) -> Option<&mut TrafficCounts> {
        let slot = Slot::of(resource, kind);
        let is_last = self.rows.get(self.last).is_some_and(|row| row.slot == slot);
        if is_last || self.rows.len() < ROWS_MAX || self.places.contains_key(&slot) {
            let owner = || Owner::Resource(Arc::clone(resource));
            return Some(self.row(slot, kind, owner));
        }
        let namespace = &resource.table.namespace;
        let number = self.others.number(namespace)?;
        let kind = Kind { pattern: Pattern::Other, verb: None, ..kind };
        let owner = || Owner::Others(Arc::clone(namespace));
        Some(self.row(Slot::new(OTHER_TABLES, number, kind), kind, owner))
    }

    fn row(&mut self, slot: Slot, kind: Kind, owner: impl FnOnce() -> Owner) -> &mut TrafficCounts {
        if self.rows.get(self.last).is_none_or(|row| row.slot != slot) {
            self.last = match self.places.entry(slot) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(place) => {
                    let counts = TrafficCounts::default();
                    self.rows.push(Row { slot, owner: owner(), kind, counts });
                    *place.insert(self.rows.len() - 1)
                }
            };
        }
        &mut self.rows[self.last].counts
    }

    /// The counts so far. It copies only what it must, because a thread that serves requests may wait
    /// for it.
    pub fn pending(&self) -> Vec<PendingRow> {
        let pending = |row: &Row| PendingRow {
            owner: row.owner.clone(),
            operation: row.kind.operation,
            sums: RequestSums::of(&row.counts),
        };
        self.rows.iter().map(pending).collect()
    }

    /// Takes the counts and leaves an empty stripe, so memory that only one minute needed is freed.
    pub fn take(&mut self) -> ThreadTraffic {
        std::mem::take(self)
    }
}

impl Namespaces {
    /// `None` if there are too many already.
    fn number(&mut self, namespace: &Arc<Namespace>) -> Option<u32> {
        let is_it =
            |known: &Arc<Namespace>| Arc::ptr_eq(known, namespace) || **known == **namespace;
        let number = match self.0.iter().position(is_it) {
            Some(number) => number,
            None if self.0.len() < NAMESPACES_MAX => {
                self.0.push(Arc::clone(namespace));
                self.0.len() - 1
            }
            None => return None,
        };
        u32::try_from(number).ok()
    }
}

/// The page that a part has read. Pages are noted in the order of their parts, but those of tables that
/// are not metered have no part, and a part that was refused has no page.
fn page_of<'p>(part: &Part, pages: &mut std::slice::Iter<'p, PageFacts>) -> Option<&'p PageFacts> {
    if part.scope == KeyScope::Item || part.access == Access::Write || part.halves == 0 {
        return None;
    }
    let index = part.resource.index_name();
    pages.find(|page| {
        let is_index = index.is_none() || page.index.as_deref() == index;
        is_index && page.table.name == part.resource.table.name
    })
}

/// Whether a part is the first of its table in the request, to which the request is counted.
fn is_first_of_table(parts: &[Part], number: usize) -> bool {
    let table = parts[number].resource.table_id;
    // Parts of one table nearly always follow each other.
    match number.checked_sub(1) {
        None => true,
        Some(before) if parts[before].resource.table_id == table => false,
        Some(_) => parts[..number].iter().all(|part| part.resource.table_id != table),
    }
}

/// Whether a part is the first of its request that consumes such units of its table or index.
fn is_first_to_consume(parts: &[Part], number: usize) -> bool {
    let part = &parts[number];
    let index = |part: &Part| part.resource.index.as_ref().map(|(_, id)| id.0);
    let consumes_the_same = |other: &Part| {
        other.halves > 0
            && other.access == part.access
            && other.resource.table_id == part.resource.table_id
            && index(other) == index(part)
    };
    // In a batch, the item before has nearly always used the same table and indexes.
    part.halves > 0 && !parts[..number].iter().rev().any(consumes_the_same)
}

/// Whether a request met a limit of this table or of one of its indexes.
fn has_met_limit(facts: &RequestFacts, table: TableId) -> bool {
    let mut parts = facts.parts.iter();
    let mut omitted = facts.omitted.iter();
    parts.any(|part| part.is_throttled() && part.resource.table_id == table)
        || omitted.any(|parts| parts.throttled.total > 0 && parts.resource.table_id == table)
}

/// Adds up the rows of all threads.
pub(super) fn merge(stripes: impl Iterator<Item = ThreadTraffic>) -> Vec<TrafficRow> {
    let mut merged: HashMap<TrafficKey, TrafficCounts> = HashMap::new();
    for row in stripes.flat_map(|stripe| stripe.rows) {
        let Row { owner, kind: Kind { operation, pattern, verb }, counts, .. } = row;
        let key = TrafficKey {
            namespace: Arc::clone(owner.namespace()),
            table: owner.table().map(str::to_owned),
            index: owner.index().map(str::to_owned),
            operation,
            pattern,
            verb,
        };
        match merged.entry(key) {
            Entry::Occupied(mut known) => known.get_mut().merge(&counts),
            Entry::Vacant(place) => {
                place.insert(counts);
            }
        }
    }
    let mut rows: Vec<TrafficRow> =
        merged.into_iter().map(|(key, counts)| TrafficRow { key, counts }).collect();
    rows.sort_by(|left, right| left.key.cmp(&right.key));
    rows
}
