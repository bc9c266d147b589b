//! Forks: copies of the database, each served on a port of its own, so that any SDK can be pointed at one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;

use zenobe_database::DirectoryCopy;

use super::{ControlError, ControlledHandler, TestControl};
use crate::config::Settings;
use crate::http::connection;
use crate::http::workers::Workers;
use crate::observer::Observability;
use crate::serve;
use crate::shutdown::{self, Drain, StopHandle};

/// Each has a thread for its background work, and a port.
const FORKS_MAX: usize = 64;
/// A fork that nobody has called for so long gives its place to a new one.
const IDLE_MAX: Duration = Duration::from_secs(10 * 60);

/// What servers of forks need of the process.
pub struct Environment {
    pub settings: Settings,
    /// The address of the server itself. Forks are on other ports of the same.
    pub address: SocketAddr,
    /// The threads that serve connections, shared by all.
    pub workers: Workers,
    /// Accepts connections.
    pub runtime: Handle,
}

#[derive(Default)]
pub struct Forks {
    /// Held while a fork is made, so that there is room for it at the end as well.
    making: tokio::sync::Mutex<()>,
    running: Mutex<Running>,
    copies: AtomicU64,
}

#[derive(Default)]
struct Running {
    last_number: u64,
    forks: BTreeMap<u64, Fork>,
}

struct Fork {
    address: SocketAddr,
    control: Arc<TestControl>,
    stop: StopHandle,
    serving: JoinHandle<()>,
    /// Its files, if it has some. They are removed with it.
    files: Option<DirectoryCopy>,
}

impl Fork {
    fn describe(&self, number: u64) -> Value {
        json!({"id": number, "endpoint": format!("http://{}", self.address)})
    }

    /// Waits until its requests are answered.
    async fn end(self) {
        self.stop.stop();
        // The task never panics and is never cancelled. Even if it were, nothing would be left to do.
        let _ = self.serving.await;
        if let Err(error) = self.control.close().await {
            tracing::warn!(%error, "a fork could not be closed");
        }
        drop(self.files);
    }
}

impl Forks {
    /// Makes room for one more, if there is none and a fork has been idle for long. The room is kept
    /// for whoever holds the result.
    pub async fn make_room(
        &self,
        environment: &Environment,
    ) -> Result<MutexGuard<'_, ()>, ControlError> {
        let making = self.making.lock().await;
        self.evict_if_full(environment)?;
        Ok(making)
    }

    fn evict_if_full(&self, environment: &Environment) -> Result<(), ControlError> {
        let mut running = self.running.lock();
        if running.forks.len() < FORKS_MAX {
            return Ok(());
        }
        let now = Instant::now();
        let idle = running.forks.iter().map(|(number, fork)| (fork.control.last_used(), *number));
        let (last_used, number) =
            idle.min().ok_or(ControlError::TooManyForks { max: FORKS_MAX })?;
        if now.duration_since(last_used) < IDLE_MAX {
            return Err(ControlError::TooManyForks { max: FORKS_MAX });
        }
        if let Some(fork) = running.forks.remove(&number) {
            environment.runtime.spawn(fork.end());
        }
        Ok(())
    }

    /// The number of the next copy in a directory. A fork that has ended may still be removing its own.
    pub fn next_copy(&self) -> u64 {
        self.copies.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Serves a database that was opened for this.
    pub fn serve(
        &self,
        control: Arc<TestControl>,
        listener: std::net::TcpListener,
        address: SocketAddr,
        files: Option<DirectoryCopy>,
    ) -> Value {
        let environment = control.environment().clone();
        let settings = environment.settings.clone();
        let options = serve::connection_options(&settings);
        let (stop, listening) = shutdown::channel();
        let handler = ControlledHandler(control.clone());
        let namespace = control.namespace();
        let drain = Drain::default();
        let service = Arc::new(serve::service(
            settings,
            handler,
            &namespace,
            &Observability::default(),
            drain,
        ));
        let workers = environment.workers.clone();
        let serving = environment.runtime.spawn(async move {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    connection::serve(listener, workers, service, options, listening).await;
                }
                Err(error) => tracing::warn!(%error, "a fork cannot listen"),
            }
        });
        let mut running = self.running.lock();
        running.last_number += 1;
        let number = running.last_number;
        let fork = Fork { address, control, stop, serving, files };
        let description = fork.describe(number);
        running.forks.insert(number, fork);
        description
    }

    pub fn describe(&self) -> Value {
        let running = self.running.lock();
        let forks = running.forks.iter().map(|(number, fork)| fork.describe(*number));
        json!({"forks": forks.collect::<Vec<_>>(), "max": FORKS_MAX})
    }

    /// Ends a fork. The request to do so may come through it, so nobody waits for its last answer.
    pub fn end(&self, number: u64, environment: &Environment) -> Result<(), ControlError> {
        let fork = self.running.lock().forks.remove(&number);
        let fork = fork.ok_or_else(|| ControlError::NoFork { id: number.to_string() })?;
        fork.stop.stop();
        environment.runtime.spawn(fork.end());
        Ok(())
    }

    pub async fn end_all(&self) {
        let forks = std::mem::take(&mut self.running.lock().forks);
        futures_util::future::join_all(forks.into_values().map(Fork::end)).await;
    }
}
