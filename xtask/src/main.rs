//! The project's own commands: `cargo xtask help`.
//!
//! They need a Rust toolchain, a C++ compiler and Python 3, and provide the rest themselves:
//! libclang (which generates the bindings to RocksDB) and the compiled RocksDB library. Both live
//! in a per-user cache, so a machine pays for them once, not once per clone.
//!
//! **Invariant:** this crate needs nothing that takes long to compile: it is the first thing that a
//! bare machine builds.

mod cache;
mod clients;
mod cluster;
mod compare;
mod documents;
mod environment;
mod fuzz;
mod instructions;
mod libclang;
mod licences;
mod measuring;
mod metadata;
mod package;
mod peers;
mod postgres;
mod process;
mod progress;
mod python;
mod rocksdb;
mod rust_version;
mod safety;
mod serve;
mod soak;
mod test;
mod wheel;
mod workspace;

use std::process::ExitCode;

use crate::process::Failure;

fn main() -> ExitCode {
    let outcome = rocksdb::awaited::run_as_compiler().unwrap_or_else(|| {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        run(&arguments)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Every command, so that the help, the dispatch and the check of the documents agree.
pub const COMMANDS: &[&str] = &[
    "serve",
    "test",
    "documents",
    "clients",
    "fuzz",
    "power-cuts",
    "histories",
    "cluster",
    "compare",
    "soak",
    "instructions",
    "licences",
    "package",
    "postgres",
    "env",
    "help",
];

fn run(arguments: &[String]) -> Result<(), Failure> {
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", arguments),
    };
    match command {
        "serve" => serve::run(rest),
        "test" => no_arguments(rest).and_then(|()| test::run()),
        "documents" => documents::run(rest),
        "clients" => no_arguments(rest).and_then(|()| clients::run()),
        "fuzz" => fuzz::run(rest),
        "power-cuts" => safety::power_cuts(rest),
        "histories" => safety::histories(rest),
        "cluster" => cluster::run(rest),
        "compare" => compare::run(rest),
        "soak" => soak::run(rest),
        "instructions" => instructions::run(rest),
        "licences" => licences::run(rest),
        "package" => package::run(rest),
        "postgres" => no_arguments(rest).and_then(|()| postgres::run()),
        "env" => no_arguments(rest).and_then(|()| environment::print()),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::new(format!(
            "there is no command `{other}`; the commands are {}",
            COMMANDS.join(", ")
        ))),
    }
}

fn no_arguments(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::new(format!("unexpected argument `{extra}`"))),
    }
}

const HELP: &str = "\
Usage: cargo xtask <command>

  serve [--release] [-- <options>]
      Builds the server and runs `zenobe serve` with the options. The build is a quick one;
      --release builds what packages ship, which is faster but takes twice as long to build.
      Example: cargo xtask serve -- --memory --listen 127.0.0.1:8000

  test
      Runs everything that must pass before a change is merged: formatting, lints, the Rust
      tests, a short run of each fuzz target, instruction counts, the client packages and
      examples, the AWS SDK tests in Python, and the commands in the documents.
      Example: cargo xtask test

  documents [<page>...]
      Checks the documents, or the named ones, and runs the commands in them, with the binary
      that ZENOBE_BINARY names or else the quick build. Part of `test`.
      Example: cargo xtask documents docs/streams.md

  clients
      Runs the tests of the packages in clients/ and the programs in examples/, with the same
      binary as `documents`. Part of `test`.
      Example: ZENOBE_BINARY=/usr/bin/zenobe cargo xtask clients

  fuzz [--seconds <n>] [<target>]
      Runs one fuzz target, or all in turn, for 12 seconds each or for the given time.
      Example: cargo xtask fuzz --seconds 600 requests

  power-cuts [--cuts <n>] [--seed <n>]
      Simulates power cuts of a recorded store (400, or the given number) and of a recorded
      server (a tenth as many), and checks that nothing acknowledged is lost.
      Example: cargo xtask power-cuts --cuts 10000 --seed 1

  histories [--count <n>] [--seed <n>]
      Records what concurrent clients see while a server is killed and restarted, 24 times or
      the given number, and checks it with two checkers. The second, porcupine, needs Go.
      Example: cargo xtask histories --count 500 --seed 1

  cluster [--minutes <n>] [--seed <n>]
      Runs three nodes on three PostgreSQL servers under Patroni with etcd, which it installs, for
      ten minutes or the given time, while nodes, servers, networks and clocks fail, and checks
      that nothing acknowledged is lost. Needs Linux; the second checker needs Go.
      Example: cargo xtask cluster --minutes 60 --seed 1

  compare [--rounds <n>] [--seconds <n>] [--quick] [--only <rows>] [--without-peers]
          [--items <n>] [--large-items <n>] [--drained-items <n>] [--data-dir <directory>]
      Measures the release server against its limits and against other programs with the same
      API, which it installs, and writes docs/benchmarks.md. Takes about 25 minutes on two idle
      cores, 8 with --quick. The rows come in groups: reads, writes-os, writes-sync, partiql, peers,
      growth, scan, load, rest, expiry, dead-runs, throughput, history, many-nodes. --only measures some
      groups and writes its document to target/compare.
      Example: cargo xtask compare --only reads,writes-os --without-peers

  soak [--minutes <n>]
      Puts the release server under mixed load for ten minutes or the given time, checks that
      nothing fails, grows or slows down, and writes docs/soak.md.
      Example: cargo xtask soak --minutes 2

  instructions [--bless | --profile] [<case>...]
      Counts the instructions of the hot paths and compares them with the baseline.
      --bless records new counts; --profile shows where they are spent.
      Example: cargo xtask instructions --profile get-item.memory

  licences [--write | --texts <file>]
      Checks that deny.toml allows the licences of everything in the binary and that NOTICE
      lists it all. --write updates NOTICE; --texts collects the licence texts. Part of `test`.
      Example: cargo xtask licences --write

  package [--check | --deb | --stage <directory>]
      Builds the release archive, target/package/zenobe-VERSION-TARGET.tar.gz, with the binary,
      man pages, completions and licences, and its checksum. --deb builds a Debian package (needs
      cargo-deb); --stage only puts the files into a directory. --check packs the crates as for a
      registry; part of `test`.
      Example: cargo xtask package --stage /tmp/zenobe

  postgres
      Fetches PostgreSQL's programs for the tests of the store for many nodes, unless they are there, and
      prints where they are. Part of `test`.
      Example: ls \"$(cargo xtask postgres)\"

  env
      Prints the variables that let plain cargo use the compiled RocksDB.
      Example: eval \"$(cargo xtask env)\" && cargo build

  help
      Prints this text.

The first run on a machine compiles RocksDB, which takes 3 to 6 minutes on two cores. The result
is kept in ${XDG_CACHE_HOME:-~/.cache}/zenobe and shared by all clones.
";
