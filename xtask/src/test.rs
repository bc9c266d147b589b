//! `cargo xtask test`: everything that must pass, in order, with the time of each step.

use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::{documents, fuzz, instructions, python, serve, workspace};

pub fn run() -> Result<(), Failure> {
    let mut report = Report::default();
    let outcome = run_steps(&mut report);
    report.print();
    outcome
}

fn run_steps(report: &mut Report) -> Result<(), Failure> {
    let environment = report.step("prepare libclang and RocksDB", Environment::prepare)?;
    let cargo = |arguments: &[&str]| process::run(environment.cargo().args(arguments));

    report.step("formatting", || {
        cargo(&["fmt", "--all", "--check"])?;
        cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])
    })?;
    report.step("lints", || {
        cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"])
    })?;
    report.step("Rust tests", || cargo(&["test", "--locked", "--workspace"]))?;
    report.step("fuzz targets", fuzz::run_all)?;
    report.step("release build", || serve::build_release(&environment))?;
    report.step("instruction counts", || instructions::check(&environment))?;
    let interpreter = report.step("Python packages", python::for_tests)?;
    report.step("AWS SDK tests", || run_sdk_tests(&interpreter))?;
    report.step("documents", || documents::check(&interpreter, &[]))
}

fn run_sdk_tests(interpreter: &python::Interpreter) -> Result<(), Failure> {
    let mut pytest = interpreter.command();
    pytest
        .current_dir(workspace::root())
        .env("ZENOBE_BINARY", workspace::server_binary())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(sdk_tests_directory());
    process::run(&mut pytest)
}

fn sdk_tests_directory() -> std::path::PathBuf {
    workspace::root().join("tests").join("sdk-python")
}

#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    fn step<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = run();
        let elapsed = started.elapsed();
        eprintln!("== {name}: {:.1} s", elapsed.as_secs_f64());
        self.steps.push((name, elapsed, outcome.is_ok()));
        outcome.map_err(|failure| Failure::new(format!("{name}: {failure}")))
    }

    fn print(&self) {
        let width = self.steps.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        eprintln!();
        for (name, elapsed, passed) in &self.steps {
            let result = if *passed { "passed" } else { "FAILED" };
            eprintln!("  {result}  {name:width$}  {:>7.1} s", elapsed.as_secs_f64());
        }
    }
}
