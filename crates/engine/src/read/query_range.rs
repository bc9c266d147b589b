//! Resolves key conditions against a key schema: which range of keys a query reads.

use zenobe_expression::{KeyCondition, KeyOperator};
use zenobe_store::{Key, KeyRange, prefix_end};
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeValue, Attributes, key_bytes};

use crate::error::{KeyError, PageError, Result};
use crate::keys::{is_empty, push_checked};
use crate::keyspace::{self, KeyHash};
use crate::schema::{KeyAttribute, KeySchema};

use super::source::ReadSource;
use super::start_key::{StartKey, check_attribute};

/// What a query reads: one partition, or a range of its sort keys.
pub(super) struct QueryRange {
    pub range: KeyRange,
    /// The key bytes of the partition attributes.
    partition: Vec<u8>,
    /// The common prefix of the partition's keys.
    partition_prefix: Key,
    has_sort_condition: bool,
}

impl QueryRange {
    /// Checks one key attribute after the other: its value in the start key, then its condition.
    pub fn resolve(
        source: ReadSource<'_>,
        conditions: &[KeyCondition],
        start: Option<&Attributes>,
    ) -> Result<QueryRange> {
        let keys = source.keys();
        check_count(keys, conditions)?;
        let partition = partition_bytes(keys, conditions, start)?;
        let sort = sort_conditions(keys, conditions, start)?;
        let hash = KeyHash::of(&keys.partition, &partition);
        let partition_prefix = keyspace::entry_key(source.prefix(), hash, &partition);
        let range = sort_range(&partition_prefix, &sort)?;
        Ok(QueryRange { range, partition, partition_prefix, has_sort_condition: !sort.is_empty() })
    }

    pub fn check_start_key(
        &self,
        source: ReadSource<'_>,
        start: &StartKey,
        attributes: &Attributes,
    ) -> Result<(), PageError> {
        let same_partition = start.partition == self.partition;
        if !self.has_sort_condition {
            return if !same_partition {
                Err(PageError::StartKeyOutsideQuery)
            } else if source.has_single_items() {
                Err(PageError::StartKeyOfSingleItem { key: Box::new(attributes.clone()) })
            } else {
                Ok(())
            };
        }
        let place = [&self.partition_prefix[..], &start.rest].concat();
        if !self.range.contains(&place) {
            return Err(PageError::StartKeyOutsideSortCondition);
        }
        if same_partition { Ok(()) } else { Err(PageError::QueryNotRestartable) }
    }
}

fn check_count(keys: &KeySchema, conditions: &[KeyCondition]) -> Result<(), PageError> {
    let attributes = keys.attributes().count();
    if conditions.len() <= attributes {
        Ok(())
    } else if attributes == 1 && conditions.len() == 2 {
        Err(PageError::KeyConditionNotSupported)
    } else {
        Err(PageError::TooManyKeyConditions { given: conditions.len(), attributes })
    }
}

/// Schemas with several attributes of a kind have their own errors.
fn has_multiple_attributes(keys: &KeySchema) -> bool {
    keys.partition.len() > 1 || keys.sort.len() > 1
}

/// The attributes that have no equality condition.
fn without_equality(attributes: &[KeyAttribute], conditions: &[KeyCondition]) -> Vec<String> {
    let has_equality = |attribute: &&KeyAttribute| {
        let condition = find(conditions, attribute);
        condition.is_some_and(|condition| matches!(condition.operator, KeyOperator::Equal(_)))
    };
    let without = attributes.iter().filter(|attribute| !has_equality(attribute));
    without.map(|attribute| attribute.name.clone()).collect()
}

fn partition_bytes(
    keys: &KeySchema,
    conditions: &[KeyCondition],
    start: Option<&Attributes>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for attribute in &keys.partition {
        start.map_or(Ok(()), |start| check_attribute(attribute, start))?;
        if has_multiple_attributes(keys) {
            let attributes = without_equality(&keys.partition, conditions);
            if !attributes.is_empty() {
                return Err(PageError::PartitionConditionsNotEqual { attributes }.into());
            }
        }
        let condition = find(conditions, attribute).ok_or_else(|| missing(attribute))?;
        check_operator(attribute, condition)?;
        let KeyOperator::Equal(value) = &condition.operator else {
            return Err(PageError::KeyConditionNotSupported.into());
        };
        check_values(attribute, condition)?;
        if value.size_bytes() > PARTITION_KEY_SIZE_BYTES_MAX {
            return Err(KeyError::PartitionKeyTooLong.into());
        }
        push_checked(value, &mut bytes);
    }
    Ok(bytes)
}

/// The conditions on sort attributes in schema order. They must start at the left without gaps, and
/// all but the last must be equalities.
fn sort_conditions<'q>(
    keys: &KeySchema,
    conditions: &'q [KeyCondition],
    start: Option<&Attributes>,
) -> Result<Vec<&'q KeyCondition>> {
    let expected = conditions.len() - keys.partition.len();
    let mut sort: Vec<&KeyCondition> = Vec::with_capacity(expected);
    for (position, attribute) in keys.sort.iter().enumerate() {
        start.map_or(Ok(()), |start| check_attribute(attribute, start))?;
        if position == 0 {
            check_sort_equalities(keys, conditions)?;
        }
        if position >= expected {
            continue;
        }
        // One condition is left, and it is not on a key attribute.
        let condition = find(conditions, attribute).ok_or_else(|| missing(attribute))?;
        check_operator(attribute, condition)?;
        check_values(attribute, condition)?;
        if condition.operator.values().any(|value| value.size_bytes() > SORT_KEY_SIZE_BYTES_MAX) {
            return Err(KeyError::SortKeyTooLong.into());
        }
        sort.push(condition);
    }
    Ok(sort)
}

/// All sort attributes before the last one with a condition must have an equality.
fn check_sort_equalities(keys: &KeySchema, conditions: &[KeyCondition]) -> Result<(), PageError> {
    let last = keys.sort.iter().rposition(|attribute| find(conditions, attribute).is_some());
    let Some(last) = last else { return Ok(()) };
    let attributes = without_equality(&keys.sort[..last], conditions);
    match attributes.is_empty() {
        true => Ok(()),
        false => {
            let behind = keys.sort[last].name.clone();
            Err(PageError::SortConditionsNotEqual { attributes, behind })
        }
    }
}

fn sort_range(partition_prefix: &Key, conditions: &[&KeyCondition]) -> Result<KeyRange> {
    let mut base = partition_prefix.to_vec();
    for condition in conditions {
        match &condition.operator {
            KeyOperator::Equal(value) => push_checked(value, &mut base),
            other => return range_of(&base, other),
        }
    }
    Ok(KeyRange::prefix(base))
}

fn range_of(base: &[u8], operator: &KeyOperator) -> Result<KeyRange> {
    let at = |value: &AttributeValue| {
        let mut key = base.to_vec();
        push_checked(value, &mut key);
        Key::from(key)
    };
    // A base starts with a letter, so there is always a key after it.
    let behind = |key: &[u8]| prefix_end(key).expect("a key's first byte is below FF");
    let start = || Key::copy_from_slice(base);
    Ok(match operator {
        KeyOperator::Equal(value) => KeyRange::prefix(at(value)),
        KeyOperator::Less(value) => KeyRange::new(start(), at(value)),
        KeyOperator::LessOrEqual(value) => KeyRange::new(start(), behind(&at(value))),
        KeyOperator::Greater(value) => KeyRange::new(behind(&at(value)), behind(base)),
        KeyOperator::GreaterOrEqual(value) => KeyRange::new(at(value), behind(base)),
        KeyOperator::Between(low, high) => KeyRange::new(at(low), behind(&at(high))),
        KeyOperator::Within { low, low_inclusive, high, high_inclusive } => {
            let start = if *low_inclusive { at(low) } else { behind(&at(low)) };
            let end = if *high_inclusive { behind(&at(high)) } else { at(high) };
            KeyRange::new(start, end)
        }
        KeyOperator::BeginsWith(prefix) => KeyRange::prefix(begin(base, prefix)?),
        KeyOperator::NotIndexable => return Err(PageError::NotIndexable.into()),
    })
}

fn begin(base: &[u8], prefix: &AttributeValue) -> Result<Vec<u8>, PageError> {
    let mut key = base.to_vec();
    match prefix {
        AttributeValue::S(text) => key_bytes::encode_string_prefix(text.as_bytes(), &mut key),
        AttributeValue::B(bytes) => key_bytes::encode_binary_prefix(bytes, &mut key),
        _ => return Err(PageError::KeyConditionNotSupported),
    }
    Ok(key)
}

fn check_operator(attribute: &KeyAttribute, condition: &KeyCondition) -> Result<(), PageError> {
    if condition.operator == KeyOperator::NotIndexable {
        return Err(PageError::NotIndexable);
    }
    let expected = attribute.scalar_type.attribute_type();
    if condition.operator.values().any(|value| value.attribute_type() != expected) {
        return Err(PageError::ConditionTypeMismatch);
    }
    Ok(())
}

fn check_values(attribute: &KeyAttribute, condition: &KeyCondition) -> Result<(), PageError> {
    if condition.operator.values().any(is_empty) {
        return Err(PageError::EmptyKeyValue {
            attribute: attribute.name.clone(),
            scalar_type: attribute.scalar_type,
        });
    }
    Ok(())
}

fn find<'q>(conditions: &'q [KeyCondition], attribute: &KeyAttribute) -> Option<&'q KeyCondition> {
    conditions.iter().find(|condition| condition.attribute == attribute.name)
}

fn missing(attribute: &KeyAttribute) -> PageError {
    PageError::MissingKeyCondition { attribute: attribute.name.clone() }
}
