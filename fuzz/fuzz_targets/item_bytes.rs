//! Stored items: arbitrary bytes are rejected, or are the one encoding of an item.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use zenobe_value::{EncodedItem, ItemRef, item_size_bytes};

fuzz_target!(|input: &[u8]| {
    let borrowed = ItemRef::parse(input).map(|item| item.decode());
    let item = EncodedItem::from_bytes(Bytes::copy_from_slice(input));
    assert_eq!(borrowed.is_ok(), item.is_ok());
    let Ok(item) = item else { return };
    let attributes = item.as_item().decode();
    assert_eq!(borrowed.as_ref(), Ok(&attributes));
    assert_eq!(EncodedItem::encode(&attributes).as_bytes()[..], *input, "{attributes:?}");
    assert_eq!(item.as_item().size_bytes(), item_size_bytes(&attributes));
    for (name, value) in item.as_item().iter() {
        let found = item.as_item().get(name).expect("a listed attribute is found");
        assert_eq!(found.decode(), attributes[name]);
        assert_eq!(value.attribute_type(), attributes[name].attribute_type());
        assert_eq!(value.size_bytes(), attributes[name].size_bytes());
    }
    let all = item.as_item().retain(|_| true);
    assert_eq!(all.as_bytes()[..], *input);
    assert!(item.as_item().retain(|_| false).as_item().decode().is_empty());
});
