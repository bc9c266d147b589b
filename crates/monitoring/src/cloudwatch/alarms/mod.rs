//! Alarms: what they watch, the state that they are in, and how they got there.

pub mod configuration;
pub mod history;
mod missing_data;
pub mod next_state;
mod reason;
mod rows;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use zenobe_engine::Engine;
use zenobe_engine::schema::Namespace;

use super::wire::{Structure, Value};
use configuration::Configuration;

pub use rows::{ALARMS_MAX, AlarmPage};

#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    pub name: String,
    pub configuration: Configuration,
    pub configured_ms: u64,
    pub state: AlarmState,
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmState {
    pub value: StateValue,
    pub reason: String,
    /// JSON.
    pub reason_data: Option<String>,
    pub updated_ms: u64,
    /// When the value changed last.
    pub transitioned_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateValue {
    Ok,
    Alarm,
    InsufficientData,
}

impl StateValue {
    pub const ALL: [StateValue; 3] =
        [StateValue::InsufficientData, StateValue::Alarm, StateValue::Ok];

    pub fn name(self) -> &'static str {
        match self {
            StateValue::Ok => "OK",
            StateValue::Alarm => "ALARM",
            StateValue::InsufficientData => "INSUFFICIENT_DATA",
        }
    }

    pub fn parse(name: &str) -> Option<StateValue> {
        StateValue::ALL.into_iter().find(|value| value.name() == name)
    }
}

impl AlarmState {
    pub fn initial(now_ms: u64) -> AlarmState {
        AlarmState {
            value: StateValue::InsufficientData,
            reason: "Unchecked: Initial alarm creation".to_owned(),
            reason_data: None,
            updated_ms: now_ms,
            transitioned_ms: now_ms,
        }
    }
}

impl Alarm {
    pub fn arn(namespace: &Namespace, name: &str) -> String {
        let Namespace { account, region } = namespace;
        format!("arn:aws:cloudwatch:{region}:{account}:alarm:{name}")
    }

    /// As DescribeAlarms shows it.
    pub fn render(&self, namespace: &Namespace) -> Structure {
        let AlarmState { value, reason, reason_data, updated_ms, transitioned_ms } = &self.state;
        let mut members: Structure = vec![
            ("AlarmName".into(), Value::from(self.name.as_str())),
            ("AlarmArn".into(), Value::from(Alarm::arn(namespace, &self.name))),
            ("AlarmConfigurationUpdatedTimestamp".into(), Value::time(self.configured_ms)),
            ("StateValue".into(), Value::from(value.name())),
            ("StateReason".into(), Value::from(reason.as_str())),
            ("StateUpdatedTimestamp".into(), Value::time(*updated_ms)),
            ("StateTransitionedTimestamp".into(), Value::time(*transitioned_ms)),
        ];
        let data = reason_data.as_deref().map(Value::from);
        members.extend(data.map(|data| ("StateReasonData".into(), data)));
        members.extend(self.configuration.render());
        members
    }
}

/// The alarms of all namespaces.
pub struct Alarms {
    engine: Arc<Engine>,
    /// Changes of state, by the state that they led to: in the order of [`StateValue::ALL`].
    transitions: [AtomicU64; 3],
    /// Actions that a change of state asked for. None is carried out.
    actions_skipped: AtomicU64,
    /// Items of the history since the start; it may wrap around.
    items_recorded: AtomicU32,
}

impl Alarms {
    pub fn new(engine: Arc<Engine>) -> Alarms {
        Alarms {
            engine,
            transitions: Default::default(),
            actions_skipped: AtomicU64::new(0),
            items_recorded: AtomicU32::new(0),
        }
    }

    pub fn transitions(&self) -> impl Iterator<Item = (StateValue, u64)> {
        let counts = self.transitions.iter().map(|count| count.load(Ordering::Relaxed));
        StateValue::ALL.into_iter().zip(counts)
    }

    pub fn actions_skipped(&self) -> u64 {
        self.actions_skipped.load(Ordering::Relaxed)
    }
}
