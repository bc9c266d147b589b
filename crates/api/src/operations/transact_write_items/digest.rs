//! The digest of a transaction's actions, by which a client's token recognises them.
//!
//! Two requests have the same digest if they mean the same to DynamoDB: the order of members and
//! the spelling of numbers don't count, the texts of expressions do. The digest protects clients
//! from their own mistakes, so it must be good but not cryptographic.

use xxhash_rust::xxh3::Xxh3;
use zenobe_value::EncodedValue;

use super::wire::{ActionKind, WireAction};
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::OrderedMap;

pub(super) fn of<'a>(actions: impl Iterator<Item = &'a WireAction>) -> [u8; 16] {
    let mut digest = Digest(Xxh3::new());
    for action in actions {
        digest.action(action);
    }
    digest.0.digest128().to_le_bytes()
}

/// Hashes every field with its length, so that no two lists of fields produce the same bytes.
struct Digest(Xxh3);

impl Digest {
    fn action(&mut self, action: &WireAction) {
        self.bytes(match action.kind {
            ActionKind::Check => b"check",
            ActionKind::Put => b"put",
            ActionKind::Delete => b"delete",
            ActionKind::Update => b"update",
        });
        self.text(action.table_name.as_deref());
        self.attributes(action.attributes.as_ref());
        self.text(action.update_expression.as_deref());
        self.text(action.condition_expression.as_deref());
        self.names(action.names.as_ref());
        self.attributes(action.values.as_ref());
        self.text(action.return_values_on_condition_check_failure.as_deref());
    }

    fn names(&mut self, names: Option<&OrderedMap<String>>) {
        for (key, name) in self.sorted(names) {
            self.text(Some(key));
            self.text(Some(name));
        }
    }

    /// Invalid values need no digest: the request fails before anybody uses it.
    fn attributes(&mut self, attributes: Option<&WireAttributes>) {
        for (name, value) in self.sorted(attributes) {
            self.text(Some(name));
            if let Ok(value) = value {
                self.bytes(EncodedValue::encode(value).as_value().encoded());
            }
        }
    }

    fn sorted<'m, T>(&mut self, map: Option<&'m OrderedMap<T>>) -> Vec<&'m (String, T)> {
        let mut entries: Vec<&(String, T)> = map.iter().flat_map(|map| &map.0).collect();
        entries.sort_by(|one, two| one.0.cmp(&two.0));
        self.length(entries.len());
        entries
    }

    fn text(&mut self, text: Option<&str>) {
        self.0.update(&[u8::from(text.is_some())]);
        self.bytes(text.unwrap_or_default().as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.update(bytes);
    }

    fn length(&mut self, length: usize) {
        self.0.update(&(length as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::TransactWriteItemsInput;
    use super::*;
    use crate::json::decode::request;

    fn digest(actions: &str) -> [u8; 16] {
        let body = format!(r#"{{"TransactItems":[{actions}],"ReturnConsumedCapacity":"TOTAL"}}"#);
        let input: TransactWriteItemsInput = request(body.as_bytes()).unwrap();
        let items = input.transact_items.unwrap();
        let actions: Vec<WireAction> =
            items.into_iter().flat_map(|item| item.into_actions()).collect();
        of(actions.iter())
    }

    #[test]
    fn equivalent_requests_have_the_same_digest() {
        let one = digest(r#"{"Put":{"TableName":"t","Item":{"p":{"S":"a"},"n":{"N":"1"}}}}"#);
        let two = digest(r#"{"Put":{"Item":{"n":{"N":"1.0"},"p":{"S":"a"}},"TableName":"t"}}"#);
        assert_eq!(one, two);
    }

    #[test]
    fn other_requests_have_other_digests() {
        let requests = [
            r#"{"Put":{"TableName":"t","Item":{"p":{"S":"a"}}}}"#,
            r#"{"Put":{"TableName":"t","Item":{"p":{"S":"b"}}}}"#,
            r#"{"Put":{"TableName":"t","Item":{"p":{"B":"YQ=="}}}}"#,
            r#"{"Put":{"TableName":"u","Item":{"p":{"S":"a"}}}}"#,
            r#"{"Delete":{"TableName":"t","Key":{"p":{"S":"a"}}}}"#,
            r#"{"Delete":{"TableName":"t","Key":{"p":{"S":"a"}},"ConditionExpression":"p = :p"}}"#,
            r#"{"ConditionCheck":{"TableName":"t","Key":{"p":{"S":"a"}},"ConditionExpression":"p = :p"}}"#,
            r#"{"Update":{"TableName":"t","Key":{"p":{"S":"a"}},"UpdateExpression":"p = :p"}}"#,
            r##"{"Put":{"TableName":"t","Item":{"p":{"S":"a"}},"ExpressionAttributeNames":{"#a":"b"}}}"##,
            r##"{"Put":{"TableName":"t","Item":{"p":{"S":"a"}},"ExpressionAttributeNames":{"#ab":""}}}"##,
            r#"{"Put":{"TableName":"t","Item":{"p":{"S":"a"}},"ExpressionAttributeValues":{":a":{"N":"1"}}}}"#,
            r#"{"Put":{"TableName":"t","Item":{"p":{"S":"a"}},"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}}"#,
        ];
        for (position, one) in requests.iter().enumerate() {
            for two in &requests[position + 1..] {
                assert_ne!(digest(one), digest(two), "{one} {two}");
            }
        }
    }
}
