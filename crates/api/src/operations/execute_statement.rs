//! ExecuteStatement.

use std::sync::Arc;

use zenobe_engine::command::{TableName, WriteOutcome};
use zenobe_engine::request_facts::{Verb, note_verb};
use zenobe_engine::schema::TableDefinition;
use zenobe_expression::Update;
use zenobe_expression::limits::STATEMENT_LENGTH_MAX;
use zenobe_expression::partiql::{Image, Returning};
use zenobe_value::EncodedItem;

use super::enumerations::ReturnCapacity;
use crate::constraints::Violations;
use crate::error::{ApiError, Exception};
use crate::json::decode::{request, shape};
use crate::json::{Writer, write_item};
use crate::messages::constraint::Constraint;
use crate::messages::partiql as messages;
use crate::parameters::returns::{return_capacity, return_item_on_failure};
use crate::partiql::parameters::ParameterList;
use crate::partiql::plan::PlanFault;
use crate::partiql::read::{PageOptions, SelectedPage};
use crate::partiql::{
    BoundSelect, BoundStatement, Prepared, next_token, plan, plan_header, read, statement_error,
    write,
};
use crate::render::write_consumed_member;
use crate::{Context, Reply};

const NEXT_TOKEN_LENGTH_MAX: usize = 32_768;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: ExecuteStatementInput = request(body)?;
    let options = constrained(&input)?;
    let text = input.statement.take().unwrap_or_default();
    let prepared = Prepared::new(&text, input.parameters.take())?;
    let next_token = input.next_token.as_deref();
    let statement = ExecutedStatement { text, prepared, next_token };
    let mut bound = statement.prepared.bind()?;
    note_verb(match bound {
        BoundStatement::Exists(_) => return Err(messages::exists_outside_transaction()),
        BoundStatement::Select(_) => Verb::Select,
        BoundStatement::Insert { .. } => Verb::Insert,
        BoundStatement::Update { .. } => Verb::Update,
        BoundStatement::Delete { .. } => Verb::Delete,
    });
    context.check_statement(matches!(bound, BoundStatement::Select(_)))?;
    let name = bound.table(context)?;
    let mut table = bound.find(context, &name).await?;
    loop {
        let result = statement.run(context, bound, &name, table.definition(), options).await;
        // The statement may have been lowered for a table that has changed since.
        match result {
            Err(error) if error.exception() == Exception::Validation => {
                let current = context.engine.current_table(&name).await.map_err(statement_error)?;
                if Arc::ptr_eq(&current, &table) {
                    return Err(error);
                }
                table = current;
                bound = statement.prepared.bind()?;
            }
            result => return result,
        }
    }
}

shape! {
    struct ExecuteStatementInput {
        "Statement" => statement: String,
        "Parameters" => parameters: ParameterList,
        "ConsistentRead" => consistent_read: bool,
        "NextToken" => next_token: String,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "Limit" => limit: i32,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

#[derive(Clone, Copy)]
struct StatementOptions {
    consistent: bool,
    limit: Option<u32>,
    capacity: ReturnCapacity,
    item_on_failure: bool,
}

fn constrained(input: &ExecuteStatementInput) -> Result<StatementOptions, ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    if let Some(limit) = input.limit {
        violations.range(i64::from(limit), "limit", 1, i64::MAX);
    }
    let (statement, parameters) = (input.statement.as_deref(), input.parameters.as_ref());
    violations.statement(statement, "statement", parameters, "parameters");
    if let Some(token) = &input.next_token {
        violations.length(token, "nextToken", 1, NEXT_TOKEN_LENGTH_MAX);
    }
    let on_failure = input.return_values_on_condition_check_failure.as_deref();
    let item_on_failure = return_item_on_failure(on_failure, &mut violations);
    violations.finish()?;
    Ok(StatementOptions {
        consistent: input.consistent_read.unwrap_or(false),
        limit: input.limit.map(i32::unsigned_abs),
        capacity,
        item_on_failure,
    })
}

impl Violations {
    /// Checks a statement and its parameters, at their paths in the request.
    pub(crate) fn statement(
        &mut self,
        statement: Option<&str>,
        statement_path: &str,
        parameters: Option<&ParameterList>,
        parameters_path: &str,
    ) {
        match statement {
            None => self.add(None, statement_path, Constraint::NotNull),
            Some(statement) => self.length(statement, statement_path, 1, STATEMENT_LENGTH_MAX),
        }
        if parameters.is_some_and(ParameterList::is_empty) {
            self.count(0, parameters_path, 1, usize::MAX, || "[]".to_owned());
        }
    }
}

struct ExecutedStatement<'r> {
    text: String,
    prepared: Prepared,
    next_token: Option<&'r str>,
}

impl ExecutedStatement<'_> {
    async fn run(
        &self,
        context: &Context<'_>,
        bound: BoundStatement<'_>,
        table: &TableName,
        definition: &TableDefinition,
        options: StatementOptions,
    ) -> Result<Reply, ApiError> {
        match bound {
            BoundStatement::Select(select) => {
                self.select(context, &select, table, definition, options).await
            }
            _ if self.next_token.is_some() => Err(messages::next_token_mismatch()),
            write => run_write(context, write, table, definition, options).await,
        }
    }

    async fn select(
        &self,
        context: &Context<'_>,
        select: &BoundSelect<'_>,
        table: &TableName,
        definition: &TableDefinition,
        options: StatementOptions,
    ) -> Result<Reply, ApiError> {
        let plan = plan::plan(definition, select, options.consistent);
        let plan = plan.map_err(PlanFault::error)?;
        context.refuse_scan(table, &plan)?;
        let digest = || next_token::digest(&self.text, &self.prepared.values);
        let start = self.next_token.map(|token| next_token::decode(token, digest())).transpose()?;
        let page = PageOptions { consistent: options.consistent, limit: options.limit, start };
        let page = read::run(context.reads(), table, &plan, page).await?;
        let next_token = page.next.as_ref().map(|place| next_token::encode(place, digest()));
        context.tell(plan_header::of_select(&plan, &page));
        Ok(render_page(&page, next_token.as_deref(), options.capacity))
    }
}

fn render_page(page: &SelectedPage, next_token: Option<&str>, capacity: ReturnCapacity) -> Reply {
    // The JSON takes somewhat more space than the items, so the buffer rarely grows more than once.
    let mut writer = Writer::with_capacity(2 * page.size_bytes() + 256);
    writer.object(|writer| {
        writer.name("Items").array(page.rows(), write_item);
        if let Some(token) = next_token {
            writer.name("NextToken").string(token);
        }
        write_consumed_member(writer, &page.consumed.table.name, &page.consumed, capacity);
    });
    Reply(writer.finish())
}

async fn run_write(
    context: &Context<'_>,
    bound: BoundStatement<'_>,
    table: &TableName,
    definition: &TableDefinition,
    options: StatementOptions,
) -> Result<Reply, ApiError> {
    let is_insert = matches!(bound, BoundStatement::Insert { .. });
    let returned = Returned::of(&bound);
    let action = write::action(bound, table.clone(), &definition.keys);
    let action = action.map_err(|fault| fault.error())?;
    let action = action.ok_or_else(messages::exists_outside_transaction)?;
    let operation = plan_header::write_operation(&action);
    let outcome = write::run(context.engine, action).await;
    let outcome =
        outcome.map_err(|error| write::failure(error, is_insert, options.item_on_failure))?;
    context.tell(plan_header::of_write(operation, &outcome.consumed));
    let mut writer = Writer::new();
    writer.object(|writer| {
        let item = returned.item(&outcome);
        writer.name("Items").array(&item, |writer, item| write_item(writer, item.as_item()));
        let consumed = &outcome.consumed;
        write_consumed_member(writer, &consumed.table.name, consumed, options.capacity);
    });
    Ok(Reply(writer.finish()))
}

/// What RETURNING asks for.
pub(crate) struct Returned {
    returning: Option<Returning>,
    /// Only for MODIFIED, which shows the update's targets.
    update: Option<Update>,
}

impl Returned {
    pub(crate) fn of(bound: &BoundStatement<'_>) -> Returned {
        match bound {
            BoundStatement::Update { update, returning, .. } => {
                let modified_only = returning.is_some_and(|returning| returning.modified_only);
                Returned { returning: *returning, update: modified_only.then(|| update.clone()) }
            }
            BoundStatement::Delete { delete, .. } => {
                let all_old = Returning { modified_only: false, image: Image::Old };
                Returned { returning: delete.returns_old.then_some(all_old), update: None }
            }
            BoundStatement::Select(_)
            | BoundStatement::Exists(_)
            | BoundStatement::Insert { .. } => Returned { returning: None, update: None },
        }
    }

    /// The item to return, unless it is empty.
    pub(crate) fn item(&self, outcome: &WriteOutcome) -> Option<EncodedItem> {
        let image = match self.returning?.image {
            Image::Old => outcome.old.as_ref()?,
            Image::New => outcome.new.as_ref()?,
        };
        let Some(update) = &self.update else { return Some(image.clone()) };
        let fragments = update.fragments(&image.as_item().decode());
        (!fragments.is_empty()).then(|| EncodedItem::encode(&fragments))
    }
}
