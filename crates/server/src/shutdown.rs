//! Stopping: a signal is heard once by everybody who listens.

use tokio::signal::unix::{SignalKind, signal};
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

/// A future that resolves with the name of the first SIGTERM or SIGINT from now on.
pub fn requested() -> std::io::Result<impl Future<Output = &'static str>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}
