//! Scaling activities: what was done to a target, why, and how it ended.

use serde_json::{Value, json};
use zenobe_engine::error::Result;
use zenobe_engine::row::{Fields, corrupt};
use zenobe_value::Attributes;

use crate::json::seconds;
use crate::keys;
use crate::policy::{AlarmKind, Policy};
use crate::resource::{SERVICE_NAMESPACE, TargetName};

/// How long activities can be described: six weeks.
pub(crate) const RETENTION_MS: u64 = 42 * 24 * 3_600 * 1_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Activity {
    pub id: String,
    pub name: TargetName,
    pub at_ms: u64,
    pub description: String,
    pub cause: String,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Successful {
        message: String,
    },
    Failed {
        message: String,
    },
    /// An alarm asked for something that can't or need not be done.
    NotScaled(NotScaled),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotScaled {
    pub reason: AlreadyAt,
    /// The limit, or the present capacity, that is the reason.
    pub units: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlreadyAt {
    Maximum,
    Minimum,
    Desired,
}

impl AlreadyAt {
    const ALL: [AlreadyAt; 3] = [AlreadyAt::Maximum, AlreadyAt::Minimum, AlreadyAt::Desired];

    pub(crate) fn code(self) -> &'static str {
        match self {
            AlreadyAt::Maximum => "AlreadyAtMaxCapacity",
            AlreadyAt::Minimum => "AlreadyAtMinCapacity",
            AlreadyAt::Desired => "AlreadyAtDesiredCapacity",
        }
    }

    fn member(self) -> &'static str {
        match self {
            AlreadyAt::Maximum => "MaxCapacity",
            AlreadyAt::Minimum => "MinCapacity",
            AlreadyAt::Desired => "CurrentCapacity",
        }
    }
}

// ---- texts --------------------------------------------------------------------------------------

pub(crate) fn setting_units(name: &TargetName, units: u64) -> String {
    format!("Setting {} to {units}.", name.units_name())
}

pub(crate) fn units_outcome(name: &TargetName, units: u64, outcome: Result<(), String>) -> Outcome {
    let what = name.units_name();
    match outcome {
        Ok(()) => Outcome::Successful {
            message: format!(
                "Successfully set {what} to {units}. Change successfully fulfilled by dynamodb."
            ),
        },
        Err(reason) => Outcome::Failed {
            message: format!("Failed to set {what} to {units}. Reason: {reason}"),
        },
    }
}

pub(crate) fn alarm_cause(name: &TargetName, policy: &Policy, alarm: AlarmKind) -> String {
    let (alarm, policy) = (policy.alarm_name(name, alarm), &policy.name);
    format!("monitor alarm {alarm} in state ALARM triggered policy {policy}")
}

/// What a scheduled action sets: `min capacity to 5 and max capacity to 10`.
pub(crate) fn limits_text(min: Option<u64>, max: Option<u64>) -> String {
    let min = min.map(|units| format!("min capacity to {units}"));
    let max = max.map(|units| format!("max capacity to {units}"));
    min.into_iter().chain(max).collect::<Vec<_>>().join(" and ")
}

// ---- rows ---------------------------------------------------------------------------------------

impl Activity {
    pub(crate) fn key(&self) -> Vec<u8> {
        keys::activity(self.at_ms, &self.id)
    }

    pub(crate) fn describe(&self) -> Value {
        let mut described = json!({
            "ActivityId": self.id,
            "ServiceNamespace": SERVICE_NAMESPACE,
            "ResourceId": self.name.resource_id(),
            "ScalableDimension": self.name.dimension(),
            "Description": self.description,
            "Cause": self.cause,
            "StartTime": seconds(self.at_ms),
            "EndTime": seconds(self.at_ms),
        });
        match &self.outcome {
            Outcome::Successful { message } => {
                described["StatusCode"] = "Successful".into();
                described["StatusMessage"] = message.as_str().into();
            }
            Outcome::Failed { message } => {
                described["StatusCode"] = "Failed".into();
                described["StatusMessage"] = message.as_str().into();
            }
            Outcome::NotScaled(NotScaled { reason, units }) => {
                described["StatusCode"] = "Failed".into();
                let reason = json!({"Code": reason.code(), reason.member(): units});
                described["NotScaledReasons"] = json!([reason]);
            }
        }
        described
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("id", &self.id);
        fields.text("resource", &self.name.resource_id());
        fields.text("dimension", self.name.dimension());
        fields.number("at", self.at_ms);
        fields.text("description", &self.description);
        fields.text("cause", &self.cause);
        match &self.outcome {
            Outcome::Successful { message } => fields.text("successful", message),
            Outcome::Failed { message } => fields.text("failed", message),
            Outcome::NotScaled(NotScaled { reason, units }) => {
                fields.text("not_scaled", reason.code());
                fields.number("units", *units);
            }
        }
        fields.0
    }

    pub(crate) fn decode(row: Attributes) -> Result<Activity> {
        let mut fields = Fields(row);
        let (resource, dimension) = (fields.take_text("resource")?, fields.take_text("dimension")?);
        let name = TargetName::parse(&resource, &dimension);
        let name = name.ok_or_else(|| corrupt(format!("{resource} in a scaling activity")))?;
        let outcome = if let Some(message) = fields.take_optional_text("successful")? {
            Outcome::Successful { message }
        } else if let Some(message) = fields.take_optional_text("failed")? {
            Outcome::Failed { message }
        } else {
            let code = fields.take_text("not_scaled")?;
            let reason = AlreadyAt::ALL.into_iter().find(|reason| reason.code() == code);
            let reason = reason.ok_or_else(|| corrupt(format!("{code} in a scaling activity")))?;
            Outcome::NotScaled(NotScaled { reason, units: fields.take_number("units")? })
        };
        Ok(Activity {
            id: fields.take_text("id")?,
            name,
            at_ms: fields.take_number("at")?,
            description: fields.take_text("description")?,
            cause: fields.take_text("cause")?,
            outcome,
        })
    }
}
