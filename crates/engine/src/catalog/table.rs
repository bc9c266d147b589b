//! A table as the item paths use it: its definition, and the keys that every request needs,
//! computed once per version of the definition.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use zenobe_store::{Key, Value};

use crate::command::TableName;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::schema::{IndexDefinition, IndexKind, TableDefinition, TableId};
use crate::throughput::{TableCapacity, ThroughputMode};

#[derive(Debug)]
pub struct Table {
    definition: Arc<TableDefinition>,
    name: TableName,
    guard_key: Key,
    item_prefix: Key,
    statistics: StatisticsKeys,
    /// In the order of [`TableDefinition::indexes`].
    indexes: Vec<IndexKeys>,
    /// The logs of the open shards, by slot; empty without a stream.
    stream_logs: Vec<Key>,
    expiry_prefix: Key,
    history: Option<HistoryKeys>,
    /// What the table's own tag says.
    throughput_mode: Option<ThroughputMode>,
    has_insights: bool,
    /// Set with the first request that is metered.
    capacity: OnceLock<TableCapacity>,
    /// Set before this engine tries to replace the definition, and never cleared: see
    /// [`Table::invalidate`].
    is_invalid: AtomicBool,
}

/// The counters of a table or an index.
#[derive(Debug)]
pub struct StatisticsKeys {
    pub item_count: Key,
    pub size_bytes: Key,
}

/// What the undo rows of a table with a history need.
#[derive(Debug)]
pub(crate) struct HistoryKeys {
    /// The prefix of every undo row's key.
    pub prefix: Key,
    pub clock: Key,
    pub size_bytes: Key,
    pub count: Key,
    /// The clock is known to have passed this stamp (as bits).
    pub passed: AtomicU64,
}

impl HistoryKeys {
    fn new(id: TableId, era: u32) -> HistoryKeys {
        HistoryKeys {
            prefix: keyspace::undo_prefix(id, era),
            clock: keyspace::undo_rows_prefix(id),
            size_bytes: keyspace::history_size_bytes(id),
            count: keyspace::history_count(id),
            passed: AtomicU64::new(0),
        }
    }
}

#[derive(Debug)]
struct IndexKeys {
    prefix: Key,
    statistics: StatisticsKeys,
}

/// An index of a [`Table`] and its precomputed keys.
#[derive(Debug, Clone, Copy)]
pub struct TableIndex<'a> {
    pub definition: &'a IndexDefinition,
    /// The prefix of every entry's key.
    pub prefix: &'a Key,
    pub statistics: &'a StatisticsKeys,
}

/// What a table's version row says about a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardCheck {
    Current,
    /// The definition changed: get the new one ([`crate::Engine::refresh`]) and decide again.
    Changed,
    /// The table was deleted. Its name may belong to another table by now, so refresh as well.
    Gone,
}

impl Table {
    pub(crate) fn new(definition: Arc<TableDefinition>) -> Table {
        let id = definition.id;
        let index_keys = |index: &IndexDefinition| IndexKeys {
            prefix: match index.kind {
                IndexKind::Local => keyspace::local_index_prefix(id, index.id),
                IndexKind::Global => keyspace::global_index_prefix(id, index.id),
            },
            statistics: StatisticsKeys {
                item_count: keyspace::item_count(id, Some(index.id)),
                size_bytes: keyspace::size_bytes(id, Some(index.id)),
            },
        };
        Table {
            name: TableName {
                namespace: Arc::new(definition.namespace.clone()),
                name: definition.name.clone(),
            },
            guard_key: keyspace::version_row(id),
            item_prefix: keyspace::item_prefix(id),
            statistics: StatisticsKeys {
                item_count: keyspace::item_count(id, None),
                size_bytes: keyspace::size_bytes(id, None),
            },
            indexes: definition.indexes().map(index_keys).collect(),
            stream_logs: definition.stream.iter().flat_map(|stream| stream.open_logs(id)).collect(),
            expiry_prefix: keyspace::expiry_prefix(id),
            history: definition.undo_era().map(|era| HistoryKeys::new(id, era)),
            throughput_mode: ThroughputMode::of(&definition),
            has_insights: definition.has_insights(),
            capacity: OnceLock::new(),
            is_invalid: AtomicBool::new(false),
            definition,
        }
    }

    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    pub fn name(&self) -> &TableName {
        &self.name
    }

    /// The table's version row. Every write to the table's items declares it as a guard and checks
    /// its value with [`Table::check_guard`], so it can neither land in a deleted table nor miss an
    /// index.
    pub fn guard_key(&self) -> &Key {
        &self.guard_key
    }

    /// Like [`Table::check_guard`], for work that begins again with the new definition.
    ///
    /// # Errors
    /// [`Error::TableChanged`]
    pub(crate) fn check_current(&self, version_row: Option<&Value>) -> Result<()> {
        match self.check_guard(version_row) {
            GuardCheck::Current => Ok(()),
            GuardCheck::Changed | GuardCheck::Gone => {
                Err(Error::TableChanged { name: self.name.name.clone() })
            }
        }
    }

    pub fn check_guard(&self, version_row: Option<&Value>) -> GuardCheck {
        match version_row {
            None => GuardCheck::Gone,
            Some(version) if version[..] == self.definition.version.to_be_bytes() => {
                GuardCheck::Current
            }
            Some(_) => GuardCheck::Changed,
        }
    }

    /// Invalidates the definition, because this engine is about to replace it. From the moment when
    /// the store may show the change until the map holds another handle, only the version row is
    /// right. If the store fails in between, that may be forever.
    pub(crate) fn invalidate(&self) {
        self.is_invalid.store(true, Ordering::SeqCst);
    }

    /// Call this after a read. If it returns false, the result belongs to this definition, as far
    /// as this engine's own changes go.
    pub(crate) fn is_invalid(&self) -> bool {
        self.is_invalid.load(Ordering::SeqCst)
    }

    /// Whether both are the same version of the same table, and this handle has not been
    /// invalidated.
    pub(crate) fn is_same_version(&self, other: &Table) -> bool {
        let (this, other) = (&self.definition, &other.definition);
        (this.id, this.version) == (other.id, other.version) && !self.is_invalid()
    }

    /// The prefix of every item's key.
    pub fn item_prefix(&self) -> &Key {
        &self.item_prefix
    }

    pub fn statistics(&self) -> &StatisticsKeys {
        &self.statistics
    }

    /// The log for the records of an item, if the table has a stream.
    pub(crate) fn stream_log(&self, item_key: &[u8]) -> Option<&Key> {
        let stream = self.definition.stream.as_ref()?;
        let hash = keyspace::hash_of_key(&self.item_prefix, item_key);
        self.stream_logs.get(stream.slot_of(hash.upper_half()) as usize)
    }

    /// The prefix of every entry's key in the expiry index.
    pub(crate) fn expiry_prefix(&self) -> &Key {
        &self.expiry_prefix
    }

    /// Set while every change writes an undo row.
    pub(crate) fn history(&self) -> Option<&HistoryKeys> {
        self.history.as_ref()
    }

    /// The table's own throughput mode, if it has one.
    pub fn throughput_mode(&self) -> Option<ThroughputMode> {
        self.throughput_mode
    }

    /// Whether the table or one of its global indexes has Contributor Insights.
    pub fn has_insights(&self) -> bool {
        self.has_insights
    }

    /// The meters of the table and its global indexes; `find` is called once.
    pub(crate) fn capacity(&self, find: impl FnOnce() -> TableCapacity) -> &TableCapacity {
        self.capacity.get_or_init(find)
    }

    /// Local indexes first, then global ones, each in the order of their definition.
    pub fn indexes(&self) -> impl Iterator<Item = TableIndex<'_>> {
        let keys = &self.indexes;
        self.definition.indexes().zip(keys).map(|(definition, keys)| TableIndex {
            definition,
            prefix: &keys.prefix,
            statistics: &keys.statistics,
        })
    }

    pub fn index(&self, name: &str) -> Option<TableIndex<'_>> {
        self.indexes().find(|index| index.definition.name == name)
    }
}
