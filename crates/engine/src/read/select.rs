//! Which attributes a page returns, and whether a local index has to fetch them from its table.

use zenobe_expression::{Condition, Projection};

use crate::command::{PageRequest, RuleSet, Select};
use crate::error::{PageError, Result};
use crate::indexes::projects;
use crate::keys::check_paths;
use crate::schema::{IndexKind, IndexProjection};

use super::source::ReadSource;

pub(super) struct Selection<'q> {
    pub output: Output<'q>,
    pub filter: Option<&'q Condition>,
    /// Whether the result needs attributes that a local index must look up in its table.
    pub fetches_items: bool,
    /// Whether it also does so for rows that the filter rejects, as PartiQL is charged.
    pub fetches_rejected: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Output<'q> {
    Nothing,
    /// What the walk reads: the item, or the index entry with its projection.
    AsRead,
    /// The table's item, when an index is read.
    WholeItem,
    Projected(&'q Projection),
}

impl<'q> Selection<'q> {
    pub fn resolve(
        source: ReadSource<'_>,
        page: &'q PageRequest,
        rules: RuleSet,
    ) -> Result<Selection<'q>> {
        let output = output(source, page);
        if let Some(index) = source.index
            && index.definition.kind == IndexKind::Global
        {
            check_global(source, &index.definition.name, output)?;
        }
        let filter = page.filter.as_ref();
        Ok(Selection {
            output,
            filter,
            fetches_items: fetches_items(source, output),
            fetches_rejected: rules == RuleSet::PartiQl,
        })
    }
}

/// A projection path must not go below a key attribute.
pub(super) fn check_projection_paths(source: ReadSource<'_>, page: &PageRequest) -> Result<()> {
    check_paths(source.table, page.projection.iter().flat_map(Projection::paths))
}

/// A filter path must not go below a key attribute.
pub(super) fn check_filter_paths(source: ReadSource<'_>, page: &PageRequest) -> Result<()> {
    check_paths(source.table, page.filter.iter().flat_map(Condition::paths))
}

/// A Query of an index may only filter by attributes that the index projects. A Scan has no such
/// rule.
pub(super) fn check_filter_is_projected(
    source: ReadSource<'_>,
    page: &PageRequest,
) -> Result<(), PageError> {
    let Some(index) = source.index else { return Ok(()) };
    let paths = page.filter.iter().flat_map(Condition::paths);
    let mut attributes: Vec<String> = paths
        .map(|path| path.root())
        .filter(|root| !is_projected(source, root))
        .map(str::to_owned)
        .collect();
    if attributes.is_empty() {
        return Ok(());
    }
    attributes.sort();
    attributes.dedup();
    Err(PageError::FilterNotProjected { index: index.definition.name.clone(), attributes })
}

fn output<'q>(source: ReadSource<'_>, page: &'q PageRequest) -> Output<'q> {
    match (page.select, &page.projection) {
        (Some(Select::Count), _) => Output::Nothing,
        (_, Some(projection)) => Output::Projected(projection),
        (Some(Select::AllAttributes), None) if source.index.is_some() => Output::WholeItem,
        (_, None) => Output::AsRead,
    }
}

/// A global index never fetches from the table, so a request can't ask for attributes that it
/// doesn't project.
fn check_global(source: ReadSource<'_>, index: &str, output: Output<'_>) -> Result<(), PageError> {
    match output {
        Output::WholeItem if !projects_everything(source) => {
            Err(PageError::SelectAllNotProjected { index: index.to_owned() })
        }
        Output::Projected(projection) => {
            let mut attributes: Vec<String> = Vec::new();
            for path in projection.paths() {
                let root = path.root();
                if !is_projected(source, root) && !attributes.iter().any(|other| other == root) {
                    attributes.push(root.to_owned());
                }
            }
            if attributes.is_empty() {
                return Ok(());
            }
            Err(PageError::NotProjected { index: index.to_owned(), attributes })
        }
        _ => Ok(()),
    }
}

/// Filters never need the item: to them, attributes that an index doesn't project are missing, and
/// a Query may not filter by these.
fn fetches_items(source: ReadSource<'_>, output: Output<'_>) -> bool {
    source.is_local_index()
        && match output {
            Output::Nothing | Output::AsRead => false,
            Output::WholeItem => !projects_everything(source),
            Output::Projected(projection) => {
                projection.paths().iter().any(|path| !is_projected(source, path.root()))
            }
        }
}

fn projects_everything(source: ReadSource<'_>) -> bool {
    source.index.is_none_or(|index| index.definition.projection == IndexProjection::All)
}

fn is_projected(source: ReadSource<'_>, name: &str) -> bool {
    source.index.is_none_or(|index| projects(source.table_keys(), index.definition, name))
}
