//! The server from other languages: the packages below `clients/`, which bring it into other
//! projects' tests, and the programs below `examples/`, which docs/clients.md shows.

mod example;

use std::path::Path;
use std::process::Command;

use crate::environment::{Environment, is_ci};
use crate::process::{self, Failure};
use crate::{documents, python, workspace};

/// `cargo xtask clients`
pub fn run() -> Result<(), Failure> {
    let interpreter = python::for_tests()?;
    check_packages(&interpreter)?;
    run_examples(&Environment::prepare()?, &interpreter)
}

/// Runs the packages' own tests. Installs the Python package first, so that pytest finds the plugin
/// as it would elsewhere.
pub fn check_packages(interpreter: &python::Interpreter) -> Result<(), Failure> {
    let package = workspace::root().join("clients/python");
    interpreter.install(&package)?;
    let mut pytest = interpreter.command();
    pytest
        .env("ZENOBE_BINARY", documents::server_binary())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(&package);
    process::run(&mut pytest)?;
    if !is_available("node", &["npm", "node"])? {
        return Ok(());
    }
    let package = workspace::root().join("clients/node");
    install_node_modules(&package)?;
    let mut npm = npm(&package);
    process::run(npm.env("ZENOBE_BINARY", documents::server_binary()).args(["test", "--silent"]))
}

/// Runs each example alone against one server. All of them print the same.
pub fn run_examples(
    environment: &Environment,
    interpreter: &python::Interpreter,
) -> Result<(), Failure> {
    let server = example::Server::start()?;
    let examples = workspace::root().join("examples");
    let mut python = interpreter.command();
    server.check("Python", python.arg(examples.join("python/quick_start.py")))?;
    let mut cargo = environment.cargo();
    cargo.args(["run", "--quiet", "--locked", "--package", "zenobe-sdk-tests"]);
    server.check("Rust", cargo.args(["--example", "quick_start"]))?;
    if is_available("JavaScript", &["npm", "node"])? {
        let directory = examples.join("javascript");
        install_node_modules(&directory)?;
        server.check("JavaScript", Command::new("node").arg(directory.join("quick-start.js")))?;
    }
    if is_available("Go", &["go"])? {
        let mut go = Command::new("go");
        server.check("Go", go.current_dir(examples.join("go")).args(["run", "."]))?;
    }
    if is_available("Java", &["mvn", "java"])? {
        let mut maven = Command::new("mvn");
        maven.current_dir(examples.join("java")).args(["-B", "-q", "-Dstyle.color=never"]);
        server.check("Java", maven.args(["compile", "exec:java"]))?;
    }
    Ok(())
}

/// A developer may lack a language; CI must not.
fn is_available(language: &str, programs: &[&str]) -> Result<bool, Failure> {
    let version = |program: &str| if program == "go" { "version" } else { "--version" };
    let is_missing =
        |program: &&&str| process::output(Command::new(program).arg(version(program))).is_err();
    match programs.iter().find(is_missing) {
        None => Ok(true),
        Some(program) if is_ci() => Err(Failure::new(format!("{language}: {program} is missing"))),
        Some(program) => {
            eprintln!("SKIPPED: {language} is not tried here: {program} is missing");
            Ok(false)
        }
    }
}

/// Installs exactly what the lock file says if there is one, unless an earlier run did so for the
/// same file. The package that runs in other projects has none: its tests should see what those
/// projects would install.
fn install_node_modules(package: &Path) -> Result<(), Failure> {
    let lock = package.join("package-lock.json");
    let (wanted, arguments): (_, &[&str]) = match lock.exists() {
        true => (lock, &["ci"]),
        false => (package.join("package.json"), &["install", "--no-package-lock"]),
    };
    let read = |path: &Path| std::fs::read(path).ok();
    let stamp = package.join("node_modules/.installed");
    if read(&stamp).is_some_and(|installed| Some(installed) == read(&wanted)) {
        return Ok(());
    }
    let quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
    process::run(npm(package).args(arguments).args(quiet))?;
    std::fs::copy(&wanted, &stamp).map_err(|error| Failure::file("write", &stamp, &error))?;
    Ok(())
}

fn npm(package: &Path) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(package);
    command
}
