//! The evaluation of all alarms, once a minute on one of the nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zenobe_engine::error::{Error, Result};
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;

use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::storage::Storage;
use super::history::HistoryItem;
use super::next_state::next_state;
use super::{Alarm, AlarmState, Alarms, StateValue};

/// How many alarms are read at once.
const ALARMS_AT_ONCE: usize = 50;

impl Alarms {
    /// Evaluates every alarm by the data before `end_ms`. An alarm that fails does not keep others from
    /// being evaluated, unless the store has failed: waiting for it once per alarm would hold up the
    /// minute's work, and all are evaluated again a minute later.
    pub async fn evaluate_all(&self, storage: &Storage, end_ms: u64, lease: &Lease) -> Result<()> {
        for namespace in self.engine.service_namespaces(RowOwner::Alarms).await? {
            let mut after: Option<String> = None;
            loop {
                let page =
                    self.list(&namespace, after.as_deref(), ALARMS_AT_ONCE, |_| true).await?;
                for alarm in &page.alarms {
                    match next_state(storage, &namespace, alarm, end_ms).await {
                        Ok(Some(state)) => self.set(&namespace, alarm, &state, lease).await?,
                        Ok(None) => {}
                        Err(CloudWatchError { kind: CloudWatchErrorKind::Internal, .. }) => {
                            let detail = "an alarm's metrics could not be read".to_owned();
                            return Err(Error::Unavailable { detail });
                        }
                        Err(CloudWatchError { message: problem, .. }) => {
                            let alarm = &alarm.name;
                            tracing::warn!(alarm, problem, "an alarm could not be evaluated");
                        }
                    }
                }
                match page.alarms.last() {
                    Some(last) if page.has_more => after = Some(last.name.clone()),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Sets an alarm's state, unless the alarm was changed in the meantime.
    async fn set(
        &self,
        namespace: &Arc<Namespace>,
        seen: &Alarm,
        state: &AlarmState,
        lease: &Lease,
    ) -> Result<()> {
        let change = |known: Option<&Alarm>| {
            let is_same = |known: &&Alarm| {
                known.configured_ms == seen.configured_ms && known.state == seen.state
            };
            known.filter(is_same).map(|known| Alarm { state: state.clone(), ..known.clone() })
        };
        let (_, changed) = self.change(namespace, &seen.name, lease, change).await?;
        match changed {
            None => Ok(()),
            Some(changed) => self.announce(namespace, &seen.state, &changed, lease).await,
        }
    }

    /// Logs, counts and records that an alarm has changed its state.
    pub async fn announce(
        &self,
        namespace: &Arc<Namespace>,
        old: &AlarmState,
        alarm: &Alarm,
        lease: &Lease,
    ) -> Result<()> {
        let Alarm { name, state, configuration, .. } = alarm;
        let mut items = vec![HistoryItem::changed(name, old, state)];
        if old.value != state.value {
            let (from, to) = (old.value.name(), state.value.name());
            let reason = &state.reason;
            match state.value {
                StateValue::Alarm => {
                    tracing::warn!(alarm = name, from, to, reason, "an alarm changed its state");
                }
                _ => tracing::info!(alarm = name, from, to, reason, "an alarm changed its state"),
            }
            let position = StateValue::ALL.iter().position(|value| *value == state.value);
            self.transitions[position.unwrap_or_default()].fetch_add(1, Ordering::Relaxed);
            let actions = match state.value {
                StateValue::Ok => &configuration.ok_actions,
                StateValue::Alarm => &configuration.alarm_actions,
                StateValue::InsufficientData => &configuration.insufficient_data_actions,
            };
            if configuration.actions_enabled {
                self.actions_skipped.fetch_add(actions.len() as u64, Ordering::Relaxed);
                items.extend(actions.iter().map(|it| HistoryItem::skipped(name, it, state)));
            }
        }
        self.record(namespace, lease, &items).await
    }

    /// Deletes history that is too old, in every namespace.
    pub async fn trim(&self, lease: &Lease) -> Result<()> {
        for namespace in self.engine.service_namespaces(RowOwner::Alarms).await? {
            self.trim_history(&namespace, lease).await?;
        }
        Ok(())
    }
}
