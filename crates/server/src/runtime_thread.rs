//! A thread with a runtime of its own.

use std::io;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Ends when it is dropped, and with it what was spawned there.
pub struct RuntimeThread {
    pub runtime: Handle,
    _running: oneshot::Sender<()>,
}

impl RuntimeThread {
    pub fn start(name: &str) -> io::Result<RuntimeThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(RuntimeThread { runtime: handle, _running: running })
    }
}
