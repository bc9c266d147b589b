#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod preinit;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};
use zenobe::allocator::Allocator;
use zenobe::cli::{self, Arguments, Command};
use zenobe::config::{Given, GivenError, Settings, environment_fault, translate};
use zenobe::{commands, serve};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// clap's own exit status for invalid arguments.
const EXIT_USAGE: u8 = 2;
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let arguments = translate(std::env::args_os().collect());
    let command = cli::command();
    let parsed = command.clone().try_get_matches_from(&arguments).and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((matches, arguments.command))
    });
    let (matches, chosen) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&command, &error),
    };
    let outcome = match chosen {
        Command::Serve(_) | Command::Local(_) => return serve(&command, &arguments, &matches),
        Command::Trigger(trigger) => commands::run_trigger(trigger),
        Command::Stream(stream) => commands::run_stream(stream),
        Command::Clock(clock) => commands::run_clock(clock),
        Command::Test(command) => commands::run_test(command),
        Command::Status(arguments) => commands::run_status(arguments),
        Command::History(arguments) => commands::run_history(arguments),
        Command::Top(arguments) => commands::run_top(arguments),
        Command::Partitions(arguments) => commands::run_partitions(arguments),
        Command::Throughput(arguments) => commands::run_throughput(arguments),
        Command::Cost(arguments) => commands::run_cost(*arguments),
        Command::Move(arguments) => commands::run_move(&arguments),
        Command::Backup(arguments) => commands::run_backup(&arguments),
        Command::Restore(arguments) => commands::run_restore(&arguments),
        Command::Bench(arguments) => commands::run_bench(&arguments),
        Command::Health(arguments) => commands::run_health(&arguments),
        Command::Sql(arguments) => commands::run_sql(*arguments),
        Command::Import(arguments) => commands::run_import(&arguments),
        Command::Export(arguments) => commands::run_export(&arguments),
        Command::Completions { shell } => commands::print_completions(command, shell),
        Command::Man(arguments) => commands::print_man_pages(command, &arguments),
        Command::ConfigReference => commands::print_reference(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, EXIT_FAILURE),
    }
}

fn serve(command: &clap::Command, arguments: &[OsString], matches: &ArgMatches) -> ExitCode {
    let given = match Given::load(command, arguments, matches) {
        Ok(given) => given,
        Err(GivenError::Arguments(error)) => return refuse(command, &error),
        Err(error) => return fail(&error, EXIT_USAGE),
    };
    let unknown_variables = given.unknown_variables.clone();
    let settings = match Settings::resolve(given) {
        Ok(settings) => settings,
        Err(error) => {
            // One of these variables may be the reason.
            unknown_variables.iter().for_each(|unknown| eprintln!("zenobe: warning: {unknown}"));
            return fail(&error, EXIT_USAGE);
        }
    };
    match serve::run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, EXIT_FAILURE),
    }
}

/// Help and version are errors to clap as well; it knows where to print them.
fn refuse(command: &clap::Command, error: &clap::Error) -> ExitCode {
    match environment_fault(command, error) {
        Some(fault) => {
            eprintln!("zenobe: {fault}");
            ExitCode::from(EXIT_USAGE)
        }
        None => error.exit(),
    }
}

fn fail(error: &dyn Error, code: u8) -> ExitCode {
    eprintln!("zenobe: {error}");
    ExitCode::from(code)
}
