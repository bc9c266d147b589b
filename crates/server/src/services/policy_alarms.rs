//! Shows CloudWatch the alarms of scaling policies.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use zenobe_engine::error::Result;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::Access;
use zenobe_monitoring::cloudwatch::{self, PolicyAlarms};
use zenobe_scaling::{Scaling, TrackingAlarm, Watched};

pub struct ScalingAlarms(pub Arc<Scaling>);

impl PolicyAlarms for ScalingAlarms {
    fn alarms<'a>(
        &'a self,
        namespace: &'a Arc<Namespace>,
    ) -> BoxFuture<'a, Result<Vec<cloudwatch::PolicyAlarm>>> {
        Box::pin(async move {
            let alarms = self.0.policy_alarms(namespace).await?;
            Ok(alarms.into_iter().map(shown).collect())
        })
    }
}

fn shown(alarm: TrackingAlarm) -> cloudwatch::PolicyAlarm {
    let (metric, period_s) = match (alarm.watched, alarm.access) {
        (Watched::Consumption, Access::Read) => ("ConsumedReadCapacityUnits", 60),
        (Watched::Consumption, Access::Write) => ("ConsumedWriteCapacityUnits", 60),
        (Watched::Provisioned, Access::Read) => ("ProvisionedReadCapacityUnits", 300),
        (Watched::Provisioned, Access::Write) => ("ProvisionedWriteCapacityUnits", 300),
    };
    let arn = &alarm.policy_arn;
    cloudwatch::PolicyAlarm {
        // AWS's words.
        description: format!("DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {arn}."),
        name: alarm.name,
        action: alarm.policy_arn,
        configured_ms: alarm.policy_created_at_ms,
        table: alarm.table,
        index: alarm.index,
        metric,
        is_average: alarm.watched == Watched::Provisioned,
        period_s,
        periods: alarm.periods,
        threshold: alarm.threshold,
        is_high: alarm.is_high,
    }
}
