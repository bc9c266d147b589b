//! Reads: single items, and the pages of a query or scan.

use std::collections::BTreeSet;

use zenobe_engine::command::{Consumed, Segment, Select};
use zenobe_engine::error::{KeyError, PageError};
use zenobe_engine::schema::{IndexKind, IndexProjection, KeyAttribute, KeySchema};
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeValue, Attributes};

use super::Twin;
use super::condition::{Comparison, Test};
use super::fault::{Fault, Refusal};
use super::hash;
use super::projection::project;
use super::route::Route;
use super::schema::{Index, IndexState};
use super::table::{Entry, Place, Table, first_empty, nothing_consumed, read_halves};
use super::value::{has_type, is_empty, item_size_bytes, key_of, size_bytes};

const PAGE_SIZE_BYTES: u64 = 1024 * 1024;

/// What a query and a scan share.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub index: Option<String>,
    pub filter: Option<Test>,
    pub projection: Option<Vec<Route>>,
    pub select: Option<Select>,
    pub limit: Option<u32>,
    pub consistent: bool,
}

#[derive(Debug, Clone)]
pub struct Query {
    pub table: String,
    pub reading: Reading,
    pub conditions: Vec<(String, KeyTest)>,
    pub forward: bool,
    pub start: Option<Attributes>,
}

#[derive(Debug, Clone)]
pub enum KeyTest {
    Compare(Comparison, AttributeValue),
    Between(AttributeValue, AttributeValue),
    BeginsWith(AttributeValue),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub items: Vec<Attributes>,
    pub count: u64,
    pub scanned_count: u64,
    pub last_evaluated_key: Option<Attributes>,
    pub consumed: Consumed,
}

impl Twin {
    pub fn get(
        &self,
        table: &str,
        key: &Attributes,
        projection: Option<&[Route]>,
        consistent: bool,
    ) -> Result<(Option<Attributes>, Consumed), Refusal> {
        let table = self.table(table)?;
        let key = table.check_key(key)?;
        table.check_routes(projection.into_iter().flatten())?;
        let item = table.items.get(&key);
        let mut consumed = nothing_consumed(&table.name);
        consumed.table_halves = read_halves(item.map_or(0, item_size_bytes), consistent);
        let projected = item.map(|item| match projection {
            Some(routes) => project(routes, item),
            None => item.clone(),
        });
        Ok((projected, consumed))
    }

    /// All pages of a query, from its start key on.
    pub fn query(&self, query: &Query) -> Result<Vec<Page>, Refusal> {
        let table = self.table(&query.table)?;
        let source = table.source(&query.reading)?;
        if let Some(start) = &query.start {
            source.check_start_count(start)?;
        }
        source.check_conditions(&query.conditions, query.start.as_ref())?;
        if let Some(start) = &query.start {
            source.check_rest_of_start(start)?;
            source.check_start_against_conditions(start, &query.conditions)?;
        }
        source.table.check_routes(query.reading.projection.iter().flatten())?;
        source.check_filter(&query.reading)?;
        source.check_selection(&query.reading)?;
        source.check_filter_is_projected(&query.reading)?;
        source.table.check_routes(query.reading.filter.iter().flat_map(Test::routes))?;
        let mut entries = source.entries();
        entries.retain(|entry| source.satisfies(&entry.attributes, &query.conditions));
        entries.sort_by(|one, other| one.place.cmp(&other.place));
        if let Some(start) = &query.start {
            let place = source.place_of(start);
            entries.retain(
                |entry| {
                    if query.forward { entry.place > place } else { entry.place < place }
                },
            );
        }
        if !query.forward {
            entries.reverse();
        }
        let mut pages = source.pages(&entries, &query.reading, None);
        if source.index.is_none() && source.keys().sort.is_empty() {
            // At most one item can be found, so nothing can follow.
            pages.truncate(1);
            pages[0].last_evaluated_key = None;
        }
        Ok(pages)
    }

    /// The checks of a scan.
    pub fn check_scan(&self, table: &str, reading: &Reading) -> Result<(), Refusal> {
        let source = self.table(table)?.source(reading)?;
        source.check_selection(reading)?;
        source.table.check_routes(reading.projection.iter().flatten())?;
        source.table.check_routes(reading.filter.iter().flat_map(Test::routes))
    }

    /// All pages of a scan, or of a segment of it.
    pub fn scan(&self, table: &str, reading: &Reading, segment: Option<Segment>) -> Vec<Page> {
        let source = self.tables[table].source(reading).expect("the scan was checked");
        let mut entries = source.entries();
        if let Some(Segment { number, total }) = segment {
            entries.retain(|entry| hash::segment(entry.partition_hash, total) == number);
        }
        entries.sort_by(|one, other| {
            let place = |entry: &Entry| (entry.partition_hash, entry.place.clone());
            place(one).cmp(&place(other))
        });
        let (number, total) = segment.map_or((0, 1), |segment| (segment.number, segment.total));
        let charged = source.index.is_none().then(|| Quarters::of_segment(number, total));
        source.pages(&entries, reading, charged)
    }
}

/// A table or an index as a source for reads.
pub struct Source<'t> {
    pub table: &'t Table,
    pub index: Option<&'t Index>,
}

impl Table {
    pub fn source(&self, reading: &Reading) -> Result<Source<'_>, Refusal> {
        let Some(name) = &reading.index else {
            return Ok(Source { table: self, index: None });
        };
        let index = self.index(name).ok_or(Fault::IndexNotFound)?;
        match index.state {
            IndexState::Active => {}
            IndexState::Creating { .. } => {
                return Err(PageError::Backfilling { index: name.clone() }.into());
            }
            IndexState::Deleting => return Err(Fault::IndexNotFound.into()),
        }
        if reading.consistent && index.kind == IndexKind::Global {
            return Err(PageError::ConsistentReadOnGlobalIndex.into());
        }
        Ok(Source { table: self, index: Some(index) })
    }
}

impl Source<'_> {
    pub fn keys(&self) -> &KeySchema {
        self.index.map_or(&self.table.keys, |index| &index.keys)
    }

    pub fn entries(&self) -> Vec<Entry> {
        let items = self.table.items.values();
        items.filter_map(|item| self.table.entry(self.index, item)).collect()
    }

    /// The keys of the index and those of the table, each attribute once.
    fn page_keys(&self) -> Vec<KeyAttribute> {
        let mut keys: Vec<KeyAttribute> = self.keys().attributes().cloned().collect();
        for key in self.table.keys.attributes() {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    fn check_start_count(&self, start: &Attributes) -> Result<(), Refusal> {
        let fits = start.len() == self.page_keys().len();
        if fits { Ok(()) } else { Err(PageError::StartKeyInvalid.into()) }
    }

    /// An attribute of the queried schema.
    fn check_start_attribute(
        &self,
        start: Option<&Attributes>,
        key: &KeyAttribute,
    ) -> Result<(), Refusal> {
        let Some(start) = start else { return Ok(()) };
        match start.get(&key.name) {
            None => Err(PageError::StartKeyInvalid.into()),
            Some(value) if !has_type(value, key.scalar_type) => {
                Err(PageError::StartKeyMismatch { table_key: false }.into())
            }
            Some(_) => first_empty([key], start).map_or(Ok(()), |error| Err(error.into())),
        }
    }

    /// Checks the rest: the table's keys.
    fn check_rest_of_start(&self, start: &Attributes) -> Result<(), Refusal> {
        if !self.page_keys().iter().all(|key| start.contains_key(&key.name)) {
            return Err(PageError::StartKeyInvalid.into());
        }
        let keys = self.table.key_attributes();
        if keys.iter().any(|key| !has_type(&start[&key.name], key.scalar_type)) {
            return Err(PageError::StartKeyMismatch { table_key: true }.into());
        }
        first_empty(&keys, start).map_or(Ok(()), |error| Err(error.into()))
    }

    fn check_conditions(
        &self,
        conditions: &[(String, KeyTest)],
        start: Option<&Attributes>,
    ) -> Result<(), Refusal> {
        let keys = self.keys();
        let attributes = keys.attributes().count();
        if conditions.len() > attributes {
            let single = attributes == 1 && conditions.len() == 2;
            let given = conditions.len();
            return Err(if single {
                PageError::KeyConditionNotSupported.into()
            } else {
                PageError::TooManyKeyConditions { given, attributes }.into()
            });
        }
        let find = |attribute: &KeyAttribute| {
            let found = conditions.iter().find(|(name, _)| *name == attribute.name);
            let missing = PageError::MissingKeyCondition { attribute: attribute.name.clone() };
            found.map(|(_, test)| test).ok_or(missing)
        };
        let is_equal = |attribute: &&KeyAttribute| {
            matches!(find(attribute), Ok(KeyTest::Compare(Comparison::Equal, _)))
        };
        let unequal = |attributes: &[KeyAttribute]| -> Vec<String> {
            let unequal = attributes.iter().filter(|attribute| !is_equal(attribute));
            unequal.map(|attribute| attribute.name.clone()).collect()
        };
        let has_multiple = keys.partition.len() > 1 || keys.sort.len() > 1;
        for attribute in &keys.partition {
            self.check_start_attribute(start, attribute)?;
            let attributes = unequal(&keys.partition);
            if has_multiple && !attributes.is_empty() {
                return Err(PageError::PartitionConditionsNotEqual { attributes }.into());
            }
            let test = find(attribute)?;
            check_types(attribute, test)?;
            let KeyTest::Compare(Comparison::Equal, value) = test else {
                return Err(PageError::KeyConditionNotSupported.into());
            };
            check_values(attribute, test)?;
            if size_bytes(value) > PARTITION_KEY_SIZE_BYTES_MAX as u64 {
                return Err(KeyError::PartitionKeyTooLong.into());
            }
        }
        for (position, attribute) in keys.sort.iter().enumerate() {
            self.check_start_attribute(start, attribute)?;
            if position == 0
                && let Some(last) = keys.sort.iter().rposition(|key| find(key).is_ok())
            {
                let attributes = unequal(&keys.sort[..last]);
                if !attributes.is_empty() {
                    let behind = keys.sort[last].name.clone();
                    return Err(PageError::SortConditionsNotEqual { attributes, behind }.into());
                }
            }
            if position + keys.partition.len() >= conditions.len() {
                continue;
            }
            let test = find(attribute)?;
            check_types(attribute, test)?;
            check_values(attribute, test)?;
            if test.values().iter().any(|value| size_bytes(value) > SORT_KEY_SIZE_BYTES_MAX as u64)
            {
                return Err(KeyError::SortKeyTooLong.into());
            }
        }
        Ok(())
    }

    fn check_start_against_conditions(
        &self,
        start: &Attributes,
        conditions: &[(String, KeyTest)],
    ) -> Result<(), Refusal> {
        let keys = self.keys();
        let is_partition = |name: &str| keys.partition.iter().any(|key| key.name == name);
        let holds = |on_partition: bool| {
            let mut relevant =
                conditions.iter().filter(|(name, _)| is_partition(name) == on_partition);
            relevant.all(|(name, test)| test.holds(start.get(name)))
        };
        let has_sort_condition = conditions.iter().any(|(name, _)| !is_partition(name));
        match (has_sort_condition, holds(true), holds(false)) {
            (false, false, _) => Err(PageError::StartKeyOutsideQuery.into()),
            (false, true, _) if self.index.is_none() && keys.sort.is_empty() => {
                let key = Box::new(start.clone());
                Err(PageError::StartKeyOfSingleItem { key }.into())
            }
            (true, _, false) => Err(PageError::StartKeyOutsideSortCondition.into()),
            (true, false, true) => Err(PageError::QueryNotRestartable.into()),
            _ => Ok(()),
        }
    }

    /// A query's filter may not use the keys of its conditions.
    fn check_filter(&self, reading: &Reading) -> Result<(), Refusal> {
        let routes = reading.filter.iter().flat_map(Test::routes);
        let faults: Vec<Fault> = routes
            .filter(|route| self.keys().contains(route.root()))
            .map(|route| PageError::FilterOnKey { attribute: route.root().to_owned() })
            .map(Fault::Page)
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(Refusal::AnyOf(faults)) }
    }

    /// A query of an index may only filter by attributes that the index has.
    fn check_filter_is_projected(&self, reading: &Reading) -> Result<(), Refusal> {
        let routes = reading.filter.iter().flat_map(Test::routes);
        let lacking = routes.map(|route| route.root().to_owned()).filter(|root| self.lacks(root));
        let attributes: BTreeSet<String> = lacking.collect();
        match self.index {
            Some(index) if !attributes.is_empty() => Err(PageError::FilterNotProjected {
                index: index.name.clone(),
                attributes: attributes.into_iter().collect(),
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// A global index can't return attributes that it doesn't have.
    fn check_selection(&self, reading: &Reading) -> Result<(), Refusal> {
        let Some(index) = self.index.filter(|index| index.kind == IndexKind::Global) else {
            return Ok(());
        };
        let name = || index.name.clone();
        match (reading.select, &reading.projection) {
            (Some(Select::Count), _) => Ok(()),
            (_, Some(routes)) => {
                let mut attributes: Vec<String> = Vec::new();
                for route in routes {
                    let root = route.root().to_owned();
                    if !index.projects(&self.table.keys, &root) && !attributes.contains(&root) {
                        attributes.push(root);
                    }
                }
                if attributes.is_empty() {
                    return Ok(());
                }
                Err(PageError::NotProjected { index: name(), attributes }.into())
            }
            (Some(Select::AllAttributes), None) if index.projection != IndexProjection::All => {
                Err(PageError::SelectAllNotProjected { index: name() }.into())
            }
            _ => Ok(()),
        }
    }

    fn satisfies(&self, item: &Attributes, conditions: &[(String, KeyTest)]) -> bool {
        conditions.iter().all(|(name, test)| test.holds(item.get(name)))
    }

    fn place_of(&self, start: &Attributes) -> Place {
        let primary = key_of(&self.table.key_attributes(), start);
        Place {
            sort: key_of(&self.keys().sort, start).expect("the start key was checked"),
            tie: hash::hash(&primary.expect("the start key was checked")),
        }
    }

    /// Cuts entries into pages. Another page, possibly empty, follows each full one.
    fn pages(
        &self,
        entries: &[Entry],
        reading: &Reading,
        mut charged: Option<Quarters>,
    ) -> Vec<Page> {
        let mut pages = Vec::new();
        let mut rest = entries;
        loop {
            let (page, evaluated) = self.page(rest, reading, charged);
            let is_last = page.last_evaluated_key.is_none();
            pages.push(page);
            if let (Some(quarters), Some(last)) = (&mut charged, rest[..evaluated].last()) {
                quarters.first = quarter(last);
            }
            rest = &rest[evaluated..];
            if is_last {
                return pages;
            }
        }
    }

    /// One page, and how many entries it evaluated.
    fn page(
        &self,
        entries: &[Entry],
        reading: &Reading,
        charged: Option<Quarters>,
    ) -> (Page, usize) {
        let (mut items, mut count, mut evaluated) = (Vec::new(), 0, 0);
        let (mut evaluated_bytes, mut fetched_bytes, mut fetched_halves) = (0, 0, 0);
        let mut last_evaluated_key = None;
        for entry in entries {
            let item = &self.table.items[&entry.primary];
            let seen = Some(&entry.attributes);
            let admitted = reading.filter.as_ref().is_none_or(|filter| filter.holds(seen));
            if admitted && self.fetches_for_result(reading) {
                fetched_bytes += item_size_bytes(item);
                fetched_halves += read_halves(item_size_bytes(item), reading.consistent);
            }
            if admitted {
                count += 1;
                items.extend(self.shown(entry, item, reading));
            }
            evaluated += 1;
            evaluated_bytes += item_size_bytes(&entry.attributes);
            let is_full = reading.limit.is_some_and(|limit| evaluated == limit as usize)
                || evaluated_bytes + fetched_bytes >= PAGE_SIZE_BYTES;
            if is_full {
                let keys = self.page_keys().into_iter();
                let key = keys.map(|key| (key.name.clone(), entry.attributes[&key.name].clone()));
                last_evaluated_key = Some(key.collect());
                break;
            }
        }
        let mut consumed = nothing_consumed(&self.table.name);
        let halves = match charged {
            None => read_halves(evaluated_bytes, reading.consistent),
            Some(quarters) => {
                let is_full = last_evaluated_key.is_some();
                quarters.halves(&entries[..evaluated], is_full, reading.consistent)
            }
        };
        match self.index {
            None => consumed.table_halves = halves,
            Some(index) => {
                consumed.table_halves = fetched_halves;
                let arm = match index.kind {
                    IndexKind::Local => &mut consumed.local_index_halves,
                    IndexKind::Global => &mut consumed.global_index_halves,
                };
                arm.insert(index.name.clone(), halves);
            }
        }
        let scanned_count = evaluated as u64;
        (Page { items, count, scanned_count, last_evaluated_key, consumed }, evaluated)
    }

    fn shown(&self, entry: &Entry, item: &Attributes, reading: &Reading) -> Option<Attributes> {
        match (reading.select, &reading.projection) {
            (Some(Select::Count), _) => None,
            (_, Some(routes)) => Some(project(routes, item)),
            (Some(Select::AllAttributes), None) => Some(item.clone()),
            (_, None) => Some(entry.attributes.clone()),
        }
    }

    fn fetches_for_result(&self, reading: &Reading) -> bool {
        self.is_local()
            && match (reading.select, &reading.projection) {
                (Some(Select::Count), _) => false,
                (_, Some(routes)) => routes.iter().any(|route| self.lacks(route.root())),
                (Some(Select::AllAttributes), None) => {
                    self.index.is_some_and(|index| index.projection != IndexProjection::All)
                }
                (_, None) => false,
            }
    }

    fn is_local(&self) -> bool {
        self.index.is_some_and(|index| index.kind == IndexKind::Local)
    }

    fn lacks(&self, name: &str) -> bool {
        self.index.is_some_and(|index| !index.projects(&self.table.keys, name))
    }
}

/// The quarters of the hash space that a page of an on-demand table may pass through. What it reads
/// in each of them is rounded up.
#[derive(Debug, Clone, Copy)]
struct Quarters {
    first: u32,
    last: u32,
}

impl Quarters {
    fn of_segment(number: u32, total: u32) -> Quarters {
        // A segment's first and last quarter, by enumeration: quarters and segments are few.
        let touched: Vec<u32> =
            (0..4 * total).filter(|part| part / 4 == number).map(|part| part / total).collect();
        Quarters { first: touched[0], last: touched[touched.len() - 1] }
    }

    fn halves(self, evaluated: &[Entry], is_full: bool, consistent: bool) -> u64 {
        let last = if is_full { quarter(&evaluated[evaluated.len() - 1]) } else { self.last };
        let bytes = |wanted: u32| -> u64 {
            let entries = evaluated.iter().filter(|entry| quarter(entry) == wanted);
            entries.map(|entry| item_size_bytes(&entry.attributes)).sum()
        };
        (self.first..=last).map(|quarter| read_halves(bytes(quarter), consistent)).sum()
    }
}

fn quarter(entry: &Entry) -> u32 {
    hash::segment(entry.partition_hash, 4)
}

impl KeyTest {
    pub fn holds(&self, value: Option<&AttributeValue>) -> bool {
        match self {
            KeyTest::Compare(comparison, other) => comparison.holds(value, Some(other)),
            KeyTest::Between(low, high) => {
                Comparison::GreaterOrEqual.holds(value, Some(low))
                    && Comparison::LessOrEqual.holds(value, Some(high))
            }
            KeyTest::BeginsWith(prefix) => match (value, prefix) {
                (Some(AttributeValue::S(text)), AttributeValue::S(prefix)) => {
                    text.starts_with(prefix.as_str())
                }
                (Some(AttributeValue::B(bytes)), AttributeValue::B(prefix)) => {
                    bytes.starts_with(prefix)
                }
                _ => false,
            },
        }
    }

    pub fn values(&self) -> Vec<&AttributeValue> {
        match self {
            KeyTest::Compare(_, value) | KeyTest::BeginsWith(value) => vec![value],
            KeyTest::Between(low, high) => vec![low, high],
        }
    }
}

fn check_types(attribute: &KeyAttribute, test: &KeyTest) -> Result<(), Refusal> {
    if test.values().iter().all(|value| has_type(value, attribute.scalar_type)) {
        return Ok(());
    }
    Err(PageError::ConditionTypeMismatch.into())
}

fn check_values(attribute: &KeyAttribute, test: &KeyTest) -> Result<(), Refusal> {
    if !test.values().iter().any(|value| is_empty(value)) {
        return Ok(());
    }
    let KeyAttribute { name, scalar_type } = attribute.clone();
    Err(PageError::EmptyKeyValue { attribute: name, scalar_type }.into())
}
