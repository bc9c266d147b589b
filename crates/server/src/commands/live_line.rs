//! A line on standard error that says how far a command is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is replaced on a terminal.
const IN_PLACE_INTERVAL: Duration = Duration::from_millis(100);
/// How often a line is printed where it can't be replaced.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
const BAR_WIDTH: u64 = 20;

/// A line that replaces the one before. If the output is not a terminal, it prints a new line now and then instead.
pub struct LiveLine {
    in_place: bool,
    is_quiet: bool,
    shown_at: Option<Instant>,
}

impl LiveLine {
    pub fn new() -> LiveLine {
        LiveLine { in_place: std::io::stderr().is_terminal(), is_quiet: false, shown_at: None }
    }

    /// A line that quiet commands never show. In a log it appears only after a while, so short tasks print nothing.
    pub fn patient(is_quiet: bool) -> LiveLine {
        let line = LiveLine::new();
        LiveLine { is_quiet, shown_at: (!line.in_place).then(Instant::now), ..line }
    }

    /// Shows a line, unless the last one was shown too recently.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        if self.is_quiet {
            return;
        }
        let interval = if self.in_place { IN_PLACE_INTERVAL } else { LINE_INTERVAL };
        let now = Instant::now();
        if self.shown_at.is_some_and(|shown_at| now < shown_at + interval) {
            return;
        }
        self.shown_at = Some(now);
        self.replace(&line());
    }

    /// Shows a line however recent the last one is.
    pub fn replace(&self, line: &str) {
        match self.in_place {
            true => eprint!("\r\x1b[2K{line}"),
            false => eprintln!("{line}"),
        }
        let _ = std::io::stderr().flush();
    }

    /// Prints a line that stays, in place of the live one.
    pub fn say(&self, line: &str) {
        match self.in_place {
            true => eprintln!("\r\x1b[2K{line}"),
            false => eprintln!("{line}"),
        }
        let _ = std::io::stderr().flush();
    }

    /// Whether a line replaces the one before.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Clears the live line, if there is one.
    pub fn end(&self) {
        if self.in_place && !self.is_quiet {
            eprint!("\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
    }
}

/// For example `[#####               ]  25 %`.
pub fn bar(done: u64, total: u64) -> String {
    let total = total.max(done).max(1);
    let filled = (u128::from(done) * u128::from(BAR_WIDTH) / u128::from(total)) as usize;
    let percent = u128::from(done) * 100 / u128::from(total);
    format!("[{:<20}] {percent:>3} %", "#".repeat(filled))
}

/// How long the rest takes at this rate.
pub fn time_left(left: u64, per_second: f64) -> String {
    match per_second {
        rate if rate < 1.0 => "unknown".to_owned(),
        rate => duration(left as f64 / rate),
    }
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        assert_eq!(bar(3, 12), "[#####               ]  25 %");
        assert_eq!(bar(0, 0), "[                    ]   0 %");
        assert_eq!(bar(9, 3), "[####################] 100 %");
        assert_eq!(time_left(119, 2.0), "1 min 0 s");
        assert_eq!(time_left(119, 0.5), "unknown");
        assert_eq!(duration(7_300.0), "2 h 1 min");
    }
}
