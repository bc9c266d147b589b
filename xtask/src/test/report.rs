//! Which step runs, how long it takes, and how long the rest will take.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::process::Failure;
use crate::progress::minutes;
use crate::workspace;

pub struct Report {
    /// The steps in order, with their expected times.
    expected: Vec<(&'static str, Duration)>,
    finished: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    pub fn new(steps: &[(&'static str, u64)]) -> Report {
        let last = read_times();
        let expected = steps.iter().map(|(name, seconds)| {
            let seconds = last.get(*name).copied().unwrap_or(*seconds);
            (*name, Duration::from_secs(seconds))
        });
        Report { expected: expected.collect(), finished: Vec::new() }
    }

    /// Runs one step. `name` must be the next step of the report.
    pub fn step<T>(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let number = self.finished.len();
        let (next, expected) = self.expected.get(number).copied().unwrap_or_default();
        assert_eq!(name, next, "the steps run in the order of their list");
        eprintln!(
            "\n== {} of {}: {name}, about {}; then about {} for the rest",
            number + 1,
            self.expected.len(),
            minutes(expected),
            minutes(self.rest_after(number)),
        );
        let started = Instant::now();
        let outcome = run();
        let elapsed = started.elapsed();
        eprintln!("== {name}: {:.1} s", elapsed.as_secs_f64());
        self.finished.push((name, elapsed, outcome.is_ok()));
        outcome.map_err(|failure| Failure::new(format!("{name}: {failure}")))
    }

    fn rest_after(&self, number: usize) -> Duration {
        self.expected.iter().skip(number + 1).map(|(_, expected)| *expected).sum()
    }

    /// Prints the times of all steps that ran, and saves those that passed for the next run's
    /// estimates.
    pub fn print(&self) {
        let width = self.finished.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        eprintln!();
        for (name, elapsed, passed) in &self.finished {
            let result = if *passed { "passed" } else { "FAILED" };
            eprintln!("  {result}  {name:width$}  {:>7.1} s", elapsed.as_secs_f64());
        }
        let total: Duration = self.finished.iter().map(|(_, elapsed, _)| *elapsed).sum();
        eprintln!("          {:width$}  {:>7.1} s", "together", total.as_secs_f64());
        self.write_times();
    }

    fn write_times(&self) {
        let mut times = read_times();
        for (name, elapsed, _) in self.finished.iter().filter(|(.., passed)| *passed) {
            times.insert((*name).to_owned(), elapsed.as_secs());
        }
        let text: String =
            times.iter().map(|(name, seconds)| format!("{seconds} {name}\n")).collect();
        // Without the file the next run estimates worse; nothing else depends on it.
        let _ = fs::write(times_file(), text);
    }
}

fn times_file() -> PathBuf {
    workspace::target_directory().join("test-times.txt")
}

fn read_times() -> HashMap<String, u64> {
    parse_times(&fs::read_to_string(times_file()).unwrap_or_default())
}

fn parse_times(text: &str) -> HashMap<String, u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(seconds, name)| Some((name.to_owned(), seconds.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_damaged_file_are_left_out() {
        let times = parse_times("12 Rust tests\nx lints\n\n7\n");
        assert_eq!(times, HashMap::from([("Rust tests".to_owned(), 12)]));
    }
}
