//! Writes of items: the checks in order, and the effects.

use zenobe_engine::command::{Consumed, ItemCollection};
use zenobe_engine::error::{IndexKeyError, KeyError};
use zenobe_value::limits::{
    ITEM_SIZE_BYTES_MAX, NESTING_LEVELS_MAX, PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX,
};
use zenobe_value::{AttributeValue, Attributes, Number};

use super::Twin;
use super::condition::Test;
use super::fault::{Fault, Refusal};
use super::schema::Index;
use super::table::{Table, nothing_consumed};
use super::update::{Operand, Source, Update};
use super::value::{Key, depth, has_type, is_empty, item_size_bytes, size_bytes};

#[derive(Debug, Clone)]
pub struct Write {
    pub action: Action,
    pub condition: Option<Test>,
}

#[derive(Debug, Clone)]
pub enum Action {
    Put(Attributes),
    Delete(Attributes),
    Update(Attributes, Option<Update>),
    /// Only in transactions.
    Check(Attributes),
}

/// How to measure an updated item: with the quirks of UpdateItem, or plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeRule {
    Quirky,
    Flat,
}

#[derive(Debug, Clone)]
pub struct WriteEffect {
    pub old: Option<Attributes>,
    pub new: Option<Attributes>,
    pub consumed: Consumed,
    pub collection: Option<ItemCollection>,
}

#[derive(Debug, Clone)]
pub enum BatchRequest {
    Put(Attributes),
    Delete(Attributes),
}

impl Twin {
    pub fn table(&self, name: &str) -> Result<&Table, Refusal> {
        self.tables.get(name).ok_or(Fault::TableNotFound.into())
    }

    pub fn write(&mut self, table: &str, write: &Write) -> Result<WriteEffect, Refusal> {
        self.write_as(table, write, SizeRule::Quirky)
    }

    pub fn write_as(
        &mut self,
        table: &str,
        write: &Write,
        size_rule: SizeRule,
    ) -> Result<WriteEffect, Refusal> {
        write.check_size()?;
        self.table(table)?;
        let table = self.tables.get_mut(table).expect("the table was found");
        let key = write.prepare(table)?;
        let new = write.image(table, &key, size_rule)?;
        table.check_collection(&key, new.as_ref())?;
        let old = table.items.get(&key).cloned();
        let mut consumed = nothing_consumed(&table.name);
        table.change(&key, new.as_ref(), 1, &mut consumed);
        Ok(WriteEffect { old, new, consumed, collection: table.collection(&key) })
    }

    /// Returns the cost of each table's writes, or the first fault. After the checks every request
    /// runs on its own.
    pub fn batch_write(
        &mut self,
        batch: &[(String, Vec<BatchRequest>)],
    ) -> Result<Vec<Consumed>, Refusal> {
        let batch: Vec<(&String, Vec<Write>)> = batch
            .iter()
            .map(|(table, requests)| (table, requests.iter().map(BatchRequest::write).collect()))
            .collect();
        batch.iter().flat_map(|(_, writes)| writes).try_for_each(Write::check_size)?;
        batch.iter().try_for_each(|(table, _)| self.table(table).map(drop))?;
        let mut keys: Vec<(&String, Key)> = Vec::new();
        for (table, writes) in &batch {
            for write in writes {
                let key = write.prepare(&self.tables[*table]).map_err(batch_refusal)?;
                keys.push((table, key));
            }
        }
        if (1..keys.len()).any(|position| keys[..position].contains(&keys[position])) {
            return Err(Fault::DuplicateKeys.into());
        }
        let mut outcome = Ok(());
        let mut consumed = Vec::new();
        for (name, writes) in &batch {
            let table = self.tables.get_mut(*name).expect("the table was found");
            let mut table_consumed = nothing_consumed(&table.name);
            for write in writes {
                let key = write.prepare(table)?;
                let new = write.image(table, &key, SizeRule::Quirky)?;
                match table.check_collection(&key, new.as_ref()) {
                    Ok(()) => table.change(&key, new.as_ref(), 1, &mut table_consumed),
                    Err(refusal) => outcome = outcome.and(Err(refusal)),
                }
            }
            consumed.push(table_consumed);
        }
        outcome.map(|()| consumed)
    }
}

/// A batch doesn't say which key attribute of a put is missing or has the wrong type.
fn batch_refusal(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::AnyOf(faults)
            if matches!(
                faults[..],
                [Fault::Key(KeyError::Missing { .. } | KeyError::TypeMismatch { .. })]
            ) =>
        {
            KeyError::SchemaMismatch.into()
        }
        other => other,
    }
}

impl BatchRequest {
    fn write(&self) -> Write {
        let action = match self {
            BatchRequest::Put(item) => Action::Put(item.clone()),
            BatchRequest::Delete(key) => Action::Delete(key.clone()),
        };
        Write { action, condition: None }
    }
}

impl Write {
    /// Only puts have an item whose size is known before everything else.
    pub fn check_size(&self) -> Result<(), Refusal> {
        match &self.action {
            Action::Put(item) if item_size_bytes(item) > ITEM_SIZE_BYTES_MAX as u64 => {
                Err(Fault::ItemTooLarge.into())
            }
            _ => Ok(()),
        }
    }

    /// The checks that need the table but no stored item.
    pub fn prepare(&self, table: &Table) -> Result<Key, Refusal> {
        let key = match &self.action {
            Action::Put(item) => {
                let key = table.check_item_keys(item)?;
                table.check_index_keys(item, |_| true, |error| error)?;
                key
            }
            Action::Delete(key) | Action::Check(key) => table.check_key(key)?,
            Action::Update(key, update) => {
                let key = table.check_key(key)?;
                if let Some(update) = update {
                    table.check_update(update)?;
                }
                key
            }
        };
        table.check_routes(self.condition.iter().flat_map(Test::routes))?;
        Ok(key)
    }

    /// The item after the write.
    pub fn image(
        &self,
        table: &Table,
        key: &Key,
        size_rule: SizeRule,
    ) -> Result<Option<Attributes>, Refusal> {
        let old = table.items.get(key);
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(old)) {
            return Err(Fault::ConditionFailed(old.cloned()).into());
        }
        match &self.action {
            Action::Put(item) => Ok(Some(item.clone())),
            Action::Delete(_) => Ok(None),
            Action::Check(_) => Ok(old.cloned()),
            Action::Update(key, None) => Ok(Some(old.unwrap_or(key).clone())),
            Action::Update(key, Some(update)) => table.updated(old, key, update, size_rule),
        }
    }
}

impl Table {
    fn check_update(&self, update: &Update) -> Result<(), Refusal> {
        let targets = update.targets();
        for attribute in self.keys.attributes() {
            if targets.iter().any(|target| target.root() == attribute.name) {
                return Err(Fault::UpdateOfKey { attribute: attribute.name.clone() }.into());
            }
        }
        self.check_index_results(update)?;
        self.check_routes(update.routes())
    }

    /// A value meant for an index key must be valid for it, as far as the request shows.
    fn check_index_results(&self, update: &Update) -> Result<(), Refusal> {
        let literal = |name: &str| {
            // Any sum is a number.
            let some_number = AttributeValue::N(Number::from(1_u64));
            let sets = update.sets.iter().filter_map(|(target, source)| match source {
                Source::Operand(Operand::Literal(value)) => Some((target, value.clone())),
                Source::Plus(..) | Source::Minus(..) => Some((target, some_number.clone())),
                _ => None,
            });
            let adds = update.adds.iter().map(|(target, value)| (target, value.clone()));
            let mut literals = sets.chain(adds);
            literals.find(|(target, _)| !target.is_nested() && target.root() == name)
        };
        for index in self.maintained_by_name() {
            for attribute in index.keys.attributes() {
                let Some((_, value)) = literal(&attribute.name) else { continue };
                let expected = attribute.scalar_type;
                let error = if !has_type(&value, expected) {
                    IndexKeyError::TypeMismatch { expected, actual: value.attribute_type() }
                } else if is_empty(&value) {
                    IndexKeyError::UpdatedEmpty { scalar_type: expected }
                } else {
                    continue;
                };
                return Err(index_key_fault(index, &attribute.name, error));
            }
        }
        Ok(())
    }

    fn updated(
        &self,
        old: Option<&Attributes>,
        key: &Attributes,
        update: &Update,
        size_rule: SizeRule,
    ) -> Result<Option<Attributes>, Refusal> {
        let updated = update
            .apply(old, key)
            .map_err(|faults| Refusal::AnyOf(faults.into_iter().map(Fault::Update).collect()))?;
        let Some(item) = updated else { return Ok(None) };
        if item.values().any(|value| depth(value) > NESTING_LEVELS_MAX) {
            return Err(Fault::NestedTooDeeply.into());
        }
        let changed = |name: &str| old.and_then(|old| old.get(name)) != item.get(name);
        self.check_index_keys(&item, changed, |error| match error {
            IndexKeyError::Empty { scalar_type } => IndexKeyError::UpdatedEmpty { scalar_type },
            IndexKeyError::TypeMismatch { .. } => IndexKeyError::UpdatedTypeMismatch,
            _ => IndexKeyError::UpdatedTooLong,
        })?;
        let size = item_size_bytes(&item);
        let measured = match size_rule {
            SizeRule::Flat => size,
            SizeRule::Quirky => {
                size.max(size - item_size_bytes(key) + update.size_allowance_bytes())
            }
        };
        if measured > ITEM_SIZE_BYTES_MAX as u64 {
            return Err(Fault::UpdateTooLarge.into());
        }
        Ok(Some(item))
    }

    /// The attributes of an item that are index keys, and `relevant`, must be valid keys.
    fn check_index_keys(
        &self,
        item: &Attributes,
        relevant: impl Fn(&str) -> bool,
        reported: impl Fn(IndexKeyError) -> IndexKeyError,
    ) -> Result<(), Refusal> {
        for index in self.maintained_by_name() {
            let present: Vec<(&str, _, &AttributeValue)> = index
                .keys
                .attributes()
                .filter(|attribute| relevant(&attribute.name))
                .filter_map(|attribute| {
                    Some((&*attribute.name, attribute.scalar_type, item.get(&attribute.name)?))
                })
                .collect();
            for (name, expected, value) in present {
                let error = if !has_type(value, expected) {
                    IndexKeyError::TypeMismatch { expected, actual: value.attribute_type() }
                } else if is_empty(value) {
                    IndexKeyError::Empty { scalar_type: expected }
                } else {
                    continue;
                };
                return Err(index_key_fault(index, name, reported(error)));
            }
            let parts = [
                (
                    &index.keys.partition,
                    PARTITION_KEY_SIZE_BYTES_MAX,
                    IndexKeyError::PartitionKeyTooLong,
                ),
                (&index.keys.sort, SORT_KEY_SIZE_BYTES_MAX, IndexKeyError::SortKeyTooLong),
            ];
            for (attributes, size_bytes_max, error) in parts {
                let values = attributes.iter().filter_map(|attribute| item.get(&attribute.name));
                let size: u64 = values.map(size_bytes).sum();
                let last = attributes.iter().rfind(|attribute| relevant(&attribute.name));
                if let Some(last) = last
                    && size > size_bytes_max as u64
                {
                    return Err(index_key_fault(index, &last.name, reported(error)));
                }
            }
        }
        Ok(())
    }

    /// A full collection rejects everything that makes it larger.
    pub fn check_collection(&self, key: &Key, new: Option<&Attributes>) -> Result<(), Refusal> {
        if !self.has_collections() {
            return Ok(());
        }
        let size_of = |item: &Attributes| self.collected_size_bytes(item);
        let (old, new) = (self.items.get(key).map_or(0, size_of), new.map_or(0, size_of));
        let size_after = self.collection_size_bytes(&key[..1]) - old + new;
        if new > old && size_after > self.collection_size_bytes_max {
            return Err(Fault::CollectionTooLarge.into());
        }
        Ok(())
    }

    fn maintained_by_name(&self) -> Vec<&Index> {
        let mut indexes: Vec<&Index> =
            self.indexes.iter().filter(|index| index.is_maintained()).collect();
        indexes.sort_by(|one, other| one.name.cmp(&other.name));
        indexes
    }
}

fn index_key_fault(index: &Index, attribute: &str, error: IndexKeyError) -> Refusal {
    let (index, attribute) = (index.name.clone(), attribute.to_owned());
    Fault::IndexKey { index, attribute, error }.into()
}
