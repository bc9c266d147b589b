//! A bar on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const BAR_WIDTH: u64 = 30;
const INTERVAL_TERMINAL: Duration = Duration::from_millis(200);
const INTERVAL_LINES: Duration = Duration::from_secs(10);

pub struct Progress {
    /// In bytes of files or in rows, whichever is known beforehand.
    total: u64,
    done: u64,
    items: u64,
    shown_at: Option<Instant>,
    begin: Instant,
    is_terminal: bool,
    is_quiet: bool,
}

impl Progress {
    pub fn new(total: u64, is_quiet: bool) -> Progress {
        Progress {
            total,
            done: 0,
            items: 0,
            shown_at: None,
            begin: Instant::now(),
            is_terminal: io::stderr().is_terminal(),
            is_quiet,
        }
    }

    /// A file of this size that an earlier run has finished.
    pub fn skip(&mut self, size: u64) {
        self.done += size;
    }

    pub fn file_done(&mut self, size: u64) {
        self.done += size;
        self.show(0);
    }

    /// Some items are written; this much of the current file is read.
    pub fn advance(&mut self, items: u64, read: u64) {
        self.items += items;
        self.show(read);
    }

    fn show(&mut self, read: u64) {
        let interval = if self.is_terminal { INTERVAL_TERMINAL } else { INTERVAL_LINES };
        if self.is_quiet || self.shown_at.is_some_and(|shown_at| shown_at.elapsed() < interval) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let done = (self.done + read).min(self.total);
        let total = self.total.max(1);
        let filled = BAR_WIDTH * done / total;
        let bar: String = (0..BAR_WIDTH).map(|at| if at < filled { '█' } else { '░' }).collect();
        let rate = self.items as f64 / self.begin.elapsed().as_secs_f64().max(0.001);
        let (percent, items) = (100 * done / total, self.items);
        let text = format!("{bar} {percent:3} %  {items} items, {rate:.0} per second");
        match self.is_terminal {
            true => eprint!("\r\x1b[2K{text}"),
            false => eprintln!("{text}"),
        }
        let _ = io::stderr().flush();
    }

    pub fn end(&self) {
        if self.is_terminal && !self.is_quiet {
            eprint!("\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}
