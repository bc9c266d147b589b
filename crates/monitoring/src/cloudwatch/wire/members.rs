//! Typed access to the members of a request. As on CloudWatch, a member of the wrong type is refused,
//! and an unknown one is ignored.

use time::{Date, Month, PrimitiveDateTime, Time};

use super::super::error::CloudWatchError;
use super::{Structure, Value};

/// The members of a structure in a request.
#[derive(Debug, Clone, Copy)]
pub struct Members<'v> {
    fields: &'v Structure,
    path: MemberPath,
}

/// Where in the request a structure is: the members on the way to it, with positions in lists. Faults name
/// it as CloudWatch does, `MetricData.member.1.Dimensions.member.2.Value`.
#[derive(Debug, Clone, Copy, Default)]
struct MemberPath {
    steps: [(&'static str, Option<usize>); DEPTH_MAX],
    depth: usize,
}

/// No structure of the API lies deeper: MetricDataQueries, MetricStat, Metric, Dimensions.
const DEPTH_MAX: usize = 4;

impl MemberPath {
    /// A structure in here, if it is in a list with its position from 0.
    fn inside(mut self, name: &'static str, position: Option<usize>) -> MemberPath {
        if let Some(step) = self.steps.get_mut(self.depth) {
            *step = (name, position);
            self.depth += 1;
        }
        self
    }
}

impl<'v> Members<'v> {
    /// The members of a decoded request.
    pub fn of(request: &'v Value) -> Members<'v> {
        static NONE: Structure = Vec::new();
        match request {
            Value::Structure(fields) => Members { fields, path: MemberPath::default() },
            _ => Members { fields: &NONE, path: MemberPath::default() },
        }
    }

    /// The name of a member, with where it is.
    pub fn path(&self, name: &str) -> String {
        let mut path = String::new();
        for (step, position) in &self.path.steps[..self.path.depth] {
            path.push_str(step);
            if let Some(position) = position {
                path.push_str(&format!(".member.{}", position + 1));
            }
            path.push('.');
        }
        path + name
    }

    pub fn missing(&self, name: &str) -> CloudWatchError {
        CloudWatchError::missing(&self.path(name))
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).filter(|value| **value != Value::Null)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn text(&self, name: &str) -> Result<Option<&'v str>, CloudWatchError> {
        self.get(name).map(|value| as_text(name, value)).transpose()
    }

    pub fn required_text(&self, name: &str) -> Result<&'v str, CloudWatchError> {
        let text = self.text(name)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| self.missing(name))
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>, CloudWatchError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::Integer(number) => Some(*number),
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                Some(*number as i64)
            }
            Value::Form(text) => text.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| mistyped(name, "an integer"))
    }

    pub fn number(&self, name: &str) -> Result<Option<f64>, CloudWatchError> {
        self.get(name).map(|value| as_number(name, value)).transpose()
    }

    pub fn required_number(&self, name: &str) -> Result<f64, CloudWatchError> {
        self.number(name)?.ok_or_else(|| self.missing(name))
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, CloudWatchError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value {
            Value::Bool(flag) => Ok(Some(*flag)),
            Value::Form(text) if text == "true" => Ok(Some(true)),
            Value::Form(text) if text == "false" => Ok(Some(false)),
            _ => Err(mistyped(name, "a boolean")),
        }
    }

    /// Milliseconds since the epoch. Times before it are its beginning.
    pub fn timestamp_ms(&self, name: &str) -> Result<Option<u64>, CloudWatchError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let at_ms = match value {
            Value::Timestamp(at_ms) => Some(*at_ms),
            Value::Integer(seconds) => Some(seconds.saturating_mul(1_000)),
            Value::Float(seconds) if seconds.is_finite() => {
                Some((seconds * 1_000.0).round() as i64)
            }
            Value::Form(text) | Value::Text(text) => parse_iso8601(text),
            _ => None,
        };
        let at_ms = at_ms.ok_or_else(|| mistyped(name, "a timestamp"))?;
        Ok(Some(u64::try_from(at_ms).unwrap_or(0)))
    }

    pub fn required_timestamp_ms(&self, name: &str) -> Result<u64, CloudWatchError> {
        self.timestamp_ms(name)?.ok_or_else(|| self.missing(name))
    }

    fn list(&self, name: &str) -> Result<Option<&'v [Value]>, CloudWatchError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            // This is how a form encodes an empty list.
            Some(Value::Form(text)) if text.is_empty() => Ok(Some(&[])),
            Some(_) => Err(mistyped(name, "a list")),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, CloudWatchError> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let texts = list.iter().map(|value| as_text(name, value).map(str::to_owned));
        texts.collect::<Result<_, _>>().map(Some)
    }

    pub fn numbers(&self, name: &str) -> Result<Option<Vec<f64>>, CloudWatchError> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        list.iter().map(|value| as_number(name, value)).collect::<Result<_, _>>().map(Some)
    }

    pub fn structure(&self, name: &'static str) -> Result<Option<Members<'v>>, CloudWatchError> {
        let path = self.path.inside(name, None);
        self.get(name).map(|value| as_structure(path, name, value)).transpose()
    }

    pub fn structures(&self, name: &'static str) -> Result<Vec<Members<'v>>, CloudWatchError> {
        let list = self.list(name)?.unwrap_or_default().iter().enumerate();
        let read =
            |(position, value)| as_structure(self.path.inside(name, Some(position)), name, value);
        list.map(read).collect()
    }
}

fn as_text<'v>(name: &str, value: &'v Value) -> Result<&'v str, CloudWatchError> {
    match value {
        Value::Text(text) | Value::Form(text) => Ok(text),
        _ => Err(mistyped(name, "a string")),
    }
}

fn as_number(name: &str, value: &Value) -> Result<f64, CloudWatchError> {
    match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::Form(text) => text.parse().map_err(|_| mistyped(name, "a number")),
        // JSON has no other form for these. Callers check that a number is finite.
        Value::Text(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(mistyped(name, "a number")),
        },
        _ => Err(mistyped(name, "a number")),
    }
}

fn as_structure<'v>(
    path: MemberPath,
    name: &str,
    value: &'v Value,
) -> Result<Members<'v>, CloudWatchError> {
    match value {
        Value::Structure(fields) => Ok(Members { fields, path }),
        _ => Err(mistyped(name, "a structure")),
    }
}

fn mistyped(name: &str, expected: &str) -> CloudWatchError {
    CloudWatchError::serialization(format!("the member {name} is not {expected}"))
}

/// `2026-11-18T03:04:05Z`, with a fraction or an offset if need be, or seconds since the epoch.
fn parse_iso8601(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds.is_finite().then(|| (seconds * 1_000.0).round() as i64);
    }
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00Z"));
    let mut parts = date.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = Month::try_from(parts.next()?.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year, month, parts.next()?.parse().ok()?).ok()?;
    let (clock, offset_minutes) = split_offset(clock)?;
    let (seconds_text, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = seconds_text.splitn(3, ':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    let time = Time::from_hms(hour, minute, second).ok()?;
    let milliseconds = match fraction {
        "" => 0,
        // An exponent would parse too, and could exceed one second.
        digits if !digits.bytes().all(|it| it.is_ascii_digit()) => return None,
        digits => (format!("0.{digits}").parse::<f64>().ok()? * 1_000.0) as i64,
    };
    let at_s = PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp();
    Some((at_s - offset_minutes * 60) * 1_000 + milliseconds)
}

/// The time of day, and its offset from UTC in minutes.
fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(utc) = clock.strip_suffix('Z') {
        return Some((utc, 0));
    }
    let Some(at) = clock.rfind(['+', '-']) else { return Some((clock, 0)) };
    let (clock, offset) = clock.split_at(at);
    let (sign, digits) = offset.split_at(1);
    let digits: String = digits.chars().filter(|it| *it != ':').collect();
    let number = match digits.bytes().all(|it| it.is_ascii_digit()) {
        true => digits.parse::<i64>().ok()?,
        false => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return None,
    };
    let minutes_total = hours * 60 + minutes;
    Some((clock, if sign == "-" { -minutes_total } else { minutes_total }))
}
