//! The rows of alarms: `1` and the name. Their history is beside them ([`super::history`]).

use zenobe_engine::error::{Error, Result};
use zenobe_engine::lease::Lease;
use zenobe_engine::row::Fields;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::{RowChange, RowOwner, ServiceRow};
use zenobe_value::Attributes;

use super::super::wire::{Members, Value, cbor};
use super::configuration::Configuration;
use super::{Alarm, AlarmState, Alarms, StateValue};

/// How many alarms a namespace may have, as on AWS.
pub const ALARMS_MAX: usize = 5_000;

const ALARM: u8 = 1;
/// A row may be a hundred kilobytes long.
const ROWS_AT_ONCE: usize = 50;

/// Some alarms in the order of their names.
pub struct AlarmPage {
    pub alarms: Vec<Alarm>,
    /// Whether more alarms pass the filter.
    pub has_more: bool,
}

impl Alarms {
    pub async fn get(&self, namespace: &Namespace, name: &str) -> Result<Option<Alarm>> {
        let row = self.engine.service_row(RowOwner::Alarms, namespace, &key(name)).await?;
        row.map(|fields| from_fields(name, fields)).transpose()
    }

    /// How many alarms there are, without decoding them.
    pub async fn count(&self, namespace: &Namespace) -> Result<usize> {
        let mut range = vec![ALARM]..vec![ALARM + 1];
        let mut count = 0;
        loop {
            let rows = self
                .engine
                .service_rows(RowOwner::Alarms, namespace, range.clone(), ROWS_AT_ONCE)
                .await?;
            count += rows.len();
            match rows.last() {
                Some(last) if rows.len() == ROWS_AT_ONCE && count < ALARMS_MAX => {
                    range.start = [&last.key[..], &[0]].concat();
                }
                _ => return Ok(count),
            }
        }
    }

    /// Up to `alarms_max` alarms that pass the filter, after a name.
    pub async fn list(
        &self,
        namespace: &Namespace,
        after: Option<&str>,
        alarms_max: usize,
        passes: impl Fn(&Alarm) -> bool,
    ) -> Result<AlarmPage> {
        let start = after.map_or(vec![ALARM], |name| [&key(name)[..], &[0]].concat());
        let mut range = start..vec![ALARM + 1];
        let mut alarms = Vec::new();
        loop {
            let rows = self
                .engine
                .service_rows(RowOwner::Alarms, namespace, range.clone(), ROWS_AT_ONCE)
                .await?;
            let next = rows.last().filter(|_| rows.len() == ROWS_AT_ONCE);
            let next = next.map(|row| [&row.key[..], &[0]].concat());
            for ServiceRow { key, fields } in rows {
                let name = str::from_utf8(&key[1..]).map_err(|_| corrupt("name"))?;
                let alarm = from_fields(name, fields)?;
                if !passes(&alarm) {
                    continue;
                }
                if alarms.len() == alarms_max {
                    return Ok(AlarmPage { alarms, has_more: true });
                }
                alarms.push(alarm);
            }
            match next {
                Some(next) => range.start = next,
                None => return Ok(AlarmPage { alarms, has_more: false }),
            }
        }
    }

    /// Changes an alarm, or creates one. `change` returns the new alarm, or `None` to leave it unchanged, and may
    /// be called more than once. Returns the alarm before and after.
    pub async fn change(
        &self,
        namespace: &Namespace,
        name: &str,
        lease: &Lease,
        change: impl Fn(Option<&Alarm>) -> Option<Alarm> + Send + Sync,
    ) -> Result<(Option<Alarm>, Option<Alarm>)> {
        let decide = |row: Option<Attributes>| {
            let before = match row.map(|fields| from_fields(name, fields)).transpose() {
                Ok(before) => before,
                Err(error) => return (RowChange::Keep, Err(error)),
            };
            let after = change(before.as_ref());
            let row = after.as_ref().map_or(RowChange::Keep, |it| RowChange::Put(to_fields(it)));
            (row, Ok((before, after)))
        };
        let owner = RowOwner::Alarms;
        self.engine.change_service_row(owner, namespace, &key(name), lease, decide).await?
    }

    /// Deletes an alarm, and returns it.
    pub async fn delete(&self, namespace: &Namespace, name: &str) -> Result<Option<Alarm>> {
        let decide = |row: Option<Attributes>| (RowChange::Delete, row);
        let (owner, lease) = (RowOwner::Alarms, Lease::default());
        let row =
            self.engine.change_service_row(owner, namespace, &key(name), &lease, decide).await?;
        row.map(|fields| from_fields(name, fields)).transpose()
    }
}

fn key(name: &str) -> Vec<u8> {
    [&[ALARM], name.as_bytes()].concat()
}

fn to_fields(alarm: &Alarm) -> Attributes {
    let Alarm { configuration, configured_ms, state, tags, .. } = alarm;
    let mut fields = Fields::default();
    let rendered = cbor::encode(&Value::Structure(configuration.render()));
    fields.bytes("configuration", &rendered);
    fields.number("configured_ms", *configured_ms);
    fields.text("state", state.value.name());
    fields.text("reason", &state.reason);
    fields.optional_text("reason_data", state.reason_data.as_deref());
    fields.number("updated_ms", state.updated_ms);
    fields.number("transitioned_ms", state.transitioned_ms);
    fields.texts("tags", tags);
    fields.0
}

fn from_fields(name: &str, fields: Attributes) -> Result<Alarm> {
    let mut fields = Fields(fields);
    let configuration = cbor::decode(&fields.take_bytes("configuration")?);
    let configuration = configuration.map_err(|error| corrupt(error.0))?;
    let configuration = Configuration::read(Members::of(&configuration));
    let configuration = configuration.map_err(|fault| corrupt(&fault.message))?;
    let value = StateValue::parse(&fields.take_text("state")?);
    let state = AlarmState {
        value: value.ok_or_else(|| corrupt("state"))?,
        reason: fields.take_text("reason")?,
        reason_data: fields.take_optional_text("reason_data")?,
        updated_ms: fields.take_number("updated_ms")?,
        transitioned_ms: fields.take_number("transitioned_ms")?,
    };
    let configured_ms = fields.take_number("configured_ms")?;
    let tags = fields.take_texts("tags")?;
    Ok(Alarm { name: name.to_owned(), configuration, configured_ms, state, tags })
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { detail: format!("the row of an alarm: {what}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_alarm_survives_its_row() {
        let request = Value::Structure(vec![
            ("Namespace".into(), "Test".into()),
            ("MetricName".into(), "m".into()),
            ("ExtendedStatistic".into(), "p99.9".into()),
            ("Period".into(), Value::Integer(300)),
            ("EvaluationPeriods".into(), Value::Integer(2)),
            ("Threshold".into(), Value::Float(1.5)),
            ("ComparisonOperator".into(), "LessThanThreshold".into()),
            ("TreatMissingData".into(), "breaching".into()),
            ("AlarmActions".into(), Value::List(vec!["arn:aws:sns:r:1:t".into()])),
        ]);
        let alarm = Alarm {
            name: "é".to_owned(),
            configuration: Configuration::read(Members::of(&request)).unwrap(),
            configured_ms: 7,
            state: AlarmState { reason_data: Some("{}".into()), ..AlarmState::initial(5) },
            tags: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        assert_eq!(from_fields("é", to_fields(&alarm)).unwrap(), alarm);
        assert!(from_fields("é", Attributes::default()).is_err());
    }
}
