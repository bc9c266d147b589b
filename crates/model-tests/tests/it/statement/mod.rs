//! PartiQL steps: the API must do with a statement what the twin does with the equivalent command.

mod render;
mod values;

use serde_json::{Value, json};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::command::Consumed;
use zenobe_engine::schema::KeySchema;
use zenobe_value::{Attributes, PathElement};

use self::render::Statement;
use self::values::{item_from_json, to_json};
use crate::run::{Outcome, World, difference};
use crate::step::Step;
use crate::twin::condition::Test;
use crate::twin::fault::{Fault, Refusal};
use crate::twin::page::Query;
use crate::twin::route::Route;
use crate::twin::transaction::Get;
use crate::twin::write::{Action, SizeRule, Write};

/// More pages than any history needs.
const PAGES_MAX: usize = 200;

/// A response: its items, whether more follow, and what it cost; or an exception.
type Answer = Result<(Vec<Attributes>, bool, f64), String>;

impl World {
    /// Skips what PartiQL can't express.
    pub async fn statement(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Write { table, write } => self.write_statement(table, write).await,
            Step::Get { get, consistent } => self.get_statement(get, *consistent).await,
            Step::Query(query) => self.query_statement(query).await,
            Step::TransactWrite { writes, .. } => self.transaction_statement(writes).await,
            other => panic!("{other} is no statement"),
        }
    }

    async fn send(&self, operation: Operation, body: &Value) -> (u16, Value) {
        let api = Api::new(self.engine().clone(), ApiOptions::default());
        let body = body.to_string();
        let response = api.handle(operation, &self.namespace, body.as_bytes()).await;
        let answer = serde_json::from_slice(&response.body).expect("answers are JSON");
        (response.status, answer)
    }

    async fn execute(&self, statement: &Statement, more: &Value) -> (Answer, Option<String>) {
        let mut body = statement.request();
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let members = more.as_object().into_iter().flatten();
        members.for_each(|(name, value)| body[name] = value.clone());
        let (status, answer) = self.send(Operation::ExecuteStatement, &body).await;
        if status != 200 {
            return (Err(exception(&answer)), None);
        }
        let items = answer["Items"].as_array().expect("there are always items");
        let items = items.iter().map(item_from_json).collect();
        let token = answer["NextToken"].as_str().map(str::to_owned);
        let units = answer["ConsumedCapacity"]["CapacityUnits"].as_f64().expect("it was asked for");
        (Ok((items, token.is_some(), units)), token)
    }

    fn compare_answers(
        &mut self,
        request: &str,
        statement: &Statement,
        expected: &Result<Vec<Answer>, Vec<&'static str>>,
        actual: &[Answer],
    ) -> Outcome {
        let refused = actual.iter().find_map(|answer| answer.as_ref().err());
        let agreed = match (expected, refused) {
            (Ok(expected), None) => expected == actual,
            (Err(exceptions), Some(actual)) => exceptions.contains(&actual.as_str()),
            _ => false,
        };
        self.counts.count(refused.cloned().unwrap_or_else(|| request.to_owned()));
        if agreed {
            return Ok(());
        }
        Err(format!("{statement}{}", difference(expected, &actual)))
    }

    async fn write_statement(&mut self, table: &str, write: &Write) -> Outcome {
        let Some(keys) = self.keys(table) else {
            let statement = Statement::insert(table, &Attributes::new());
            let (answer, _) = self.execute(&statement, &json!({})).await;
            let expected = Err(vec!["ResourceNotFoundException"]);
            return self.compare_answers("", &statement, &expected, &[answer]);
        };
        let Some((request, statement, write)) = said(table, &keys, write) else { return Ok(()) };
        let expected = self.twin.write_as(table, &write, SizeRule::Flat);
        let expected = match expected {
            Ok(written) => {
                let returned = match write.action {
                    Action::Update(..) => written.new,
                    Action::Delete(_) => written.old,
                    Action::Put(_) | Action::Check(_) => None,
                };
                let items = returned.into_iter().collect();
                Ok(vec![Ok((items, false, units(&written.consumed)))])
            }
            Err(refusal) => Err(exceptions(&refusal, matches!(write.action, Action::Put(_)))),
        };
        let (answer, _) = self.execute(&statement, &json!({})).await;
        self.compare_answers(request, &statement, &expected, &[answer])
    }

    async fn get_statement(&mut self, get: &Get, consistent: bool) -> Outcome {
        let Some(keys) = self.keys(&get.table) else { return Ok(()) };
        if !is_key(&keys, &get.key) {
            return Ok(());
        }
        let statement = Statement::get(&get.table, &get.key, get.projection.as_deref());
        let (answer, _) = self.execute(&statement, &json!({"ConsistentRead": consistent})).await;
        let projection = get.projection.as_deref();
        let expected = match self.twin.get(&get.table, &get.key, projection, consistent) {
            Ok((_, consumed)) => {
                let whole = self.twin.get(&get.table, &get.key, None, consistent);
                let (item, _) = whole.expect("the key is valid");
                let item = item.map(|item| match projection {
                    Some(routes) => columns(routes, &item),
                    None => item,
                });
                Ok(vec![Ok((item.into_iter().collect(), false, units(&consumed)))])
            }
            Err(refusal) => Err(exceptions(&refusal, false)),
        };
        self.compare_answers("statement get", &statement, &expected, &[answer])
    }

    async fn query_statement(&mut self, query: &Query) -> Outcome {
        let Some(statement) = self.query_said(query) else { return Ok(()) };
        let expected = match self.twin.query(query) {
            Ok(pages) => Ok(pages
                .into_iter()
                .map(|page| {
                    let more = page.last_evaluated_key.is_some();
                    Ok((page.items, more, units(&page.consumed)))
                })
                .collect()),
            Err(refusal) => Err(exceptions(&refusal, false)),
        };
        let mut more = json!({"ConsistentRead": query.reading.consistent});
        if let Some(limit) = query.reading.limit {
            more["Limit"] = json!(limit);
        }
        let mut answers = Vec::new();
        loop {
            let (answer, token) = self.execute(&statement, &more).await;
            answers.push(answer);
            match token {
                Some(token) if answers.len() < PAGES_MAX => more["NextToken"] = json!(token),
                _ => break,
            }
        }
        self.compare_answers("statement query", &statement, &expected, &answers)
    }

    /// Only queries that read whole rows by keys of the right types: the others have their own
    /// rules.
    fn query_said(&self, query: &Query) -> Option<Statement> {
        let table = self.twin.tables.get(&query.table)?;
        let keys = match &query.reading.index {
            None => &table.keys,
            Some(name) => &table.indexes.iter().find(|index| index.name == *name)?.keys,
        };
        let fits = |(name, test): &(String, crate::twin::page::KeyTest)| {
            let key = keys.attributes().find(|key| key.name == *name);
            key.is_some_and(|key| {
                let of_type = key.scalar_type.attribute_type();
                test.values().iter().all(|value| value.attribute_type() == of_type)
            })
        };
        let [partition] = &keys.partition[..] else { return None };
        let pins = query.conditions.iter().any(|(name, test)| {
            let equal = crate::twin::condition::Comparison::Equal;
            *name == partition.name
                && matches!(test, crate::twin::page::KeyTest::Compare(comparison, _) if *comparison == equal)
        });
        let mut filtered = query.reading.filter.iter().flat_map(Test::routes);
        let is_said = keys.sort.len() <= 1
            && query.conditions.iter().all(fits)
            && pins
            && query.conditions.len() <= keys.attributes().count()
            && query.start.is_none()
            && query.reading.select.is_none()
            && query.reading.projection.is_none()
            && (query.reading.filter.is_none() || query.reading.index.is_none())
            && !filtered.any(|route| keys.contains(route.root()));
        let sort = keys.sort.first().map(|sort| sort.name.as_str());
        let statement = is_said.then(|| Statement::query(query, &partition.name, sort));
        statement.filter(|statement| !statement.is_too_deep())
    }

    async fn transaction_statement(&mut self, writes: &[(String, Write)]) -> Outcome {
        let (mut statements, mut said_writes) = (Vec::new(), Vec::new());
        for (table, write) in writes {
            let Some(keys) = self.keys(table) else { return Ok(()) };
            let Some((_, statement, write)) = said(table, &keys, write) else { return Ok(()) };
            statements.push(statement.without_returning());
            said_writes.push((table.clone(), write));
        }
        let expected = self.twin.transact_write(None, &said_writes);
        let requests: Vec<Value> = statements.iter().map(Statement::request).collect();
        let body = json!({"TransactStatements": requests, "ReturnConsumedCapacity": "TOTAL"});
        let (status, answer) = self.send(Operation::ExecuteTransaction, &body).await;
        let actual = match status {
            200 => {
                let tables = answer["ConsumedCapacity"].as_array().expect("it was asked for");
                Ok(tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum::<f64>())
            }
            _ => Err(exception(&answer)),
        };
        // Which of several faults cancels a transaction, and which fails the request, is specified
        // for items, not for keys.
        let agreed = match (&expected, &actual) {
            (Ok((consumed, _)), Ok(actual)) => consumed.iter().map(units).sum::<f64>() == *actual,
            (Err(_), Err(actual)) => {
                ["TransactionCanceledException", "ValidationException"].contains(&actual.as_str())
            }
            _ => false,
        };
        let name = actual.as_ref().err().cloned();
        self.counts.count(name.unwrap_or_else(|| "statement transaction".to_owned()));
        if agreed {
            return Ok(());
        }
        let texts: Vec<String> = statements.iter().map(ToString::to_string).collect();
        Err(format!("{}{}", texts.join("\n"), difference(&expected, &(actual, answer))))
    }

    fn keys(&self, table: &str) -> Option<KeySchema> {
        self.twin.tables.get(table).map(|table| table.keys.clone())
    }
}

/// A write in PartiQL, and the write that it means: INSERT never replaces, UPDATE never creates,
/// and deleting nothing succeeds.
fn said(table: &str, keys: &KeySchema, write: &Write) -> Option<(&'static str, Statement, Write)> {
    let partition = Route(vec![PathElement::Name(keys.partition[0].name.as_str().into())]);
    let condition = write.condition.clone();
    let exists = |condition: Option<Test>| {
        Test::And([Test::Exists(partition.clone())].into_iter().chain(condition).collect())
    };
    let (request, statement, action, condition) = match &write.action {
        Action::Put(item) => {
            let statement = Statement::insert(table, item);
            ("statement insert", statement, write.action.clone(), Test::Missing(partition))
        }
        Action::Delete(key) if is_key(keys, key) => {
            let statement = Statement::delete(table, keys, key, condition.as_ref());
            let condition = match condition {
                Some(condition) => Test::Or(vec![Test::Missing(partition), condition]),
                None => Test::Or(vec![Test::Missing(partition.clone()), Test::Exists(partition)]),
            };
            ("statement delete", statement, write.action.clone(), condition)
        }
        Action::Update(key, Some(update)) if is_key(keys, key) => {
            let mut update = update.clone();
            update.adds.retain(|(_, value)| value.attribute_type().is_set());
            if update.targets().is_empty() {
                return None;
            }
            let statement = Statement::update(table, keys, key, &update, condition.as_ref());
            let action = Action::Update(key.clone(), Some(update));
            ("statement update", statement, action, exists(condition))
        }
        Action::Check(key) if is_key(keys, key) => {
            let statement = Statement::exists(table, keys, key, condition.as_ref()?);
            ("statement exists", statement, write.action.clone(), exists(condition))
        }
        _ => return None,
    };
    let write = Write { action, condition: Some(condition) };
    (!statement.is_too_deep()).then_some((request, statement, write))
}

/// Whether it has exactly the attributes of the key, with the right types.
fn is_key(keys: &KeySchema, key: &Attributes) -> bool {
    keys.attributes().count() == key.len()
        && keys.attributes().all(|attribute| {
            let value = key.get(&attribute.name);
            value.is_some_and(|value| {
                value.attribute_type() == attribute.scalar_type.attribute_type()
            })
        })
}

fn columns(routes: &[Route], item: &Attributes) -> Attributes {
    let column = |route: &Route| {
        let last = route.0.iter().rposition(|element| matches!(element, PathElement::Name(_)));
        let name = Route(route.0[last.expect("a route begins with a name")..].to_vec());
        Some((name.to_string(), route.find(Some(item))?))
    };
    routes.iter().filter_map(column).collect()
}

fn units(consumed: &Consumed) -> f64 {
    consumed.total_halves() as f64 / 2.0
}

fn exception(answer: &Value) -> String {
    let name = answer["__type"].as_str().expect("errors have a type");
    name.rsplit('#').next().unwrap_or(name).to_owned()
}

/// The API's exceptions for the faults that a model allows.
fn exceptions(refusal: &Refusal, is_insert: bool) -> Vec<&'static str> {
    let Refusal::AnyOf(faults) = refusal else { return vec!["TransactionCanceledException"] };
    let exception = |fault: &Fault| match fault {
        Fault::TableNotFound => "ResourceNotFoundException",
        Fault::ConditionFailed(_) if is_insert => "DuplicateItemException",
        Fault::ConditionFailed(_) => "ConditionalCheckFailedException",
        Fault::CollectionTooLarge => "ItemCollectionSizeLimitExceededException",
        _ => "ValidationException",
    };
    faults.iter().map(exception).collect()
}

fn parameters(values: &[zenobe_value::AttributeValue]) -> Value {
    values.iter().map(to_json).collect()
}
