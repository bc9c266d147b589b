//! Runs cases under callgrind and reads its counts.

use std::collections::BTreeMap;
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

/// Shows in which functions a case spends its instructions.
pub fn profile(case: &Case) -> Result<(), Failure> {
    let account = run(case)?;
    mend(&account)?;
    // The parts of a function add up to its own cost; each part has the whole cost of its callees.
    let tables: [(&str, Option<&str>, Combine); 2] = [
        ("with all that they call", Some("--inclusive=yes"), u64::max),
        ("by themselves", None, std::ops::Add::add),
    ];
    for (title, option, combine) in tables {
        println!("\n{}: instructions per operation in functions {title}", case.name);
        let mut annotate = Command::new("callgrind_annotate");
        annotate.args(["--auto=no", "--threshold=99"]).args(option).arg(&account);
        let text = process::output(&mut annotate)?;
        for (function, total) in by_function(&text, combine).into_iter().take(FUNCTIONS_MAX) {
            println!("{:>9}  {function}", total / case.iterations);
        }
    }
    println!("\nLine by line:  callgrind_annotate --auto=yes {}", account.display());
    Ok(())
}

const FUNCTIONS_MAX: usize = 80;

type Combine = fn(u64, u64) -> u64;

/// A call that was running when callgrind started a new dump has a call count of zero in it.
/// callgrind_annotate takes that for no call and its cost for the caller's own.
fn mend(account: &Path) -> Result<(), Failure> {
    let text =
        fs::read_to_string(account).map_err(|error| Failure::file("read", account, &error))?;
    let mended = text.replace("\ncalls=0 ", "\ncalls=1 ");
    fs::write(account, mended).map_err(|error| Failure::file("write", account, &error))
}

/// Merges callgrind_annotate's lines by function: inlined code has a file of its own and its
/// caller's name. The most expensive comes first.
fn by_function(text: &str, combine: Combine) -> Vec<(&str, u64)> {
    let mut totals = BTreeMap::new();
    for Share { total, function } in text.lines().filter_map(Share::parse) {
        let known = totals.entry(function).or_insert(0);
        *known = combine(*known, total);
    }
    let mut totals: Vec<(&str, u64)> = totals.into_iter().collect();
    totals.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    totals
}

/// The instructions of one function.
#[derive(Debug, PartialEq, Eq)]
struct Share<'a> {
    total: u64,
    function: &'a str,
}

impl Share<'_> {
    /// Parses a line of callgrind_annotate, `1,234 (5.67%)  file:function [object]`. `None` for
    /// other lines, and for functions that contain everything.
    fn parse(line: &str) -> Option<Share<'_>> {
        let (count, rest) = line.trim_start().split_once(" (")?;
        let total = count.replace(',', "").parse().ok()?;
        let (percent, place) = rest.split_once("%)")?;
        let place = place.trim_start();
        if percent.trim() == "100.0" || place == "PROGRAM TOTALS" {
            return None;
        }
        let named = place.rsplit_once(" [").map_or(place, |(named, _)| named);
        let (_file, function) = named.split_once(':')?;
        Some(Share { total, function })
    }
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

    #[test]
    fn inlined_code_counts_for_its_function() {
        let text = "9 (9.0%)  a.rs:f [/x]\n20 (20.0%)  b.rs:g [/x]\n12 (12.0%)  c.rs:f [/x]\n";
        assert_eq!(by_function(text, std::ops::Add::add), [("f", 21), ("g", 20)]);
        assert_eq!(by_function(text, u64::max), [("g", 20), ("f", 12)]);
    }

    #[test]
    fn shares_are_read_from_annotations() {
        let check = |line, expected: Option<(u64, &str)>| {
            let share = Share::parse(line).map(|share| (share.total, share.function));
            assert_eq!(share, expected, "{line}");
        };
        check("9,000 (75.00%)  ???:a::b::{{closure}} [/bin/x]", Some((9000, "a::b::{{closure}}")));
        check("  800 ( 6.67%)  malloc.c:free [/usr/lib/libc.so]", Some((800, "free")));
        check("12,000 (100.0%)  ???:main [/bin/x]", None);
        check("12,000 (100.0%)  PROGRAM TOTALS", None);
        check("Profile data file 'callgrind.out' (creator: callgrind-3.19.0)", None);
        check("-----", None);
    }
}
