//! Checks a history for linearizability: whether running the operations one after the other, each
//! at some moment between its call and its return, explains what callers saw (Wing and Gong's
//! search, with a memory of visited states).

use std::collections::HashSet;
use std::hash::Hash;

/// An operation and its response.
pub trait Event {
    type State: Clone + Eq + Hash;

    /// The state after the event, if it could have happened in this state.
    fn explained(&self, before: &Self::State) -> Option<Self::State>;
}

/// An event with the times of its call and its return, on a clock that all callers share.
#[derive(Debug, Clone, Copy)]
pub struct Timed<E> {
    pub called: u64,
    /// [`NEVER`] if no response arrived: the event may have happened at any time since, or never.
    pub returned: u64,
    pub event: E,
}

pub const NEVER: u64 = u64::MAX;

/// The search keeps its set of finished events in this many bits.
pub const EVENTS_MAX: usize = 128;

/// Whether some order of the events explains every response, starting from `initial`. An event that
/// never returned need not have happened.
///
/// # Panics
/// If there are more than [`EVENTS_MAX`] events.
pub fn is_linearizable<E: Event>(initial: E::State, events: &[Timed<E>]) -> bool {
    assert!(events.len() <= EVENTS_MAX, "{} events are too many to check", events.len());
    let mut tried: HashSet<(u128, E::State)> = HashSet::new();
    let mut pending: Vec<(u128, E::State)> = vec![(0, initial)];
    let answered = events.iter().enumerate().filter(|(_, event)| event.returned != NEVER);
    let required = answered.fold(0_u128, |all, (number, _)| all | 1 << number);
    while let Some((done, state)) = pending.pop() {
        if done & required == required {
            return true;
        }
        if !tried.insert((done, state.clone())) {
            continue;
        }
        let open = || events.iter().enumerate().filter(|(number, _)| done & (1 << number) == 0);
        // An event called after another open event returned can't come before it.
        let first_return = open().map(|(_, event)| event.returned).min().unwrap_or(NEVER);
        for (number, timed) in open().filter(|(_, timed)| timed.called < first_return) {
            if let Some(state) = timed.event.explained(&state) {
                pending.push((done | (1 << number), state));
            }
        }
    }
    false
}
