//! Answers to many requests at once, such as the writes of a group.
//!
//! A task that another thread wakes costs a system call, each time. So answers to requests that wait on the same runtime go together:
//! a task there sends them, and what it wakes is on its own thread.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Where an answer goes.
#[derive(Debug)]
pub struct Asker<T> {
    answer: oneshot::Sender<T>,
    /// Where it was asked, if a runtime polled it.
    runtime: Option<Handle>,
}

impl<T> Asker<T> {
    /// To be called by whoever then waits for the receiver.
    pub fn new() -> (Asker<T>, oneshot::Receiver<T>) {
        let (answer, answered) = oneshot::channel();
        // Outside of tasks, somebody else may wait on a thread that has merely entered a runtime, which nobody drives.
        let runtime = tokio::task::try_id().and_then(|_| Handle::try_current().ok());
        (Asker { answer, runtime }, answered)
    }

    /// Whether nobody waits any more.
    pub fn is_gone(&self) -> bool {
        self.answer.is_closed()
    }
}

/// Answers that are not sent yet. Dropping them sends them: must not happen under a lock.
pub struct Answers<T: Send + 'static> {
    /// A node has few runtimes.
    runtimes: Vec<(Option<Handle>, Unsent<T>)>,
}

/// Sent when dropped. So a runtime that has been shut down, which drops its tasks, sends them, too.
struct Unsent<T>(Vec<(oneshot::Sender<T>, T)>);

impl<T: Send + 'static> Default for Answers<T> {
    fn default() -> Answers<T> {
        Answers { runtimes: Vec::new() }
    }
}

impl<T: Send + 'static> Answers<T> {
    pub fn push(&mut self, Asker { answer, runtime }: Asker<T>, message: T) {
        let id = |runtime: &Option<Handle>| runtime.as_ref().map(Handle::id);
        let own = id(&runtime);
        let place = self.runtimes.iter().position(|(runtime, _)| id(runtime) == own);
        let place = place.unwrap_or_else(|| {
            self.runtimes.push((runtime, Unsent(Vec::new())));
            self.runtimes.len() - 1
        });
        self.runtimes[place].1.0.push((answer, message));
    }
}

impl<T: Send + 'static> Drop for Answers<T> {
    fn drop(&mut self) {
        for (runtime, unsent) in self.runtimes.drain(..) {
            match runtime {
                // For one answer, the task would cost as much as it saves.
                Some(runtime) if unsent.0.len() > 1 => drop(runtime.spawn(async { drop(unsent) })),
                _ => drop(unsent),
            }
        }
    }
}

impl<T> Drop for Unsent<T> {
    fn drop(&mut self) {
        for (answer, message) in self.0.drain(..) {
            let _gone = answer.send(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    /// Asked by a task of the runtime.
    fn asked<T: Send + 'static>(runtime: &Runtime) -> (Asker<T>, oneshot::Receiver<T>) {
        runtime.block_on(runtime.spawn(async { Asker::new() })).unwrap()
    }

    #[test]
    fn answers_to_one_runtime_are_sent_there() {
        let (here, there) = (runtime(), runtime());
        let mut answers = Answers::default();
        let mut receivers = Vec::new();
        for (runtime, number) in [(&here, 1), (&there, 2), (&here, 3)] {
            let (asker, answered) = asked(runtime);
            answers.push(asker, number);
            receivers.push(answered);
        }
        drop(answers);
        let [first, lone, second] = &mut receivers[..] else { panic!("three were asked") };
        assert_eq!(lone.now_or_never(), Some(Ok(2)), "alone on its runtime");
        assert!(first.now_or_never().is_none(), "its runtime has not run yet");
        assert_eq!(here.block_on(async { (first.await, second.await) }), (Ok(1), Ok(3)));
    }

    #[test]
    fn answers_are_sent_without_a_runtime_and_to_one_that_has_ended() {
        let ended = runtime();
        let mut answers = Answers::default();
        let of_ended = [asked(&ended), asked(&ended)];
        let of_none = [Asker::new(), Asker::new()];
        let mut receivers = Vec::new();
        for (asker, answered) in of_ended.into_iter().chain(of_none) {
            answers.push(asker, ());
            receivers.push(answered);
        }
        drop(ended);
        drop(answers);
        assert!(receivers.into_iter().all(|answered| answered.now_or_never() == Some(Ok(()))));
    }

    /// A thread that has entered a runtime may block without driving it, as `block_on` of another executor does.
    #[test]
    fn answers_do_not_go_through_a_runtime_that_was_merely_entered() {
        let entered = runtime();
        let _current = entered.enter();
        let mut answers = Answers::default();
        let mut receivers = Vec::new();
        for (asker, answered) in [Asker::new(), Asker::new()] {
            answers.push(asker, ());
            receivers.push(answered);
        }
        drop(answers);
        assert!(receivers.into_iter().all(|answered| answered.now_or_never() == Some(Ok(()))));
    }

    #[test]
    fn whoever_has_gone_is_known() {
        let (asker, answered) = Asker::<()>::new();
        assert!(!asker.is_gone());
        drop(answered);
        assert!(asker.is_gone());
    }
}
