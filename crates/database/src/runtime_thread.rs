//! A thread with a runtime of its own.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Ends when it is dropped, with everything spawned on it. Dropping doesn't wait for that;
/// [`RuntimeThread::join`] does.
pub struct RuntimeThread {
    pub runtime: Handle,
    running: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RuntimeThread {
    pub fn start(name: &str) -> io::Result<RuntimeThread> {
        RuntimeThread::build(name, Builder::new_current_thread().enable_all(), || {})
    }

    /// For work that requests must hardly notice: wherever they want the processor, they get it
    /// first.
    pub fn start_yielding(name: &str) -> io::Result<RuntimeThread> {
        let mut builder = Builder::new_current_thread();
        RuntimeThread::build(name, builder.enable_all(), yield_to_requests)
    }

    /// Calls `on_rest` on the thread whenever it has nothing to do.
    pub fn start_noting_rest(
        name: &str,
        on_rest: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<RuntimeThread> {
        let mut builder = Builder::new_current_thread();
        RuntimeThread::build(name, builder.enable_all().on_thread_park(on_rest), || {})
    }

    fn build(name: &str, builder: &mut Builder, begin: fn()) -> io::Result<RuntimeThread> {
        let runtime = builder.build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            begin();
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(RuntimeThread { runtime: handle, running: Some(running), thread: Some(thread) })
    }
}

/// Lowers the priority of this thread, and of those that it starts. It then gets about a tenth of a
/// processor that others want as well, and all of one that is idle. On systems other than Linux the
/// priority belongs to the whole process, so nothing is lowered there.
fn yield_to_requests() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 10) {
        tracing::debug!(%error, "a thread in the background keeps its priority");
    }
}

impl RuntimeThread {
    /// Ends the thread and waits for it. Afterwards nothing spawned on it runs any more.
    pub fn join(&mut self) {
        drop(self.running.take());
        let thread = self.thread.take();
        // A task on this thread may hold the last reference, and a thread cannot join itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // The panic of a task has been reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_yielding_threads_and_what_they_start_have_a_lower_priority() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let mut thread = RuntimeThread::start_yielding("test").unwrap();
        let seen = thread.runtime.spawn(async move {
            (priority(), tokio::task::spawn_blocking(priority).await.unwrap())
        });
        let here = Builder::new_current_thread().build().unwrap();
        assert_eq!(here.block_on(seen).unwrap(), (10, 10));
        thread.join();
        assert_eq!(priority(), before);
    }
}
