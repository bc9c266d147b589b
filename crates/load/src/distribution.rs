//! Which item a request is about.
//!
//! The zipfian generator is YCSB's: the rejection-free method of Gray et al., "Quickly Generating
//! Billion-Record Synthetic Databases", with popular items scattered over the key space by an FNV
//! hash.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand::rngs::SmallRng;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyDistribution {
    /// All items equally.
    Uniform,
    /// A few items get most requests. The constant is below 1; higher is more skewed. YCSB uses
    /// 0.99.
    Zipfian { constant: f64 },
    /// Zipfian by age: the newest items are the most popular.
    Latest,
    /// A fraction of the operations goes to a fraction of the keys, the rest to the others.
    Hot { operations: f64, keys: f64 },
    /// All requests go to one item.
    Single,
}

impl KeyDistribution {
    pub const ZIPFIAN: KeyDistribution = KeyDistribution::Zipfian { constant: ZIPFIAN_CONSTANT };
}

const ZIPFIAN_CONSTANT: f64 = 0.99;
/// YCSB draws scrambled keys from this many, whatever the number of items, so that the skew does
/// not depend on it.
const SCRAMBLED_SPACE: u64 = 10_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a distribution: it can be uniform, zipfian, zipfian:CONSTANT (below 1), latest, hot, \
     hot:OPERATIONS:KEYS (fractions, for example hot:0.9:0.1) or single"
)]
pub struct DistributionError(String);

impl FromStr for KeyDistribution {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<KeyDistribution, DistributionError> {
        let refused = || DistributionError(text.to_owned());
        let fraction = |text: &str| {
            text.parse()
                .ok()
                .filter(|value| (0.0..1.0).contains(value) && *value > 0.0)
                .ok_or_else(refused)
        };
        let parts: Vec<&str> = text.split(':').collect();
        Ok(match parts.as_slice() {
            ["uniform"] => KeyDistribution::Uniform,
            ["zipfian"] => KeyDistribution::ZIPFIAN,
            ["zipfian", constant] => KeyDistribution::Zipfian { constant: fraction(constant)? },
            ["latest"] => KeyDistribution::Latest,
            ["hot"] => KeyDistribution::Hot { operations: 0.9, keys: 0.1 },
            ["hot", operations, keys] => {
                KeyDistribution::Hot { operations: fraction(operations)?, keys: fraction(keys)? }
            }
            ["single"] => KeyDistribution::Single,
            _ => return Err(refused()),
        })
    }
}

impl fmt::Display for KeyDistribution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyDistribution::Uniform => out.write_str("uniform"),
            KeyDistribution::Zipfian { constant: ZIPFIAN_CONSTANT } => out.write_str("zipfian"),
            KeyDistribution::Zipfian { constant } => write!(out, "zipfian:{constant}"),
            KeyDistribution::Latest => out.write_str("latest"),
            KeyDistribution::Hot { operations, keys } => write!(out, "hot:{operations}:{keys}"),
            KeyDistribution::Single => out.write_str("single"),
        }
    }
}

/// Draws item numbers.
#[derive(Debug, Clone)]
pub(crate) enum Chooser {
    Uniform,
    Scrambled(Zipfian),
    Latest(Zipfian),
    Hot { operations: f64, keys: f64 },
    Single,
}

impl Chooser {
    pub fn new(distribution: KeyDistribution, items: u64) -> Chooser {
        match distribution {
            KeyDistribution::Uniform => Chooser::Uniform,
            KeyDistribution::Zipfian { constant } => {
                Chooser::Scrambled(Zipfian::new(SCRAMBLED_SPACE, constant))
            }
            KeyDistribution::Latest => Chooser::Latest(Zipfian::new(items, ZIPFIAN_CONSTANT)),
            KeyDistribution::Hot { operations, keys } => Chooser::Hot { operations, keys },
            KeyDistribution::Single => Chooser::Single,
        }
    }

    /// One of `0..items`. `items` may grow between calls.
    pub fn draw(&mut self, random: &mut SmallRng, items: u64) -> u64 {
        debug_assert!(items > 0);
        match self {
            Chooser::Uniform => random.random_range(0..items),
            Chooser::Scrambled(zipfian) => scramble(zipfian.draw(random)) % items,
            Chooser::Latest(zipfian) => {
                zipfian.grow(items);
                items - 1 - zipfian.draw(random)
            }
            Chooser::Hot { operations, keys } => {
                let hot = ((items as f64 * *keys) as u64).clamp(1, items);
                match hot == items || random.random::<f64>() < *operations {
                    true => random.random_range(0..hot),
                    false => random.random_range(hot..items),
                }
            }
            Chooser::Single => 0,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Zipfian {
    items: u64,
    constant: f64,
    /// The sum of 1 / i^constant over the items.
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    fn new(items: u64, constant: f64) -> Zipfian {
        let zeta = zeta(items, constant);
        let eta = eta(items, constant, zeta);
        Zipfian { items, constant, zeta, alpha: 1.0 / (1.0 - constant), eta }
    }

    fn grow(&mut self, items: u64) {
        if items <= self.items {
            return;
        }
        for number in self.items + 1..=items {
            self.zeta += (number as f64).powf(-self.constant);
        }
        self.items = items;
        self.eta = eta(items, self.constant, self.zeta);
    }

    /// A rank: 0 is the most popular.
    fn draw(&self, random: &mut SmallRng) -> u64 {
        let uniform: f64 = random.random();
        let scaled = uniform * self.zeta;
        let rank = if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(self.constant) {
            1
        } else {
            (self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha)) as u64
        };
        rank.min(self.items - 1)
    }
}

fn eta(items: u64, constant: f64, zeta_all: f64) -> f64 {
    // With one or two items `draw` only takes its first branches.
    if items <= 2 {
        return 0.0;
    }
    let zeta_two = 1.0 + 0.5f64.powf(constant);
    (1.0 - (2.0 / items as f64).powf(1.0 - constant)) / (1.0 - zeta_two / zeta_all)
}

/// Sums the first terms. The tail is its integral with the first Euler-Maclaurin correction.
fn zeta(items: u64, constant: f64) -> f64 {
    const SUMMED_MAX: u64 = 10_000;
    let summed = items.min(SUMMED_MAX);
    let head: f64 = (1..=summed).map(|number| (number as f64).powf(-constant)).sum();
    let (from, to) = (summed as f64, items as f64);
    let power = 1.0 - constant;
    let integral = (to.powf(power) - from.powf(power)) / power;
    head + integral + (to.powf(-constant) - from.powf(-constant)) / 2.0
}

/// FNV-1 of the eight bytes, like YCSB's `fnvhash64`.
fn scramble(rank: u64) -> u64 {
    let start: u64 = 0xCBF2_9CE4_8422_2325;
    rank.to_le_bytes()
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    fn distributions() -> impl Strategy<Value = KeyDistribution> {
        let fraction = || 0.01f64..0.99;
        prop_oneof![
            Just(KeyDistribution::Uniform),
            Just(KeyDistribution::ZIPFIAN),
            fraction().prop_map(|constant| KeyDistribution::Zipfian { constant }),
            Just(KeyDistribution::Latest),
            (fraction(), fraction())
                .prop_map(|(operations, keys)| KeyDistribution::Hot { operations, keys }),
            Just(KeyDistribution::Single),
        ]
    }

    proptest! {
        #[test]
        fn every_draw_is_one_of_the_items(
            distribution in distributions(),
            items in prop_oneof![1u64..5, 1u64..1_000_000_000_000],
            grown in 0u64..1000,
            seed: u64,
        ) {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut chooser = Chooser::new(distribution, items);
            for more in [0, grown, grown + 1] {
                prop_assert!(chooser.draw(&mut random, items + more) < items + more);
            }
        }

        #[test]
        fn distributions_read_back(distribution in distributions()) {
            prop_assert_eq!(distribution.to_string().parse(), Ok(distribution));
        }

        #[test]
        fn growing_is_the_same_as_starting_larger(items in 1u64..3000, more in 0u64..3000) {
            let mut grown = Zipfian::new(items, 0.99);
            grown.grow(items + more);
            let fresh = Zipfian::new(items + more, 0.99);
            prop_assert!((grown.zeta - fresh.zeta).abs() < 1e-6);
            prop_assert!((grown.eta - fresh.eta).abs() < 1e-6);
        }
    }

    #[test]
    fn unreadable_distributions_are_rejected() {
        for text in ["", "zipf", "zipfian:1", "zipfian:0", "zipfian:x", "hot:0.9", "hot:2:0.1"] {
            assert!(text.parse::<KeyDistribution>().is_err(), "{text}");
        }
    }

    #[test]
    fn zeta_is_the_constant_that_ycsb_computed() {
        assert!((zeta(SCRAMBLED_SPACE, 0.99) - 26.469_028_201_783_02).abs() < 1e-6);
    }

    const DRAWS: u64 = 200_000;

    /// How often each item is drawn with a fixed seed.
    fn counts(distribution: KeyDistribution, items: u64) -> Vec<u64> {
        let mut random = SmallRng::seed_from_u64(7);
        let mut chooser = Chooser::new(distribution, items);
        let mut counts = vec![0; items as usize];
        for _ in 0..DRAWS {
            counts[chooser.draw(&mut random, items) as usize] += 1;
        }
        counts
    }

    /// The share of draws that hit the most popular tenth.
    fn top_tenth(mut counts: Vec<u64>) -> f64 {
        counts.sort_unstable_by(|left, right| right.cmp(left));
        let top: u64 = counts[..counts.len() / 10].iter().sum();
        top as f64 / DRAWS as f64
    }

    #[test]
    fn skew_is_as_the_distribution_says() {
        let share = |distribution| top_tenth(counts(distribution, 1000));
        assert!((0.09..0.14).contains(&share(KeyDistribution::Uniform)));
        // Of ranks over ten billion, the first hundred get zeta(100) / zeta = 20 %. The rest fold
        // onto all items.
        assert!((0.26..0.33).contains(&share(KeyDistribution::ZIPFIAN)));
        // Of ranks over a thousand, the first hundred get zeta(100) / zeta(1000) = 69 %.
        assert!((0.65..0.73).contains(&share(KeyDistribution::Latest)));
        assert!(
            share(KeyDistribution::Zipfian { constant: 0.5 }) < share(KeyDistribution::ZIPFIAN)
        );
        let hot = counts(KeyDistribution::Hot { operations: 0.8, keys: 0.2 }, 1000);
        let on_hot_keys = hot[..200].iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((0.79..0.81).contains(&on_hot_keys));
        assert_eq!(counts(KeyDistribution::Single, 10)[0], DRAWS);
    }

    #[test]
    fn the_latest_are_the_most_popular_and_zipfian_ones_are_scattered() {
        let latest = counts(KeyDistribution::Latest, 1000);
        assert_eq!(latest.iter().max(), latest.last());
        let zipfian = counts(KeyDistribution::ZIPFIAN, 1000);
        let most = (0..1000).max_by_key(|&number| zipfian[number]).unwrap();
        assert_eq!(most as u64, scramble(0) % 1000);
    }
}
