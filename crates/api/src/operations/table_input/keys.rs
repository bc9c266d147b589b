//! Attribute definitions and key schemas.

use std::collections::{BTreeMap, BTreeSet};

use zenobe_engine::schema::{KeyAttribute, KeySchema, ScalarType};

use super::shapes::{AttributeDefinition, KeySchemaElement};
use crate::constraints::{Violations, printed_list};
use crate::error::ApiError;
use crate::java_set;
use crate::messages::constraint::java_object;
use crate::messages::table;
use crate::operations::enumerations::{KEY_TYPE, KeyType, SCALAR_TYPE};

/// The most HASH, and the most RANGE, attributes in the key of a global index.
const MULTI_ATTRIBUTE_KEYS_MAX: usize = 4;

/// Attribute definitions that passed their constraints, in request order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definitions {
    names: Vec<String>,
    types: BTreeMap<String, ScalarType>,
}

/// One element of a key schema that passed its constraints.
#[derive(Debug, Clone)]
pub(crate) struct KeyElement {
    pub(crate) name: String,
    pub(crate) key_type: KeyType,
}

/// Which key schemas may have more than two attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyCount {
    AtMostTwo,
    Many,
}

impl Definitions {
    pub(crate) fn constrain(
        definitions: Vec<AttributeDefinition>,
        violations: &mut Violations,
    ) -> Definitions {
        let mut constrained = Definitions::default();
        for (position, definition) in definitions.into_iter().enumerate() {
            let path = format!("attributeDefinitions.{}.member", position + 1);
            let name = attribute_name(definition.attribute_name, &path, violations);
            let type_path = format!("{path}.attributeType");
            let scalar_type = violations.required_enumeration(
                definition.attribute_type.as_deref(),
                &type_path,
                &SCALAR_TYPE,
            );
            constrained.types.insert(name.clone(), scalar_type.unwrap_or(ScalarType::S));
            constrained.names.push(name);
        }
        constrained
    }

    pub(crate) fn reject_duplicates(&self) -> Result<(), ApiError> {
        match first_repeated(self.names()) {
            Some(name) => Err(table::duplicate_definition(name)),
            None => Ok(()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn scalar_type(&self, name: &str) -> Option<ScalarType> {
        self.types.get(name).copied()
    }

    pub(crate) fn printed(&self) -> String {
        self.names.join(", ")
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn into_types(self) -> BTreeMap<String, ScalarType> {
        self.types
    }

    /// Fails if a key attribute is not defined.
    pub(crate) fn cover(&self, keys: &[KeyElement]) -> Result<(), ApiError> {
        if keys.iter().all(|key| self.scalar_type(&key.name).is_some()) {
            return Ok(());
        }
        let keys: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        Err(table::keys_not_defined(&keys.join(", "), &self.printed()))
    }
}

/// Checks a `KeySchema` member, which is required.
pub(crate) fn constrain_key_schema(
    elements: Option<Vec<KeySchemaElement>>,
    path: &str,
    count: KeyCount,
    violations: &mut Violations,
) -> Vec<KeyElement> {
    let given = elements.is_some();
    let elements = violations.required(elements, path);
    if given {
        let max = if count == KeyCount::AtMostTwo { 2 } else { usize::MAX };
        violations.count(elements.len(), path, 1, max, || {
            printed_list(&elements, |_| java_object("KeySchemaElement"))
        });
    }
    let constrain = |(position, element): (usize, KeySchemaElement)| {
        let path = format!("{path}.{}.member", position + 1);
        let name = attribute_name(element.attribute_name, &path, violations);
        let type_path = format!("{path}.keyType");
        let key_type = element.key_type.as_deref();
        let key_type = violations.required_enumeration(key_type, &type_path, &KEY_TYPE);
        KeyElement { name, key_type: key_type.unwrap_or(KeyType::Hash) }
    };
    elements.into_iter().enumerate().map(constrain).collect()
}

/// The rules for a table's keys.
pub(crate) fn table_keys(
    keys: &[KeyElement],
    definitions: &Definitions,
) -> Result<KeySchema, ApiError> {
    definitions.reject_duplicates()?;
    let undefined = keys.iter().any(|key| definitions.scalar_type(&key.name).is_none());
    if definitions.len() < keys.len() || (keys.len() == 2 && undefined) {
        return Err(table::key_without_definition());
    }
    definitions.cover(keys)?;
    hash_then_range(keys)?;
    Ok(resolve(keys, definitions))
}

/// The rules for the keys of a local index.
pub(crate) fn local_index_keys(
    keys: &[KeyElement],
    definitions: &Definitions,
) -> Result<KeySchema, ApiError> {
    definitions.cover(keys)?;
    reject_repeated(keys)?;
    hash_then_range(keys)?;
    Ok(resolve(keys, definitions))
}

/// The rules for the keys of a global index: up to four HASH attributes, then up to four RANGE ones.
pub(crate) fn global_index_keys(
    keys: &[KeyElement],
    definitions: &Definitions,
) -> Result<KeySchema, ApiError> {
    definitions.cover(keys)?;
    reject_repeated(keys)?;
    if keys.first().is_none_or(|key| key.key_type != KeyType::Hash) {
        return Err(table::first_key_not_hash());
    }
    for (key_type, name) in [(KeyType::Hash, "HASH"), (KeyType::Range, "RANGE")] {
        if keys.iter().filter(|key| key.key_type == key_type).count() > MULTI_ATTRIBUTE_KEYS_MAX {
            return Err(table::too_many_keys(name));
        }
    }
    let hash_follows_range = keys
        .windows(2)
        .any(|pair| pair[0].key_type == KeyType::Range && pair[1].key_type == KeyType::Hash);
    if hash_follows_range {
        return Err(table::hash_after_range());
    }
    Ok(resolve(keys, definitions))
}

/// No attribute may be in an index's key twice.
fn reject_repeated(keys: &[KeyElement]) -> Result<(), ApiError> {
    match first_repeated(keys.iter().map(|key| key.name.as_str())) {
        Some(_) => Err(table::repeated_key_attribute()),
        None => Ok(()),
    }
}

fn hash_then_range(keys: &[KeyElement]) -> Result<(), ApiError> {
    if let [first, second] = keys
        && first.name == second.name
    {
        return Err(table::same_hash_and_range_key());
    }
    if keys.first().is_none_or(|key| key.key_type != KeyType::Hash) {
        return Err(table::first_key_not_hash());
    }
    if keys.get(1).is_some_and(|key| key.key_type != KeyType::Range) {
        return Err(table::second_key_not_range());
    }
    Ok(())
}

/// All keys are known to be defined by now.
fn resolve(keys: &[KeyElement], definitions: &Definitions) -> KeySchema {
    let of_type = |key_type: KeyType| {
        keys.iter()
            .filter(|key| key.key_type == key_type)
            .filter_map(|key| {
                let scalar_type = definitions.scalar_type(&key.name)?;
                Some(KeyAttribute { name: key.name.clone(), scalar_type })
            })
            .collect()
    };
    KeySchema { partition: of_type(KeyType::Hash), sort: of_type(KeyType::Range) }
}

/// The first name that repeats an earlier one. A request may have very many names, so they aren't
/// compared pairwise.
pub(crate) fn first_repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

fn attribute_name(name: Option<String>, path: &str, violations: &mut Violations) -> String {
    let path = format!("{path}.attributeName");
    let given = name.is_some();
    let name = violations.required(name, &path);
    if given {
        violations.length(&name, &path, 1, 255);
    }
    name
}

/// The distinct names, in the order in which a Java `HashSet` iterates over them: DynamoDB prints
/// the keys that a table uses in this order.
pub(crate) fn in_java_set_order<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let mut unique: Vec<&str> = names.iter().copied().filter(|name| seen.insert(*name)).collect();
    java_set::sort(&mut unique);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_javas_order() {
        assert_eq!(in_java_set_order(&["pk", "sk", "a", "pk"]), ["a", "sk", "pk"]);
    }
}
