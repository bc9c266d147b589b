//! Tables and indexes, as the model sees them.

use std::collections::{BTreeMap, BTreeSet};

use zenobe_engine::error::UpdateTableError;
use zenobe_engine::schema::{IndexKind, IndexProjection, KeyAttribute, KeySchema, ScalarType};

use super::fault::{Fault, Refusal};
use super::table::Table;
use super::value::Key;

#[derive(Debug, Clone)]
pub struct Index {
    pub name: String,
    pub kind: IndexKind,
    pub keys: KeySchema,
    pub projection: IndexProjection,
    pub state: IndexState,
}

#[derive(Debug, Clone, PartialEq)]
pub enum IndexState {
    Active,
    /// Being filled. Holds the entries of these items, which changed since it was added.
    Creating {
        reached: BTreeSet<Key>,
    },
    Deleting,
}

impl Index {
    pub fn is_maintained(&self) -> bool {
        self.state != IndexState::Deleting
    }

    pub fn projects(&self, table_keys: &KeySchema, name: &str) -> bool {
        let chosen = match &self.projection {
            IndexProjection::All => true,
            IndexProjection::KeysOnly => false,
            IndexProjection::Include(names) => names.iter().any(|included| included == name),
        };
        chosen || table_keys.contains(name) || self.keys.contains(name)
    }
}

/// A global index that joins later.
#[derive(Debug, Clone)]
pub struct NewIndex {
    pub name: String,
    pub partition: Vec<(String, ScalarType)>,
    pub sort: Vec<(String, ScalarType)>,
    pub projection: IndexProjection,
}

impl Table {
    pub fn add_index(&mut self, new: &NewIndex) -> Result<(), Refusal> {
        let given: BTreeMap<&String, ScalarType> =
            new.partition.iter().chain(&new.sort).map(|(name, given)| (name, *given)).collect();
        let retyped = |key: &KeyAttribute| KeyAttribute {
            name: key.name.clone(),
            scalar_type: *given.get(&key.name).unwrap_or(&key.scalar_type),
        };
        for existing in [&self.keys].into_iter().chain(self.indexes.iter().map(|index| &index.keys))
        {
            let new = KeySchema {
                partition: existing.partition.iter().map(retyped).collect(),
                sort: existing.sort.iter().map(retyped).collect(),
            };
            if new != *existing {
                let existing = existing.clone();
                let error = UpdateTableError::AttributesRedefined { existing, new };
                return Err(Fault::UpdateTable(error).into());
            }
        }
        if self.indexes.iter().any(|index| index.name == new.name) {
            let error = UpdateTableError::IndexExists { index: new.name.clone() };
            return Err(Fault::UpdateTable(error).into());
        }
        if self.indexes.iter().any(|index| index.state != IndexState::Active) {
            return Err(Fault::UpdateTable(UpdateTableError::IndexWorkInProgress).into());
        }
        let resolve = |(name, scalar_type): &(String, ScalarType)| KeyAttribute {
            name: name.clone(),
            scalar_type: *scalar_type,
        };
        self.indexes.push(Index {
            name: new.name.clone(),
            kind: IndexKind::Global,
            keys: KeySchema {
                partition: new.partition.iter().map(resolve).collect(),
                sort: new.sort.iter().map(resolve).collect(),
            },
            projection: new.projection.clone(),
            state: IndexState::Creating { reached: BTreeSet::new() },
        });
        Ok(())
    }

    pub fn drop_index(&mut self, name: &str) -> Result<(), Refusal> {
        let refuse = |error: UpdateTableError| Err(Fault::UpdateTable(error).into());
        let index = name.to_owned();
        let others_busy = self
            .indexes
            .iter()
            .any(|other| other.name != name && other.state != IndexState::Active);
        match self.indexes.iter_mut().find(|index| index.name == name) {
            None => refuse(UpdateTableError::IndexMissing { index }),
            Some(local) if local.kind == IndexKind::Local => {
                refuse(UpdateTableError::LocalIndex { index, deleting: true })
            }
            Some(global) if global.state == IndexState::Deleting => {
                refuse(UpdateTableError::IndexBeingDeleted { index })
            }
            Some(_) if others_busy => refuse(UpdateTableError::IndexWorkInProgress),
            Some(global) => {
                global.state = IndexState::Deleting;
                Ok(())
            }
        }
    }

    /// Simulates the background work: indexes become complete or are removed.
    pub fn finish_index_work(&mut self) {
        self.indexes.retain(Index::is_maintained);
        for index in &mut self.indexes {
            index.state = IndexState::Active;
        }
    }
}
