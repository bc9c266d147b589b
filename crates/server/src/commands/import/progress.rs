//! How far an import is, for the user.

use std::time::Instant;

use crate::commands::live_line::{LiveLine, bar};

pub struct ImportDisplay {
    line: LiveLine,
    /// In bytes of files or in rows, whichever is known beforehand.
    total: u64,
    done: u64,
    items: u64,
    begin: Instant,
}

impl ImportDisplay {
    pub fn new(total: u64, is_quiet: bool) -> ImportDisplay {
        let line = LiveLine::patient(is_quiet);
        ImportDisplay { line, total, done: 0, items: 0, begin: Instant::now() }
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
        let (items, seconds) = (self.items, self.begin.elapsed().as_secs_f64().max(0.001));
        let bar = || bar((self.done + read).min(self.total), self.total);
        self.line
            .show(|| format!("{}  {items} items, {:.0} per second", bar(), items as f64 / seconds));
    }

    pub fn end(&self) {
        self.line.end();
    }
}
