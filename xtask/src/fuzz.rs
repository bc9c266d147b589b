//! `cargo xtask fuzz`: runs each fuzz target for a fixed time, starting from the seeds in
//! `fuzz/seeds`.
//!
//! `cargo xtask test` gives each target the same inputs every time, so that a failure points at the
//! change; only `cargo xtask fuzz` searches at random.
//!
//! Stable Rust suffices: only sanitizers need a nightly toolchain, and the code under test has
//! nothing unsafe for them to find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::{cache, workspace};

/// How long each target runs by default.
const SECONDS_DEFAULT: u32 = 12;

/// The inputs that `cargo xtask test` gives each target, always the same. On a slow machine, or where a target opens
/// files, only the first of them.
const REPEATABLE: [&str; 3] = ["-seed=1", "-runs=100000", "-max_total_time=12"];

const CARGO_FUZZ_VERSION: &str = "0.13.2";

/// The limits of a single input. Beyond them it counts as a fault.
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"];

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let FuzzRequest { seconds, target } = FuzzRequest::parse(arguments)?;
    let targets = targets()?;
    match target {
        None => search(&targets, seconds),
        Some(target) if targets.contains(&target) => search(&[target], seconds),
        Some(target) => Err(Failure::new(format!(
            "there is no fuzz target `{target}`; the targets are {}",
            targets.join(", ")
        ))),
    }
}

/// All targets, for `cargo xtask test`.
pub fn run_all() -> Result<(), Failure> {
    let cargo_fuzz = provide_cargo_fuzz()?;
    for target in targets()? {
        eprintln!("xtask: fuzzing {target}");
        // Starts from the seeds alone: the finds of an earlier search would change the inputs.
        let corpus = corpus_directory().join("repeatable").join(&target);
        cache::remove(&corpus)?;
        run_target(&cargo_fuzz, &target, &corpus, &REPEATABLE)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct FuzzRequest {
    seconds: u32,
    target: Option<String>,
}

impl FuzzRequest {
    fn parse(arguments: &[String]) -> Result<FuzzRequest, Failure> {
        let mut request = FuzzRequest { seconds: SECONDS_DEFAULT, target: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--seconds" {
                let seconds = rest.next().and_then(|text| text.parse().ok());
                request.seconds =
                    seconds.ok_or_else(|| Failure::new("`--seconds` needs a number"))?;
            } else if request.target.is_none() && !argument.starts_with('-') {
                request.target = Some(argument.clone());
            } else {
                return Err(Failure::new(format!("unexpected argument `{argument}`")));
            }
        }
        Ok(request)
    }
}

/// Continues from the finds of earlier searches.
fn search(targets: &[String], seconds: u32) -> Result<(), Failure> {
    let cargo_fuzz = provide_cargo_fuzz()?;
    for target in targets {
        eprintln!("xtask: fuzzing {target} for {seconds} s");
        let corpus = corpus_directory().join(target);
        run_target(&cargo_fuzz, target, &corpus, &[&format!("-max_total_time={seconds}")])?;
    }
    Ok(())
}

/// New inputs go to `corpus`, outside the sources, so that a clone stays clean. `fuzz/artifacts`
/// keeps an input that crashes a target.
fn run_target(
    cargo_fuzz: &Path,
    target: &str,
    corpus: &Path,
    extent: &[&str],
) -> Result<(), Failure> {
    cache::create(corpus)?;
    let mut command = Command::new(cargo_fuzz);
    command
        .current_dir(workspace::root())
        .env("CARGO_TARGET_DIR", workspace::target_directory().join("fuzz"))
        // cargo-fuzz's backtraces describe cargo-fuzz, not the target.
        .env("RUST_LIB_BACKTRACE", "0")
        .args(["fuzz", "run", "--sanitizer", "none", target])
        .arg(corpus)
        .arg(seeds_directory().join(target))
        .arg("--")
        .args(extent)
        .args(["-verbosity=0", "-print_final_stats=1"])
        .args(LIMITS);
    process::run(&mut command)
}

/// Checks that every target has seeds and that all seeds have a target.
fn targets() -> Result<Vec<String>, Failure> {
    let directory = seeds_directory();
    let entries =
        fs::read_dir(&directory).map_err(|error| Failure::file("list", &directory, &error))?;
    let mut targets: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    targets.sort();
    Ok(targets)
}

fn corpus_directory() -> PathBuf {
    workspace::target_directory().join("fuzz-corpus")
}

fn seeds_directory() -> PathBuf {
    workspace::root().join("fuzz").join("seeds")
}

/// Finds cargo-fuzz in the cache, or installs it there.
fn provide_cargo_fuzz() -> Result<PathBuf, Failure> {
    let entry = cache::directory()?.join(format!("cargo-fuzz-{CARGO_FUZZ_VERSION}"));
    let program = entry.join("bin").join("cargo-fuzz");
    if program.exists() {
        return Ok(program);
    }
    let _lock = cache::lock(&entry)?;
    if program.exists() {
        return Ok(program);
    }
    let finished = cache::beside(&entry, "partial");
    cache::remove(&finished)?;
    let version = format!("={CARGO_FUZZ_VERSION}");
    let mut install = workspace::cargo();
    install.args(["install", "--quiet", "--locked", "cargo-fuzz", "--version", &version]);
    process::run(install.arg("--root").arg(&finished))?;
    cache::publish(&finished, &entry)?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_a_time_and_a_target_or_neither() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            FuzzRequest::parse(&words).ok()
        };
        let request = |seconds, target: Option<&str>| {
            Some(FuzzRequest { seconds, target: target.map(Into::into) })
        };
        assert_eq!(parse(&[]), request(SECONDS_DEFAULT, None));
        assert_eq!(parse(&["numbers"]), request(SECONDS_DEFAULT, Some("numbers")));
        assert_eq!(parse(&["--seconds", "5", "numbers"]), request(5, Some("numbers")));
        assert_eq!(parse(&["numbers", "--seconds", "5"]), request(5, Some("numbers")));
        assert_eq!(parse(&["--seconds"]), None);
        assert_eq!(parse(&["--seconds", "soon"]), None);
        assert_eq!(parse(&["numbers", "requests"]), None);
        assert_eq!(parse(&["--forever"]), None);
    }
}
