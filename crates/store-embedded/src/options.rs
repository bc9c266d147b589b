//! What a caller can choose, and how RocksDB is set up for it.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, LogLevel,
    WriteBufferManager,
};

use crate::prefix_extractor::PrefixExtractor;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Power loss: the log is synced to the disk before a write is acknowledged.
    #[default]
    Sync,
    /// A crash of the process, but not of the operating system: the log is handed to the system.
    Os,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// The memory for cached blocks (memtables count too) and cached values.
    pub cache_bytes: usize,
    /// How much is written before a memtable goes to disk. Also the approximate size of a log file.
    pub write_buffer_bytes: usize,
    /// The writes that may be queued and not yet answered; more wait before they are decided.
    pub unanswered_writes_max: usize,
    /// Their bytes, exceeded at most by the writes being decided.
    pub unanswered_bytes_max: usize,
    /// Opens a database whose log is damaged, without the acknowledged writes after the damage. This applies to the
    /// opening only: a store that recovers from a later failure refuses a log that is damaged then.
    pub accept_log_damage: bool,
    /// Which keys are read together. A store may be opened with another rule than before.
    pub prefixes: Option<PrefixExtractor>,
    /// Whether somebody serves it. A copy that is only read, or only filled, is not compacted and reuses no log files.
    pub is_served: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            durability: Durability::default(),
            cache_bytes: 384 << 20,
            write_buffer_bytes: 64 << 20,
            unanswered_writes_max: 16 * 1024,
            unanswered_bytes_max: 64 << 20,
            accept_log_damage: false,
            prefixes: None,
            is_served: true,
        }
    }
}

/// How the cache's memory is divided. The rest is for the allocator: what it rounds up, and the holes of evicted blocks
/// that it can't return while a memtable grows.
const VALUE_CACHE_SIXTEENTHS: usize = 5;
const BLOCK_CACHE_SIXTEENTHS: usize = 9;

impl Options {
    pub(crate) fn value_cache_bytes(&self) -> usize {
        self.cache_bytes / 16 * VALUE_CACHE_SIXTEENTHS
    }

    fn block_cache_bytes(&self) -> usize {
        self.cache_bytes / 16 * BLOCK_CACHE_SIXTEENTHS
    }
}

/// Memtables that may exist at once: the one being written, and full ones on their way to disk.
const WRITE_BUFFERS_MAX: usize = 3;

/// The cache sizes its table by its content, not by an estimate.
const ENTRY_SIZES_VARY: usize = 0;

/// The part of a memtable's memory that its filter takes, from the start: 512 KiB, or about 14 bits for a key or
/// prefix where items have 400 bytes.
const MEMTABLE_FILTER_PART: f64 = 1.0 / 128.0;

/// Arenas grow in blocks of this size, so a small one keeps an idle store small.
const ARENA_BLOCK_BYTES: usize = 128 << 10;

pub(crate) fn rocksdb_options(options: &Options) -> rocksdb::Options {
    let mut rocks = rocksdb::Options::default();
    set_durability(&mut rocks, options.durability);
    set_memory(&mut rocks, options);
    set_layout(&mut rocks, options);
    set_background(&mut rocks);
    rocks.set_paranoid_checks(true);
    if !options.is_served {
        rocks.set_disable_auto_compactions(true);
        // RocksDB accepts writes that bypass the log only if it does not recycle log files.
        rocks.set_recycle_log_file_num(0);
    }
    rocks
}

/// The options of the column family with the caller's keys. It shares the cache of `rocks`.
pub(crate) fn entries_options(rocks: &rocksdb::Options, options: &Options) -> rocksdb::Options {
    let mut rocks = rocks.clone();
    if let Some(prefixes) = &options.prefixes {
        rocks.set_prefix_extractor(prefixes.slice_transform());
        rocks.set_memtable_prefix_bloom_ratio(MEMTABLE_FILTER_PART);
        rocks.set_memtable_whole_key_filtering(true);
    }
    rocks
}

fn set_durability(rocks: &mut rocksdb::Options, durability: Durability) {
    rocks.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // The log is flushed with each sync. Under `Os` each write reaches the system by itself.
    rocks.set_manual_wal_flush(durability == Durability::Sync);
    // Overwriting an old log spares the file system the allocation on every sync.
    rocks.set_recycle_log_file_num(4);
    // Entries and sequence numbers reach the disk together, so neither can be ahead of the other.
    rocks.set_atomic_flush(true);
    rocks.set_track_and_verify_wals_in_manifest(true);
}

fn set_memory(rocks: &mut rocksdb::Options, options: &Options) {
    // Lookups take no lock, and a read makes half a dozen of them.
    let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes(), ENTRY_SIZES_VARY);
    let write_buffers_bytes = options.write_buffer_bytes * WRITE_BUFFERS_MAX;
    rocks.set_write_buffer_manager(&WriteBufferManager::new_write_buffer_manager_with_cache(
        write_buffers_bytes,
        false,
        cache.clone(),
    ));
    rocks.set_write_buffer_size(options.write_buffer_bytes);
    rocks.set_max_write_buffer_number(WRITE_BUFFERS_MAX as i32);
    rocks.set_arena_block_size(ARENA_BLOCK_BYTES);

    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&cache);
    table.set_block_size(8 << 10);
    table.set_bloom_filter(10.0, false);
    table.set_optimize_filters_for_memory(true);
    table.set_format_version(6);
    // Index and filter blocks are charged to the cache like everything else, or memory would grow with
    // the data. They are divided into small ones, of which a read needs one each: when they don't all fit
    // any more, a read that misses reads some kilobytes, not the index of a whole file.
    table.set_cache_index_and_filter_blocks(true);
    table.set_cache_index_and_filter_blocks_with_high_priority(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_pin_top_level_index_and_filter(true);
    // Keys share long prefixes. A hash index inside the blocks finds single keys without comparing them.
    table.set_data_block_index_type(rocksdb::DataBlockIndexType::BinaryAndHash);
    rocks.set_block_based_table_factory(&table);
}

fn set_layout(rocks: &mut rocksdb::Options, options: &Options) {
    // In the lowest level too, though zstd would take a fifth less space there: a read that misses the cache
    // decompresses a block, and zstd would take more than half of its time.
    rocks.set_compression_type(DBCompressionType::Lz4);
    rocks.set_level_compaction_dynamic_level_bytes(true);
    rocks.set_target_file_size_base(options.write_buffer_bytes as u64);
    rocks.set_max_bytes_for_level_base(4 * options.write_buffer_bytes as u64);
    rocks.set_bytes_per_sync(1 << 20);
    // Deleting many entries of one range leaves a run of tombstones that scans have to step over; files with
    // such runs are compacted first.
    rocks.add_compact_on_deletion_collector_factory(10_000, 5_000, 0.5);
}

fn set_background(rocks: &mut rocksdb::Options) {
    // Compactions run at a low priority. Flushes do not, because writes may have to wait for them.
    if let Ok(mut threads) = rocksdb::Env::new() {
        threads.lower_thread_pool_cpu_priority();
        rocks.set_env(&threads);
    }
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    rocks.set_max_background_jobs(processors.clamp(2, 8) as i32);
    rocks.set_max_open_files(open_files_max());
    rocks.set_max_file_opening_threads(processors.clamp(1, 8) as i32);
    // No periodic statistics: they would cost a thread and wake an idle process.
    rocks.set_stats_dump_period_sec(0);
    rocks.set_stats_persist_period_sec(0);
    rocks.set_max_manifest_file_size(64 << 20);
    rocks.set_info_logger(rocksdb::InfoLogger::new_callback_logger(LogLevel::Warn, log));
}

/// Half of what the process may open, so that enough files are left for connections.
fn open_files_max() -> i32 {
    #[cfg(unix)]
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let allowed = None;
    (allowed.unwrap_or(u64::MAX) / 2).clamp(64, 8192) as i32
}

/// RocksDB's own messages, among them what recovery had to drop from a damaged log.
fn log(level: LogLevel, message: &str) {
    let message = message.trim_end();
    match level {
        LogLevel::Error | LogLevel::Fatal => {
            tracing::error!(target: "zenobe::rocksdb", "{message}");
        }
        LogLevel::Warn => {
            tracing::warn!(target: "zenobe::rocksdb", "{message}");
        }
        LogLevel::Debug | LogLevel::Info | LogLevel::Header => {
            tracing::debug!(target: "zenobe::rocksdb", "{message}");
        }
    }
}
