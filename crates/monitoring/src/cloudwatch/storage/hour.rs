//! An hour of a series, as one node has seen it: the row that data points are stored in.
//!
//! The bytes are a format number, and then for each minute with data: the minute, what follows, and
//! the statistics. Most points are one value, or many times the same one, and take 18 bytes.

use std::collections::BTreeMap;

use zenobe_engine::error::{Error, Result};
use zenobe_value::{AttributeValue, Attributes};

use super::super::distribution::Distribution;
use super::super::statistics::StatisticSet;

const FORMAT: u8 = 1;
const FIELD: &str = "points";

const UNIFORM: u8 = 0;
const WITHOUT_DISTRIBUTION: u8 = 1;
const WITH_DISTRIBUTION: u8 = 2;

/// Statistics by minute of the hour.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hour(pub BTreeMap<u8, StatisticSet>);

impl Hour {
    pub fn add(&mut self, minute: u8, statistics: &StatisticSet) {
        match self.0.get_mut(&minute) {
            Some(known) => known.merge(statistics),
            None => _ = self.0.insert(minute, statistics.clone()),
        }
    }

    pub fn to_fields(&self) -> Attributes {
        let mut bytes = vec![FORMAT];
        self.0.iter().for_each(|(minute, statistics)| write(&mut bytes, *minute, statistics));
        let mut fields = Attributes::default();
        fields.insert(FIELD.to_owned(), AttributeValue::B(bytes));
        fields
    }

    pub fn from_fields(fields: &Attributes) -> Result<Hour> {
        let bytes = match fields.get(FIELD) {
            Some(AttributeValue::B(bytes)) => &bytes[..],
            _ => return Err(corrupt("without points")),
        };
        let Some((&FORMAT, mut rest)) = bytes.split_first() else {
            return Err(corrupt("of an unknown format"));
        };
        let mut points = BTreeMap::new();
        while !rest.is_empty() {
            let (minute, statistics) = read(&mut rest).ok_or_else(|| corrupt("that is cut off"))?;
            points.insert(minute, statistics);
        }
        Ok(Hour(points))
    }
}

fn corrupt(how: &str) -> Error {
    Error::Corrupt { detail: format!("a row of data points {how}") }
}

fn write(bytes: &mut Vec<u8>, minute: u8, statistics: &StatisticSet) {
    let StatisticSet { count, sum, min, max, distribution } = statistics;
    bytes.push(minute);
    // The distribution of equal values follows from the value.
    let has_own = *distribution == Distribution::of(*min, *count);
    if statistics.is_uniform() && has_own {
        bytes.push(UNIFORM);
        [count, min].iter().for_each(|number| bytes.extend(number.to_be_bytes()));
        return;
    }
    bytes.push(if distribution.is_some() { WITH_DISTRIBUTION } else { WITHOUT_DISTRIBUTION });
    [count, sum, min, max].iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    if let Some(distribution) = distribution {
        let buckets = distribution.buckets();
        bytes.extend((buckets.len() as u16).to_be_bytes());
        for (bucket, count) in buckets {
            bytes.extend(bucket.to_be_bytes());
            write_count(bytes, *count);
        }
    }
}

fn read(rest: &mut &[u8]) -> Option<(u8, StatisticSet)> {
    let [minute, kind] = take(rest)?;
    if kind == UNIFORM {
        let (count, value) = (number(rest)?, number(rest)?);
        return Some((minute, StatisticSet::uniform(value, count)));
    }
    let (count, sum, min, max) = (number(rest)?, number(rest)?, number(rest)?, number(rest)?);
    let distribution = match kind {
        WITHOUT_DISTRIBUTION => None,
        WITH_DISTRIBUTION => {
            let length = u16::from_be_bytes(take(rest)?);
            let bucket = |_| Some((i16::from_be_bytes(take(rest)?), read_count(rest)?));
            let buckets = (0..length).map(bucket).collect::<Option<Vec<_>>>()?;
            Distribution::from_buckets(buckets)
        }
        _ => return None,
    };
    Some((minute, StatisticSet { count, sum, min, max, distribution }))
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

fn number(rest: &mut &[u8]) -> Option<f64> {
    take(rest).map(f64::from_be_bytes)
}

/// Seven bits per byte, the lowest first; the highest bit says that more follow.
fn write_count(bytes: &mut Vec<u8>, mut count: u64) {
    while count >= 0x80 {
        bytes.push(count as u8 | 0x80);
        count >>= 7;
    }
    bytes.push(count as u8);
}

fn read_count(rest: &mut &[u8]) -> Option<u64> {
    let mut count = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest)?;
        count |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(count);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_survive_their_bytes() {
        let mut hour = Hour::default();
        hour.add(0, &StatisticSet::uniform(1.0, 250.0));
        hour.add(7, &StatisticSet::uniform(-3.5, 1.0));
        hour.add(59, &StatisticSet::uniform(2.0, 1_000_000.0));
        hour.add(59, &StatisticSet::uniform(700.0, 0.5));
        hour.add(58, &StatisticSet { distribution: None, ..StatisticSet::uniform(5.0, 2.0) });
        let fields = hour.to_fields();
        assert_eq!(Hour::from_fields(&fields).unwrap(), hour);
        let AttributeValue::B(bytes) = &fields[FIELD] else { panic!("{fields:?}") };
        assert_eq!(bytes.len(), 1 + 2 * 18 + 34 + 34 + 2 + 2 * 2 + 3 + 1);
    }

    #[test]
    fn bytes_that_are_cut_off_are_an_error() {
        let mut hour = Hour::default();
        hour.add(1, &StatisticSet::uniform(2.0, 300.0));
        hour.add(1, &StatisticSet::uniform(3.0, 300.0));
        let AttributeValue::B(bytes) = &hour.to_fields()[FIELD] else { unreachable!() };
        for length in [0].into_iter().chain(2..bytes.len()) {
            let mut fields = Attributes::default();
            fields.insert(FIELD.into(), AttributeValue::B(bytes[..length].to_vec()));
            assert!(Hour::from_fields(&fields).is_err(), "{length}");
        }
        assert!(Hour::from_fields(&Attributes::default()).is_err());
    }
}
