//! Item collections: their sizes, and the limit on these.

use std::collections::HashMap;

use zenobe_store::{Key, decode_counter};
use zenobe_value::{Attributes, key_bytes};

use crate::Engine;
use crate::catalog::Table;
use crate::change::has_collections;
use crate::error::{Error, Result};
use crate::keys::PrimaryKey;
use crate::keyspace;

use super::commit::WrittenItem;
use super::intent::{Declaration, Intent};

/// The sizes of the item collections that the intents write to, read before the write.
///
/// Sizes are counters, which take no locks: writers of one collection run side by side, and each
/// may miss what others are adding at that moment. The limit therefore holds to within those few
/// writes.
pub(super) struct CollectionSizes {
    size_bytes_by_key: HashMap<Key, i64>,
    size_bytes_max: i64,
}

impl CollectionSizes {
    pub async fn read(engine: &Engine, intents: &[Intent<'_>]) -> Result<CollectionSizes> {
        let size_bytes_max = i64::try_from(engine.limits.collection_size_bytes_max);
        let mut collections = CollectionSizes {
            size_bytes_by_key: HashMap::new(),
            size_bytes_max: size_bytes_max.unwrap_or(i64::MAX),
        };
        let mut keys: Vec<Key> = intents.iter().filter_map(collection_key).collect();
        if keys.is_empty() {
            return Ok(collections);
        }
        keys.sort_unstable();
        keys.dedup();
        let counters = engine.store.get_many(&keys).await?;
        for (key, counter) in keys.into_iter().zip(counters) {
            let size_bytes = decode_counter(counter.as_deref())?;
            collections.size_bytes_by_key.insert(key, size_bytes);
        }
        Ok(collections)
    }

    /// The size of each intent's collection after all writes, or which intents make one too large.
    /// A write that doesn't grow its collection always passes. Empty without collections.
    pub fn after(
        &self,
        intents: &[Intent<'_>],
        written: &[WrittenItem],
    ) -> Result<Vec<Option<u64>>, Vec<Option<Error>>> {
        if self.size_bytes_by_key.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Option<Key>> = intents.iter().map(collection_key).collect();
        let mut sizes = self.size_bytes_by_key.clone();
        let mut errors = Vec::with_capacity(intents.len());
        for (key, written) in keys.iter().zip(written) {
            let delta = written.effect.collection_delta_bytes;
            let size = key.as_ref().and_then(|key| sizes.get_mut(key));
            let too_large = size.is_some_and(|size| {
                *size += delta;
                delta > 0 && *size > self.size_bytes_max
            });
            errors.push(too_large.then_some(Error::CollectionTooLarge));
        }
        if errors.iter().any(Option::is_some) {
            return Err(errors);
        }
        let size_of = |key: &Option<Key>| {
            let size = *sizes.get(key.as_ref()?)?;
            Some(u64::try_from(size).unwrap_or(0))
        };
        Ok(keys.iter().map(size_of).collect())
    }
}

/// The counter of the collection that an intent writes to, on tables with collections.
fn collection_key(intent: &Intent<'_>) -> Option<Key> {
    (intent.declaration() == Declaration::Key && has_collections(&intent.table))
        .then(|| keyspace::collection_size(intent.table.definition().id, intent.key.partition()))
}

/// The partition key of a table with collections, which has one partition attribute.
pub(super) fn partition_attributes(table: &Table, key: &PrimaryKey) -> Result<Attributes> {
    let attribute = &table.definition().keys.partition[0];
    let (value, _) = key_bytes::decode(key.partition(), attribute.scalar_type.attribute_type())
        .map_err(|error| Error::Corrupt { detail: format!("a partition key: {error}") })?;
    Ok(Attributes::from([(attribute.name.clone(), value)]))
}
