//! A whole database inside a Rust program: the store, the engine and DynamoDB's API, without HTTP.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use zenobe_database::Database;
//!
//! let database = Database::in_memory().await?;
//! let table = r#"{
//!     "TableName": "Music",
//!     "AttributeDefinitions": [{"AttributeName": "Artist", "AttributeType": "S"}],
//!     "KeySchema": [{"AttributeName": "Artist", "KeyType": "HASH"}],
//!     "BillingMode": "PAY_PER_REQUEST"
//! }"#;
//! database.call("CreateTable", table).await?;
//! let put = r#"{"TableName": "Music", "Item": {"Artist": {"S": "Nina Simone"}}}"#;
//! database.call("PutItem", put).await?;
//! let scan = database.call("Scan", r#"{"TableName": "Music"}"#).await?;
//! assert!(scan.contains("Nina Simone"));
//! database.close().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! With the feature `aws-sdk`, `Database::http_client` lets the clients of the AWS SDK for Rust call it in-process.
//!
//! **Invariant:** only this crate names a storage backend. It knows no HTTP: a request is an operation and a JSON body.

#[cfg(feature = "aws-sdk")]
mod aws_sdk;
pub mod backup;
mod call;
mod directory_copy;
mod exclusive;
mod location;
mod memory_snapshot;
mod moving;
mod options;
mod runtime_thread;
#[cfg(test)]
mod sample_table;
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use zenobe_api::{Api, ApiOptions, BulkPutter, Exporter, Importer, Response};
use zenobe_engine::Engine;
use zenobe_engine::keyspace::Collections;
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store_embedded::{EmbeddedStore, PrefixExtractor};

pub use call::CallError;
pub use directory_copy::DirectoryCopy;
pub use location::{Unservable, name_of};
pub use memory_snapshot::{MemorySnapshot, NotInMemory};
pub use moving::{MoveError, MoveProgress, MoveStage, MoveSummary, abandon_move, move_data};
#[cfg(feature = "postgres")]
pub use options::PostgresUrl;
pub use options::{Location, NodeOptions, Options};
pub use runtime_thread::RuntimeThread;
// For the commands.
#[doc(hidden)]
pub use scratch::ScratchDirectory;
pub use zenobe_api::{Operation, Wording};
pub use zenobe_engine::ThroughputMode;
pub use zenobe_engine::clock::{Clock, ManualClock, SystemClock};
pub use zenobe_engine::options::{Limits, StreamOptions};
pub use zenobe_engine::schema::Namespace;
pub use zenobe_engine::{CacheOptions, Lateness};
pub use zenobe_store_embedded::Durability;
pub use zenobe_transfer::objects::{ObjectStoreEndpoint, ObjectStoreOptions};

/// An open database. Clones share it. Dropping the last one closes it, and so does
/// [`Database::close`].
#[derive(Clone)]
pub struct Database {
    open: Arc<Open>,
}

struct Open {
    api: Arc<Api>,
    engine: Arc<Engine>,
    store: Arc<dyn Store>,
    /// The store, if it is one that can be moved while it is in use.
    embedded: Option<Arc<EmbeddedStore>>,
    /// The store, if it is one that can be forked.
    memory: Option<Arc<MemoryStore>>,
    options: Options,
    is_moving: Arc<AtomicBool>,
    is_backing_up: Arc<AtomicBool>,
    namespace: Arc<Namespace>,
    /// Runs expiry, backfills and everything else that no request waits for. It has its own thread,
    /// because the caller's runtime may end before the database, and must not be slowed down.
    upkeep: RuntimeThread,
    background: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the data directory {}: {}", path.display(), problem(error))]
    Store { path: PathBuf, error: zenobe_store::Error },
    #[cfg(feature = "postgres")]
    #[error("cannot open the store: {}", problem(.0))]
    Postgres(zenobe_store::Error),
    #[error("cannot read {place}: {problem}")]
    Read { place: String, problem: String },
    #[error("cannot serve {place}: {why}")]
    Unservable { place: String, why: Unservable },
    #[error("cannot load the catalogue: {0}")]
    Engine(#[from] zenobe_engine::error::Error),
    #[error("cannot start the background thread: {0}")]
    Upkeep(std::io::Error),
}

impl Database {
    /// Opens the database in a directory, which is created if it is missing. Only one process at a
    /// time can open it.
    ///
    /// # Errors
    /// If another process has it open, if the directory holds something else, or if its content is
    /// damaged.
    pub async fn open(directory: impl AsRef<Path>) -> Result<Database, OpenError> {
        Database::open_with(Options::directory(directory)).await
    }

    /// Creates an empty database in memory. It ends with the process.
    ///
    /// # Errors
    /// If the system can't start the background thread.
    pub async fn in_memory() -> Result<Database, OpenError> {
        Database::open_with(Options::default()).await
    }

    /// Like [`Database::open`] or [`Database::in_memory`], with all options.
    ///
    /// # Errors
    /// The same as theirs.
    pub async fn open_with(options: Options) -> Result<Database, OpenError> {
        let opened = open_store(&options).await?;
        location::check(&options.location, &*opened.store).await?;
        Database::open_on(opened, options).await
    }

    async fn open_on(opened: OpenedStore, options: Options) -> Result<Database, OpenError> {
        let OpenedStore { store, embedded, memory } = opened;
        let engine = Engine::open(store.clone(), options.engine_options()).await?;
        let upkeep = RuntimeThread::start("zenobe-upkeep").map_err(OpenError::Upkeep)?;
        // Without an object store these jobs wait, here or for a node that has one.
        if options.object_store.is_some() {
            engine.add_job_handler(Arc::new(Importer::new(options.object_store.clone())));
            engine.add_job_handler(Arc::new(BulkPutter::new(options.object_store.clone())));
            engine.add_job_handler(Arc::new(Exporter::new(options.object_store.clone())));
        }
        let background = upkeep.runtime.spawn(engine.clone().run_background());
        let api_options = ApiOptions {
            wording: options.wording,
            refuse_scans: options.refuse_scans,
            object_store: options.object_store.clone(),
            ..ApiOptions::default()
        };
        let api = Arc::new(Api::new(engine.clone(), api_options));
        let background = Mutex::new(Some(background));
        let namespace = Arc::new(options.namespace.clone());
        let (is_moving, is_backing_up) = (Arc::default(), Arc::default());
        let open = Open {
            api,
            engine,
            store,
            embedded,
            memory,
            options,
            is_moving,
            is_backing_up,
            namespace,
            upkeep,
            background,
        };
        Ok(Database { open: Arc::new(open) })
    }

    /// Runs one operation in any namespace. The server calls this for each request.
    pub async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        body: &[u8],
    ) -> Response {
        self.open.api.handle(operation, namespace, body).await
    }

    /// Stops background work and waits until everything is on disk. Later calls fail.
    ///
    /// # Errors
    /// If the store reports one.
    pub async fn close(&self) -> Result<(), zenobe_store::Error> {
        let background = self.open.background.lock().take();
        if let Some(background) = background {
            background.abort();
            // The task ends at its next await, and may use the store until then.
            let _ = background.await;
        }
        // If the store can't be reached, the other nodes notice by themselves after a while.
        let _ = self.open.engine.leave().await;
        self.open.store.close().await
    }

    /// The account and region whose tables [`Database::call`] sees.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.open.namespace
    }

    pub fn api(&self) -> &Arc<Api> {
        &self.open.api
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.open.engine
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.open.store
    }
}

impl Drop for Open {
    /// A caller may reopen the directory right after dropping the database, so nothing may hold the
    /// store any longer.
    fn drop(&mut self) {
        self.upkeep.join();
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Namespace { account, region } = &*self.open.namespace;
        out.debug_struct("Database").field("account", account).field("region", region).finish()
    }
}

/// The store's message, without repeating that the directory cannot be opened.
fn problem(error: &zenobe_store::Error) -> String {
    match error {
        zenobe_store::Error::Open { detail } => detail.clone(),
        other => other.to_string(),
    }
}

struct OpenedStore {
    store: Arc<dyn Store>,
    embedded: Option<Arc<EmbeddedStore>>,
    memory: Option<Arc<MemoryStore>>,
}

impl OpenedStore {
    fn in_memory(store: MemoryStore) -> OpenedStore {
        let memory = Arc::new(store);
        OpenedStore { store: memory.clone(), embedded: None, memory: Some(memory) }
    }
}

async fn open_store(options: &Options) -> Result<OpenedStore, OpenError> {
    match &options.location {
        Location::Memory => Ok(OpenedStore::in_memory(MemoryStore::new())),
        Location::Directory { path, durability } => {
            let store = Arc::new(open_directory(options, path, *durability)?);
            Ok(OpenedStore { store: store.clone(), embedded: Some(store), memory: None })
        }
        #[cfg(feature = "postgres")]
        Location::Postgres { url } => {
            let store_options = zenobe_store_postgres::Options {
                cache_bytes: options.cache_size_bytes,
                standby_lag_max: options.node.standby_lag_max,
                ..Default::default()
            };
            let store =
                zenobe_store_postgres::PostgresStore::open(url.with_password(), store_options)
                    .await;
            let store = Arc::new(store.map_err(OpenError::Postgres)?);
            Ok(OpenedStore { store, embedded: None, memory: None })
        }
    }
}

fn open_directory(
    options: &Options,
    path: &Path,
    durability: Durability,
) -> Result<EmbeddedStore, OpenError> {
    let store_options = zenobe_store_embedded::Options {
        durability,
        cache_bytes: options.cache_size_bytes,
        accept_log_damage: options.accept_log_damage,
        prefixes: Some(PrefixExtractor::of::<Collections>()),
        ..Default::default()
    };
    EmbeddedStore::open(path, store_options)
        .map_err(|error| OpenError::Store { path: path.to_owned(), error })
}
