//! `cargo xtask serve`: build the release server and become it.

use std::process::Command;

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::workspace;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    build_release(&Environment::prepare()?)?;
    execute(Command::new(workspace::server_binary()).arg("serve").args(options(arguments)))
}

/// The arguments after an optional `--`.
pub fn options(arguments: &[String]) -> &[String] {
    match arguments.split_first() {
        Some((separator, rest)) if separator == "--" => rest,
        _ => arguments,
    }
}

pub fn build_release(environment: &Environment) -> Result<(), Failure> {
    let mut command = environment.cargo();
    process::run(command.args(["build", "--locked", "--release", "--package", "zenobe"]))
}

/// Replaces this process, so that signals reach the program itself.
#[cfg(unix)]
pub fn execute(command: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(Failure::new(format!("cannot run `{}`: {error}", command.get_program().display())))
}

#[cfg(not(unix))]
pub fn execute(command: &mut Command) -> Result<(), Failure> {
    process::run(command)
}
