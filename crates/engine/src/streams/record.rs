//! A stream record in its stored form. `docs/store-format/keyspace.md` shows the layout.
//!
//! The time of the change is the stamp of the log entry, not part of the record: the store keeps
//! stamps in commit order.
//!
//! Images are copies of the items' stored bytes. The keys are stored separately only if the record
//! has no image that contains them.

use zenobe_store::Value;
use zenobe_value::{EncodedItem, ItemRef};

use crate::error::{Error, Result};
use crate::schema::{KeySchema, StreamViewType};

const VERSION: u8 = 2;
const HEADER_LENGTH: usize = 1 + 1;

mod section {
    pub const KEYS: u8 = b'k';
    pub const NEW: u8 = b'n';
    pub const OLD: u8 = b'o';
}

/// Set in the event's byte if the database itself, not a client, made the change.
const BY_SERVICE: u8 = 0x80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    Insert,
    Modify,
    Remove,
}

/// A change as its record shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub event: StreamEvent,
    pub by_service: bool,
    pub keys: EncodedItem,
    pub new: Option<EncodedItem>,
    pub old: Option<EncodedItem>,
}

/// A change of an item; at least one of the images is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Images<'a> {
    pub old: Option<&'a EncodedItem>,
    pub new: Option<&'a EncodedItem>,
}

pub(crate) fn encode(
    view_type: StreamViewType,
    keys: &KeySchema,
    images: Images<'_>,
    by_service: bool,
) -> Value {
    let (shows_new, shows_old) = match view_type {
        StreamViewType::KeysOnly => (false, false),
        StreamViewType::NewImage => (true, false),
        StreamViewType::OldImage => (false, true),
        StreamViewType::NewAndOldImages => (true, true),
    };
    let (new, old) = (images.new.filter(|_| shows_new), images.old.filter(|_| shows_old));
    let key_item = match (new, old) {
        (None, None) => images.new.or(images.old).map(|item| key_item(keys, item.as_item())),
        _ => None,
    };
    let sections = [(section::KEYS, key_item.as_ref()), (section::NEW, new), (section::OLD, old)];
    let length = |item: &EncodedItem| 1 + 4 + item.as_bytes().len();
    let lengths: usize = sections.iter().filter_map(|(_, item)| item.map(length)).sum();
    let mut out = Vec::with_capacity(HEADER_LENGTH + lengths);
    out.push(VERSION);
    out.push(event_byte(images) | if by_service { BY_SERVICE } else { 0 });
    for (tag, item) in sections {
        let Some(item) = item else { continue };
        let bytes = item.as_bytes();
        let length = u32::try_from(bytes.len()).expect("an item is smaller than 4 GiB");
        out.push(tag);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(bytes);
    }
    out.into()
}

pub(crate) fn decode(value: &Value, keys: &KeySchema) -> Result<StoredRecord> {
    let Some([VERSION, event]) = value.first_chunk::<HEADER_LENGTH>() else {
        return Err(corrupt());
    };
    let by_service = event & BY_SERVICE != 0;
    let event = match event & !BY_SERVICE {
        0 => StreamEvent::Insert,
        1 => StreamEvent::Modify,
        2 => StreamEvent::Remove,
        _ => return Err(corrupt()),
    };
    let (mut key_image, mut new, mut old) = (None, None, None);
    let mut at = HEADER_LENGTH;
    while at < value.len() {
        let (&tag, rest) = value[at..].split_first().ok_or_else(corrupt)?;
        let length = u32::from_be_bytes(*rest.first_chunk().ok_or_else(corrupt)?) as usize;
        let start = at + 1 + 4;
        at = start.checked_add(length).filter(|&end| end <= value.len()).ok_or_else(corrupt)?;
        let item = EncodedItem::from_bytes(value.slice(start..at)).map_err(|_| corrupt())?;
        match tag {
            section::KEYS => key_image = Some(item),
            section::NEW => new = Some(item),
            section::OLD => old = Some(item),
            _ => return Err(corrupt()),
        }
    }
    let image = new.as_ref().or(old.as_ref()).map(|image| key_item(keys, image.as_item()));
    let keys = key_image.or(image).ok_or_else(corrupt)?;
    Ok(StoredRecord { event, by_service, keys, new, old })
}

fn event_byte(images: Images<'_>) -> u8 {
    match (images.old, images.new) {
        (None, _) => 0,
        (Some(_), Some(_)) => 1,
        (Some(_), None) => 2,
    }
}

fn key_item(keys: &KeySchema, item: ItemRef<'_>) -> EncodedItem {
    item.retain(|name| keys.contains(name))
}

fn corrupt() -> Error {
    tracing::error!("a stream record does not decode");
    Error::Corrupt { detail: "a stream record".to_owned() }
}

#[cfg(test)]
mod tests {
    use zenobe_value::{AttributeValue, Attributes};

    use super::*;
    use crate::schema::{KeyAttribute, ScalarType};

    fn keys() -> KeySchema {
        let partition = KeyAttribute { name: "pk".to_owned(), scalar_type: ScalarType::S };
        KeySchema { partition: vec![partition], sort: Vec::new() }
    }

    fn item(attributes: &[(&str, &str)]) -> EncodedItem {
        let attribute = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), AttributeValue::S((*text).to_owned()))
        };
        EncodedItem::encode(&attributes.iter().map(attribute).collect::<Attributes>())
    }

    #[test]
    fn every_view_shows_what_it_should() {
        let (old, new) = (item(&[("pk", "k"), ("a", "1")]), item(&[("pk", "k"), ("a", "2")]));
        let key = item(&[("pk", "k")]);
        let views = [
            (StreamViewType::KeysOnly, false, false),
            (StreamViewType::NewImage, true, false),
            (StreamViewType::OldImage, false, true),
            (StreamViewType::NewAndOldImages, true, true),
        ];
        let changes = [
            (StreamEvent::Insert, None, Some(&new)),
            (StreamEvent::Modify, Some(&old), Some(&new)),
            (StreamEvent::Remove, Some(&old), None),
        ];
        for (view_type, shows_new, shows_old) in views {
            for (event, old, new) in changes {
                for by_service in [false, true] {
                    let images = Images { old, new };
                    let value = encode(view_type, &keys(), images, by_service);
                    let expected = StoredRecord {
                        event,
                        by_service,
                        keys: key.clone(),
                        new: new.filter(|_| shows_new).cloned(),
                        old: old.filter(|_| shows_old).cloned(),
                    };
                    assert_eq!(decode(&value, &keys()).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn damaged_records_are_errors() {
        let image = item(&[("pk", "k")]);
        let images = Images { old: None, new: Some(&image) };
        let value = encode(StreamViewType::NewImage, &keys(), images, false);
        for length in 0..value.len() {
            assert!(decode(&value.slice(..length), &keys()).is_err(), "{length}");
        }
        for (position, byte) in [(0, 1), (1, 3), (2, b'x'), (3, 0xFF)] {
            let mut damaged = value.to_vec();
            damaged[position] = byte;
            assert!(decode(&damaged.into(), &keys()).is_err(), "{position}");
        }
    }
}
