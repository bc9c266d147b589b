use std::process::ExitCode;

use clap::Parser;
use zenobe_server::allocator::Allocator;
use zenobe_server::cli::{Arguments, Command, ServeArguments};
use zenobe_server::config::Settings;
use zenobe_server::{commands, serve};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// As clap exits for arguments that it refuses itself.
const EXIT_USAGE: u8 = 2;
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => return serve(*arguments),
        Command::Trigger(command) => commands::run_trigger(command),
        Command::Stream(command) => commands::run_stream(command),
        Command::Bench(arguments) => commands::run_bench(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, EXIT_FAILURE),
    }
}

fn serve(arguments: ServeArguments) -> ExitCode {
    let settings = match Settings::load(arguments) {
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
