//! Stopping: a signal is heard once by everybody who listens.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Tells listeners to stop. Dropping it does, too.
pub struct Trigger {
    sender: watch::Sender<bool>,
}

/// Hears a [`Trigger`].
#[derive(Clone)]
pub struct Listener {
    receiver: watch::Receiver<bool>,
}

pub fn channel() -> (Trigger, Listener) {
    let (sender, receiver) = watch::channel(false);
    (Trigger { sender }, Listener { receiver })
}

impl Trigger {
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }
}

impl Listener {
    pub async fn stopped(&mut self) {
        // A dropped trigger counts as a stop.
        let _ = self.receiver.wait_for(|stopped| *stopped).await;
    }
}

/// The signals that ask the process to end.
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

    /// What shells report for a process that the signal ended.
    pub fn exit_code(self) -> i32 {
        match self {
            StopSignal::Interrupt => 128 + 2,
            StopSignal::Terminate => 128 + 15,
        }
    }
}

/// Hears every [`StopSignal`] from when it is made.
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

    /// Ends the process at the next signal: whoever asks twice doesn't want to wait. Acknowledged writes
    /// survive that as they survive any crash.
    pub async fn exit_at_next(mut self) {
        let signal = self.next().await;
        tracing::warn!(signal = signal.name(), "ending at once");
        std::process::exit(signal.exit_code());
    }
}
