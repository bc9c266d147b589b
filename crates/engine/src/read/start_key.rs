//! Exclusive start keys: where a page continues.

use zenobe_store::{Direction, Key, KeyRange};
use zenobe_value::Attributes;

use crate::error::{KeyError, PageError, Result};
use crate::keys::{is_empty, push_checked};
use crate::keyspace::{self, KeyHash};
use crate::schema::{IndexKind, KeyAttribute};

use super::source::ReadSource;

/// The position of an item or index entry, which need not exist.
pub(super) struct StartKey {
    /// The key bytes of the source's partition attributes.
    pub partition: Vec<u8>,
    /// The rest of the entry's key.
    pub rest: Vec<u8>,
    pub key: Key,
}

impl StartKey {
    /// The start key of a Query. Its number of attributes and those of the queried schema have been
    /// checked.
    pub fn of_query(source: ReadSource<'_>, attributes: &Attributes) -> Result<StartKey> {
        check_names(source, attributes)?;
        check_table_part(source, attributes)?;
        Ok(StartKey::locate(source, attributes))
    }

    /// The start key of a Scan, after [`check_names`] and [`check_index_part`].
    pub fn of_scan(source: ReadSource<'_>, attributes: &Attributes) -> Result<StartKey> {
        check_table_part(source, attributes)?;
        check_values(source.keys().attributes(), attributes)?;
        Ok(StartKey::locate(source, attributes))
    }

    fn locate(source: ReadSource<'_>, attributes: &Attributes) -> StartKey {
        let push = |keys: &[KeyAttribute], bytes: &mut Vec<u8>| {
            keys.iter().for_each(|key| push_checked(&attributes[&key.name], bytes));
        };
        let (mut partition, mut rest) = (Vec::new(), Vec::new());
        push(&source.keys().partition, &mut partition);
        push(&source.keys().sort, &mut rest);
        if let Some(index) = source.index {
            let keys = source.table_keys();
            let mut primary = Vec::new();
            push(&keys.partition, &mut primary);
            let partition_end = primary.len();
            push(&keys.sort, &mut primary);
            rest.extend_from_slice(KeyHash::of(keys.attributes(), &primary).as_bytes());
            rest.extend_from_slice(match index.definition.kind {
                IndexKind::Local => &primary[partition_end..],
                IndexKind::Global => &primary,
            });
        }
        let hash = KeyHash::of(&source.keys().partition, &partition);
        let key = keyspace::entry_key(source.prefix(), hash, &[&partition[..], &rest[..]].concat());
        StartKey { partition, rest, key }
    }

    /// The part of `range` strictly after this key, in scan direction.
    pub fn cut(&self, range: KeyRange, direction: Direction) -> KeyRange {
        after(&self.key, range, direction)
    }
}

/// The part of `range` strictly after `key`, in scan direction. No entry's key is a prefix of
/// another's.
pub(super) fn after(key: &[u8], range: KeyRange, direction: Direction) -> KeyRange {
    match direction {
        Direction::Forward => {
            let successor = Key::from([key, &[0]].concat());
            KeyRange { start: successor.max(range.start), end: range.end }
        }
        Direction::Reverse => {
            let key = Key::copy_from_slice(key);
            let end = range.end.map_or(key.clone(), |end| end.min(key));
            KeyRange { start: range.start, end: Some(end) }
        }
    }
}

/// The number of attributes must match the keys of the table and the index.
pub(super) fn check_count(
    source: ReadSource<'_>,
    attributes: &Attributes,
) -> Result<(), PageError> {
    match attributes.len() == source.page_keys().count() {
        true => Ok(()),
        false => Err(PageError::StartKeyInvalid),
    }
}

/// The attributes must be those of the keys.
pub(super) fn check_names(
    source: ReadSource<'_>,
    attributes: &Attributes,
) -> Result<(), PageError> {
    check_count(source, attributes)?;
    match source.page_keys().all(|key| attributes.contains_key(&key.name)) {
        true => Ok(()),
        false => Err(PageError::StartKeyInvalid),
    }
}

/// Checks one attribute of the queried schema, as a Query does before the condition on that
/// attribute.
pub(super) fn check_attribute(key: &KeyAttribute, attributes: &Attributes) -> Result<()> {
    match attributes.get(&key.name) {
        None => Err(PageError::StartKeyInvalid.into()),
        Some(value) if value.attribute_type() != key.scalar_type.attribute_type() => {
            Err(PageError::StartKeyMismatch { table_key: false }.into())
        }
        Some(_) => check_values([key], attributes),
    }
}

/// The types of the index's keys.
pub(super) fn check_index_part(
    source: ReadSource<'_>,
    attributes: &Attributes,
) -> Result<(), PageError> {
    match source.index.is_some() && source.keys().attributes().any(mistyped(attributes)) {
        true => Err(PageError::StartKeyMismatch { table_key: false }),
        false => Ok(()),
    }
}

/// The types and values of the table's keys.
fn check_table_part(source: ReadSource<'_>, attributes: &Attributes) -> Result<()> {
    if source.table_keys().attributes().any(mistyped(attributes)) {
        return Err(PageError::StartKeyMismatch { table_key: true }.into());
    }
    check_values(source.table_keys().attributes(), attributes)
}

fn mistyped(attributes: &Attributes) -> impl Fn(&KeyAttribute) -> bool {
    |key| attributes[&key.name].attribute_type() != key.scalar_type.attribute_type()
}

fn check_values<'k>(
    keys: impl IntoIterator<Item = &'k KeyAttribute>,
    attributes: &Attributes,
) -> Result<()> {
    match keys.into_iter().find(|key| is_empty(&attributes[&key.name])) {
        Some(key) => {
            Err(KeyError::Empty { attribute: key.name.clone(), scalar_type: key.scalar_type }
                .into())
        }
        None => Ok(()),
    }
}
