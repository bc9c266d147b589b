//! Random choices with short names.

use rand::RngExt;
use rand::rngs::StdRng;

pub struct Dice(pub StdRng);

impl Dice {
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    /// From `low` to `high`, inclusive.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
