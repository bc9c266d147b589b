//! Runs other programs, and says clearly which one failed.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a command of xtask failed, as one message for the user.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure(message.into())
    }

    /// For a file operation on `path`.
    pub fn file(action: &str, path: &Path, error: &io::Error) -> Failure {
        Failure(format!("cannot {action} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Runs a command to its end with the terminal's own input and output.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("`{}` failed ({status})", describe(command)))),
    }
}

/// The standard output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("`{}` failed: {}", describe(command), reason.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn not_started(command: &Command, error: &io::Error) -> Failure {
    Failure::new(format!("cannot run `{}`: {error}", command.get_program().to_string_lossy()))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
