//! Why an alarm is in its state, in CloudWatch's words.

use serde_json::{Value as Json, json};
use zenobe_engine::clock::utc;

use super::StateValue;
use super::configuration::{AlarmInput, Configuration};

/// The model allows reasons 4,000 characters.
const RECENT_POINTS_MAX: usize = 100;

/// The values that a state follows from: those of the evaluated periods, the latest first.
pub struct Evidence<'e> {
    pub configuration: &'e Configuration,
    pub to: StateValue,
    /// The beginnings of periods and their values.
    pub points: &'e [(u64, f64)],
    pub missing: u64,
    pub now_ms: u64,
}

impl Evidence<'_> {
    pub fn text(&self) -> String {
        let Configuration { comparison, threshold, .. } = self.configuration;
        let missing = self.missing;
        let shown: Vec<String> = self.points.iter().take(5).map(point).collect();
        if self.to == StateValue::InsufficientData || shown.is_empty() {
            let count = self.missing.max(1);
            let (noun, verb) = plural(count);
            return match self.to {
                StateValue::InsufficientData => {
                    format!("Insufficient Data: {count} {noun} {verb} unknown.")
                }
                _ => format!(
                    "Threshold Crossed: no datapoints were received for {count} {} and {count} missing {noun} {verb} treated as [{}].",
                    if count == 1 { "period" } else { "periods" },
                    if self.to == StateValue::Alarm { "Breaching" } else { "NonBreaching" }
                ),
            };
        }
        let is_breached = |(_, value): &&(u64, f64)| comparison.is_breached(*value, *threshold);
        let breaching = self.points.iter().filter(is_breached).count();
        let total = self.points.len();
        let (count, not) = match self.to {
            StateValue::Alarm => (breaching, ""),
            _ => (total - breaching, "not "),
        };
        let verb = if count == 1 { "was" } else { "were" };
        let needed = match self.to {
            StateValue::Alarm => self.configuration.datapoints_to_alarm(),
            _ => {
                self.configuration.evaluation_periods - self.configuration.datapoints_to_alarm() + 1
            }
        };
        let filled = if missing > 0 {
            format!(" {missing} missing datapoints were treated as the alarm says.")
        } else {
            String::new()
        };
        format!(
            "Threshold Crossed: {count} out of the last {total} datapoints [{}] {verb} {not}{} the threshold ({}) (minimum {needed} datapoint{} for {} -> {} transition).{filled}",
            shown.join(", "),
            comparison.text(),
            decimal(*threshold),
            if needed == 1 { "" } else { "s" },
            if self.to == StateValue::Alarm { "OK" } else { "ALARM" },
            self.to.name(),
        )
    }

    /// The member StateReasonData.
    pub fn data(&self) -> String {
        let Configuration { target, threshold, .. } = self.configuration;
        let evaluated =
            |(at_ms, value): &(u64, f64)| json!({"timestamp": zoned(*at_ms), "value": value});
        let recent = self.points[..self.points.len().min(RECENT_POINTS_MAX)].iter();
        let mut data = json!({
            "version": "1.0",
            "queryDate": zoned(self.now_ms),
            "period": target.period_s(),
            "recentDatapoints": recent.rev().map(|(_, value)| value).collect::<Vec<_>>(),
            "threshold": threshold,
            "evaluatedDatapoints": self.points.iter().take(20).map(evaluated).collect::<Vec<Json>>(),
        });
        if let Some((at_ms, _)) = self.points.last() {
            data["startDate"] = json!(zoned(*at_ms));
        }
        if let AlarmInput::Metric(metric) = target {
            data["statistic"] = json!(metric.statistic_name);
            if let Some(unit) = metric.unit {
                data["unit"] = json!(unit.name());
            }
        }
        data.to_string()
    }
}

fn plural(count: u64) -> (&'static str, &'static str) {
    if count == 1 { ("datapoint", "was") } else { ("datapoints", "were") }
}

/// `5.0 (18/11/26 03:04:00)`
fn point((at_ms, value): &(u64, f64)) -> String {
    let at = utc(*at_ms);
    let (hour, minute, second) = at.time().as_hms();
    let (year, month, day) = (at.year() % 100, u8::from(at.month()), at.day());
    let date = format!("{day:02}/{month:02}/{year:02} {hour:02}:{minute:02}:{second:02}");
    format!("{} ({date})", decimal(*value))
}

/// With a point, whether or not it is needed.
fn decimal(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { value.to_string() }
}

/// `2026-11-18T03:04:05.000+0000`
pub fn zoned(at_ms: u64) -> String {
    zenobe_engine::clock::iso8601_without_zone(at_ms) + "+0000"
}
