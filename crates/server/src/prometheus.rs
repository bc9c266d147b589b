//! Prometheus's text format, for `/metrics`.
//!
//! Label values may come from clients, so they are escaped here and nowhere else. Code that adds a
//! label chosen by clients must bound its number of values: each is a separate time series.

use std::fmt::{self, Display, Write};

/// The text of `/metrics`, under construction.
#[derive(Debug, Default)]
pub struct Exposition(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    /// Here only sums and counts.
    Summary,
}

/// Names and values of labels, in the order in which they are written.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    pub fn into_text(self) -> String {
        self.0
    }

    /// A metric with one sample and no labels.
    pub fn single(&mut self, name: &str, metric_type: MetricType, value: impl Display) {
        self.metric(name, metric_type).sample(&[], value);
    }

    /// Starts a metric; its samples follow.
    pub fn metric<'e>(&'e mut self, name: &'e str, metric_type: MetricType) -> Metric<'e> {
        self.write(format_args!("# TYPE {name} {metric_type}\n"));
        Metric { exposition: self, name }
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string cannot fail");
    }
}

#[derive(Debug)]
pub struct Metric<'e> {
    exposition: &'e mut Exposition,
    name: &'e str,
}

impl Metric<'_> {
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.sample_of("", labels, value);
    }

    /// A sample of a part of a histogram, such as `_bucket`.
    pub fn sample_of(&mut self, part: &str, labels: Labels<'_>, value: impl Display) {
        self.exposition.write(format_args!("{}{part}", self.name));
        for (index, (label, value)) in labels.iter().enumerate() {
            let separator = if index == 0 { '{' } else { ',' };
            self.exposition.write(format_args!("{separator}{label}=\"{}\"", Escaped(value)));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.exposition.write(format_args!("{end} {value}\n"));
    }
}

impl Display for MetricType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Summary => "summary",
        })
    }
}

/// A label's value between its quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(special) = rest.find(['\\', '"', '\n']) {
            formatter.write_str(&rest[..special])?;
            formatter.write_str(match rest.as_bytes()[special] {
                b'\n' => "\\n",
                b'"' => "\\\"",
                _ => "\\\\",
            })?;
            rest = &rest[special + 1..];
        }
        formatter.write_str(rest)
    }
}

/// A duration as a number of seconds.
#[derive(Debug, Clone, Copy)]
pub enum Seconds {
    FromMilliseconds(u64),
    FromMicroseconds(u64),
}

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Seconds::FromMilliseconds(ms) => write!(formatter, "{}.{:03}", ms / 1_000, ms % 1_000),
            Seconds::FromMicroseconds(us) => {
                write!(formatter, "{}.{:06}", us / 1_000_000, us % 1_000_000)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_metric() {
        let mut exposition = Exposition::default();
        exposition.single("plain", MetricType::Gauge, 7);
        let mut metric = exposition.metric("taken", MetricType::Histogram);
        let labels = [("operation", "GetItem"), ("le", "+Inf")];
        metric.sample_of("_bucket", &labels, 2);
        metric.sample_of("_sum", &labels[..1], Seconds::FromMicroseconds(1_000_050));
        metric.sample(&labels[..1], Seconds::FromMilliseconds(20));
        let expected = "# TYPE plain gauge\nplain 7\n# TYPE taken histogram\n\
            taken_bucket{operation=\"GetItem\",le=\"+Inf\"} 2\n\
            taken_sum{operation=\"GetItem\"} 1.000050\n\
            taken{operation=\"GetItem\"} 0.020\n";
        assert_eq!(exposition.into_text(), expected);
    }

    #[test]
    fn label_values_cannot_end_their_quotes_or_their_line() {
        let mut exposition = Exposition::default();
        let mut metric = exposition.metric("calls", MetricType::Counter);
        metric.sample(&[("account", "a\"b\\c\nd"), ("region", "é\"} 9\nforged 1"), ("e", "")], 3);
        let expected = "# TYPE calls counter\n\
            calls{account=\"a\\\"b\\\\c\\nd\",region=\"é\\\"} 9\\nforged 1\",e=\"\"} 3\n";
        assert_eq!(exposition.into_text(), expected);
    }
}
