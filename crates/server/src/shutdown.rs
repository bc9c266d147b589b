//! Stopping: a signal reaches every listener once.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::unconstrained;

/// Tells listeners to stop. So does dropping it.
pub struct StopHandle {
    sender: watch::Sender<bool>,
}

/// Listens for a [`StopHandle`].
#[derive(Clone)]
pub struct Listener {
    receiver: watch::Receiver<bool>,
}

pub fn channel() -> (StopHandle, Listener) {
    let (sender, receiver) = watch::channel(false);
    (StopHandle { sender }, Listener { receiver })
}

impl StopHandle {
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }
}

impl Listener {
    pub async fn stopped(&mut self) {
        let flag = self.receiver.clone();
        // It must register the waker even if the task has used up its budget and should yield.
        let stopped = unconstrained(self.receiver.wait_for(|stopped| *stopped));
        let mut stopped = std::pin::pin!(stopped);
        let mut woken: Option<Waker> = None;
        poll_fn(|context| {
            // Connections poll this with every request, and registering again would take a lock
            // that they share. A task that is sure to be woken only checks the flag. A dropped
            // handle, which is an error here, counts as a stop.
            let waits = woken.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if waits && matches!(flag.has_changed(), Ok(false)) {
                return Poll::Pending;
            }
            woken = Some(context.waker().clone());
            stopped.as_mut().poll(context).map(drop)
        })
        .await;
    }
}

/// Whether the server is about to stop: it says that it is not ready, and still answers, so that a load balancer can take
/// it out before anything is refused.
#[derive(Clone, Default)]
pub struct Drain {
    is_draining: Arc<AtomicBool>,
}

impl Drain {
    pub fn begin(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// The signals that end the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    Terminate,
    Interrupt,
}

impl StopSignal {
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Terminate => "SIGTERM",
            StopSignal::Interrupt => "SIGINT",
        }
    }

    /// The status that shells report for a process ended by the signal.
    pub fn exit_code(self) -> i32 {
        match self {
            StopSignal::Interrupt => 128 + 2,
            StopSignal::Terminate => 128 + 15,
        }
    }
}

/// Receives every [`StopSignal`] from its creation on.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub fn listen() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
        }
    }

    /// Ends the process at the next signal: a user who asks twice doesn't want to wait.
    /// Acknowledged writes survive that as they survive any crash.
    pub async fn exit_at_next(mut self) {
        let signal = self.next().await;
        tracing::warn!(signal = signal.name(), "stopping at once, without waiting for requests");
        std::process::exit(signal.exit_code());
    }
}

#[cfg(test)]
mod tests {
    use super::channel;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;
    use tokio::task::coop::consume_budget;

    /// A task that has used up its budget must still receive the stop.
    #[tokio::test]
    async fn a_stop_reaches_a_listener_that_had_no_budget_when_it_started() {
        let (trigger, mut listener) = channel();
        let task = tokio::spawn(async move {
            let mut stopped = pin!(listener.stopped());
            let mut is_busy = true;
            poll_fn(|context| {
                while std::mem::take(&mut is_busy) {
                    is_busy = pin!(consume_budget()).poll(context).is_ready();
                }
                stopped.as_mut().poll(context)
            })
            .await;
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        trigger.stop();
        tokio::time::timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
    }
}
