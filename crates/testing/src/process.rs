//! A child process. Its output is read as it comes, and dropping its value kills it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::wait_for;

const KEPT_LINES_MAX: usize = 200;

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
    output: Output,
}

impl Process {
    /// Starts a command with an empty standard input. Its output goes to [`Process::output`].
    ///
    /// # Errors
    /// If it cannot be run.
    pub fn start(command: &mut Command) -> io::Result<Process> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let output = Output::default();
        output.follow(child.stdout.take().expect("stdout is piped"), Stream::Output);
        output.follow(child.stderr.take().expect("stderr is piped"), Stream::Error);
        Ok(Process { child, output })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal. Does nothing if the process is already gone.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// How the process has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until the process ends; `None` if it does not in this time.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        wait_for(patience, || self.ended())
    }

    /// Ends the process as `kill -9` does, unless it has already ended. Returns how it ended.
    ///
    /// # Panics
    /// If the system does not allow it.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a killed child can be waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Does nothing to a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The stream that a line was printed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

/// The output of a process. Keeps the last lines.
#[derive(Clone, Default)]
pub struct Output {
    shared: Arc<(Mutex<Lines>, Condvar)>,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<(Stream, String)>,
    /// How many lines were dropped before the first that is kept.
    forgotten: usize,
    open_streams: usize,
}

impl Output {
    /// Waits until `find` accepts a line, and returns its result. `None` if the process closes its
    /// output or the time is up first.
    pub fn find<T>(
        &self,
        patience: Duration,
        mut find: impl FnMut(Stream, &str) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut next = 0;
        let mut lines = self.lock();
        loop {
            let new = lines.kept.iter().skip(next.max(lines.forgotten) - lines.forgotten);
            if let Some(found) = new.into_iter().find_map(|(stream, line)| find(*stream, line)) {
                return Some(found);
            }
            next = lines.forgotten + lines.kept.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if lines.open_streams == 0 || left.is_zero() {
                return None;
            }
            let woken = self.shared.1.wait_timeout(lines, left);
            lines = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a line that contains a text, and returns it.
    ///
    /// # Panics
    /// If there is none in this time.
    pub fn expect(&self, patience: Duration, text: &str) -> String {
        let found = self.find(patience, |_, line| line.contains(text).then(|| line.to_owned()));
        found.unwrap_or_else(|| panic!("nothing printed contains `{text}`:\n{}", self.text()))
    }

    /// The last lines, each marked as a quotation.
    pub fn text(&self) -> String {
        self.lock().kept.iter().map(|(_, line)| format!("  | {line}\n")).collect()
    }

    /// Reads a stream to its end on a separate thread, so that the process never blocks on it.
    fn follow(&self, source: impl Read + Send + 'static, stream: Stream) {
        self.lock().open_streams += 1;
        let output = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                output.push(stream, line);
            }
            output.lock().open_streams -= 1;
            output.shared.1.notify_all();
        });
    }

    fn push(&self, stream: Stream, line: String) {
        let mut lines = self.lock();
        if lines.kept.len() == KEPT_LINES_MAX {
            lines.kept.pop_front();
            lines.forgotten += 1;
        }
        lines.kept.push_back((stream, line));
        self.shared.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn what_a_process_says_is_known_after_its_end() {
        let mut process = shell("echo one; echo two >&2; exit 3");
        assert_eq!(process.wait(LONG).and_then(|status| status.code()), Some(3));
        process.output().expect(LONG, "one");
        let found = process.output().find(LONG, |stream, line| (line == "two").then_some(stream));
        assert_eq!(found, Some(Stream::Error));
        assert_eq!(process.output().find(LONG, |_, line| (line == "three").then_some(())), None);
    }

    #[test]
    fn a_line_is_found_while_the_process_goes_on() {
        let mut process = shell("echo here; exec sleep 1000");
        process.output().expect(LONG, "here");
        assert_eq!(process.ended(), None);
    }

    #[test]
    fn only_the_last_lines_are_kept_and_each_is_looked_at_once() {
        let mut process = shell("seq 1 1000");
        let mut seen = 0;
        let last = process.output().find(LONG, |_, line| {
            seen += 1;
            (line == "1000").then_some(())
        });
        assert!(last.is_some() && seen <= 1_000);
        assert!(process.wait(LONG).is_some_and(|status| status.success()));
        assert_eq!(process.output().text().lines().count(), KEPT_LINES_MAX);
    }
}
