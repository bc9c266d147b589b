//! The keys of metrics' rows.
//!
//! | key | row |
//! |---|---|
//! | `1`, day (2 bytes), series (16), hour (1), unit (1), node (8) | an hour of a series ([`super::hour`]) |
//! | `2`, hash of the namespace (8), hash of the name (8), series (16) | what the series is ([`super::catalogue`]) |
//!
//! Days come first, so that whole days can be trimmed. A node has rows of its own, so it never waits
//! for another to write them.

use std::ops::Range;

use super::super::metric::{Metric, SeriesId, Unit};

const POINTS: u8 = 1;
const CATALOGUE: u8 = 2;

pub const HOUR_MS: u64 = 60 * 60 * 1_000;
pub const DAY_MS: u64 = 24 * HOUR_MS;
pub const MINUTE_MS: u64 = 60_000;

/// Where a point is stored, but for its minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HourKey {
    pub series: SeriesId,
    /// Hours since the epoch.
    pub hour: u64,
    pub unit: Unit,
}

/// Identifies the node that wrote a row.
pub type NodeId = [u8; 8];

impl HourKey {
    pub fn bytes(&self, node: NodeId) -> Vec<u8> {
        let mut key = hour_start(&self.series, self.hour);
        key.push(self.unit.byte());
        key.extend(node);
        key
    }

    /// From the key of a stored row.
    pub fn parse(key: &[u8]) -> Option<HourKey> {
        let (&[POINTS, high, low], rest) = key.split_first_chunk()? else { return None };
        let (series, rest) = rest.split_first_chunk()?;
        let (&[hour, unit], rest) = rest.split_first_chunk()?;
        let hour = u64::from(u16::from_be_bytes([high, low])) * 24 + u64::from(hour);
        (rest.len() == size_of::<NodeId>()).then_some(())?;
        Some(HourKey { series: *series, hour, unit: Unit::from_byte(unit)? })
    }
}

fn hour_start(series: &SeriesId, hour: u64) -> Vec<u8> {
    let mut key = day_start(hour / 24);
    key.extend(series);
    key.push((hour % 24) as u8);
    key
}

fn day_start(day: u64) -> Vec<u8> {
    // The year 2149 is the last.
    let day = u16::try_from(day).unwrap_or(u16::MAX);
    [&[POINTS][..], &day.to_be_bytes()].concat()
}

/// The rows of a series between two hours of one day, the last one included.
pub fn hours(series: &SeriesId, first: u64, last: u64) -> Range<Vec<u8>> {
    let mut end = hour_start(series, last);
    // No hour of a day is the last number that a byte can have.
    *end.last_mut().expect("an hour is the end of the key") += 1;
    hour_start(series, first)..end
}

/// The rows of all days before one.
pub fn days_before(day: u64) -> Range<Vec<u8>> {
    vec![POINTS]..day_start(day)
}

pub fn catalogue_row(metric: &Metric, series: &SeriesId) -> Vec<u8> {
    let mut key = vec![CATALOGUE];
    key.extend(Metric::place(&metric.namespace, Some(&metric.name)));
    key.extend(series);
    key
}

/// The catalogue's rows of a namespace and a name, or more of them.
pub fn catalogue(namespace: Option<&str>, name: Option<&str>) -> Range<Vec<u8>> {
    let mut start = vec![CATALOGUE];
    start.extend(namespace.map(|namespace| Metric::place(namespace, name)).unwrap_or_default());
    let mut end = start.clone();
    end.extend([0xff; 33]);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_series_lie_in_the_order_of_time() {
        let series = [7; 16];
        let key = |hour| HourKey { series, hour, unit: Unit::COUNT };
        let bytes = |hour| key(hour).bytes([9; 8]);
        assert_eq!(HourKey::parse(&bytes(490_000)), Some(key(490_000)));
        assert!(bytes(490_000) < bytes(490_001));
        let range = hours(&series, 489_984, 489_985);
        assert!(range.contains(&bytes(489_984)) && range.contains(&bytes(489_985)));
        assert!(!range.contains(&bytes(489_986)) && !range.contains(&bytes(489_983)));
        let old = days_before(490_000 / 24);
        assert!(old.contains(&bytes(489_983)) && !old.contains(&bytes(490_000)));
        assert_eq!(HourKey::parse(&bytes(1)[1..]), None);
        assert_eq!(HourKey::parse(&[]), None);
    }

    #[test]
    fn the_catalogue_lies_by_namespace_and_name() {
        let metric = Metric::dynamodb("UserErrors", &[]);
        let row = catalogue_row(&metric, &metric.series_id());
        for (namespace, name) in
            [(None, None), (Some("AWS/DynamoDB"), None), (Some("AWS/DynamoDB"), Some("UserErrors"))]
        {
            assert!(catalogue(namespace, name).contains(&row), "{namespace:?} {name:?}");
        }
        assert!(!catalogue(Some("AWS/DynamoDB"), Some("SystemErrors")).contains(&row));
        assert!(!catalogue(Some("Mine"), None).contains(&row));
    }
}
