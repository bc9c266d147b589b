//! Query: a partition, or a range of its sort keys, in key order.

use zenobe_expression::KeyCondition;
use zenobe_store::{Direction, KeyRange};

use crate::Engine;
use crate::cache::CachedRequest;
use crate::catalog::Table;
use crate::command::{PageOutcome, PageRequest, Query, RuleSet};
use crate::error::{PageError, Result};
use crate::history::AsOf;

use super::conditions::QueryRange;
use super::page::{Origin, PagePlan, Read};
use super::select::{
    Selection, check_filter_is_projected, check_filter_paths, check_projection_paths,
};
use super::source::Source;
use super::start_key::{self, StartKey};

impl Engine {
    pub async fn query(&self, command: &Query) -> Result<PageOutcome> {
        self.query_as(RuleSet::Expressions, command).await
    }

    pub async fn query_as(&self, rules: RuleSet, command: &Query) -> Result<PageOutcome> {
        self.query_at(None, rules, command).await
    }

    pub(super) async fn query_at(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Query,
    ) -> Result<PageOutcome> {
        match &self.query_cache {
            Some(cache) if as_of.is_none() && !command.page.consistent => {
                let request = CachedRequest::Query(rules, command);
                let read = self.query_stored(None, rules, command);
                Box::pin(self.page_through(cache, request, read)).await
            }
            _ => self.query_stored(as_of, rules, command).await,
        }
    }

    async fn query_stored(
        &self,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Query,
    ) -> Result<PageOutcome> {
        let mut table = self.table(&command.table).await?;
        let (index, is_exact) = (command.index.as_deref(), as_of.is_some());
        let replica = self.replica(table.name(), index, command.page.consistent || is_exact);
        if let Some(replica) = replica {
            let origin = Origin { engine: self, replica: Some(&*replica) };
            let read = self.query_once(origin, &table, None, rules, command).await;
            if let Ok(Read { outcome, is_current: true }) = read {
                return Ok(outcome);
            }
        }
        let origin = Origin { engine: self, replica: None };
        loop {
            let read = self.query_once(origin, &table, as_of, rules, command).await;
            if let Some(outcome) = self.accept_read(read, &mut table).await? {
                return Ok(outcome);
            }
        }
    }

    async fn query_once(
        &self,
        origin: Origin<'_>,
        table: &Table,
        as_of: Option<AsOf>,
        rules: RuleSet,
        command: &Query,
    ) -> Result<Read> {
        let page = &command.page;
        let source = Source::resolve(table, command.index.as_deref(), page.consistent)?;
        let past = self.past_of(source, as_of).await?;
        let start = page.start_key.as_ref();
        if let Some(start) = start {
            start_key::check_count(source, start)?;
        }
        let query = QueryRange::resolve(source, &command.key_conditions, start)?;
        let start = match start {
            Some(key) => {
                let start = StartKey::of_query(source, key)?;
                query.check_start_key(source, &start, key)?;
                Some(start)
            }
            None => None,
        };
        check_projection_paths(source, page)?;
        if rules == RuleSet::Expressions {
            check_filter(source, page)?;
        }
        let selection = Selection::resolve(source, page, rules)?;
        if rules == RuleSet::Expressions {
            check_filter_is_projected(source, page)?;
        }
        check_filter_paths(source, page)?;
        let direction = if command.forward { Direction::Forward } else { Direction::Reverse };
        let range = match &start {
            Some(start) => start.cut(query.range, direction),
            None => query.range,
        };
        let plan = PagePlan {
            table: &command.table,
            source,
            selection,
            range,
            direction,
            request: page,
            scan_charge: None,
            past: past.as_ref(),
            can_continue: !source.has_single_items(),
        };
        plan.read(origin).await
    }
}

/// The items that an export reads: all of a table, or those of a partition. It checks what a Query or a Scan would.
pub(crate) fn exported_items(
    table: &Table,
    conditions: Option<&[KeyCondition]>,
    page: &PageRequest,
) -> Result<KeyRange> {
    let source = Source { table, index: None };
    let range = match conditions {
        None => KeyRange::prefix(table.item_prefix().clone()),
        Some(conditions) => QueryRange::resolve(source, conditions, None)?.range,
    };
    check_projection_paths(source, page)?;
    if conditions.is_some() {
        check_filter(source, page)?;
    }
    check_filter_paths(source, page)?;
    Ok(range)
}

/// The filter of a Query may not test key attributes, which the key conditions can express. A Scan
/// has no such rule.
fn check_filter(source: Source<'_>, page: &PageRequest) -> Result<(), PageError> {
    let mut paths = page.filter.iter().flat_map(|filter| filter.paths());
    match paths.find(|path| source.keys().contains(path.root())) {
        Some(path) => Err(PageError::FilterOnKey { attribute: path.root().to_owned() }),
        None => Ok(()),
    }
}
