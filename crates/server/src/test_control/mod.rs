//! Test control: what a test may do to the server besides calling it. It can copy the database, return to an
//! earlier state, empty it, and make requests fail, wait or read old data.
//!
//! All of it exists only with `--test-control`. It sits at the seam between HTTP and the database
//! ([`crate::dispatch::Handler`]): with the option the server has another handler, without it nothing
//! here runs.
//!
//! Copies are snapshots of the memory store, which shares what nobody changes, or linked files of a data
//! directory. Restoring and resetting never change a database under its engine. They open another one on a snapshot and let it take the
//! former one's place, between two requests.

mod copies;
mod distribution;
mod draw;
mod error;
mod fault_plan;
pub mod forks;
pub mod recording;
mod request_subjects;
mod requests;
mod rule;
mod rules;
mod services;
mod snapshots;
mod table_states;
mod tagged;
mod unprocessed;

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::RwLockReadGuard;
use zenobe_api::{Operation, Response};
use zenobe_engine::schema::Namespace;
use zenobe_store::Statistics;

use self::forks::{Environment, Forks};
use self::recording::RequestRecorder;
use self::snapshots::Snapshots;
use self::table_states::TableStates;
use crate::admin::Admin;
use crate::dispatch::{Circumstances, Dropped, Handler};
use crate::instance::Instance;
use crate::services::Services;

pub use distribution::parse_ms;
pub use error::ControlError;
pub use rule::{Rule, RuleError, kinds};
pub use rules::{Rules, TooManyRules};

pub struct TestControl {
    environment: Arc<Environment>,
    /// Held by requests while the database works on them, and exclusively while it is replaced.
    replacing: tokio::sync::RwLock<()>,
    instance: RwLock<Arc<Instance>>,
    rules: Arc<Rules>,
    states: TableStates,
    recorder: Option<RequestRecorder>,
    snapshots: Arc<Snapshots>,
    forks: Arc<Forks>,
    last_used: Mutex<Instant>,
    this: Weak<TestControl>,
}

/// The database while it may be used.
pub struct HeldInstance<'c> {
    instance: Arc<Instance>,
    _lock: RwLockReadGuard<'c, ()>,
}

impl Deref for HeldInstance<'_> {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

/// The server's handler while tests control it.
pub struct ControlledHandler(pub Arc<TestControl>);

impl Handler for ControlledHandler {
    async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        circumstances: Circumstances,
        body: Bytes,
    ) -> Result<Response, Dropped> {
        self.0.handle(operation, namespace, circumstances, body).await
    }

    fn statistics(&self) -> Statistics {
        self.0.instance().database.store().statistics()
    }

    fn admin(&self) -> Option<Arc<Admin>> {
        Some(self.0.instance().admin.clone())
    }

    fn services(&self) -> Option<Arc<Services>> {
        let services = self.0.instance().handler().services()?;
        Some(Arc::new(services::controlled(&self.0, &services)))
    }
}

impl TestControl {
    /// Controls a database that was opened with these rules.
    pub fn new(
        environment: Arc<Environment>,
        instance: impl FnOnce(Weak<TestControl>) -> Instance,
        rules: Arc<Rules>,
        recorder: Option<RequestRecorder>,
    ) -> Arc<TestControl> {
        let (snapshots, forks) = Default::default();
        TestControl::assemble(environment, instance, rules, recorder, snapshots, forks)
    }

    fn assemble(
        environment: Arc<Environment>,
        instance: impl FnOnce(Weak<TestControl>) -> Instance,
        rules: Arc<Rules>,
        recorder: Option<RequestRecorder>,
        snapshots: Arc<Snapshots>,
        forks: Arc<Forks>,
    ) -> Arc<TestControl> {
        let new = |this: &Weak<TestControl>| TestControl {
            environment,
            replacing: tokio::sync::RwLock::default(),
            instance: RwLock::new(Arc::new(instance(this.clone()))),
            rules,
            states: TableStates::default(),
            recorder,
            snapshots,
            forks,
            last_used: Mutex::new(Instant::now()),
            this: this.clone(),
        };
        let control = Arc::new_cyclic(new);
        control.rules.follow(control.instance().database.engine());
        control
    }

    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    pub fn namespace(&self) -> Namespace {
        Namespace::clone(self.instance().database.namespace())
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    pub fn forks(&self) -> &Forks {
        &self.forks
    }

    fn instance(&self) -> Arc<Instance> {
        self.instance.read().clone()
    }

    /// The database, which is not replaced until the result is dropped. Whoever has one must not ask for another: a
    /// restore that waits for the first would keep the second waiting.
    pub async fn hold(&self) -> HeldInstance<'_> {
        let lock = self.replacing.read().await;
        HeldInstance { instance: self.instance(), _lock: lock }
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Ends the forks and closes the database.
    pub async fn stop(&self) -> Result<(), zenobe_store::Error> {
        self.forks.end_all().await;
        if let Some(recorder) = &self.recorder {
            recorder.finish();
        }
        self.close().await
    }

    async fn close(&self) -> Result<(), zenobe_store::Error> {
        self.instance().close().await
    }
}
