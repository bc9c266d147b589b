//! Progress on standard error.

use std::io::{IsTerminal, Write};

/// Replaces the last line on a terminal; elsewhere each text gets its own line.
pub fn show(text: &str) {
    let mut error = std::io::stderr().lock();
    let _ = match error.is_terminal() {
        true => write!(error, "\r\x1b[2K{text}"),
        false => writeln!(error, "{text}"),
    };
    let _ = error.flush();
}

/// A line that stays.
pub fn say(text: &str) {
    let mut error = std::io::stderr().lock();
    let _ = match error.is_terminal() {
        true => writeln!(error, "\r\x1b[2K{text}"),
        false => writeln!(error, "{text}"),
    };
}
