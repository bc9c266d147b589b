//! ExecuteTransaction: statements that take effect all together or not at all.

use std::sync::Arc;

use zenobe_engine::catalog::Table;
use zenobe_engine::command::{
    Consumed, GetItem, TableName, TransactAction, TransactGet, TransactGetOutcome, TransactWrite,
    TransactionToken,
};
use zenobe_engine::error::{CancellationReason, Error};
use zenobe_engine::schema::{KeyAttribute, KeySchema, TableDefinition};
use zenobe_value::{AttributeValue, Attributes, EncodedValue};

use super::enumerations::ReturnCapacity;
use super::transact_write_items::{ACTIONS_MAX, PAYLOAD_SIZE_BYTES_MAX, TOKEN_LENGTH_MAX};
use crate::constraints::{Violations, printed_list};
use crate::error::{ApiError, CancellationEntry};
use crate::field_digest::FieldDigest;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::constraint::java_object;
use crate::messages::engine::{cancellation_entry, cancelled_by};
use crate::messages::key_value::{key_does_not_match, missing_key};
use crate::messages::{partiql as messages, table as table_messages, transaction};
use crate::parameters::returns::{return_capacity, return_item_on_failure_at};
use crate::partiql::parameters::ParameterList;
use crate::partiql::plan::PlanFault;
use crate::partiql::{
    BoundSelect, BoundStatement, Prepared, plan, plan_header, statement_error, write,
};
use crate::render::{write_item_responses_member, write_transaction_consumed_member};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ExecuteTransactionInput = request(body)?;
    let constrained = constrained(input)?;
    let capacity = constrained.capacity;
    let prepared = prepared(constrained.statements)?;
    if body.len() > PAYLOAD_SIZE_BYTES_MAX {
        check_payload(&prepared)?;
    }
    let bound = bound(&prepared)?;
    let is_read = |bound: &BoundStatement<'_>| matches!(bound, BoundStatement::Select(_));
    let (some_read, all_read) = (bound.iter().any(is_read), bound.iter().all(is_read));
    if some_read && !all_read {
        return Err(messages::reads_and_writes_in_transaction());
    }
    let statements = with_tables(context, bound).await?;
    let mut lowered = Vec::with_capacity(statements.len());
    for (index, statement) in statements.into_iter().enumerate() {
        let statement = statement.lower();
        lowered.push(statement.map_err(|error| messages::in_transaction(index, &error))?);
    }
    let lowered = all_or_cancelled(lowered)?;
    if all_read {
        return read(context, lowered, capacity).await;
    }
    let token = constrained.token.map(|token| TransactionToken {
        namespace: Arc::clone(context.namespace),
        token: format!("{TOKEN_PREFIX}{token}"),
        parameters_digest: digest(&prepared),
    });
    let shows_item: Vec<bool> =
        prepared.iter().map(|statement| statement.item_on_failure).collect();
    write(context, lowered, token, &shows_item, capacity).await
}

/// Keeps tokens of ExecuteTransaction apart from those of TransactWriteItems: with this prefix they
/// are longer than any of those can be.
const TOKEN_PREFIX: &str = "A token of the operation ExecuteTransaction: ";

shape! {
    struct ExecuteTransactionInput {
        "TransactStatements" => transact_statements: Vec<ParameterizedStatement>,
        "ClientRequestToken" => client_request_token: String,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
    }

    struct ParameterizedStatement {
        "Statement" => statement: String,
        "Parameters" => parameters: ParameterList,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

struct Constrained {
    /// Each statement, and whether to return the item if its condition fails.
    statements: Vec<(ParameterizedStatement, bool)>,
    token: Option<String>,
    capacity: ReturnCapacity,
}

fn constrained(input: ExecuteTransactionInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    if let Some(token) = &input.client_request_token {
        violations.length(token, "clientRequestToken", 1, TOKEN_LENGTH_MAX);
    }
    let given = input.transact_statements.is_some();
    let list = violations.required(input.transact_statements, "transactStatements");
    if given {
        let print = || printed_list(&list, |_| java_object("ParameterizedStatement"));
        violations.count(list.len(), "transactStatements", 1, ACTIONS_MAX, print);
    }
    let mut statements = Vec::with_capacity(list.len());
    for (position, statement) in list.into_iter().enumerate() {
        let path = |member: &str| format!("transactStatements.{}.member.{member}", position + 1);
        let (text, parameters) = (statement.statement.as_deref(), statement.parameters.as_ref());
        violations.statement(text, &path("statement"), parameters, &path("parameters"));
        let on_failure = statement.return_values_on_condition_check_failure.as_deref();
        let path = path("returnValuesOnConditionCheckFailure");
        let shows_item = return_item_on_failure_at(on_failure, &path, &mut violations);
        statements.push((statement, shows_item));
    }
    violations.finish()?;
    Ok(Constrained { statements, token: input.client_request_token, capacity })
}

struct PreparedStatement {
    text: String,
    prepared: Prepared,
    item_on_failure: bool,
}

/// Faults of parameters come first and don't name their position; those of statements do.
fn prepared(
    statements: Vec<(ParameterizedStatement, bool)>,
) -> Result<Vec<PreparedStatement>, ApiError> {
    let mut with_values = Vec::with_capacity(statements.len());
    for (statement, item_on_failure) in statements {
        let values = statement.parameters.unwrap_or_default().into_values()?;
        with_values.push((statement.statement.unwrap_or_default(), values, item_on_failure));
    }
    let mut prepared = Vec::with_capacity(with_values.len());
    for (index, (text, values, item_on_failure)) in with_values.into_iter().enumerate() {
        let statement = Prepared::parse(&text, values);
        let statement = statement.map_err(|error| messages::in_transaction(index, &error))?;
        prepared.push(PreparedStatement { text, prepared: statement, item_on_failure });
    }
    Ok(prepared)
}

fn check_payload(statements: &[PreparedStatement]) -> Result<(), ApiError> {
    let size_bytes = |statement: &PreparedStatement| {
        let values = statement.prepared.values.iter();
        statement.text.len() + values.map(|value| value.size_bytes()).sum::<usize>()
    };
    match statements.iter().map(size_bytes).sum::<usize>() > PAYLOAD_SIZE_BYTES_MAX {
        true => Err(transaction::payload_too_large()),
        false => Ok(()),
    }
}

fn bound(statements: &[PreparedStatement]) -> Result<Vec<BoundStatement<'_>>, ApiError> {
    let bound = statements.iter().enumerate().map(|(index, statement)| {
        statement.prepared.bind().map_err(|error| messages::in_transaction(index, &error))
    });
    bound.collect()
}

/// The token covers the statements and their parameters, however numbers are spelled.
fn digest(statements: &[PreparedStatement]) -> [u8; 16] {
    let mut digest = FieldDigest::new();
    for statement in statements {
        digest.bytes(statement.text.as_bytes());
        digest.bytes(&statement.prepared.values.len().to_le_bytes());
        for value in &statement.prepared.values {
            digest.bytes(EncodedValue::encode(value).as_value().encoded());
        }
        digest.bytes(&[u8::from(statement.item_on_failure)]);
    }
    digest.finish()
}

struct ResolvedStatement<'s> {
    name: TableName,
    bound: BoundStatement<'s>,
    /// `None` if there is no such table.
    table: Option<Arc<Table>>,
}

async fn with_tables<'s>(
    context: &Context<'_>,
    bound: Vec<BoundStatement<'s>>,
) -> Result<Vec<ResolvedStatement<'s>>, ApiError> {
    let mut statements = Vec::with_capacity(bound.len());
    for bound in bound {
        let name = bound.table(context)?;
        let table = match context.engine.current_table(&name).await {
            Ok(table) => Some(table),
            Err(Error::TableNotFound { .. }) => None,
            Err(error) => return Err(statement_error(error)),
        };
        statements.push(ResolvedStatement { name, bound, table });
    }
    Ok(statements)
}

/// A statement as a command.
enum LoweredStatement {
    Get(GetItem),
    Write(TransactAction),
}

impl ResolvedStatement<'_> {
    /// The command, or the reason why it cancels the transaction. Some faults fail the request
    /// itself.
    fn lower(self) -> Result<Result<LoweredStatement, CancellationEntry>, ApiError> {
        let Some(table) = self.table else {
            let error = table_messages::requested_resource_not_found();
            return Ok(Err(CancellationEntry::new("ResourceNotFound", &error)));
        };
        let definition = table.definition();
        match &self.bound {
            BoundStatement::Select(select) => return lower_read(self.name, select, definition),
            BoundStatement::Exists(select) => check_exists(select, &definition.keys)?,
            BoundStatement::Update { returning: Some(_), .. } => {
                return Err(messages::returning_in_transaction());
            }
            BoundStatement::Delete { delete, .. } if delete.returns_old => {
                return Err(messages::returning_in_transaction());
            }
            BoundStatement::Insert { .. }
            | BoundStatement::Update { .. }
            | BoundStatement::Delete { .. } => {}
        }
        Ok(lower_write(self.name, self.bound, &definition.keys).map(LoweredStatement::Write))
    }
}

/// A SELECT reads one item of a table, by its key.
fn lower_read(
    table: TableName,
    select: &BoundSelect<'_>,
    definition: &TableDefinition,
) -> Result<Result<LoweredStatement, CancellationEntry>, ApiError> {
    check_no_index(select)?;
    let plan = match plan::plan(definition, select, true) {
        Ok(plan) => plan,
        Err(PlanFault::KeyType { .. }) => return Ok(Err(invalid(&key_does_not_match()))),
        Err(PlanFault::Refused(error)) => return Err(error),
    };
    let key = plan.single_key().cloned().ok_or_else(messages::transaction_select_without_key)?;
    let get = GetItem { table, key, projection: plan.projection, consistent: true };
    Ok(Ok(LoweredStatement::Get(get)))
}

fn check_no_index(select: &BoundSelect<'_>) -> Result<(), ApiError> {
    if let Some(fault) = select.function_column() {
        return Err(fault);
    }
    match select.select.source.index {
        Some(_) => Err(messages::index_in_transaction()),
        None => Ok(()),
    }
}

/// EXISTS must name one item and test something else about it.
fn check_exists(select: &BoundSelect<'_>, keys: &KeySchema) -> Result<(), ApiError> {
    check_no_index(select)?;
    match write::split_leniently(select.predicate.as_ref(), keys) {
        Ok((_, rest)) if !rest.is_empty() => Ok(()),
        _ => Err(messages::exists_without_condition()),
    }
}

fn lower_write(
    table: TableName,
    bound: BoundStatement<'_>,
    keys: &KeySchema,
) -> Result<TransactAction, CancellationEntry> {
    if let BoundStatement::Insert { item, .. } = &bound
        && let Some(missing) = keys.attributes().find(|key| !item.contains_key(&key.name))
    {
        return Err(invalid(&missing_key(&missing.name)));
    }
    let action = write::action(bound, table, keys).ok().flatten();
    let action = action.ok_or_else(|| invalid(&key_does_not_match()))?;
    let has_type = |key: &Attributes| {
        let has_type = |attribute: &KeyAttribute| {
            let given = key.get(&attribute.name).map(AttributeValue::attribute_type);
            given == Some(attribute.scalar_type.attribute_type())
        };
        keys.attributes().all(has_type)
    };
    match write::written_key(&action, keys).is_some_and(|key| has_type(&key)) {
        true => Ok(action),
        false => Err(invalid(&key_does_not_match())),
    }
}

fn invalid(error: &ApiError) -> CancellationEntry {
    CancellationEntry::new("ValidationError", error)
}

/// Gives each statement that can't run its reason.
fn all_or_cancelled(
    lowered: Vec<Result<LoweredStatement, CancellationEntry>>,
) -> Result<Vec<LoweredStatement>, ApiError> {
    if lowered.iter().all(Result::is_ok) {
        return Ok(lowered.into_iter().flatten().collect());
    }
    let entry = |lowered: Result<LoweredStatement, CancellationEntry>| match lowered {
        Ok(_) => CancellationEntry::none(),
        Err(entry) => entry,
    };
    Err(cancelled_by(lowered.into_iter().map(entry).collect()))
}

async fn read(
    context: &Context<'_>,
    lowered: Vec<LoweredStatement>,
    capacity: ReturnCapacity,
) -> Result<Reply, ApiError> {
    let gets = lowered.into_iter().filter_map(|lowered| match lowered {
        LoweredStatement::Get(get) => Some(get),
        LoweredStatement::Write(_) => None,
    });
    let command = TransactGet { gets: gets.collect() };
    let outcome = context.engine.transact_get(&command).await.map_err(statement_error)?;
    let halves = outcome.consumed.iter().map(Consumed::total_halves).sum();
    context.tell(plan_header::of_many("TransactGetItems", outcome.items.len(), halves));
    Ok(render_read(&outcome, capacity))
}

fn render_read(outcome: &TransactGetOutcome, capacity: ReturnCapacity) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_item_responses_member(writer, &outcome.items);
        write_transaction_consumed_member(writer, &outcome.consumed, capacity);
    });
    Reply(writer.finish())
}

async fn write(
    context: &Context<'_>,
    lowered: Vec<LoweredStatement>,
    token: Option<TransactionToken>,
    shows_item: &[bool],
    capacity: ReturnCapacity,
) -> Result<Reply, ApiError> {
    let actions = lowered.into_iter().filter_map(|lowered| match lowered {
        LoweredStatement::Write(action) => Some(action),
        LoweredStatement::Get(_) => None,
    });
    let actions: Vec<TransactAction> = actions.collect();
    let is_insert: Vec<bool> =
        actions.iter().map(|action| matches!(action, TransactAction::Put(_))).collect();
    let command = TransactWrite { token, actions };
    let outcome = context.engine.transact_write(command).await.map_err(|error| match error {
        Error::TransactionCancelled(reasons) => cancelled(reasons, &is_insert, shows_item),
        other => statement_error(other),
    })?;
    let halves = outcome.consumed.iter().map(Consumed::total_halves).sum();
    context.tell(plan_header::of_many("TransactWriteItems", is_insert.len(), halves));
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("Responses").array([(); 0], |_, ()| {});
        write_transaction_consumed_member(writer, &outcome.consumed, capacity);
    });
    Ok(Reply(writer.finish()))
}

/// An INSERT whose item already exists is a duplicate, not a failed condition.
fn cancelled(
    reasons: Vec<CancellationReason>,
    is_insert: &[bool],
    shows_item: &[bool],
) -> ApiError {
    let given = |flags: &[bool], position: usize| flags.get(position).is_some_and(|flag| *flag);
    let entries = reasons.into_iter().enumerate().map(|(position, reason)| match reason {
        CancellationReason::ConditionFailed { item } if given(is_insert, position) => {
            let item = item.filter(|_| given(shows_item, position));
            let entry = CancellationEntry::new("DuplicateItem", &messages::duplicate_item());
            CancellationEntry { item, ..entry }
        }
        CancellationReason::Invalid(error) if matches!(*error, Error::NestedTooDeeply) => {
            invalid(&messages::nested_too_deeply())
        }
        reason => cancellation_entry(reason, given(shows_item, position)),
    });
    cancelled_by(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are stored, and compared with those of later versions.
    #[test]
    fn digests_stay_as_they_are() {
        let statement = |text: &str, values, item_on_failure| PreparedStatement {
            text: text.to_owned(),
            prepared: Prepared::parse(text, values).unwrap(),
            item_on_failure,
        };
        let values = vec![AttributeValue::S("a".to_owned()), AttributeValue::Bool(true)];
        let statements = [
            statement("INSERT INTO t VALUE {'p': ?, 'q': ?}", values, true),
            statement("DELETE FROM t WHERE p = 'b'", Vec::new(), false),
        ];
        assert_eq!(
            u128::from_le_bytes(digest(&statements)),
            85_615_142_309_913_066_791_089_687_297_822_188_656
        );
    }
}
