//! A thread with a runtime of its own.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Ends when it is dropped, and with it what was spawned there.
pub struct RuntimeThread {
    pub runtime: Handle,
    _running: oneshot::Sender<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    Usual,
    /// Takes a tenth of a processor that others want, too, and all of one that nobody wants.
    Low,
}

/// The tenth part of the weight that threads usually have, on Linux.
#[cfg(target_os = "linux")]
const LOW_NICENESS: i32 = 10;

impl RuntimeThread {
    pub fn start(name: &str, priority: Priority) -> io::Result<RuntimeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            if priority == Priority::Low {
                lower_priority();
            }
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(RuntimeThread { runtime: handle, _running: running })
    }
}

/// Of the calling thread, where threads have priorities of their own.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let thread = Some(rustix::thread::gettid());
        let lowered = getpriority_process(thread)
            .and_then(|niceness| setpriority_process(thread, niceness.max(LOW_NICENESS)));
        if let Err(error) = lowered {
            tracing::warn!(%error, "the priority of background work cannot be lowered");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[tokio::test]
    async fn only_background_work_has_a_low_priority() {
        let niceness = async |priority| {
            let thread = RuntimeThread::start("test", priority).unwrap();
            let measured = async { getpriority_process(Some(rustix::thread::gettid())) };
            thread.runtime.spawn(measured).await.unwrap().unwrap()
        };
        let usual = getpriority_process(None).unwrap();
        assert_eq!(niceness(Priority::Usual).await, usual);
        assert_eq!(niceness(Priority::Low).await, usual.max(LOW_NICENESS));
    }
}
