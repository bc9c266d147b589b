//! Scheduled actions: when they run, and what they set.

mod cron;
mod zone;

use serde_json::{Value, json};
use time::{Date, Month};
use zenobe_engine::error::Result;
use zenobe_engine::row::{Fields, corrupt};
use zenobe_engine::schema::Namespace;
use zenobe_value::Attributes;

use self::cron::Cron;
use crate::json::seconds;
use crate::resource::{SERVICE_NAMESPACE, TargetName};
use crate::target::ScalableTarget;

pub(crate) use zone::Zone;

const SECOND_MS: i64 = 1_000;
const DAY_MS: i64 = 24 * 3_600 * SECOND_MS;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScheduledAction {
    pub name: String,
    pub created_at_ms: u64,
    /// Nothing runs for times before this.
    pub updated_at_ms: u64,
    pub schedule: Schedule,
    pub start_ms: Option<u64>,
    pub end_ms: Option<u64>,
    pub min: Option<u64>,
    pub max: Option<u64>,
}

/// When to run, as it was given and as it is used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    pub text: String,
    /// As it was given.
    pub zone: Option<String>,
    rule: Rule,
    offset_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// Once, at a local time.
    At(i64),
    Rate {
        period_ms: u64,
    },
    Cron(Box<Cron>),
}

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScheduleFault {
    Syntax(&'static str),
    UnknownZone,
}

impl Schedule {
    pub(crate) fn parse(text: &str, zone: Option<&str>) -> Result<Schedule, ScheduleFault> {
        let inside =
            |kind: &str| text.trim().strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')');
        let rule = if let Some(inside) = inside("at") {
            let at = parse_local_time(inside);
            Rule::At(at.ok_or(ScheduleFault::Syntax("expected at(yyyy-mm-ddThh:mm:ss)"))?)
        } else if let Some(inside) = inside("rate") {
            let rate = parse_rate(inside);
            rate.ok_or(ScheduleFault::Syntax(
                "expected rate(value unit) with minutes, hours or days",
            ))?
        } else if let Some(inside) = inside("cron") {
            Rule::Cron(Box::new(Cron::parse(inside).map_err(ScheduleFault::Syntax)?))
        } else {
            return Err(ScheduleFault::Syntax("expected at(…), rate(…) or cron(…)"));
        };
        // A rate has no use for its zone, but Terraform's provider always gives one.
        let offset = zone.map_or(Some(Zone::UTC), Zone::parse).ok_or(ScheduleFault::UnknownZone)?;
        let (text, zone) = (text.to_owned(), zone.map(str::to_owned));
        Ok(Schedule { text, zone, rule, offset_ms: offset.ahead_ms() })
    }
}

impl ScheduledAction {
    /// The last time in `(after_ms, until_ms]` at which it is to run.
    pub(crate) fn latest_within(&self, after_ms: u64, until_ms: u64) -> Option<u64> {
        let after_ms = after_ms.max(self.updated_at_ms);
        // A start belongs to the time in which the action runs, and so does an end.
        let after_ms =
            self.start_ms.map_or(after_ms, |start_ms| after_ms.max(start_ms.saturating_sub(1)));
        let until_ms = self.end_ms.map_or(until_ms, |end_ms| until_ms.min(end_ms));
        if after_ms >= until_ms {
            return None;
        }
        let offset_ms = self.schedule.offset_ms;
        let local = |at_ms: u64| i64::try_from(at_ms).unwrap_or(i64::MAX / 2) + offset_ms;
        let utc = |local_ms: i64| u64::try_from(local_ms - offset_ms).unwrap_or(0);
        match &self.schedule.rule {
            Rule::At(local_ms) => {
                let at_ms = utc(*local_ms);
                (after_ms < at_ms && at_ms <= until_ms).then_some(at_ms)
            }
            Rule::Rate { period_ms } => {
                // Without a start, the first run is one period after the action was put.
                let first_ms = self.start_ms.unwrap_or(self.updated_at_ms + period_ms);
                let periods = until_ms.checked_sub(first_ms)? / period_ms;
                let at_ms = first_ms + periods * period_ms;
                (at_ms > after_ms).then_some(at_ms)
            }
            Rule::Cron(cron) => cron.latest_within(local(after_ms), local(until_ms)).map(utc),
        }
    }

    pub(crate) fn describe(
        &self,
        target: &ScalableTarget,
        name: &TargetName,
        namespace: &Namespace,
    ) -> Value {
        let action = &self.name;
        let part = format!("scheduledActionName/{action}");
        let mut described = json!({
            "ScheduledActionName": action,
            "ScheduledActionARN": target.arn_of_part("scheduledAction", name, &part, namespace),
            "ServiceNamespace": SERVICE_NAMESPACE,
            "Schedule": self.schedule.text,
            "ResourceId": name.resource_id(),
            "ScalableDimension": name.dimension(),
            "ScalableTargetAction": {},
            "CreationTime": seconds(self.created_at_ms),
        });
        if let Some(zone) = &self.schedule.zone {
            described["Timezone"] = zone.as_str().into();
        }
        for (member, at_ms) in [("StartTime", self.start_ms), ("EndTime", self.end_ms)] {
            if let Some(at_ms) = at_ms {
                described[member] = seconds(at_ms);
            }
        }
        for (member, units) in [("MinCapacity", self.min), ("MaxCapacity", self.max)] {
            if let Some(units) = units {
                described["ScalableTargetAction"][member] = units.into();
            }
        }
        described
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("name", &self.name);
        fields.number("created", self.created_at_ms);
        fields.number("updated", self.updated_at_ms);
        fields.text("schedule", &self.schedule.text);
        fields.optional_text("zone", self.schedule.zone.as_deref());
        fields.optional_number("start", self.start_ms);
        fields.optional_number("end", self.end_ms);
        fields.optional_number("min", self.min);
        fields.optional_number("max", self.max);
        fields.0
    }

    pub(crate) fn decode(row: Attributes) -> Result<ScheduledAction> {
        let mut fields = Fields(row);
        let text = fields.take_text("schedule")?;
        let zone = fields.take_optional_text("zone")?;
        let schedule = Schedule::parse(&text, zone.as_deref());
        Ok(ScheduledAction {
            name: fields.take_text("name")?,
            created_at_ms: fields.take_number("created")?,
            updated_at_ms: fields.take_number("updated")?,
            schedule: schedule.map_err(|_| corrupt(format!("{text} as a schedule")))?,
            start_ms: fields.take_optional_number("start")?,
            end_ms: fields.take_optional_number("end")?,
            min: fields.take_optional_number("min")?,
            max: fields.take_optional_number("max")?,
        })
    }
}

/// `yyyy-mm-ddThh:mm:ss`, in milliseconds since the epoch.
fn parse_local_time(text: &str) -> Option<i64> {
    let (date, clock) = text.trim().split_once('T')?;
    let date: [i32; 3] = numbers(date, '-')?;
    let [hours, minutes, seconds]: [i32; 3] = numbers(clock, ':')?;
    let in_range =
        (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
    let month = Month::try_from(u8::try_from(date[1]).ok()?).ok()?;
    let date = Date::from_calendar_date(date[0], month, u8::try_from(date[2]).ok()?).ok()?;
    let midnight_ms = date.midnight().assume_utc().unix_timestamp() * SECOND_MS;
    let seconds = i64::from(hours * 3_600 + minutes * 60 + seconds);
    in_range.then_some(midnight_ms + seconds * SECOND_MS)
}

fn numbers(text: &str, separator: char) -> Option<[i32; 3]> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split(separator).map(|part| Some(part).filter(is_number)?.parse().ok());
    parts.collect::<Option<Vec<i32>>>()?.try_into().ok()
}

fn parse_rate(text: &str) -> Option<Rule> {
    let mut words = text.split_whitespace();
    let (value, unit) = (words.next()?, words.next()?);
    let value: u64 = value.parse().ok().filter(|value| (1..=1_000_000).contains(value))?;
    let unit_ms = match unit {
        "minute" | "minutes" => 60 * 1_000,
        "hour" | "hours" => 3_600 * 1_000,
        "day" | "days" => DAY_MS as u64,
        _ => return None,
    };
    words.next().is_none().then_some(Rule::Rate { period_ms: value * unit_ms })
}

#[cfg(test)]
mod tests;
