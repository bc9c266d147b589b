//! Adding and removing global indexes with UpdateTable. This only changes their status;
//! `indexes::backfill` does the work.

use std::collections::BTreeMap;

use crate::command::{IndexChange, UnresolvedIndex, UpdateTable};
use crate::error::{Error, Result, UpdateTableError};
use crate::options::Limits;
use crate::schema::{
    IndexDefinition, IndexId, IndexKind, IndexStatus, KeyAttribute, KeySchema, ScalarType,
    TableDefinition,
};
use crate::tables::throughput;

pub(super) fn apply(
    definition: &mut TableDefinition,
    request: &UpdateTable,
    limits: &Limits,
) -> Result<()> {
    let mut started = 0;
    for change in &request.index_changes {
        match change {
            IndexChange::Create(index) => {
                create(definition, index, request.attribute_types.as_ref(), limits)?;
            }
            IndexChange::Delete { name } => delete(definition, name)?,
            IndexChange::Update { .. } => continue,
        }
        started += 1;
    }
    if started > 1 {
        return Err(UpdateTableError::IndexWorkInProgress.into());
    }
    Ok(())
}

/// An attribute that is a key must keep its type.
pub(super) fn check_types(
    definition: &TableDefinition,
    request: &UpdateTable,
) -> Result<(), UpdateTableError> {
    let Some(types) = &request.attribute_types else { return Ok(()) };
    let retyped = |key: &KeyAttribute| {
        let given = types.get(&key.name).copied().unwrap_or(key.scalar_type);
        KeyAttribute { name: key.name.clone(), scalar_type: given }
    };
    let indexes = definition.indexes().map(|index| &index.keys);
    for existing in std::iter::once(&definition.keys).chain(indexes) {
        let new = KeySchema {
            partition: existing.partition.iter().map(retyped).collect(),
            sort: existing.sort.iter().map(retyped).collect(),
        };
        if new != *existing {
            return Err(UpdateTableError::AttributesRedefined { existing: existing.clone(), new });
        }
    }
    Ok(())
}

/// Keeps the types of key attributes and drops the rest.
pub(crate) fn prune_attribute_types(definition: &mut TableDefinition) {
    let used = definition.indexes().flat_map(|index| index.keys.attributes());
    let used = used.chain(definition.keys.attributes());
    let used = used.map(|attribute| (attribute.name.clone(), attribute.scalar_type));
    definition.attribute_types = used.collect();
}

/// The global index that a request names.
pub(super) fn global_index<'a>(
    definition: &'a mut TableDefinition,
    name: &str,
    deleting: bool,
) -> Result<&'a mut IndexDefinition, UpdateTableError> {
    let index = name.to_owned();
    if definition.local_indexes.iter().any(|local| local.name == name) {
        return Err(UpdateTableError::LocalIndex { index, deleting });
    }
    let mut global = definition.global_indexes.iter_mut();
    global.find(|global| global.name == name).ok_or(UpdateTableError::IndexMissing { index })
}

fn create(
    definition: &mut TableDefinition,
    index: &UnresolvedIndex,
    types: Option<&BTreeMap<String, ScalarType>>,
    limits: &Limits,
) -> Result<()> {
    if definition.index(&index.name).is_some() {
        return Err(UpdateTableError::IndexExists { index: index.name.clone() }.into());
    }
    let keys = resolve_keys(index, types)?;
    if definition.global_indexes.len() >= limits.global_indexes_max {
        return Err(UpdateTableError::TooManyGlobalIndexes.into());
    }
    if definition.global_indexes.iter().any(|other| other.status != IndexStatus::Active) {
        return Err(UpdateTableError::IndexWorkInProgress.into());
    }
    let throughput =
        throughput::initial(definition.billing_mode, &index.throughput, Some(&index.name))
            .map_err(Error::from)?;
    definition.global_indexes.push(IndexDefinition {
        id: IndexId(definition.next_index_id),
        name: index.name.clone(),
        kind: IndexKind::Global,
        keys,
        projection: index.projection.clone(),
        status: IndexStatus::Creating { backfilling: false },
        throughput,
        insights: None,
    });
    definition.next_index_id += 1;
    prune_attribute_types(definition);
    Ok(())
}

/// A key attribute must be in the request's definitions, even if the table already defines it.
fn resolve_keys(
    index: &UnresolvedIndex,
    types: Option<&BTreeMap<String, ScalarType>>,
) -> Result<KeySchema, UpdateTableError> {
    let Some(types) = types.filter(|types| !types.is_empty()) else {
        return Err(UpdateTableError::DefinitionsMissing { index: index.name.clone() });
    };
    let resolve =
        |name: &String| Some(KeyAttribute { name: name.clone(), scalar_type: *types.get(name)? });
    let resolve_all = |names: &[String]| names.iter().map(resolve).collect::<Option<Vec<_>>>();
    match (resolve_all(&index.partition), resolve_all(&index.sort)) {
        (Some(partition), Some(sort)) => Ok(KeySchema { partition, sort }),
        _ => Err(UpdateTableError::KeysNotDefined {
            keys: index.partition.iter().chain(&index.sort).cloned().collect(),
            definitions: types.keys().cloned().collect(),
        }),
    }
}

fn delete(definition: &mut TableDefinition, name: &str) -> Result<()> {
    let status = global_index(definition, name, true)?.status;
    if status == IndexStatus::Deleting {
        return Err(UpdateTableError::IndexBeingDeleted { index: name.to_owned() }.into());
    }
    let others = definition.global_indexes.iter().filter(|index| index.name != name);
    if others.into_iter().any(|index| index.status != IndexStatus::Active) {
        return Err(UpdateTableError::IndexWorkInProgress.into());
    }
    global_index(definition, name, true)?.status = IndexStatus::Deleting;
    Ok(())
}
