//! The policy of a target: which utilisation to hold.

use serde_json::{Value, json};
use zenobe_engine::error::Result;
use zenobe_engine::row::{Fields, corrupt};
use zenobe_engine::schema::Namespace;
use zenobe_value::Attributes;

use crate::json::seconds;
use crate::resource::{SERVICE_NAMESPACE, TargetName};
use crate::target::ScalableTarget;

/// A target has at most one policy: policies of one target must track different metrics, and a
/// dimension has only one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub name: String,
    pub created_at_ms: u64,
    pub settings: PolicySettings,
    /// In the order of [`AlarmKind::ALL`].
    alarm_ids: [String; 4],
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicySettings {
    /// In percent of what is provisioned.
    pub target_percent: f64,
    /// `None` means none was given: no cooldown, AWS's default for DynamoDB.
    pub scale_out_cooldown_s: Option<u64>,
    pub scale_in_cooldown_s: Option<u64>,
    /// `None` means that it was not given: capacity is removed.
    pub disable_scale_in: Option<bool>,
}

impl PolicySettings {
    pub(crate) fn scales_in(&self) -> bool {
        !self.disable_scale_in.unwrap_or(false)
    }
}

/// The alarms that AWS creates for a policy. Here they are only shown: the worker does their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlarmKind {
    High,
    Low,
    ProvisionedCapacityHigh,
    ProvisionedCapacityLow,
}

impl AlarmKind {
    const ALL: [AlarmKind; 4] = [
        AlarmKind::High,
        AlarmKind::Low,
        AlarmKind::ProvisionedCapacityHigh,
        AlarmKind::ProvisionedCapacityLow,
    ];

    fn name(self) -> &'static str {
        match self {
            AlarmKind::High => "AlarmHigh",
            AlarmKind::Low => "AlarmLow",
            AlarmKind::ProvisionedCapacityHigh => "ProvisionedCapacityHigh",
            AlarmKind::ProvisionedCapacityLow => "ProvisionedCapacityLow",
        }
    }
}

impl Policy {
    pub(crate) fn new(
        name: &str,
        settings: PolicySettings,
        created_at_ms: u64,
        alarm_ids: [String; 4],
    ) -> Policy {
        Policy { name: name.to_owned(), created_at_ms, settings, alarm_ids }
    }

    pub(crate) fn alarm_name(&self, target: &TargetName, kind: AlarmKind) -> String {
        let (resource_id, id) = (target.resource_id(), &self.alarm_ids[kind as usize]);
        format!("TargetTracking-{resource_id}-{}-{id}", kind.name())
    }

    pub(crate) fn arn(
        &self,
        target: &ScalableTarget,
        name: &TargetName,
        namespace: &Namespace,
    ) -> String {
        let part = format!("policyName/{}", self.name);
        target.arn_of_part("scalingPolicy", name, &part, namespace)
    }

    /// A policy that never removes capacity has no alarm for it.
    pub(crate) fn alarm_kinds(&self) -> impl Iterator<Item = AlarmKind> {
        let scales_in = self.settings.scales_in();
        AlarmKind::ALL.into_iter().filter(move |kind| *kind != AlarmKind::Low || scales_in)
    }

    pub(crate) fn alarms(&self, name: &TargetName, namespace: &Namespace) -> Value {
        let Namespace { account, region } = namespace;
        let alarms = self.alarm_kinds().map(|kind| {
            let alarm = self.alarm_name(name, kind);
            let arn = format!("arn:aws:cloudwatch:{region}:{account}:alarm:{alarm}");
            json!({"AlarmName": alarm, "AlarmARN": arn})
        });
        alarms.collect()
    }

    pub(crate) fn describe(
        &self,
        target: &ScalableTarget,
        name: &TargetName,
        namespace: &Namespace,
    ) -> Value {
        json!({
            "PolicyARN": self.arn(target, name, namespace),
            "PolicyName": self.name,
            "ServiceNamespace": SERVICE_NAMESPACE,
            "ResourceId": name.resource_id(),
            "ScalableDimension": name.dimension(),
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": self.settings.describe(name),
            "Alarms": self.alarms(name, namespace),
            "CreationTime": seconds(self.created_at_ms),
        })
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("name", &self.name);
        fields.number("created", self.created_at_ms);
        fields.text("alarms", &self.alarm_ids.join(" "));
        let PolicySettings {
            target_percent,
            scale_out_cooldown_s,
            scale_in_cooldown_s,
            disable_scale_in,
        } = &self.settings;
        // The shortest text that reads back as the same number.
        fields.text("target_percent", &target_percent.to_string());
        fields.optional_number("scale_out_cooldown_s", *scale_out_cooldown_s);
        fields.optional_number("scale_in_cooldown_s", *scale_in_cooldown_s);
        fields.optional_number("disable_scale_in", disable_scale_in.map(u64::from));
        fields.0
    }

    pub(crate) fn decode(row: Attributes) -> Result<Policy> {
        let mut fields = Fields(row);
        let percent = fields.take_text("target_percent")?;
        let percent = percent.parse().map_err(|_| corrupt(format!("{percent} as a percentage")))?;
        let alarms = fields.take_text("alarms")?;
        let alarm_ids: Vec<String> = alarms.split(' ').map(str::to_owned).collect();
        Ok(Policy {
            name: fields.take_text("name")?,
            created_at_ms: fields.take_number("created")?,
            settings: PolicySettings {
                target_percent: percent,
                scale_out_cooldown_s: fields.take_optional_number("scale_out_cooldown_s")?,
                scale_in_cooldown_s: fields.take_optional_number("scale_in_cooldown_s")?,
                disable_scale_in: fields
                    .take_optional_number("disable_scale_in")?
                    .map(|flag| flag != 0),
            },
            alarm_ids: alarm_ids
                .try_into()
                .map_err(|_| corrupt(format!("{alarms} as the ids of four alarms")))?,
        })
    }
}

impl PolicySettings {
    /// Only what was given: clients compare it with what they gave.
    fn describe(&self, name: &TargetName) -> Value {
        let mut described = json!({
            "TargetValue": self.target_percent,
            "PredefinedMetricSpecification": {"PredefinedMetricType": name.metric()},
        });
        if let Some(cooldown_s) = self.scale_out_cooldown_s {
            described["ScaleOutCooldown"] = cooldown_s.into();
        }
        if let Some(cooldown_s) = self.scale_in_cooldown_s {
            described["ScaleInCooldown"] = cooldown_s.into();
        }
        if let Some(disabled) = self.disable_scale_in {
            described["DisableScaleIn"] = disabled.into();
        }
        described
    }
}
