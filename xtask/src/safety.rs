//! `cargo xtask power-cuts` and `cargo xtask histories`: run the tests behind docs/safety.md as
//! often as you like.

use std::process::Command;

use crate::environment::{Environment, is_ci};
use crate::process::{self, Failure};
use crate::workspace;

/// Cuts the power of the store this many times, and that of the server a tenth as often.
pub fn power_cuts(arguments: &[String]) -> Result<(), Failure> {
    let TrialRequest { count, seed } = TrialRequest::parse(arguments, "--cuts")?;
    let environment = Environment::prepare()?;
    for package in ["zenobe-store-embedded", "zenobe-sdk-tests"] {
        let mut cargo = environment.cargo();
        cargo.args(["test", "--locked", "--package", package, "--test", "it", "power_cuts"]);
        cargo.args(["--", "--nocapture", "--test-threads", "1"]);
        set(&mut cargo, "ZENOBE_POWER_CUTS", count);
        set(&mut cargo, "ZENOBE_SEED", seed);
        process::run(&mut cargo)?;
    }
    Ok(())
}

/// Records this many histories of a server that is killed, and checks each twice.
pub fn histories(arguments: &[String]) -> Result<(), Failure> {
    let TrialRequest { count, seed } = TrialRequest::parse(arguments, "--count")?;
    let mut cargo = Environment::prepare()?.cargo();
    cargo.args(["test", "--locked", "--package", "zenobe-sdk-tests", "--test", "it", "histories"]);
    cargo.args(["--", "--nocapture"]);
    set(&mut cargo, "ZENOBE_HISTORIES", count);
    set(&mut cargo, "ZENOBE_SEED", seed);
    process::run(&mut cargo)?;
    check_recorded(&["histories"])
}

/// Runs porcupine on the histories that the Rust tests have recorded.
pub fn check_histories() -> Result<(), Failure> {
    check_recorded(&["histories", "histories-drill"])
}

/// Runs porcupine on the histories in these directories. Without Go only Zenobe's own checker judges
/// them, which does not suffice in CI.
pub fn check_recorded(directories: &[&str]) -> Result<(), Failure> {
    if process::output(Command::new("go").arg("version")).is_err() {
        let message =
            "Go is needed to check histories with porcupine; install it (Debian: golang-go)";
        return match is_ci() {
            true => Err(Failure::new(message)),
            false => {
                eprintln!("xtask: skipped: {message}");
                Ok(())
            }
        };
    }
    for directory in directories {
        let mut go = Command::new("go");
        go.current_dir(workspace::root().join("tests").join("histories")).args(["run", "."]);
        process::run(go.arg(workspace::target_directory().join("tmp").join(directory)))?;
    }
    Ok(())
}

pub fn set(command: &mut Command, variable: &str, value: Option<u64>) {
    if let Some(value) = value {
        command.env(variable, value.to_string());
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct TrialRequest {
    pub count: Option<u64>,
    pub seed: Option<u64>,
}

impl TrialRequest {
    pub fn parse(arguments: &[String], count_option: &str) -> Result<TrialRequest, Failure> {
        let mut request = TrialRequest { count: None, seed: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let value = match argument.as_str() {
                option if option == count_option => &mut request.count,
                "--seed" => &mut request.seed,
                other => return Err(Failure::new(format!("unexpected argument `{other}`"))),
            };
            let number = rest.next().and_then(|text| text.parse().ok());
            *value =
                Some(number.ok_or_else(|| Failure::new(format!("`{argument}` needs a number")))?);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_a_count_and_a_seed_or_neither() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            TrialRequest::parse(&words, "--cuts").ok()
        };
        assert_eq!(parse(&[]), Some(TrialRequest { count: None, seed: None }));
        let both = Some(TrialRequest { count: Some(5), seed: Some(7) });
        assert_eq!(parse(&["--cuts", "5", "--seed", "7"]), both);
        assert_eq!(parse(&["--cuts"]), None);
        assert_eq!(parse(&["--cuts", "many"]), None);
        assert_eq!(parse(&["--count", "5"]), None);
    }
}
