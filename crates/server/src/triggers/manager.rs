//! All triggers of a server: those in the configuration file, and those added by command, which the
//! store keeps.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;
use zenobe_api::Api;
use zenobe_database::RuntimeThread;
use zenobe_engine::Engine;
use zenobe_engine::command::TableName;
use zenobe_engine::consumers::{Checkpoint, ConsumerName};
use zenobe_engine::schema::Namespace;

use super::coordinator;
use super::definition::{DeadLetterDestination, DeadLetterRefusal, TriggerDefinition};
use super::metrics::{self, TriggerMetrics};
use super::source::{InProcessStreams, Streams};
use super::worker::Trigger;
use crate::prometheus::Exposition;
use crate::shutdown;

/// More would be a mistake, and each costs some memory and polling.
const TRIGGERS_MAX: usize = 1_000;

/// How often to look for triggers that other nodes have added or removed.
const FOLLOW_DELAY: Duration = Duration::from_secs(1);

/// How long a stop waits for a change of triggers that is under way.
const CHANGE_PATIENCE: Duration = Duration::from_secs(2);

pub struct Triggers {
    engine: Arc<Engine>,
    api: Arc<Api>,
    /// The thread of all triggers, apart from requests and background work. Started with the first
    /// trigger.
    thread: Mutex<Option<RuntimeThread>>,
    running: Mutex<BTreeMap<ConsumerName, RunningTrigger>>,
    /// Stored triggers that cannot run, with their stored text and the reason.
    broken: Mutex<BTreeMap<ConsumerName, Broken>>,
    /// Where triggers added by command may write files.
    dead_letter_directory: Option<PathBuf>,
    /// Held while triggers are added or removed.
    changing: tokio::sync::Mutex<()>,
    is_stopped: AtomicBool,
}

#[derive(Clone)]
struct Broken {
    text: String,
    stored: Value,
    why: String,
}

struct RunningTrigger {
    trigger: Arc<Trigger>,
    origin: Origin,
    stop: shutdown::StopHandle,
    task: JoinHandle<()>,
}

impl RunningTrigger {
    /// Returns once the trigger has stopped completely.
    async fn stop(self) {
        self.stop.stop();
        // The task neither panics nor is cancelled, and there would be nothing to clean up if either happened.
        let _ = self.task.await;
    }
}

async fn keep_following(triggers: Weak<Triggers>) {
    loop {
        tokio::time::sleep(FOLLOW_DELAY).await;
        let Some(triggers) = triggers.upgrade() else { return };
        if let Err(error) = triggers.follow().await {
            tracing::warn!(%error, "the triggers of other nodes cannot be read");
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Configuration,
    Command,
}

#[derive(Debug, thiserror::Error)]
pub enum TriggerError {
    #[error("a trigger named `{0}` already exists")]
    Exists(String),
    #[error("there is no trigger `{0}`")]
    NotFound(String),
    #[error(
        "the trigger `{0}` is in the server's configuration file and can only be removed there"
    )]
    Configured(String),
    #[error("there are already {TRIGGERS_MAX} triggers; remove one first")]
    TooMany,
    #[error("cannot start the trigger thread: {0}")]
    Thread(std::io::Error),
    #[error("cannot use the dead-letter directory: {0}")]
    DeadLetterDirectory(std::io::Error),
    #[error(transparent)]
    DeadLetter(#[from] DeadLetterRefusal),
    #[error(transparent)]
    Engine(#[from] zenobe_engine::error::Error),
}

impl Triggers {
    fn new(engine: Arc<Engine>, api: Arc<Api>, dead_letter_directory: Option<PathBuf>) -> Triggers {
        Triggers {
            engine,
            api,
            thread: Mutex::default(),
            running: Mutex::default(),
            broken: Mutex::default(),
            dead_letter_directory,
            changing: tokio::sync::Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Starts none of the stored triggers: those of a copied database run where it was copied.
    pub fn idle(engine: Arc<Engine>, api: Arc<Api>) -> Arc<Triggers> {
        Arc::new(Triggers::new(engine, api, None))
    }

    /// Starts the stored and the configured triggers. If two have the same name, the configured
    /// one wins.
    pub async fn start(
        engine: Arc<Engine>,
        api: Arc<Api>,
        namespace: &Arc<Namespace>,
        configured: Vec<TriggerDefinition>,
        dead_letter_directory: Option<PathBuf>,
    ) -> Result<Arc<Triggers>, TriggerError> {
        let triggers = Triggers::new(engine, api, dead_letter_directory);
        for definition in configured {
            if let Some(hint) = triggers.hint(namespace, &definition.table).await {
                tracing::warn!(trigger = definition.name, "{hint}");
            }
            let consumer =
                ConsumerName { namespace: namespace.clone(), name: definition.name.clone() };
            let dead_letter = definition.dead_letter.clone();
            triggers.launch(consumer, definition, dead_letter, None)?;
        }
        for (consumer, text) in triggers.engine.consumers().await? {
            if triggers.running.lock().contains_key(&consumer) {
                let name = &consumer.name;
                tracing::warn!(
                    trigger = name,
                    "the configuration file overrides a stored trigger of the same name"
                );
                continue;
            }
            triggers.launch_stored(consumer, text)?;
        }
        let triggers = Arc::new(triggers);
        if triggers.engine.is_shared() {
            triggers.follow_others()?;
        }
        Ok(triggers)
    }

    /// Begins to follow the changes of other nodes, once there may be some.
    pub fn follow_others(self: &Arc<Self>) -> Result<(), TriggerError> {
        self.runtime()?.spawn(keep_following(Arc::downgrade(self)));
        Ok(())
    }

    /// Starts triggers that other nodes have added, and stops those that they have removed.
    async fn follow(&self) -> Result<(), TriggerError> {
        let alone = self.changing.lock().await;
        self.follow_alone(&alone).await
    }

    async fn follow_alone(&self, _alone: &MutexGuard<'_, ()>) -> Result<(), TriggerError> {
        if !self.engine.is_shared() || self.is_stopped.load(Ordering::SeqCst) {
            return Ok(());
        }
        let stored: BTreeMap<_, _> = self.engine.consumers().await?.into_iter().collect();
        let outdated: Vec<RunningTrigger> = {
            let mut running = self.running.lock();
            let is_outdated = |(consumer, running): (&ConsumerName, &RunningTrigger)| {
                let is_kept = running.trigger.stored.is_some();
                let is_same = running.trigger.stored.as_ref() == stored.get(consumer);
                (is_kept && !is_same).then(|| consumer.clone())
            };
            let outdated: Vec<ConsumerName> = running.iter().filter_map(is_outdated).collect();
            outdated.iter().filter_map(|consumer| running.remove(consumer)).collect()
        };
        futures_util::future::join_all(outdated.into_iter().map(RunningTrigger::stop)).await;
        self.broken.lock().retain(|consumer, _| stored.contains_key(consumer));
        for (consumer, text) in stored {
            let is_known = self.running.lock().contains_key(&consumer)
                || self.broken.lock().get(&consumer).is_some_and(|broken| broken.text == text);
            if !is_known {
                self.broken.lock().remove(&consumer);
                self.launch_stored(consumer, text)?;
            }
        }
        Ok(())
    }

    /// Adds a trigger that survives restarts. Adding the same trigger again changes nothing.
    pub async fn add(
        &self,
        namespace: &Arc<Namespace>,
        definition: TriggerDefinition,
    ) -> Result<(), TriggerError> {
        let alone = self.changing.lock().await;
        self.follow_alone(&alone).await?;
        let consumer = ConsumerName { namespace: namespace.clone(), name: definition.name.clone() };
        {
            let running = self.running.lock();
            match running.get(&consumer) {
                Some(same) if same.trigger.definition == definition => return Ok(()),
                Some(_) => return Err(TriggerError::Exists(definition.name)),
                None if running.len() >= TRIGGERS_MAX => return Err(TriggerError::TooMany),
                None => {}
            }
        }
        let dead_letter = self.dead_letter(&definition)?;
        // Before it is stored: a trigger that cannot run must not be there after a restart.
        self.runtime()?;
        let text = definition.to_json().to_string();
        self.engine.save_consumer(&consumer, &text).await?;
        self.broken.lock().remove(&consumer);
        self.launch(consumer, definition, dead_letter, Some(text))
    }

    /// Stops a trigger and deletes it, together with its progress.
    pub async fn remove(&self, namespace: &Arc<Namespace>, name: &str) -> Result<(), TriggerError> {
        let alone = self.changing.lock().await;
        self.follow_alone(&alone).await?;
        let consumer = ConsumerName { namespace: namespace.clone(), name: name.to_owned() };
        if self.broken.lock().contains_key(&consumer) {
            self.engine.remove_consumer(&consumer).await?;
            self.broken.lock().remove(&consumer);
            return Ok(());
        }
        let running = {
            let mut running = self.running.lock();
            match running.get(&consumer).map(|running| running.origin) {
                None => return Err(TriggerError::NotFound(name.to_owned())),
                Some(Origin::Configuration) => {
                    return Err(TriggerError::Configured(name.to_owned()));
                }
                Some(Origin::Command) => running.remove(&consumer).expect("it was just there"),
            }
        };
        running.stop().await;
        Ok(self.engine.remove_consumer(&consumer).await?)
    }

    /// What a trigger of this table waits for, if it has nothing to deliver yet. A table may be
    /// created after its triggers, so this is not an error, but a name may be misspelt.
    pub async fn hint(&self, namespace: &Arc<Namespace>, table: &str) -> Option<String> {
        let name = TableName { namespace: namespace.clone(), name: table.to_owned() };
        match self.engine.current_table(&name).await {
            Err(zenobe_engine::error::Error::TableNotFound { .. }) => Some(format!(
                "there is no table `{table}`; deliveries begin once there is one with a stream"
            )),
            Ok(found) if found.definition().stream.is_none() => Some(format!(
                "the table `{table}` has no stream; deliveries begin once it has: aws dynamodb update-table \
                 --table-name {table} --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"
            )),
            _ => None,
        }
    }

    /// A namespace's triggers and their status.
    pub async fn list(&self, namespace: &Arc<Namespace>) -> Result<Vec<Value>, TriggerError> {
        let triggers: Vec<(Arc<Trigger>, Origin)> = {
            let running = self.running.lock();
            let own = running.iter().filter(|(consumer, _)| consumer.namespace == *namespace);
            own.map(|(_, running)| (running.trigger.clone(), running.origin)).collect()
        };
        let mut listed = Vec::with_capacity(triggers.len());
        for (trigger, origin) in triggers {
            listed.push(self.describe(&trigger, origin).await?);
        }
        let broken = self.broken.lock();
        let own = broken.iter().filter(|(consumer, _)| consumer.namespace == *namespace);
        listed.extend(own.map(|(consumer, broken)| broken.describe(&consumer.name)));
        Ok(listed)
    }

    pub async fn status(
        &self,
        namespace: &Arc<Namespace>,
        name: &str,
    ) -> Result<Value, TriggerError> {
        let consumer = ConsumerName { namespace: namespace.clone(), name: name.to_owned() };
        if let Some(broken) = self.broken.lock().get(&consumer) {
            return Ok(broken.describe(name));
        }
        let found = {
            let running = self.running.lock();
            running.get(&consumer).map(|running| (running.trigger.clone(), running.origin))
        };
        let (trigger, origin) = found.ok_or_else(|| TriggerError::NotFound(name.to_owned()))?;
        self.describe(&trigger, origin).await
    }

    /// All triggers for `/metrics`. The caller of a namespace chooses its account and its region; [`TRIGGERS_MAX`] bounds how
    /// many there are.
    pub fn render_metrics(&self, out: &mut Exposition) {
        let running = self.running.lock();
        let labelled: Vec<_> = running
            .iter()
            .map(|(ConsumerName { namespace, name }, running)| {
                let Namespace { account, region } = &**namespace;
                let labels = [("trigger", name), ("account", account), ("region", region)];
                (labels.map(|(label, value)| (label, value.as_str())), &*running.trigger.metrics)
            })
            .collect();
        metrics::render(&labelled, self.engine.clock().now_ms(), out);
    }

    /// Stops all triggers. Deliveries in progress are repeated after the next start.
    pub async fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // A change that is under way may wait for an unreachable store. It starts nothing any more.
        let _alone = tokio::time::timeout(CHANGE_PATIENCE, self.changing.lock()).await;
        let running = std::mem::take(&mut *self.running.lock());
        futures_util::future::join_all(running.into_values().map(RunningTrigger::stop)).await;
    }

    fn runtime(&self) -> Result<Handle, TriggerError> {
        let mut thread = self.thread.lock();
        let started = match thread.take() {
            Some(started) => started,
            None => RuntimeThread::start("zenobe-triggers").map_err(TriggerError::Thread)?,
        };
        Ok(thread.insert(started).runtime.clone())
    }

    /// A stored trigger that is no longer valid is kept and shown, and stops nothing else from
    /// running.
    fn launch_stored(&self, consumer: ConsumerName, text: String) -> Result<(), TriggerError> {
        let stored: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let checked = TriggerDefinition::parse(&stored).map_err(|error| error.to_string());
        let checked = checked.and_then(|definition| {
            let dead_letter = self.dead_letter(&definition).map_err(|error| error.to_string())?;
            Ok((definition, dead_letter))
        });
        match checked {
            Ok((definition, dead_letter)) => {
                return self.launch(consumer, definition, dead_letter, Some(text));
            }
            Err(why) => {
                let name = &consumer.name;
                tracing::error!(
                    trigger = name,
                    why,
                    "a stored trigger is invalid and does not run; add it again or remove it"
                );
                self.broken.lock().insert(consumer, Broken { text, stored, why });
            }
        }
        Ok(())
    }

    /// Where a trigger added by command puts records that it gives up.
    fn dead_letter(
        &self,
        definition: &TriggerDefinition,
    ) -> Result<Option<DeadLetterDestination>, DeadLetterRefusal> {
        let directory = self.dead_letter_directory.as_deref();
        definition.dead_letter.as_ref().map(|given| given.bound_to(directory)).transpose()
    }

    /// `stored` is the definition's text, if it is in the store.
    fn launch(
        &self,
        consumer: ConsumerName,
        definition: TriggerDefinition,
        dead_letter: Option<DeadLetterDestination>,
        stored: Option<String>,
    ) -> Result<(), TriggerError> {
        let origin = match stored {
            Some(_) => Origin::Command,
            None => Origin::Configuration,
        };
        let runtime = self.runtime()?;
        let api = InProcessStreams { api: self.api.clone(), namespace: consumer.namespace.clone() };
        let trigger = Arc::new(Trigger {
            consumer: consumer.clone(),
            definition,
            stored,
            dead_letter,
            engine: self.engine.clone(),
            streams: Streams::new(Arc::new(api)),
            metrics: Arc::new(TriggerMetrics::default()),
        });
        let (stop, stopping) = shutdown::channel();
        let mut running = self.running.lock();
        // `stop` sets the flag first, and then looks for running triggers under the same lock.
        if !self.is_stopped.load(Ordering::SeqCst) {
            let task = runtime.spawn(coordinator::run(trigger.clone(), stopping));
            running.insert(consumer, RunningTrigger { trigger, origin, stop, task });
        }
        Ok(())
    }

    async fn describe(&self, trigger: &Trigger, origin: Origin) -> Result<Value, TriggerError> {
        let checkpoints = self.engine.checkpoints(&trigger.consumer).await?;
        let state = match checkpoints.is_empty() {
            true => "waiting for a stream",
            false => "delivering",
        };
        let shards: Vec<Value> = checkpoints
            .into_iter()
            .map(|(shard, checkpoint)| {
                let position = match checkpoint {
                    Checkpoint::Oldest => "oldest".to_owned(),
                    Checkpoint::From { timestamp_ms } => {
                        format!("from {}", crate::time::iso8601(timestamp_ms))
                    }
                    Checkpoint::After { sequence } => format!("after {sequence}"),
                    Checkpoint::Finished => "finished".to_owned(),
                };
                json!({ "stream": shard.stream, "shard": shard.shard, "position": position })
            })
            .collect();
        let mut status = json!({
            "trigger": trigger.definition.to_json(),
            "origin": origin.name(),
            "state": state,
            "iterator_age_ms": trigger.metrics.iterator_age_ms(self.engine.clock().now_ms()),
            "last_problem": trigger.metrics.last_problem(),
            "shards": shards,
        });
        for (name, value) in trigger.metrics.counters() {
            status[name] = json!(value);
        }
        Ok(status)
    }
}

impl Broken {
    fn describe(&self, name: &str) -> Value {
        let trigger = match self.stored.is_object() {
            true => self.stored.clone(),
            false => json!({ "name": name }),
        };
        let mut status = json!({
            "trigger": trigger,
            "origin": Origin::Command.name(),
            "state": "not valid",
            "iterator_age_ms": 0,
            "last_problem": self.why,
            "shards": [],
        });
        for (name, value) in TriggerMetrics::default().counters() {
            status[name] = json!(value);
        }
        status
    }
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Origin::Configuration => "configuration",
            Origin::Command => "command",
        }
    }
}
