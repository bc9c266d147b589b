//! RegisterScalableTarget, DeregisterScalableTarget, DescribeScalableTargets.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use zenobe_engine::lease::Lease;
use zenobe_engine::service_rows::RowOwner;

use super::input::Identity;
use super::page::{Filter, Selection, render};
use super::tags::{check_reserved, check_tags};
use super::{Change, Request, nothing};
use crate::constraints::Violations;
use crate::error::Result;
use crate::json::Members;
use crate::resource::TargetName;
use crate::target::{CapacityLimits, ScalableTarget, Suspended};
use crate::worker::Occasion;
use crate::{capacity, keys, messages};

/// AWS's quota of targets for DynamoDB, for each account and region.
const TARGETS_MAX: usize = 5_000;

/// What a registration sets. What is not given stays.
struct TargetSettings {
    min: Option<u64>,
    max: Option<u64>,
    suspended: Option<[Option<bool>; 3]>,
    tags: Option<BTreeMap<String, String>>,
}

impl Request<'_> {
    pub(super) async fn register(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let identity = Identity::read(self.members, &mut violations)?;
        if let Some(role) = self.members.text("RoleARN")? {
            violations.identifier(role, "roleARN");
        }
        let tags = self.members.text_map("Tags")?;
        if let Some(tags) = &tags {
            check_tags(tags, &mut violations);
        }
        violations.finish()?;
        let name = identity.name()?;
        if let Some(tags) = &tags {
            check_reserved(tags)?;
        }
        let settings = TargetSettings {
            min: units(self.members, "MinCapacity")?,
            max: units(self.members, "MaxCapacity")?,
            suspended: suspended(self.members)?,
            tags,
        };
        check_limits(settings.min, settings.max)?;
        let engine = &self.scaling.engine;
        if capacity::provisioned(engine, self.namespace, &name).await?.is_none() {
            return Err(messages::table_does_not_exist(&name));
        }
        let target = self.save(&name, &settings).await?;
        self.bring_inside(&name, target.limits).await?;
        Ok(json!({"ScalableTargetARN": target.arn(self.namespace)}))
    }

    async fn save(&self, name: &TargetName, settings: &TargetSettings) -> Result<ScalableTarget> {
        let engine = &self.scaling.engine;
        let key = keys::target(name);
        let is_new = engine.service_row(RowOwner::Scaling, self.namespace, &key).await?.is_none();
        if is_new {
            self.check_quota().await?;
        }
        let (id, uuid, now_ms) = (new_id(engine), engine.new_uuid(), self.scaling.now_ms());
        let change = |target: Option<ScalableTarget>| {
            let mut target = match target {
                Some(_) if settings.tags.is_some() => {
                    return Err(messages::tags_of_registered_target());
                }
                Some(target) => target,
                None => settings.new_target(id.clone(), uuid.clone(), now_ms)?,
            };
            settings.apply(&mut target)?;
            Ok((Change::Put(Box::new(target.clone())), target))
        };
        self.change_target(name, change).await
    }

    async fn check_quota(&self) -> Result<()> {
        let mut targets = 0;
        let count = |_, _: &TargetName, _| {
            targets += 1;
            ControlFlow::Continue(())
        };
        self.visit_targets(&Filter::default(), None, count).await?;
        match targets < TARGETS_MAX {
            true => Ok(()),
            false => Err(messages::too_many("scalable targets", TARGETS_MAX)),
        }
    }

    /// A table outside the limits is changed at once, as on AWS, and an activity records it.
    async fn bring_inside(&self, name: &TargetName, limits: CapacityLimits) -> Result<()> {
        let (scaling, at_ms) = (self.scaling, self.scaling.now_ms());
        let by = Occasion::Request;
        let brought = scaling.bring_inside(self.namespace, name, limits, at_ms, by).await?;
        let Some(activity) = brought else { return Ok(()) };
        let rows = vec![(activity.key(), Some(activity.encode()))];
        let (owner, lease) = (RowOwner::Scaling, Lease::default());
        scaling.engine.write_service_rows(owner, self.namespace, &lease, rows).await?;
        Ok(())
    }

    pub(super) async fn deregister(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let identity = Identity::read(self.members, &mut violations)?;
        violations.finish()?;
        let name = identity.name()?;
        let delete = |target: Option<ScalableTarget>| match target {
            Some(_) => Ok((Change::Delete, ())),
            None => Err(messages::target_not_found(&name)),
        };
        self.change_target(&name, delete).await?;
        let rows = vec![(keys::target_state(&name), None)];
        let (owner, lease) = (RowOwner::Scaling, Lease::default());
        self.scaling.engine.write_service_rows(owner, self.namespace, &lease, rows).await?;
        Ok(nothing())
    }

    pub(super) async fn describe_targets(&self) -> Result<Value> {
        let selection = Selection::read(self.members, None, Some("ResourceIds"), 50)?;
        let (page, mut found) = (&selection.page, Vec::new());
        let visit = |key, name: &TargetName, target: ScalableTarget| {
            found.push((key, target.describe(name, self.namespace)));
            match found.len() > page.size {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.visit_targets(&selection.filter, page.from.as_deref(), visit).await?;
        Ok(render("ScalableTargets", found, page))
    }
}

impl TargetSettings {
    fn new_target(&self, id: String, uuid: String, now_ms: u64) -> Result<ScalableTarget> {
        let (Some(min), Some(max)) = (self.min, self.max) else {
            return Err(messages::capacity_required());
        };
        Ok(ScalableTarget {
            id,
            uuid,
            created_at_ms: now_ms,
            limits: CapacityLimits { min, max },
            suspended: Suspended::default(),
            tags: self.tags.clone().unwrap_or_default(),
            policy: None,
            actions: BTreeMap::new(),
        })
    }

    fn apply(&self, target: &mut ScalableTarget) -> Result<()> {
        let limits = &mut target.limits;
        limits.min = self.min.unwrap_or(limits.min);
        limits.max = self.max.unwrap_or(limits.max);
        if limits.max < limits.min {
            return Err(messages::maximum_below_minimum());
        }
        if let Some([scale_in, scale_out, scheduled]) = self.suspended {
            let suspended = &mut target.suspended;
            suspended.scale_in = scale_in.unwrap_or(suspended.scale_in);
            suspended.scale_out = scale_out.unwrap_or(suspended.scale_out);
            suspended.scheduled = scheduled.unwrap_or(suspended.scheduled);
        }
        Ok(())
    }
}

/// What can be wrong with a minimum and a maximum without a stored target.
pub(super) fn check_limits(min: Option<u64>, max: Option<u64>) -> Result<()> {
    if min == Some(0) || max == Some(0) {
        return Err(messages::minimum_too_small());
    }
    match (min, max) {
        (Some(min), Some(max)) if max < min => Err(messages::maximum_below_minimum()),
        _ => Ok(()),
    }
}

/// A capacity. A negative number counts as zero, which is refused as too small.
pub(super) fn units(members: Members<'_>, member: &str) -> Result<Option<u64>> {
    let units = members.integer(member)?;
    Ok(units.map(|units| u64::try_from(units).unwrap_or(0)))
}

fn suspended(members: Members<'_>) -> Result<Option<[Option<bool>; 3]>> {
    let Some(state) = members.members("SuspendedState")? else { return Ok(None) };
    Ok(Some([
        state.flag("DynamicScalingInSuspended")?,
        state.flag("DynamicScalingOutSuspended")?,
        state.flag("ScheduledScalingSuspended")?,
    ]))
}

/// The last part of a target's ARN: 36 letters and digits on AWS.
fn new_id(engine: &zenobe_engine::Engine) -> String {
    let digits = engine.new_uuid().replace('-', "") + &engine.new_uuid();
    digits.chars().take(36).collect()
}
