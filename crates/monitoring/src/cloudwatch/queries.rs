//! The queries of GetMetricData and of alarms over several metrics.

use std::collections::HashMap;
use std::sync::Arc;

use zenobe_engine::schema::Namespace;

use super::error::CloudWatchError;
use super::math::{self, Budget, Expression, Operand, Points, Scope};
use super::metric::{Metric, Unit, check_length};
use super::statistics::{Statistic, StatisticSet};
use super::storage::{Range, Storage};
use super::wire::{Members, Structure, Value};

/// How many queries a request may have.
const QUERIES_MAX: usize = 500;
/// The model has no limit for labels; this is the one of expressions.
pub const LABEL_LENGTH_MAX: usize = 2_048;
/// How many values a request may read. AWS returns at most 100,800 in a page.
const VALUES_MAX: usize = 500_000;
/// How many values the expressions of a request may compute, intermediate ones included.
const COMPUTED_VALUES_MAX: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct MetricDataQuery {
    pub id: String,
    pub source: QuerySource,
    pub label: Option<String>,
    pub returns_data: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QuerySource {
    Metric(MetricStatistic),
    Expression { text: String, parsed: Expression },
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricStatistic {
    pub metric: Metric,
    pub period_s: u64,
    pub statistic: Statistic,
    /// As the request spelt it.
    pub statistic_name: String,
    pub unit: Option<Unit>,
}

/// Reads `MetricDataQueries` or `Metrics`.
pub fn read_all(given: &[Members<'_>]) -> Result<Vec<MetricDataQuery>, CloudWatchError> {
    if given.len() > QUERIES_MAX {
        let message = format!(
            "The collection MetricDataQueries must not have a size greater than {QUERIES_MAX}."
        );
        return Err(CloudWatchError::validation(message));
    }
    let queries = given.iter().map(|members| read(*members)).collect::<Result<Vec<_>, _>>()?;
    for (position, query) in queries.iter().enumerate() {
        if queries[..position].iter().any(|other| other.id == query.id) {
            let message = format!(
                "The values for parameter id in parameter MetricDataQueries are not unique: {}",
                query.id
            );
            return Err(CloudWatchError::validation(message));
        }
    }
    let ids: Vec<&str> = queries.iter().map(|query| query.id.as_str()).collect();
    for query in &queries {
        let QuerySource::Expression { text, parsed } = &query.source else { continue };
        let mut mentioned = Vec::new();
        parsed.ids(&mut mentioned);
        if let Some(unknown) = mentioned.iter().find(|id| !ids.contains(id)) {
            return Err(expression_fault(text, &format!("Undefined variable: {unknown}")));
        }
    }
    Ok(queries)
}

fn read(members: Members<'_>) -> Result<MetricDataQuery, CloudWatchError> {
    let id = members.required_text("Id")?;
    check_length("Id", id, 255)?;
    let mut letters = id.chars();
    let is_valid = letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_valid {
        return Err(CloudWatchError::validation(format!(
            "Invalid metrics list: the id '{id}' must begin with a lowercase letter, and have letters, digits and underscores only"
        )));
    }
    let source = match (members.structure("MetricStat")?, members.text("Expression")?) {
        (Some(metric), None) => QuerySource::Metric(MetricStatistic::read(metric)?),
        (None, Some(text)) => {
            check_length("Expression", text, 2_048)?;
            let parsed = math::parse(text).map_err(|error| expression_fault(text, &error))?;
            QuerySource::Expression { text: text.to_owned(), parsed }
        }
        _ => {
            let message = format!(
                "Exactly one of the parameters MetricStat and Expression must be specified for the id {id}."
            );
            return Err(CloudWatchError::validation(message));
        }
    };
    if members.has("AccountId") {
        return Err(CloudWatchError::unsupported("Reading metrics of another account"));
    }
    Ok(MetricDataQuery {
        id: id.to_owned(),
        source,
        label: members.text("Label")?.map(str::to_owned),
        returns_data: members.flag("ReturnData")?.unwrap_or(true),
    })
}

/// Checks the labels of a new request. Stored alarms are not checked again.
pub fn check_labels(queries: &[MetricDataQuery]) -> Result<(), CloudWatchError> {
    let mut labels = queries.iter().filter_map(|query| query.label.as_deref());
    labels.try_for_each(|label| check_length("Label", label, LABEL_LENGTH_MAX))
}

impl MetricStatistic {
    fn read(members: Members<'_>) -> Result<MetricStatistic, CloudWatchError> {
        let metric = members.structure("Metric")?.ok_or_else(|| members.missing("Metric"))?;
        let statistic_name = members.required_text("Stat")?;
        Ok(MetricStatistic {
            metric: Metric::read(metric)?,
            period_s: read_period(members)?.ok_or_else(|| members.missing("Period"))?,
            statistic: Statistic::parse(statistic_name)?,
            statistic_name: statistic_name.to_owned(),
            unit: Unit::read(members)?,
        })
    }
}

/// The member `Period`: one of CloudWatch's fractions of a minute, or whole minutes.
pub fn read_period(members: Members<'_>) -> Result<Option<u64>, CloudWatchError> {
    let Some(period) = members.integer("Period")? else { return Ok(None) };
    match u64::try_from(period) {
        Ok(period @ (1 | 5 | 10 | 20 | 30)) => Ok(Some(period)),
        Ok(period) if period > 0 && period % 60 == 0 && period <= 365 * 86_400 => Ok(Some(period)),
        _ => Err(CloudWatchError::invalid(
            "The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.",
        )),
    }
}

fn expression_fault(text: &str, error: &str) -> CloudWatchError {
    CloudWatchError::validation(format!("Error in expression '{text}': {error}"))
}

/// A span of time.
#[derive(Debug, Clone, Copy)]
pub struct TimeSpan {
    pub from_ms: u64,
    pub to_ms: u64,
}

/// The series of each query, in the order of the queries. An expression may have several.
pub async fn evaluate(
    storage: &Storage,
    namespace: &Arc<Namespace>,
    queries: &[MetricDataQuery],
    span: TimeSpan,
) -> Result<Vec<Vec<Points>>, CloudWatchError> {
    let mut series: HashMap<String, Vec<Points>> = HashMap::new();
    let mut metrics = Vec::new();
    let mut values = 0;
    let mut period_ms = 0;
    for query in queries {
        let QuerySource::Metric(metric) = &query.source else { continue };
        let points = read_points(storage, namespace, metric, span).await?;
        values += points.len();
        if values > VALUES_MAX {
            return Err(CloudWatchError::combination(
                "The request reads too many data points; ask for fewer metrics, a shorter time or longer periods.",
            ));
        }
        period_ms = period_ms.max(metric.period_s * 1_000);
        metrics.push(query.id.clone());
        series.insert(query.id.clone(), vec![points]);
    }
    let period_ms = if period_ms == 0 { 60_000 } else { period_ms };
    let from_ms = span.from_ms - span.from_ms % period_ms;
    let periods = usize::try_from((span.to_ms.saturating_sub(from_ms)) / period_ms);
    if periods.unwrap_or(usize::MAX) > VALUES_MAX {
        return Err(CloudWatchError::combination("The request has too many periods."));
    }
    let budget = &Budget::new(COMPUTED_VALUES_MAX);
    let mut waiting: Vec<&MetricDataQuery> = queries
        .iter()
        .filter(|query| matches!(query.source, QuerySource::Expression { .. }))
        .collect();
    while !waiting.is_empty() {
        let count = waiting.len();
        let mut still = Vec::new();
        for query in waiting {
            let QuerySource::Expression { text, parsed } = &query.source else { continue };
            let mut ids = Vec::new();
            parsed.ids(&mut ids);
            if ids.iter().any(|id| !series.contains_key(*id)) {
                still.push(query);
                continue;
            }
            let to_ms = span.to_ms;
            let scope =
                Scope { series: &series, metrics: &metrics, from_ms, to_ms, period_ms, budget };
            let result = match math::evaluate(parsed, &scope) {
                Ok(Operand::Series(points)) => Ok(vec![points]),
                Ok(Operand::Array(several)) => Ok(several),
                Ok(Operand::Scalar(value)) => scope.constant(value).map(|points| vec![points]),
                Err(error) => Err(error),
            };
            let result = result.map_err(|error| expression_fault(text, &error))?;
            series.insert(query.id.clone(), result);
        }
        if still.len() == count {
            return Err(CloudWatchError::validation(
                "The expressions refer to each other in a circle.",
            ));
        }
        waiting = still;
    }
    Ok(queries.iter().map(|query| series.remove(&query.id).unwrap_or_default()).collect())
}

/// The values of a metric, in periods that begin at multiples of their length.
pub async fn read_points(
    storage: &Storage,
    namespace: &Arc<Namespace>,
    metric: &MetricStatistic,
    span: TimeSpan,
) -> Result<Points, CloudWatchError> {
    let period_ms = metric.period_s * 1_000;
    let from_ms = span.from_ms - span.from_ms % period_ms;
    let range = Range { metric: &metric.metric, unit: metric.unit, from_ms, to_ms: span.to_ms };
    let periods = storage.read_merged(namespace, range, period_ms).await?;
    let value = |(at_ms, it): (u64, StatisticSet)| Some((at_ms, it.get(metric.statistic)?));
    Ok(periods.into_iter().filter_map(value).filter(|(_, value)| value.is_finite()).collect())
}

impl MetricDataQuery {
    pub fn render(&self) -> Structure {
        let mut members: Structure = vec![("Id".into(), Value::from(self.id.as_str()))];
        match &self.source {
            QuerySource::Metric(metric) => {
                let mut rendered: Structure = vec![
                    ("Metric".into(), Value::Structure(metric.metric.render())),
                    ("Period".into(), Value::Integer(metric.period_s as i64)),
                    ("Stat".into(), Value::from(metric.statistic_name.as_str())),
                ];
                rendered.extend(metric.unit.map(|unit| ("Unit".into(), Value::from(unit.name()))));
                members.push(("MetricStat".into(), Value::Structure(rendered)));
            }
            QuerySource::Expression { text, .. } => {
                members.push(("Expression".into(), Value::from(text.as_str())));
            }
        }
        members.extend(self.label.as_deref().map(|label| ("Label".into(), Value::from(label))));
        members.push(("ReturnData".into(), Value::Bool(self.returns_data)));
        members
    }
}
