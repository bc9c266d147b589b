//! A bar on standard error, for commands that take long.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: u64 = 30;
const INTERVAL_TERMINAL: Duration = Duration::from_millis(200);
const INTERVAL_LINES: Duration = Duration::from_secs(10);

pub struct Bar {
    shown_at: Option<Instant>,
    is_terminal: bool,
    is_quiet: bool,
}

impl Bar {
    pub fn new(is_quiet: bool) -> Bar {
        let is_terminal = io::stderr().is_terminal();
        // In a log, what is soon done needs no progress.
        Bar { shown_at: (!is_terminal).then(Instant::now), is_terminal, is_quiet }
    }

    /// Shows how much is done, unless that has just been shown.
    pub fn show(&mut self, done: u64, total: u64, text: impl FnOnce() -> String) {
        let interval = if self.is_terminal { INTERVAL_TERMINAL } else { INTERVAL_LINES };
        if self.is_quiet || self.shown_at.is_some_and(|shown_at| shown_at.elapsed() < interval) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let total = total.max(1);
        let done = done.min(total);
        let filled = WIDTH * done / total;
        let bar: String = (0..WIDTH).map(|at| if at < filled { '█' } else { '░' }).collect();
        let line = format!("{bar} {:3} %  {}", 100 * done / total, text());
        match self.is_terminal {
            true => eprint!("\r\x1b[2K{line}"),
            false => eprintln!("{line}"),
        }
        let _ = io::stderr().flush();
    }

    /// Removes it.
    pub fn end(&self) {
        if self.is_terminal && !self.is_quiet {
            eprint!("\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}
