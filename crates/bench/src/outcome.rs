//! The results: rows with a target and a verdict, and the figures behind them.

use std::fmt::Write;

use zenobe_load::{human_count, three_digits};

use crate::measure::Series;

/// Everything that one group of rows yields.
#[derive(Debug, Default)]
pub struct Outcome {
    pub findings: Vec<Finding>,
    pub sections: Vec<Section>,
    pub charts: Vec<Chart>,
}

impl Outcome {
    /// Adds the rows and figures of another part.
    pub fn add(&mut self, part: Outcome) {
        self.findings.extend(part.findings);
        self.sections.extend(part.sections);
        self.charts.extend(part.charts);
    }
}

/// The only thing that documents say about a failure.
pub const NOT_MEASURED: &str = "could not be measured";

/// A row of the table of targets.
#[derive(Debug)]
pub struct Finding {
    /// Identifies the row, to find its remark.
    pub row: &'static str,
    pub what: String,
    pub target: String,
    pub measured: String,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Met,
    Missed,
    /// A figure without a target.
    Told,
    /// It could not be measured.
    Failed,
}

impl Verdict {
    pub fn of(met: bool) -> Verdict {
        if met { Verdict::Met } else { Verdict::Missed }
    }

    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "**missed**",
            Verdict::Told => "–",
            Verdict::Failed => "**failed**",
        }
    }
}

impl Finding {
    /// The rate of `series` must be at least `share` of that of `base`.
    pub fn share(
        row: &'static str,
        what: impl Into<String>,
        share: f64,
        of: &str,
        series: &Series,
        base: &Series,
    ) -> Finding {
        let target = format!("≥ {:.0} % of {of}", share * 100.0);
        let measured = measured_ratio(series, base, "%", |ratio| format!("{:.0}", ratio * 100.0));
        let verdict = Verdict::of(series.rate_by(base).median >= share);
        Finding { row, what: what.into(), target, measured, verdict }
    }

    /// The rate of `series` must be at least `factor` times that of `base`.
    pub fn factor(
        row: &'static str,
        what: impl Into<String>,
        factor: f64,
        of: &str,
        series: &Series,
        base: &Series,
    ) -> Finding {
        let target = format!("≥ {factor} × {of}");
        let measured = measured_ratio(series, base, "×", |ratio| format!("{ratio:.1}"));
        let verdict = Verdict::of(series.rate_by(base).median >= factor);
        Finding { row, what: what.into(), target, measured, verdict }
    }

    /// `value` must not be more than `limit`.
    pub fn at_most(
        row: &'static str,
        what: impl Into<String>,
        limit: f64,
        unit: &str,
        value: f64,
    ) -> Finding {
        Finding {
            row,
            what: what.into(),
            target: format!("≤ {limit} {unit}"),
            measured: format!("{value:.1} {unit}"),
            verdict: Verdict::of(value <= limit),
        }
    }

    pub fn told(
        row: &'static str,
        what: impl Into<String>,
        measured: impl Into<String>,
    ) -> Finding {
        Finding {
            row,
            what: what.into(),
            target: "–".to_owned(),
            measured: measured.into(),
            verdict: Verdict::Told,
        }
    }

    /// The error itself goes only to standard error: it may contain paths of this machine, and the
    /// table is published.
    pub fn failed(row: &'static str, what: &str) -> Finding {
        Finding {
            row,
            what: what.to_owned(),
            target: "–".to_owned(),
            measured: NOT_MEASURED.to_owned(),
            verdict: Verdict::Failed,
        }
    }
}

/// How the rate of `series` compares with that of `base`. `show` writes a ratio in `unit`.
fn measured_ratio(
    series: &Series,
    base: &Series,
    unit: &str,
    show: impl Fn(f64) -> String,
) -> String {
    let ratio = series.rate_by(base);
    format!(
        "{} {unit} (range {} to {}; {} of {}/s)",
        show(ratio.median),
        show(ratio.low),
        show(ratio.high),
        count(series.rate()),
        count(base.rate())
    )
}

/// Figures in the document, below the table of targets.
#[derive(Debug)]
pub struct Section {
    pub heading: String,
    /// In Markdown.
    pub text: String,
}

impl Section {
    /// A table of rates and latencies.
    pub fn of_series(heading: &str, note: &str, series: &[Series]) -> Section {
        let mut text = format!("{note}\n\n");
        text.push_str("| | requests/s | p50 | p99 | p99.9 | spread |\n");
        text.push_str("|---|---:|---:|---:|---:|---:|\n");
        for each in series {
            let latency = match each.latency() {
                Some(latency) => format!(
                    "{} | {} | {}",
                    milliseconds(latency.p50),
                    milliseconds(latency.p99),
                    milliseconds(latency.p999)
                ),
                None => "– | – | –".to_owned(),
            };
            let spread = each.spread() * 100.0;
            let rate = count(each.rate());
            let _ = writeln!(text, "| {} | {rate} | {latency} | {spread:.0} % |", each.name);
        }
        Section { heading: heading.to_owned(), text }
    }
}

/// Bars drawn side by side.
#[derive(Debug)]
pub struct Chart {
    pub title: String,
    pub unit: &'static str,
    pub bars: Vec<Bar>,
}

impl Chart {
    /// The rates of several series. Series named after a limit are not ours.
    pub fn of_series(title: &str, series: &[Series]) -> Chart {
        let bar = |series: &Series| Bar {
            name: series.name.clone(),
            value: Some(series.rate()),
            own: !series.name.starts_with("bare "),
        };
        let bars = series.iter().map(bar).collect();
        Chart { title: title.to_owned(), unit: "requests/s", bars }
    }
}

#[derive(Debug)]
pub struct Bar {
    pub name: String,
    /// `None` if it could not be measured.
    pub value: Option<f64>,
    /// Whether it is our server.
    pub own: bool,
}

/// A number with thousands separators.
pub fn count(value: f64) -> String {
    human_count(value.round() as u64)
}

/// Always in milliseconds, so that the values of a column can be compared.
pub fn milliseconds(value: f64) -> String {
    three_digits(value, "ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_met_from_its_target_on() {
        let series = |rate| Series::of_rates(&[rate]);
        let verdict =
            |rate| Finding::share("r", "w", 0.5, "b", &series(rate), &series(100.0)).verdict;
        assert_eq!(verdict(50.0), Verdict::Met);
        assert_eq!(verdict(49.9), Verdict::Missed);
    }

    #[test]
    fn a_factor_is_met_from_its_target_on() {
        let series = |rate| Series::of_rates(&[rate]);
        let finding =
            |rate| Finding::factor("r", "w", 2.0, "pgbench", &series(rate), &series(100.0));
        assert_eq!(finding(200.0).verdict, Verdict::Met);
        assert_eq!(finding(199.0).verdict, Verdict::Missed);
        assert_eq!(finding(200.0).measured, "2.0 × (range 2.0 to 2.0; 200 of 100/s)");
        assert_eq!(finding(200.0).target, "≥ 2 × pgbench");
    }
}
