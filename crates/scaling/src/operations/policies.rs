//! PutScalingPolicy, DescribeScalingPolicies, DeleteScalingPolicy, GetPredictiveScalingForecast.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::input::Identity;
use super::page::{Selection, render};
use super::policy_input::PolicyInput;
use super::{Change, Request, nothing};
use crate::constraints::Violations;
use crate::error::Result;
use crate::messages;
use crate::policy::Policy;
use crate::resource::TargetName;
use crate::target::ScalableTarget;

impl Request<'_> {
    pub(super) async fn put_policy(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let policy_name = self.policy_name(&mut violations, true)?;
        let identity = Identity::read(self.members, &mut violations)?;
        let input = PolicyInput::read(self.members, &mut violations)?;
        violations.finish()?;
        let name = identity.name()?;
        input.check_type()?;
        let settings = input.settings(&name)?;
        let (engine, now_ms) = (&self.scaling.engine, self.scaling.now_ms());
        let alarm_ids = [(); 4].map(|()| engine.new_uuid());
        let change = |target: Option<ScalableTarget>| {
            let mut target = target.ok_or_else(|| messages::not_registered(&name))?;
            let policy = match target.policy.take() {
                Some(policy) if policy.name != policy_name => {
                    return Err(messages::one_policy_per_metric());
                }
                Some(mut policy) => {
                    policy.settings = settings.clone().unwrap_or(policy.settings);
                    policy
                }
                None if !input.has_type() => return Err(messages::policy_type_required()),
                None => {
                    let settings = settings.clone();
                    let settings = settings.ok_or_else(messages::policy_configuration_required)?;
                    Policy::new(policy_name, settings, now_ms, alarm_ids.clone())
                }
            };
            let answer = json!({
                "PolicyARN": policy.arn(&target, &name, self.namespace),
                "Alarms": policy.alarms(&name, self.namespace),
            });
            target.policy = Some(policy);
            Ok((Change::Put(Box::new(target)), answer))
        };
        self.change_target(&name, change).await
    }

    /// The name of a policy. Deleting one takes any name that an identifier may be.
    fn policy_name(&self, violations: &mut Violations, checks_form: bool) -> Result<&str> {
        let given = self.members.text("PolicyName")?;
        let name = violations.required(given, "policyName");
        match given {
            Some(_) if checks_form => violations.policy_name(name, "policyName"),
            Some(_) => violations.identifier(name, "policyName"),
            None => {}
        }
        Ok(name)
    }

    pub(super) async fn delete_policy(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let policy_name = self.policy_name(&mut violations, false)?;
        let identity = Identity::read(self.members, &mut violations)?;
        violations.finish()?;
        let name = identity.name()?;
        let change = |target: Option<ScalableTarget>| match target {
            Some(mut target) if has_policy(&target, policy_name) => {
                target.policy = None;
                Ok((Change::Put(Box::new(target)), nothing()))
            }
            _ => Err(messages::policy_not_found(&name, policy_name)),
        };
        self.change_target(&name, change).await
    }

    pub(super) async fn describe_policies(&self) -> Result<Value> {
        let selection = Selection::read(self.members, Some("PolicyNames"), None, 10)?;
        let (page, mut found) = (&selection.page, Vec::new());
        let visit = |key, name: &TargetName, target: ScalableTarget| {
            let policy = target.policy.as_ref();
            if let Some(policy) = policy.filter(|policy| selection.includes_name(&policy.name)) {
                found.push((key, policy.describe(&target, name, self.namespace)));
            }
            match found.len() > page.size {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.visit_targets(&selection.filter, page.from.as_deref(), visit).await?;
        Ok(render("ScalingPolicies", found, page))
    }

    /// There are forecasts for ECS services only.
    pub(super) fn get_forecast(&self) -> Result<Value> {
        let mut violations = Violations::default();
        let identity = Identity::read(self.members, &mut violations)?;
        self.policy_name(&mut violations, true)?;
        violations.required(self.members.timestamp("StartTime")?, "startTime");
        violations.required(self.members.timestamp("EndTime")?, "endTime");
        violations.finish()?;
        identity.name()?;
        Err(messages::no_forecast())
    }
}

fn has_policy(target: &ScalableTarget, name: &str) -> bool {
    target.policy.as_ref().is_some_and(|policy| policy.name == name)
}
