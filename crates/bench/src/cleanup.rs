//! Cleans up what must not outlive the program: the processes that it started and the data that
//! they wrote.
//!
//! Values clean up when they are dropped. A signal drops nothing, so its handler cleans up what is
//! registered here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use zenobe_testing::{Output, Signal, listening_address, wait_for};

use crate::Result;

/// The status that shells use for an interrupted program.
const EXIT_INTERRUPTED: i32 = 130;
/// How long a process may take to end before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

static PROCESSES: Mutex<Vec<Arc<Mutex<zenobe_testing::Process>>>> = Mutex::new(Vec::new());
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A running process. Dropping this value ends it.
pub struct Process {
    process: Arc<Mutex<zenobe_testing::Process>>,
    id: u32,
    output: Output,
}

impl Process {
    pub fn start(command: &mut Command) -> Result<Process> {
        let program = command.get_program().to_string_lossy().into_owned();
        // Locked before the start, so that a signal handler sees every started process and nothing
        // starts after it.
        let mut processes = lock(&PROCESSES);
        let process = zenobe_testing::Process::start(command)
            .map_err(|error| format!("cannot run `{program}`: {error}"))?;
        let (id, output) = (process.id(), process.output().clone());
        let process = Arc::new(Mutex::new(process));
        processes.push(process.clone());
        Ok(Process { process, id, output })
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// The address that the process has printed.
    pub fn address(&self) -> Result<SocketAddr> {
        listening_address(&self.output)
            .ok_or_else(|| format!("it does not listen: {}", self.complaint()).into())
    }

    /// The end of its output, for the error that reports its failure.
    pub fn complaint(&self) -> String {
        let text = self.output.text();
        let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches("  | ")).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }

    pub fn has_ended(&self) -> bool {
        lock(&self.process).ended().is_some()
    }

    /// Waits up to `patience` until the process ends by itself, and whether it was content.
    pub fn wait(&self, patience: Duration) -> Result<()> {
        // The lock is free between two checks, so a signal handler can end the process.
        match wait_for(patience, || lock(&self.process).ended()) {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(self.complaint().into()),
            None => Err("the process does not end".into()),
        }
    }

    /// Asks the process to end and waits up to `patience`.
    pub fn stop(&self, patience: Duration) -> Result<()> {
        lock(&self.process).signal(Signal::TERM);
        // The lock is free between two checks, so a signal handler can end the process.
        wait_for(patience, || self.has_ended().then_some(()))
            .ok_or_else(|| "the process does not end when it is asked to".into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.stop(STOP_PATIENCE).is_err() {
            lock(&self.process).kill();
        }
        lock(&PROCESSES).retain(|process| !Arc::ptr_eq(process, &self.process));
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

    /// A path beside it that does not exist, for a program that runs as another user and cleans up
    /// by itself.
    pub fn beside(&self, name: &str) -> Result<PathBuf> {
        let own = self.directory.path();
        let own_name = own.file_name().ok_or("the directory has no name")?.to_string_lossy();
        Ok(own.with_file_name(format!("{own_name}-{name}")))
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
        for process in processes.iter() {
            lock(process).kill();
        }
        for directory in lock(&DIRECTORIES).iter() {
            let _ = std::fs::remove_dir_all(directory);
        }
        std::process::exit(EXIT_INTERRUPTED);
    });
    Ok(())
}

/// A panic leaves nothing here half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
