//! Batches of which a part is not processed: that part is taken out of the request, and put into the
//! answer as DynamoDB does.

use serde_json::{Map, Value, json};
use zenobe_api::Operation;

/// The part of a batch that was taken out, in the form of the answer's member.
pub struct HeldBack {
    member: &'static str,
    tables: Map<String, Value>,
}

impl HeldBack {
    /// Takes the entries out of the batch that `is_held` picks. One entry stays at least: a batch of
    /// which nothing is processed is refused as a whole, which is another kind of fault.
    pub fn take(
        operation: Operation,
        request: &mut Value,
        mut is_held: impl FnMut(&str) -> bool,
    ) -> Option<HeldBack> {
        let member = match operation {
            Operation::BatchGetItem => "UnprocessedKeys",
            Operation::BatchWriteItem => "UnprocessedItems",
            _ => return None,
        };
        let tables = request.get_mut("RequestItems")?.as_object_mut()?;
        let mut left: usize = tables.values_mut().filter_map(entries).map(|it| it.len()).sum();
        let mut held = Map::new();
        for (name, of_table) in tables.iter_mut() {
            let Some(of_entries) = entries(of_table) else { continue };
            let mut taken = Vec::new();
            of_entries.retain(|entry| {
                let takes = is_held(name) && left > 1;
                if takes {
                    left -= 1;
                    taken.push(entry.clone());
                }
                !takes
            });
            if !taken.is_empty() {
                let mut of_table = of_table.clone();
                *entries(&mut of_table)? = taken;
                held.insert(name.clone(), of_table);
            }
        }
        tables.retain(|_, of_table| entries(of_table).is_none_or(|entries| !entries.is_empty()));
        (!held.is_empty()).then_some(HeldBack { member, tables: held })
    }

    /// Adds what was taken out to the answer.
    pub fn give_back(self, answer: &mut Value) {
        if !answer[self.member].is_object() {
            answer[self.member] = json!({});
        }
        for (name, mut held) in self.tables {
            let before = &mut answer[self.member][&name];
            if let (Some(before), Some(more)) = (entries(before), entries(&mut held)) {
                before.append(more);
            } else {
                *before = held;
            }
        }
    }
}

/// The requests for one table: a list, or the keys of an object with further members.
fn entries(of_table: &mut Value) -> Option<&mut Vec<Value>> {
    match of_table {
        Value::Array(entries) => Some(entries),
        Value::Object(members) => members.get_mut("Keys")?.as_array_mut(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_taken_out_and_given_back() {
        let mut request = json!({"RequestItems": {"a": [1, 2, 3], "b": [4]}});
        let mut turn = 0;
        let held = HeldBack::take(Operation::BatchWriteItem, &mut request, |_| {
            turn += 1;
            turn % 2 == 0
        });
        assert_eq!(request, json!({"RequestItems": {"a": [1, 3]}}));
        let mut answer = json!({"UnprocessedItems": {"a": [9]}});
        held.unwrap().give_back(&mut answer);
        assert_eq!(answer, json!({"UnprocessedItems": {"a": [9, 2], "b": [4]}}));
    }

    #[test]
    fn keys_keep_their_other_members_and_one_stays() {
        let mut request = json!({"RequestItems": {"a": {"Keys": [1, 2], "ConsistentRead": true}}});
        let held = HeldBack::take(Operation::BatchGetItem, &mut request, |_| true);
        assert_eq!(request["RequestItems"]["a"]["Keys"], json!([2]));
        let mut answer = json!({"Responses": {}});
        held.unwrap().give_back(&mut answer);
        let expected = json!({"a": {"Keys": [1], "ConsistentRead": true}});
        assert_eq!(answer["UnprocessedKeys"], expected);
        let mut one = json!({"RequestItems": {"a": [1]}});
        assert!(HeldBack::take(Operation::BatchWriteItem, &mut one, |_| true).is_none());
        assert!(HeldBack::take(Operation::PutItem, &mut one, |_| true).is_none());
        assert!(HeldBack::take(Operation::BatchGetItem, &mut json!([]), |_| true).is_none());
    }
}
