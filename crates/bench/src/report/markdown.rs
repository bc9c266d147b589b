//! `docs/benchmarks.md`.

use std::fmt::Write;

use crate::outcome::{Outcome, Verdict};

use super::remarks;

/// The circumstances of a run.
pub struct Run {
    pub command: String,
    pub commit: String,
    pub date: String,
    pub machine: String,
    /// The file system of the data.
    pub file_system: String,
    pub versions: Vec<String>,
    pub method: String,
}

pub fn render(run: &Run, outcomes: &[Outcome], chart: &str) -> String {
    let mut text = String::from("# Benchmarks\n\n");
    let _ = writeln!(
        text,
        "Written by `{}` on {} at commit {}. Don't edit it: run the command.\n",
        run.command, run.date, run.commit
    );
    let _ = writeln!(text, "- machine: {}", run.machine);
    let _ = writeln!(text, "- data on {}", run.file_system);
    for version in &run.versions {
        let _ = writeln!(text, "- {version}");
    }
    let _ = writeln!(text, "\n{}\n\n## Targets\n\n{}", run.method, targets(outcomes));
    if !chart.is_empty() {
        let _ = writeln!(text, "![Requests per second of each program]({chart})\n");
    }
    for section in outcomes.iter().flat_map(|outcome| &outcome.sections) {
        let _ = writeln!(text, "## {}\n\n{}\n", section.heading, section.text.trim());
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The table of targets, and the reasons for missed ones.
pub fn targets(outcomes: &[Outcome]) -> String {
    let findings = || outcomes.iter().flat_map(|outcome| &outcome.findings);
    let mut text = String::from("| what | target | measured | | remark |\n|---|---|---|---|---|\n");
    for finding in findings() {
        let remark = match finding.verdict {
            Verdict::Missed => remarks::find(finding.row),
            _ => "",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {remark} |",
            finding.what,
            finding.target,
            finding.measured,
            finding.verdict.word()
        );
    }
    let number = |verdict| findings().filter(|finding| finding.verdict == verdict).count();
    let with_target = number(Verdict::Met) + number(Verdict::Missed) + number(Verdict::Failed);
    let _ = writeln!(text, "\n{} of {with_target} targets are met.", number(Verdict::Met));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Finding, Section};

    #[test]
    fn every_finding_is_a_row_and_every_section_a_heading() {
        let outcome = Outcome {
            findings: vec![
                Finding::at_most("a", "start", 30.0, "ms", 12.0),
                Finding::at_most("b", "memory", 20.0, "MB", 25.0),
                Finding::told("c", "expiry", "fast"),
                Finding::failed("d", "scan"),
            ],
            sections: vec![Section { heading: "More".into(), text: "figures\n".into() }],
            charts: Vec::new(),
        };
        let run = Run {
            command: "cargo xtask compare".into(),
            commit: "abc".into(),
            date: "2026-01-01".into(),
            machine: "a machine".into(),
            file_system: "ext4".into(),
            versions: vec!["zenobe 1".into()],
            method: "Carefully.".into(),
        };
        let text = render(&run, &[outcome], "chart.svg");
        for line in [
            "| start | ≤ 30 ms | 12.0 ms | met |  |",
            "| memory | ≤ 20 MB | 25.0 MB | **missed** |  |",
            "| expiry | – | fast | – |  |",
            "| scan | – | could not be measured | **failed** |  |",
            "1 of 3 targets are met.",
            "## More",
            "- data on ext4",
            "- zenobe 1",
        ] {
            assert!(text.lines().any(|each| each == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("figures\n"));
    }
}
