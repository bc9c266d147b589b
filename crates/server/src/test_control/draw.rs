//! Random numbers that repeat: each depends on the seed, its rule and its position only, so it does not
//! matter what else happens in between.

/// The source of one rule's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    state: u64,
}

impl Draws {
    pub fn new(seed: u64, rule: u64) -> Draws {
        Draws { state: mix(mix(seed).wrapping_add(rule)) }
    }

    /// The number at a position of a column: 0 or more, and less than 1.
    pub fn at(self, column: u64, position: u64) -> f64 {
        let bits = mix(mix(self.state.wrapping_add(column)).wrapping_add(position));
        // As many bits as the fraction of a double has.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A step of SplitMix64: a bijection whose results look independent.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_by_seed_and_rule_and_are_even() {
        let draws = Draws::new(7, 1);
        let some = |draws: Draws| (0..10_000).map(|n| draws.at(0, n)).collect::<Vec<f64>>();
        assert_eq!(some(draws), some(Draws::new(7, 1)));
        assert_ne!(some(draws), some(Draws::new(7, 2)));
        assert_ne!(some(draws), some(Draws::new(8, 1)));
        assert_ne!(draws.at(0, 0).to_bits(), draws.at(1, 0).to_bits());
        let low = some(draws).into_iter().filter(|number| *number < 0.1).count();
        assert!((900..1_100).contains(&low), "{low}");
    }
}
