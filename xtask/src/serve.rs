//! `cargo xtask serve`: builds the server quickly, and becomes it.

use std::process::Command;

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::workspace;

/// How the server is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// For trying it out: without link-time optimisation, which takes longer than everything else.
    Quick,
    /// What packages ship and benchmarks measure.
    Release,
}

impl Profile {
    /// The profile's name in Cargo.toml and its directory below the target directory.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Quick => "quick",
            Profile::Release => "release",
        }
    }
}

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (profile, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "--release" => (Profile::Release, rest),
        _ => (Profile::Quick, arguments),
    };
    let (environment, library) = Environment::begin(profile)?;
    match library {
        None => build(&environment, profile)?,
        Some(library) => library.compile_beside(&mut build_command(&environment, profile))?,
    }
    let binary = workspace::server_binary(profile);
    if profile == Profile::Quick {
        eprintln!(
            "xtask: {} is the quick build; `cargo xtask serve --release` builds what packages ship",
            binary.display()
        );
    }
    execute(Command::new(binary).arg("serve").args(options(arguments)))
}

/// The arguments after an optional `--`.
pub fn options(arguments: &[String]) -> &[String] {
    match arguments.split_first() {
        Some((separator, rest)) if separator == "--" => rest,
        _ => arguments,
    }
}

pub fn build(environment: &Environment, profile: Profile) -> Result<(), Failure> {
    process::run(&mut build_command(environment, profile))
}

fn build_command(environment: &Environment, profile: Profile) -> Command {
    let mut command = environment.cargo();
    command.args(["build", "--locked", "--package", "zenobe", "--profile", profile.name()]);
    command
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
