//! Reads that wait together share a statement.
//!
//! A read is sent at once while fewer statements are in flight than there are connections for reads. The others wait until one
//! of these ends, and are then sent together, each key once. A statement costs PostgreSQL far more than one more key in it. So a busy node
//! reads at a fraction of the cost, and on an idle node no read waits. Either way a read takes one exchange, and sees a state that is not older
//! than the read.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use zenobe_store::{Error, Key, Result};

use crate::answers::{Answers, Asker};
use crate::pool::Pool;
use crate::read::read_now;
use crate::rows::Read;
use zenobe_store::key_map::KeyMap;

/// What reads may add up to before the next has to wait for another statement.
const KEYS_MAX: usize = 512;

pub struct Gathering {
    in_flight_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    waiting: VecDeque<WaitingRead>,
}

/// A read that waits for others to end.
struct WaitingRead {
    keys: Vec<Key>,
    asker: Asker<Result<Vec<Read>>>,
}

/// The place of a statement in flight. Dropping it lets the next one go, so none is forgotten when its caller goes away.
struct StatementSlot<'p>(&'p Arc<Pool>);

impl Drop for StatementSlot<'_> {
    fn drop(&mut self) {
        self.0.gathering.proceed(self.0);
    }
}

impl Gathering {
    pub fn new(in_flight_max: usize) -> Gathering {
        Gathering { in_flight_max: in_flight_max.max(1), state: Mutex::default() }
    }

    /// Takes one of the places in flight, or else waits.
    fn enter(&self, keys: &[Key]) -> Option<oneshot::Receiver<Result<Vec<Read>>>> {
        let mut state = self.state.lock();
        if state.in_flight < self.in_flight_max {
            state.in_flight += 1;
            return None;
        }
        let (asker, answered) = Asker::new();
        state.waiting.push_back(WaitingRead { keys: keys.to_vec(), asker });
        Some(answered)
    }

    /// Passes a place in flight on to those that wait, or gives it up.
    fn proceed(&self, pool: &Arc<Pool>) {
        let mut state = self.state.lock();
        let together = state.next();
        if together.is_empty() {
            state.in_flight -= 1;
            return;
        }
        drop(state);
        let pool = Arc::clone(pool);
        Arc::clone(&pool).runtime.spawn(async move { read_together(&pool, together).await });
    }

    /// Once one statement has timed out, the store is unreachable: the reads behind it fail now instead of one by one.
    fn give_up(&self, error: &Error) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        let mut answers = Answers::default();
        waiting.into_iter().for_each(|read| answers.push(read.asker, Err(error.clone())));
    }
}

impl State {
    /// Takes as many waiting reads as a statement should hold, without those whose caller has gone away.
    fn next(&mut self) -> Vec<WaitingRead> {
        let mut keys = 0;
        let mut together = Vec::new();
        while keys < KEYS_MAX
            && let Some(waiting) = self.waiting.pop_front()
        {
            if !waiting.asker.is_gone() {
                keys += waiting.keys.len();
                together.push(waiting);
            }
        }
        together
    }
}

/// All keys as they are in one state.
pub async fn read_keys(pool: &Arc<Pool>, keys: &[Key]) -> Result<Vec<Read>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    match pool.gathering.enter(keys) {
        // Spawned, because a caller's future that nobody polls would keep its slot.
        None => {
            let (owned, keys) = (Arc::clone(pool), keys.to_vec());
            let read = pool.runtime.spawn(async move {
                let _slot = StatementSlot(&owned);
                read_or_give_up(&owned, &keys).await
            });
            read.await.unwrap_or(Err(Error::Closed))
        }
        Some(answered) => answered.await.unwrap_or(Err(Error::Closed)),
    }
}

async fn read_together(pool: &Arc<Pool>, together: Vec<WaitingRead>) {
    let slot = StatementSlot(pool);
    let (keys, places) = united(&together);
    let read = read_or_give_up(pool, &keys).await;
    // The next statement is on its way while these are answered.
    drop(slot);
    let mut answers = Answers::default();
    for (waiting, places) in together.into_iter().zip(places) {
        let own = match &read {
            Ok(reads) => Ok(places.into_iter().map(|place| reads[place].clone()).collect()),
            Err(error) => Err(error.clone()),
        };
        answers.push(waiting.asker, own);
    }
}

async fn read_or_give_up(pool: &Arc<Pool>, keys: &[Key]) -> Result<Vec<Read>> {
    let read = read_now(pool, keys).await;
    if let Err(error @ Error::Unavailable { .. }) = &read {
        pool.gathering.give_up(error);
    }
    read
}

/// Every key once, and where each read finds its own.
fn united(together: &[WaitingRead]) -> (Vec<Key>, Vec<Vec<usize>>) {
    let mut keys: Vec<Key> = Vec::new();
    let mut known: KeyMap<&[u8], usize> = KeyMap::default();
    let mut places = Vec::with_capacity(together.len());
    for waiting in together {
        let mut own = Vec::with_capacity(waiting.keys.len());
        for key in &waiting.keys {
            let place = *known.entry(&key[..]).or_insert(keys.len());
            if place == keys.len() {
                keys.push(key.clone());
            }
            own.push(place);
        }
        places.push(own);
    }
    (keys, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(keys: &[&'static str]) -> (WaitingRead, oneshot::Receiver<Result<Vec<Read>>>) {
        let (asker, answered) = Asker::new();
        (WaitingRead { keys: keys.iter().map(|key| Key::from(*key)).collect(), asker }, answered)
    }

    #[test]
    fn a_key_that_several_wait_for_is_read_once() {
        let (one, _one) = waiting(&["a", "version"]);
        let (other, _other) = waiting(&["b", "version", "a"]);
        let (keys, places) = united(&[one, other]);
        assert_eq!(keys, ["a", "version", "b"]);
        assert_eq!(places, [vec![0, 1], vec![2, 1, 0]]);
    }

    #[test]
    fn a_statement_takes_what_waits_up_to_a_bound_and_nobody_who_has_gone() {
        let mut state = State::default();
        let mut answers = Vec::new();
        for number in 0..KEYS_MAX {
            let (waiting, answered) = waiting(&["a", "b"]);
            state.waiting.push_back(waiting);
            // Every other caller goes away.
            if number % 2 == 0 {
                answers.push(answered);
            }
        }
        assert_eq!(state.next().len(), KEYS_MAX / 2);
        assert_eq!(state.next().len(), 0);
        assert!(state.waiting.is_empty());
    }
}
