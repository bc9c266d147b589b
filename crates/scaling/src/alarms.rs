//! The alarms of policies, for a service that lists alarms. Scaling does not wait for them: the worker
//! does their work (`tracking`).

use std::sync::Arc;

use zenobe_engine::error::Result;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::Access;

use crate::policy::{AlarmKind, Policy};
use crate::resource::TargetName;
use crate::tracking::{IN_MINUTES, LOW_POINTS, OUT_MINUTES};
use crate::{Scaling, capacity};

/// An alarm as AWS creates it for a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackingAlarm {
    pub name: String,
    pub policy_arn: String,
    pub policy_created_at_ms: u64,
    pub table: String,
    pub index: Option<String>,
    pub access: Access,
    pub watched: Watched,
    /// Whether it tells of values above its threshold, rather than below.
    pub is_high: bool,
    pub threshold: f64,
    /// How many periods in a row have to be beyond the threshold.
    pub periods: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The units that are consumed in a minute.
    Consumption,
    /// What is provisioned, on average over five minutes.
    Provisioned,
}

/// AWS's number of periods for a provisioned capacity that somebody else has changed.
const PROVISIONED_PERIODS: u64 = 3;

impl Scaling {
    /// The alarms of all policies in a namespace. A table that is on demand, or gone, has none.
    pub async fn policy_alarms(&self, namespace: &Arc<Namespace>) -> Result<Vec<TrackingAlarm>> {
        let mut alarms = Vec::new();
        for (name, target) in self.all_targets(namespace).await? {
            let Some(policy) = &target.policy else { continue };
            let present = capacity::provisioned(&self.engine, namespace, &name).await?;
            let Some(present) = present.filter(|present| !present.is_on_demand) else { continue };
            let policy_arn = policy.arn(&target, &name, namespace);
            let alarm = |kind| alarm(policy, &policy_arn, &name, kind, present.units);
            alarms.extend(policy.alarm_kinds().map(alarm));
        }
        Ok(alarms)
    }
}

fn alarm(
    policy: &Policy,
    policy_arn: &str,
    name: &TargetName,
    kind: AlarmKind,
    units: u64,
) -> TrackingAlarm {
    let (units, target) = (units as f64, policy.settings.target_percent);
    // Of what a minute may consume.
    let percent = |percent: f64| units * 60.0 * percent / 100.0;
    let (watched, is_high, threshold, periods) = match kind {
        AlarmKind::High => (Watched::Consumption, true, percent(target), OUT_MINUTES as u64),
        AlarmKind::Low => {
            (Watched::Consumption, false, percent(target - LOW_POINTS), IN_MINUTES as u64)
        }
        AlarmKind::ProvisionedCapacityHigh => {
            (Watched::Provisioned, true, units, PROVISIONED_PERIODS)
        }
        AlarmKind::ProvisionedCapacityLow => {
            (Watched::Provisioned, false, units, PROVISIONED_PERIODS)
        }
    };
    TrackingAlarm {
        name: policy.alarm_name(name, kind),
        policy_arn: policy_arn.to_owned(),
        policy_created_at_ms: policy.created_at_ms,
        table: name.table.clone(),
        index: name.index.clone(),
        access: name.access,
        watched,
        is_high,
        threshold,
        periods,
    }
}
