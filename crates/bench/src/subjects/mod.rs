//! The programs to measure: the server, its two limits and its peers.

pub mod bare;
pub mod commit_loop;
pub mod peers;
pub mod server;

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use crate::Result;

/// A log for a started program, so that its messages don't disturb the progress line.
fn log_file(path: &Path) -> Result<Stdio> {
    Ok(File::create(path)?.into())
}

/// The end of a program's log, for the error that reports its failure.
fn log_tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}
