//! Operations on one item, for the search of [`zenobe_testing::linearizability`].

use zenobe_testing::linearizability::{self, Timed};

/// An item with one number, which may be missing.
pub type State = Option<i64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterOperation {
    Get,
    Put(i64),
    /// Puts if the item is missing.
    Create(i64),
    /// Puts `new` if the number is `expected`.
    Swap {
        expected: i64,
        new: i64,
    },
    /// Adds to the number, or to zero if it is missing.
    Add(i64),
    Delete,
}

/// What the caller saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// Done, or read; with the state before.
    Before(State),
    /// Done; with the state after.
    After(State),
    /// Done, without any information about the state, as in a transaction.
    Done,
    /// The condition failed on this state.
    Refused(State),
}

/// An operation and what the caller saw.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    pub operation: RegisterOperation,
    pub response: Response,
}

pub type Event = Timed<Told>;

impl linearizability::Event for Told {
    type State = State;

    fn explained(&self, before: &State) -> Option<State> {
        let before = *before;
        let (after, is_done) = match self.operation {
            RegisterOperation::Get => (before, true),
            RegisterOperation::Put(new) => (Some(new), true),
            RegisterOperation::Delete => (None, true),
            RegisterOperation::Add(amount) => (Some(before.unwrap_or(0) + amount), true),
            RegisterOperation::Create(new) if before.is_none() => (Some(new), true),
            RegisterOperation::Swap { expected, new } if before == Some(expected) => {
                (Some(new), true)
            }
            RegisterOperation::Create(_) | RegisterOperation::Swap { .. } => (before, false),
        };
        let fits = match self.response {
            Response::Before(seen) => is_done && seen == before,
            Response::After(seen) => is_done && seen == after,
            Response::Done => is_done,
            Response::Refused(seen) => !is_done && seen == before,
        };
        fits.then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RegisterOperation::{Add, Create, Delete, Get, Put, Swap};
    use Response::{After, Before, Done, Refused};
    use zenobe_testing::linearizability::{EVENTS_MAX, NEVER, is_linearizable};

    fn check(expected: bool, events: &[(u64, u64, RegisterOperation, Response)]) {
        let event = |&(called, returned, operation, response): &(_, _, _, _)| Event {
            called,
            returned,
            event: Told { operation, response },
        };
        let list: Vec<Event> = events.iter().map(event).collect();
        assert_eq!(is_linearizable(None, &list), expected, "{events:?}");
    }

    #[test]
    fn one_caller_sees_its_own_writes() {
        check(true, &[]);
        check(true, &[(0, 1, Put(5), Before(None)), (2, 3, Get, Before(Some(5)))]);
        check(true, &[(0, 1, Create(5), Before(None)), (2, 3, Create(6), Refused(Some(5)))]);
        check(true, &[(0, 1, Add(5), After(Some(5))), (2, 3, Delete, Before(Some(5)))]);
        check(true, &[(0, 1, Add(5), Done), (2, 3, Swap { expected: 5, new: 6 }, Before(Some(5)))]);
    }

    #[test]
    fn operations_that_overlap_may_come_in_any_order() {
        check(true, &[(0, 9, Put(5), Before(None)), (1, 8, Get, Before(None))]);
        check(true, &[(0, 9, Put(5), Before(None)), (1, 8, Get, Before(Some(5)))]);
        check(true, &[(1, 8, Put(1), Before(Some(2))), (0, 9, Put(2), Before(None))]);
    }

    #[test]
    fn an_unanswered_operation_may_have_happened_or_not() {
        let put = (0, NEVER, Put(5), Done);
        check(true, &[put, (1, 2, Get, Before(None)), (3, 4, Get, Before(Some(5)))]);
        check(true, &[put, (1, 2, Get, Before(None)), (3, 4, Get, Before(None))]);
        check(false, &[put, (1, 2, Get, Before(Some(5))), (3, 4, Get, Before(None))]);
        check(false, &[(2, NEVER, Put(5), Done), (0, 1, Get, Before(Some(5)))]);
    }

    #[test]
    fn a_stale_read_is_found() {
        check(false, &[(0, 1, Put(5), Before(None)), (2, 3, Get, Before(None))]);
    }

    #[test]
    fn a_read_of_a_value_never_written_is_found() {
        check(false, &[(0, 9, Put(5), Before(None)), (1, 8, Get, Before(Some(6)))]);
    }

    #[test]
    fn reads_that_go_back_in_time_are_found() {
        let put = (0, 9, Put(5), Before(None));
        check(true, &[put, (1, 2, Get, Before(None)), (3, 4, Get, Before(Some(5)))]);
        check(false, &[put, (1, 2, Get, Before(Some(5))), (3, 4, Get, Before(None))]);
    }

    #[test]
    fn a_lost_update_is_found() {
        check(false, &[(0, 3, Add(1), After(Some(1))), (1, 2, Add(1), After(Some(1)))]);
        let unheard = [(0, 3, Add(1), Done), (1, 2, Add(1), Done), (4, 5, Get, Before(Some(1)))];
        check(false, &unheard);
    }

    #[test]
    fn two_winners_are_found() {
        check(false, &[(0, 3, Create(1), Before(None)), (1, 2, Create(2), Before(None))]);
        let swaps = [
            (0, 1, Put(1), Before(None)),
            (2, 5, Swap { expected: 1, new: 2 }, Done),
            (3, 4, Swap { expected: 1, new: 3 }, Done),
        ];
        check(false, &swaps);
    }

    #[test]
    fn a_refusal_without_a_reason_is_found() {
        check(false, &[(0, 1, Create(1), Refused(None))]);
        let events =
            [(0, 1, Put(1), Before(None)), (2, 3, Swap { expected: 1, new: 2 }, Refused(Some(1)))];
        check(false, &events);
    }

    /// Callers of a register that forgets to lock: each reads, and later writes a value based on
    /// that. The same callers of a register that locks are fine.
    #[test]
    fn a_register_without_locks_is_detected() {
        for (locked, expected) in [(true, true), (false, false)] {
            let (mut state, mut now, mut events) = (0, 0, Vec::new());
            for _ in 0..20 {
                let called = now;
                let read = state;
                for caller in 0..2 {
                    let base = if locked { state } else { read };
                    state = base + 1;
                    let event = Told { operation: Add(1), response: After(Some(state)) };
                    events.push(Event { called, returned: now + 2 + caller, event });
                }
                now += 4;
            }
            assert_eq!(is_linearizable(Some(0), &events), expected, "locked: {locked}");
        }
    }

    #[test]
    fn a_full_history_is_checked_in_reasonable_time() {
        let events: Vec<Event> = (0..EVENTS_MAX as u64)
            .map(|number| Event {
                called: number * 2,
                returned: number * 2 + 13,
                event: Told { operation: Add(1), response: After(Some(number as i64 + 1)) },
            })
            .collect();
        assert!(is_linearizable(None, &events));
    }
}
