//! Whether the server passed.

use std::fmt::Write;

use serde_json::{Value, json};
use zenobe_load::Histogram;

use crate::measure::Latency;
use crate::outcome::{count, milliseconds};

use super::mix::{LATENCY_MAX_MS, Mix, Part};
use super::{Background, LOAD};

/// What the server may need besides its cache, which also covers its write buffers: connections,
/// compactions, and whatever the allocator keeps.
const MEMORY_ALLOWANCE_MIB: f64 = 128.0;
/// How much higher than the first third's the last third's 99th percentile may be.
const END_FACTOR_MAX: f64 = 1.5;
/// How much higher it may be while the index is built and maintained.
const MIDDLE_FACTOR_MAX: f64 = 4.0;
/// Below this, percentiles differ by chance and by timer resolution.
const NOISE_MS: f64 = 1.0;
const UNSENT_PART_MAX: f64 = 0.001;
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// The components of the memory limit.
#[derive(Clone, Copy)]
pub struct Limits {
    pub memory_at_start_mib: f64,
    pub cache_mib: f64,
}

impl Limits {
    fn memory_mib(self) -> f64 {
        self.memory_at_start_mib + self.cache_mib + MEMORY_ALLOWANCE_MIB
    }
}

pub struct SoakVerdict {
    pub faults: Vec<String>,
    thirds: [Latency; 3],
    memory_mib: f64,
    limits: Limits,
    backfill_s: Option<f64>,
    expired: u64,
}

impl SoakVerdict {
    pub fn reach(parts: &[Part], background: &Background, limits: Limits) -> SoakVerdict {
        let thirds = thirds(parts);
        let memory_mib = parts.iter().map(|part| part.memory.anonymous_mib).fold(0.0, f64::max);
        let mut faults = background.faults.clone();
        let mut check = |holds: bool, fault: String| {
            if !holds {
                faults.push(fault);
            }
        };
        for (number, part) in parts.iter().enumerate() {
            check(
                part.errors.is_empty(),
                format!("errors in part {}: {:?}", number + 1, part.errors),
            );
            let unsent = part.unsent as f64 / (part.requests + part.unsent).max(1) as f64;
            check(
                unsent <= UNSENT_PART_MAX,
                format!(
                    "{} requests of part {} could not be sent in time",
                    part.unsent,
                    number + 1
                ),
            );
            check(
                part.reconnects == 0,
                format!("{} connections were lost in part {}", part.reconnects, number + 1),
            );
            check(part.scanned_items > 0, format!("nothing was scanned in part {}", number + 1));
        }
        check(
            memory_mib <= limits.memory_mib(),
            format!("{memory_mib:.0} MiB of memory, more than {:.0} MiB", limits.memory_mib()),
        );
        check(
            flat(thirds[0], thirds[2], END_FACTOR_MAX),
            format!("the last third's p99 is more than {END_FACTOR_MAX} × the first's"),
        );
        check(
            flat(thirds[0], thirds[1], MIDDLE_FACTOR_MAX),
            format!("the middle third's p99 is more than {MIDDLE_FACTOR_MAX} × the first's"),
        );
        check(background.index_backfill.is_some(), "no index was added".into());
        check(background.expired > 0, "no item expired".into());
        SoakVerdict {
            faults,
            thirds,
            memory_mib,
            limits,
            backfill_s: background.index_backfill.map(|elapsed| elapsed.as_secs_f64()),
            expired: background.expired,
        }
    }

    /// As Markdown.
    pub fn render(&self, mix: &Mix, parts: &[Part]) -> String {
        let mut text = format!(
            "Mixed load in an open loop at {} requests/s, {:.0} % of the highest rate at which 99 % of the requests were \
             answered within {LATENCY_MAX_MS} ms:",
            count(mix.rate()),
            LOAD * 100.0
        );
        for (workload, rate) in mix.rates() {
            let _ = write!(text, " {workload} {},", count(rate));
        }
        let backfill = match self.backfill_s {
            Some(seconds) => format!("took {seconds:.1} s"),
            None => "did not happen".to_owned(),
        };
        let _ = writeln!(
            text,
            " and a scan that runs all the time. {} items expired. The backfill of an index on all attributes \
             {backfill}.\n",
            count(self.expired as f64),
        );
        text.push_str("| part | requests/s | p50 | p99 | p99 of each | p99.9 | max | own memory, MiB | resident, MiB | errors |\n");
        text.push_str("|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|\n");
        for (number, part) in parts.iter().enumerate() {
            let _ = writeln!(text, "{}", part.line(number + 1));
        }
        let [first, middle, last] = self.thirds.map(|third| milliseconds(third.p99));
        let Limits { memory_at_start_mib, cache_mib } = self.limits;
        let _ = writeln!(
            text,
            "\np99 of the thirds: {first}, {middle} (with an index added), {last}. At most {:.0} MiB of memory.\n",
            self.memory_mib
        );
        let _ = writeln!(
            text,
            "Checked: in every part, no error, no lost connection, at most {} % of the requests not sent in time, and a scan that \
             continues; the index is filled and all items expire; at most {:.0} MiB of memory \
             ({memory_at_start_mib:.0} at the start, {cache_mib:.0} of cache, {MEMORY_ALLOWANCE_MIB} more); p99 of the last \
             third at most {END_FACTOR_MAX} × the first third's, and of the middle third, while an index is filled and maintained, at \
             most {MIDDLE_FACTOR_MAX} × (differences below {NOISE_MS} ms don't count).\n",
            UNSENT_PART_MAX * 100.0,
            self.limits.memory_mib(),
        );
        match self.faults.is_empty() {
            true => text.push_str("**Passed.**\n"),
            false => {
                let _ = writeln!(text, "**Failed**: {}.", self.faults.join("; "));
            }
        }
        text
    }

    pub fn json(&self, mix: &Mix, parts: &[Part]) -> Value {
        let part = |part: &Part| {
            let latency = part.latency();
            json!({
                "requests_per_second": part.requests_per_second,
                "p50_ms": latency.p50,
                "p99_ms": latency.p99,
                "p999_ms": latency.p999,
                "anonymous_mib": part.memory.anonymous_mib,
                "resident_mib": part.memory.resident_mib,
                "errors": part.errors,
                "unsent": part.unsent,
                "reconnects": part.reconnects,
            })
        };
        json!({
            "requests_per_second": mix.rate(),
            "parts": parts.iter().map(part).collect::<Vec<_>>(),
            "p99_ms_of_thirds": self.thirds.map(|third| third.p99),
            "memory_mib": self.memory_mib,
            "memory_limit_mib": self.limits.memory_mib(),
            "backfill_s": self.backfill_s,
            "expired_items": self.expired,
            "faults": self.faults,
        })
    }
}

fn flat(first: Latency, later: Latency, factor: f64) -> bool {
    later.p99 <= (first.p99 * factor).max(first.p99 + NOISE_MS)
}

/// The middle third takes the remainder.
fn thirds(parts: &[Part]) -> [Latency; 3] {
    let third = parts.len() / 3;
    let (first, rest) = parts.split_at(third);
    let (middle, last) = rest.split_at(rest.len() - third);
    [first, middle, last].map(|parts| Latency::of(&merged(parts), NANOSECONDS_PER_MILLISECOND))
}

fn merged(parts: &[Part]) -> Histogram<u64> {
    let mut sum = Histogram::new(3).expect("three digits are few enough");
    for part in parts {
        sum.add(&part.histogram).expect("a histogram that resizes itself takes all values");
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::machine::Memory;

    fn part(latency_ms: u64) -> Part {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(latency_ms * 1_000_000, 1000).unwrap();
        Part {
            workloads: Vec::new(),
            requests: 1000,
            requests_per_second: 1000.0,
            histogram,
            memory: Memory { resident_mib: 60.0, anonymous_mib: 50.0 },
            scanned_items: 1,
            unsent: 0,
            reconnects: 0,
            errors: BTreeMap::new(),
        }
    }

    fn faults(parts: &[Part], change: impl FnOnce(&mut Background)) -> Vec<String> {
        let mut background = Background {
            index_backfill: Some(Duration::from_secs(1)),
            expired: 10,
            faults: Vec::new(),
        };
        change(&mut background);
        // 200 MiB including the allowance.
        let limits = Limits { memory_at_start_mib: 8.0, cache_mib: 64.0 };
        SoakVerdict::reach(parts, &background, limits).faults
    }

    fn check(parts: &[Part], change: impl FnOnce(&mut Background), fault: &str) {
        let faults = faults(parts, change);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(fault), "{faults:?}");
    }

    #[test]
    fn each_fault_is_found() {
        let flat = || [part(10), part(30), part(14)];
        assert_eq!(faults(&flat(), |_| ()), Vec::<String>::new());
        check(&[part(10), part(10), part(20)], |_| (), "last third");
        check(&[part(10), part(60), part(10)], |_| (), "middle third");
        check(&flat(), |background| background.index_backfill = None, "no index");
        check(&flat(), |background| background.expired = 0, "expired");
        check(&flat(), |background| background.faults.push("broken".into()), "broken");
        let with = |change: fn(&mut Part)| {
            let mut parts = flat();
            change(&mut parts[1]);
            parts
        };
        check(&with(|part| part.memory.anonymous_mib = 201.0), |_| (), "memory");
        check(&with(|part| part.reconnects = 1), |_| (), "lost");
        check(&with(|part| part.errors.extend([("Oops".into(), 1)])), |_| (), "Oops");
        check(&with(|part| part.unsent = 10), |_| (), "in time");
        check(&with(|part| part.scanned_items = 0), |_| (), "scanned");
    }

    #[test]
    fn ten_parts_have_a_longer_middle() {
        let parts: Vec<Part> = (1..=10).map(part).collect();
        let [first, middle, last] = thirds(&parts).map(|latency| latency.p99.round());
        assert_eq!((first, middle, last), (3.0, 7.0, 10.0));
    }
}
