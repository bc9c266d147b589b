//! What an alarm watches: the members of PutMetricAlarm, which DescribeAlarms shows again and the
//! alarm's row keeps.

use super::super::error::CloudWatchError;
use super::super::metric::{Dimension, Metric, Unit, check_length};
use super::super::queries::{self, MetricDataQuery, MetricStatistic, QuerySource, read_period};
use super::super::statistics::{SIMPLE, Statistic};
use super::super::wire::{Members, Structure, Value, cbor};

#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    pub description: Option<String>,
    pub actions_enabled: bool,
    pub ok_actions: Vec<String>,
    pub alarm_actions: Vec<String>,
    pub insufficient_data_actions: Vec<String>,
    pub target: AlarmInput,
    pub evaluation_periods: u64,
    pub datapoints_to_alarm: Option<u64>,
    pub threshold: f64,
    pub comparison: Comparison,
    pub missing_data: Option<MissingData>,
    pub low_sample_count: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AlarmInput {
    Metric(MetricStatistic),
    /// One of them returns data.
    Queries(Vec<MetricDataQuery>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    GreaterOrEqual,
    Greater,
    Less,
    LessOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingData {
    Breaching,
    NotBreaching,
    Ignore,
    Missing,
}

const COMPARISONS: [(&str, Comparison); 4] = [
    ("GreaterThanOrEqualToThreshold", Comparison::GreaterOrEqual),
    ("GreaterThanThreshold", Comparison::Greater),
    ("LessThanThreshold", Comparison::Less),
    ("LessThanOrEqualToThreshold", Comparison::LessOrEqual),
];

/// These compare with the band of an anomaly detector.
const BAND_COMPARISONS: [&str; 3] = [
    "LessThanLowerOrGreaterThanUpperThreshold",
    "LessThanLowerThreshold",
    "GreaterThanUpperThreshold",
];

const MISSING_DATA: [(&str, MissingData); 4] = [
    ("breaching", MissingData::Breaching),
    ("notBreaching", MissingData::NotBreaching),
    ("ignore", MissingData::Ignore),
    ("missing", MissingData::Missing),
];

/// Members of AWS's API that this server does not support.
const UNSUPPORTED: [&str; 6] = [
    "ThresholdMetricId",
    "EvaluationWindow",
    "WarmUpConfiguration",
    "EvaluationCriteria",
    "EvaluationInterval",
    "ActionConfiguration",
];

const ACTIONS_MAX: usize = 5;
/// How many queries an alarm may have. Each is evaluated every minute.
const QUERIES_MAX: usize = 20;
/// The model's limit for the length of an ARN.
const ACTION_LENGTH_MAX: usize = 1_024;
/// How large an alarm may be, as it is stored.
const SIZE_BYTES_MAX: usize = 64 << 10;
const DAY_S: u64 = 86_400;
/// Periods that data points can have and alarms can't.
const PERIODS_NEVER_S: [u64; 2] = [1, 5];

impl Comparison {
    pub fn is_breached(self, value: f64, threshold: f64) -> bool {
        match self {
            Comparison::GreaterOrEqual => value >= threshold,
            Comparison::Greater => value > threshold,
            Comparison::Less => value < threshold,
            Comparison::LessOrEqual => value <= threshold,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Comparison::GreaterOrEqual => "greater than or equal to",
            Comparison::Greater => "greater than",
            Comparison::Less => "less than",
            Comparison::LessOrEqual => "less than or equal to",
        }
    }

    fn read(members: Members<'_>) -> Result<Comparison, CloudWatchError> {
        let name = members.required_text("ComparisonOperator")?;
        if BAND_COMPARISONS.contains(&name) {
            return Err(CloudWatchError::unsupported(&format!(
                "The comparison {name} with an anomaly detection band"
            )));
        }
        let names = COMPARISONS.map(|(name, _)| name);
        let found = COMPARISONS.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, it)| *it)
            .ok_or_else(|| CloudWatchError::not_in_set("comparisonOperator", name, &names))
    }
}

impl Configuration {
    pub fn read(members: Members<'_>) -> Result<Configuration, CloudWatchError> {
        if let Some(name) = UNSUPPORTED.iter().find(|name| members.has(name)) {
            return Err(CloudWatchError::unsupported(&format!("The parameter {name} of an alarm")));
        }
        let configuration = Configuration {
            description: members.text("AlarmDescription")?.map(str::to_owned),
            actions_enabled: members.flag("ActionsEnabled")?.unwrap_or(true),
            ok_actions: read_actions(members, "OKActions")?,
            alarm_actions: read_actions(members, "AlarmActions")?,
            insufficient_data_actions: read_actions(members, "InsufficientDataActions")?,
            target: AlarmInput::read(members)?,
            evaluation_periods: read_positive(members, "EvaluationPeriods")?
                .ok_or_else(|| CloudWatchError::missing("EvaluationPeriods"))?,
            datapoints_to_alarm: read_positive(members, "DatapointsToAlarm")?,
            threshold: members.required_number("Threshold")?,
            comparison: Comparison::read(members)?,
            missing_data: read_missing_data(members)?,
            low_sample_count: read_low_sample_count(members)?,
        };
        configuration.check()?;
        Ok(configuration)
    }

    fn check(&self) -> Result<(), CloudWatchError> {
        if let Some(description) = &self.description {
            check_length("AlarmDescription", description, 1_024)?;
        }
        if !self.threshold.is_finite() {
            return Err(CloudWatchError::validation(
                "The parameter Threshold must be a finite number",
            ));
        }
        if self.datapoints_to_alarm.is_some_and(|count| count > self.evaluation_periods) {
            return Err(CloudWatchError::validation(
                "DatapointsToAlarm must be less than or equal to EvaluationPeriods",
            ));
        }
        let period_s = self.target.period_s();
        let range_s = period_s.saturating_mul(self.evaluation_periods);
        let range_s_max = if period_s < 3_600 { DAY_S } else { 7 * DAY_S };
        if range_s > range_s_max {
            return Err(CloudWatchError::validation(format!(
                "Metrics cannot be checked across more than {} (EvaluationPeriods * Period must be <= {range_s_max}).",
                if period_s < 3_600 { "a day" } else { "seven days" }
            )));
        }
        Ok(())
    }

    /// The limits of a new alarm. Alarms are not checked when they are read from their rows: one from
    /// before a limit must not make the others unreadable.
    pub fn check_limits(&self) -> Result<(), CloudWatchError> {
        if let AlarmInput::Queries(queries) = &self.target
            && queries.len() > QUERIES_MAX
        {
            return Err(CloudWatchError::validation(format!(
                "The collection Metrics must not have a size greater than {QUERIES_MAX}."
            )));
        }
        match &self.target {
            AlarmInput::Queries(queries) => queries::check_labels(queries)?,
            AlarmInput::Metric(metric) if PERIODS_NEVER_S.contains(&metric.period_s) => {
                return Err(CloudWatchError::validation(
                    "Period must be 10, 20, 30 or a multiple of 60",
                ));
            }
            AlarmInput::Metric(_) => {}
        }
        let metrics = self.target.metrics();
        metrics.iter().try_for_each(|metric| metric.metric.check_namespace())?;
        let actions = [
            ("OKActions", &self.ok_actions),
            ("AlarmActions", &self.alarm_actions),
            ("InsufficientDataActions", &self.insufficient_data_actions),
        ];
        for (name, actions) in actions {
            actions.iter().try_for_each(|it| check_length(name, it, ACTION_LENGTH_MAX))?;
        }
        match cbor::encode(&Value::Structure(self.render())).len() > SIZE_BYTES_MAX {
            true => Err(CloudWatchError::validation(format!(
                "The alarm is too large; it may have {SIZE_BYTES_MAX} bytes."
            ))),
            false => Ok(()),
        }
    }

    pub fn datapoints_to_alarm(&self) -> u64 {
        self.datapoints_to_alarm.unwrap_or(self.evaluation_periods)
    }

    pub fn render(&self) -> Structure {
        let mut members: Structure = vec![
            ("ActionsEnabled".into(), Value::Bool(self.actions_enabled)),
            ("OKActions".into(), Value::texts(&self.ok_actions)),
            ("AlarmActions".into(), Value::texts(&self.alarm_actions)),
            ("InsufficientDataActions".into(), Value::texts(&self.insufficient_data_actions)),
            ("EvaluationPeriods".into(), Value::Integer(self.evaluation_periods as i64)),
            ("Threshold".into(), Value::Float(self.threshold)),
            ("ComparisonOperator".into(), Value::from(name_of(&COMPARISONS, &self.comparison))),
        ];
        let mut add = |name: &'static str, value: Option<Value>| {
            members.extend(value.map(|value| (name.into(), value)));
        };
        add("AlarmDescription", self.description.as_deref().map(Value::from));
        add("DatapointsToAlarm", self.datapoints_to_alarm.map(|it| Value::Integer(it as i64)));
        add("TreatMissingData", self.missing_data.map(|it| name_of(&MISSING_DATA, &it).into()));
        add("EvaluateLowSampleCountPercentile", self.low_sample_count.as_deref().map(Value::from));
        members.extend(self.target.render());
        members
    }
}

impl AlarmInput {
    fn read(members: Members<'_>) -> Result<AlarmInput, CloudWatchError> {
        let given = members.structures("Metrics")?;
        if given.is_empty() {
            return read_metric(members).map(AlarmInput::Metric);
        }
        for name in ["MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Unit"]
        {
            if members.has(name) {
                return Err(CloudWatchError::combination(format!(
                    "The parameters Metrics and {name} must not be specified together."
                )));
            }
        }
        let queries = queries::read_all(&given)?;
        match queries.iter().filter(|query| query.returns_data).count() {
            1 => Ok(AlarmInput::Queries(queries)),
            _ => Err(CloudWatchError::validation(
                "Exactly one element of the metrics list must return data.",
            )),
        }
    }

    /// The period; of several metrics, the longest one.
    pub fn period_s(&self) -> u64 {
        match self {
            AlarmInput::Metric(metric) => metric.period_s,
            AlarmInput::Queries(queries) => {
                let period = |query: &MetricDataQuery| match &query.source {
                    QuerySource::Metric(metric) => Some(metric.period_s),
                    QuerySource::Expression { .. } => None,
                };
                queries.iter().filter_map(period).max().unwrap_or(60)
            }
        }
    }

    /// The metrics that the alarm watches.
    pub fn metrics(&self) -> Vec<MetricStatistic> {
        match self {
            AlarmInput::Metric(metric) => vec![metric.clone()],
            AlarmInput::Queries(queries) => {
                let metric = |query: &MetricDataQuery| match &query.source {
                    QuerySource::Metric(metric) => Some(metric.clone()),
                    QuerySource::Expression { .. } => None,
                };
                queries.iter().filter_map(metric).collect()
            }
        }
    }

    fn render(&self) -> Structure {
        let metric = match self {
            AlarmInput::Metric(metric) => metric,
            AlarmInput::Queries(queries) => {
                let queries = Value::structures(queries.iter().map(MetricDataQuery::render));
                return vec![("Metrics".into(), queries)];
            }
        };
        let statistic = match Statistic::simple(&metric.statistic_name) {
            Some(_) => "Statistic",
            None => "ExtendedStatistic",
        };
        let mut members: Structure = vec![
            ("MetricName".into(), Value::from(metric.metric.name.as_str())),
            ("Namespace".into(), Value::from(metric.metric.namespace.as_str())),
            (statistic.into(), Value::from(metric.statistic_name.as_str())),
            ("Dimensions".into(), Dimension::render_all(&metric.metric.dimensions)),
            ("Period".into(), Value::Integer(metric.period_s as i64)),
        ];
        members.extend(metric.unit.map(|unit| ("Unit".into(), Value::from(unit.name()))));
        members
    }
}

fn read_metric(members: Members<'_>) -> Result<MetricStatistic, CloudWatchError> {
    let (statistic, statistic_name) = match (
        members.text("Statistic")?,
        members.text("ExtendedStatistic")?,
    ) {
        (Some(name), None) => {
            let statistic = Statistic::simple(name);
            (
                statistic.ok_or_else(|| CloudWatchError::not_in_set("statistic", name, &SIMPLE))?,
                name,
            )
        }
        (None, Some(name)) => (Statistic::extended(name)?, name),
        _ => {
            return Err(CloudWatchError::combination(
                "Exactly one of the parameters Statistic and ExtendedStatistic must be specified.",
            ));
        }
    };
    let period_s = read_period(members)?.ok_or_else(|| CloudWatchError::missing("Period"))?;
    Ok(MetricStatistic {
        metric: Metric::read(members)?,
        period_s,
        statistic,
        statistic_name: statistic_name.to_owned(),
        unit: Unit::read(members)?,
    })
}

fn read_actions(members: Members<'_>, name: &str) -> Result<Vec<String>, CloudWatchError> {
    let actions = members.texts(name)?.unwrap_or_default();
    if actions.len() > ACTIONS_MAX {
        return Err(CloudWatchError::validation(format!(
            "The collection {name} must not have a size greater than {ACTIONS_MAX}."
        )));
    }
    if let Some(wrong) = actions.iter().find(|action| !action.starts_with("arn:")) {
        return Err(CloudWatchError::validation(format!("Invalid arn syntax: {wrong}")));
    }
    Ok(actions)
}

fn read_positive(members: Members<'_>, name: &str) -> Result<Option<u64>, CloudWatchError> {
    let Some(number) = members.integer(name)? else { return Ok(None) };
    match u64::try_from(number) {
        Ok(number) if (1..=DAY_S).contains(&number) => Ok(Some(number)),
        _ => {
            let constraint = "have value greater than or equal to 1";
            Err(CloudWatchError::violation(name, number, constraint))
        }
    }
}

fn read_missing_data(members: Members<'_>) -> Result<Option<MissingData>, CloudWatchError> {
    let Some(name) = members.text("TreatMissingData")? else { return Ok(None) };
    let found = MISSING_DATA.iter().find(|(known, _)| *known == name);
    let names = MISSING_DATA.map(|(name, _)| name);
    found
        .map(|(_, it)| Some(*it))
        .ok_or_else(|| CloudWatchError::not_in_set("treatMissingData", name, &names))
}

fn read_low_sample_count(members: Members<'_>) -> Result<Option<String>, CloudWatchError> {
    match members.text("EvaluateLowSampleCountPercentile")? {
        None => Ok(None),
        Some(name @ ("evaluate" | "ignore")) => Ok(Some(name.to_owned())),
        Some(name) => Err(CloudWatchError::not_in_set(
            "evaluateLowSampleCountPercentile",
            name,
            &["evaluate", "ignore"],
        )),
    }
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    names.iter().find(|(_, known)| known == value).map_or("", |(name, _)| name)
}
