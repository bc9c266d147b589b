//! What a case is, and how it runs.

use crate::section;

/// Runs the operation this many times, continuing with the inputs where it stopped.
pub type Operation = Box<dyn FnMut(usize)>;

pub struct Case {
    /// The operation, then the place or the special circumstance: `get-item.memory`.
    pub name: &'static str,
    pub iterations: usize,
    pub prepare: fn() -> Operation,
}

/// A case cycles through up to this many inputs, so that no single lucky or unlucky key decides. It
/// has used all of them when the counting starts. (Cases that must parse an expression each time
/// have more.)
pub const INPUTS: usize = 64;

impl Case {
    pub fn run(&self, iterations: usize) {
        let mut operation = (self.prepare)();
        operation(INPUTS);
        section::count(|| operation(iterations));
    }
}
