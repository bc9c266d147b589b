//! The labels of GetMetricData's results, with their dynamic parts such as `${PROP('Dim.TableName')}`.

use zenobe_engine::schema::Namespace;

use super::super::math::Points;
use super::super::queries::{LABEL_LENGTH_MAX, MetricDataQuery, QuerySource};

pub fn label(query: &MetricDataQuery, points: &Points, namespace: &Namespace) -> String {
    let default = match &query.source {
        QuerySource::Metric(metric) => metric.metric.name.as_str(),
        QuerySource::Expression { .. } => query.id.as_str(),
    };
    let Some(label) = &query.label else { return default.to_owned() };
    let mut out = String::new();
    let mut rest = label.as_str();
    // A part may expand to more than its name. Once the label is too long, the rest stays as it is.
    while out.len() < LABEL_LENGTH_MAX
        && let Some((before, after)) = rest.split_once("${")
    {
        out.push_str(before);
        let Some((part, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let known = match part.trim() {
            "LABEL" => Some(default.to_owned()),
            part => of_points(part, points).or_else(|| property(part, query, namespace)),
        };
        // An unknown part stays as it is.
        out.push_str(&known.unwrap_or_else(|| format!("${{{part}}}")));
        rest = behind;
    }
    out + rest
}

fn of_points(part: &str, points: &Points) -> Option<String> {
    let mut values = points.values().copied();
    let value = match part {
        "MAX" => values.reduce(f64::max),
        "MIN" => values.reduce(f64::min),
        "SUM" => Some(values.sum()),
        "AVG" => (!points.is_empty()).then(|| values.sum::<f64>() / points.len() as f64),
        "LAST" => values.next_back(),
        "FIRST" => values.next(),
        _ => return None,
    };
    Some(value.map_or("--".to_owned(), |value| value.to_string()))
}

fn property(part: &str, query: &MetricDataQuery, namespace: &Namespace) -> Option<String> {
    let quoted = part.strip_prefix("PROP(")?.strip_suffix(')')?;
    let name = quoted.trim().trim_matches(['\'', '"']);
    let metric = match &query.source {
        QuerySource::Metric(metric) => Some(metric),
        QuerySource::Expression { .. } => None,
    };
    match name {
        "AccountId" => Some(namespace.account.clone()),
        "Region" => Some(namespace.region.clone()),
        "Namespace" => Some(metric?.metric.namespace.clone()),
        "MetricName" => Some(metric?.metric.name.clone()),
        "Stat" => Some(metric?.statistic_name.clone()),
        "Period" => Some(metric?.period_s.to_string()),
        _ => {
            let dimension = metric?.metric.dimension(name.strip_prefix("Dim.")?);
            Some(dimension.unwrap_or_default().to_owned())
        }
    }
}
