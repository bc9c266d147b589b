//! Snapshots, restores, resets and forks.

use std::sync::Arc;

use serde_json::Value;
use zenobe_database::{
    Clock, Database, DirectoryCopy, Location, ManualClock, NotInMemory, OpenError, Options,
    SystemClock,
};
use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{StreamSplit, TableReset};

use super::forks::Environment;
use super::snapshots::TimedSnapshot;
use super::{ControlError, TestControl};
use crate::admin::Surroundings;
use crate::instance::Instance;
use crate::serve;
use crate::triggers::Triggers;

impl TestControl {
    fn timed_snapshot(&self) -> Result<TimedSnapshot, ControlError> {
        let instance = self.instance();
        let clock_ms = instance.clock.as_ref().map(|clock| clock.now_ms());
        Ok(TimedSnapshot { snapshot: instance.database.snapshot()?, clock_ms })
    }

    pub fn take_snapshot(&self, name: &str) -> Result<(), ControlError> {
        self.snapshots.keep(name, self.timed_snapshot()?)
    }

    /// Returns to a snapshot, and to the rules of the command line.
    pub async fn restore(&self, name: &str) -> Result<(), ControlError> {
        let snapshot = self.snapshots.get(name)?;
        self.replace(&snapshot).await
    }

    /// Returns to an empty database, and to the rules of the command line.
    pub async fn reset(&self) -> Result<(), ControlError> {
        self.replace(&TimedSnapshot::empty()).await
    }

    /// Opens a database on the snapshot, which takes the place of the present one once running
    /// requests are answered.
    async fn replace(&self, with: &TimedSnapshot) -> Result<(), ControlError> {
        self.instance().database.snapshot()?;
        let settings = &self.environment.settings;
        let clock = self.clock_at(with.clock_ms);
        let address = self.environment.address;
        let options = serve::database_options(settings, address, clock.as_ref(), Some(&self.rules));
        let database = with.snapshot.open(options).await?;
        let alone = self.replacing.write().await;
        let former = self.instance();
        former.triggers.stop().await;
        // What was counted so far belongs to the former database.
        former.stop_minutes().await;
        if let Some(hot_keys) = &former.observability.hot_keys {
            hot_keys.clear();
        }
        let triggers = serve::start_triggers(settings, &database).await?;
        self.states.clear();
        self.rules.reset();
        self.rules.follow(database.engine());
        let surroundings = Surroundings {
            observability: former.observability.clone(),
            ..Surroundings::of(settings, self.this.clone())
        };
        let instance = Instance::new(database, triggers, clock, surroundings);
        *self.instance.write() = Arc::new(instance);
        drop(alone);
        if let Err(error) = former.database.close().await {
            tracing::warn!(%error, "the former database could not be closed");
        }
        Ok(())
    }

    /// A driven clock that shows this time, or the present; `None` if the server's clock is not driven.
    fn clock_at(&self, now_ms: Option<u64>) -> Option<Arc<ManualClock>> {
        let is_driven = self.environment.settings.driven_clock;
        let now_ms = now_ms.unwrap_or_else(|| SystemClock.now_ms());
        is_driven.then(|| Arc::new(ManualClock::new(now_ms)))
    }

    /// Serves a copy of the database, or of a snapshot, on a port of its own. The copy has the rules that
    /// hold now. It delivers no triggers: their endpoints must not get everything twice.
    pub async fn fork(&self, snapshot: Option<&str>) -> Result<Value, ControlError> {
        let environment = self.environment.clone();
        let _room = self.forks.make_room(&environment).await?;
        let listener = listen(&environment).map_err(ControlError::Listen)?;
        let address = listener.local_addr().map_err(ControlError::Listen)?;
        let copied = self.copy(snapshot).await?;
        let rules = Arc::new(self.rules.copied());
        let clock = self.clock_at(copied.clock_ms());
        let settings = &environment.settings;
        let options = serve::database_options(settings, address, clock.as_ref(), Some(&rules));
        let (database, files) = copied.open(options).await?;
        let triggers = Triggers::idle(database.engine().clone(), database.api().clone());
        let this_environment = environment.clone();
        let surroundings = |this| Surroundings::of(&this_environment.settings, this);
        let instance = |this| Instance::new(database, triggers, clock, surroundings(this));
        let (snapshots, forks) = (self.snapshots.clone(), self.forks.clone());
        let control = TestControl::assemble(environment, instance, rules, None, snapshots, forks);
        Ok(self.forks.serve(control, listener, address, files))
    }

    /// A copy of the database or of a snapshot.
    async fn copy(&self, snapshot: Option<&str>) -> Result<Copied, ControlError> {
        if let Some(name) = snapshot {
            return Ok(Copied::Memory(self.snapshots.get(name)?));
        }
        let Location::Directory { path, .. } = &self.environment.settings.location else {
            return Ok(Copied::Memory(Arc::new(self.timed_snapshot()?)));
        };
        let instance = self.instance();
        let name = format!("fork-{}", self.forks.next_copy());
        let files = instance.database.copy_directory(path, &name).await;
        let files = files.map_err(ControlError::Copy)?.ok_or(NotInMemory)?;
        let clock_ms = instance.clock.as_ref().map(|clock| clock.now_ms());
        Ok(Copied::Directory { files, clock_ms })
    }

    pub async fn reset_table(
        &self,
        namespace: &Arc<Namespace>,
        table: &str,
    ) -> Result<(), ControlError> {
        let name = TableName { namespace: namespace.clone(), name: table.to_owned() };
        let table = || table.to_owned();
        match self.hold().await.database.engine().reset_table(&name).await {
            Ok(TableReset::Emptied) => Ok(()),
            Ok(TableReset::HasHistory) => Err(ControlError::HasHistory { table: table() }),
            Ok(TableReset::IsShared) => Err(ControlError::IsShared),
            Err(error) => Err(of_table(error, table())),
        }
    }

    pub async fn roll_over(
        &self,
        namespace: &Arc<Namespace>,
        table: &str,
    ) -> Result<(), ControlError> {
        let name = TableName { namespace: namespace.clone(), name: table.to_owned() };
        match self.hold().await.database.engine().roll_over_stream(&name).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ControlError::NoStream { table: table.to_owned() }),
            Err(error) => Err(of_table(error, table.to_owned())),
        }
    }

    pub async fn split_shards(
        &self,
        namespace: &Arc<Namespace>,
        table: &str,
    ) -> Result<(), ControlError> {
        let name = TableName { namespace: namespace.clone(), name: table.to_owned() };
        match self.hold().await.database.engine().split_stream(&name).await {
            Ok(StreamSplit::Split) => Ok(()),
            Ok(StreamSplit::NoStream) => Err(ControlError::NoStream { table: table.to_owned() }),
            Ok(StreamSplit::TooManyShards) => {
                Err(ControlError::TooManyShards { table: table.to_owned() })
            }
            Err(error) => Err(of_table(error, table.to_owned())),
        }
    }
}

fn of_table(error: Error, table: String) -> ControlError {
    match error {
        Error::TableNotFound { .. } => ControlError::NoTable { table },
        Error::IndexesInFlux => ControlError::IndexesInFlux { table },
        other => other.into(),
    }
}

/// The content of a fork before it is opened.
enum Copied {
    Memory(Arc<TimedSnapshot>),
    Directory { files: DirectoryCopy, clock_ms: Option<u64> },
}

impl Copied {
    fn clock_ms(&self) -> Option<u64> {
        match self {
            Copied::Memory(timed) => timed.clock_ms,
            Copied::Directory { clock_ms, .. } => *clock_ms,
        }
    }

    async fn open(self, options: Options) -> Result<(Database, Option<DirectoryCopy>), OpenError> {
        match self {
            Copied::Memory(timed) => Ok((timed.snapshot.open(options).await?, None)),
            Copied::Directory { files, .. } => Ok((files.open(options).await?, Some(files))),
        }
    }
}

/// A free port of the server's own address.
fn listen(environment: &Environment) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind((environment.address.ip(), 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
