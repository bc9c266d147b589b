//! Runs one hot path again and again, so that `cargo xtask instructions` can count what it costs.
//!
//! ```text
//! zenobe-instructions --list                    each case with its default number of iterations
//! zenobe-instructions <case> [<iterations>]     one case
//! ```
//!
//! A case sets itself up, warms up, and calls [`section::count`]; only what happens inside is
//! counted, on all threads. Nothing here measures: callgrind does, from outside.
//!
//! **Invariant:** a case does the same in every run. It has one client, a clock that stands still,
//! and inputs prepared before the section. The remaining variation (hash seeds of the standard
//! library, thread scheduling) is small and stays within the tolerances in `baseline.txt`.
//!
//! ## Why not a crate
//!
//! [gungraun](https://docs.rs/gungraun) 0.20 (formerly iai-callgrind) is made for this. It would
//! replace this file, [`section`] and `xtask/src/instructions/callgrind.rs`, about 220 lines; the
//! cases would stay. It lacks three things on which we decide a merge:
//!
//! - **Reviewed counts.** Its baselines are callgrind's dumps below `target`. To compare with `main`,
//!   CI would build and count `main` as well. A change of `baseline.txt` shows in the diff.
//! - **Tolerances with a reason.** Its limits are percentages of that baseline, or absolute numbers
//!   in the source, which nothing rewrites.
//! - **The toolchain.** `baseline.txt` names the compiler and the valgrind of its counts, so that
//!   another toolchain is not taken for a regression.
//!
//! It would add `gungraun-runner`, a program of 175 crates that must be installed in exactly the
//! version of the library.

mod case;
mod cases;
mod database;
mod requests;
mod samples;
mod section;

use std::process::ExitCode;

use zenobe::allocator::Allocator;

use crate::case::Case;

/// The server's allocator, so that the counts are the server's.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("zenobe-instructions: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--list"] => {
            for case in cases::all() {
                println!("{} {}", case.name, case.iterations);
            }
            Ok(())
        }
        [name] => find(name).map(|case| case.run(case.iterations)),
        [name, iterations] => {
            let iterations = iterations
                .parse()
                .map_err(|_| format!("`{iterations}` is not a number of iterations"))?;
            find(name).map(|case| case.run(iterations))
        }
        _ => Err("usage: zenobe-instructions --list | <case> [<iterations>]".to_owned()),
    }
}

fn find(name: &str) -> Result<Case, String> {
    let found = cases::all().into_iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("there is no case `{name}`; --list shows them"))
}
