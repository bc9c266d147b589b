use std::process::ExitCode;

use clap::Parser;
use zenobe_server::cli::{Arguments, Command};
use zenobe_server::config::Settings;
use zenobe_server::serve;

/// As clap exits for arguments that it refuses itself.
const EXIT_USAGE: u8 = 2;
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let Command::Serve(arguments) = Arguments::parse().command;
    let settings = match Settings::load(*arguments) {
        Ok(settings) => settings,
        Err(error) => return fail(&error, EXIT_USAGE),
    };
    match serve::run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, EXIT_FAILURE),
    }
}

fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("zenobe: {error}");
    ExitCode::from(code)
}
