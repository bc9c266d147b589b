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

/// The same command, which makes way for others. Where the system has no `nice` that tells its version, it does not.
pub fn at_lower_priority(command: &Command) -> Command {
    let is_there = output(Command::new("nice").arg("--version")).is_ok();
    let mut words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut lowered = match is_there {
        true => Command::new("nice"),
        false => Command::new(words.next().unwrap_or_default()),
    };
    if is_there {
        lowered.args(["-n", "5"]);
    }
    lowered.args(words);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => lowered.env(name, value),
            None => lowered.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        lowered.current_dir(directory);
    }
    lowered
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_at_lower_priority_is_the_same_otherwise() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $0 $WORD; pwd", "zero"]).env("WORD", "one").current_dir("/");
        let said = output(&mut at_lower_priority(&command)).unwrap();
        assert_eq!(said, "zero one\n/\n");
    }
}
