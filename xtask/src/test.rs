//! `cargo xtask test`: everything that must pass, in order, with the time of each step and an
//! estimate for the rest.

mod report;

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::serve::{self, Profile};
use crate::{
    clients, documents, fuzz, instructions, licences, package, postgres, python, rust_version,
    safety, workspace,
};
use report::Report;

/// The steps in order, with the seconds that each takes from a clean clone on two cores with
/// RocksDB cached. Later runs use the times of the last one.
const STEPS: [(&str, u64); 14] = [
    ("prepare libclang and RocksDB", 5),
    ("prepare PostgreSQL", 5),
    ("formatting and versions", 10),
    ("lints", 150),
    ("Rust tests", 480),
    ("histories", 20),
    ("fuzz targets", 300),
    ("server build", 120),
    ("instruction counts", 120),
    ("Python packages", 20),
    ("client packages", 60),
    ("client examples", 90),
    ("AWS SDK tests", 150),
    ("documents", 60),
];

pub fn run() -> Result<(), Failure> {
    let mut report = Report::new(&STEPS);
    let outcome = run_steps(&mut report);
    report.print();
    outcome
}

fn run_steps(report: &mut Report) -> Result<(), Failure> {
    let environment = report.step("prepare libclang and RocksDB", Environment::prepare)?;
    report.step("prepare PostgreSQL", || postgres::provide().map(drop))?;
    let cargo = |arguments: &[&str]| process::run(environment.cargo().args(arguments));

    report.step("formatting and versions", || {
        cargo(&["fmt", "--all", "--check"])?;
        cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])?;
        rust_version::check()?;
        licences::check()?;
        package::check_crates()
    })?;
    report.step("lints", || {
        cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"])
    })?;
    // One failure must not hide another.
    report.step("Rust tests", || cargo(&["test", "--locked", "--workspace", "--no-fail-fast"]))?;
    report.step("histories", safety::check_histories)?;
    report.step("fuzz targets", fuzz::run_all)?;
    report.step("server build", || serve::build(&environment, Profile::Quick))?;
    report.step("instruction counts", || instructions::check(&environment))?;
    let interpreter = report.step("Python packages", python::for_tests)?;
    report.step("client packages", || clients::check_packages(&interpreter))?;
    report.step("client examples", || clients::run_examples(&environment, &interpreter))?;
    report.step("AWS SDK tests", || run_sdk_tests(&interpreter))?;
    report.step("documents", || documents::check(&interpreter, &[]))
}

fn run_sdk_tests(interpreter: &python::Interpreter) -> Result<(), Failure> {
    let mut pytest = interpreter.command();
    pytest
        .current_dir(workspace::root())
        .env("ZENOBE_BINARY", workspace::server_binary(Profile::Quick))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(sdk_tests_directory());
    process::run(&mut pytest)
}

fn sdk_tests_directory() -> std::path::PathBuf {
    workspace::root().join("tests").join("sdk-python")
}
