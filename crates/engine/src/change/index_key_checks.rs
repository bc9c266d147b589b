//! Checks whether the index key attributes of a written item can be keys.
//!
//! A missing attribute keeps the item out of the index; a value that can't be a key fails the
//! write.

use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{ItemRef, ValueRef};

use crate::catalog::Table;
use crate::error::{Error, IndexKeyError, Result};
use crate::indexes::index_entry::is_empty;
use crate::indexes::maintained;
use crate::schema::{IndexDefinition, KeyAttribute};

/// Checks every index key attribute of an item that is put.
pub(crate) fn check_put(table: &Table, item: ItemRef<'_>) -> Result<()> {
    first_by_name(table, |index| fault(index, item, |_| true))
}

/// Checks the index key attributes that an update changes. Attributes that it leaves alone may be
/// older than the index.
pub(crate) fn check_update(
    table: &Table,
    old: Option<ItemRef<'_>>,
    new: ItemRef<'_>,
) -> Result<()> {
    let changed = |name: &str| old.and_then(|item| item.get(name)) != new.get(name);
    first_by_name(table, |index| {
        let (attribute, error) = fault(index, new, changed)?;
        Some((attribute, error.of_update()))
    })
}

/// If several indexes have a fault, reports the first index in alphabetical order.
pub(crate) fn first_by_name<'t>(
    table: &'t Table,
    fault: impl Fn(&'t IndexDefinition) -> Option<(&'t str, IndexKeyError)>,
) -> Result<()> {
    let first = maintained(table)
        .filter_map(|index| Some((&index.definition.name, fault(index.definition)?)))
        .min_by_key(|(name, _)| *name);
    match first {
        None => Ok(()),
        Some((index, (attribute, error))) => {
            Err(Error::IndexKey { index: index.clone(), attribute: attribute.to_owned(), error })
        }
    }
}

/// The first fault of the item's keys in one index, considering only `relevant` attributes.
fn fault<'i>(
    index: &'i IndexDefinition,
    item: ItemRef<'_>,
    relevant: impl Fn(&str) -> bool,
) -> Option<(&'i str, IndexKeyError)> {
    for attribute in index.keys.attributes().filter(|attribute| relevant(&attribute.name)) {
        let value = item.get(&attribute.name);
        if let Some(error) = value.and_then(|value| value_fault(attribute, value)) {
            return Some((&attribute.name, error));
        }
    }
    let too_long = |attributes: &'i [KeyAttribute], size_bytes_max| {
        let size_bytes: usize = attributes
            .iter()
            .filter_map(|attribute| item.get(&attribute.name))
            .map(|value| value.size_bytes())
            .sum();
        let changed = attributes.iter().rfind(|attribute| relevant(&attribute.name))?;
        (size_bytes > size_bytes_max).then_some(changed.name.as_str())
    };
    if let Some(attribute) = too_long(&index.keys.partition, PARTITION_KEY_SIZE_BYTES_MAX) {
        return Some((attribute, IndexKeyError::PartitionKeyTooLong));
    }
    let attribute = too_long(&index.keys.sort, SORT_KEY_SIZE_BYTES_MAX)?;
    Some((attribute, IndexKeyError::SortKeyTooLong))
}

fn value_fault(attribute: &KeyAttribute, value: ValueRef<'_>) -> Option<IndexKeyError> {
    let expected = attribute.scalar_type;
    let actual = value.attribute_type();
    if actual != expected.attribute_type() {
        Some(IndexKeyError::TypeMismatch { expected, actual })
    } else if is_empty(value) {
        Some(IndexKeyError::Empty { scalar_type: expected })
    } else {
        None
    }
}

impl IndexKeyError {
    /// The same fault, as an update reports it.
    fn of_update(self) -> IndexKeyError {
        match self {
            IndexKeyError::TypeMismatch { .. } => IndexKeyError::UpdatedTypeMismatch,
            IndexKeyError::Empty { scalar_type } => IndexKeyError::UpdatedEmpty { scalar_type },
            IndexKeyError::PartitionKeyTooLong | IndexKeyError::SortKeyTooLong => {
                IndexKeyError::UpdatedTooLong
            }
            updated => updated,
        }
    }
}
