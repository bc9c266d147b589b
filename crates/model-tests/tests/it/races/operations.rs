//! What a caller does to one item or to several at once, and what it sees.

use serde_json::{Value, json};
use zenobe_api::Operation;

use super::database::{Caller, item, key, number, request};
use super::event::{RegisterOperation, Response, State};

impl Caller {
    pub async fn put(&mut self, name: &str, number: i64) {
        self.perform(name, RegisterOperation::Put(number)).await;
    }

    pub async fn get(&mut self, name: &str) -> State {
        match self.perform(name, RegisterOperation::Get).await {
            Response::Before(state) => state,
            other => panic!("a read answered {other:?}"),
        }
    }

    pub async fn perform(&mut self, name: &str, operation: RegisterOperation) -> Response {
        let put = |number: i64, more: Value| {
            let mut body = request(json!({"Item": item(name, number), "ReturnValues": "ALL_OLD"}));
            let more = more.as_object().expect("members");
            more.iter().for_each(|(name, value)| body[name] = value.clone());
            (Operation::PutItem, body)
        };
        let (api, body) = match operation {
            RegisterOperation::Get => {
                (Operation::GetItem, request(json!({"Key": key(name), "ConsistentRead": true})))
            }
            RegisterOperation::Put(number) => put(number, json!({})),
            RegisterOperation::Create(number) => put(number, if_missing()),
            RegisterOperation::Swap { expected, new } => put(new, if_number("=", expected)),
            RegisterOperation::Add(amount) => {
                let mut body = add(name, amount);
                body["ReturnValues"] = json!("ALL_NEW");
                (Operation::UpdateItem, body)
            }
            RegisterOperation::Delete => (
                Operation::DeleteItem,
                request(json!({"Key": key(name), "ReturnValues": "ALL_OLD"})),
            ),
        };
        match self.call(api, body).await {
            Ok(answer) if operation == RegisterOperation::Get => {
                Response::Before(number(&answer["Item"]))
            }
            Ok(answer) if matches!(operation, RegisterOperation::Add(_)) => {
                Response::After(number(&answer["Attributes"]))
            }
            Ok(answer) => Response::Before(number(&answer["Attributes"])),
            Err((exception, body)) => {
                assert_eq!(exception, "ConditionalCheckFailedException", "{operation:?}: {body}");
                Response::Refused(number(&body["Item"]))
            }
        }
    }

    pub async fn get_together(&mut self, names: &[String]) -> Vec<State> {
        let get = |name: &String| json!({"Get": request(json!({"Key": key(name)}))});
        let body = json!({"TransactItems": names.iter().map(get).collect::<Vec<_>>()});
        let answer = self.expect(Operation::TransactGetItems, body).await;
        let responses = answer["Responses"].as_array().expect("responses are a list");
        responses.iter().map(|response| number(&response["Item"])).collect()
    }

    /// Returns whether the transaction was committed. If it was not, a condition has failed.
    pub async fn transact(&mut self, actions: Vec<Value>, token: Option<&str>) -> bool {
        let mut body = json!({"TransactItems": actions});
        if let Some(token) = token {
            body["ClientRequestToken"] = json!(token);
        }
        match self.call(Operation::TransactWriteItems, body).await {
            Ok(_) => true,
            Err((exception, body)) => {
                assert_eq!(exception, "TransactionCanceledException", "{body}");
                let reasons = body["CancellationReasons"].as_array().expect("reasons are a list");
                let failed = |reason: &&Value| reason["Code"] == "ConditionalCheckFailed";
                assert!(reasons.iter().filter(failed).count() > 0, "{body}");
                false
            }
        }
    }
}

/// Adds to the number of an item.
pub fn add(name: &str, amount: i64) -> Value {
    request(json!({
        "Key": key(name),
        "UpdateExpression": "ADD n :amount",
        "ExpressionAttributeValues": {":amount": {"N": amount.to_string()}},
    }))
}

/// An addition that fails if the number is less.
pub fn add_if_at_least(name: &str, amount: i64, least: i64) -> Value {
    let mut body = add(name, amount);
    body["ConditionExpression"] = json!("n >= :least");
    body["ExpressionAttributeValues"][":least"] = json!({"N": least.to_string()});
    body
}

pub fn create(name: &str, number: i64) -> Value {
    request(json!({
        "Item": item(name, number),
        "ConditionExpression": "attribute_not_exists(pk)",
    }))
}

pub fn check_missing(name: &str) -> Value {
    request(json!({"Key": key(name), "ConditionExpression": "attribute_not_exists(pk)"}))
}

fn if_missing() -> Value {
    json!({
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    })
}

fn if_number(comparison: &str, expected: i64) -> Value {
    json!({
        "ConditionExpression": format!("n {comparison} :expected"),
        "ExpressionAttributeValues": {":expected": {"N": expected.to_string()}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    })
}
