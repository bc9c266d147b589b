//! Rows of services that live above the engine, such as metrics and scaling policies. The engine
//! keeps them like its own rows, on every store, but does not know what they mean.
//!
//! A row is found by its owner, a namespace and a key of the owner's choosing. Rows of an owner and
//! namespace lie in the order of their keys.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use zenobe_store::{Batch, Direction, Key, KeyRange, Value, WriteSet, prefix_end, write_with};
use zenobe_value::Attributes;

use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::{Fields, corrupt};
use crate::schema::Namespace;

const WHAT: &str = "the row of a service";

/// The service that owns a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOwner {
    Metrics,
    Alarms,
    Scaling,
    Cost,
}

impl RowOwner {
    /// Part of stored keys: never change a byte.
    fn byte(self) -> u8 {
        match self {
            RowOwner::Metrics => b'm',
            RowOwner::Alarms => b'a',
            RowOwner::Scaling => b's',
            RowOwner::Cost => b'c',
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRow {
    /// The owner's part of the key.
    pub key: Vec<u8>,
    pub fields: Attributes,
}

/// What to do with a row that has been read.
#[derive(Debug, Clone, PartialEq)]
pub enum RowChange {
    Keep,
    Put(Attributes),
    Delete,
}

impl Engine {
    pub async fn service_row(
        &self,
        owner: RowOwner,
        namespace: &Namespace,
        key: &[u8],
    ) -> Result<Option<Attributes>> {
        let row = self.store.get(&keyspace::service_row(owner.byte(), namespace, key)).await?;
        row.map(|row| decode(&row)).transpose()
    }

    /// The rows with keys in a range, in order, at most `rows_max`.
    pub async fn service_rows(
        &self,
        owner: RowOwner,
        namespace: &Namespace,
        range: Range<Vec<u8>>,
        rows_max: usize,
    ) -> Result<Vec<ServiceRow>> {
        let prefix_length = keyspace::service_row(owner.byte(), namespace, b"").len();
        let mut rows = Vec::new();
        let mut outcome = Ok(());
        let mut visit = |key: &[u8], row: &[u8]| {
            match decode(row) {
                Ok(fields) => rows.push(ServiceRow { key: key[prefix_length..].to_vec(), fields }),
                Err(error) => {
                    outcome = Err(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        let range = key_range(owner, namespace, &range);
        let forward = Direction::Forward;
        self.store.scan_then_get(range, forward, Some(rows_max), &mut visit, &[]).await?;
        outcome.map(|()| rows)
    }

    /// The namespaces in which an owner has rows.
    pub async fn service_namespaces(&self, owner: RowOwner) -> Result<Vec<Arc<Namespace>>> {
        let prefix = keyspace::service_rows_prefix(owner.byte());
        let end = prefix_end(&prefix);
        let mut start = prefix;
        let mut namespaces = Vec::new();
        // One seek for each namespace, however many rows it has.
        loop {
            let mut found = None;
            let mut visit = |key: &[u8], _: &[u8]| {
                found = Some(keyspace::parts_of_service_row(key).map(|(namespace, _)| namespace));
                ControlFlow::Break(())
            };
            let range = KeyRange { start: start.clone(), end: end.clone() };
            let forward = Direction::Forward;
            self.store.scan_then_get(range, forward, Some(1), &mut visit, &[]).await?;
            let Some(namespace) = found else { return Ok(namespaces) };
            let namespace =
                namespace.ok_or_else(|| corrupt(format!("a key without namespace of {WHAT}")))?;
            let rows = keyspace::service_row(owner.byte(), &namespace, b"");
            namespaces.push(Arc::new(namespace));
            let Some(next) = prefix_end(&rows) else { return Ok(namespaces) };
            start = next;
        }
    }

    /// Reads, changes and writes one row atomically. `change` may be called more than once; only the
    /// result of the last call takes effect. Background work passes its lease.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if another node has taken over.
    pub async fn change_service_row<T: Send>(
        &self,
        owner: RowOwner,
        namespace: &Namespace,
        key: &[u8],
        lease: &Lease,
        mut change: impl FnMut(Option<Attributes>) -> (RowChange, T) + Send,
    ) -> Result<T> {
        let keys = [keyspace::service_row(owner.byte(), namespace, key)];
        let set = WriteSet { guards: lease.guards(), keys: &keys };
        let written = write_with(&*self.store, set, |reads| {
            let (guards, rows) = reads.split_at(lease.guards().len());
            lease.check(guards)?;
            let (change, outcome) = change(rows[0].as_ref().map(|row| decode(row)).transpose()?);
            let mut batch = Batch::new();
            match change {
                RowChange::Keep => {}
                RowChange::Put(fields) => batch.put(keys[0].clone(), encode(fields)),
                RowChange::Delete => batch.delete(keys[0].clone()),
            }
            Ok::<_, Error>((batch, outcome))
        });
        let (outcome, _) = written.await??;
        Ok(outcome)
    }

    /// Puts rows, and deletes those without fields, in one atomic batch.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if another node has taken over.
    pub async fn write_service_rows(
        &self,
        owner: RowOwner,
        namespace: &Namespace,
        lease: &Lease,
        rows: Vec<(Vec<u8>, Option<Attributes>)>,
    ) -> Result<()> {
        let encoded = rows.into_iter().map(|(key, fields)| {
            (keyspace::service_row(owner.byte(), namespace, &key), fields.map(encode))
        });
        let encoded: Vec<(Key, Option<Value>)> = encoded.collect();
        let keys: Vec<Key> = encoded.iter().map(|(key, _)| key.clone()).collect();
        let set = WriteSet { guards: lease.guards(), keys: &keys };
        let written = write_with(&*self.store, set, |reads| {
            lease.check(&reads[..lease.guards().len()])?;
            let mut batch = Batch::new();
            for (key, row) in &encoded {
                match row {
                    Some(row) => batch.put(key.clone(), row.clone()),
                    None => batch.delete(key.clone()),
                }
            }
            Ok::<_, Error>((batch, ()))
        });
        written.await??;
        Ok(())
    }

    /// Deletes the rows with keys in a range.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if another node has taken over.
    pub async fn delete_service_rows(
        &self,
        owner: RowOwner,
        namespace: &Namespace,
        lease: &Lease,
        range: Range<Vec<u8>>,
    ) -> Result<()> {
        let range = key_range(owner, namespace, &range);
        let set = WriteSet { guards: lease.guards(), keys: &[] };
        let written = write_with(&*self.store, set, |guards| {
            lease.check(guards)?;
            let mut batch = Batch::new();
            batch.delete_range(range.clone());
            Ok::<_, Error>((batch, ()))
        });
        written.await??;
        Ok(())
    }
}

fn key_range(owner: RowOwner, namespace: &Namespace, range: &Range<Vec<u8>>) -> KeyRange {
    let at = |key: &[u8]| keyspace::service_row(owner.byte(), namespace, key);
    KeyRange::new(at(&range.start), at(&range.end))
}

fn encode(fields: Attributes) -> Value {
    Fields(fields).encode()
}

fn decode(row: &[u8]) -> Result<Attributes> {
    Ok(Fields::decode(row, WHAT)?.0)
}

#[cfg(test)]
mod tests {
    use zenobe_store::Store;
    use zenobe_store::memory::MemoryStore;
    use zenobe_value::AttributeValue;

    use super::*;
    use crate::EngineOptions;

    async fn engine() -> Arc<Engine> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        Engine::open(store, EngineOptions::default()).await.unwrap()
    }

    fn namespace(region: &str) -> Namespace {
        Namespace { account: "1".into(), region: region.into() }
    }

    fn fields(text: &str) -> Attributes {
        let mut fields = Attributes::default();
        fields.insert("text".into(), AttributeValue::S(text.into()));
        fields
    }

    #[tokio::test]
    async fn rows_are_kept_by_owner_namespace_and_key() {
        let engine = engine().await;
        let lease = Lease::default();
        let (here, there) = (namespace("a"), namespace("b"));
        let rows = [b"k1", b"k2", b"k3"].map(|key| (key.to_vec(), Some(fields("here"))));
        let owner = RowOwner::Metrics;
        engine.write_service_rows(owner, &here, &lease, rows.to_vec()).await.unwrap();
        let other = vec![(b"k1".to_vec(), Some(fields("there")))];
        engine.write_service_rows(owner, &there, &lease, other).await.unwrap();

        let range = b"k1".to_vec()..b"k3".to_vec();
        let found = engine.service_rows(owner, &here, range.clone(), 10).await.unwrap();
        let keys: Vec<_> = found.iter().map(|row| &row.key[..]).collect();
        assert_eq!(keys, [b"k1", b"k2"]);
        assert_eq!(engine.service_rows(owner, &here, range.clone(), 1).await.unwrap().len(), 1);
        let found = engine.service_row(owner, &there, b"k1").await.unwrap();
        assert_eq!(found, Some(fields("there")));
        assert_eq!(engine.service_row(RowOwner::Alarms, &here, b"k1").await.unwrap(), None);
        let namespaces = engine.service_namespaces(owner).await.unwrap();
        assert_eq!(namespaces, [Arc::new(here.clone()), Arc::new(there)]);
        assert!(engine.service_namespaces(RowOwner::Cost).await.unwrap().is_empty());

        engine.delete_service_rows(owner, &here, &lease, range).await.unwrap();
        assert_eq!(engine.service_row(owner, &here, b"k1").await.unwrap(), None);
        assert!(engine.service_row(owner, &here, b"k3").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_row_is_changed_atomically() {
        let engine = engine().await;
        let (here, lease, owner) = (namespace("a"), Lease::default(), RowOwner::Scaling);
        let append = |row: Option<Attributes>| {
            let text = match row.and_then(|mut row| row.remove("text")) {
                Some(AttributeValue::S(text)) => text + "x",
                _ => String::new(),
            };
            (RowChange::Put(fields(&text)), text.len())
        };
        let changes: Vec<_> = (0..20)
            .map(|_| engine.change_service_row(owner, &here, b"k", &lease, append))
            .collect();
        let mut seen = Vec::new();
        for change in changes {
            seen.push(change.await.unwrap());
        }
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
        let delete = |_: Option<Attributes>| (RowChange::Delete, ());
        engine.change_service_row(owner, &here, b"k", &lease, delete).await.unwrap();
        assert_eq!(engine.service_row(owner, &here, b"k").await.unwrap(), None);
    }
}
