//! Which series there are: a row for each, written when the series begins and once in each hour with
//! data.

use zenobe_engine::error::{Error, Result};
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::{RowOwner, ServiceRow};
use zenobe_value::{AttributeValue, Attributes, Number};

use super::super::metric::{Dimension, Metric};
use super::{Storage, keys};

/// How many rows are read at once.
const ROWS_AT_ONCE: usize = 500;

/// A series, as the catalogue knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    pub metric: Metric,
    /// The last hour with data, since the epoch.
    pub last_hour: u64,
}

impl Series {
    pub fn to_fields(&self) -> Attributes {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let dimensions = self.metric.dimensions.iter().flat_map(|it| [&it.name, &it.value]);
        let dimensions = dimensions.map(|it| text(it)).collect();
        [
            ("namespace", text(&self.metric.namespace)),
            ("name", text(&self.metric.name)),
            ("dimensions", AttributeValue::L(dimensions)),
            ("last_hour", AttributeValue::N(Number::from(self.last_hour))),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    pub fn from_fields(fields: &Attributes) -> Result<Series> {
        let corrupt = || Error::Corrupt { detail: "a row of the metrics' catalogue".to_owned() };
        let text = |value: &AttributeValue| match value {
            AttributeValue::S(text) => Some(text.clone()),
            _ => None,
        };
        let read = || {
            let AttributeValue::L(parts) = fields.get("dimensions")? else { return None };
            let parts = parts.iter().map(text).collect::<Option<Vec<String>>>()?;
            let dimensions = parts
                .chunks_exact(2)
                .map(|pair| Dimension { name: pair[0].clone(), value: pair[1].clone() });
            let metric = Metric {
                namespace: text(fields.get("namespace")?)?,
                name: text(fields.get("name")?)?,
                dimensions: dimensions.collect(),
            };
            let AttributeValue::N(last_hour) = fields.get("last_hour")? else { return None };
            let last_hour = u64::try_from(last_hour.to_i64()?).ok()?;
            Some(Series { metric, last_hour })
        };
        read().ok_or_else(corrupt)
    }
}

/// Which series to list, and where to start.
#[derive(Debug, Default)]
pub struct SeriesFilter<'f> {
    pub namespace: Option<&'f str>,
    pub name: Option<&'f str>,
    /// The key after which to continue.
    pub after: Option<Vec<u8>>,
}

impl Storage {
    /// Up to `series_max` series that pass the filter, and the key of the last one if there are more.
    pub async fn list(
        &self,
        namespace: &Namespace,
        filter: SeriesFilter<'_>,
        series_max: usize,
        passes: impl Fn(&Series) -> bool,
    ) -> Result<(Vec<Series>, Option<Vec<u8>>)> {
        let mut range =
            keys::catalogue(filter.namespace, filter.name.filter(|_| filter.namespace.is_some()));
        if let Some(after) = filter.after {
            range.start = range.start.max([&after[..], &[0]].concat());
        }
        let mut found: Vec<Series> = Vec::new();
        let mut last = None;
        while range.start < range.end {
            let rows = self.rows(namespace, range.clone()).await?;
            for ServiceRow { key, fields } in &rows {
                let series = Series::from_fields(fields)?;
                let has_name = filter.name.is_none_or(|name| series.metric.name == name)
                    && filter.namespace.is_none_or(|it| series.metric.namespace == it);
                if !has_name || !passes(&series) {
                    continue;
                }
                if found.len() == series_max {
                    return Ok((found, last));
                }
                found.push(series);
                last = Some(key.clone());
            }
            match rows.last() {
                Some(row) if rows.len() == ROWS_AT_ONCE => {
                    range.start = [&row.key[..], &[0]].concat();
                }
                _ => break,
            }
        }
        Ok((found, None))
    }

    pub(super) async fn rows(
        &self,
        namespace: &Namespace,
        range: std::ops::Range<Vec<u8>>,
    ) -> Result<Vec<ServiceRow>> {
        self.engine.service_rows(RowOwner::Metrics, namespace, range, ROWS_AT_ONCE).await
    }

    pub(super) const ROWS_AT_ONCE: usize = ROWS_AT_ONCE;
}
