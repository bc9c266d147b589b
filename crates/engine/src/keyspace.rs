//! The layout of the store: this file defines every key prefix of the engine, and nothing else
//! does. `docs/store-format/keyspace.md` shows the same layout to readers without the code.
//!
//! Notation: `'T'` is one byte, `table` a table id in 8 bytes, `index` an index id in 4 bytes (both
//! big-endian), `hash` AWS's own hash of key values in 16 bytes ([`KeyHash`]), and `text` a string
//! with `00` written as `00 FF` and `00 01` after it, so that texts of any length keep their order
//! when they follow one another.
//!
//! **Invariant:** two kinds of keys never share a first byte, and no table's keys fall into the
//! range of another table. Deleting a table is therefore a handful of range deletions.

mod hash;

use zenobe_store::stamp::parts_of_stamped_key;
use zenobe_store::{Key, KeyPrefixes, KeyRange, Stamp, prefix_end};

use crate::schema::{IndexId, KeyAttribute, Namespace, TableId};

pub use hash::{KeyHash, part_start};

/// The first byte of a key: the kind of entry.
mod kind {
    pub const NAMESPACE: u8 = b'A';
    pub const BACKFILL: u8 = b'B';
    pub const CATALOG: u8 = b'C';
    pub const STREAM_ROW: u8 = b'D';
    pub const EXPIRY: u8 = b'E';
    pub const BACKUP_CONTENT: u8 = b'F';
    pub const GLOBAL_INDEX: u8 = b'G';
    pub const HEALTH: u8 = b'H';
    pub const TABLE_ID_SEQUENCE: u8 = b'I';
    pub const GARBAGE: u8 = b'J';
    pub const TOKEN: u8 = b'K';
    pub const LOCAL_INDEX: u8 = b'L';
    pub const NODE: u8 = b'M';
    pub const STATISTICS: u8 = b'N';
    pub const LEASE: u8 = b'O';
    pub const BACKUP: u8 = b'P';
    pub const CATALOG_CHANGES: u8 = b'Q';
    pub const CONSUMER: u8 = b'R';
    pub const STREAM: u8 = b'S';
    pub const ITEM: u8 = b'T';
    pub const UNDO: u8 = b'U';
    pub const VERSION: u8 = b'V';
    pub const JOB: u8 = b'W';
    pub const TOKEN_EXPIRY: u8 = b'X';
    pub const LAST_TIME: u8 = b'Y';
    pub const COLLECTION_SIZE: u8 = b'Z';
    pub const PARTITION_MAP: u8 = b'p';
    pub const SERVICE_ROW: u8 = b's';
}

// ---- items and index entries --------------------------------------------------------------------

/// `'T' table`: all items of a table. An item's key continues with `hash(pk) pk sk`.
pub fn item_prefix(table: TableId) -> Key {
    table_prefix(kind::ITEM, table)
}

/// `'L' table index`: all entries of a local index. An entry's key continues with `hash(pk) pk
/// index-sk hash(pk sk) sk`, so an item collection is one range of the index.
pub fn local_index_prefix(table: TableId, index: IndexId) -> Key {
    index_prefix(kind::LOCAL_INDEX, table, index)
}

/// `'G' table index`: all entries of a global index. An entry's key continues with `hash(index-pk…)
/// index-pk… index-sk… hash(pk sk) pk sk`.
pub fn global_index_prefix(table: TableId, index: IndexId) -> Key {
    index_prefix(kind::GLOBAL_INDEX, table, index)
}

/// `'L' table`: the entries of all local indexes of a table.
pub fn local_indexes_prefix(table: TableId) -> Key {
    table_prefix(kind::LOCAL_INDEX, table)
}

/// `'G' table`: the entries of all global indexes of a table.
pub fn global_indexes_prefix(table: TableId) -> Key {
    table_prefix(kind::GLOBAL_INDEX, table)
}

/// `prefix hash rest`: the key of an item or an index entry, or the common prefix of a partition's
/// keys. `hash` covers the partition attributes, and `rest` starts with their key bytes.
pub fn entry_key(prefix: &[u8], hash: KeyHash, rest: &[u8]) -> Key {
    [prefix, hash.as_bytes(), rest].concat().into()
}

/// Builds the key of an index entry without buffers for its parts.
pub(crate) struct EntryKeyBuilder {
    bytes: Vec<u8>,
    hash_at: usize,
}

impl EntryKeyBuilder {
    /// Push the key bytes of the partition attributes next. `tail` ends the key.
    pub fn new(prefix: &[u8], tail: &[u8]) -> EntryKeyBuilder {
        let hashes = 2 * KeyHash::LENGTH;
        let mut bytes =
            Vec::with_capacity(prefix.len() + hashes + ENTRY_KEY_BYTES_EXPECTED + tail.len());
        bytes.extend_from_slice(prefix);
        bytes.extend_from_slice(&[0; KeyHash::LENGTH]);
        EntryKeyBuilder { bytes, hash_at: prefix.len() }
    }

    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes pushed so far are the key bytes of these attributes.
    pub fn end_partition(&mut self, attributes: &[KeyAttribute]) {
        let (start, partition) = self.bytes.split_at_mut(self.hash_at + KeyHash::LENGTH);
        let hash = KeyHash::of(attributes, partition);
        start[self.hash_at..].copy_from_slice(hash.as_bytes());
    }

    /// Entries with equal index keys sort by `tie`, the hash of the item's whole primary key.
    /// `tail` distinguishes them: the item's sort key in a local index, its partition and sort key
    /// in a global one.
    pub fn finish(mut self, tie: KeyHash, tail: &[u8]) -> Key {
        self.bytes.extend_from_slice(tie.as_bytes());
        self.bytes.extend_from_slice(tail);
        self.bytes.into()
    }
}

/// The key bytes of an index's attributes rarely exceed this.
const ENTRY_KEY_BYTES_EXPECTED: usize = 64;

/// The keys below `prefix` whose hash is at least `first` and less than `end` (`None` means up to
/// the last). Segments of a parallel scan are such ranges.
pub fn hash_range(prefix: &[u8], first: u128, end: Option<u128>) -> KeyRange {
    let at = |hash: u128| Key::from([prefix, &hash.to_be_bytes()].concat());
    KeyRange { start: at(first), end: end.map(at).or_else(|| prefix_end(prefix)) }
}

/// The entries of a table or index with one partition key: an item collection is read together.
pub struct Collections;

impl KeyPrefixes for Collections {
    const NAME: &'static str = "zenobe.collections.3";

    /// The prefix is the key up to the end of the hash. Two partitions with the same hash share a
    /// prefix, which does no harm.
    fn prefix_of(key: &[u8]) -> Option<&[u8]> {
        let prefix_length = match *key.first()? {
            kind::ITEM => ITEM_PREFIX_LENGTH,
            kind::LOCAL_INDEX | kind::GLOBAL_INDEX | kind::UNDO => INDEX_PREFIX_LENGTH,
            _ => return None,
        };
        key.get(..prefix_length + KeyHash::LENGTH)
    }
}

/// The hash of a key made by [`entry_key`] with this prefix.
///
/// # Panics
/// If the key is shorter than its prefix and hash: such a key was not made by this module.
pub fn hash_of_key(prefix: &[u8], key: &[u8]) -> KeyHash {
    let (hash, _) = parts_of_suffix(&key[prefix.len()..]).expect("an entry's key holds its hash");
    hash
}

/// The part of an item's key after the prefix of its table.
pub fn suffix_of_item(item_key: &[u8]) -> Option<&[u8]> {
    item_key.get(ITEM_PREFIX_LENGTH..)
}

/// The hash and the key bytes `pk sk`, from the part of an item's key after the prefix.
pub fn parts_of_suffix(suffix: &[u8]) -> Option<(KeyHash, &[u8])> {
    let (hash, key_bytes) = suffix.split_first_chunk()?;
    Some((KeyHash::from_bytes(*hash), key_bytes))
}

/// `'E' table`: the expiry index of a table with time to live. An entry's key continues with the
/// second of expiry (since the epoch, 8 bytes, big-endian), then with the item's key after its
/// prefix.
pub fn expiry_prefix(table: TableId) -> Key {
    table_prefix(kind::EXPIRY, table)
}

/// `'E' table expiry hash(pk) pk sk`: says when an item expires. `item_key` is the item's key.
pub fn expiry_entry(expiry_prefix: &[u8], expires_at_s: u64, item_key: &[u8]) -> Key {
    let suffix = &item_key[ITEM_PREFIX_LENGTH..];
    [expiry_prefix, &expires_at_s.to_be_bytes(), suffix].concat().into()
}

/// The entries of items that expire at or after `from_s` and before `to_s`.
pub fn expiries_between(expiry_prefix: &[u8], from_s: u64, to_s: u64) -> KeyRange {
    let at = |second: u64| [expiry_prefix, &second.to_be_bytes()].concat();
    KeyRange::new(at(from_s), at(to_s))
}

/// The second of expiry in an entry's key, and the item's key after its prefix.
pub fn parts_of_expiry(entry: &[u8]) -> Option<(u64, &[u8])> {
    let (second, suffix) = entry.get(EXPIRY_PREFIX_LENGTH..)?.split_first_chunk()?;
    Some((u64::from_be_bytes(*second), suffix))
}

// ---- history ------------------------------------------------------------------------------------

/// `'U' table era`: the undo rows of a table since point-in-time recovery was switched on (the era
/// in 4 bytes). A row's key continues with the item's key after its prefix, and ends with the stamp
/// of the change (8 bytes). Its value is the image that the change replaced, or nothing if there was
/// no item.
pub fn undo_prefix(table: TableId, era: u32) -> Key {
    index_prefix(kind::UNDO, table, IndexId(era))
}

/// `'U' table`: the undo rows of all eras of a table; also the name of the clock that stamps them.
pub fn undo_rows_prefix(table: TableId) -> Key {
    table_prefix(kind::UNDO, table)
}

/// `'U' table era hash(pk) pk sk`: the undo rows of an item. `item_key` is the item's key, or a key
/// between items.
pub fn undo_key(undo_prefix: &[u8], item_key: &[u8]) -> Key {
    [undo_prefix, &item_key[ITEM_PREFIX_LENGTH..]].concat().into()
}

/// The item's key and the stamp in the key of an undo row.
pub fn parts_of_undo(item_prefix: &[u8], row: &[u8]) -> Option<(Key, Stamp)> {
    let (undo_key, stamp) = parts_of_stamped_key(row)?;
    let suffix = undo_key.get(INDEX_PREFIX_LENGTH..)?;
    parts_of_suffix(suffix)?;
    Some(([item_prefix, suffix].concat().into(), stamp))
}

/// `'P' text(account) text(region) text(table) text(id)`: a backup, encoded as an item.
pub fn backup_row(namespace: &Namespace, table: &str, id: &str) -> Key {
    let mut key = table_backups_prefix(namespace, table).to_vec();
    push_text(&mut key, id);
    key.into()
}

/// `'P' text(account) text(region) text(table)`: the backups of tables with that name, oldest first.
pub fn table_backups_prefix(namespace: &Namespace, table: &str) -> Key {
    let mut key = namespace_backups_prefix(namespace).to_vec();
    push_text(&mut key, table);
    key.into()
}

/// `'P' text(account) text(region)`: the backups of a namespace, by table.
pub fn namespace_backups_prefix(namespace: &Namespace) -> Key {
    namespace_key(kind::BACKUP, namespace).into()
}

/// `'P'`: every backup.
pub fn backups_prefix() -> Key {
    Key::from_static(&[kind::BACKUP])
}

/// The table's name and the id in a key made by [`backup_row`], given the namespace's prefix.
pub fn parts_of_backup_row(prefix: &[u8], key: &[u8]) -> Option<(String, String)> {
    let (table, rest) = take_text(key.strip_prefix(prefix)?)?;
    let (id, rest) = take_text(rest)?;
    rest.is_empty().then_some((table, id))
}

/// `'F' text(account) text(region) text(table) text(id)`: what belongs to a backup alone.
pub fn backup_content_prefix(namespace: &Namespace, table: &str, id: &str) -> Key {
    let mut key = namespace_key(kind::BACKUP_CONTENT, namespace);
    push_text(&mut key, table);
    push_text(&mut key, id);
    key.into()
}

/// `content 's'`: the key of an empty row that ends with the stamp of the commit that made the
/// backup.
pub fn backup_stamp_prefix(content: &[u8]) -> Key {
    [content, b"s"].concat().into()
}

/// `content 'c'`: the chunks of a backup that has been copied.
pub fn backup_chunks_prefix(content: &[u8]) -> Key {
    [content, b"c"].concat().into()
}

/// `content 'c' hash(pk) pk sk`: a chunk, under the key of its first item. `item_key` is the item's
/// key in the table.
pub fn backup_chunk(content: &[u8], item_key: &[u8]) -> Key {
    [content, b"c", &item_key[ITEM_PREFIX_LENGTH..]].concat().into()
}

const ITEM_PREFIX_LENGTH: usize = 1 + 8;
const INDEX_PREFIX_LENGTH: usize = 1 + 8 + 4;
const EXPIRY_PREFIX_LENGTH: usize = 1 + 8;

// ---- streams ------------------------------------------------------------------------------------

/// `'D' text(account) text(region) text(table) text(label)`: the description of a stream, for as
/// long as it can be read.
pub fn stream_row(namespace: &Namespace, table: &str, label: &str) -> Key {
    let mut key = table_streams_prefix(namespace, table).to_vec();
    push_text(&mut key, label);
    key.into()
}

/// `'D' text(account) text(region) text(table)`: all streams that tables with that name have had.
pub fn table_streams_prefix(namespace: &Namespace, table: &str) -> Key {
    let mut key = namespace_key(kind::STREAM_ROW, namespace);
    push_text(&mut key, table);
    key.into()
}

/// `'D' text(account) text(region)`: the streams of a namespace.
pub fn namespace_streams_prefix(namespace: &Namespace) -> Key {
    namespace_key(kind::STREAM_ROW, namespace).into()
}

/// `'D'`: every stream.
pub fn streams_prefix() -> Key {
    Key::from_static(&[kind::STREAM_ROW])
}

/// `'S' table text(label) shard`: the log of one shard (4 bytes) of a stream; the store appends
/// 8-byte sequence numbers. A stream outlives its table by a day, so deleting a table leaves it.
pub fn stream_log(table: TableId, label: &str, shard: u32) -> Key {
    let mut key = stream_prefix(table, label).to_vec();
    key.extend_from_slice(&shard.to_be_bytes());
    key.into()
}

/// `'S' table text(label)`: every record of a stream.
pub fn stream_prefix(table: TableId, label: &str) -> Key {
    let mut key = table_prefix(kind::STREAM, table).to_vec();
    push_text(&mut key, label);
    key.into()
}

// ---- health -------------------------------------------------------------------------------------

/// `'H'`: a row for checking whether writes work. Its value means nothing.
pub fn health_row() -> Key {
    Key::from_static(&[kind::HEALTH])
}

// ---- nodes --------------------------------------------------------------------------------------

/// `'M' text(id)`: an engine among several that share the store, encoded as an item.
pub fn node_row(id: &str) -> Key {
    let mut key = vec![kind::NODE];
    push_text(&mut key, id);
    key.into()
}

/// `'M'`: every node.
pub fn nodes_prefix() -> Key {
    Key::from_static(&[kind::NODE])
}

/// `'O' text(work)`: which node does some work that only one may do at a time, encoded as an item.
pub fn lease_row(work: &str) -> Key {
    let mut key = vec![kind::LEASE];
    push_text(&mut key, work);
    key.into()
}

/// `'O'`: every lease.
pub fn leases_prefix() -> Key {
    Key::from_static(&[kind::LEASE])
}

// ---- garbage ------------------------------------------------------------------------------------

/// `'J' prefix`: everything with this prefix is garbage and must be deleted.
pub fn garbage_row(prefix: &[u8]) -> Key {
    [&[kind::GARBAGE], prefix].concat().into()
}

/// `'J'`: all garbage.
pub fn garbage_prefix() -> Key {
    Key::from_static(&[kind::GARBAGE])
}

/// The prefix in a key made by [`garbage_row`].
pub fn prefix_of_garbage(row: &[u8]) -> Key {
    Key::copy_from_slice(row.get(1..).unwrap_or_default())
}

// ---- consumers of streams -----------------------------------------------------------------------

/// `'R' 'd'`: every definition of a consumer.
pub fn consumers_prefix() -> Key {
    Key::from_static(&[kind::CONSUMER, b'd'])
}

/// `'R' 'd' text(account) text(region) text(name)`: a consumer's definition, encoded as an item.
pub fn consumer_row(namespace: &Namespace, name: &str) -> Key {
    consumer_key(b'd', namespace, name).into()
}

/// `'R' 'c' text(account) text(region) text(name)`: all checkpoints of a consumer.
pub fn checkpoints_prefix(namespace: &Namespace, name: &str) -> Key {
    consumer_key(b'c', namespace, name).into()
}

/// `'R' 'c' text(account) text(region) text(name) text(stream) text(shard)`: a consumer's
/// checkpoint in a shard, encoded as an item. The stream is named by its ARN.
pub fn checkpoint_row(namespace: &Namespace, name: &str, stream: &str, shard: &str) -> Key {
    let mut key = consumer_key(b'c', namespace, name);
    push_text(&mut key, stream);
    push_text(&mut key, shard);
    key.into()
}

// ---- jobs ---------------------------------------------------------------------------------------

/// `'W' 'j'`: every job.
pub fn all_jobs_prefix() -> Key {
    Key::from_static(&[kind::JOB, b'j'])
}

/// `'W' 'j' text(account) text(region) text(kind)`: the jobs of a kind, oldest first.
pub fn jobs_prefix(namespace: &Namespace, job_kind: &str) -> Key {
    job_key(b'j', namespace, job_kind).into()
}

/// `'W' 'j' text(account) text(region) text(kind) text(id)`: a job, encoded as an item.
pub fn job_row(namespace: &Namespace, job_kind: &str, id: &str) -> Key {
    let mut key = job_key(b'j', namespace, job_kind);
    push_text(&mut key, id);
    key.into()
}

/// `'W' 't' text(account) text(region) text(kind) text(token)`: the job that a client's token
/// stands for, encoded as an item.
pub fn job_token_row(namespace: &Namespace, job_kind: &str, token: &str) -> Key {
    let mut key = job_key(b't', namespace, job_kind);
    push_text(&mut key, token);
    key.into()
}

/// `'W' 'o' text(account) text(region) text(kind) text(table)`: the last of the jobs that may only
/// run one at a time on a table, encoded as an item.
pub fn job_occupying_table_row(namespace: &Namespace, job_kind: &str, table: &str) -> Key {
    let mut key = job_key(b'o', namespace, job_kind);
    push_text(&mut key, table);
    key.into()
}

// ---- counters -----------------------------------------------------------------------------------

/// `'N' table index 'c'`: counts the items of a table (`index` is 0) or the entries of an index.
pub fn item_count(table: TableId, index: Option<IndexId>) -> Key {
    statistic(table, index, b'c')
}

/// `'N' table index 's'`: counts the bytes of a table's items (`index` is 0) or of an index's
/// entries, in DynamoDB's measure of size.
pub fn size_bytes(table: TableId, index: Option<IndexId>) -> Key {
    statistic(table, index, b's')
}

/// `'N' table`: all counters of a table and its indexes.
pub fn statistics_prefix(table: TableId) -> Key {
    table_prefix(kind::STATISTICS, table)
}

/// `'N' table index`: the counters of one index.
pub fn index_statistics_prefix(table: TableId, index: IndexId) -> Key {
    index_prefix(kind::STATISTICS, table, index)
}

/// `'N' table 0 'h'`: counts the bytes of a table's undo rows, keys and values.
pub fn history_size_bytes(table: TableId) -> Key {
    statistic(table, None, b'h')
}

/// `'N' table 0 'u'`: counts a table's undo rows.
pub fn history_count(table: TableId) -> Key {
    statistic(table, None, b'u')
}

/// `'Z' table pk`: counts the bytes of an item collection, for tables with local indexes.
pub fn collection_size(table: TableId, partition: &[u8]) -> Key {
    let mut key = collection_size_prefix(table).to_vec();
    key.extend_from_slice(partition);
    key.into()
}

/// `'Z' table`: the collection sizes of a table.
pub fn collection_size_prefix(table: TableId) -> Key {
    table_prefix(kind::COLLECTION_SIZE, table)
}

// ---- partitions ---------------------------------------------------------------------------------

/// `'p' table index`: how a table (`index` is 0) or a global index is split into partitions,
/// encoded as an item. Absent while that follows from its definition.
pub fn partition_map_row(table: TableId, index: Option<IndexId>) -> Key {
    index_prefix(kind::PARTITION_MAP, table, index.unwrap_or(IndexId(0)))
}

/// The table and index in a key made by [`partition_map_row`].
pub fn parts_of_partition_map_row(key: &[u8]) -> Option<(TableId, Option<IndexId>)> {
    let (table, index) = key.strip_prefix(&[kind::PARTITION_MAP])?.split_first_chunk()?;
    let index = u32::from_be_bytes(index.try_into().ok()?);
    let index = Some(IndexId(index)).filter(|index| index.0 > 0);
    Some((TableId(u64::from_be_bytes(*table)), index))
}

/// `'p' table`: the partition maps of a table and its indexes.
pub fn partition_maps_prefix(table: TableId) -> Key {
    table_prefix(kind::PARTITION_MAP, table)
}

/// The partition maps of all tables. Table ids begin with 1.
pub fn all_partition_maps() -> KeyRange {
    let end = prefix_end(&[kind::PARTITION_MAP]);
    KeyRange { start: partition_maps_prefix(TableId(1)), end }
}

/// `'p' 0`: counts the changes of partition maps, so that other engines know when to read them again.
pub fn partition_map_changes() -> Key {
    table_prefix(kind::PARTITION_MAP, TableId(0))
}

// ---- rows of services above the engine ----------------------------------------------------------

/// `'s' owner text(account) text(region) key`: a row of a service (one byte names it), encoded as an
/// item. Only the service knows what its keys mean.
pub fn service_row(owner: u8, namespace: &Namespace, key: &[u8]) -> Key {
    let mut row = vec![kind::SERVICE_ROW, owner];
    push_text(&mut row, &namespace.account);
    push_text(&mut row, &namespace.region);
    row.extend_from_slice(key);
    row.into()
}

/// `'s' owner`: every row of a service.
pub fn service_rows_prefix(owner: u8) -> Key {
    Key::copy_from_slice(&[kind::SERVICE_ROW, owner])
}

/// The namespace in a key made by [`service_row`], and the service's own part of the key.
pub fn parts_of_service_row(key: &[u8]) -> Option<(Namespace, &[u8])> {
    let (account, rest) = take_text(key.strip_prefix(&[kind::SERVICE_ROW])?.get(1..)?)?;
    let (region, rest) = take_text(rest)?;
    Some((Namespace { account, region }, rest))
}

// ---- catalogue ----------------------------------------------------------------------------------

/// `'C' text(account) text(region) text(name)`: a table's definition, encoded as an item.
pub fn table_row(namespace: &Namespace, name: &str) -> Key {
    let mut key = namespace_key(kind::CATALOG, namespace);
    push_text(&mut key, name);
    key.into()
}

/// The table name in a key made by [`table_row`], given the namespace's prefix.
pub fn table_name_of_row(prefix: &[u8], key: &[u8]) -> Option<String> {
    let (name, rest) = take_text(key.strip_prefix(prefix)?)?;
    rest.is_empty().then_some(name)
}

/// `'C' text(account) text(region)`: the definitions of a namespace, sorted by name.
pub fn namespace_tables_prefix(namespace: &Namespace) -> Key {
    namespace_key(kind::CATALOG, namespace).into()
}

/// `'C'`: every definition.
pub fn tables_prefix() -> Key {
    Key::from_static(&[kind::CATALOG])
}

/// `'A' text(account) text(region)`: how many tables a namespace has (8 bytes, big-endian). It is a
/// row, not a counter: creating or deleting a table reads and locks it.
pub fn namespace_table_count(namespace: &Namespace) -> Key {
    namespace_key(kind::NAMESPACE, namespace).into()
}

/// `'A' text(account) text(region) 'c'`: how often the provisioned capacity of a namespace has been raised
/// (8 bytes, big-endian). A write that raises it locks this row, so that no two do so on the same sum.
pub fn namespace_capacity_raises(namespace: &Namespace) -> Key {
    let mut key = namespace_key(kind::NAMESPACE, namespace);
    key.push(b'c');
    key.into()
}

/// `'V' table`: the version of a table's definition (8 bytes, big-endian). Every item write declares
/// it as a guard, every change of the definition as an exclusive key; absent once the table is gone.
pub fn version_row(table: TableId) -> Key {
    table_prefix(kind::VERSION, table)
}

/// `'I'`: the last table id assigned (8 bytes, big-endian).
pub fn table_id_sequence() -> Key {
    Key::from_static(&[kind::TABLE_ID_SEQUENCE])
}

/// `'Q'`: counts the changes of definitions, where several engines share a store. An engine that
/// sees it change reads the definitions again.
pub fn catalog_changes() -> Key {
    Key::from_static(&[kind::CATALOG_CHANGES])
}

/// `'B' table index`: the key of the last item that an index's backfill has finished.
pub fn backfill_progress(table: TableId, index: IndexId) -> Key {
    index_prefix(kind::BACKFILL, table, index)
}

/// `'B' table 0`: the key of the last item that the expiry index's backfill has finished. Index ids
/// start at 1, so 0 is free.
pub fn expiry_backfill_progress(table: TableId) -> Key {
    index_prefix(kind::BACKFILL, table, IndexId(0))
}

/// `'B' table FFFFFFFF`: how far old undo rows have been trimmed, encoded as an item.
pub fn trim_progress(table: TableId) -> Key {
    index_prefix(kind::BACKFILL, table, IndexId(u32::MAX))
}

/// `'B' table`: the backfill progress of all indexes of a table.
pub fn backfill_progress_prefix(table: TableId) -> Key {
    table_prefix(kind::BACKFILL, table)
}

// ---- transaction tokens -------------------------------------------------------------------------

/// `'K' text(account) text(region) text(token)`: the outcome stored for a client's idempotency
/// token.
pub fn token_row(namespace: &Namespace, token: &str) -> Key {
    let mut key = namespace_key(kind::TOKEN, namespace);
    push_text(&mut key, token);
    key.into()
}

/// `'X' expiry token-row`: finds expired tokens in the order of their expiry (milliseconds since
/// the epoch, 8 bytes, big-endian). The rest of the key is the [`token_row`].
pub fn token_expiry(expires_at_ms: u64, token_row: &[u8]) -> Key {
    let mut key = vec![kind::TOKEN_EXPIRY];
    key.extend_from_slice(&expires_at_ms.to_be_bytes());
    key.extend_from_slice(token_row);
    key.into()
}

/// The expiry rows of tokens that expire before `now_ms`.
pub fn token_expiries_before(now_ms: u64) -> KeyRange {
    KeyRange::new(vec![kind::TOKEN_EXPIRY], token_expiry(now_ms, &[]))
}

/// The token row of an expiry row.
pub fn token_row_of_expiry(expiry: &[u8]) -> Option<&[u8]> {
    expiry.get(1 + 8..)
}

// ---- time ---------------------------------------------------------------------------------------

/// `'Y'`: the last time seen (milliseconds since the epoch, 8 bytes, big-endian).
pub fn last_time() -> Key {
    Key::from_static(&[kind::LAST_TIME])
}

// ---- parts --------------------------------------------------------------------------------------

fn table_prefix(kind: u8, table: TableId) -> Key {
    let mut key = Vec::with_capacity(1 + 8);
    key.push(kind);
    key.extend_from_slice(&table.0.to_be_bytes());
    key.into()
}

fn index_prefix(kind: u8, table: TableId, index: IndexId) -> Key {
    let mut key = Vec::with_capacity(INDEX_PREFIX_LENGTH);
    key.push(kind);
    key.extend_from_slice(&table.0.to_be_bytes());
    key.extend_from_slice(&index.0.to_be_bytes());
    key.into()
}

fn statistic(table: TableId, index: Option<IndexId>, which: u8) -> Key {
    // Index ids start at 1, so 0 can denote the table itself.
    let mut key = index_prefix(kind::STATISTICS, table, index.unwrap_or(IndexId(0))).to_vec();
    key.push(which);
    key.into()
}

fn namespace_key(kind: u8, namespace: &Namespace) -> Vec<u8> {
    let mut key = vec![kind];
    push_text(&mut key, &namespace.account);
    push_text(&mut key, &namespace.region);
    key
}

fn consumer_key(what: u8, namespace: &Namespace, name: &str) -> Vec<u8> {
    let mut key = vec![kind::CONSUMER, what];
    push_text(&mut key, &namespace.account);
    push_text(&mut key, &namespace.region);
    push_text(&mut key, name);
    key
}

fn job_key(what: u8, namespace: &Namespace, job_kind: &str) -> Vec<u8> {
    let mut key = vec![kind::JOB, what];
    push_text(&mut key, &namespace.account);
    push_text(&mut key, &namespace.region);
    push_text(&mut key, job_kind);
    key
}

fn push_text(key: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend_from_slice(&[0x00, 0x01]);
}

/// A text pushed by [`push_text`], and what follows it.
fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut text = Vec::new();
    let mut rest = bytes;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        if byte == 0 {
            let (&escape, after) = rest.split_first()?;
            rest = after;
            match escape {
                0xFF => {}
                0x01 => return Some((String::from_utf8(text).ok()?, rest)),
                _ => return None,
            }
        }
        text.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ScalarType;
    use zenobe_store::stamp::stamped_key;

    fn namespace(account: &str, region: &str) -> Namespace {
        Namespace { account: account.into(), region: region.into() }
    }

    #[test]
    fn every_kind_has_its_own_first_byte() {
        let (table, index) = (TableId(7), IndexId(3));
        let here = namespace("000000000000", "eu-west-1");
        let keys = [
            item_prefix(table),
            local_index_prefix(table, index),
            global_index_prefix(table, index),
            stream_log(table, "2026-10-09T05:53:25.330", 0),
            consumer_row(&here, "c"),
            stream_row(&here, "t", "2026-10-09T05:53:25.330"),
            expiry_prefix(table),
            item_count(table, None),
            collection_size(table, b"pk"),
            table_row(&here, "t"),
            namespace_table_count(&here),
            version_row(table),
            table_id_sequence(),
            backfill_progress(table, index),
            token_row(&here, "token"),
            token_expiry(1, b"row"),
            last_time(),
            health_row(),
            catalog_changes(),
            garbage_row(b"prefix"),
            node_row("id"),
            lease_row("work"),
            undo_prefix(table, 1),
            backup_row(&here, "t", "id"),
            backup_content_prefix(&here, "t", "id"),
            job_row(&here, "import", "1"),
            partition_map_row(table, None),
        ];
        let mut first_bytes: Vec<u8> = keys.iter().map(|key| key[0]).collect();
        first_bytes.sort_unstable();
        first_bytes.dedup();
        assert_eq!(first_bytes.len(), keys.len());
    }

    #[test]
    fn the_layout_is_pinned() {
        let (table, index) = (TableId(0x0102), IndexId(0x0A));
        let here = namespace("1", "r");
        let check = |key: Key, expected: &[u8]| assert_eq!(&key[..], expected);
        check(item_prefix(table), b"T\0\0\0\0\0\0\x01\x02");
        check(global_index_prefix(table, index), b"G\0\0\0\0\0\0\x01\x02\0\0\0\x0A");
        check(local_index_prefix(table, index), b"L\0\0\0\0\0\0\x01\x02\0\0\0\x0A");
        check(item_count(table, None), b"N\0\0\0\0\0\0\x01\x02\0\0\0\0c");
        check(size_bytes(table, Some(index)), b"N\0\0\0\0\0\0\x01\x02\0\0\0\x0As");
        check(table_row(&here, "t\0u"), b"C1\0\x01r\0\x01t\0\xFFu\0\x01");
        check(namespace_table_count(&here), b"A1\0\x01r\0\x01");
        check(namespace_capacity_raises(&here), b"A1\0\x01r\0\x01c");
        check(stream_log(table, "l", 2), b"S\0\0\0\0\0\0\x01\x02l\0\x01\0\0\0\x02");
        check(job_row(&here, "k", "i"), b"Wj1\0\x01r\0\x01k\0\x01i\0\x01");
        check(job_token_row(&here, "k", "t"), b"Wt1\0\x01r\0\x01k\0\x01t\0\x01");
        check(job_occupying_table_row(&here, "k", "t"), b"Wo1\0\x01r\0\x01k\0\x01t\0\x01");
        check(checkpoint_row(&here, "c", "s", "h"), b"Rc1\0\x01r\0\x01c\0\x01s\0\x01h\0\x01");
        check(stream_row(&here, "t", "l"), b"D1\0\x01r\0\x01t\0\x01l\0\x01");
        let hash = KeyHash::from_bytes(*b"0123456789abcdef");
        let item = entry_key(&item_prefix(table), hash, b"ps");
        check(item.clone(), b"T\0\0\0\0\0\0\x01\x020123456789abcdefps");
        check(
            expiry_entry(&expiry_prefix(table), 5, &item),
            b"E\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x050123456789abcdefps",
        );
        check(garbage_row(b"Tprefix"), b"JTprefix");
        check(prefix_of_garbage(b"JTprefix"), b"Tprefix");
        check(node_row("id"), b"Mid\0\x01");
        check(lease_row("work"), b"Owork\0\x01");
        check(catalog_changes(), b"Q");
        check(token_expiry(5, b"Krow"), b"X\0\0\0\0\0\0\0\x05Krow");
        let undo = undo_key(&undo_prefix(table, 3), &item);
        check(undo.clone(), b"U\0\0\0\0\0\0\x01\x02\0\0\0\x030123456789abcdefps");
        let stamped = stamped_key(&undo, Stamp::first_of_ms(1));
        assert_eq!(
            parts_of_undo(&item_prefix(table), &stamped),
            Some((item.clone(), Stamp::first_of_ms(1)))
        );
        assert_eq!(parts_of_undo(&item_prefix(table), &undo[..20]), None);
        check(trim_progress(table), b"B\0\0\0\0\0\0\x01\x02\xFF\xFF\xFF\xFF");
        check(backup_row(&here, "t", "i"), b"P1\0\x01r\0\x01t\0\x01i\0\x01");
        let content = backup_content_prefix(&here, "t", "i");
        check(backup_stamp_prefix(&content), b"F1\0\x01r\0\x01t\0\x01i\0\x01s");
        check(backup_chunks_prefix(&content), b"F1\0\x01r\0\x01t\0\x01i\0\x01c");
        check(backup_chunk(&content, &item), b"F1\0\x01r\0\x01t\0\x01i\0\x01c0123456789abcdefps");
        check(partition_map_row(table, None), b"p\0\0\0\0\0\0\x01\x02\0\0\0\0");
        let map = partition_map_row(table, Some(index));
        assert_eq!(parts_of_partition_map_row(&map), Some((table, Some(index))));
        assert_eq!(
            parts_of_partition_map_row(&partition_map_row(table, None)),
            Some((table, None))
        );
        assert!(all_partition_maps().contains(&map));
        assert!(!all_partition_maps().contains(&partition_map_changes()));
    }

    /// The hash of AWS's recorded example, `user#1`, and the tie-break of (`u1`, `2026`).
    #[test]
    fn the_key_of_an_index_entry_is_pinned() {
        let text = |name: &str| KeyAttribute { name: name.into(), scalar_type: ScalarType::S };
        let tail = b"u1\0\x012026\0\x01";
        let tie = KeyHash::of(&[text("p"), text("s")], tail);
        let mut key = EntryKeyBuilder::new(b"G", tail);
        key.bytes().extend_from_slice(b"user#1\0\x01");
        key.end_partition(&[text("i")]);
        key.bytes().extend_from_slice(b"sort\0\x01");
        let expected: Vec<&[u8]> = vec![
            b"G",
            b"\x8b\x54\x29\x29\x23\x88\x62\xfe\x70\x69\xb8\x42\xce\x6b\x69\x46",
            b"user#1\0\x01sort\0\x01",
            b"\x73\x65\xae\xbb\x41\xd8\xaa\x1f\x37\xda\xb0\x34\x45\x72\xea\x5d",
            tail,
        ];
        assert_eq!(key.finish(tie, tail), expected.concat());
    }

    #[test]
    fn texts_keep_their_order_and_never_run_together() {
        let mut names = vec!["a", "a\0", "a\0b", "a.b", "aa", "b", "B", "-", ""];
        names.sort_unstable();
        let here = namespace("1", "r");
        let keys: Vec<Key> = names.iter().map(|name| table_row(&here, name)).collect();
        assert!(keys.is_sorted());
        for (name, key) in names.iter().zip(&keys) {
            let prefix = namespace_tables_prefix(&here);
            assert_eq!(table_name_of_row(&prefix, key).as_deref(), Some(*name));
        }
        let (short, long) = (namespace("1", "rr"), namespace("1r", "r"));
        assert_ne!(namespace_tables_prefix(&short), namespace_tables_prefix(&long));
        assert!(
            !KeyRange::prefix(namespace_tables_prefix(&here)).contains(&table_row(&short, "t"))
        );
    }

    #[test]
    fn the_row_of_a_backup_names_its_table() {
        let here = namespace("1", "r");
        let prefix = namespace_backups_prefix(&here);
        for (table, id) in [("t", "i"), ("t\0u", ""), ("", "\0")] {
            let row = backup_row(&here, table, id);
            let parts = parts_of_backup_row(&prefix, &row).unwrap();
            assert_eq!((parts.0.as_str(), parts.1.as_str()), (table, id));
            assert_eq!(parts_of_backup_row(&prefix, &row[..row.len() - 1]), None);
        }
        let other = backup_row(&namespace("1", "rr"), "t", "i");
        assert_eq!(parts_of_backup_row(&prefix, &other), None);
    }

    #[test]
    fn hash_ranges_cover_the_whole_prefix() {
        let prefix = item_prefix(TableId(1));
        let middle = 1 << 127;
        let (low, high) = (hash_range(&prefix, 0, Some(middle)), hash_range(&prefix, middle, None));
        for number in [0, 1, middle - 1, middle, middle + 1, u128::MAX] {
            let hash = KeyHash::from_bytes(number.to_be_bytes());
            let key = entry_key(&prefix, hash, b"partition and sort");
            assert_eq!(low.contains(&key), number < middle);
            assert_ne!(low.contains(&key), high.contains(&key));
            assert_eq!(hash_of_key(&prefix, &key), hash);
        }
    }

    #[test]
    fn an_item_collection_has_one_prefix() {
        let (table, index) = (TableId(1), IndexId(2));
        let prefixes = [
            item_prefix(table),
            local_index_prefix(table, index),
            global_index_prefix(table, index),
        ];
        let hash = |partition: u8| KeyHash::from_bytes([partition; KeyHash::LENGTH]);
        for prefix in prefixes {
            let collection = KeyRange::prefix(entry_key(&prefix, hash(1), b"p"));
            let shared = Collections::prefix_of(&collection.start).expect("entries have prefixes");
            // A Query is one range, and a store can see that it has one prefix.
            assert_eq!(Collections::prefix_of(&collection.end.unwrap()), Some(shared));
            for (partition, is_same) in [(1, true), (2, false)] {
                let key = entry_key(&prefix, hash(partition), b"p, sort and tail");
                assert_eq!(Collections::prefix_of(&key) == Some(shared), is_same);
            }
            // A Scan's segment, and the whole table, span more than one prefix.
            let segment = hash_range(&prefix, 1, Some(2));
            let ends = [&segment.start, segment.end.as_ref().unwrap()]
                .map(|key| Collections::prefix_of(key));
            assert_ne!(ends[0], ends[1]);
            assert_eq!(Collections::prefix_of(&prefix), None);
        }
        assert_eq!(Collections::prefix_of(&[]), None);
        assert_eq!(Collections::prefix_of(&expiry_prefix(table)), None);
    }

    #[test]
    fn items_that_expire_are_a_range() {
        let hash = KeyHash::from_bytes([7; KeyHash::LENGTH]);
        let (prefix, item) =
            (expiry_prefix(TableId(1)), entry_key(&item_prefix(TableId(1)), hash, b"ps"));
        let entry = expiry_entry(&prefix, 100, &item);
        assert!(!expiries_between(&prefix, 0, 100).contains(&entry));
        assert!(expiries_between(&prefix, 0, 101).contains(&entry));
        assert!(expiries_between(&prefix, 100, 101).contains(&entry));
        assert!(!expiries_between(&prefix, 101, 102).contains(&entry));
        assert_eq!(parts_of_expiry(&entry), Some((100, &item[9..])));
        assert_eq!(parts_of_expiry(&prefix), None);
    }

    #[test]
    fn expired_tokens_are_a_range() {
        let row = token_row(&namespace("1", "r"), "t");
        let expiry = token_expiry(100, &row);
        assert!(!token_expiries_before(100).contains(&expiry));
        assert!(token_expiries_before(101).contains(&expiry));
        assert_eq!(token_row_of_expiry(&expiry), Some(&row[..]));
    }
}
