//! One write, from its admission to its acknowledgement.

use std::future::poll_fn;
use std::sync::Arc;

use futures_channel::oneshot;
use zenobe_store::{
    Decide, Decision, Error, Key, Operation, Result, Value, WriteOutcome, WriteSet,
};

use crate::overlay::InFlight;
use crate::shared::Shared;

pub(crate) async fn write(
    shared: &Shared,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<WriteOutcome> {
    let epoch = poll_fn(|context| shared.queue.poll_admission(context)).await?;
    match decide_and_enqueue(shared, epoch, set, decide)? {
        Step::Done => Ok(WriteOutcome::default()),
        Step::InFlight(answer) => answer.await.unwrap_or_else(|oneshot::Canceled| {
            Err(Error::Io { detail: "the committer ended without an answer".to_owned() })
        }),
    }
}

enum Step {
    /// Nothing to write, and the decision rests on nothing that could still be lost.
    Done,
    InFlight(oneshot::Receiver<Result<WriteOutcome>>),
}

/// Everything that happens under the locks of the keys.
fn decide_and_enqueue(
    shared: &Shared,
    epoch: u64,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<Step> {
    let _locks = shared.locks.lock(set);
    let reads = read(shared, set)?;
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

struct Reads {
    values: Vec<Option<Value>>,
    /// Whether one of the values is not durable yet.
    in_flight: bool,
}

fn read(shared: &Shared, set: WriteSet<'_>) -> Result<Reads> {
    let keys = || set.guards.iter().chain(set.keys);
    let overlaid: Vec<Option<InFlight>> = keys().map(|key| shared.overlay.get(key)).collect();
    // Taken only now, so that it holds whatever has left the overlay before.
    let view = shared.view_for_writing()?;
    let value = |(key, overlaid): (&Key, &Option<InFlight>)| match overlaid {
        Some(in_flight) => Ok(in_flight.value.clone()),
        None => view.read(key),
    };
    let values = keys().zip(&overlaid).map(value).collect::<Result<_>>()?;
    Ok(Reads { values, in_flight: overlaid.iter().any(Option::is_some) })
}
