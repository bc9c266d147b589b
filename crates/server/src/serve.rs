//! `zenobe serve`: assembles everything, and shuts it down in order.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::fs::Mode;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use zenobe_api::GatheredFacts;
use zenobe_backup::BackupError;
use zenobe_database::backup::ShipperHandle;
use zenobe_database::{
    Clock, Database, Durability, Lateness, Location, ManualClock, Namespace, NodeOptions,
    OpenError, Options, SystemClock,
};
use zenobe_monitoring::traffic::Traffic;

use crate::access::AccessControl;
use crate::admin::Surroundings;
use crate::config::Settings;
use crate::dispatch::Handler;
use crate::hot_keys::HotKeys;
use crate::http::BodyMemory;
use crate::http::allowed_hosts_and_origins::{CrossSitePolicy, KnownHosts};
use crate::http::connection::{self, ConnectionOptions};
use crate::http::service::{Root, Service};
use crate::http::workers::Workers;
use crate::instance::Instance;
use crate::observer::Observability;
use crate::otlp::{ExporterHandle, OtlpExporter};
use crate::shutdown::{Drain, StopSignals};
use crate::slow_requests::SlowRequests;
use crate::test_control::forks::Environment;
use crate::test_control::recording::RequestRecorder;
use crate::test_control::{ControlledHandler, Rules, TestControl};
use crate::triggers::{TriggerError, Triggers};
use crate::{logging, open_files, shutdown};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error("cannot listen on {listen}: {error}{}", listen_hint(error))]
    Listen { listen: SocketAddr, error: std::io::Error },
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot start the triggers: {0}")]
    Triggers(TriggerError),
    #[error("cannot record to {}: {error}", path.display())]
    Recording { path: PathBuf, error: std::io::Error },
    #[error("cannot ship the log: {0}")]
    Ship(BackupError),
    #[error("cannot close the data directory: {0}")]
    Close(zenobe_store::Error),
}

fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; stop the other server, or choose another port with --port"
        }
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        std::io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}

/// How long a server that stops tries to ship its last changes.
const SHIP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long blocking work may take to finish once everything is closed.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

pub fn run(settings: Settings) -> Result<(), ServeError> {
    logging::start(&settings);
    // Only the owner may read the files that the server and RocksDB create.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    for unknown in &settings.unknown_variables {
        tracing::warn!("{unknown}");
    }
    open_files::raise_limit(settings.connections_max);
    // This thread only accepts connections and waits for signals; requests and background work have
    // their own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let outcome = runtime.block_on(serve(settings));
    // Tasks that still run have nothing left to work on, and must not keep the process alive.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    outcome
}

async fn serve(settings: Settings) -> Result<(), ServeError> {
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|error| ServeError::Listen { listen: settings.listen, error })?;
    let address = listener
        .local_addr()
        .map_err(|error| ServeError::Listen { listen: settings.listen, error })?;
    let clock = settings.driven_clock.then(|| Arc::new(ManualClock::new(SystemClock.now_ms())));
    let rules = settings.test.as_ref().map(|test| Arc::new(test.rules()));
    let options = database_options(&settings, address, clock.as_ref(), rules.as_ref());
    let database = Database::open_with(options).await?;
    if let Location::Directory { path, .. } = &settings.location {
        warn_if_open_to_others(path);
    }
    let triggers = start_triggers(&settings, &database).await.map_err(ServeError::Triggers)?;
    let shipper = start_shipper(&settings, &database)?;
    let shipping = shipper.as_ref().map(ShipperHandle::status);
    let mut observability = observability(&settings);
    let exporter = start_exporter(&settings, address, &mut observability);
    let surroundings = {
        let (settings, observability) = (settings.clone(), observability.clone());
        move |control| Surroundings {
            shipping,
            observability,
            ..Surroundings::of(&settings, control)
        }
    };
    let workers = Workers::start().map_err(ServeError::Runtime)?;
    let frontend = Frontend { settings, address, listener, workers, observability };
    match rules {
        None => {
            let instance = Instance::new(database, triggers, clock, surroundings(Weak::new()));
            let namespace = Namespace::clone(instance.database.namespace());
            let handler = instance.handler().clone();
            frontend.serve_until_stopped(handler, &namespace).await?;
            instance.close().await.map_err(ServeError::Close)?;
        }
        Some(rules) => {
            let recorder = start_recording(&frontend.settings)?;
            let environment = Environment {
                settings: frontend.settings.clone(),
                address,
                workers: frontend.workers.clone(),
                runtime: Handle::current(),
            };
            let instance =
                |control| Instance::new(database, triggers, clock, surroundings(control));
            let control = TestControl::new(Arc::new(environment), instance, rules, recorder);
            let (handler, namespace) = (ControlledHandler(control.clone()), control.namespace());
            frontend.serve_until_stopped(handler, &namespace).await?;
            control.stop().await.map_err(ServeError::Close)?;
        }
    }
    if let Some(exporter) = exporter {
        exporter.finish().await;
    }
    if let Some(shipper) = shipper {
        finish_shipping(shipper).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// What serves requests, whatever handles them.
struct Frontend {
    settings: Settings,
    address: SocketAddr,
    listener: TcpListener,
    workers: Workers,
    observability: Observability,
}

impl Frontend {
    /// Serves until a signal, and until the requests that run then are answered.
    async fn serve_until_stopped<H: Handler>(
        self,
        handler: H,
        namespace: &Namespace,
    ) -> Result<(), ServeError> {
        let Frontend { settings, address, listener, workers, observability } = self;
        let options = connection_options(&settings);
        let (trigger, listening) = shutdown::channel();
        let mut signals = StopSignals::listen().map_err(ServeError::Signals)?;
        print_welcome(&settings, address);
        let (drain, drain_time) = (Drain::default(), settings.drain);
        let service = service(settings, handler, namespace, &observability, drain.clone());
        let service = Arc::new(service);
        let serving =
            tokio::spawn(connection::serve(listener, workers, service, options, listening));

        let signal = signals.next().await;
        tracing::info!(signal = signal.name(), "stopping");
        tokio::spawn(signals.exit_at_next());
        drain.begin();
        tokio::time::sleep(drain_time).await;
        trigger.stop();
        // The task neither panics nor is cancelled, and there would be nothing to clean up if either happened.
        let _ = serving.await;
        Ok(())
    }
}

/// Who watches requests. Hot keys and traffic are counted wherever throughput is metered; everybody else is
/// asked for by an option.
fn observability(settings: &Settings) -> Observability {
    let hot_keys = Arc::new(HotKeys::default());
    let mut observability =
        Observability { facts: GatheredFacts::IfMetered, ..Observability::default() };
    observability.add(hot_keys.clone());
    observability.hot_keys = Some(hot_keys);
    if settings.metrics_retention_days > 0 || settings.cost_retention_days > 0 {
        let traffic = Arc::new(Traffic::default());
        observability.add(traffic.clone());
        observability.traffic = Some(traffic);
    }
    observability.metrics_retention_days = settings.metrics_retention_days;
    observability.cost_retention_days = settings.cost_retention_days;
    if let Some(threshold) = settings.slow_request {
        observability.add(Arc::new(SlowRequests::new(threshold)));
        observability.facts = GatheredFacts::All;
    }
    observability
}

fn start_exporter(
    settings: &Settings,
    address: SocketAddr,
    observability: &mut Observability,
) -> Option<ExporterHandle> {
    let url = settings.otlp_endpoint.clone()?;
    let node = settings.node_name.clone().unwrap_or_else(|| default_node_name(address));
    let (exporter, handle) = OtlpExporter::start(url, node, observability.clone());
    observability.add(exporter);
    observability.facts = GatheredFacts::All;
    Some(handle)
}

fn start_recording(settings: &Settings) -> Result<Option<RequestRecorder>, ServeError> {
    let path = settings.test.as_ref().and_then(|test| test.record.as_ref());
    let recorder = path.map(|path| {
        let fault = |error| ServeError::Recording { path: path.clone(), error };
        RequestRecorder::create(path).map_err(fault)
    });
    recorder.transpose()
}

/// An existing directory keeps the mode that its owner gave it.
fn warn_if_open_to_others(path: &Path) {
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let (path, mode) = (path.display(), format!("{:04o}", mode & 0o7777));
        tracing::warn!(%path, mode, "other users of this machine can access the data directory; run chmod 700 on it");
    }
}

pub(crate) fn database_options(
    settings: &Settings,
    address: SocketAddr,
    driven_clock: Option<&Arc<ManualClock>>,
    rules: Option<&Arc<Rules>>,
) -> Options {
    let clock: Arc<dyn Clock> = match driven_clock {
        Some(clock) => clock.clone(),
        None => Arc::new(SystemClock),
    };
    Options {
        location: settings.location.clone(),
        cache_size_bytes: settings.cache_size_bytes,
        accept_log_damage: settings.accept_damaged_log,
        namespace: settings.namespace(),
        limits: settings.limits,
        streams: settings.streams,
        wording: settings.wording,
        throughput: settings.throughput,
        throughput_min: settings.throughput_min(),
        index_status_delay: settings.local.map_or(Duration::ZERO, |local| local.index_status_delay),
        refuse_scans: settings.refuse_scans,
        restorable_lag: settings.restorable_lag,
        object_store: settings.object_store.clone(),
        clock,
        clock_jump_ms_max: settings.clock_jump_ms_max,
        item_cache: settings.item_cache,
        query_cache: settings.query_cache,
        lateness: rules.map(|rules| Arc::clone(rules) as Arc<dyn Lateness>),
        node: NodeOptions {
            name: settings.node_name.clone().unwrap_or_else(|| default_node_name(address)),
            lease_period: settings.lease_period,
            clock_skew_max: settings.clock_skew_max,
            standby_lag_max: settings.standby_lag_max,
        },
    }
}

/// Two nodes on one machine have different ports.
fn default_node_name(address: SocketAddr) -> String {
    let machine = rustix::system::uname();
    format!("{}:{}", machine.nodename().to_string_lossy(), address.port())
}

pub(crate) async fn start_triggers(
    settings: &Settings,
    database: &Database,
) -> Result<Arc<Triggers>, TriggerError> {
    let (engine, api) = (database.engine().clone(), database.api().clone());
    let configured = settings.triggers.clone();
    let directory = settings.dead_letter_directory.as_ref().map(std::path::absolute).transpose();
    let directory = directory.map_err(TriggerError::DeadLetterDirectory)?;
    Triggers::start(engine, api, database.namespace(), configured, directory).await
}

fn start_shipper(
    settings: &Settings,
    database: &Database,
) -> Result<Option<ShipperHandle>, ServeError> {
    let Some((to, options)) = &settings.ship else { return Ok(None) };
    database.ship_to(to, *options).map(Some).map_err(ServeError::Ship)
}

/// Ships what the last requests have changed.
async fn finish_shipping(shipper: ShipperHandle) {
    let state = shipper.finish(SHIP_TIMEOUT).await;
    if let Some(problem) = state.problem {
        tracing::warn!(
            problem,
            "the last changes are in the data directory, but could not be shipped"
        );
    }
}

pub(crate) fn service<H: Handler>(
    settings: Settings,
    handler: H,
    namespace: &Namespace,
    observability: &Observability,
    drain: Drain,
) -> Service<H> {
    let is_on_loopback = settings.listen.ip().is_loopback();
    let hosts = known_hosts(is_on_loopback, settings.credentials.is_some());
    let cross_site = CrossSitePolicy::new(hosts, settings.allowed_hosts, settings.cors_origins);
    let Settings { credentials, namespaces_from_credentials, .. } = settings;
    let access = AccessControl::new(credentials, namespaces_from_credentials, namespace.clone());
    Service {
        handler,
        observer: observability.observer(),
        access: access.on_loopback(is_on_loopback).accepting_unsigned(settings.local.is_some()),
        cross_site,
        root: if settings.local.is_some() { Root::DynamoDbLocal } else { Root::Health },
        metrics: observability.metrics.clone(),
        shedding: settings.shedding,
        body_memory: BodyMemory::default(),
        stall_timeout: settings.stall_timeout,
        drain,
    }
}

/// Verified signatures cover the host and so protect against foreign pages. Otherwise only names
/// that foreign pages can't have are accepted.
fn known_hosts(is_on_loopback: bool, verifies_signatures: bool) -> KnownHosts {
    match (is_on_loopback, verifies_signatures) {
        (true, _) => KnownHosts::Loopback,
        (false, true) => KnownHosts::AnyUnlessConfigured,
        (false, false) => KnownHosts::Private,
    }
}

pub(crate) fn connection_options(settings: &Settings) -> ConnectionOptions {
    ConnectionOptions {
        connections_max: settings.connections_max,
        connections_per_peer_max: settings.connections_per_peer_max,
        idle_timeout: settings.idle_timeout,
        stall_timeout: settings.stall_timeout,
        shutdown_timeout: settings.shutdown_timeout,
    }
}

/// What a user who has just started the server wants to know.
fn print_welcome(settings: &Settings, address: SocketAddr) {
    let version = env!("CARGO_PKG_VERSION");
    let (data, durability) = match &settings.location {
        Location::Memory => ("in memory".to_owned(), "none: nothing outlives the process"),
        Location::Directory { path, durability } => {
            let durability = match durability {
                Durability::Sync => "sync: an acknowledged write survives power loss",
                Durability::Os => "os: an acknowledged write survives a crash of the process",
            };
            (path.display().to_string(), durability)
        }
        Location::Postgres { url } => (url.to_string(), "as PostgreSQL's synchronous_commit says"),
    };
    let credentials = match &settings.credentials {
        Some(credentials) => format!("signatures are verified, {} access keys", credentials.len()),
        None if address.ip().is_loopback() => "any are accepted (loopback)".to_owned(),
        None => "any are accepted, from anywhere".to_owned(),
    };
    // Nobody signs for the region that DynamoDB Local puts into ARNs.
    let region = if settings.local.is_some() { "us-east-1" } else { &settings.region };
    // Standard output may be closed, which is not a reason to fail.
    let _ = writeln!(
        std::io::stdout(),
        "zenobe {version} is listening on http://{address}\n  \
         data        {data}\n  \
         durability  {durability}\n  \
         credentials {credentials}\n  \
         try         aws dynamodb list-tables --endpoint-url http://{address} --region {region}"
    );
}
