//! Progress of long work, for the person who waits.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// A line that changes every second on a terminal, and a line per finished step in a log.
pub struct Progress {
    name: &'static str,
    total: usize,
    started: Instant,
    terminal: bool,
    /// Erases what another program has drawn on the line.
    erase: bool,
    last: Option<(usize, u64)>,
}

impl Progress {
    pub fn new(name: &'static str, total: usize) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        Progress { terminal, erase: false, ..Progress::in_lines(name, total) }
    }

    /// For work beside a program that draws on the terminal.
    pub fn in_lines(name: &'static str, total: usize) -> Progress {
        let erase = std::io::stderr().is_terminal();
        Progress { name, total, started: Instant::now(), terminal: false, erase, last: None }
    }

    pub fn report(&mut self, done: usize) {
        let seconds = self.started.elapsed().as_secs();
        let current = (done, if self.terminal { seconds } else { 0 });
        if self.last.replace(current) == Some(current) {
            return;
        }
        let line = format!(
            "xtask: {}, {done} of {} parts, {}",
            self.name,
            self.total,
            minutes(Duration::from_secs(seconds))
        );
        match self.terminal {
            true => eprint!("\r{line}"),
            false if self.erase => eprintln!("\r\x1b[K{line}"),
            false => eprintln!("{line}"),
        }
    }

    pub fn end(&self) {
        if self.terminal {
            eprintln!();
        }
    }
}

/// A duration for people: `3:07 min`.
pub fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02} min", seconds / 60, seconds % 60)
}
