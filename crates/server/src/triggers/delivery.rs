//! Decides what happens to a batch until each record is delivered or given up. It is pure: the
//! caller sends, waits and stores checkpoints.
//!
//! The rules are Lambda's. A stack keeps the order: a part of a batch is handled only after
//! everything before it is settled.

use std::time::Duration;

use super::record::DeliveredRecord;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRules {
    /// `None` retries forever.
    pub retries_max: Option<u32>,
    pub record_age_ms_max: Option<u64>,
    pub bisects_on_error: bool,
    pub backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

/// The endpoint's verdict on the records it received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// Everything before the record with this index was delivered.
    DeliveredBefore(usize),
    Failed,
}

/// Why records are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    RetryAttemptsExhausted,
    MaximumRecordAgeExceeded,
}

#[derive(Debug, PartialEq)]
pub enum NextAction {
    /// Send these records.
    Send,
    /// Store these records as dead letters, then continue.
    GiveUp { records: Vec<DeliveredRecord>, why: GivenUp, attempts: u32 },
    /// Everything is settled.
    Done,
}

#[derive(Debug, PartialEq)]
pub enum DeliveryVerdict {
    /// These were delivered. Continue with the next action.
    Delivered { count: usize, last_sequence: String },
    /// Continue with the next action after a pause.
    Retry { after: Duration },
    /// Continue with the next action, which gives records up.
    Exhausted,
}

#[derive(Debug)]
pub struct Delivery {
    rules: DeliveryRules,
    /// The unsettled parts, the next one last.
    parts: Vec<Subbatch>,
    /// Failures since the last success; they determine the back-off.
    failures_in_a_row: u32,
}

#[derive(Debug)]
struct Subbatch {
    records: Vec<DeliveredRecord>,
    /// Failures that count as retries.
    failures: u32,
}

impl Delivery {
    pub fn new(rules: DeliveryRules, records: Vec<DeliveredRecord>) -> Delivery {
        Delivery { rules, parts: vec![Subbatch { records, failures: 0 }], failures_in_a_row: 0 }
    }

    /// The records to send, if the next action is to send.
    pub fn records(&self) -> &[DeliveredRecord] {
        self.parts.last().map_or(&[], |part| &part.records)
    }

    /// Whether no record is left.
    pub fn is_settled(&self) -> bool {
        self.parts.iter().all(|part| part.records.is_empty())
    }

    pub fn next(&mut self, now_ms: u64) -> NextAction {
        while self.parts.last().is_some_and(|part| part.records.is_empty()) {
            self.parts.pop();
        }
        let Some(part) = self.parts.last_mut() else { return NextAction::Done };
        let attempts = part.failures;
        if let Some(age_ms_max) = self.rules.record_age_ms_max {
            let is_old =
                |record: &DeliveredRecord| now_ms.saturating_sub(record.created_at_ms) > age_ms_max;
            // Records are in the order of their writes, so the oldest come first.
            let old = part.records.iter().take_while(|record| is_old(record)).count();
            if old > 0 {
                let records = part.records.drain(..old).collect();
                return NextAction::GiveUp {
                    records,
                    why: GivenUp::MaximumRecordAgeExceeded,
                    attempts,
                };
            }
        }
        if self.rules.retries_max.is_some_and(|retries_max| part.failures > retries_max) {
            let records = std::mem::take(&mut part.records);
            return NextAction::GiveUp { records, why: GivenUp::RetryAttemptsExhausted, attempts };
        }
        NextAction::Send
    }

    /// Takes the outcome of sending [`Delivery::records`]. `jitter` is random, in 0..1.
    pub fn settle(&mut self, outcome: &DeliveryOutcome, jitter: f64) -> DeliveryVerdict {
        let count = match outcome {
            DeliveryOutcome::Delivered => self.records().len(),
            DeliveryOutcome::DeliveredBefore(index) => (*index).min(self.records().len()),
            DeliveryOutcome::Failed => 0,
        };
        match count {
            0 => self.settle_failure(jitter),
            count => self.settle_success(count),
        }
    }

    fn settle_success(&mut self, count: usize) -> DeliveryVerdict {
        self.failures_in_a_row = 0;
        let part = self.parts.last_mut().expect("records were sent");
        // The rest becomes a batch of its own, with all its retries.
        part.failures = 0;
        let delivered: Vec<DeliveredRecord> = part.records.drain(..count).collect();
        let last = delivered.last().expect("at least one record was delivered");
        DeliveryVerdict::Delivered { count, last_sequence: last.sequence.clone() }
    }

    fn settle_failure(&mut self, jitter: f64) -> DeliveryVerdict {
        let after = self.rules.backoff.delay(self.failures_in_a_row, jitter);
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        let part = self.parts.last_mut().expect("records were sent");
        if self.rules.bisects_on_error && part.records.len() > 1 {
            // Splitting does not count as a retry.
            let rest = part.records.split_off(part.records.len() / 2);
            let first =
                std::mem::replace(part, Subbatch { records: rest, failures: part.failures });
            self.parts.push(first);
            return DeliveryVerdict::Retry { after };
        }
        part.failures = part.failures.saturating_add(1);
        match self.rules.retries_max {
            Some(retries_max) if part.failures > retries_max => DeliveryVerdict::Exhausted,
            _ => DeliveryVerdict::Retry { after },
        }
    }
}

impl Backoff {
    /// Doubles with each failure up to the maximum. The upper half of the delay is random, so that
    /// clients that failed together don't return together.
    pub fn delay(&self, failures_before: u32, jitter: f64) -> Duration {
        let factor = 1_u32.checked_shl(failures_before).unwrap_or(u32::MAX);
        let full = self.first.saturating_mul(factor).min(self.max);
        full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    const RULES: DeliveryRules = DeliveryRules {
        retries_max: Some(2),
        record_age_ms_max: None,
        bisects_on_error: false,
        backoff: Backoff { first: Duration::from_millis(100), max: Duration::from_secs(1) },
    };

    /// Runs a delivery of records 1 to `count` against a scripted endpoint and returns what
    /// happened: each attempt as `1-4 failed`, each record given up as `given up 3`.
    fn run(
        rules: DeliveryRules,
        count: u64,
        mut endpoint: impl FnMut(&[u64]) -> DeliveryOutcome,
    ) -> Vec<String> {
        let records = (1..=count).map(|sequence| sample(sequence, sequence * 1000)).collect();
        let mut delivery = Delivery::new(rules, records);
        let mut log = Vec::new();
        loop {
            match delivery.next(3_500) {
                NextAction::Done => return log,
                NextAction::GiveUp { records, why, .. } => {
                    log.push(format!("given up {} {why:?}", span(&sequences(&records))));
                }
                NextAction::Send => {
                    let sent = sequences(delivery.records());
                    let outcome = endpoint(&sent);
                    let what = match delivery.settle(&outcome, 0.0) {
                        DeliveryVerdict::Delivered { count, last_sequence } => {
                            format!("delivered {count} to {last_sequence}")
                        }
                        DeliveryVerdict::Retry { after } => format!("wait {}", after.as_millis()),
                        DeliveryVerdict::Exhausted => "exhausted".into(),
                    };
                    log.push(format!("{} {what}", span(&sent)));
                }
            }
            assert!(log.len() < 200, "{log:?}");
        }
    }

    fn sequences(records: &[DeliveredRecord]) -> Vec<u64> {
        records.iter().map(|record| record.sequence.parse().unwrap()).collect()
    }

    fn span(sequences: &[u64]) -> String {
        format!("{}-{}", sequences[0], sequences[sequences.len() - 1])
    }

    #[test]
    fn a_willing_endpoint_gets_everything_at_once() {
        assert_eq!(run(RULES, 5, |_| DeliveryOutcome::Delivered), ["1-5 delivered 5 to 5"]);
        assert_eq!(run(RULES, 0, |_| unreachable!("nothing is sent")), [""; 0]);
    }

    #[test]
    fn a_failing_endpoint_is_retried_with_growing_delays_and_then_given_up() {
        assert_eq!(
            run(RULES, 3, |_| DeliveryOutcome::Failed),
            ["1-3 wait 50", "1-3 wait 100", "1-3 exhausted", "given up 1-3 RetryAttemptsExhausted"]
        );
        let mut calls = 0;
        let recovers = |_: &[u64]| {
            calls += 1;
            if calls < 8 { DeliveryOutcome::Failed } else { DeliveryOutcome::Delivered }
        };
        let patient = DeliveryRules { retries_max: None, ..RULES };
        let log = run(patient, 1, recovers);
        let delays = ["50", "100", "200", "400", "500", "500", "500"];
        let expected: Vec<_> = delays.iter().map(|delay| format!("1-1 wait {delay}")).collect();
        assert_eq!(log[..7], expected);
        assert_eq!(log[7], "1-1 delivered 1 to 1");
    }

    #[test]
    fn bisecting_isolates_the_poison_and_keeps_the_order() {
        let rules = DeliveryRules { bisects_on_error: true, retries_max: Some(0), ..RULES };
        let poisoned = |sent: &[u64]| match sent.contains(&3) {
            true => DeliveryOutcome::Failed,
            false => DeliveryOutcome::Delivered,
        };
        assert_eq!(
            run(rules, 4, poisoned),
            [
                "1-4 wait 50",
                "1-2 delivered 2 to 2",
                "3-4 wait 50",
                "3-3 exhausted",
                "given up 3-3 RetryAttemptsExhausted",
                "4-4 delivered 1 to 4",
            ]
        );
    }

    #[test]
    fn a_partial_answer_settles_what_came_before_it() {
        let stops_at_three = |sent: &[u64]| match sent.iter().position(|sequence| *sequence == 3) {
            Some(index) => DeliveryOutcome::DeliveredBefore(index),
            None => DeliveryOutcome::Delivered,
        };
        let rules = DeliveryRules { retries_max: Some(1), ..RULES };
        assert_eq!(
            run(rules, 4, stops_at_three),
            [
                "1-4 delivered 2 to 2",
                "3-4 wait 50",
                "3-4 exhausted",
                "given up 3-4 RetryAttemptsExhausted"
            ]
        );
        let bisecting = DeliveryRules { bisects_on_error: true, ..rules };
        let log = run(bisecting, 4, stops_at_three);
        assert_eq!(
            log[log.len() - 2..],
            ["given up 3-3 RetryAttemptsExhausted", "4-4 delivered 1 to 4"]
        );
    }

    #[test]
    fn records_that_are_too_old_are_given_up_before_they_are_sent() {
        let rules = DeliveryRules { record_age_ms_max: Some(2_000), ..RULES };
        assert_eq!(
            run(rules, 3, |_| DeliveryOutcome::Delivered),
            ["given up 1-1 MaximumRecordAgeExceeded", "2-3 delivered 2 to 3"]
        );
    }

    #[test]
    fn delays_have_jitter_and_a_maximum() {
        let backoff = RULES.backoff;
        let delay = |failures, jitter| backoff.delay(failures, jitter).as_millis();
        assert_eq!((delay(0, 0.0), delay(0, 1.0)), (50, 100));
        assert_eq!((delay(3, 1.0), delay(4, 1.0), delay(400, 1.0)), (800, 1000, 1000));
    }
}
