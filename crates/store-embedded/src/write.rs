//! One write, from its admission to its acknowledgement.

use std::future::poll_fn;
use std::sync::Arc;

use futures_channel::oneshot;
use zenobe_store::{
    Decide, Decision, Error, Key, Operation, Result, Value, WriteOutcome, WriteSet, yield_now,
};

use crate::overlay::InFlight;
use crate::shared::Shared;
use crate::turn::commit_waiting;

pub(crate) async fn write(
    shared: &Shared,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<WriteOutcome> {
    let epoch = poll_fn(|context| shared.queue.poll_admission(context)).await?;
    let early = match set.keys.len() {
        0..EARLY_READS_KEYS_MIN => None,
        _ => Some(EarlyReads::take(shared, set)?),
    };
    match decide_and_enqueue(shared, epoch, set, early.as_ref(), decide)? {
        Step::Done => Ok(WriteOutcome::default()),
        Step::InFlight(answer) => outcome(shared, answer).await,
    }
}

async fn outcome(shared: &Shared, mut answer: Answer) -> Result<WriteOutcome> {
    let lost = |oneshot::Canceled| {
        Err(Error::Io { detail: "the committer ended without an answer".to_owned() })
    };
    let abandoned = Abandoned(shared);
    // Others on the same thread enqueue their writes too: one commit serves all of them.
    yield_now().await;
    std::mem::forget(abandoned);
    match answer.try_recv() {
        Ok(Some(outcome)) => return outcome,
        Ok(None) => commit_waiting(shared),
        Err(canceled) => return lost(canceled),
    }
    answer.await.unwrap_or_else(lost)
}

/// Dropped with a write that nobody waits for any more: it has been enqueued, and must be committed all the same.
struct Abandoned<'a>(&'a Shared);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.queue.call_committer();
    }
}

type Answer = oneshot::Receiver<Result<WriteOutcome>>;

enum Step {
    /// Nothing to write, and the decision rests on nothing that could still be lost.
    Done,
    InFlight(Answer),
}

/// Everything that happens under the locks of the keys.
fn decide_and_enqueue(
    shared: &Shared,
    epoch: u64,
    set: WriteSet<'_>,
    early: Option<&EarlyReads>,
    decide: &mut Decide<'_>,
) -> Result<Step> {
    let _locks = shared.locks.lock(set);
    let reads = read(shared, set, early)?;
    let operations = match decide(&reads.values) {
        Decision::Commit(batch) => batch.operations,
        Decision::Abort => Vec::new(),
    };
    if operations.is_empty() && !reads.in_flight {
        return Ok(Step::Done);
    }
    let published = |key: &Key| shared.view_for_writing()?.read(key);
    shared.known_counters.check(&operations, &shared.overlay, published)?;
    let are_declared = operations.iter().map(|operation| is_declared(set, operation)).collect();
    let operations: Arc<Vec<Operation>> = Arc::new(operations);
    let placed = shared.queue.push(epoch, Arc::clone(&operations), are_declared)?;
    shared.overlay.insert(placed.first_order, &operations);
    shared.known_counters.forget_replaced(&operations);
    Ok(Step::InFlight(placed.answer))
}

/// Whether an operation writes a key that was declared, and not one that was derived while deciding.
fn is_declared(set: WriteSet<'_>, operation: &Operation) -> bool {
    match operation {
        Operation::Put { key, .. } => set.keys.contains(key),
        _ => false,
    }
}

/// Writes of so many keys read them before they lock them: others wait for the locks, and reading what is not cached
/// takes much longer than deciding.
const EARLY_READS_KEYS_MIN: usize = 4;

/// What keys held in a state before they were locked.
struct EarlyReads {
    state: u64,
    /// Of guards and keys, in this order.
    values: Vec<Option<Value>>,
}

impl EarlyReads {
    fn take(shared: &Shared, set: WriteSet<'_>) -> Result<EarlyReads> {
        let view = shared.view_for_writing()?;
        let keys = set.guards.iter().chain(set.keys);
        let values = keys.map(|key| view.read(key)).collect::<Result<_>>()?;
        Ok(EarlyReads { state: view.state(), values })
    }

    /// What the key in this place still holds, if it is known not to have changed. Nothing may be in flight on it, and it must
    /// be locked.
    fn get(&self, shared: &Shared, place: usize, key: &Key) -> Option<Option<Value>> {
        shared.values.is_unchanged(key, self.state).then(|| self.values[place].clone())
    }
}

struct Reads {
    values: Vec<Option<Value>>,
    /// Whether one of the values is not durable yet.
    in_flight: bool,
}

fn read(shared: &Shared, set: WriteSet<'_>, early: Option<&EarlyReads>) -> Result<Reads> {
    let keys = || set.guards.iter().chain(set.keys);
    let overlaid: Vec<Option<InFlight>> = keys().map(|key| shared.overlay.get(key)).collect();
    // Taken only now, so that it holds whatever has left the overlay before.
    let view = shared.view_for_writing()?;
    let value = |(place, (key, overlaid)): (usize, (&Key, &Option<InFlight>))| match overlaid {
        Some(in_flight) => Ok(in_flight.value.clone()),
        None => match early.and_then(|early| early.get(shared, place, key)) {
            Some(value) => Ok(value),
            None => view.read(key),
        },
    };
    let values = keys().zip(&overlaid).enumerate().map(value).collect::<Result<_>>()?;
    Ok(Reads { values, in_flight: overlaid.iter().any(Option::is_some) })
}

#[cfg(test)]
mod tests {
    use super::{EarlyReads, read, write};
    use crate::committer::Committer;
    use crate::options::Options;
    use crate::shared::Shared;
    use std::sync::Arc;
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Batch, Decision, Key, KeyRange, Value, WriteSet};

    /// What is decided rests on what keys hold once they are locked.
    #[test]
    fn what_changes_before_the_lock_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Shared::open(directory.path(), Options::default()).unwrap();
        let shared = Arc::new(shared);
        let committer = Committer::new(Arc::clone(&shared)).unwrap();
        let thread = std::thread::spawn(move || committer.run());
        let commit = |fill: fn(&mut Batch)| {
            let mut decide = |_: &[_]| {
                let mut batch = Batch::new();
                fill(&mut batch);
                Decision::Commit(batch)
            };
            block_on(write(&shared, WriteSet::default(), &mut decide)).unwrap();
        };
        commit(|batch| {
            batch.put("changed", "old");
            batch.put("deleted", "old");
            batch.put("kept", "old");
        });

        let [guards, keys] = [&["kept"][..], &["changed", "deleted", "added", "kept"]];
        let [guards, keys]: [Vec<Key>; 2] =
            [guards, keys].map(|names| names.iter().map(|name| Key::from(*name)).collect());
        let set = WriteSet { guards: &guards, keys: &keys };
        let early = EarlyReads::take(&shared, set).unwrap();
        let known = || -> Vec<bool> {
            let places = guards.iter().chain(&keys).enumerate();
            places.map(|(place, key)| early.get(&shared, place, key).is_some()).collect()
        };
        let check = |expected: [Option<&'static str>; 5]| {
            let values = read(&shared, set, Some(&early)).unwrap().values;
            assert_eq!(values, expected.map(|value| value.map(Value::from)));
        };
        assert_eq!(known(), [true; 5]);
        check([Some("old"), Some("old"), Some("old"), None, Some("old")]);

        commit(|batch| {
            batch.put("changed", "new");
            batch.delete("deleted");
            batch.put("added", "new");
        });
        assert_eq!(known(), [true, false, false, false, true]);
        check([Some("old"), Some("new"), None, Some("new"), Some("old")]);

        commit(|batch| batch.delete_range(KeyRange::new("k", "l")));
        assert_eq!(known(), [false; 5]);
        check([None, Some("new"), None, Some("new"), None]);
        shared.queue.close();
        thread.join().unwrap();
    }
}
