//! From a request's statement and parameters to a form that can be lowered.

use std::sync::Arc;

use zenobe_engine::catalog::Table;
use zenobe_engine::command::TableName;
use zenobe_engine::error::{Error, PageError};
use zenobe_expression::Update;
use zenobe_expression::partiql::{
    self, DeleteStatement, Parameters, Predicate, Returning, SelectStatement, Statement,
    StatementFault, StatementKind, Test,
};
use zenobe_value::{AttributeValue, Attributes};

use super::parameters::ParameterList;
use crate::Context;
use crate::constraints::TableNameRule;
use crate::error::ApiError;
use crate::messages;
use crate::messages::engine::{Subject, engine_error};

/// A parsed statement and legal values for its parameters.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: Arc<Statement>,
    pub(crate) values: Vec<AttributeValue>,
}

impl Prepared {
    /// Faults of parameters outrank those of the statement.
    pub(crate) fn new(text: &str, parameters: Option<ParameterList>) -> Result<Prepared, ApiError> {
        let values = parameters.unwrap_or_default().into_values()?;
        Prepared::parse(text, values)
    }

    pub(crate) fn parse(text: &str, values: Vec<AttributeValue>) -> Result<Prepared, ApiError> {
        let statement = partiql::parse(text).map_err(|fault| fault_error(&fault))?;
        Ok(Prepared { statement, values })
    }

    pub(crate) fn bind(&self) -> Result<BoundStatement<'_>, ApiError> {
        let bind = || -> Result<BoundStatement<'_>, StatementFault> {
            let parameters = Parameters::check(&self.statement, &self.values)?;
            Ok(match &self.statement.kind {
                StatementKind::Select(select) => {
                    BoundStatement::Select(BoundSelect::new(select, parameters)?)
                }
                StatementKind::Exists(select) => {
                    BoundStatement::Exists(BoundSelect::new(select, parameters)?)
                }
                StatementKind::Insert(insert) => {
                    BoundStatement::Insert { table: &insert.table, item: insert.item(parameters)? }
                }
                StatementKind::Update(update) => BoundStatement::Update {
                    table: &update.table,
                    update: update.bind(parameters)?,
                    predicate: bound(&update.condition, parameters)?,
                    returning: update.returning,
                },
                StatementKind::Delete(delete) => BoundStatement::Delete {
                    delete,
                    predicate: bound(&delete.condition, parameters)?,
                },
            })
        };
        bind().map_err(|fault| fault_error(&fault))
    }
}

/// A statement bound to its parameters.
#[derive(Debug)]
pub(crate) enum BoundStatement<'s> {
    Select(BoundSelect<'s>),
    Exists(BoundSelect<'s>),
    Insert {
        table: &'s str,
        item: Attributes,
    },
    Update {
        table: &'s str,
        update: Update,
        predicate: Option<Predicate<'s>>,
        returning: Option<Returning>,
    },
    Delete {
        delete: &'s DeleteStatement,
        predicate: Option<Predicate<'s>>,
    },
}

#[derive(Debug)]
pub(crate) struct BoundSelect<'s> {
    pub(crate) select: &'s SelectStatement,
    pub(crate) predicate: Option<Predicate<'s>>,
}

impl<'s> BoundSelect<'s> {
    fn new(
        select: &'s SelectStatement,
        parameters: Parameters<'s>,
    ) -> Result<BoundSelect<'s>, StatementFault> {
        Ok(BoundSelect { select, predicate: bound(&select.condition, parameters)? })
    }
}

impl BoundSelect<'_> {
    /// The fault of a function among the columns of an index, once the index is known.
    pub(crate) fn function_column(&self) -> Option<ApiError> {
        let position = self.select.function_column?;
        Some(fault_error(&StatementFault::UnexpectedPathComponent { position }))
    }
}

impl BoundStatement<'_> {
    /// Finds the table. A pending fault of the statement outranks the table's absence.
    pub(crate) async fn find(
        &self,
        context: &Context<'_>,
        name: &TableName,
    ) -> Result<Arc<Table>, ApiError> {
        context.engine.table(name).await.map_err(|error| self.not_found(error))
    }

    /// Like [`Bound::find`], for callers that do not check the definition again.
    pub(crate) async fn find_current(
        &self,
        context: &Context<'_>,
        name: &TableName,
    ) -> Result<Arc<Table>, ApiError> {
        context.engine.current_table(name).await.map_err(|error| self.not_found(error))
    }

    fn not_found(&self, error: Error) -> ApiError {
        let waiting = match self {
            BoundStatement::Select(select) => select.function_column(),
            _ => None,
        };
        waiting.unwrap_or_else(|| statement_error(error))
    }

    /// Resolves the table's name or ARN. A name that no table can have is just not found.
    pub(crate) fn table(&self, context: &Context<'_>) -> Result<TableName, ApiError> {
        let name = match self {
            BoundStatement::Select(select) | BoundStatement::Exists(select) => {
                &*select.select.source.table
            }
            BoundStatement::Insert { table, .. } | BoundStatement::Update { table, .. } => table,
            BoundStatement::Delete { delete, .. } => &*delete.table,
        };
        if name.starts_with("arn:") {
            return context.table_name(Some(name), TableNameRule::Item);
        }
        Ok(TableName { namespace: Arc::clone(context.namespace), name: name.to_owned() })
    }
}

/// Words an engine error of a statement.
pub(crate) fn statement_error(error: Error) -> ApiError {
    match error {
        Error::NestedTooDeeply => messages::partiql::nested_too_deeply(),
        Error::IndexNotFound { .. } => messages::partiql::index_not_found(),
        Error::Page(PageError::ConsistentReadOnGlobalIndex) => {
            messages::partiql::consistent_read_on_global_index()
        }
        other => engine_error(other, Subject::Items),
    }
}

fn bound<'s>(
    test: &'s Option<Test>,
    parameters: Parameters<'s>,
) -> Result<Option<Predicate<'s>>, StatementFault> {
    test.as_ref().map(|test| test.bind(parameters)).transpose()
}

fn fault_error(fault: &StatementFault) -> ApiError {
    messages::partiql::statement_fault(fault)
}
