//! The store's content in readable form: keys decoded by the schema of their table, hashes left
//! out.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use zenobe_engine::keyspace;
use zenobe_engine::schema::{IndexDefinition, KeyAttribute, TableDefinition, TableId};
use zenobe_store::{Direction, Key, KeyRange, Reader, Value, decode_counter};
use zenobe_value::{EncodedItem, key_bytes};

use super::notation::{print_item, print_value};

const HASH: usize = keyspace::KeyHash::LENGTH;

pub type Entries = BTreeMap<Key, Value>;

/// Everything in the store except the catalogue, which has its own tests.
pub async fn entries(store: &dyn Reader) -> Entries {
    let mut entries = Entries::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        if b"TLGNZKXES".contains(&key[0]) {
            entries.insert(Key::copy_from_slice(key), Value::copy_from_slice(value));
        }
        ControlFlow::Continue(())
    };
    store.scan(KeyRange::all(), Direction::Forward, &mut visit).await.expect("a readable store");
    entries
}

/// The changes from one state to another.
pub fn difference(
    tables: &[std::sync::Arc<TableDefinition>],
    old: &Entries,
    new: &Entries,
) -> String {
    let mut lines = Vec::new();
    for (key, value) in new {
        if old.get(key) != Some(value) {
            let sign = if old.contains_key(key) { '~' } else { '+' };
            lines.push((
                key,
                format!("{sign} {} = {}\n", print_key(tables, key), print(key, value)),
            ));
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        lines.push((key, format!("- {}\n", print_key(tables, key))));
    }
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    if text.is_empty() { "unchanged\n".into() } else { text }
}

fn print(key: &Key, value: &Value) -> String {
    match key[0] {
        b'N' | b'Z' => decode_counter(Some(value)).expect("a counter").to_string(),
        b'X' | b'E' => "()".into(),
        b'Y' => "a time".into(),
        b'S' => print_record(value),
        _ => {
            let item = EncodedItem::from_bytes(value.clone()).expect("an encoded item");
            print_item(&item.as_item().decode())
        }
    }
}

/// The header in hexadecimal, then each section and its item.
fn print_record(value: &Value) -> String {
    let (header, mut rest) = value.split_at(10);
    let mut text: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
    while let Some((&tag, after)) = rest.split_first() {
        let (length, after) = after.split_at(4);
        let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        let (item, after) = after.split_at(length);
        let item = EncodedItem::from_bytes(Value::copy_from_slice(item)).expect("an encoded item");
        text += &format!(" {}{}", char::from(tag), print_item(&item.as_item().decode()));
        rest = after;
    }
    text
}

fn print_key(tables: &[std::sync::Arc<TableDefinition>], key: &Key) -> String {
    match key[0] {
        b'K' => return format!("token {}", printable(&key[1..])),
        b'X' => {
            let expiry = u64::from_be_bytes(key[1..9].try_into().expect("eight bytes"));
            return format!("expiry {expiry} {}", printable(&key[9..]));
        }
        _ => {}
    }
    let id = TableId(u64::from_be_bytes(key[1..9].try_into().expect("eight bytes")));
    let Some(table) = tables.iter().find(|table| table.id == id) else {
        return format!("{:?} of a table that is gone", char::from(key[0]));
    };
    let name = &table.name;
    let table_keys: Vec<&KeyAttribute> = table.keys.attributes().collect();
    match key[0] {
        b'T' => {
            let prefix = keyspace::item_prefix(id);
            format!("item {name} {}", values(&key[prefix.len() + HASH..], &table_keys))
        }
        b'L' | b'G' => {
            let Some((index, rest)) = index_of(table, &key[9..]) else {
                return format!("entry of an index of {name} that is gone");
            };
            let keys: Vec<&KeyAttribute> = index.keys.attributes().collect();
            let shared = usize::from(key[0] == b'L');
            let (own, tail) = leading_values(&rest[HASH..], &keys);
            let tail = values(&tail[HASH..], &table_keys[shared..]);
            format!("entry {name}/{} {}", index.name, format!("{own} {tail}").trim_end())
        }
        b'N' => {
            let what = if key[13] == b'c' { "count" } else { "size" };
            match key[9..13] {
                [0, 0, 0, 0] => format!("{what} {name}"),
                _ => match index_of(table, &key[9..]) {
                    Some((index, _)) => format!("{what} {name}/{}", index.name),
                    None => format!("{what} of an index of {name} that is gone"),
                },
            }
        }
        b'E' => {
            let second = u64::from_be_bytes(key[9..17].try_into().expect("eight bytes"));
            format!("expiry {name} {second} {}", values(&key[17 + HASH..], &table_keys))
        }
        b'S' => {
            let (log, entry) = key.split_at(key.len() - 8);
            let shard = u32::from_be_bytes(log[log.len() - 4..].try_into().expect("four bytes"));
            let entry = u64::from_be_bytes(entry.try_into().expect("eight bytes"));
            format!("record {name} {shard}/{entry}")
        }
        b'Z' => format!("collection {name} {}", values(&key[9..], &table_keys[..1])),
        other => panic!("unknown kind of key {other}"),
    }
}

fn index_of<'t, 'k>(
    table: &'t TableDefinition,
    key: &'k [u8],
) -> Option<(&'t IndexDefinition, &'k [u8])> {
    let (id, rest) = key.split_at(4);
    let id = u32::from_be_bytes(id.try_into().expect("four bytes"));
    Some((table.indexes().find(|index| index.id.0 == id)?, rest))
}

fn values(bytes: &[u8], keys: &[&KeyAttribute]) -> String {
    let (text, rest) = leading_values(bytes, keys);
    assert!(rest.is_empty(), "bytes are left over in a key");
    text
}

/// The values of these keys, and the rest.
fn leading_values<'b>(mut bytes: &'b [u8], keys: &[&KeyAttribute]) -> (String, &'b [u8]) {
    let mut texts = Vec::new();
    for key in keys {
        let (value, rest) = key_bytes::decode(bytes, key.scalar_type.attribute_type())
            .expect("key bytes that decode");
        texts.push(print_value(&value));
        bytes = rest;
    }
    (texts.join(" "), bytes)
}

fn printable(bytes: &[u8]) -> String {
    let text: Vec<&str> = bytes
        .split(|byte| *byte < b' ')
        .filter(|part| !part.is_empty())
        .map(|part| std::str::from_utf8(part).unwrap_or("?"))
        .collect();
    text.join(" ")
}
