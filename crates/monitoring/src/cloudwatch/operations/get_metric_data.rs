//! GetMetricData.

use super::super::error::CloudWatchError;
use super::super::math::Points;
use super::super::queries::{self, MetricDataQuery, TimeSpan};
use super::super::wire::{Members, Structure, Value};
use super::{Answered, Call, labels, tokens};

const POINTS_MAX: i64 = 100_800;

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let queries = queries::read_all(&members.structures("MetricDataQueries")?)?;
    queries::check_labels(&queries)?;
    if queries.is_empty() {
        return Err(CloudWatchError::missing("MetricDataQueries"));
    }
    let from_ms = members.required_timestamp_ms("StartTime")?;
    let to_ms = members.required_timestamp_ms("EndTime")?;
    if from_ms >= to_ms {
        let message = "The parameter StartTime must be less than the parameter EndTime.";
        return Err(CloudWatchError::validation(message));
    }
    if !queries.iter().any(|query| query.returns_data) {
        return Err(CloudWatchError::validation("At least one query must return data."));
    }
    let points_max = members.integer("MaxDatapoints")?.unwrap_or(POINTS_MAX);
    if !(1..=POINTS_MAX).contains(&points_max) {
        let message = format!("The parameter MaxDatapoints must be between 1 and {POINTS_MAX}.");
        return Err(CloudWatchError::validation(message));
    }
    let is_ascending = is_ascending(members)?;
    let start = members.text("NextToken")?.map(Position::read).transpose()?;
    let (storage, span) = (&call.cloudwatch.storage, TimeSpan { from_ms, to_ms });
    let series = queries::evaluate(storage, call.namespace, &queries, span).await?;
    let mut results = Vec::new();
    for (query, several) in queries.iter().zip(series).filter(|(query, _)| query.returns_data) {
        for points in several {
            results.push(ReturnedSeries::new(call, query, &points, is_ascending));
        }
    }
    let page = Page::cut(&results, start, points_max as usize, is_ascending)?;
    let mut result: Structure = vec![
        ("MetricDataResults".into(), Value::structures(page.results)),
        ("Messages".into(), Value::List(Vec::new())),
    ];
    result.extend(page.next.map(|next| ("NextToken".into(), Value::from(next.write()))));
    Ok(Some(result))
}

/// The member `ScanBy`. The newest come first unless it says otherwise.
pub fn is_ascending(members: Members<'_>) -> Result<bool, CloudWatchError> {
    match members.text("ScanBy")? {
        None | Some("TimestampDescending") => Ok(false),
        Some("TimestampAscending") => Ok(true),
        Some(other) => Err(CloudWatchError::not_in_set(
            "scanBy",
            other,
            &["TimestampDescending", "TimestampAscending"],
        )),
    }
}

/// The points of one result, in the order in which they are returned.
struct ReturnedSeries {
    id: String,
    label: String,
    points: Vec<(u64, f64)>,
}

impl ReturnedSeries {
    fn new(
        call: Call<'_>,
        query: &MetricDataQuery,
        points: &Points,
        is_ascending: bool,
    ) -> ReturnedSeries {
        let label = labels::label(query, points, call.namespace);
        let mut points: Vec<(u64, f64)> = points.iter().map(|(at, value)| (*at, *value)).collect();
        if !is_ascending {
            points.reverse();
        }
        ReturnedSeries { id: query.id.clone(), label, points }
    }

    fn render(&self, points: &[(u64, f64)], is_complete: bool) -> Structure {
        let status = if is_complete { "Complete" } else { "PartialData" };
        let times = points.iter().map(|(at, _)| Value::time(*at)).collect();
        let values = points.iter().map(|(_, value)| Value::Float(*value)).collect();
        vec![
            ("Id".into(), Value::from(self.id.as_str())),
            ("Label".into(), Value::from(self.label.as_str())),
            ("Timestamps".into(), Value::List(times)),
            ("Values".into(), Value::List(values)),
            ("StatusCode".into(), Value::from(status)),
        ]
    }
}

/// Where a page begins: in which result, and behind which of its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    result: u32,
    after_ms: Option<u64>,
}

struct Page {
    results: Vec<Structure>,
    next: Option<Position>,
}

impl Page {
    /// The results from a position on, until there are enough points.
    fn cut(
        results: &[ReturnedSeries],
        start: Option<Position>,
        points_max: usize,
        is_ascending: bool,
    ) -> Result<Page, CloudWatchError> {
        let start = start.unwrap_or(Position { result: 0, after_ms: None });
        let first = start.result as usize;
        if first >= results.len().max(1) {
            return Err(CloudWatchError::next_token());
        }
        let mut page = Page { results: Vec::new(), next: None };
        let mut left = points_max;
        for (number, series) in results.iter().enumerate().skip(first) {
            let after_ms = start.after_ms.filter(|_| number == first);
            let is_later = |at: u64| match after_ms {
                None => true,
                Some(after_ms) if is_ascending => at > after_ms,
                Some(after_ms) => at < after_ms,
            };
            let from = series.points.iter().position(|(at, _)| is_later(*at));
            let points = from.map_or(&[][..], |from| &series.points[from..]);
            let shown = &points[..points.len().min(left)];
            let is_complete = shown.len() == points.len();
            page.results.push(series.render(shown, is_complete));
            left -= shown.len();
            let result = number as u32;
            if !is_complete {
                let after_ms = shown.last().map(|(at, _)| *at).or(after_ms);
                page.next = Some(Position { result, after_ms });
                break;
            }
            if left == 0 && number + 1 < results.len() {
                page.next = Some(Position { result: result + 1, after_ms: None });
                break;
            }
        }
        Ok(page)
    }
}

impl Position {
    fn write(self) -> String {
        let mut bytes = self.result.to_be_bytes().to_vec();
        bytes.extend(self.after_ms.map(u64::to_be_bytes).into_iter().flatten());
        tokens::write(&bytes)
    }

    fn read(token: &str) -> Result<Position, CloudWatchError> {
        let bytes = tokens::read(token)?;
        let (result, rest) = bytes.split_first_chunk().ok_or_else(CloudWatchError::next_token)?;
        let after_ms = match rest.len() {
            0 => None,
            _ => Some(u64::from_be_bytes(
                rest.try_into().map_err(|_| CloudWatchError::next_token())?,
            )),
        };
        Ok(Position { result: u32::from_be_bytes(*result), after_ms })
    }
}
