//! Random histories on the engine and on its twin.
//!
//! `ZENOBE_SEED` replays a failure; `ZENOBE_STEPS` sets how many steps each test makes in total,
//! for long runs by hand.

use std::fmt::Write as _;

use zenobe_testing::Seed;

use crate::backend::Backend;
use crate::generate::{History, history};
use crate::run::Counts;
use crate::shrink::{attempt, shrink};
use crate::step::Step;

/// The length of a history: long enough for interesting states, short enough for many starts.
const HISTORY_STEPS: usize = 400;

/// The outcomes that a run must see: with fewer it would not be a test. Some are so rare that a few
/// histories may lack them; the run then continues.
const DEMANDED: [&str; 40] = [
    "add-index",
    "batch-get",
    "batch-write",
    "crash",
    "create-table",
    "delete-table",
    "expiry",
    "get",
    "query",
    "records",
    "scan",
    "scan of a segment",
    "stream",
    "time-to-live",
    "transact-get",
    "transact-write",
    "write",
    "statement delete",
    "statement get",
    "statement insert",
    "statement query",
    "statement transaction",
    "statement update",
    "ConditionalCheckFailedException",
    "DuplicateItemException",
    "ResourceNotFoundException",
    "TransactionCanceledException",
    "ValidationException",
    "Cancelled(",
    "ConditionFailed(None",
    "ConditionFailed(Some(",
    "DuplicateTransactionItems",
    "IndexKey",
    "IndexNotFound",
    "PathBelowKey",
    "TableExists",
    "TableNotFound",
    "Update(InvalidPath",
    "Update(MissingAttribute",
    "Update(OperandType",
];

/// How much longer than planned a run may continue to see the missing outcomes.
const LENGTH_FACTOR_MAX: usize = 10;

#[test]
fn histories_in_memory_follow_the_model() {
    check("histories_in_memory_follow_the_model", Backend::Memory, 6_000);
}

#[test]
fn histories_decided_several_times_follow_the_model() {
    check("histories_decided_several_times_follow_the_model", Backend::Retrying, 3_200);
}

#[test]
fn histories_on_disk_follow_the_model() {
    check("histories_on_disk_follow_the_model", Backend::Embedded, 3_200);
}

#[test]
fn histories_of_two_engines_follow_the_model() {
    check("histories_of_two_engines_follow_the_model", Backend::TwoEngines, 6_000);
}

#[test]
fn histories_of_two_engines_decided_several_times_follow_the_model() {
    let test = "histories_of_two_engines_decided_several_times_follow_the_model";
    check(test, Backend::TwoRetryingEngines, 3_200);
}

#[test]
fn histories_on_postgres_follow_the_model() {
    check("histories_on_postgres_follow_the_model", Backend::Postgres, 800);
}

#[test]
fn histories_of_two_engines_on_postgres_follow_the_model() {
    let test = "histories_of_two_engines_on_postgres_follow_the_model";
    check(test, Backend::TwoEnginesOnPostgres, 1_200);
}

fn check(test: &str, backend: Backend, default_steps: usize) {
    let seed = Seed::announce(test);
    let steps = match std::env::var("ZENOBE_STEPS") {
        Ok(text) => text.parse().expect("ZENOBE_STEPS is a number"),
        Err(_) => default_steps,
    };
    let parts = steps.div_ceil(HISTORY_STEPS);
    let mut counts = Counts::default();
    for part in 0..LENGTH_FACTOR_MAX * parts {
        if part >= parts && missing(&counts).is_empty() {
            break;
        }
        let History { settings, steps } = history(seed, part as u64, HISTORY_STEPS);
        match attempt(backend, settings, &steps) {
            Ok(more) => counts.add(&more),
            Err(divergence) => {
                let (steps, divergence) = shrink(backend, settings, &steps, divergence);
                panic!(
                    "history {part} of ZENOBE_SEED={} with {settings:?}:\n{}\n{}",
                    seed.value(),
                    numbered(&steps),
                    divergence.what
                );
            }
        }
    }
    eprintln!("{counts:#?}");
    assert_eq!(missing(&counts), Vec::<&str>::new(), "no step ended so: {counts:?}");
}

fn missing(counts: &Counts) -> Vec<&'static str> {
    DEMANDED.into_iter().filter(|name| !counts.0.contains_key(*name)).collect()
}

fn numbered(steps: &[Step]) -> String {
    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        writeln!(text, "{number:4}  {step}").expect("a string takes all text");
    }
    text
}
