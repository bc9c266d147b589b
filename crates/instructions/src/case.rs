//! What a case is, and how it is run.

use crate::section;

/// Runs the operation as many times as it is told to, going on with the inputs where it stopped.
pub type Operation = Box<dyn FnMut(usize)>;

pub struct Case {
    /// The operation, then where it happens or what is special about it: `get-item.memory`.
    pub name: &'static str,
    pub iterations: usize,
    pub prepare: fn() -> Operation,
}

/// A case has up to this many different inputs, which it goes through in turn, so that no lucky or unlucky
/// key decides. All of them have been used when the counting begins. (Only expressions that are to be parsed each time are more.)
pub const INPUTS: usize = 64;

impl Case {
    pub fn run(&self, iterations: usize) {
        let mut operation = (self.prepare)();
        operation(INPUTS);
        section::count(|| operation(iterations));
    }
}
