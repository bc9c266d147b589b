//! The work of one minute on one target.

use std::sync::Arc;

use zenobe_engine::error::Result;
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::{RowChange, RowOwner};
use zenobe_value::Attributes;

use crate::activity::{self, Activity, Outcome};
use crate::policy::AlarmKind;
use crate::resource::TargetName;
use crate::schedule::ScheduledAction;
use crate::target::ScalableTarget;
use crate::tracking::{
    Report, Sample, ScaledOut, ScalingDecision, Situation, TargetState, decide, has_jumped_back,
};
use crate::usage::MINUTE_MS;
use crate::{Scaling, capacity, keys};

/// A failure that repeats is reported again after this time.
const REPEAT_MS: u64 = 3_600 * 1_000;

pub(super) struct Round<'a> {
    pub scaling: &'a Scaling,
    pub namespace: &'a Arc<Namespace>,
    pub name: &'a TargetName,
    pub minute: u64,
    pub at_ms: u64,
    pub lease: &'a Lease,
}

/// Why a capacity is brought inside its limits.
#[derive(Clone, Copy)]
pub(crate) enum Occasion<'a> {
    /// A client has set the limits. A table that can't be changed is not reported.
    Request,
    /// A scheduled action has set them, in the work under this lease.
    Schedule(&'a Lease),
}

/// What became of the limits that a scheduled action sets.
enum LimitsChange {
    Set(Box<ScalableTarget>),
    /// The minimum would exceed the maximum.
    Refused,
    /// The target was deregistered in the meantime.
    Gone,
}

/// The state of a target during a round.
struct Progress {
    target: ScalableTarget,
    state: TargetState,
    activities: Vec<Activity>,
    /// Whether the target was deregistered in the meantime.
    is_gone: bool,
}

type Rows = Vec<(Vec<u8>, Option<Attributes>)>;

impl Round<'_> {
    /// Returns rows that are still to be written. Activities are written at once, because they
    /// record changes that have been made.
    pub(super) async fn run(&self, target: ScalableTarget, halves: Option<u64>) -> Result<Rows> {
        let state = self.load_state(&target).await?;
        let mut progress = Progress { target, state, activities: Vec::new(), is_gone: false };
        let outcome = self.work(&mut progress, halves).await;
        let Progress { state, activities, is_gone, .. } = progress;
        // Nothing of a deregistered target is left but its activities.
        let state = (!is_gone).then(|| state.encode());
        let mut rows: Rows = vec![(keys::target_state(self.name), state)];
        if !activities.is_empty() {
            let noted = activities.iter().map(|activity| (activity.key(), Some(activity.encode())));
            rows.extend(noted);
            let rows = std::mem::take(&mut rows);
            let (engine, owner) = (&self.scaling.engine, RowOwner::Scaling);
            engine.write_service_rows(owner, self.namespace, self.lease, rows).await?;
        }
        outcome.map(|()| rows)
    }

    async fn load_state(&self, target: &ScalableTarget) -> Result<TargetState> {
        let (engine, key) = (&self.scaling.engine, keys::target_state(self.name));
        let row = engine.service_row(RowOwner::Scaling, self.namespace, &key).await?;
        let state = row.map(TargetState::decode).transpose()?;
        Ok(state.filter(|state| state.target_id == target.id).unwrap_or_else(|| TargetState {
            target_id: target.id.clone(),
            checked_ms: target.created_at_ms,
            ..TargetState::default()
        }))
    }

    async fn work(&self, progress: &mut Progress, halves: Option<u64>) -> Result<()> {
        // A clock that has jumped must neither run next year's actions nor count minutes that never were. What is due once it is
        // confirmed, or right again, happens then.
        if self.scaling.engine.clock_status().is_paused {
            return Ok(());
        }
        progress.state.forget_future(self.at_ms);
        self.run_schedule(progress).await?;
        match progress.is_gone {
            true => Ok(()),
            false => self.track(progress, halves).await,
        }
    }

    // ---- scheduled actions ----------------------------------------------------------------------

    async fn run_schedule(&self, progress: &mut Progress) -> Result<()> {
        let checked_ms = progress.state.checked_ms;
        // A clock that was set back runs nothing twice. But after one that had jumped far ahead, nothing would run until then.
        let after_ms = match has_jumped_back(checked_ms, self.at_ms) {
            true => self.at_ms.saturating_sub(MINUTE_MS),
            false => checked_ms,
        };
        progress.state.checked_ms = after_ms.max(self.at_ms);
        let actions = progress.target.actions.values();
        let due = actions.filter_map(|action| {
            action.latest_within(after_ms, self.at_ms).map(|due_ms| (due_ms, action.clone()))
        });
        let mut due: Vec<(u64, ScheduledAction)> = due.collect();
        due.sort_by_key(|(due_ms, _)| *due_ms);
        if progress.target.suspended.scheduled {
            return Ok(());
        }
        for (due_ms, action) in due {
            let told = progress.activities.len();
            if let Err(error) = self.run_action(progress, &action).await {
                // The next round tries it again, with those that are due later, and records it then.
                progress.state.checked_ms = due_ms.saturating_sub(1);
                progress.activities.truncate(told);
                return Err(error);
            }
            if progress.is_gone {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn run_action(&self, progress: &mut Progress, action: &ScheduledAction) -> Result<()> {
        let set = |target: &mut ScalableTarget| {
            let limits = &mut target.limits;
            limits.min = action.min.unwrap_or(limits.min);
            limits.max = action.max.unwrap_or(limits.max);
            limits.min <= limits.max
        };
        let (engine, key) = (&self.scaling.engine, keys::target(self.name));
        let id = &progress.target.id;
        let change = |row: Option<Attributes>| {
            let target = row.map(ScalableTarget::decode).transpose();
            match target {
                Ok(Some(mut target)) if target.id == *id => match set(&mut target) {
                    true => {
                        (RowChange::Put(target.encode()), Ok(LimitsChange::Set(Box::new(target))))
                    }
                    false => (RowChange::Keep, Ok(LimitsChange::Refused)),
                },
                Ok(_) => (RowChange::Keep, Ok(LimitsChange::Gone)),
                Err(error) => (RowChange::Keep, Err(error)),
            }
        };
        let changed = engine
            .change_service_row(RowOwner::Scaling, self.namespace, &key, self.lease, change)
            .await??;
        let limits = activity::limits_text(action.min, action.max);
        let (target, outcome) = match changed {
            LimitsChange::Set(target) => (
                Some(target),
                Outcome::Successful { message: format!("Successfully set {limits}") },
            ),
            LimitsChange::Refused => {
                let message = format!(
                    "Failed to set {limits}. Reason: Maximum capacity cannot be less than minimum \
                     capacity"
                );
                (None, Outcome::Failed { message })
            }
            LimitsChange::Gone => {
                progress.is_gone = true;
                return Ok(());
            }
        };
        let cause = format!("scheduled action name {} was triggered", action.name);
        progress.note(self, format!("Setting {limits}"), cause, outcome);
        let Some(target) = target else { return Ok(()) };
        progress.target = *target;
        let limits = progress.target.limits;
        let at_ms = self.at_ms + progress.activities.len() as u64;
        let by = Occasion::Schedule(self.lease);
        let brought =
            self.scaling.bring_inside(self.namespace, self.name, limits, at_ms, by).await?;
        progress.activities.extend(brought);
        Ok(())
    }

    // ---- policies -------------------------------------------------------------------------------

    async fn track(&self, progress: &mut Progress, halves: Option<u64>) -> Result<()> {
        let Some(policy) = progress.target.policy.clone() else { return Ok(()) };
        let engine = &self.scaling.engine;
        // Without a table, or without metering, there is no consumption to track.
        let Some(present) = capacity::provisioned(engine, self.namespace, self.name).await? else {
            return Ok(());
        };
        if let Some(halves) = halves.filter(|_| present.is_metered) {
            progress.state.add(Sample { minute: self.minute, halves });
        }
        let situation = Situation {
            settings: &policy.settings,
            limits: progress.target.limits,
            suspended: progress.target.suspended,
            provisioned: present.units,
            minute: self.minute,
            now_ms: self.at_ms,
        };
        match decide(&situation, &progress.state) {
            ScalingDecision::Quiet => progress.state.report = None,
            ScalingDecision::Wait => {}
            ScalingDecision::NotScaled { alarm, not_scaled } => {
                let cause = activity::alarm_cause(self.name, &policy, alarm);
                // Reported once while the alarm lasts: an idle table stays at its minimum for days.
                let is_known = |report: &Report| report.text == not_scaled.reason.code();
                if !progress.state.report.as_ref().is_some_and(is_known) {
                    let text = not_scaled.reason.code().to_owned();
                    progress.state.report = Some(Report { text, at_ms: self.at_ms });
                    let description = "Attempting to scale due to alarm triggered".to_owned();
                    progress.note(self, description, cause, Outcome::NotScaled(not_scaled));
                }
            }
            ScalingDecision::Scale { alarm, units } => {
                let cause = activity::alarm_cause(self.name, &policy, alarm);
                self.scale(progress, present.units, units, alarm, cause).await?;
            }
        }
        Ok(())
    }

    async fn scale(
        &self,
        progress: &mut Progress,
        present: u64,
        units: u64,
        alarm: AlarmKind,
        cause: String,
    ) -> Result<()> {
        let engine = &self.scaling.engine;
        let set = capacity::set_units(engine, self.namespace, self.name, units, self.lease).await?;
        let is_set = set.is_ok();
        let outcome = activity::units_outcome(self.name, units, set);
        if let Outcome::Failed { message } = &outcome {
            if progress.state.is_reported(message, self.at_ms) {
                return Ok(());
            }
            progress.state.report = Some(Report { text: message.clone(), at_ms: self.at_ms });
        }
        if is_set {
            progress.state.report = None;
            match alarm {
                AlarmKind::High => {
                    let step = units.saturating_sub(present);
                    progress.state.scaled_out = Some(ScaledOut { at_ms: self.at_ms, step });
                    progress.state.scaled_in_at_ms = None;
                }
                _ => progress.state.scaled_in_at_ms = Some(self.at_ms),
            }
        }
        progress.note(self, activity::setting_units(self.name, units), cause, outcome);
        Ok(())
    }
}

impl Progress {
    /// Activities of one round begin one after the other, so that the last one is described first.
    fn note(&mut self, round: &Round<'_>, description: String, cause: String, outcome: Outcome) {
        let at_ms = round.at_ms + self.activities.len() as u64;
        let activity =
            Scaling::activity(round.scaling, round.name, at_ms, description, cause, outcome);
        self.activities.push(activity);
    }
}

impl TargetState {
    /// Whether the same failure was reported not long ago.
    fn is_reported(&self, text: &str, now_ms: u64) -> bool {
        self.report.as_ref().is_some_and(|report| {
            report.text == text && now_ms.saturating_sub(report.at_ms) < REPEAT_MS
        })
    }
}

impl Scaling {
    /// Changes a capacity that is outside its limits, and returns what was done.
    pub(crate) async fn bring_inside(
        &self,
        namespace: &Arc<Namespace>,
        name: &TargetName,
        limits: crate::target::CapacityLimits,
        at_ms: u64,
        occasion: Occasion<'_>,
    ) -> Result<Option<Activity>> {
        let (is_expected, lease) = match occasion {
            Occasion::Request => (false, &Lease::default()),
            Occasion::Schedule(lease) => (true, lease),
        };
        let present = capacity::provisioned(&self.engine, namespace, name).await?;
        let is_fixed = present.is_none_or(|present| present.is_on_demand);
        if is_fixed && !is_expected {
            return Ok(None);
        }
        let present = present.map_or(0, |present| present.units);
        let units = limits.clamp(present);
        if units == present {
            return Ok(None);
        }
        let cause = match units > present {
            true => format!("minimum capacity was set to {}", limits.min),
            false => format!("maximum capacity was set to {}", limits.max),
        };
        let set = capacity::set_units(&self.engine, namespace, name, units, lease).await?;
        let outcome = activity::units_outcome(name, units, set);
        let description = activity::setting_units(name, units);
        Ok(Some(self.activity(name, at_ms, description, cause, outcome)))
    }

    fn activity(
        &self,
        name: &TargetName,
        at_ms: u64,
        description: String,
        cause: String,
        outcome: Outcome,
    ) -> Activity {
        let id = self.engine.new_uuid();
        Activity { id, name: name.clone(), at_ms, description, cause, outcome }
    }
}
