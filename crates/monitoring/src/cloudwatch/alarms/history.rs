//! What happened to alarms. Items are stored with the newest first: `2`, the time counted backwards, a number
//! that orders what this node recorded in one millisecond, and something to tell nodes apart.

use std::sync::atomic::Ordering;

use serde_json::{Value as Json, json};
use zenobe_engine::error::{Error, Result};
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::{RowOwner, ServiceRow};
use zenobe_value::{AttributeValue, Attributes};

use super::{Alarm, AlarmState, Alarms};

const HISTORY: u8 = 2;
const ROWS_AT_ONCE: usize = 500;
/// Items are kept for as long as on AWS, and at most this many in a namespace.
pub const ITEMS_MAX: usize = 20_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const RETENTION_MS: u64 = 30 * DAY_MS;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryItem {
    pub alarm: String,
    pub at_ms: u64,
    pub kind: HistoryKind,
    pub summary: String,
    /// JSON.
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryKind {
    ConfigurationUpdate,
    StateUpdate,
    Action,
}

impl HistoryKind {
    pub const ALL: [HistoryKind; 3] =
        [HistoryKind::ConfigurationUpdate, HistoryKind::StateUpdate, HistoryKind::Action];

    pub fn name(self) -> &'static str {
        match self {
            HistoryKind::ConfigurationUpdate => "ConfigurationUpdate",
            HistoryKind::StateUpdate => "StateUpdate",
            HistoryKind::Action => "Action",
        }
    }

    pub fn parse(name: &str) -> Option<HistoryKind> {
        HistoryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl HistoryItem {
    pub fn configured(alarm: &Alarm, what: &str, at_ms: u64) -> HistoryItem {
        let data = json!({
            "version": "1.0",
            "type": what,
            "alarm": {
                "alarmName": alarm.name,
                "threshold": alarm.configuration.threshold,
                "evaluationPeriods": alarm.configuration.evaluation_periods,
                "stateValue": alarm.state.value.name(),
            },
        });
        let done = match what {
            "Create" => "created",
            "Delete" => "deleted",
            _ => "updated",
        };
        HistoryItem {
            alarm: alarm.name.clone(),
            at_ms,
            kind: HistoryKind::ConfigurationUpdate,
            summary: cut(&format!("Alarm \"{}\" {done}", alarm.name), 255),
            data: data.to_string(),
        }
    }

    pub fn changed(alarm: &str, old: &AlarmState, new: &AlarmState) -> HistoryItem {
        let state = |state: &AlarmState| {
            let mut shown = json!({"stateValue": state.value.name(), "stateReason": state.reason});
            let data = state.reason_data.as_deref();
            if let Some(data) = data.and_then(|data| serde_json::from_str::<Json>(data).ok()) {
                shown["stateReasonData"] = data;
            }
            shown
        };
        let data = json!({"version": "1.0", "oldState": state(old), "newState": state(new)});
        HistoryItem {
            alarm: alarm.to_owned(),
            at_ms: new.updated_ms,
            kind: HistoryKind::StateUpdate,
            summary: format!("Alarm updated from {} to {}", old.value.name(), new.value.name()),
            data: cut(&data.to_string(), 4_095),
        }
    }

    /// An action of the alarm, which this server does not carry out.
    pub fn skipped(alarm: &str, action: &str, new: &AlarmState) -> HistoryItem {
        let data = json!({
            "actionState": "Failed",
            "stateUpdateTimestamp": new.updated_ms,
            "notificationResource": action,
            "error": "Zenobe does not carry out the actions of alarms",
        });
        HistoryItem {
            alarm: alarm.to_owned(),
            at_ms: new.updated_ms,
            kind: HistoryKind::Action,
            summary: cut(&format!("Failed to execute action {action}"), 255),
            data: data.to_string(),
        }
    }

    fn to_fields(&self) -> Attributes {
        let fields = [
            ("alarm", &self.alarm),
            ("kind", &self.kind.name().to_owned()),
            ("summary", &self.summary),
            ("data", &self.data),
        ];
        fields.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.clone()))).into()
    }

    fn from_row(row: &ServiceRow) -> Option<HistoryItem> {
        let text = |name: &str| match row.fields.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        let backwards = row.key.get(1..)?.first_chunk()?;
        Some(HistoryItem {
            alarm: text("alarm")?,
            at_ms: u64::MAX - u64::from_be_bytes(*backwards),
            kind: HistoryKind::parse(&text("kind")?)?,
            summary: text("summary")?,
            data: text("data")?,
        })
    }
}

/// The beginning of a text, in characters.
fn cut(text: &str, length_max: usize) -> String {
    text.chars().take(length_max).collect()
}

impl Alarms {
    pub async fn record(
        &self,
        namespace: &Namespace,
        lease: &Lease,
        items: &[HistoryItem],
    ) -> Result<()> {
        let row = |item: &HistoryItem| {
            let mut key = start_of(item.at_ms);
            let number = self.items_recorded.fetch_add(1, Ordering::Relaxed);
            key.extend((u32::MAX - number).to_be_bytes());
            key.extend(self.engine.new_uuid().bytes().take(8));
            (key, Some(item.to_fields()))
        };
        let rows = items.iter().map(row).collect();
        self.engine.write_service_rows(RowOwner::Alarms, namespace, lease, rows).await
    }

    /// The items of a period that pass the filter, newest first, with their keys: at most `items_max`, starting
    /// after the key `after`.
    pub async fn history(
        &self,
        namespace: &Namespace,
        (from_ms, to_ms): (u64, u64),
        after: Option<&[u8]>,
        items_max: usize,
        passes: impl Fn(&HistoryItem) -> bool,
    ) -> Result<Vec<(Vec<u8>, HistoryItem)>> {
        let mut start = start_of(to_ms);
        if let Some(after) = after {
            start = start.max([after, &[0]].concat());
        }
        let mut end = start_of(from_ms);
        end.extend([0xff; 9]);
        let mut found = Vec::new();
        while start < end && found.len() < items_max {
            let range = start..end.clone();
            let rows =
                self.engine.service_rows(RowOwner::Alarms, namespace, range, ROWS_AT_ONCE).await?;
            for row in &rows {
                let item = HistoryItem::from_row(row).ok_or_else(|| Error::Corrupt {
                    detail: "a row of the history of alarms".to_owned(),
                })?;
                if found.len() < items_max && passes(&item) {
                    found.push((row.key.clone(), item));
                }
            }
            match rows.last() {
                Some(row) if rows.len() == ROWS_AT_ONCE => {
                    start = [&row.key[..], &[0]].concat();
                }
                _ => break,
            }
        }
        Ok(found)
    }

    /// Deletes items that are too old or too many.
    pub async fn trim_history(&self, namespace: &Namespace, lease: &Lease) -> Result<()> {
        let now_ms = self.engine.clock().now_ms();
        let all = (0, u64::MAX);
        let items = self.history(namespace, all, None, ITEMS_MAX + 1, |_| true).await?;
        let kept_since_ms = now_ms.saturating_sub(RETENTION_MS);
        let too_many = items.get(ITEMS_MAX - 1).map(|(key, _)| [&key[..], &[0]].concat());
        let too_old = start_of(kept_since_ms.saturating_sub(1));
        let start = too_many.map_or(too_old.clone(), |too_many| too_many.min(too_old));
        if items.last().is_none_or(|(key, _)| *key < start) {
            return Ok(());
        }
        let range = start..vec![HISTORY + 1];
        self.engine.delete_service_rows(RowOwner::Alarms, namespace, lease, range).await
    }
}

fn start_of(at_ms: u64) -> Vec<u8> {
    [&[HISTORY][..], &(u64::MAX - at_ms).to_be_bytes()].concat()
}
