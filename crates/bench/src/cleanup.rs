//! Cleans up what must not outlive the program: the processes that it started and the data that
//! they wrote.
//!
//! Values clean up when they are dropped. A signal drops nothing, so its handler cleans up what is
//! registered here.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::Result;

/// The status that shells use for an interrupted program.
const EXIT_INTERRUPTED: i32 = 130;
/// How long a process may take to end before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

static PROCESSES: Mutex<Vec<Arc<Mutex<Child>>>> = Mutex::new(Vec::new());
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A running process. Dropping this value ends it.
pub struct Process {
    child: Arc<Mutex<Child>>,
    id: u32,
}

impl Process {
    pub fn start(command: &mut Command) -> Result<Process> {
        let program = command.get_program().to_string_lossy().into_owned();
        // Locked before the start, so that a signal handler sees every started process and nothing
        // starts after it.
        let mut processes = lock(&PROCESSES);
        let child = command.spawn().map_err(|error| format!("cannot run `{program}`: {error}"))?;
        let id = child.id();
        let child = Arc::new(Mutex::new(child));
        processes.push(child.clone());
        Ok(Process { child, id })
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn take_output(&mut self) -> Result<ChildStdout> {
        lock(&self.child).stdout.take().ok_or_else(|| "standard output is not piped".into())
    }

    pub fn has_ended(&self) -> bool {
        matches!(lock(&self.child).try_wait(), Ok(Some(_)))
    }

    /// Asks the process to end and waits up to `patience`.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        if let Some(id) = i32::try_from(self.id).ok().and_then(Pid::from_raw) {
            // The process may already be gone.
            let _ = kill_process(id, Signal::TERM);
        }
        let end = Instant::now() + patience;
        while !self.has_ended() {
            if Instant::now() > end {
                return Err("the process does not end when it is asked to".into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.stop(STOP_PATIENCE).is_err() {
            kill(&self.child);
        }
        lock(&PROCESSES).retain(|child| !Arc::ptr_eq(child, &self.child));
    }
}

/// A directory that is removed with everything in it.
pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    pub fn create(parent: &Path) -> Result<Scratch> {
        std::fs::create_dir_all(parent)
            .map_err(|error| format!("cannot create {}: {error}", parent.display()))?;
        let directory = tempfile::Builder::new().prefix("zenobe-bench-").tempdir_in(parent)?;
        lock(&DIRECTORIES).push(directory.path().to_owned());
        Ok(Scratch { directory })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        lock(&DIRECTORIES).retain(|path| path != self.directory.path());
    }
}

/// Installs signal handlers that clean up before they end the program.
pub fn on_signals() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(guard);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        });
        eprintln!("\ninterrupted: ending what was started");
        // Held until the end, so that no new process can start.
        let processes = lock(&PROCESSES);
        for child in processes.iter() {
            kill(child);
        }
        for directory in lock(&DIRECTORIES).iter() {
            let _ = std::fs::remove_dir_all(directory);
        }
        std::process::exit(EXIT_INTERRUPTED);
    });
    Ok(())
}

fn kill(child: &Mutex<Child>) {
    let mut child = lock(child);
    let _ = child.kill();
    let _ = child.wait();
}

/// A panic leaves nothing here half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
