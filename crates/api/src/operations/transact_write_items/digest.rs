//! The digest of a transaction's actions, by which a client's token recognises them.
//!
//! Two requests have the same digest if they mean the same to DynamoDB: the order of members and
//! the spelling of numbers don't count, the texts of expressions do.

use zenobe_value::EncodedValue;

use super::wire::{ActionKind, WireAction};
use crate::field_digest::FieldDigest;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::OrderedMap;

pub(super) fn of<'a>(actions: impl Iterator<Item = &'a WireAction>) -> [u8; 16] {
    let mut digest = FieldDigest::new();
    for action in actions {
        add_action(&mut digest, action);
    }
    digest.finish()
}

fn add_action(digest: &mut FieldDigest, action: &WireAction) {
    digest.bytes(match action.kind {
        ActionKind::Check => b"check",
        ActionKind::Put => b"put",
        ActionKind::Delete => b"delete",
        ActionKind::Update => b"update",
    });
    digest.text(action.table_name.as_deref());
    add_attributes(digest, action.attributes.as_ref());
    digest.text(action.update_expression.as_deref());
    digest.text(action.condition_expression.as_deref());
    add_names(digest, action.names.as_ref());
    add_attributes(digest, action.values.as_ref());
    digest.text(action.return_values_on_condition_check_failure.as_deref());
}

fn add_names(digest: &mut FieldDigest, names: Option<&OrderedMap<String>>) {
    for (key, name) in sorted(digest, names) {
        digest.text(Some(key));
        digest.text(Some(name));
    }
}

/// Invalid values need no digest: the request fails before anybody uses it.
fn add_attributes(digest: &mut FieldDigest, attributes: Option<&WireAttributes>) {
    for (name, value) in sorted(digest, attributes) {
        digest.text(Some(name));
        if let Ok(value) = value {
            digest.bytes(EncodedValue::encode(value).as_value().encoded());
        }
    }
}

/// The entries in the order of their names. Adds how many there are.
fn sorted<'m, T>(digest: &mut FieldDigest, map: Option<&'m OrderedMap<T>>) -> Vec<&'m (String, T)> {
    let mut entries: Vec<&(String, T)> = map.iter().flat_map(|map| &map.0).collect();
    entries.sort_by(|one, two| one.0.cmp(&two.0));
    digest.length(entries.len());
    entries
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

    /// They are stored, and compared with those of later versions.
    #[test]
    fn digests_stay_as_they_are() {
        let digest = digest(
            r##"{"Put":{"TableName":"t","Item":{"p":{"S":"a"},"n":{"N":"1.50"}},
                "ConditionExpression":"#p <> :p","ExpressionAttributeNames":{"#p":"p"},
                "ExpressionAttributeValues":{":p":{"S":"b"}},
                "ReturnValuesOnConditionCheckFailure":"ALL_OLD"}},
            {"Update":{"TableName":"t","Key":{"p":{"S":"c"}},"UpdateExpression":"REMOVE q"}}"##,
        );
        assert_eq!(u128::from_le_bytes(digest), 56_400_869_941_488_909_864_932_838_361_994_367_243);
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
