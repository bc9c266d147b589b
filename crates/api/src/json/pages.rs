//! Pages of items as a client receives them, for commands that call an endpoint.

use zenobe_value::EncodedItem;

use super::attribute_value::WireAttributes;
use super::decode::{raw_member, request, shape};
use crate::messages::value;

shape! {
    struct PageAnswer {
        "Items" => items: Vec<WireAttributes>,
        "LastEvaluatedKey" => last_evaluated_key: WireAttributes,
    }
}

/// What Scan or Query has answered.
#[derive(Debug, Clone)]
pub struct ItemPage {
    pub items: Vec<EncodedItem>,
    /// `LastEvaluatedKey` as JSON, to be sent back.
    pub last_key: Option<String>,
}

/// Reads a page.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read_page(body: &[u8]) -> Result<ItemPage, String> {
    let answer: PageAnswer =
        request(body).map_err(|error| error.message().unwrap_or("not JSON").to_owned())?;
    let encode = |item: WireAttributes| match item.into_attributes() {
        Ok(item) => Ok(EncodedItem::encode(&item)),
        Err(fault) => Err(value::value_fault_text(&fault)),
    };
    let items = answer.items.unwrap_or_default().into_iter().map(encode);
    let last_key = answer.last_evaluated_key.and_then(|_| raw_member(body, "LastEvaluatedKey"));
    Ok(ItemPage { items: items.collect::<Result<_, _>>()?, last_key: last_key.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_as_they_are_answered() {
        let page =
            br#"{"Count":1,"Items":[{"a":{"N":"1.50"}}],"LastEvaluatedKey":{"a":{"N":"1.5"}}}"#;
        let page = read_page(page).unwrap();
        assert_eq!(page.items.len(), 1);
        assert_eq!(page.last_key.as_deref(), Some(r#"{"a":{"N":"1.5"}}"#));
        assert_eq!(read_page(b"{}").unwrap().last_key, None);
        assert!(read_page(b"<html>").is_err());
        assert!(read_page(br#"{"Items":[{"a":{}}]}"#).is_err());
    }
}
