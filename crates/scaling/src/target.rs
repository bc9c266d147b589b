//! Scalable targets and their rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zenobe_engine::error::Result;
use zenobe_engine::row::Fields;
use zenobe_engine::schema::Namespace;
use zenobe_value::Attributes;

use crate::json::seconds;
use crate::policy::Policy;
use crate::resource::{SERVICE_NAMESPACE, TargetName};
use crate::schedule::ScheduledAction;

/// A registered target with everything that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScalableTarget {
    /// The last part of its ARN. A target that is registered again gets another.
    pub id: String,
    /// The id in the ARNs of its policy and its scheduled actions.
    pub uuid: String,
    pub created_at_ms: u64,
    pub limits: CapacityLimits,
    pub suspended: Suspended,
    pub tags: BTreeMap<String, String>,
    pub policy: Option<Policy>,
    /// By name.
    pub actions: BTreeMap<String, ScheduledAction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CapacityLimits {
    pub min: u64,
    pub max: u64,
}

impl CapacityLimits {
    pub(crate) fn clamp(self, units: u64) -> u64 {
        units.min(self.max).max(self.min)
    }
}

/// Which scaling is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Suspended {
    pub scale_in: bool,
    pub scale_out: bool,
    pub scheduled: bool,
}

/// What the ARNs of a namespace's targets have in common.
pub(crate) fn arn_start(Namespace { account, region }: &Namespace) -> String {
    format!("arn:aws:application-autoscaling:{region}:{account}:scalable-target/")
}

impl ScalableTarget {
    pub(crate) fn arn(&self, namespace: &Namespace) -> String {
        format!("{}{}", arn_start(namespace), self.id)
    }

    /// The ARN of the target's policy, or of one of its scheduled actions.
    pub(crate) fn arn_of_part(
        &self,
        kind: &str,
        name: &TargetName,
        part: &str,
        Namespace { account, region }: &Namespace,
    ) -> String {
        let (uuid, resource_id) = (&self.uuid, name.resource_id());
        format!(
            "arn:aws:autoscaling:{region}:{account}:{kind}:{uuid}:resource/\
             {SERVICE_NAMESPACE}/{resource_id}:{part}"
        )
    }

    pub(crate) fn describe(&self, name: &TargetName, namespace: &Namespace) -> Value {
        let account = &namespace.account;
        json!({
            "ServiceNamespace": SERVICE_NAMESPACE,
            "ResourceId": name.resource_id(),
            "ScalableDimension": name.dimension(),
            "MinCapacity": self.limits.min,
            "MaxCapacity": self.limits.max,
            // AWS ignores other roles for services with a service-linked one.
            "RoleARN": format!(
                "arn:aws:iam::{account}:role/aws-service-role/dynamodb.application-autoscaling.\
                 amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
            ),
            "CreationTime": seconds(self.created_at_ms),
            "SuspendedState": {
                "DynamicScalingInSuspended": self.suspended.scale_in,
                "DynamicScalingOutSuspended": self.suspended.scale_out,
                "ScheduledScalingSuspended": self.suspended.scheduled,
            },
            "ScalableTargetARN": self.arn(namespace),
        })
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("id", &self.id);
        fields.text("uuid", &self.uuid);
        fields.number("created", self.created_at_ms);
        fields.number("min", self.limits.min);
        fields.number("max", self.limits.max);
        let mut suspended = Fields::default();
        suspended.flag("scale_in", self.suspended.scale_in);
        suspended.flag("scale_out", self.suspended.scale_out);
        suspended.flag("scheduled", self.suspended.scheduled);
        fields.map("suspended", suspended.0);
        fields.texts("tags", &self.tags);
        if let Some(policy) = &self.policy {
            fields.map("policy", policy.encode());
        }
        fields.list("actions", self.actions.values().map(ScheduledAction::encode));
        fields.0
    }

    pub(crate) fn decode(row: Attributes) -> Result<ScalableTarget> {
        let mut fields = Fields(row);
        let mut suspended = Fields(fields.take_map("suspended")?);
        let actions = fields.take_list("actions", ScheduledAction::decode)?;
        Ok(ScalableTarget {
            id: fields.take_text("id")?,
            uuid: fields.take_text("uuid")?,
            created_at_ms: fields.take_number("created")?,
            limits: CapacityLimits {
                min: fields.take_number("min")?,
                max: fields.take_number("max")?,
            },
            suspended: Suspended {
                scale_in: suspended.take_flag("scale_in")?,
                scale_out: suspended.take_flag("scale_out")?,
                scheduled: suspended.take_flag("scheduled")?,
            },
            tags: fields.take_texts("tags")?,
            policy: fields.take_optional_map("policy")?.map(Policy::decode).transpose()?,
            actions: actions.into_iter().map(|action| (action.name.clone(), action)).collect(),
        })
    }
}
