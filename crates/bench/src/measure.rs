//! Interleaves measurements, so that a disturbance of the machine affects all of them.

use std::time::Duration;

use zenobe_load::Histogram;

use crate::Result;
use crate::progress;

/// The result of one measurement.
#[derive(Debug, Clone)]
pub struct Sample {
    pub requests_per_second: f64,
    /// `None` if the lane sends no requests.
    pub latency: Option<Latency>,
    /// The server's processor time per request, if it was watched.
    pub cpu_us: Option<f64>,
}

impl Sample {
    pub fn of_rate(requests_per_second: f64) -> Sample {
        Sample { requests_per_second, latency: None, cpu_us: None }
    }
}

/// Percentiles of one run, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
}

impl Latency {
    pub fn of(histogram: &Histogram<u64>, units_per_millisecond: f64) -> Latency {
        let at =
            |quantile: f64| histogram.value_at_quantile(quantile) as f64 / units_per_millisecond;
        Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

/// One of the interleaved measurements.
pub struct Lane<'a> {
    name: String,
    run: Box<dyn FnMut(Duration) -> Result<Sample> + 'a>,
}

impl<'a> Lane<'a> {
    pub fn new(
        name: impl Into<String>,
        run: impl FnMut(Duration) -> Result<Sample> + 'a,
    ) -> Lane<'a> {
        Lane { name: name.into(), run: Box::new(run) }
    }
}

/// All samples of one lane.
#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    samples: Vec<Sample>,
}

impl Series {
    pub fn new(name: impl Into<String>, samples: Vec<Sample>) -> Series {
        Series { name: name.into(), samples }
    }

    /// The median rate in requests per second.
    pub fn rate(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.requests_per_second))
    }

    /// The median of each percentile.
    pub fn latency(&self) -> Option<Latency> {
        let latencies = self.latencies();
        if latencies.is_empty() {
            return None;
        }
        let middle = |of: fn(&Latency) -> f64| median(latencies.iter().map(of));
        Some(Latency {
            p50: middle(|latency| latency.p50),
            p99: middle(|latency| latency.p99),
            p999: middle(|latency| latency.p999),
        })
    }

    /// The percentiles of each round.
    pub fn latencies(&self) -> Vec<Latency> {
        self.samples.iter().filter_map(|sample| sample.latency).collect()
    }

    /// The median processor time of the server per request, in microseconds.
    pub fn cpu_us(&self) -> Option<f64> {
        let times: Vec<f64> = self.samples.iter().filter_map(|sample| sample.cpu_us).collect();
        (!times.is_empty()).then(|| median(times))
    }

    /// The rate as a multiple of the other's.
    pub fn rate_by(&self, base: &Series) -> Ratio {
        self.by(base, |sample| Some(sample.requests_per_second))
    }

    /// A percentile as a multiple of the other's.
    pub fn latency_by(&self, base: &Series, of: fn(&Latency) -> f64) -> Ratio {
        self.by(base, |sample| sample.latency.as_ref().map(of))
    }

    /// Computes the ratio of each round, then the median: when the machine slows down for a while,
    /// it slows down both.
    fn by(&self, base: &Series, of: impl Fn(&Sample) -> Option<f64>) -> Ratio {
        let pairs = self.samples.iter().zip(&base.samples);
        Ratio::of(pairs.filter_map(|(own, base)| Some(of(own)? / of(base)?)).collect())
    }

    /// The range of the rates over all rounds, as a fraction of their median.
    pub fn spread(&self) -> f64 {
        let rates = || self.samples.iter().map(|sample| sample.requests_per_second);
        let most = rates().fold(f64::MIN, f64::max);
        let least = rates().fold(f64::MAX, f64::min);
        (most - least) / self.rate()
    }
}

/// A ratio measured once per round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub median: f64,
    /// The middle half of the rounds, or all of three, lies in this range. The median of another
    /// run should as well.
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    fn of(mut rounds: Vec<f64>) -> Ratio {
        rounds.sort_by(f64::total_cmp);
        let outside = rounds.len() / 4;
        let low = rounds.get(outside).copied().unwrap_or(f64::NAN);
        let high = rounds.iter().nth_back(outside).copied().unwrap_or(f64::NAN);
        Ratio { low, high, median: median(rounds) }
    }
}

/// Runs every lane once per round. If one fails, the whole measurement fails.
pub fn interleave(
    title: &str,
    rounds: usize,
    duration: Duration,
    lanes: Vec<Lane<'_>>,
) -> Result<Vec<Series>> {
    let names: Vec<String> = lanes.iter().map(|lane| lane.name.clone()).collect();
    let outcomes = interleave_each(title, rounds, duration, lanes);
    let named = outcomes.into_iter().zip(names);
    named
        .map(|(outcome, name)| outcome.map_err(|error| format!("{name}: {error}").into()))
        .collect()
}

/// The same for lanes that may fail individually: a failed lane does not run again.
pub fn interleave_each(
    title: &str,
    rounds: usize,
    duration: Duration,
    mut lanes: Vec<Lane<'_>>,
) -> Vec<Result<Series>> {
    let mut outcomes: Vec<Result<Series>> = lanes
        .iter()
        .map(|lane| Ok(Series { name: lane.name.clone(), samples: Vec::with_capacity(rounds) }))
        .collect();
    for round in 1..=rounds {
        for place in order(round, lanes.len()) {
            let (lane, outcome) = (&mut lanes[place], &mut outcomes[place]);
            let Ok(series) = outcome else { continue };
            progress::show(&format!("{title}: round {round} of {rounds}, {}", lane.name));
            match (lane.run)(duration) {
                Ok(sample) => series.samples.push(sample),
                Err(error) => *outcome = Err(error),
            }
        }
    }
    outcomes
}

/// The order of the lanes in a round. From round to round each lane follows a different one, so
/// that none always inherits the state that the same lane leaves behind, such as a full cache or a
/// busy disk.
///
/// This is Williams' design. The order of a round zigzags (0, 1, -1, 2, -2…), so the steps between
/// neighbours all differ; the next round shifts every lane by one. With an even number of lanes,
/// each lane follows every other one once in as many rounds.
fn order(round: usize, lanes: usize) -> impl Iterator<Item = usize> {
    (0..lanes).map(move |turn| {
        let place = if turn % 2 == 1 { turn.div_ceil(2) } else { lanes - turn / 2 };
        (round + place) % lanes
    })
}

/// The middle value, or the mean of the middle two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
impl Series {
    pub fn of_rates(rates: &[f64]) -> Series {
        Series::new("test", rates.iter().map(|&rate| Sample::of_rate(rate)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_lane_follows_another_one_in_each_round() {
        for lanes in 1..10 {
            let mut followers = BTreeSet::new();
            for round in 1..=lanes {
                let order: Vec<usize> = order(round, lanes).collect();
                assert_eq!(BTreeSet::from_iter(order.iter().copied()), (0..lanes).collect());
                followers.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
            }
            let pairs = lanes * (lanes - 1);
            match lanes % 2 {
                0 => assert_eq!(followers.len(), pairs, "{lanes} lanes"),
                // An odd number needs twice as many rounds; no lane follows the same one more than
                // twice.
                _ => assert!(followers.len() * 2 >= pairs, "{lanes} lanes"),
            }
        }
    }

    #[test]
    fn ratios_are_those_of_single_rounds() {
        // In the second round the machine ran at half its speed; in the third another disturbance
        // hit one of the two.
        let [own, base] =
            [[50.0, 25.0, 50.0], [100.0, 50.0, 40.0]].map(|rates| Series::of_rates(&rates));
        assert_eq!(own.rate_by(&base), Ratio { median: 0.5, low: 0.5, high: 1.25 });
        assert!(own.latency_by(&base, |latency| latency.p50).median.is_nan());
        let with_latency = |p50: f64| {
            let latency = Some(Latency { p50, p99: p50, p999: p50 });
            Series { samples: vec![Sample { latency, ..Sample::of_rate(1.0) }], ..own.clone() }
        };
        let ratio = with_latency(3.0).latency_by(&with_latency(2.0), |latency| latency.p50);
        assert_eq!(ratio, Ratio { median: 1.5, low: 1.5, high: 1.5 });
    }

    #[test]
    fn the_range_of_a_ratio_is_the_middle_half_of_the_rounds() {
        let of = |rounds: &[f64]| {
            let ratio = Ratio::of(rounds.to_vec());
            (ratio.low, ratio.median, ratio.high)
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), (1.0, 2.0, 3.0));
        assert_eq!(of(&[9.0, 1.0, 3.0, 2.0, 4.0]), (2.0, 3.0, 4.0));
        let many: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(of(&many), (4.0, 8.0, 12.0));
        assert!(of(&[]).0.is_nan() && of(&[]).2.is_nan());
    }

    #[test]
    fn the_median_is_the_middle() {
        for (values, expected) in
            [(vec![3.0], 3.0), (vec![9.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0, 2.0, 9.0], 3.0)]
        {
            assert_eq!(median(values.clone()), expected, "{values:?}");
        }
        assert!(median([]).is_nan());
    }

    #[test]
    fn lanes_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let lane = |name: &'static str, rate: f64| {
            let order = &order;
            Lane::new(name, move |_| {
                order.borrow_mut().push_str(name);
                Ok(Sample::of_rate(rate))
            })
        };
        let lanes = vec![lane("a", 10.0), lane("b", 20.0)];
        let series = interleave("test", 3, Duration::ZERO, lanes).unwrap();
        assert_eq!(*order.borrow(), "baabba");
        assert_eq!(series[1].rate(), 20.0);
        assert_eq!(series[1].spread(), 0.0);
        assert!(series[1].latency().is_none());
    }

    #[test]
    fn a_lane_that_fails_does_not_run_again() {
        let mut turns = 0;
        let failing = Lane::new("failing", |_| {
            turns += 1;
            Err("no".into())
        });
        let sound = Lane::new("sound", |_| Ok(Sample::of_rate(1.0)));
        let outcomes = interleave_each("test", 3, Duration::ZERO, vec![failing, sound]);
        assert!(outcomes[0].is_err());
        assert_eq!(outcomes[1].as_ref().unwrap().samples.len(), 3);
        assert_eq!(turns, 1);
    }

    #[test]
    fn a_failure_names_its_lane() {
        let lanes = vec![Lane::new("broken", |_| Err("no".into()))];
        let error = interleave("test", 1, Duration::ZERO, lanes).unwrap_err();
        assert_eq!(error.to_string(), "broken: no");
    }
}
