//! The recorded counts: reads and writes them, and judges new ones.

use std::fmt;

use super::toolchain::Toolchain;

const TOLERANCE_PERCENT_DEFAULT: u64 = 3;

/// Instructions per operation of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub case: String,
    pub instructions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Recorded {
    case: String,
    instructions: u64,
    tolerance_percent: u64,
    /// The reason for the tolerance.
    note: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    toolchain: Toolchain,
    cases: Vec<Recorded>,
}

impl Baseline {
    /// Reads lines `name: version` and, after the first blank line, `case count tolerance % note`.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        let mut baseline = Baseline::default();
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            if let Some((name, version)) = line.split_once(": ") {
                baseline.toolchain.push((name.to_owned(), version.to_owned()));
                continue;
            }
            let recorded = Recorded::parse(line)
                .ok_or_else(|| format!("line {number} is not `case instructions tolerance %`"))?;
            if baseline.find(&recorded.case).is_some() {
                return Err(format!("line {number} names {} again", recorded.case));
            }
            baseline.cases.push(recorded);
        }
        Ok(baseline)
    }

    /// The tools that differ from those of the recording.
    pub fn toolchain_differences(&self, current: &Toolchain) -> Vec<String> {
        let differs = |(name, now): &(String, String)| {
            let recorded = self.toolchain.iter().find(|(recorded, _)| recorded == name);
            let recorded = recorded.map_or("an unknown version", |(_, version)| version);
            (recorded != now)
                .then(|| format!("the baseline was recorded with {name} {recorded}, this is {now}"))
        };
        current.iter().filter_map(differs).collect()
    }

    pub fn compare(&self, measured: &[Measured]) -> Comparison {
        let judge = |measured: &Measured| {
            let recorded = self.find(&measured.case);
            let verdict = recorded.map_or(Verdict::New, |recorded| recorded.judge(measured));
            Row {
                case: measured.case.clone(),
                baseline: recorded.map(|recorded| recorded.instructions),
                now: measured.instructions,
                verdict,
            }
        };
        Comparison { rows: measured.iter().map(judge).collect() }
    }

    /// The baseline with the new counts accepted. Cases that were not measured keep their counts
    /// unless they no longer exist. Tolerances stay.
    pub fn blessed(
        &self,
        toolchain: &Toolchain,
        measured: &[Measured],
        all: &[String],
    ) -> Baseline {
        let bless = |case: &String| {
            let recorded = self.find(case).cloned();
            let Some(now) = measured.iter().find(|measured| measured.case == *case) else {
                return recorded;
            };
            let recorded = recorded.unwrap_or_else(|| Recorded {
                case: case.clone(),
                instructions: 0,
                tolerance_percent: TOLERANCE_PERCENT_DEFAULT,
                note: String::new(),
            });
            Some(Recorded { instructions: now.instructions, ..recorded })
        };
        Baseline { toolchain: toolchain.clone(), cases: all.iter().filter_map(bless).collect() }
    }

    fn find(&self, case: &str) -> Option<&Recorded> {
        self.cases.iter().find(|recorded| recorded.case == case)
    }
}

impl Recorded {
    fn parse(line: &str) -> Option<Recorded> {
        let mut words = line.split_whitespace();
        let case = words.next()?.to_owned();
        let instructions = words.next()?.parse().ok()?;
        let tolerance_percent = words.next()?.parse().ok()?;
        (words.next()? == "%").then_some(())?;
        let note = words.collect::<Vec<_>>().join(" ");
        Some(Recorded { case, instructions, tolerance_percent, note })
    }

    fn judge(&self, measured: &Measured) -> Verdict {
        let allowed = self.instructions * self.tolerance_percent / 100;
        if measured.instructions > self.instructions + allowed {
            Verdict::Worse
        } else if measured.instructions + allowed < self.instructions {
            Verdict::Better
        } else {
            Verdict::Same
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Same,
    Better,
    Worse,
    /// There is no count to compare with. This fails, because a case without a record guards
    /// nothing.
    New,
}

pub struct Comparison {
    rows: Vec<Row>,
}

struct Row {
    case: String,
    baseline: Option<u64>,
    now: u64,
    verdict: Verdict,
}

impl Comparison {
    pub fn regressions(&self) -> usize {
        let is_regression = |row: &&Row| matches!(row.verdict, Verdict::Worse | Verdict::New);
        self.rows.iter().filter(is_regression).count()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<28} {:>12} {:>12} {:>9}", "case", "baseline", "now", "change")?;
        for Row { case, baseline, now, verdict } in &self.rows {
            let (recorded, change) = match baseline {
                Some(recorded) => (recorded.to_string(), change_percent(*recorded, *now)),
                None => ("none".to_owned(), String::new()),
            };
            let remark = match verdict {
                Verdict::Same => "",
                Verdict::Better => "  better: --bless to record the gain",
                Verdict::Worse => "  WORSE",
                Verdict::New => "  NOT RECORDED: --bless",
            };
            writeln!(out, "{case:<28} {recorded:>12} {now:>12} {change:>9}{remark}")?;
        }
        Ok(())
    }
}

fn change_percent(recorded: u64, now: u64) -> String {
    let change = (now as f64 / recorded.max(1) as f64 - 1.0) * 100.0;
    format!("{change:+.1} %")
}

impl fmt::Display for Baseline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "# Instructions per operation. `cargo xtask instructions` fails where a case needs more than this"
        )?;
        writeln!(
            out,
            "# by more than its tolerance; `cargo xtask instructions --bless` rewrites the counts and keeps the"
        )?;
        writeln!(out, "# tolerances and the reasons beside them.\n")?;
        for (name, version) in &self.toolchain {
            writeln!(out, "{name}: {version}")?;
        }
        writeln!(out, "\n# {:<26} {:>12} {:>11}", "case", "instructions", "tolerance")?;
        for Recorded { case, instructions, tolerance_percent, note } in &self.cases {
            let line = format!("{case:<28} {instructions:>12} {tolerance_percent:>9} %  {note}");
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment\n\nrustc: 1.95.0\nhost: x86_64\n\n# case\n\
                        get 1000 3 %\nput 20000 10 % threads take turns\n";

    fn measured(counts: &[(&str, u64)]) -> Vec<Measured> {
        let measured = |(case, instructions): &(&str, u64)| Measured {
            case: (*case).to_owned(),
            instructions: *instructions,
        };
        counts.iter().map(measured).collect()
    }

    /// Compares with the baseline above: the verdicts in order, and how many fail.
    fn check(counts: &[(&str, u64)], verdicts: &[Verdict], regressions: usize) {
        let comparison = Baseline::parse(TEXT).unwrap().compare(&measured(counts));
        let given: Vec<Verdict> = comparison.rows.iter().map(|row| row.verdict).collect();
        assert_eq!(given, verdicts, "{counts:?}");
        assert_eq!(comparison.regressions(), regressions, "{counts:?}");
    }

    #[test]
    fn counts_fail_above_the_tolerance_only() {
        use Verdict::{Better, New, Same, Worse};
        check(&[("get", 1000), ("put", 20_000)], &[Same, Same], 0);
        check(&[("get", 1030)], &[Same], 0);
        check(&[("get", 1031)], &[Worse], 1);
        check(&[("get", 970)], &[Same], 0);
        check(&[("get", 969)], &[Better], 0);
        check(&[("put", 22_000), ("get", 5000)], &[Same, Worse], 1);
        check(&[("put", 22_001), ("get", 5000)], &[Worse, Worse], 2);
        check(&[("put", 1)], &[Better], 0);
        check(&[("delete", 5)], &[New], 1);
        check(&[], &[], 0);
    }

    #[test]
    fn the_table_says_what_happened() {
        let counts = measured(&[("get", 1100), ("put", 10_000), ("delete", 7)]);
        let text = Baseline::parse(TEXT).unwrap().compare(&counts).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("+10.0 %  WORSE"), "{text}");
        assert!(lines[2].contains("-50.0 %  better: --bless to record the gain"), "{text}");
        assert!(lines[3].contains("NOT RECORDED"), "{text}");
    }

    #[test]
    fn another_toolchain_is_reported() {
        let baseline = Baseline::parse(TEXT).unwrap();
        let toolchain = |rustc: &str| {
            vec![("rustc".to_owned(), rustc.to_owned()), ("host".to_owned(), "x86_64".to_owned())]
        };
        assert_eq!(baseline.toolchain_differences(&toolchain("1.95.0")), Vec::<String>::new());
        let differences = baseline.toolchain_differences(&toolchain("1.96.0"));
        assert_eq!(differences, ["the baseline was recorded with rustc 1.95.0, this is 1.96.0"]);
    }

    #[test]
    fn blessing_keeps_tolerances_and_reasons_and_drops_what_is_gone() {
        let baseline = Baseline::parse(TEXT).unwrap();
        let all = ["put", "delete"].map(str::to_owned);
        let counts = measured(&[("put", 9000), ("delete", 7)]);
        let toolchain = vec![("rustc".to_owned(), "1.96.0".to_owned())];
        let blessed = baseline.blessed(&toolchain, &counts, &all);
        assert_eq!(Baseline::parse(&blessed.to_string()).unwrap(), blessed);
        assert_eq!(blessed.toolchain, toolchain);
        let put = blessed.find("put").unwrap();
        assert_eq!((put.instructions, put.tolerance_percent), (9000, 10));
        assert_eq!(put.note, "threads take turns");
        assert_eq!(blessed.find("delete").unwrap().tolerance_percent, TOLERANCE_PERCENT_DEFAULT);
        assert_eq!(blessed.find("get"), None);
        let unmeasured = baseline.blessed(&toolchain, &[], &all);
        assert_eq!(unmeasured.find("put").unwrap().instructions, 20_000);
    }

    /// A request that is refused must cost less than one that is served, or else too many requests
    /// are an attack.
    #[test]
    fn throttled_requests_cost_less_than_served_ones() {
        let text = include_str!("../../../crates/instructions/baseline.txt");
        let baseline = Baseline::parse(text).unwrap();
        for operation in ["get-item", "put-item"] {
            let [throttled, served] = ["throttled", "enforce"].map(|case| {
                let recorded = baseline.find(&format!("{operation}.{case}"));
                recorded.expect("the case is recorded").instructions
            });
            assert!(throttled < served, "{operation}: {throttled}, and {served} if served");
        }
    }

    #[test]
    fn unreadable_baselines_are_rejected() {
        for (text, reason) in [
            ("get", "line 1 is not"),
            ("rustc: 1\n\nget many 3 %", "line 3 is not"),
            ("get 1000 3", "line 1 is not"),
            ("get 1 3 %\nget 2 3 %", "line 2 names get again"),
        ] {
            let fault = Baseline::parse(text).unwrap_err();
            assert!(fault.starts_with(reason), "{fault}");
        }
    }
}
