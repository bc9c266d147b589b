//! Which attributes a page returns, and whether a local index has to fetch them from its table.

use zenobe_expression::{Condition, Projection};

use crate::command::{PageRequest, Select};
use crate::error::{PageError, Result};
use crate::indexes::projects;
use crate::keys::check_paths;
use crate::schema::{IndexKind, IndexProjection};

use super::source::Source;

pub(super) struct Selection<'q> {
    pub output: Output<'q>,
    pub filter: Option<&'q Condition>,
    /// Only on local indexes.
    pub fetch: Option<Fetch>,
}

#[derive(Clone, Copy)]
pub(super) enum Output<'q> {
    Nothing,
    /// What is read: the item, or the index entry with what it projects.
    AsRead,
    /// The table's item, when an index is read.
    WholeItem,
    Projected(&'q Projection),
}

/// For which entries of a local index the item is read from the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetch {
    /// The filter looks at attributes that the index lacks.
    All,
    /// Only the result needs them.
    Matching,
}

impl<'q> Selection<'q> {
    pub fn resolve(source: Source<'_>, page: &'q PageRequest) -> Result<Selection<'q>> {
        let output = output(source, page);
        if let Some(index) = source.index
            && index.definition.kind == IndexKind::Global
        {
            check_global(source, &index.definition.name, output)?;
        }
        let filter = page.filter.as_ref();
        Ok(Selection { output, filter, fetch: fetch(source, filter, output) })
    }
}

/// Keys are scalars, in the paths of filters and projections, too.
pub(super) fn check_page_paths(source: Source<'_>, page: &PageRequest) -> Result<()> {
    let projected = page.projection.iter().flat_map(Projection::paths);
    check_paths(source.table, projected)?;
    let filtered = page.filter.iter().flat_map(Condition::paths);
    check_paths(source.table, filtered)
}

fn output<'q>(source: Source<'_>, page: &'q PageRequest) -> Output<'q> {
    match (page.select, &page.projection) {
        (Some(Select::Count), _) => Output::Nothing,
        (_, Some(projection)) => Output::Projected(projection),
        (Some(Select::AllAttributes), None) if source.index.is_some() => Output::WholeItem,
        (_, None) => Output::AsRead,
    }
}

/// A global index never goes back to the table: what it doesn't project can't be asked of it.
fn check_global(source: Source<'_>, index: &str, output: Output<'_>) -> Result<(), PageError> {
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

fn fetch(source: Source<'_>, filter: Option<&Condition>, output: Output<'_>) -> Option<Fetch> {
    if !source.is_local_index() || projects_everything(source) {
        return None;
    }
    let mut filtered = filter.iter().flat_map(|filter| filter.paths());
    if filtered.any(|path| !is_projected(source, path.root())) {
        return Some(Fetch::All);
    }
    let needed = match output {
        Output::Nothing | Output::AsRead => false,
        Output::WholeItem => true,
        Output::Projected(projection) => {
            projection.paths().iter().any(|path| !is_projected(source, path.root()))
        }
    };
    needed.then_some(Fetch::Matching)
}

fn projects_everything(source: Source<'_>) -> bool {
    source.index.is_none_or(|index| index.definition.projection == IndexProjection::All)
}

fn is_projected(source: Source<'_>, name: &str) -> bool {
    source.index.is_none_or(|index| projects(source.table_keys(), index.definition, name))
}
