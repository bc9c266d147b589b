//! How long something takes: a time, or a distribution to draw times from.

use std::fmt;
use std::str::FromStr;

use super::draw::Draws;

/// In milliseconds. Nothing takes longer than a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayDistribution {
    Fixed(u64),
    /// From the first to the second, both included.
    Uniform(u64, u64),
    /// By its mean; cut at ten times as much.
    Exponential(u64),
    /// By its mean and its standard deviation; cut at zero and at four deviations.
    Normal(u64, u64),
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const EXPONENTIAL_MAX: u64 = 10;
const DEVIATIONS_MAX: u64 = 4;

/// The columns of a rule's numbers that times are drawn from.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time: write 100ms, 2s, 5m or 1h, or fixed:100ms, uniform:10ms..50ms, exp:20ms (by its \
     mean) or normal:50ms/10ms (mean and deviation), up to a day"
)]
pub struct NotATime(String);

impl DelayDistribution {
    /// The delay that the rule draws at this position.
    pub fn draw_ms(self, draws: Draws, position: u64) -> u64 {
        let first = draws.at(FIRST, position);
        let drawn = match self {
            DelayDistribution::Fixed(time) => return time,
            DelayDistribution::Uniform(from, to) => from as f64 + first * (to - from + 1) as f64,
            DelayDistribution::Exponential(mean) => -(mean as f64) * (1.0 - first).ln(),
            DelayDistribution::Normal(mean, deviation) => {
                // Box and Muller's way to a normal number.
                let angle = std::f64::consts::TAU * draws.at(SECOND, position);
                let normal = (-2.0 * (1.0 - first).ln()).sqrt() * angle.cos();
                mean as f64 + deviation as f64 * normal
            }
        };
        // A cast of a negative number is 0.
        (drawn as u64).min(self.max_ms())
    }

    /// No time is longer.
    pub fn max_ms(self) -> u64 {
        match self {
            DelayDistribution::Fixed(time) => time,
            DelayDistribution::Uniform(_, to) => to,
            DelayDistribution::Exponential(mean) => mean * EXPONENTIAL_MAX,
            DelayDistribution::Normal(mean, deviation) => mean + deviation * DEVIATIONS_MAX,
        }
    }
}

impl FromStr for DelayDistribution {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<DelayDistribution, NotATime> {
        parse(text)
            .filter(|distribution| distribution.max_ms() <= DAY_MS)
            .ok_or_else(|| NotATime(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<DelayDistribution> {
    let Some((name, numbers)) = text.split_once(':') else {
        return Some(DelayDistribution::Fixed(parse_ms(text)?));
    };
    match name {
        "fixed" => Some(DelayDistribution::Fixed(parse_ms(numbers)?)),
        "uniform" => {
            let (from, to) = numbers.split_once("..")?;
            let (from, to) = (parse_ms(from)?, parse_ms(to)?);
            (from <= to).then_some(DelayDistribution::Uniform(from, to))
        }
        "exp" => Some(DelayDistribution::Exponential(parse_ms(numbers)?)),
        "normal" => {
            let (mean, deviation) = numbers.split_once('/')?;
            Some(DelayDistribution::Normal(parse_ms(mean)?, parse_ms(deviation)?))
        }
        _ => None,
    }
}

/// The milliseconds of a whole number with a unit, up to a day.
pub fn parse_ms(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60 * 1_000,
        "h" => 60 * 60 * 1_000,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (ms <= DAY_MS).then_some(ms)
}

impl fmt::Display for DelayDistribution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayDistribution::Fixed(time) => write!(out, "{time}ms"),
            DelayDistribution::Uniform(from, to) => write!(out, "uniform:{from}ms..{to}ms"),
            DelayDistribution::Exponential(mean) => write!(out, "exp:{mean}ms"),
            DelayDistribution::Normal(mean, deviation) => {
                write!(out, "normal:{mean}ms/{deviation}ms")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, shown) in [
            ("100ms", "100ms"),
            ("fixed:2s", "2000ms"),
            ("uniform:10ms..1s", "uniform:10ms..1000ms"),
            ("exp:20ms", "exp:20ms"),
            ("normal:50ms/10ms", "normal:50ms/10ms"),
            ("24h", "86400000ms"),
        ] {
            let distribution: DelayDistribution = text.parse().unwrap();
            assert_eq!(distribution.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(distribution), "{text}");
        }
        for text in [
            "",
            "5",
            "ms",
            "-1ms",
            "1.5s",
            "25h",
            "exp:3h",
            "uniform:2s..1s",
            "normal:1s",
            "gamma:1s",
            "99999999999999999999ms",
            "uniform:1ms",
            "fixed:",
        ] {
            assert_eq!(text.parse::<DelayDistribution>(), Err(NotATime(text.to_owned())));
        }
    }

    #[test]
    fn drawn_times_have_their_means_and_limits() {
        let mean = |text: &str| {
            let distribution: DelayDistribution = text.parse().unwrap();
            let draws = Draws::new(1, 1);
            let drawn: Vec<u64> = (0..10_000).map(|n| distribution.draw_ms(draws, n)).collect();
            assert!(drawn.iter().all(|time| *time <= distribution.max_ms()), "{text}");
            drawn.iter().sum::<u64>() / 10_000
        };
        assert_eq!(mean("70ms"), 70);
        assert!((1_480..=1_520).contains(&mean("uniform:1s..2s")));
        assert!((950..=1_050).contains(&mean("exp:1s")));
        assert!((990..=1_010).contains(&mean("normal:1s/100ms")));
    }
}
