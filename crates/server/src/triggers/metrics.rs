//! The counters of a trigger.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use zenobe_engine::consumers::ShardName;

use crate::prometheus::{Exposition, MetricType, Seconds};

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

/// A trigger's metrics with the labels of its samples.
pub type Labelled<'a> = ([(&'static str, &'a str); 3], &'a TriggerMetrics);

/// Writes the metrics of all triggers.
pub fn render(triggers: &[Labelled<'_>], now_ms: u64, out: &mut Exposition) {
    if triggers.is_empty() {
        return;
    }
    let mut ages = out.metric("zenobe_trigger_iterator_age_seconds", MetricType::Gauge);
    for (labels, metrics) in triggers {
        ages.sample(labels, Seconds::FromMilliseconds(metrics.iterator_age_ms(now_ms)));
    }
    for (index, (name, _)) in TriggerMetrics::default().counters().iter().enumerate() {
        let name = format!("zenobe_trigger_{name}_total");
        let mut counts = out.metric(&name, MetricType::Counter);
        for (labels, metrics) in triggers {
            let (_, value) = metrics.counters()[index];
            counts.sample(labels, value);
        }
    }
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
        let rendered = |triggers: &[Labelled<'_>]| {
            let mut out = Exposition::default();
            render(triggers, 10_000, &mut out);
            out.into_text()
        };
        let labels = [("trigger", "t"), ("account", "a"), ("region", "r")];
        let text = rendered(&[(labels, &metrics)]);
        for expected in [
            "zenobe_trigger_iterator_age_seconds{trigger=\"t\",account=\"a\",region=\"r\"} 1.500",
            "zenobe_trigger_records_delivered_total{trigger=\"t\",account=\"a\",region=\"r\"} 3",
            "zenobe_trigger_records_trimmed_total{trigger=\"t\",account=\"a\",region=\"r\"} 0",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        metrics.set_oldest_pending(&shard("a"), None);
        metrics.set_oldest_pending(&shard("b"), None);
        assert_eq!(metrics.iterator_age_ms(10_000), 0);
        assert_eq!(rendered(&[]), "");
    }
}
