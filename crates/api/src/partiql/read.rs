//! Executes one page of a read plan.

use std::collections::BTreeMap;

use zenobe_engine::Reads;
use zenobe_engine::command::{
    Consumed, GetItem, PageOutcome, PageRequest, Query, RuleSet, Scan, TableName,
};
use zenobe_engine::error::{Error, PageError};
use zenobe_expression::{Condition, KeyCondition};
use zenobe_value::{Attributes, EncodedItem, ItemBuffer, ItemRef};

use super::next_token::ResumePoint;
use super::plan::{AccessPath, KeyedRead, ReadPlan};
use super::statement_error;
use crate::error::ApiError;
use crate::messages::partiql as messages;

/// A page that has cost as many units as a megabyte does leaves further reads to the next one.
const UNITS_PER_PAGE: u64 = 256;

pub(crate) struct PageOptions {
    pub(crate) consistent: bool,
    pub(crate) limit: Option<u32>,
    pub(crate) start: Option<ResumePoint>,
}

/// A page of a SELECT.
pub(crate) struct SelectedPage {
    rows: Vec<Rows>,
    pub(crate) evaluated: u64,
    pub(crate) next: Option<ResumePoint>,
    pub(crate) consumed: Consumed,
}

enum Rows {
    Item(EncodedItem),
    Page(ItemBuffer),
}

impl SelectedPage {
    pub(crate) fn rows(&self) -> impl Iterator<Item = ItemRef<'_>> {
        self.rows.iter().flat_map(|rows| {
            let (item, page) = match rows {
                Rows::Item(item) => (Some(item.as_item()), None),
                Rows::Page(page) => (None, Some(page.iter())),
            };
            item.into_iter().chain(page.into_iter().flatten())
        })
    }

    pub(crate) fn row_count(&self) -> usize {
        let count = |rows: &Rows| match rows {
            Rows::Item(_) => 1,
            Rows::Page(page) => page.len(),
        };
        self.rows.iter().map(count).sum()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let size_bytes = |rows: &Rows| match rows {
            Rows::Item(item) => item.as_bytes().len(),
            Rows::Page(page) => page.bytes_len(),
        };
        self.rows.iter().map(size_bytes).sum()
    }

    fn add(&mut self, other: SelectedPage) {
        self.rows.extend(other.rows);
        self.evaluated += other.evaluated;
        self.next = other.next;
        self.consumed.add(&other.consumed);
    }

    fn is_full(&self, consistent: bool) -> bool {
        let halves_per_unit = if consistent { 2 } else { 1 };
        self.consumed.total_halves() >= UNITS_PER_PAGE * halves_per_unit
    }
}

/// Reads from the start of the page until it is full or the plan is done.
pub(crate) async fn run(
    source: Reads<'_>,
    table: &TableName,
    plan: &ReadPlan,
    options: PageOptions,
) -> Result<SelectedPage, ApiError> {
    let PageOptions { consistent, limit, start } = options;
    let reader = PlanReader { source, table, plan, consistent };
    let (first, mut start_key) = start.map_or((0, None), |place| (place.read, place.key));
    let reads = match &plan.access {
        AccessPath::Reads(reads) => reads.get(first..).unwrap_or_default(),
        AccessPath::Scan { .. } if first > 0 => return Err(messages::invalid_next_token()),
        AccessPath::Scan { filter } => return reader.scan(filter.clone(), limit, start_key).await,
    };
    let mut page: Option<SelectedPage> = None;
    for (number, read) in reads.iter().enumerate() {
        // Less than the limit was evaluated so far, or the page would have ended.
        let evaluated = page.as_ref().map_or(0, |page| page.evaluated);
        let left = limit.map(|limit| limit.saturating_sub(evaluated as u32));
        let outcome = reader.read(read, first + number, left, start_key.take()).await?;
        let page = match &mut page {
            Some(page) => {
                page.add(outcome);
                page
            }
            None => page.insert(outcome),
        };
        if page.next.is_some() {
            break;
        }
        let is_used_up = limit.is_some_and(|limit| page.evaluated >= u64::from(limit));
        if number + 1 < reads.len() && (is_used_up || page.is_full(consistent)) {
            page.next = Some(ResumePoint { read: first + number + 1, key: None });
            break;
        }
    }
    page.ok_or_else(messages::invalid_next_token)
}

struct PlanReader<'r> {
    source: Reads<'r>,
    table: &'r TableName,
    plan: &'r ReadPlan,
    consistent: bool,
}

impl PlanReader<'_> {
    async fn read(
        &self,
        read: &KeyedRead,
        number: usize,
        limit: Option<u32>,
        start_key: Option<Attributes>,
    ) -> Result<SelectedPage, ApiError> {
        match read {
            KeyedRead::Item { key } => self.item(key, number, limit, start_key).await,
            KeyedRead::Range { conditions, forward, filter } => {
                let page = self.page(filter.clone(), limit, start_key);
                let outcome = self.query(conditions, *forward, page).await?;
                Ok(selected(outcome, number))
            }
        }
    }

    async fn item(
        &self,
        key: &Attributes,
        number: usize,
        limit: Option<u32>,
        start_key: Option<Attributes>,
    ) -> Result<SelectedPage, ApiError> {
        if start_key.is_some() {
            return Ok(self.nothing_more());
        }
        let command = GetItem {
            table: self.table.clone(),
            key: key.clone(),
            projection: self.plan.projection.clone(),
            consistent: self.consistent,
        };
        let outcome = self.source.get_item(&command).await.map_err(statement_error)?;
        let found = outcome.item.is_some();
        // A query that reached its limit can't know that nothing follows, unless the table has no
        // sort key.
        let next = (found && limit == Some(1) && key.len() > 1)
            .then_some(ResumePoint { read: number, key: Some(command.key) });
        Ok(SelectedPage {
            rows: outcome.item.map(Rows::Item).into_iter().collect(),
            evaluated: u64::from(found),
            next,
            consumed: outcome.consumed,
        })
    }

    /// The previous page has already read the item.
    fn nothing_more(&self) -> SelectedPage {
        let consumed = Consumed {
            table: self.table.clone(),
            transactional: None,
            table_halves: if self.consistent { 2 } else { 1 },
            local_index_halves: BTreeMap::new(),
            global_index_halves: BTreeMap::new(),
        };
        SelectedPage { rows: Vec::new(), evaluated: 0, next: None, consumed }
    }

    async fn query(
        &self,
        conditions: &[KeyCondition],
        forward: bool,
        page: PageRequest,
    ) -> Result<PageOutcome, ApiError> {
        let key_conditions = conditions.to_vec();
        let (table, index) = (self.table.clone(), self.plan.index.clone());
        let command = Query { table, index, key_conditions, forward, page };
        self.source.query(RuleSet::PartiQl, &command).await.map_err(page_error)
    }

    async fn scan(
        &self,
        filter: Option<Condition>,
        limit: Option<u32>,
        start_key: Option<Attributes>,
    ) -> Result<SelectedPage, ApiError> {
        let page = self.page(filter, limit, start_key);
        let (table, index) = (self.table.clone(), self.plan.index.clone());
        let command = Scan { table, index, segment: None, page };
        let outcome = self.source.scan(RuleSet::PartiQl, &command).await.map_err(page_error)?;
        Ok(selected(outcome, 0))
    }

    fn page(
        &self,
        filter: Option<Condition>,
        limit: Option<u32>,
        start_key: Option<Attributes>,
    ) -> PageRequest {
        PageRequest {
            filter,
            projection: self.plan.projection.clone(),
            select: None,
            limit,
            start_key,
            consistent: self.consistent,
        }
    }
}

fn selected(outcome: PageOutcome, read: usize) -> SelectedPage {
    let next = outcome.last_evaluated_key.map(|key| ResumePoint { read, key: Some(key) });
    SelectedPage {
        rows: vec![Rows::Page(outcome.items)],
        evaluated: outcome.scanned_count,
        next,
        consumed: outcome.consumed,
    }
}

/// A start key comes from a token, so a fault of the key is a fault of the token.
fn page_error(error: Error) -> ApiError {
    match error {
        Error::Page(
            PageError::StartKeyInvalid
            | PageError::StartKeyMismatch { .. }
            | PageError::StartKeyOfSingleItem { .. }
            | PageError::StartKeyOutsideQuery
            | PageError::StartKeyOutsideSortCondition
            | PageError::QueryNotRestartable
            | PageError::StartKeyOutsideSegment { .. },
        ) => messages::invalid_next_token(),
        other => statement_error(other),
    }
}
