//! Runs cases under callgrind and reads its counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::Measured;
use crate::process::{self, Failure};
use crate::workspace;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    pub iterations: u64,
}

/// The cases of the built binary.
pub fn list() -> Result<Vec<Case>, Failure> {
    let text = process::output(Command::new(binary()).arg("--list"))?;
    let cases = text.lines().map(|line| {
        let (name, iterations) = line.split_once(' ')?;
        Some(Case { name: name.to_owned(), iterations: iterations.parse().ok()? })
    });
    cases.collect::<Option<_>>().ok_or_else(|| Failure::new("the list of cases is not readable"))
}

/// Counts each case, as many at a time as there are processors: they don't disturb each other.
pub fn measure(cases: &[Case]) -> Result<Vec<Measured>, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let waiting = Mutex::new(cases.iter().enumerate());
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no thread panics here").next();
                    let Some((position, case)) = next else { return };
                    let measured = measure_one(case);
                    results.lock().expect("no thread panics here").push((position, measured));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics here");
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, measured)| measured).collect()
}

fn measure_one(case: &Case) -> Result<Measured, Failure> {
    let account = run(case)?;
    let text =
        fs::read_to_string(&account).map_err(|error| Failure::file("read", &account, &error))?;
    let total = total(&text)
        .ok_or_else(|| Failure::new(format!("{} holds no total", account.display())))?;
    Ok(Measured { case: case.name.clone(), instructions: total / case.iterations })
}

/// Shows in which functions a case spends its instructions, callees included.
pub fn profile(case: &Case) -> Result<(), Failure> {
    let account = run(case)?;
    mend(&account)?;
    let mut annotate = Command::new("callgrind_annotate");
    annotate.args(["--auto=no", "--threshold=99", "--inclusive=yes"]);
    println!("{}: {} operations\n", case.name, case.iterations);
    process::run(annotate.arg(&account))?;
    println!("\nLine by line:  callgrind_annotate --auto=yes {}", account.display());
    Ok(())
}

/// A call that was running when callgrind started a new dump has a call count of zero in it.
/// callgrind_annotate takes that for no call and its cost for the caller's own.
fn mend(account: &Path) -> Result<(), Failure> {
    let text =
        fs::read_to_string(account).map_err(|error| Failure::file("read", account, &error))?;
    let mended = text.replace("\ncalls=0 ", "\ncalls=1 ");
    fs::write(account, mended).map_err(|error| Failure::file("write", account, &error))
}

/// Runs a case and returns the file with the counts of its section.
fn run(case: &Case) -> Result<PathBuf, Failure> {
    let directory = workspace::target_directory().join("instructions").join(&case.name);
    fs::create_dir_all(&directory).map_err(|error| Failure::file("create", &directory, &error))?;
    let out = directory.join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--cache-sim=no", "--branch-sim=no"])
        // Threads alternate instead of racing.
        .arg("--fair-sched=yes")
        // Each dump ends one file and starts another: the first holds everything before the
        // section, the second the section.
        .args(["--dump-before=*section_begins*", "--dump-before=*section_ends*"])
        .arg(format!("--callgrind-out-file={}", escaped(&out)))
        .arg(binary())
        .arg(&case.name)
        .arg(case.iterations.to_string());
    // Environment variables lie on the stack and shift it.
    valgrind.env_clear().envs(
        KEPT_VARIABLES.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))),
    );
    process::output(&mut valgrind)?;
    Ok(directory.join("callgrind.out.2"))
}

const KEPT_VARIABLES: [&str; 2] = ["PATH", "TMPDIR"];

/// Valgrind expands per cent signs in file names.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace('%', "%%")
}

fn total(account: &str) -> Option<u64> {
    account.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

fn binary() -> PathBuf {
    workspace::target_directory().join("release").join("zenobe-instructions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_dump_is_found() {
        let account = "version: 1\nevents: Ir\nsummary: 7\n\nfn=(1) f\n16 400\n\ntotals: 12345\n";
        assert_eq!(total(account), Some(12_345));
        assert_eq!(total("version: 1\n"), None);
    }
}
