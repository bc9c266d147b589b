//! Many items at once, for work that fills tables: restores, imports, bulk puts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use zenobe_expression::Condition;
use zenobe_store::Key;
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::catalog::Table;
use crate::change::index_key_checks::check_put;
use crate::error::{Error, Result};
use crate::indexes::index_entry::entry;
use crate::indexes::maintained;
use crate::keys::{PrimaryKey, check_paths};
use crate::keyspace;
use crate::schema::IndexKind;
use crate::write::check_size;
use crate::write::commit::{Committed, Terms, commit};
use crate::write::intent::{Intent, WriteAction};

impl Engine {
    /// The newer definition of a table, if it is the same table.
    async fn replacement(&self, table: &Table, stale: &Table) -> Result<Arc<Table>> {
        let gone = || Error::TableNotFound { name: table.name().name.clone() };
        if table.definition().filling.is_some() {
            // Only its owner changes it, and that would be us.
            return Err(gone());
        }
        let newer = self.refresh(stale).await?;
        match newer.definition().id == table.definition().id {
            true => Ok(newer),
            false => Err(gone()),
        }
    }
}

/// Items on their way into a table, in one atomic write ([`Job::load`](crate::jobs::Job::load)). Of items with the same key
/// the last one counts.
///
/// A condition holds or fails after the items before it, so such a load ends before an item whose key it already has.
pub struct ItemLoad<'i> {
    table: Arc<Table>,
    items: &'i [EncodedItem],
    /// The conditions of the items; none at all if it is empty.
    conditions: &'i [Option<Condition>],
    errors: Vec<Option<Error>>,
    /// What is to be written, and the positions of its items.
    intents: Vec<Intent<'i>>,
    positions: Vec<usize>,
}

/// The sizes of what a load puts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedSizes {
    pub table_bytes: u64,
    pub indexes: Vec<(IndexKind, String, u64)>,
}

impl<'i> ItemLoad<'i> {
    /// Takes as many of the items as fit into one write. `conditions` is empty, or has one for each item.
    pub fn new(
        table: &Arc<Table>,
        items: &'i [EncodedItem],
        conditions: &'i [Option<Condition>],
    ) -> ItemLoad<'i> {
        let mut load = ItemLoad {
            table: Arc::clone(table),
            items,
            conditions,
            errors: items.iter().map(|_| None).collect(),
            intents: Vec::new(),
            positions: Vec::new(),
        };
        load.prepare_all();
        load
    }

    /// The table, with the definition by which the items are put.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The errors that are known by now, of the items that it takes.
    pub fn errors(&self) -> &[Option<Error>] {
        &self.errors
    }

    /// Whether there is nothing left to put.
    pub fn is_empty(&self) -> bool {
        self.intents.is_empty()
    }

    /// What its items and their entries in indexes take.
    pub fn sizes(&self) -> LoadedSizes {
        let mut sizes = LoadedSizes::default();
        let indexes: Vec<_> = maintained(&self.table).collect();
        let mut of_indexes = vec![0; indexes.len()];
        for (intent, position) in self.intents.iter().zip(&self.positions) {
            let item = &self.items[*position];
            sizes.table_bytes += item.as_item().size_bytes() as u64;
            for (index, size_bytes) in indexes.iter().zip(&mut of_indexes) {
                let entry = entry(&self.table, *index, &intent.key, item);
                *size_bytes += entry.map_or(0, |entry| entry.size_bytes());
            }
        }
        let named = indexes.iter().zip(of_indexes).map(|(index, size_bytes)| {
            (index.definition.kind, index.definition.name.clone(), size_bytes)
        });
        sizes.indexes = named.collect();
        sizes
    }

    /// Tries to write the items. Returns whether they are written; otherwise more errors are known, or another definition of
    /// the table.
    pub(crate) async fn commit(&mut self, engine: &Engine, terms: Terms<'_>) -> Result<bool> {
        match commit(engine, &self.intents, terms).await? {
            Committed::Written(_) => return Ok(true),
            Committed::Refused(refusals) => {
                for (position, refusal) in self.positions.iter().zip(refusals) {
                    self.errors[*position] = refusal.or(self.errors[*position].take());
                }
            }
            Committed::Stale(stale) => {
                self.table = engine.replacement(&self.table, &stale).await?;
            }
            Committed::Replayed(_) => unreachable!("there is no token"),
        }
        self.prepare_all();
        Ok(false)
    }

    /// Makes the intents of the items without an error.
    fn prepare_all(&mut self) {
        let table = Arc::clone(&self.table);
        let names: Vec<&str> =
            table.definition().keys.attributes().map(|key| key.name.as_str()).collect();
        // Items that come in the order of their keys have no need for it.
        let mut by_key: Option<HashMap<Key, usize>> = None;
        let taken = self.errors.len();
        let mut positions: Vec<usize> = Vec::with_capacity(taken);
        let mut intents: Vec<Intent<'i>> = Vec::with_capacity(taken);
        for position in 0..taken {
            if self.errors[position].is_some() {
                continue;
            }
            let condition = self.conditions.get(position).and_then(Option::as_ref);
            let item = &self.items[position];
            let intent = match prepare(&table, &names, item, condition) {
                Ok(intent) => intent,
                Err(error) => {
                    self.errors[position] = Some(error);
                    continue;
                }
            };
            let is_ascending = || intents.last().is_none_or(|last| last.item_key < intent.item_key);
            if by_key.is_none() && !is_ascending() {
                let keys = intents.iter().map(|intent| intent.item_key.clone());
                by_key = Some(keys.zip(0..).collect());
            }
            let earlier = match &mut by_key {
                None => None,
                Some(by_key) => match by_key.entry(intent.item_key.clone()) {
                    Entry::Occupied(earlier) => Some(*earlier.get()),
                    Entry::Vacant(vacant) => {
                        vacant.insert(intents.len());
                        None
                    }
                },
            };
            match earlier {
                Some(_) if !self.conditions.is_empty() => {
                    self.errors.truncate(position);
                    break;
                }
                Some(earlier) => {
                    positions[earlier] = position;
                    intents[earlier] = intent;
                }
                None => {
                    positions.push(position);
                    intents.push(intent);
                }
            }
        }
        self.positions = positions;
        self.intents = intents;
    }
}

fn prepare<'i>(
    table: &Arc<Table>,
    names: &[&str],
    item: &EncodedItem,
    condition: Option<&'i Condition>,
) -> Result<Intent<'i>> {
    check_size(item)?;
    let key = item.as_item().decode_some(names);
    let key = PrimaryKey::from_item(&table.definition().keys, &key)?;
    check_put(table, item.as_item())?;
    if let Some(condition) = condition {
        check_paths(table, condition.paths().into_iter())?;
    }
    Ok(Intent::new(Arc::clone(table), key, condition, WriteAction::Put(item.clone())))
}

/// The intents that put copies of items into a new table that only their job writes to. The items come in the order of their keys in the
/// table that they are copied from, which has the same key schema, and none of them may have been put before. An attribute whose type is not that of an index key
/// is not an error here: such an item is not indexed, like items that were written before the index.
pub(crate) fn inserts(
    table: &Arc<Table>,
    items: &[(Key, EncodedItem)],
) -> Result<Vec<Intent<'static>>> {
    let keys = &table.definition().keys;
    if !items.is_sorted_by(|(one, _), (next, _)| one < next) {
        let detail = "the items to copy are not in the order of their keys".to_owned();
        return Err(Error::Corrupt { detail });
    }
    let insert = |(key, item): &(Key, EncodedItem)| {
        let suffix = keyspace::suffix_of_item(key).unwrap_or_default();
        let key = PrimaryKey::from_item_key(keys, suffix)?;
        Ok(Intent::new(Arc::clone(table), key, None, WriteAction::Insert(item.clone())))
    };
    items.iter().map(insert).collect()
}
