//! Exclusive start keys: where a page goes on.

use zenobe_store::{Direction, Key, KeyRange};
use zenobe_value::Attributes;

use crate::error::{KeyError, PageError, Result};
use crate::keys::{is_empty, push_checked};
use crate::keyspace::{self, KeyHash};
use crate::schema::{IndexKind, KeyAttribute};

use super::source::Source;

/// The place of an item or index entry, which need not exist.
pub(super) struct StartKey {
    /// The key bytes of the source's partition attributes.
    pub partition: Vec<u8>,
    /// What follows them in the entry's key.
    pub rest: Vec<u8>,
    pub key: Key,
}

impl StartKey {
    /// Checks that the attributes are those of the source's keys, then their types, then their values.
    pub fn resolve(source: Source<'_>, attributes: &Attributes) -> Result<StartKey> {
        let mut count = 0;
        for attribute in source.page_keys() {
            count += 1;
            if !attributes.contains_key(&attribute.name) {
                return Err(PageError::StartKeyInvalid.into());
            }
        }
        if count != attributes.len() {
            return Err(PageError::StartKeyInvalid.into());
        }
        check_types(source, attributes)?;
        check_values(source, attributes)?;
        Ok(StartKey::locate(source, attributes))
    }

    fn locate(source: Source<'_>, attributes: &Attributes) -> StartKey {
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
        let key =
            keyspace::entry_key(source.prefix(), hash, &[&partition[..], &rest[..]].concat());
        StartKey { partition, rest, key }
    }

    /// The part of `range` that lies strictly behind this key.
    pub fn cut(&self, range: KeyRange, direction: Direction) -> KeyRange {
        after(&self.key, range, direction)
    }
}

/// The part of `range` strictly behind `key`. No entry's key is the beginning of another's.
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

fn check_types(source: Source<'_>, attributes: &Attributes) -> Result<()> {
    let mismatch = |key: &KeyAttribute| {
        attributes[&key.name].attribute_type() != key.scalar_type.attribute_type()
    };
    if source.index.is_some() && source.keys().attributes().any(mismatch) {
        return Err(PageError::StartKeyMismatch { table_key: false }.into());
    }
    if source.table_keys().attributes().any(mismatch) {
        return Err(PageError::StartKeyMismatch { table_key: true }.into());
    }
    Ok(())
}

fn check_values(source: Source<'_>, attributes: &Attributes) -> Result<()> {
    match source.page_keys().find(|key| is_empty(&attributes[&key.name])) {
        Some(key) => {
            Err(KeyError::Empty { attribute: key.name.clone(), scalar_type: key.scalar_type }
                .into())
        }
        None => Ok(()),
    }
}
