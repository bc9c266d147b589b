//! A thread with a runtime of its own.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Ends when it is dropped, and with it what was spawned there. The drop doesn't wait for that; [`RuntimeThread::join`] does.
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
    /// Ends the thread and waits for it: nothing that was spawned there runs any more.
    pub fn join(&mut self) {
        drop(self.running.take());
        let thread = self.thread.take();
        // What was spawned there may hold the last reference, and a thread cannot wait for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // A panic of a task has been told of already.
            let _ = thread.join();
        }
    }
}
