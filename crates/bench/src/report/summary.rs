//! The four figures in the README, between two marks. All others are in docs/benchmarks.md.

use std::fmt::Write;

use crate::Result;
use crate::outcome::Outcome;

use super::markdown::Run;

const START: &str = "<!-- benchmarks -->\n";
const END: &str = "<!-- /benchmarks -->";

/// Reading, writing, starting and idling. Rates stand beside their limits, whether or not they meet
/// the target.
const ROWS: [&str; 4] = ["get", "put-sync", "start", "idle-memory"];

/// Replaces the text between the marks.
pub fn update(readme: &str, run: &Run, outcomes: &[Outcome]) -> Result<String> {
    let (before, rest) = readme.split_once(START).ok_or("the README has no mark")?;
    let (_, after) = rest.split_once(END).ok_or("the README has no second mark")?;
    Ok(format!("{before}{START}{}{END}{after}", summary(run, outcomes)))
}

fn summary(run: &Run, outcomes: &[Outcome]) -> String {
    let mut text = String::from("| | |\n|---|---|\n");
    for row in ROWS {
        let mut findings = outcomes.iter().flat_map(|outcome| &outcome.findings);
        if let Some(finding) = findings.find(|finding| finding.row == row) {
            let yardstick = match finding.target.split_once(" of ") {
                Some((_, yardstick)) => format!(" of {yardstick}"),
                None => String::new(),
            };
            let _ = writeln!(text, "| {} | {}{yardstick} |", finding.what, finding.measured);
        }
    }
    let _ =
        writeln!(text, "\nMeasured on {} at commit {} on {}.", run.date, run.commit, run.machine);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Series;
    use crate::outcome::Finding;

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let series = |rate| Series::of_rates(&[rate]);
        let outcome = Outcome {
            findings: vec![
                Finding::share(
                    "get",
                    "GetItem",
                    0.65,
                    "the bare server",
                    &series(70.0),
                    &series(100.0),
                ),
                Finding::told("expiry", "expiry", "fast"),
            ],
            ..Outcome::default()
        };
        let run = Run {
            command: String::new(),
            commit: "abc".into(),
            date: "2026-01-01".into(),
            machine: "a machine".into(),
            file_system: String::new(),
            versions: Vec::new(),
            method: String::new(),
        };
        let readme = "top\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nbottom\n";
        let updated = update(readme, &run, &[outcome]).unwrap();
        assert_eq!(
            updated,
            "top\n<!-- benchmarks -->\n| | |\n|---|---|\n\
             | GetItem | 70 % (range 70 to 70; 70 of 100/s) of the bare server |\n\n\
             Measured on 2026-01-01 at commit abc on a machine.\n<!-- /benchmarks -->\nbottom\n"
        );
        assert!(update("no marks", &run, &[]).is_err());
    }
}
