//! Transactions: many writes from one state, all or nothing, and tokens that prevent repetition.

use std::collections::BTreeMap;

use zenobe_engine::command::{Consumed, TableName, TransactionalUnits};
use zenobe_engine::error::{IndexKeyError, KeyError};
use zenobe_value::Attributes;

use super::Twin;
use super::fault::{Fault, Refusal};
use super::projection::project;
use super::route::Route;
use super::table::{charged_size_bytes, nothing_consumed, read_halves};
use super::value::{Key, item_size_bytes};
use super::write::{Action, SizeRule, Write};

pub const TOKEN_LIFETIME_MS: u64 = 10 * 60 * 1000;

#[derive(Debug, Clone)]
pub struct TokenMemory {
    pub digest: [u8; 16],
    pub expires_at_ms: u64,
    pub replay: Vec<Consumed>,
}

#[derive(Debug, Clone)]
pub struct Get {
    pub table: String,
    pub key: Attributes,
    pub projection: Option<Vec<Route>>,
}

pub type TransactionalWrites = (Vec<Consumed>, Vec<(String, Attributes, u64)>);

impl Twin {
    /// Returns the cost of each table's writes, and the collections that were written to.
    pub fn transact_write(
        &mut self,
        token: Option<(&str, [u8; 16])>,
        writes: &[(String, Write)],
    ) -> Result<TransactionalWrites, Refusal> {
        writes.iter().try_for_each(|(_, write)| write.check_size())?;
        writes.iter().try_for_each(|(table, _)| self.table(table).map(drop))?;
        let keys = self.prepare_all(writes)?;
        if let Some((name, digest)) = token
            && let Some(memory) = self.tokens.get(name)
            && memory.expires_at_ms > self.now_ms
        {
            return if memory.digest == digest {
                Ok((memory.replay.clone(), Vec::new()))
            } else {
                Err(Fault::TokenMismatch.into())
            };
        }
        let images = self.images(writes, &keys)?;
        self.check_collections(writes, &keys, &images)?;
        let replay = self.replay(writes, &keys, &images);
        if let Some((name, digest)) = token {
            let expires_at_ms = self.now_ms + TOKEN_LIFETIME_MS;
            self.tokens.insert(name.to_owned(), TokenMemory { digest, expires_at_ms, replay });
        }
        Ok(self.commit(writes, &keys, &images))
    }

    fn prepare_all(&self, writes: &[(String, Write)]) -> Result<Vec<Key>, Refusal> {
        let mut prepared = Vec::new();
        for (table, write) in writes {
            match write.prepare(&self.tables[table]) {
                Err(refusal) if is_request_fault(&refusal) => return Err(refusal),
                outcome => prepared.push((table, outcome)),
            }
        }
        let keys: Vec<(&String, &Key)> =
            prepared.iter().filter_map(|(table, key)| Some((*table, key.as_ref().ok()?))).collect();
        if (1..keys.len()).any(|position| keys[..position].contains(&keys[position])) {
            return Err(Fault::DuplicateTransactionItems.into());
        }
        all_or_cancelled(prepared.into_iter().map(|(_, key)| key).collect())
    }

    fn images(
        &self,
        writes: &[(String, Write)],
        keys: &[Key],
    ) -> Result<Vec<Option<Attributes>>, Refusal> {
        let image = |((table, write), key): (&(String, Write), &Key)| {
            write.image(&self.tables[table], key, SizeRule::Flat)
        };
        all_or_cancelled(writes.iter().zip(keys).map(image).collect())
    }

    /// Each write adds to the collections as the earlier ones left them.
    fn check_collections(
        &self,
        writes: &[(String, Write)],
        keys: &[Key],
        images: &[Option<Attributes>],
    ) -> Result<(), Refusal> {
        let mut after = self.clone();
        let mut checks = Vec::new();
        for (((name, write), key), image) in writes.iter().zip(keys).zip(images) {
            let table = after.tables.get_mut(name).expect("the table was found");
            let is_check = matches!(write.action, Action::Check(_));
            let check = if is_check { Ok(()) } else { table.check_collection(key, image.as_ref()) };
            checks.push(check);
            table.change(key, image.as_ref(), 1, &mut nothing_consumed(&table.name.clone()));
        }
        all_or_cancelled(checks).map(drop)
    }

    /// A repetition costs reads of what the transaction touched.
    fn replay(
        &self,
        writes: &[(String, Write)],
        keys: &[Key],
        images: &[Option<Attributes>],
    ) -> Vec<Consumed> {
        let mut consumed = ByTable::new(TransactionalUnits::Read);
        for (((name, _), key), image) in writes.iter().zip(keys).zip(images) {
            let table = &self.tables[name];
            let size = charged_size_bytes(table.items.get(key), image.as_ref());
            consumed.of(&table.name).table_halves += 2 * read_halves(size, true);
        }
        consumed.list
    }

    fn commit(
        &mut self,
        writes: &[(String, Write)],
        keys: &[Key],
        images: &[Option<Attributes>],
    ) -> TransactionalWrites {
        let mut consumed = ByTable::new(TransactionalUnits::Write);
        for (((name, _), key), image) in writes.iter().zip(keys).zip(images) {
            let table = self.tables.get_mut(name).expect("the table was found");
            table.change(key, image.as_ref(), 2, consumed.of(&table.name.clone()));
        }
        let mut collections = BTreeMap::new();
        for ((name, write), key) in writes.iter().zip(keys) {
            if let Some(collection) = self.tables[name].collection(key)
                && !matches!(write.action, Action::Check(_))
            {
                collections.insert((name.clone(), key[0].clone()), collection);
            }
        }
        let collections = collections
            .into_iter()
            .map(|((name, _), collection)| (name, collection.key, collection.size_bytes))
            .collect();
        (consumed.list, collections)
    }

    pub fn transact_get(
        &self,
        gets: &[Get],
    ) -> Result<(Vec<Option<Attributes>>, Vec<Consumed>), Refusal> {
        gets.iter().try_for_each(|get| self.table(&get.table).map(drop))?;
        let checked: Vec<(&str, Result<Key, Refusal>)> = gets
            .iter()
            .map(|get| {
                let table = &self.tables[&get.table];
                let key = table.check_key(&get.key).map_err(Refusal::from);
                let routes = get.projection.iter().flatten();
                (get.table.as_str(), key.and_then(|key| table.check_routes(routes).map(|()| key)))
            })
            .collect();
        let keys: Vec<(&str, &Key)> =
            checked.iter().filter_map(|(table, key)| Some((*table, key.as_ref().ok()?))).collect();
        if (1..keys.len()).any(|position| keys[..position].contains(&keys[position])) {
            return Err(Fault::DuplicateTransactionItems.into());
        }
        let keys = all_or_cancelled(checked.into_iter().map(|(_, key)| key).collect())?;
        let mut consumed = ByTable::new(TransactionalUnits::Read);
        let mut items = Vec::new();
        for (get, key) in gets.iter().zip(&keys) {
            let table = &self.tables[&get.table];
            let item = table.items.get(key);
            consumed.of(&table.name).table_halves +=
                2 * read_halves(item.map_or(0, item_size_bytes), true);
            items.push(match (item, &get.projection) {
                (Some(item), Some(routes)) => {
                    Some(project(routes, item)).filter(|projected| !projected.is_empty())
                }
                (item, _) => item.cloned(),
            });
        }
        Ok((items, consumed.list))
    }
}

/// Empty keys fail the request; other faults cancel the transaction.
fn is_request_fault(refusal: &Refusal) -> bool {
    let Refusal::AnyOf(faults) = refusal else { return false };
    faults.iter().any(|fault| {
        matches!(
            fault,
            Fault::Key(KeyError::Empty { .. })
                | Fault::IndexKey {
                    error: IndexKeyError::Empty { .. } | IndexKeyError::UpdatedEmpty { .. },
                    ..
                }
        )
    })
}

/// Every failed condition and every full collection is a reason, but only the first invalid action.
fn all_or_cancelled<T>(outcomes: Vec<Result<T, Refusal>>) -> Result<Vec<T>, Refusal> {
    if outcomes.iter().all(Result::is_ok) {
        return outcomes.into_iter().collect();
    }
    let mut invalid_seen = false;
    let reason = |outcome: Result<T, Refusal>| match outcome {
        Ok(_) => Vec::new(),
        Err(Refusal::Cancelled(_)) => panic!("an action is not cancelled by itself"),
        Err(Refusal::AnyOf(faults)) => {
            let is_invalid = |fault: &Fault| {
                !matches!(fault, Fault::ConditionFailed(_) | Fault::CollectionTooLarge)
            };
            if faults.iter().all(is_invalid) && std::mem::replace(&mut invalid_seen, true) {
                return Vec::new();
            }
            faults
        }
    };
    Err(Refusal::Cancelled(outcomes.into_iter().map(reason).collect()))
}

/// Capacity per table in the order of first mention.
struct ByTable {
    units: TransactionalUnits,
    list: Vec<Consumed>,
}

impl ByTable {
    fn new(units: TransactionalUnits) -> ByTable {
        ByTable { units, list: Vec::new() }
    }

    fn of(&mut self, table: &TableName) -> &mut Consumed {
        let position = self.list.iter().position(|consumed| consumed.table == *table);
        let position = position.unwrap_or_else(|| {
            let transactional = Some(self.units);
            self.list.push(Consumed { transactional, ..nothing_consumed(table) });
            self.list.len() - 1
        });
        &mut self.list[position]
    }
}
