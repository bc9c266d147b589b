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
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(RuntimeThread { runtime: handle, running: Some(running), thread: Some(thread) })
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
