//! The timer that limits how long a connection may be without a complete request head.
//!
//! hyper asks for a new timer for every request and drops it when the head is there, but starting a
//! timer of the runtime takes a lock. Here each connection keeps one timer, set for some earlier
//! request. It almost never fires. If it fires while the current request has time left, it is set
//! again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

/// The timer of one connection.
#[derive(Default)]
pub struct ConnectionTimer {
    sleep: Arc<Mutex<SharedSleep>>,
}

#[derive(Default)]
struct SharedSleep {
    /// Fires at or before every deadline.
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// Waits for a deadline with its connection's sleep, whatever that was set for.
struct Deadline {
    instant: Instant,
    sleep: Arc<Mutex<SharedSleep>>,
}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, instant: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { instant, sleep: Arc::clone(&self.sleep) })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.lock().poll(self.instant.into(), context)
    }
}

impl SharedSleep {
    fn poll(&mut self, deadline: tokio::time::Instant, context: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() == deadline {
                return Poll::Ready(());
            }
            // It fired for another deadline. A deadline in the past fires at once.
            sleep.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn each_deadline_is_waited_for_whatever_the_alarm_was_set_for() {
        let timer = ConnectionTimer::default();
        for (wait, given_up_after) in [(3, 1), (3, 2), (5, 5), (2, 1), (1, 1), (9, 3), (2, 2)] {
            let started = timer.now();
            let (wait, patience) = (Duration::from_secs(wait), Duration::from_secs(given_up_after));
            let waited = timeout(patience, timer.sleep(wait)).await;
            assert_eq!(waited.is_ok(), wait <= patience, "{wait:?}");
            assert!(timer.now() - started >= wait.min(patience), "{wait:?}");
        }
        let sleep = timer.sleep(LONG);
        advance(LONG * 2).await;
        assert!(timeout(Duration::ZERO, sleep).await.is_ok(), "it has passed already");
    }
}
