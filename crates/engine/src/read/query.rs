//! Query: a partition, or a range of its sort keys, in key order.

use zenobe_expression::KeyCondition;
use zenobe_store::{Direction, KeyRange};

use crate::Engine;
use crate::cache::CachedRequest;
use crate::catalog::Table;
use crate::command::{PageOutcome, PageRequest, Query, RuleSet, TableName};
use crate::error::{PageError, Result};
use crate::history::AsOf;
use crate::request_facts::PageAccess;

use super::page::{Origin, PagePlan, Read};
use super::page_command::PageCommand;
use super::query_range::QueryRange;
use super::select::{
    Selection, check_filter_is_projected, check_filter_paths, check_projection_paths,
};
use super::source::ReadSource;
use super::start_key::{self, StartKey};

impl Engine {
    pub async fn query(&self, command: &Query) -> Result<PageOutcome> {
        self.query_as(RuleSet::Expressions, command).await
    }

    pub async fn query_as(&self, rules: RuleSet, command: &Query) -> Result<PageOutcome> {
        self.page_at(None, rules, command).await
    }
}

impl PageCommand for Query {
    fn table(&self) -> &TableName {
        &self.table
    }

    fn index(&self) -> Option<&str> {
        self.index.as_deref()
    }

    fn page(&self) -> &PageRequest {
        &self.page
    }

    fn cached(&self, rules: RuleSet) -> CachedRequest<'_> {
        CachedRequest::Query(rules, self)
    }

    async fn read(
        &self,
        origin: Origin<'_>,
        table: &Table,
        as_of: Option<AsOf>,
        rules: RuleSet,
    ) -> Result<Read> {
        let Origin { engine, .. } = origin;
        let page = &self.page;
        let source = ReadSource::resolve(table, self.index.as_deref(), page.consistent)?;
        let past = engine.past_of(source, as_of).await?;
        let start = page.start_key.as_ref();
        if let Some(start) = start {
            start_key::check_count(source, start)?;
        }
        let query = QueryRange::resolve(source, &self.key_conditions, start)?;
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
        let direction = if self.forward { Direction::Forward } else { Direction::Reverse };
        let range = match &start {
            Some(start) => start.cut(query.range, direction),
            None => query.range,
        };
        let plan = PagePlan {
            table: &self.table,
            source,
            selection,
            range,
            direction,
            request: page,
            partitions: None,
            rounds_up_each: false,
            access: PageAccess::Query { sort_condition: sort_condition(source, self) },
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
    let source = ReadSource { table, index: None };
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

/// The operator of the condition on the last sort attribute that has one.
fn sort_condition(source: ReadSource<'_>, command: &Query) -> Option<&'static str> {
    let sort = &source.keys().sort;
    let is_sort = |name: &str| sort.iter().any(|attribute| attribute.name == name);
    let mut conditions = command.key_conditions.iter();
    let condition = conditions.rfind(|condition| is_sort(&condition.attribute))?;
    Some(condition.operator.name())
}

/// The filter of a Query may not test key attributes, which the key conditions can express. A Scan
/// has no such rule.
fn check_filter(source: ReadSource<'_>, page: &PageRequest) -> Result<(), PageError> {
    let mut paths = page.filter.iter().flat_map(|filter| filter.paths());
    match paths.find(|path| source.keys().contains(path.root())) {
        Some(path) => Err(PageError::FilterOnKey { attribute: path.root().to_owned() }),
        None => Ok(()),
    }
}
