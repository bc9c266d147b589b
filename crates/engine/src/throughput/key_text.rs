//! The attributes in the keys that facts and reports carry.

use zenobe_value::{AttributeValue, key_bytes};

use super::cause::Resource;
use crate::keyspace::{self, KeyHash};
use crate::schema::KeyAttribute;

impl Resource {
    /// The part of a key that identifies the item or index entry by its key attributes, or `None` if
    /// the key has not all of them. Entries of indexes also name the table's item.
    pub fn item_key<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.index.is_none() {
            return (key.len() > KeyHash::LENGTH).then_some(key);
        }
        let mut rest = key.get(KeyHash::LENGTH..)?;
        for attribute in self.keys.attributes() {
            let attribute_type = attribute.scalar_type.attribute_type();
            rest = key_bytes::feed_hash(rest, attribute_type, &mut |_| {}).ok()?;
        }
        Some(&key[..key.len() - rest.len()])
    }

    /// The key attributes at the start of a key: those of the partition key or, with `sort`, also
    /// those of the sort key. `None` if they are not all there.
    pub fn key_attributes(&self, key: &[u8], sort: bool) -> Option<Vec<(String, AttributeValue)>> {
        let (_, mut rest) = keyspace::parts_of_suffix(key)?;
        let sort: &[KeyAttribute] = if sort { &self.keys.sort } else { &[] };
        let mut attributes = Vec::new();
        for attribute in self.keys.partition.iter().chain(sort) {
            let value;
            (value, rest) = key_bytes::decode(rest, attribute.scalar_type.attribute_type()).ok()?;
            attributes.push((attribute.name.clone(), value));
        }
        Some(attributes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::command::TableName;
    use crate::schema::{IndexId, KeySchema, Namespace, ScalarType, TableId};

    fn resource(index: Option<&str>) -> Resource {
        let attribute = |name: &str| KeyAttribute { name: name.into(), scalar_type: ScalarType::S };
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        Resource {
            table: TableName { namespace, name: "t".into() },
            table_id: TableId(1),
            index: index.map(|name| (name.to_owned(), IndexId(1))),
            keys: KeySchema { partition: vec![attribute("p")], sort: vec![attribute("s")] },
        }
    }

    fn key(values: &[&str]) -> Vec<u8> {
        let mut bytes = vec![7; KeyHash::LENGTH];
        for value in values {
            key_bytes::encode(&AttributeValue::S((*value).into()), &mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn the_key_of_an_index_entry_ends_before_that_of_the_item() {
        let whole = key(&["a", "b", "the item's"]);
        assert_eq!(resource(Some("i")).item_key(&whole), Some(&key(&["a", "b"])[..]));
        assert_eq!(resource(None).item_key(&whole), Some(&whole[..]));
        assert_eq!(resource(Some("i")).item_key(&key(&["a"])), None);
        assert_eq!(resource(None).item_key(&key(&[])), None);
    }

    #[test]
    fn keys_become_attributes() {
        let text = |name: &str, value: &str| (name.to_owned(), AttributeValue::S(value.into()));
        let resource = resource(None);
        let whole = key(&["a", "b"]);
        assert_eq!(resource.key_attributes(&whole, false), Some(vec![text("p", "a")]));
        let both = vec![text("p", "a"), text("s", "b")];
        assert_eq!(resource.key_attributes(&whole, true), Some(both));
        assert_eq!(resource.key_attributes(&key(&["a"]), true), None);
        assert_eq!(resource.key_attributes(&whole[..17], false), None);
    }
}
