//! The counters of a trigger.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use zenobe_engine::consumers::ShardName;

#[derive(Default)]
pub struct TriggerMetrics {
    pub records_delivered: AtomicU64,
    pub records_filtered: AtomicU64,
    pub deliveries_failed: AtomicU64,
    pub records_dead_lettered: AtomicU64,
    /// Given up without a dead-letter destination.
    pub records_discarded: AtomicU64,
    /// Lost to the stream's retention before delivery.
    pub records_trimmed: AtomicU64,
    /// Shards whose remaining records were lost to retention. Their number is unknown.
    pub shards_trimmed: AtomicU64,
    /// By shard, the time of the oldest record that was read but not delivered.
    oldest_pending_ms: Mutex<BTreeMap<ShardName, u64>>,
    last_problem: Mutex<Option<String>>,
}

impl TriggerMetrics {
    pub fn set_oldest_pending(&self, shard: &ShardName, created_at_ms: Option<u64>) {
        let mut oldest = self.oldest_pending_ms.lock();
        match created_at_ms {
            Some(created_at_ms) => {
                oldest.insert(shard.clone(), created_at_ms);
            }
            None => {
                oldest.remove(shard);
            }
        }
    }

    /// The age of the oldest undelivered record: how far the trigger is behind.
    pub fn iterator_age_ms(&self, now_ms: u64) -> u64 {
        let oldest_ms = self.oldest_pending_ms.lock().values().min().copied();
        oldest_ms.map_or(0, |oldest_ms| now_ms.saturating_sub(oldest_ms))
    }

    pub fn set_problem(&self, problem: Option<String>) {
        *self.last_problem.lock() = problem;
    }

    pub fn last_problem(&self) -> Option<String> {
        self.last_problem.lock().clone()
    }

    /// Each counter, with its name in metrics and in a status.
    pub fn counters(&self) -> [(&'static str, u64); 7] {
        [
            ("records_delivered", load(&self.records_delivered)),
            ("records_filtered", load(&self.records_filtered)),
            ("deliveries_failed", load(&self.deliveries_failed)),
            ("records_dead_lettered", load(&self.records_dead_lettered)),
            ("records_discarded", load(&self.records_discarded)),
            ("records_trimmed", load(&self.records_trimmed)),
            ("shards_trimmed", load(&self.shards_trimmed)),
        ]
    }
}

pub fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// All triggers in Prometheus' text format, given with the text of their labels.
pub fn render(triggers: &[(String, &TriggerMetrics)], now_ms: u64) -> String {
    let mut out = String::new();
    if triggers.is_empty() {
        return out;
    }
    let mut line = |text: std::fmt::Arguments<'_>| {
        writeln!(out, "{text}").expect("writing to a string cannot fail");
    };
    line(format_args!("# TYPE zenobe_trigger_iterator_age_seconds gauge"));
    for (labels, metrics) in triggers {
        let age_ms = metrics.iterator_age_ms(now_ms);
        let (seconds, rest_ms) = (age_ms / 1_000, age_ms % 1_000);
        line(format_args!(
            "zenobe_trigger_iterator_age_seconds{{{labels}}} {seconds}.{rest_ms:03}"
        ));
    }
    for (index, (name, _)) in TriggerMetrics::default().counters().iter().enumerate() {
        line(format_args!("# TYPE zenobe_trigger_{name}_total counter"));
        for (labels, metrics) in triggers {
            let (_, value) = metrics.counters()[index];
            line(format_args!("zenobe_trigger_{name}_total{{{labels}}} {value}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_rendered_by_trigger() {
        let metrics = TriggerMetrics::default();
        add(&metrics.records_delivered, 3);
        let shard = |shard: &str| ShardName { stream: "s".into(), shard: shard.into() };
        metrics.set_oldest_pending(&shard("a"), Some(8_500));
        metrics.set_oldest_pending(&shard("b"), Some(9_000));
        let text = render(&[("trigger=\"t\"".into(), &metrics)], 10_000);
        for expected in [
            "zenobe_trigger_iterator_age_seconds{trigger=\"t\"} 1.500",
            "zenobe_trigger_records_delivered_total{trigger=\"t\"} 3",
            "zenobe_trigger_records_trimmed_total{trigger=\"t\"} 0",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        metrics.set_oldest_pending(&shard("a"), None);
        metrics.set_oldest_pending(&shard("b"), None);
        assert_eq!(metrics.iterator_age_ms(10_000), 0);
        assert_eq!(render(&[], 0), "");
    }
}
