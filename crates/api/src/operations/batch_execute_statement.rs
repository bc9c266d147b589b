//! BatchExecuteStatement: runs statements one after the other, independently of each other.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use zenobe_engine::command::{Consumed, GetItem, TableName, TransactAction};
use zenobe_engine::error::{Error, IndexKeyError};
use zenobe_engine::schema::TableDefinition;
use zenobe_engine::write_halves;
use zenobe_value::{Attributes, EncodedItem, item_size_bytes};

use super::enumerations::ReturnCapacity;
use super::execute_statement::Returned;
use crate::constraints::{Violations, printed_list};
use crate::error::{ApiError, Exception};
use crate::json::decode::{request, shape};
use crate::json::{Writer, write_item};
use crate::messages::constraint::java_object;
use crate::messages::{batch, partiql as messages, throughput};
use crate::parameters::returns::{return_capacity, return_item_on_failure_at};
use crate::partiql::parameters::ParameterList;
use crate::partiql::plan::PlanFault;
use crate::partiql::{BoundStatement, Prepared, plan, plan_header, statement_error, write};
use crate::render::write_batch_consumed_member;
use crate::{Context, Reply};

const STATEMENTS_MAX: usize = 25;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: BatchExecuteStatementInput = request(body)?;
    let (statements, capacity) = constrained(input)?;
    let prepared: Vec<(Result<Prepared, ApiError>, bool)> =
        statements.into_iter().map(BatchStatementRequest::prepared).collect();
    let bound: Vec<Result<BoundStatement<'_>, ApiError>> =
        prepared.iter().map(|(prepared, _)| bound(prepared)).collect();
    check_kinds(&bound)?;
    let is_select = |bound: &BoundStatement<'_>| matches!(bound, BoundStatement::Select(_));
    context.check_statement(bound.iter().flatten().all(is_select))?;
    let mut lowered = Vec::with_capacity(bound.len());
    for (bound, (_, consistent)) in bound.into_iter().zip(&prepared) {
        lowered.push(match bound {
            Ok(bound) => lower(context, bound, *consistent).await,
            Err(error) => Err(error),
        });
    }
    check_keys(&lowered)?;
    let mut outcomes = Vec::with_capacity(lowered.len());
    let mut tables = CostByTable::default();
    for lowered in lowered {
        outcomes.push(match lowered {
            Ok(lowered) => lowered.run(context, &mut tables).await,
            Err(error) => StatementOutcome { table: None, result: Err(error) },
        });
    }
    context.tell(plan_header::of_many(
        "BatchExecuteStatement",
        outcomes.len(),
        tables.total_halves(),
    ));
    Ok(render(&outcomes, &tables, capacity))
}

shape! {
    struct BatchExecuteStatementInput {
        "Statements" => statements: Vec<BatchStatementRequest>,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
    }

    struct BatchStatementRequest {
        "Statement" => statement: String,
        "Parameters" => parameters: ParameterList,
        "ConsistentRead" => consistent_read: bool,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

fn constrained(
    input: BatchExecuteStatementInput,
) -> Result<(Vec<BatchStatementRequest>, ReturnCapacity), ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let given = input.statements.is_some();
    let statements = violations.required(input.statements, "statements");
    if given {
        let print = || printed_list(&statements, |_| java_object("BatchStatementRequest"));
        violations.count(statements.len(), "statements", 1, STATEMENTS_MAX, print);
    }
    for (position, statement) in statements.iter().take(STATEMENTS_MAX).enumerate() {
        let path = |member: &str| format!("statements.{}.member.{member}", position + 1);
        let (text, parameters) = (statement.statement.as_deref(), statement.parameters.as_ref());
        violations.statement(text, &path("statement"), parameters, &path("parameters"));
        // It is checked, but has no effect in a batch.
        let on_failure = statement.return_values_on_condition_check_failure.as_deref();
        let path = path("returnValuesOnConditionCheckFailure");
        return_item_on_failure_at(on_failure, &path, &mut violations);
    }
    violations.finish()?;
    Ok((statements, capacity))
}

impl BatchStatementRequest {
    /// The statement, and whether it reads consistently.
    fn prepared(self) -> (Result<Prepared, ApiError>, bool) {
        let text = self.statement.unwrap_or_default();
        (Prepared::new(&text, self.parameters), self.consistent_read.unwrap_or(false))
    }
}

fn bound(prepared: &Result<Prepared, ApiError>) -> Result<BoundStatement<'_>, ApiError> {
    match prepared.as_ref().map_err(Clone::clone)?.bind()? {
        BoundStatement::Exists(_) => Err(messages::exists_outside_transaction()),
        bound => Ok(bound),
    }
}

/// Statements that can't be parsed don't count in the rules for the whole batch.
fn check_kinds(bound: &[Result<BoundStatement<'_>, ApiError>]) -> Result<(), ApiError> {
    let is_read = |bound: &BoundStatement<'_>| matches!(bound, BoundStatement::Select(_));
    let statements = || bound.iter().flatten();
    match statements().any(is_read) && !statements().all(is_read) {
        true => Err(messages::reads_and_writes_in_batch()),
        false => Ok(()),
    }
}

/// A statement as a command.
struct KeyedStatement {
    table: TableName,
    /// `None` if an INSERT lacks it.
    key: Option<Attributes>,
    command: StatementCommand,
}

enum StatementCommand {
    Get(GetItem),
    Write { action: TransactAction, returned: Returned, is_insert: bool },
}

async fn lower(
    context: &Context<'_>,
    bound: BoundStatement<'_>,
    consistent: bool,
) -> Result<KeyedStatement, ApiError> {
    let table = bound.table(context)?;
    let handle = bound.find_current(context, &table).await?;
    let definition: &Arc<TableDefinition> = handle.definition();
    if let BoundStatement::Select(select) = &bound {
        let plan = plan::plan(definition, select, consistent);
        let mut plan = plan.map_err(PlanFault::error)?;
        let projection = plan.projection.take();
        let key = plan.single_key().filter(|_| plan.index.is_none());
        let key = key.cloned().ok_or_else(messages::batch_select_without_key)?;
        let get = GetItem { table: table.clone(), key: key.clone(), projection, consistent };
        return Ok(KeyedStatement { table, key: Some(key), command: StatementCommand::Get(get) });
    }
    let is_insert = matches!(bound, BoundStatement::Insert { .. });
    let returned = Returned::of(&bound);
    let action = write::action(bound, table.clone(), &definition.keys);
    let action = action.map_err(|fault| fault.error())?;
    let action = action.ok_or_else(messages::exists_outside_transaction)?;
    let key = write::written_key(&action, &definition.keys);
    Ok(KeyedStatement {
        table,
        key,
        command: StatementCommand::Write { action, returned, is_insert },
    })
}

fn check_keys(lowered: &[Result<KeyedStatement, ApiError>]) -> Result<(), ApiError> {
    let mut seen: HashSet<(&str, Bytes)> = HashSet::new();
    for lowered in lowered.iter().flatten() {
        let Some(key) = &lowered.key else { continue };
        let key = EncodedItem::encode(key).as_bytes().clone();
        if !seen.insert((lowered.table.name.as_str(), key)) {
            return Err(batch::duplicate_keys());
        }
    }
    Ok(())
}

/// The result of one statement.
struct StatementOutcome {
    /// Known once the statement has run.
    table: Option<TableName>,
    result: Result<Option<EncodedItem>, ApiError>,
}

impl KeyedStatement {
    async fn run(self, context: &Context<'_>, tables: &mut CostByTable) -> StatementOutcome {
        match self.command {
            StatementCommand::Get(get) => match context.reads().get_item(&get).await {
                Ok(outcome) => {
                    tables.add(&outcome.consumed);
                    let item = outcome.item.filter(|item| !item.as_item().is_empty());
                    StatementOutcome { table: Some(self.table), result: Ok(item) }
                }
                Err(error) => StatementOutcome { table: None, result: Err(statement_error(error)) },
            },
            StatementCommand::Write { action, returned, is_insert } => {
                let sent_size_bytes = match &action {
                    TransactAction::Put(put) => item_size_bytes(&put.item) as u64,
                    _ => 0,
                };
                match write::run(context.engine, action).await {
                    Ok(outcome) => {
                        tables.add(&outcome.consumed);
                        StatementOutcome {
                            table: Some(self.table),
                            result: Ok(returned.item(&outcome)),
                        }
                    }
                    Err(error) => {
                        let table = has_run(&error).then_some(self.table);
                        if let Some(table) = &table {
                            tables.add_failure(table, &error, sent_size_bytes);
                        }
                        StatementOutcome {
                            table,
                            result: Err(write::failure(error, is_insert, false)),
                        }
                    }
                }
            }
        }
    }
}

/// Whether a write failed because of the item that it found, and not earlier.
fn has_run(error: &Error) -> bool {
    matches!(
        error,
        Error::ConditionFailed { .. }
            | Error::Update(_)
            | Error::UpdateTooLarge
            | Error::NestedTooDeeply
            | Error::CollectionTooLarge
            | Error::IndexKey {
                error: IndexKeyError::UpdatedEmpty { .. }
                    | IndexKeyError::UpdatedTypeMismatch
                    | IndexKeyError::UpdatedTooLong,
                ..
            }
    )
}

/// What the batch costs on each table.
#[derive(Default)]
struct CostByTable {
    consumed: Vec<Consumed>,
    failed_halves: BTreeMap<TableName, u64>,
}

impl CostByTable {
    fn add(&mut self, consumed: &Consumed) {
        match self.consumed.iter_mut().find(|known| known.table == consumed.table) {
            Some(known) => known.add(consumed),
            None => self.consumed.push(consumed.clone()),
        }
    }

    /// As DynamoDB reports it for a batch of statements, a failed write costs as much as the larger of the existing item
    /// and the one that was sent. (What it takes from the table's capacity depends on the existing item only, as for every
    /// failed condition: `Engine::settle_refused`.)
    fn add_failure(&mut self, table: &TableName, error: &Error, sent_size_bytes: u64) {
        let found = match error {
            Error::ConditionFailed { item: Some(item) } => item.as_item().size_bytes() as u64,
            _ => 0,
        };
        let halves = write_halves(found.max(sent_size_bytes));
        *self.failed_halves.entry(table.clone()).or_default() += halves;
    }

    /// Omits tables whose statements all failed.
    fn iter(&self) -> impl Iterator<Item = (&Consumed, u64)> {
        let failed = |table| self.failed_halves.get(table).copied().unwrap_or(0);
        self.consumed.iter().map(move |consumed| (consumed, failed(&consumed.table)))
    }

    fn total_halves(&self) -> u64 {
        self.iter().map(|(consumed, failed)| consumed.total_halves() + failed).sum()
    }
}

fn render(outcomes: &[StatementOutcome], tables: &CostByTable, capacity: ReturnCapacity) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Responses").array(outcomes, |writer, outcome| {
            writer.object(|writer| write_outcome(writer, outcome));
        });
        write_batch_consumed_member(writer, tables.iter(), capacity);
    });
    Reply(writer.finish())
}

fn write_outcome(writer: &mut Writer, outcome: &StatementOutcome) {
    match &outcome.result {
        Ok(None) => {}
        Ok(Some(item)) => write_item(writer.name("Item"), item.as_item()),
        Err(error) => writer.name("Error").object(|writer| {
            writer.name("Code").string(code(error.exception()));
            if let Some(message) = error.message() {
                writer.name("Message").string(message);
            }
        }),
    }
    if let Some(table) = &outcome.table {
        writer.name("TableName").string(&table.name);
    }
}

/// A batch's name for an exception.
fn code(exception: Exception) -> &'static str {
    match exception {
        Exception::Validation => "ValidationError",
        Exception::ConditionalCheckFailed => "ConditionalCheckFailed",
        Exception::DuplicateItem => "DuplicateItem",
        Exception::ResourceNotFound => "ResourceNotFound",
        Exception::AccessDenied => "AccessDenied",
        Exception::ItemCollectionSizeLimitExceeded => "ItemCollectionSizeLimitExceeded",
        Exception::ProvisionedThroughputExceeded
        | Exception::RequestLimitExceeded
        | Exception::OnDemandThroughputExceeded
        | Exception::Throttling => throughput::code(exception),
        Exception::TransactionConflict => "TransactionConflict",
        _ => "InternalServerError",
    }
}
