//! What a case is, and how it runs.

use crate::section;

/// Runs what is measured this many times, continuing with the inputs where it stopped.
pub type Measured = Box<dyn FnMut(usize)>;

pub struct Case {
    /// The operation, then the place or the special circumstance: `get-item.memory`.
    pub name: &'static str,
    pub iterations: usize,
    pub prepare: fn() -> Measured,
}

/// A case cycles through up to this many inputs, so that no single lucky or unlucky key decides. It
/// has used all of them when the counting starts. (Cases that must parse an expression each time
/// have more.)
pub const INPUTS: usize = 64;

impl Case {
    pub fn run(&self, iterations: usize) {
        let mut measured = (self.prepare)();
        measured(INPUTS);
        section::count(|| measured(iterations));
    }
}
