//! `cargo xtask instructions`: the cost of hot paths in instructions, compared with a recorded
//! baseline.
//!
//! Callgrind counts the instructions. It simulates the processor, so neither the machine's speed
//! nor its load matters, and a difference of a few per cent comes from the code. The cases are in
//! `crates/instructions`.

mod baseline;
mod callgrind;
mod toolchain;

use std::fs;
use std::path::PathBuf;

use self::baseline::{Baseline, Measured};
use self::callgrind::Case;
use self::toolchain::Availability;
use crate::environment::{Environment, is_ci};
use crate::process::{self, Failure};
use crate::workspace;

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let request = CaseRequest::parse(arguments)?;
    if let Availability::Missing { reason } = toolchain::find_valgrind() {
        return Err(Failure::new(reason));
    }
    let environment = Environment::prepare()?;
    build(&environment)?;
    let cases = request.chosen(callgrind::list()?)?;
    match request.action {
        Action::Profile => cases.iter().try_for_each(callgrind::profile),
        Action::Compare => compare(&cases),
        Action::Bless => bless(&cases),
    }
}

/// The step of `cargo xtask test`. A developer whose machine lacks valgrind may skip it, CI never.
pub fn check(environment: &Environment) -> Result<(), Failure> {
    if let Availability::Missing { reason } = toolchain::find_valgrind() {
        if is_ci() {
            return Err(Failure::new(reason));
        }
        eprintln!("SKIPPED: instruction counts are not compared here: {reason}");
        return Ok(());
    }
    build(environment)?;
    compare(&callgrind::list()?)
}

fn build(environment: &Environment) -> Result<(), Failure> {
    let mut command = environment.cargo();
    process::run(command.args(["build", "--locked", "--release"]).args(TARGETS))
}

/// Together with the server's library, so that cargo chooses the same features for both and compiles
/// nothing twice. Linking the server as well would take as long as everything else.
const TARGETS: [&str; 7] = [
    "--package",
    "zenobe",
    "--package",
    "zenobe-instructions",
    "--lib",
    "--bin",
    "zenobe-instructions",
];

fn compare(cases: &[Case]) -> Result<(), Failure> {
    let recorded = read_baseline()?;
    let differences = recorded.toolchain_differences(&toolchain::current()?);
    let comparison = recorded.compare(&callgrind::measure(cases)?);
    print!("{comparison}");
    for difference in &differences {
        println!("note: {difference}");
    }
    match comparison.regressions() {
        0 => Ok(()),
        count if differences.is_empty() || is_ci() => Err(Failure::new(format!(
            "{count} above the baseline by more than the tolerance.\n\
             See where the instructions go:  cargo xtask instructions --profile <case>\n\
             Accept them, with the reason in the commit:  cargo xtask instructions --bless"
        ))),
        _ => {
            println!("note: with another toolchain, higher counts fail only in CI");
            Ok(())
        }
    }
}

fn bless(cases: &[Case]) -> Result<(), Failure> {
    let path = baseline_path();
    let recorded = if path.exists() { read_baseline()? } else { Baseline::default() };
    let measured = callgrind::measure(cases)?;
    print!("{}", recorded.compare(&measured));
    let all: Vec<String> = callgrind::list()?.into_iter().map(|case| case.name).collect();
    let blessed = recorded.blessed(&toolchain::current()?, &measured, &all);
    fs::write(&path, blessed.to_string()).map_err(|error| Failure::file("write", &path, &error))
}

fn read_baseline() -> Result<Baseline, Failure> {
    let path = baseline_path();
    let text = fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    Baseline::parse(&text).map_err(|fault| Failure::new(format!("{}: {fault}", path.display())))
}

fn baseline_path() -> PathBuf {
    workspace::root().join("crates").join("instructions").join("baseline.txt")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Compare,
    Bless,
    Profile,
}

#[derive(Debug, PartialEq, Eq)]
struct CaseRequest {
    action: Action,
    /// Names of cases, or prefixes of names; empty chooses all.
    cases: Vec<String>,
}

impl CaseRequest {
    fn parse(arguments: &[String]) -> Result<CaseRequest, Failure> {
        let (options, cases): (Vec<&String>, Vec<&String>) =
            arguments.iter().partition(|argument| argument.starts_with('-'));
        let options: Vec<&str> = options.into_iter().map(String::as_str).collect();
        let action = match options[..] {
            [] => Action::Compare,
            ["--bless"] => Action::Bless,
            ["--profile"] if cases.is_empty() => {
                return Err(Failure::new("--profile needs the name of a case"));
            }
            ["--profile"] => Action::Profile,
            _ => return Err(Failure::new(format!("unexpected options `{}`", options.join(" ")))),
        };
        Ok(CaseRequest { action, cases: cases.into_iter().cloned().collect() })
    }

    fn chosen(&self, cases: Vec<Case>) -> Result<Vec<Case>, Failure> {
        let unknown = self
            .cases
            .iter()
            .find(|wanted| !cases.iter().any(|case| case.name.starts_with(wanted.as_str())));
        if let Some(unknown) = unknown {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            return Err(Failure::new(format!(
                "no case begins with `{unknown}`; the cases are {}",
                names.join(", ")
            )));
        }
        let is_chosen = |case: &Case| {
            self.cases.is_empty()
                || self.cases.iter().any(|wanted| case.name.starts_with(wanted.as_str()))
        };
        Ok(cases.into_iter().filter(is_chosen).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<(Action, Vec<String>)> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        CaseRequest::parse(&arguments).ok().map(|request| (request.action, request.cases))
    }

    #[test]
    fn arguments_choose_what_to_do_and_with_which_cases() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(parsed(&[]), Some((Action::Compare, vec![])));
        assert_eq!(parsed(&["get"]), Some((Action::Compare, names(&["get"]))));
        assert_eq!(parsed(&["--bless"]), Some((Action::Bless, vec![])));
        assert_eq!(parsed(&["--profile", "get"]), Some((Action::Profile, names(&["get"]))));
        assert_eq!(parsed(&["--profile"]), None);
        assert_eq!(parsed(&["--bless", "--profile", "get"]), None);
        assert_eq!(parsed(&["--other"]), None);
    }

    #[test]
    fn cases_are_chosen_by_how_their_names_begin() {
        let choose = |wanted: &str| {
            let cases = ["get.a", "get.b", "put.a"]
                .map(|name| Case { name: name.to_owned(), iterations: 1 });
            let request = CaseRequest { action: Action::Compare, cases: vec![wanted.to_owned()] };
            let chosen = request.chosen(cases.to_vec()).ok()?;
            Some(chosen.into_iter().map(|case| case.name).collect::<Vec<_>>())
        };
        assert_eq!(choose("get").unwrap(), ["get.a", "get.b"]);
        assert_eq!(choose("put.a").unwrap(), ["put.a"]);
        assert_eq!(choose("query"), None);
    }
}
