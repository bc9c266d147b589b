//! Reads one page: walks a range, counts and measures what it evaluates, and keeps what passes the
//! filter.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Direction, Key, KeyRange, Reader, Replica};
use zenobe_value::{Attributes, EncodedItem, ItemBuffer, ItemRef};

use crate::Engine;
use crate::capacity_units::read_halves;
use crate::catalog::GuardCheck;
use crate::command::{Consumed, PageOutcome, PageRequest, TableName};
use crate::error::{Error, Result};
use crate::history::{Past, Walk};
use crate::keys::{PrimaryKey, key_attributes};
use crate::request_facts::{self, KeyScope, PageAccess};
use crate::schema::{IndexId, IndexKind};
use crate::throughput::cause::Access;
use crate::throughput::{Demand, Ticket};
use crate::write::decode_stored;

use super::page_partitions::{self, PagePartitions};
use super::select::{Output, Selection};
use super::source::ReadSource;
use super::start_key::after;
use super::time_slice::TimeSlice;

/// A page ends with the item that brings the size of what it evaluated and fetched to this.
const PAGE_SIZE_BYTES: u64 = 1024 * 1024;

/// How many entries of a local index to resolve to their items at once.
const FETCHED_AT_ONCE: usize = 32;

/// Everything about a page that is known before the first entry is read.
pub(super) struct PagePlan<'q> {
    pub table: &'q TableName,
    pub source: ReadSource<'q>,
    pub selection: Selection<'q>,
    pub range: KeyRange,
    pub direction: Direction,
    pub request: &'q PageRequest,
    /// The partitions that it passes through, if that matters.
    pub partitions: Option<PagePartitions>,
    /// Whether what is read in each partition is rounded up.
    pub rounds_up_each: bool,
    /// How the page finds its items.
    pub access: PageAccess,
    /// Reads the table as it was, if set.
    pub past: Option<&'q Past>,
    /// Whether another page can follow. A Query that finds at most one item cannot be continued.
    pub can_continue: bool,
}

/// Where a page is read: in the store, or in a copy that may be a little behind.
#[derive(Clone, Copy)]
pub(super) struct Origin<'e> {
    pub engine: &'e Engine,
    pub replica: Option<&'e dyn Replica>,
}

impl<'e> Origin<'e> {
    fn reader(self) -> &'e dyn Reader {
        match self.replica {
            Some(replica) => replica,
            None => &*self.engine.store,
        }
    }

    fn snapshot(self) -> Arc<dyn Reader> {
        match self.replica {
            Some(replica) => replica.snapshot(),
            None => self.engine.store.snapshot(),
        }
    }
}

/// A page that was read.
pub(super) struct Read {
    pub outcome: PageOutcome,
    /// Whether the read itself proved that the table's definition is current. If false, the caller
    /// must check the version row.
    pub is_current: bool,
    partitions: Option<PagePartitions>,
}

impl<'q> PagePlan<'q> {
    /// Reads the page, if the table or index has capacity for it.
    pub async fn read(mut self, origin: Origin<'_>) -> Result<Read> {
        let ticket = self.admit(origin.engine)?;
        if ticket.is_metered() && self.partitions.is_none() {
            self.partitions = self.several_partitions(origin.engine);
        }
        let read = self.read_admitted(origin).await?;
        // A page is of one table, and uses the capacity of the table or of one global index.
        let halves = read.outcome.consumed.total_halves();
        match &read.partitions {
            Some(partitions) => ticket.settle_shares(halves, partitions.shares(halves)),
            None => ticket.settle(halves),
        }
        request_facts::note_page(|| self.fact(&read.outcome));
        Ok(read)
    }

    fn fact(&self, outcome: &PageOutcome) -> request_facts::PageFacts {
        request_facts::PageFacts {
            table: self.table.clone(),
            index: self.source.index.map(|index| index.definition.name.clone()),
            access: self.access,
            is_backward: self.direction == Direction::Reverse,
            has_filter: self.request.filter.is_some(),
            scanned: outcome.scanned_count,
            returned: outcome.count,
        }
    }

    /// The global index that is read; a local one uses its table's capacity.
    fn global_index(&self) -> Option<IndexId> {
        let index = self.source.index.map(|index| index.definition);
        index.filter(|index| index.kind == IndexKind::Global).map(|index| index.id)
    }

    fn admit(&self, engine: &Engine) -> Result<Ticket<'q>> {
        // A backward Query begins at the end of its range, which is nearly always in the same
        // partition.
        let demand = Demand {
            access: Access::Read,
            index: self.global_index(),
            key: &self.range.start,
            prefix_length: self.source.prefix().len(),
            scope: match self.access {
                PageAccess::Query { .. } => KeyScope::Collection,
                PageAccess::Scan => KeyScope::Range,
            },
            halves_min: read_halves(0, self.request.consistent),
        };
        engine.admit(self.source.table, demand)
    }

    /// The partitions that the page may pass through, unless there is only one.
    fn several_partitions(&self, engine: &Engine) -> Option<PagePartitions> {
        let capacity = engine.capacity_of(self.source.table);
        let meter = match self.global_index() {
            None => capacity.table(),
            Some(index) => capacity.index(index)?,
        };
        let prefix = self.source.prefix();
        let (first, last) =
            meter.with_partitions(|all| page_partitions::span(prefix, &self.range, all));
        (first < last)
            .then(|| PagePartitions::new(prefix, &self.range, self.direction, meter.partitions()))
    }

    async fn read_admitted(&self, origin: Origin<'_>) -> Result<Read> {
        let mut page = Page::new(self);
        // Bounds may cross: BETWEEN with nothing between, or a start key past the end.
        if self.range.is_empty() {
            return Ok(page.finish(self, false));
        }
        let is_current = match self.selection.fetches_items {
            false => self.walk(origin, &mut page).await?,
            true => {
                let snapshot = origin.snapshot();
                self.walk_and_fetch(&*snapshot, &mut page).await?;
                self.is_current_in(origin, &*snapshot).await?
            }
        };
        Ok(page.finish(self, is_current))
    }

    /// A page is one consistent state, and nothing that the filter rejects is copied. Without a
    /// filter the size of a page bounds its work, so one scan suffices. With a filter the scan
    /// continues time slice by time slice, all on the same snapshot.
    ///
    /// Returns whether the definition is known to be current. A shared store may be far away, so
    /// the same scan also fetches the version.
    async fn walk(&self, origin: Origin<'_>, page: &mut Page<'_>) -> Result<bool> {
        if let Some(past) = self.past {
            // On the heap, so that reads of the present don't have to make room for it.
            let walk = Box::new(past.walk(self.range.clone(), self.direction));
            self.walk_slices(Rest::Past(walk), page).await?;
            return Ok(false);
        }
        let asks_version = origin.engine.is_shared() || origin.replica.is_some();
        if self.selection.filter.is_none() && !asks_version {
            let mut rest = Rest::Now(origin.reader(), self.range.clone());
            self.walk_slice(&mut rest, page).await?;
            return Ok(false);
        }
        if self.selection.filter.is_none() {
            return self.walk_and_check(origin.reader(), page).await;
        }
        let snapshot = origin.snapshot();
        self.walk_slices(Rest::Now(&*snapshot, self.range.clone()), page).await?;
        self.is_current_in(origin, &*snapshot).await
    }

    async fn walk_slices(&self, mut rest: Rest<'_>, page: &mut Page<'_>) -> Result<()> {
        while let Some(stop) = self.walk_slice(&mut rest, page).await? {
            if let Some(item) = stop.costly
                && page.evaluate_in_slices(item.as_item()).await.is_break()
            {
                break;
            }
            rest.continue_after(&stop.key, self.direction);
            if rest.is_empty() {
                break;
            }
            page.time_slice.yield_if_over().await;
        }
        Ok(())
    }

    /// Whether a replica's snapshot holds the definition that the page was read by. Without a replica
    /// this is `false`, and the caller asks the store itself afterwards.
    async fn is_current_in(&self, origin: Origin<'_>, snapshot: &dyn Reader) -> Result<bool> {
        if origin.replica.is_none() {
            return Ok(false);
        }
        let table = self.source.table;
        let version = snapshot.get(table.guard_key()).await?;
        Ok(table.check_guard(version.as_ref()) == GuardCheck::Current)
    }

    /// Walks the whole page, and returns whether the definition was still current afterwards.
    async fn walk_and_check(&self, reader: &dyn Reader, page: &mut Page<'_>) -> Result<bool> {
        let mut outcome = Ok(());
        let mut visit = |key: &[u8], value: &[u8]| match page.evaluate_bytes(key, value) {
            Ok(Evaluated::Now(flow)) => flow,
            Ok(Evaluated::Later(_)) => unreachable!("without a filter no item is costly"),
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        };
        let entries_max = self.request.limit.and_then(|limit| usize::try_from(limit).ok());
        let (table, range) = (self.source.table, self.range.clone());
        let guard = std::slice::from_ref(table.guard_key());
        let reading = reader.scan_then_get(range, self.direction, entries_max, &mut visit, guard);
        let versions = reading.await?;
        outcome?;
        let version = versions.first().and_then(Option::as_ref);
        Ok(table.check_guard(version) == GuardCheck::Current)
    }

    /// Returns where the time slice ended, unless the page is full.
    async fn walk_slice(
        &self,
        rest: &mut Rest<'_>,
        page: &mut Page<'_>,
    ) -> Result<Option<SliceEnd>> {
        let mut outcome = Ok(None);
        let mut visit = |key: &[u8], value: &[u8]| match page.evaluate_bytes(key, value) {
            Ok(Evaluated::Now(ControlFlow::Continue(()))) if page.time_slice.is_over() => {
                outcome = Ok(Some(SliceEnd { key: Key::copy_from_slice(key), costly: None }));
                ControlFlow::Break(())
            }
            Ok(Evaluated::Now(flow)) => flow,
            Ok(Evaluated::Later(item)) => {
                outcome = Ok(Some(SliceEnd { key: Key::copy_from_slice(key), costly: Some(item) }));
                ControlFlow::Break(())
            }
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        };
        match rest {
            Rest::Now(reader, range) => {
                reader.scan(range.clone(), self.direction, &mut visit).await?;
            }
            Rest::Past(walk) => Box::pin(walk.run(&mut visit)).await?,
        }
        outcome
    }

    /// Entries and items come from the same snapshot, so every entry finds its item.
    async fn walk_and_fetch(&self, snapshot: &dyn Reader, page: &mut Page<'_>) -> Result<()> {
        let mut range = self.range.clone();
        loop {
            let at_once = page.evaluations_left().min(FETCHED_AT_ONCE);
            let entries = collect(snapshot, &range, self.direction, at_once).await?;
            let mut admitted = Vec::with_capacity(entries.len());
            for (_, entry) in &entries {
                admitted.push(page.admits(entry.as_item()).await);
                page.time_slice.yield_if_over().await;
            }
            let is_fetched = |admitted: bool| admitted || self.selection.fetches_rejected;
            let to_fetch = entries.iter().zip(&admitted).filter(|(_, it)| is_fetched(**it));
            let keys =
                to_fetch.map(|((_, entry), _)| self.item_key(entry)).collect::<Result<_>>()?;
            let mut items = fetch_items(snapshot, keys).await?.into_iter();
            for ((key, entry), admitted) in entries.iter().zip(admitted) {
                page.enter(key);
                let item = if is_fetched(admitted) { items.next() } else { None };
                if page.evaluate_fetched(entry.as_item(), item.as_ref(), admitted).is_break() {
                    return Ok(());
                }
            }
            match entries.last() {
                Some((last, _)) if entries.len() == at_once => {
                    range = after(last, range, self.direction);
                }
                _ => return Ok(()),
            }
        }
    }

    fn item_key(&self, entry: &EncodedItem) -> Result<Key> {
        let key = PrimaryKey::from_stored(self.source.table_keys(), entry.as_item())?;
        Ok(key.item_key(self.source.table))
    }
}

async fn fetch_items(snapshot: &dyn Reader, keys: Vec<Key>) -> Result<Vec<EncodedItem>> {
    let missing = || Error::Corrupt { detail: "an index entry without its item".into() };
    let values = snapshot.get_many(&keys).await?;
    values.iter().map(|value| decode_stored(value.as_ref().ok_or_else(missing)?)).collect()
}

async fn collect(
    reader: &dyn Reader,
    range: &KeyRange,
    direction: Direction,
    count_max: usize,
) -> Result<Vec<(Key, EncodedItem)>> {
    let mut entries = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        entries.push((Key::copy_from_slice(key), Key::copy_from_slice(value)));
        if entries.len() < count_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    reader.scan(range.clone(), direction, &mut visit).await?;
    entries.into_iter().map(|(key, value)| Ok((key, decode_stored(&value)?))).collect()
}

/// What a walk has not visited yet.
enum Rest<'a> {
    Now(&'a dyn Reader, KeyRange),
    /// It knows by itself where it stopped.
    Past(Box<Walk<'a>>),
}

impl Rest<'_> {
    fn continue_after(&mut self, key: &Key, direction: Direction) {
        if let Rest::Now(_, range) = self {
            *range = after(key, range.clone(), direction);
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Rest::Now(_, range) => range.is_empty(),
            Rest::Past(walk) => walk.is_finished(),
        }
    }
}

/// Where a time slice ended.
struct SliceEnd {
    key: Key,
    /// The item there, if evaluating it takes the filter more than a time slice.
    costly: Option<EncodedItem>,
}

enum Evaluated {
    Now(ControlFlow<()>),
    Later(EncodedItem),
}

/// A page under construction.
struct Page<'q> {
    source: ReadSource<'q>,
    selection: &'q Selection<'q>,
    time_slice: TimeSlice,
    limit: u64,
    consistent: bool,
    items: ItemBuffer,
    count: u64,
    scanned_count: u64,
    /// The size of everything evaluated: the index's entries, or the table's items.
    evaluated_size_bytes: u64,
    /// The size of what was fetched from the table in addition, which also fills the page.
    fetched_size_bytes: u64,
    fetched_halves: u64,
    partitions: Option<PagePartitions>,
    last_evaluated_key: Option<Attributes>,
}

impl<'q> Page<'q> {
    fn new(plan: &'q PagePlan<'_>) -> Page<'q> {
        Page {
            source: plan.source,
            selection: &plan.selection,
            time_slice: TimeSlice::new(plan.selection.filter),
            limit: plan.request.limit.map_or(u64::MAX, u64::from),
            consistent: plan.request.consistent,
            items: ItemBuffer::default(),
            count: 0,
            scanned_count: 0,
            evaluated_size_bytes: 0,
            fetched_size_bytes: 0,
            fetched_halves: 0,
            partitions: plan.partitions.clone(),
            last_evaluated_key: None,
        }
    }

    fn evaluations_left(&self) -> usize {
        usize::try_from(self.limit - self.scanned_count).unwrap_or(usize::MAX)
    }

    async fn admits(&mut self, item: ItemRef<'_>) -> bool {
        match self.selection.filter {
            None => true,
            Some(filter) => self.time_slice.evaluate_in_slices(filter, item).await,
        }
    }

    fn enter(&mut self, key: &[u8]) {
        if let Some(partitions) = &mut self.partitions {
            partitions.enter(key);
        }
    }

    fn evaluate_bytes(&mut self, key: &[u8], value: &[u8]) -> Result<Evaluated> {
        self.enter(key);
        let read = ItemRef::parse(value).map_err(|error| {
            tracing::error!(%error, "a stored item does not decode");
            Error::Corrupt { detail: format!("a stored item: {error}") }
        })?;
        if self.time_slice.is_too_short_for(read) {
            return Ok(Evaluated::Later(read.to_encoded()));
        }
        if self.selection.filter.is_none_or(|filter| self.time_slice.evaluate(filter, read)) {
            self.keep(read, read);
        }
        Ok(Evaluated::Now(self.advance(read)))
    }

    async fn evaluate_in_slices(&mut self, read: ItemRef<'_>) -> ControlFlow<()> {
        if self.admits(read).await {
            self.keep(read, read);
        }
        self.advance(read)
    }

    /// `item` is set if the entry passes the filter, or if it is charged anyway.
    fn evaluate_fetched(
        &mut self,
        entry: ItemRef<'_>,
        item: Option<&EncodedItem>,
        admitted: bool,
    ) -> ControlFlow<()> {
        if let Some(item) = item.map(EncodedItem::as_item) {
            let size_bytes = item.size_bytes() as u64;
            self.fetched_size_bytes += size_bytes;
            self.fetched_halves += read_halves(size_bytes, self.consistent);
            if admitted {
                self.keep(entry, item);
            }
        }
        self.advance(entry)
    }

    /// `read` is what the walk found, `item` the table's item if it was fetched.
    fn keep(&mut self, read: ItemRef<'_>, item: ItemRef<'_>) {
        self.count += 1;
        let expected = self.evaluations_left();
        match self.selection.output {
            Output::Nothing => {}
            Output::AsRead => self.items.push(read, expected),
            Output::WholeItem => self.items.push(item, expected),
            Output::Projected(projection) => {
                self.items.push(projection.apply(item).as_item(), expected);
            }
        }
    }

    /// Counts an evaluated item or entry, and ends the page when it is full.
    fn advance(&mut self, read: ItemRef<'_>) -> ControlFlow<()> {
        self.scanned_count += 1;
        self.evaluated_size_bytes += read.size_bytes() as u64;
        if let Some(partitions) = &mut self.partitions {
            partitions.add(read.size_bytes() as u64);
        }
        let size_bytes = self.evaluated_size_bytes + self.fetched_size_bytes;
        if self.scanned_count < self.limit && size_bytes < PAGE_SIZE_BYTES {
            return ControlFlow::Continue(());
        }
        self.last_evaluated_key = Some(key_attributes(self.source.page_keys(), read));
        ControlFlow::Break(())
    }

    fn finish(mut self, plan: &PagePlan<'_>, is_current: bool) -> Read {
        let mut consumed = Consumed::none(plan.table, None);
        if let Some(partitions) =
            self.partitions.as_mut().filter(|_| self.last_evaluated_key.is_some())
        {
            partitions.end_early();
        }
        let halves = match &self.partitions {
            Some(partitions) if plan.rounds_up_each => {
                partitions.halves_of_each(self.consistent).sum()
            }
            _ => read_halves(self.evaluated_size_bytes, self.consistent),
        };
        match self.source.index {
            None => consumed.table_halves = halves,
            Some(index) => {
                consumed.table_halves = self.fetched_halves;
                consumed.add_index(index.definition.kind, &index.definition.name, halves);
            }
        }
        let outcome = PageOutcome {
            items: self.items,
            count: self.count,
            scanned_count: self.scanned_count,
            last_evaluated_key: self.last_evaluated_key.filter(|_| plan.can_continue),
            consumed,
        };
        Read { outcome, is_current, partitions: self.partitions }
    }
}
