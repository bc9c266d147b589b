//! Contributor Insights: whether a table or a global index reports its hottest keys.
//!
//! The server counts the keys of all metered tables anyway. The setting names the
//! reports, and meters a table whose throughput would otherwise be off.

use std::sync::Arc;

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::{InsightsPage, InsightsSummary, TableName, UpdateContributorInsights};
use crate::error::{Error, InsightsError, Result};
use crate::schema::{
    ContributorInsights, IndexDefinition, IndexStatus, InsightsMode, InsightsStatus, KeySchema,
    Namespace, TableDefinition,
};

/// How many tables one page of all insights looks at.
const TABLES_PER_PAGE: usize = 500;

/// What an update found and left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsightsUpdate {
    pub insights: Option<ContributorInsights>,
    pub is_changed: bool,
}

impl Engine {
    pub async fn update_contributor_insights(
        &self,
        request: &UpdateContributorInsights,
    ) -> Result<InsightsUpdate> {
        let now_ms = self.clock.now_ms();
        let index = request.index.as_deref();
        let others = self.insight_rules_besides(&request.table, index);
        let rules_max = self.limits.insight_rules_max;
        let decide = |before: &TableDefinition| {
            let (current, keys) = settings(before, index)?;
            check_active(before, index)?;
            let wanted = match request.enable {
                true => enabled(current, request.mode, now_ms),
                false => disabled(current, now_ms),
            };
            let wanted = wanted.map(|wanted| {
                let fits = others + rule_count(keys, Some(&wanted)) <= rules_max;
                if fits || !request.enable { wanted } else { failed(wanted) }
            });
            let mut edit = Edit::new(before.clone());
            set(&mut edit.definition, index, wanted);
            Ok(edit)
        };
        let changed = self.catalog.change(&*self.store, &request.table, decide).await;
        let changed = changed.map_err(|error| match error {
            Error::TableFilling { .. } => Error::Insights(InsightsError::TableNotActive),
            other => other,
        })?;
        let (before, _) = settings(changed.before.definition(), index)?;
        let (insights, _) = settings(changed.after.definition(), index)?;
        Ok(InsightsUpdate { insights, is_changed: before != insights })
    }

    /// The setting of a table or one of its global indexes, and the rules that exist for it.
    pub async fn describe_contributor_insights(
        &self,
        name: &TableName,
        index: Option<&str>,
    ) -> Result<(Option<ContributorInsights>, Vec<String>)> {
        let table = self.current_table(name).await?;
        let (insights, keys) = settings(table.definition(), index)?;
        let rules = insights.map_or_else(Vec::new, |insights| {
            rule_names(&name.name, index, !keys.sort.is_empty(), &insights)
        });
        Ok((insights, rules))
    }

    /// Up to `limit` insights that are not disabled, after `start`: a table's before those of its
    /// indexes. A page may be empty although there are more.
    pub async fn list_contributor_insights(
        &self,
        namespace: &Arc<Namespace>,
        table: Option<&str>,
        start: Option<&ListPosition>,
        limit: usize,
    ) -> Result<InsightsPage> {
        let name_of =
            |name: &str| TableName { namespace: namespace.clone(), name: name.to_owned() };
        let (names, mut more) = match table {
            Some(name) => (vec![name.to_owned()], false),
            None => {
                let first = start.map(|(table, _)| table.clone());
                let after = first.as_deref();
                let page = self.list_tables(namespace, after, TABLES_PER_PAGE).await?;
                (first.into_iter().chain(page.names).collect(), page.more)
            }
        };
        let mut summaries = Vec::new();
        let mut last = None;
        'tables: for name in names {
            let found = match self.current_table(&name_of(&name)).await {
                // Deleted since it was listed.
                Err(Error::TableNotFound { .. }) if table.is_none() => continue,
                found => found?,
            };
            for summary in listed(found.definition()) {
                let place = (summary.table.clone(), summary.index.clone());
                if start.is_some_and(|start| !is_after(found.definition(), &place, start)) {
                    continue;
                }
                if summaries.len() == limit {
                    more = true;
                    break 'tables;
                }
                last = Some(place);
                summaries.push(summary);
            }
            if more && summaries.len() < limit {
                // If the page ends without its last table's insights, the next one begins after that table.
                last = Some(end_of(found.definition()));
            }
        }
        Ok(InsightsPage { summaries, next: last.filter(|_| more) })
    }

    /// How many rules the caller's other tables and indexes have. Two nodes that enable insights at
    /// the same moment may exceed the limit together.
    fn insight_rules_besides(&self, name: &TableName, index: Option<&str>) -> usize {
        let tables = self.catalog.tables();
        let tables = tables.iter().filter(|(other, _)| other.namespace == name.namespace);
        tables
            .map(|(other, table)| {
                let definition = table.definition();
                let counted = |at: Option<&str>| other != name || at != index;
                let of_table = counted(None)
                    .then(|| rule_count(&definition.keys, definition.insights.as_ref()));
                let of_indexes = definition.global_indexes.iter().map(|index| {
                    let count = rule_count(&index.keys, index.insights.as_ref());
                    if counted(Some(&index.name)) { count } else { 0 }
                });
                of_table.unwrap_or_default() + of_indexes.sum::<usize>()
            })
            .sum()
    }
}

fn global_index<'d>(definition: &'d TableDefinition, name: &str) -> Result<&'d IndexDefinition> {
    let found = definition.global_indexes.iter().find(|index| index.name == name);
    found.ok_or_else(|| {
        Error::Insights(InsightsError::IndexNotFound {
            table: definition.name.clone(),
            index: name.to_owned(),
        })
    })
}

fn settings<'d>(
    definition: &'d TableDefinition,
    index: Option<&str>,
) -> Result<(Option<ContributorInsights>, &'d KeySchema)> {
    Ok(match index {
        None => (definition.insights, &definition.keys),
        Some(name) => {
            let index = global_index(definition, name)?;
            (index.insights, &index.keys)
        }
    })
}

fn set(
    definition: &mut TableDefinition,
    index: Option<&str>,
    insights: Option<ContributorInsights>,
) {
    match index {
        None => definition.insights = insights,
        Some(name) => {
            let indexes = definition.global_indexes.iter_mut();
            indexes.filter(|index| index.name == name).for_each(|index| index.insights = insights);
        }
    }
}

fn check_active(definition: &TableDefinition, index: Option<&str>) -> Result<()> {
    match index.map(|name| global_index(definition, name)).transpose()? {
        Some(index) if index.status != IndexStatus::Active => {
            Err(Error::Insights(InsightsError::IndexNotActive))
        }
        _ => Ok(()),
    }
}

/// Rules that the new mode keeps also keep their names.
fn enabled(
    current: Option<ContributorInsights>,
    mode: InsightsMode,
    now_ms: u64,
) -> Option<ContributorInsights> {
    let is_so = |it: &ContributorInsights| it.status == InsightsStatus::Enabled && it.mode == mode;
    if current.as_ref().is_some_and(is_so) {
        return current;
    }
    let accessed = current.and_then(|it| it.accessed_rules_since_ms).unwrap_or(now_ms);
    let throttled = current.and_then(|it| it.throttled_rules_since_ms).unwrap_or(now_ms);
    Some(ContributorInsights {
        status: InsightsStatus::Enabled,
        mode,
        changed_at_ms: now_ms,
        accessed_rules_since_ms: (mode == InsightsMode::AccessedAndThrottledKeys)
            .then_some(accessed),
        throttled_rules_since_ms: Some(throttled),
    })
}

fn disabled(current: Option<ContributorInsights>, now_ms: u64) -> Option<ContributorInsights> {
    let current = current?;
    if current.status == InsightsStatus::Disabled {
        return Some(current);
    }
    Some(ContributorInsights {
        status: InsightsStatus::Disabled,
        changed_at_ms: now_ms,
        accessed_rules_since_ms: None,
        throttled_rules_since_ms: None,
        ..current
    })
}

fn failed(wanted: ContributorInsights) -> ContributorInsights {
    ContributorInsights {
        status: InsightsStatus::Failed,
        accessed_rules_since_ms: None,
        throttled_rules_since_ms: None,
        ..wanted
    }
}

/// One rule for partition keys and one for whole keys, for each kind of report.
fn rule_count(keys: &KeySchema, insights: Option<&ContributorInsights>) -> usize {
    let Some(insights) = insights else { return 0 };
    let reports = [insights.accessed_rules_since_ms, insights.throttled_rules_since_ms];
    let per_report = if keys.sort.is_empty() { 1 } else { 2 };
    per_report * reports.iter().flatten().count()
}

fn rule_names(
    table: &str,
    index: Option<&str>,
    has_sort_key: bool,
    insights: &ContributorInsights,
) -> Vec<String> {
    let place = index.map_or_else(|| table.to_owned(), |index| format!("{table}-{index}"));
    let reports =
        [('C', insights.accessed_rules_since_ms), ('T', insights.throttled_rules_since_ms)];
    let mut names = Vec::new();
    for (report, since_ms) in reports {
        let Some(since_ms) = since_ms else { continue };
        let keys: &[&str] = if has_sort_key { &["PK", "SK"] } else { &["PK"] };
        names
            .extend(keys.iter().map(|key| {
                format!("DynamoDBContributorInsights-{key}{report}-{place}-{since_ms}")
            }));
    }
    names
}

/// The insights of a table and its indexes that ListContributorInsights shows.
fn listed(definition: &TableDefinition) -> impl Iterator<Item = InsightsSummary> {
    let of_table = (None, definition.insights);
    let of_indexes =
        definition.global_indexes.iter().map(|index| (Some(index.name.clone()), index.insights));
    let all = std::iter::once(of_table).chain(of_indexes);
    all.filter_map(|(index, insights)| {
        let insights = insights.filter(|it| it.status != InsightsStatus::Disabled)?;
        Some(InsightsSummary { table: definition.name.clone(), index, insights })
    })
}

type ListPosition = (String, Option<String>);

/// Tables are listed by name, indexes in the order of the definition.
fn is_after(definition: &TableDefinition, place: &ListPosition, start: &ListPosition) -> bool {
    if place.0 != start.0 {
        return place.0 > start.0;
    }
    let position = |index: &Option<String>| {
        let name = index.as_ref()?;
        // An index that has been deleted since counts as the last.
        let found = definition.global_indexes.iter().position(|index| index.name == *name);
        Some(found.unwrap_or(usize::MAX))
    };
    position(&place.1) > position(&start.1)
}

fn end_of(definition: &TableDefinition) -> ListPosition {
    (definition.name.clone(), definition.global_indexes.last().map(|index| index.name.clone()))
}
