//! PutScheduledAction, DescribeScheduledActions, DeleteScheduledAction.

use std::ops::ControlFlow;

use serde_json::Value;

use super::input::Identity;
use super::page::{Selection, render};
use super::targets::{check_limits, units};
use super::{Change, Request, nothing};
use crate::constraints::Violations;
use crate::error::Result;
use crate::messages;
use crate::resource::TargetName;
use crate::schedule::{Schedule, ScheduleFault, ScheduledAction};
use crate::target::ScalableTarget;

/// AWS's quota for each target.
const ACTIONS_MAX: usize = 200;
/// Separates a target's key from an action's name in the key of a page.
const SEPARATOR: u8 = 0;

/// What a request sets. What it leaves out stays unchanged, except for the times.
struct ActionSettings {
    schedule: Option<Schedule>,
    start_ms: Option<u64>,
    end_ms: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
}

impl Request<'_> {
    pub(super) async fn put_action(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let action_name = self.action_name(&mut violations, true)?;
        let identity = Identity::read(self.members, &mut violations)?;
        for (member, path) in [("Schedule", "schedule"), ("Timezone", "timezone")] {
            if let Some(text) = self.members.text(member)? {
                violations.identifier(text, path);
            }
        }
        violations.finish()?;
        let name = identity.name()?;
        let settings = self.settings()?;
        let now_ms = self.scaling.now_ms();
        let change = |target: Option<ScalableTarget>| {
            let mut target = target.ok_or_else(|| messages::not_registered(&name))?;
            let action = match target.actions.remove(action_name) {
                Some(action) => settings.update(action, now_ms)?,
                None if target.actions.len() >= ACTIONS_MAX => {
                    let what = "scheduled actions per scalable target";
                    return Err(messages::too_many(what, ACTIONS_MAX));
                }
                None => settings.create(action_name, now_ms)?,
            };
            target.actions.insert(action_name.to_owned(), action);
            Ok((Change::Put(Box::new(target)), nothing()))
        };
        self.change_target(&name, change).await
    }

    fn action_name(&self, violations: &mut Violations, is_new: bool) -> Result<&str> {
        let given = self.members.text("ScheduledActionName")?;
        let name = violations.required(given, "scheduledActionName");
        match given {
            Some(_) if is_new => violations.action_name(name, "scheduledActionName"),
            Some(_) => violations.identifier(name, "scheduledActionName"),
            None => {}
        }
        Ok(name)
    }

    fn settings(&self) -> Result<ActionSettings> {
        let zone = self.members.text("Timezone")?;
        let schedule = self.members.text("Schedule")?.map(|text| {
            Schedule::parse(text, zone).map_err(|fault| match fault {
                ScheduleFault::Syntax(why) => messages::schedule_invalid(text, why),
                ScheduleFault::UnknownZone => messages::time_zone(zone.unwrap_or_default()),
            })
        });
        let action = self.members.members("ScalableTargetAction")?;
        let units = |member| action.map(|action| units(action, member)).transpose();
        let (min, max) = (units("MinCapacity")?.flatten(), units("MaxCapacity")?.flatten());
        let settings = ActionSettings {
            schedule: schedule.transpose()?,
            start_ms: self.members.timestamp("StartTime")?,
            end_ms: self.members.timestamp("EndTime")?,
            min,
            max,
        };
        settings.check()?;
        Ok(settings)
    }

    pub(super) async fn delete_action(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let action_name = self.action_name(&mut violations, false)?;
        let identity = Identity::read(self.members, &mut violations)?;
        violations.finish()?;
        let name = identity.name()?;
        let change = |target: Option<ScalableTarget>| {
            let not_found = || messages::action_not_found(&name, action_name);
            let mut target = target.ok_or_else(not_found)?;
            target.actions.remove(action_name).ok_or_else(not_found)?;
            Ok((Change::Put(Box::new(target)), nothing()))
        };
        self.change_target(&name, change).await
    }

    pub(super) async fn describe_actions(&self) -> Result<Value> {
        let selection = Selection::read(self.members, Some("ScheduledActionNames"), None, 50)?;
        let (page, mut found) = (&selection.page, Vec::new());
        let visit = |key: Vec<u8>, name: &TargetName, target: ScalableTarget| {
            for action in target.actions.values() {
                let key = [&key[..], &[SEPARATOR], action.name.as_bytes()].concat();
                let is_behind = page.from.as_ref().is_none_or(|from| key >= *from);
                if is_behind && selection.includes_name(&action.name) {
                    found.push((key, action.describe(&target, name, self.namespace)));
                }
            }
            match found.len() > page.size {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        // The page may begin in the middle of a target's actions.
        let from = page.from.as_deref().map(target_key);
        self.visit_targets(&selection.filter, from, visit).await?;
        Ok(render("ScheduledActions", found, page))
    }
}

/// The key of the target in the key of an action: up to the second separator, because the first one
/// belongs to the target's key.
fn target_key(key: &[u8]) -> &[u8] {
    let separators = key.iter().enumerate().filter(|(_, byte)| **byte == SEPARATOR);
    separators.map(|(position, _)| position).nth(1).map_or(key, |end| &key[..end])
}

impl ActionSettings {
    fn check(&self) -> Result<()> {
        check_limits(self.min, self.max)?;
        match (self.start_ms, self.end_ms) {
            (Some(start_ms), Some(end_ms)) if end_ms <= start_ms => {
                Err(messages::end_before_start())
            }
            _ => Ok(()),
        }
    }

    fn create(&self, name: &str, now_ms: u64) -> Result<ScheduledAction> {
        if self.min.is_none() && self.max.is_none() {
            return Err(messages::action_required());
        }
        Ok(ScheduledAction {
            name: name.to_owned(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            schedule: self.schedule.clone().ok_or_else(messages::schedule_required)?,
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            min: self.min,
            max: self.max,
        })
    }

    fn update(&self, action: ScheduledAction, now_ms: u64) -> Result<ScheduledAction> {
        let is_given = self.min.is_some() || self.max.is_some();
        let (min, max) = if is_given { (self.min, self.max) } else { (action.min, action.max) };
        Ok(ScheduledAction {
            updated_at_ms: now_ms,
            schedule: self.schedule.clone().unwrap_or(action.schedule),
            start_ms: self.start_ms,
            end_ms: self.end_ms,
            min,
            max,
            ..action
        })
    }
}
