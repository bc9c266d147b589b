//! Tables that take time to be created, changed and deleted. The database does these things at once; until
//! the time is over, this refuses what DynamoDB would refuse and shows the status that it would show.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_api::faults::{InjectedFault, TransientStatus};
use zenobe_api::{Operation, Response};
use zenobe_engine::schema::Namespace;

/// More tables than this at once are not held.
const TABLES_MAX: usize = 10_000;

#[derive(Default)]
pub struct TableStates {
    held: Mutex<HashMap<(Arc<Namespace>, String), Held>>,
}

#[derive(Clone)]
struct Held {
    status: TransientStatus,
    until_ms: u64,
    /// As the change was answered.
    description: Value,
}

/// What a request meets.
pub enum StateEffect {
    /// Its answer, without doing anything.
    Answer(Response),
    /// The status to show in the answer.
    Status(TransientStatus),
    Nothing,
}

impl TableStates {
    pub fn is_empty(&self) -> bool {
        self.held.lock().is_empty()
    }

    pub fn clear(&self) {
        self.held.lock().clear();
    }

    /// What a request about these tables meets now.
    pub fn effect_on(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        tables: &[String],
        now_ms: u64,
    ) -> StateEffect {
        let mut held = self.held.lock();
        held.retain(|_, held| held.until_ms > now_ms);
        let found = tables.iter().find_map(|table| {
            let held = held.get(&(namespace.clone(), table.clone()))?;
            Some((table, held.clone()))
        });
        match found {
            Some((table, held)) => effect_on(operation, table, held),
            None => StateEffect::Nothing,
        }
    }

    /// Holds the status that a successful change of the table has answered with.
    pub fn hold(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        table: &str,
        answer: &Value,
        until_ms: u64,
    ) {
        let Some(status) = status_after(operation) else { return };
        let mut held = self.held.lock();
        if held.len() < TABLES_MAX {
            let description = answer["TableDescription"].clone();
            held.insert(
                (namespace.clone(), table.to_owned()),
                Held { status, until_ms, description },
            );
        }
    }
}

/// The status of a table after a successful operation.
pub fn status_after(operation: Operation) -> Option<TransientStatus> {
    match operation {
        Operation::CreateTable => Some(TransientStatus::Creating),
        Operation::UpdateTable => Some(TransientStatus::Updating),
        Operation::DeleteTable => Some(TransientStatus::Deleting),
        _ => None,
    }
}

fn effect_on(operation: Operation, table: &str, held: Held) -> StateEffect {
    let refuse = |fault: InjectedFault<'_>| StateEffect::Answer(fault.into_response(operation));
    let status = held.status;
    match (operation, status) {
        (Operation::DescribeTable, TransientStatus::Deleting) => {
            StateEffect::Answer(answer(&json!({"Table": shown(held.description, status)})))
        }
        (Operation::DescribeTable, _) => StateEffect::Status(status),
        (Operation::CreateTable, TransientStatus::Creating) => {
            refuse(InjectedFault::TableInUse { table, status })
        }
        (Operation::CreateTable, _) => refuse(InjectedFault::TableExists { table }),
        (
            Operation::UpdateTable
            | Operation::DeleteTable
            | Operation::UpdateTimeToLive
            | Operation::TagResource
            | Operation::UntagResource
            | Operation::UpdateContinuousBackups,
            _,
        ) => refuse(InjectedFault::TableInUse { table, status }),
        (_, TransientStatus::Updating) => StateEffect::Nothing,
        // The table's streams can be read whatever becomes of it.
        (
            Operation::DescribeStream
            | Operation::GetShardIterator
            | Operation::GetRecords
            | Operation::ListStreams,
            _,
        ) => StateEffect::Nothing,
        (_, TransientStatus::Creating | TransientStatus::Deleting) => {
            refuse(InjectedFault::TableNotFound)
        }
    }
}

/// A description with this status.
pub fn shown(mut description: Value, status: TransientStatus) -> Value {
    description["TableStatus"] = status.name().into();
    if status == TransientStatus::Creating {
        let indexes = description["GlobalSecondaryIndexes"].as_array_mut();
        for index in indexes.into_iter().flatten() {
            index["IndexStatus"] = status.name().into();
        }
    }
    description
}

/// A successful answer.
pub fn answer(body: &Value) -> Response {
    Response { status: 200, body: body.to_string().into(), error: None, plan: None, facts: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_meets_what_dynamodb_would_say() {
        let states = TableStates::default();
        let namespace = Arc::new(Namespace { account: "0".into(), region: "r".into() });
        let says = |operation: &str, now_ms: u64| {
            let operation = Operation::from_name(operation).unwrap();
            match states.effect_on(operation, &namespace, &["t".to_owned()], now_ms) {
                StateEffect::Answer(response) => response.error.unwrap_or("OK").to_owned(),
                StateEffect::Status(status) => status.name().to_owned(),
                StateEffect::Nothing => "nothing".to_owned(),
            }
        };
        let description = json!({"TableDescription": {"TableName": "t"}});
        for (change, expected) in [
            ("CreateTable", ["CREATING", "ResourceInUseException", "ResourceNotFoundException"]),
            ("UpdateTable", ["UPDATING", "ResourceInUseException", "nothing"]),
            ("DeleteTable", ["OK", "ResourceInUseException", "ResourceNotFoundException"]),
        ] {
            let operation = Operation::from_name(change).unwrap();
            states.hold(operation, &namespace, "t", &description, 100);
            let said = ["DescribeTable", "UpdateTable", "PutItem"].map(|it| says(it, 99));
            assert_eq!(said, expected, "{change}");
            assert_eq!(says("CreateTable", 99), "ResourceInUseException");
            assert_eq!(says("GetRecords", 99), "nothing");
            assert_eq!(says("PutItem", 100), "nothing", "the time is over");
            assert!(states.is_empty());
        }
    }
}
