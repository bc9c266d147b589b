//! What kind of thing an item is, in a table that holds several.

use zenobe_value::{ItemRef, ValueView};

/// Where items say what they are.
pub enum Entities {
    /// They don't matter.
    None,
    /// In an attribute.
    Attribute(String),
    /// In what stands before a `#` in their keys: partition key, sort key.
    KeyPrefix(Vec<String>),
}

/// A longer prefix is not a name.
const PREFIX_LENGTH_MAX: usize = 64;

impl Entities {
    /// The entity of an item, if it has one.
    pub fn of(&self, item: ItemRef<'_>) -> Option<String> {
        match self {
            Entities::None => None,
            Entities::Attribute(name) => item.get(name).and_then(|value| match value.view() {
                ValueView::S(text) | ValueView::N(text) => Some(text.to_owned()),
                ValueView::Bool(flag) => Some(flag.to_string()),
                _ => None,
            }),
            // The sort key is more particular: in the collection of a customer, it tells orders from addresses.
            Entities::KeyPrefix(keys) => keys.iter().rev().find_map(|key| prefix(item, key)),
        }
    }
}

fn prefix(item: ItemRef<'_>, key: &str) -> Option<String> {
    let ValueView::S(text) = item.get(key)?.view() else { return None };
    let (prefix, _) = text.split_once('#')?;
    // Dates and numbers are not kinds of things.
    let begins = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let is_word = prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    (begins && is_word && prefix.len() <= PREFIX_LENGTH_MAX).then(|| prefix.to_owned())
}

#[cfg(test)]
mod tests {
    use zenobe_value::{AttributeValue, Attributes, EncodedItem};

    use super::*;

    fn of(entities: &Entities, pk: &str, sk: &str) -> Option<String> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let item = Attributes::from([("pk".into(), text(pk)), ("sk".into(), text(sk))]);
        entities.of(EncodedItem::encode(&item).as_item())
    }

    #[test]
    fn the_sort_key_tells_more_than_the_partition_key() {
        let keys = Entities::KeyPrefix(vec!["pk".to_owned(), "sk".to_owned()]);
        let some = |entity: &str| Some(entity.to_owned());
        assert_eq!(of(&keys, "CUSTOMER#1", "ORDER#7"), some("ORDER"));
        assert_eq!(of(&keys, "CUSTOMER#1", "PROFILE"), some("CUSTOMER"));
        assert_eq!(of(&keys, "CUSTOMER#1", "2026-11-16#7"), some("CUSTOMER"));
        assert_eq!(of(&keys, "1", "2"), None);
        assert_eq!(of(&Entities::None, "CUSTOMER#1", "ORDER#7"), None);
        assert_eq!(of(&Entities::Attribute("sk".to_owned()), "a", "any text"), some("any text"));
        assert_eq!(of(&Entities::Attribute("other".to_owned()), "a", "b"), None);
    }
}
