//! Which state an alarm's data points mean, by CloudWatch's rules. Points may be missing.

use super::super::metric::DYNAMODB;
use super::StateValue;
use super::configuration::{Configuration, MissingData};

/// How many periods beyond those that an alarm evaluates are searched for real data.
pub const EXTRA_PERIODS: u64 = 2;

/// CloudWatch always ignores missing data of DynamoDB, whatever an alarm asks for.
pub fn missing_data(configuration: &Configuration) -> MissingData {
    let metrics = configuration.target.metrics();
    match metrics.iter().any(|metric| metric.metric.namespace == DYNAMODB) {
        true => MissingData::Ignore,
        false => configuration.missing_data.unwrap_or(MissingData::Missing),
    }
}

/// The state that follows from the values of the periods, the latest last. `None` keeps the state.
pub fn judge(
    configuration: &Configuration,
    missing_data: MissingData,
    values: &[Option<f64>],
) -> Option<StateValue> {
    let needed = usize::try_from(configuration.evaluation_periods).unwrap_or(usize::MAX);
    let to_alarm = usize::try_from(configuration.datapoints_to_alarm()).unwrap_or(usize::MAX);
    // Real data counts first, even if it is older; missing periods are filled in only as often as necessary.
    let real: Vec<f64> = values.iter().rev().flatten().copied().take(needed).collect();
    let is_breached =
        |value: &&f64| configuration.comparison.is_breached(**value, configuration.threshold);
    let breaching = real.iter().filter(is_breached).count();
    let missing = needed - real.len();
    if breaching >= to_alarm {
        return Some(StateValue::Alarm);
    }
    if missing == 0 {
        return Some(StateValue::Ok);
    }
    let is_all_breaching = breaching == real.len();
    match missing_data {
        MissingData::Breaching if breaching + missing >= to_alarm => Some(StateValue::Alarm),
        MissingData::Breaching | MissingData::NotBreaching => Some(StateValue::Ok),
        MissingData::Ignore if is_all_breaching => None,
        MissingData::Missing if real.is_empty() => Some(StateValue::InsufficientData),
        MissingData::Missing if is_all_breaching => Some(StateValue::Alarm),
        MissingData::Ignore | MissingData::Missing => Some(StateValue::Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::wire::{Members, Value};
    use super::*;

    fn configuration(periods: i64, to_alarm: i64) -> Configuration {
        let request = Value::Structure(vec![
            ("Namespace".into(), "Test".into()),
            ("MetricName".into(), "m".into()),
            ("Statistic".into(), "Sum".into()),
            ("Period".into(), Value::Integer(60)),
            ("EvaluationPeriods".into(), Value::Integer(periods)),
            ("DatapointsToAlarm".into(), Value::Integer(to_alarm)),
            ("Threshold".into(), Value::Float(1.0)),
            ("ComparisonOperator".into(), "GreaterThanOrEqualToThreshold".into()),
        ]);
        Configuration::read(Members::of(&request)).unwrap()
    }

    /// Judges periods written as CloudWatch's documentation does: `0` is fine, `X` breaches, `-` is
    /// missing. The answers are those for missing, ignore, breaching and not breaching.
    fn check(configuration: &Configuration, periods: &str, expected: [&str; 4]) {
        let value = |period| match period {
            '0' => Some(0.0),
            'X' => Some(5.0),
            _ => None,
        };
        let values: Vec<Option<f64>> = periods.chars().map(value).collect();
        let treatments = [
            MissingData::Missing,
            MissingData::Ignore,
            MissingData::Breaching,
            MissingData::NotBreaching,
        ];
        let found = treatments.map(|missing_data| {
            judge(configuration, missing_data, &values).map_or("retain", StateValue::name)
        });
        assert_eq!(found, expected, "{periods}");
    }

    #[test]
    fn the_tables_of_the_documentation_hold() {
        let three_of_three = configuration(3, 3);
        check(&three_of_three, "0-X-X", ["OK", "OK", "OK", "OK"]);
        check(&three_of_three, "0----", ["OK", "OK", "OK", "OK"]);
        check(&three_of_three, "-----", ["INSUFFICIENT_DATA", "retain", "ALARM", "OK"]);
        check(&three_of_three, "0XX-X", ["ALARM", "ALARM", "ALARM", "ALARM"]);
        check(&three_of_three, "--X--", ["ALARM", "retain", "ALARM", "OK"]);
        let two_of_three = configuration(3, 2);
        check(&two_of_three, "0-X-X", ["ALARM", "ALARM", "ALARM", "ALARM"]);
        check(&two_of_three, "00X0X", ["ALARM", "ALARM", "ALARM", "ALARM"]);
        check(&two_of_three, "0-X--", ["OK", "OK", "ALARM", "OK"]);
        check(&two_of_three, "----0", ["OK", "OK", "ALARM", "OK"]);
        check(&two_of_three, "---X-", ["ALARM", "retain", "ALARM", "OK"]);
    }
}
