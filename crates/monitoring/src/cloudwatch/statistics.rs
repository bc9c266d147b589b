//! What is kept of the values of a period, and the statistics that requests can ask for.

use super::distribution::Distribution;
use super::error::CloudWatchError;

/// A set of values, by what CloudWatch keeps of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticSet {
    pub count: f64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
    /// The distribution of the values, for percentiles. `None` if some values came without one.
    pub distribution: Option<Distribution>,
}

impl StatisticSet {
    /// `count` times the same value.
    pub fn uniform(value: f64, count: f64) -> StatisticSet {
        let distribution = Distribution::of(value, count);
        StatisticSet { count, sum: value * count, min: value, max: value, distribution }
    }

    pub fn is_uniform(&self) -> bool {
        self.min == self.max && self.sum == self.min * self.count
    }

    pub fn merge(&mut self, other: &StatisticSet) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.distribution = match (self.distribution.take(), &other.distribution) {
            (Some(mine), Some(others)) => mine.merge(others),
            _ => None,
        };
    }

    /// The value of a statistic, if the data that is kept suffices for it.
    pub fn get(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::SampleCount => Some(self.count),
            Statistic::Average => Some(self.sum / self.count).filter(|_| self.count > 0.0),
            Statistic::Sum => Some(self.sum),
            Statistic::Minimum => Some(self.min),
            Statistic::Maximum => Some(self.max),
            Statistic::Percentile(hundredths) => {
                let share = f64::from(hundredths) / 10_000.0;
                let value = self.distribution.as_ref()?.quantile(share)?;
                Some(value.clamp(self.min, self.max))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    SampleCount,
    Average,
    Sum,
    Minimum,
    Maximum,
    /// In hundredths of a percent: `p99.9` is 9,990.
    Percentile(u32),
}

/// The names of the statistics that every metric has.
pub const SIMPLE: [&str; 5] = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"];

impl Statistic {
    pub fn simple(name: &str) -> Option<Statistic> {
        match name {
            "SampleCount" => Some(Statistic::SampleCount),
            "Average" => Some(Statistic::Average),
            "Sum" => Some(Statistic::Sum),
            "Minimum" => Some(Statistic::Minimum),
            "Maximum" => Some(Statistic::Maximum),
            _ => None,
        }
    }

    /// A simple statistic or a percentile.
    pub fn parse(name: &str) -> Result<Statistic, CloudWatchError> {
        if let Some(statistic) = Statistic::simple(name) {
            return Ok(statistic);
        }
        Statistic::extended(name)
    }

    /// A percentile such as `p99.9`. CloudWatch's trimmed statistics are not implemented.
    pub fn extended(name: &str) -> Result<Statistic, CloudWatchError> {
        let trimmed = ["tm", "wm", "tc", "ts", "TM(", "WM(", "TC(", "TS(", "PR(", "IQM"];
        if trimmed.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(CloudWatchError::unsupported(&format!("The statistic {name}")));
        }
        let invalid = || {
            CloudWatchError::invalid(format!(
                "The value {name} for parameter Stat is not a valid statistic."
            ))
        };
        let digits = name.strip_prefix('p').ok_or_else(invalid)?;
        let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: f64 = digits.parse().map_err(|_| invalid())?;
        let hundredths = (percent * 100.0).round();
        match is_decimal && (0.0..=10_000.0).contains(&hundredths) {
            true => Ok(Statistic::Percentile(hundredths as u32)),
            false => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_add_up() {
        let mut all = StatisticSet::uniform(2.0, 3.0);
        all.merge(&StatisticSet::uniform(10.0, 1.0));
        assert_eq!(all.get(Statistic::SampleCount), Some(4.0));
        assert_eq!(all.get(Statistic::Sum), Some(16.0));
        assert_eq!(all.get(Statistic::Average), Some(4.0));
        assert_eq!(all.get(Statistic::Minimum), Some(2.0));
        assert_eq!(all.get(Statistic::Maximum), Some(10.0));
        let median = all.get(Statistic::Percentile(5_000)).unwrap();
        assert!((1.9..2.2).contains(&median), "{median}");
        assert_eq!(all.get(Statistic::Percentile(10_000)), Some(10.0));
    }

    #[test]
    fn percentiles_need_the_distribution_of_all_values() {
        let mut all = StatisticSet::uniform(2.0, 3.0);
        let set = StatisticSet { distribution: None, ..StatisticSet::uniform(5.0, 2.0) };
        all.merge(&set);
        assert_eq!(all.get(Statistic::Percentile(5_000)), None);
        assert_eq!(all.get(Statistic::Sum), Some(16.0));
        assert_eq!(StatisticSet::uniform(-1.0, 1.0).get(Statistic::Percentile(5_000)), None);
    }

    #[test]
    fn names_are_parsed() {
        assert_eq!(Statistic::parse("Sum"), Ok(Statistic::Sum));
        assert_eq!(Statistic::parse("p99.9"), Ok(Statistic::Percentile(9_990)));
        assert_eq!(Statistic::parse("p50"), Ok(Statistic::Percentile(5_000)));
        for wrong in ["p", "p101", "px", "p-1", "pinf", "sum", "", "tm99", "PR(1:2)", "p1e1"] {
            assert!(Statistic::parse(wrong).is_err(), "{wrong}");
        }
    }
}
