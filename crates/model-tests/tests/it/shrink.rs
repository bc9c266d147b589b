//! Shortens a failing history: removes every step without which it still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::backend::{Backend, runtime};
use crate::generate::Settings;
use crate::run::{Counts, Divergence, run};
use crate::step::Step;

const TIME_MAX: Duration = Duration::from_secs(20);

/// Runs a history; a panic counts as a divergence.
pub fn attempt(backend: Backend, settings: Settings, steps: &[Step]) -> Result<Counts, Divergence> {
    let outcome =
        catch_unwind(AssertUnwindSafe(|| runtime(false).block_on(run(backend, settings, steps))));
    outcome.unwrap_or_else(|payload| {
        let what = payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        let position = steps.len().saturating_sub(1);
        Err(Divergence { position, what: format!("panicked: {what}") })
    })
}

/// A shorter history that fails, with its failure.
pub fn shrink(
    backend: Backend,
    settings: Settings,
    steps: &[Step],
    divergence: Divergence,
) -> (Vec<Step>, Divergence) {
    // Memory is faster; only failures that need the disk are shrunk there.
    let cut = &steps[..=divergence.position.min(steps.len() - 1)];
    let (backend, first) = match attempt(Backend::Memory, settings, cut) {
        Err(divergence) => (Backend::Memory, divergence),
        Ok(_) => (backend, divergence),
    };
    let mut smallest = Smallest { steps: cut.to_vec(), divergence: first };
    let started = Instant::now();
    let mut chunk = smallest.steps.len().div_ceil(2);
    while chunk > 0 && started.elapsed() < TIME_MAX {
        let mut start = 0;
        let mut shrunk = false;
        while start < smallest.steps.len() && started.elapsed() < TIME_MAX {
            let end = (start + chunk).min(smallest.steps.len());
            let candidate: Vec<Step> = [&smallest.steps[..start], &smallest.steps[end..]].concat();
            match attempt(backend, settings, &candidate) {
                Err(divergence) if !candidate.is_empty() => {
                    smallest.take(candidate, divergence);
                    shrunk = true;
                }
                _ => start = end,
            }
        }
        if !shrunk || chunk > 1 {
            chunk /= 2;
        }
    }
    (smallest.steps, smallest.divergence)
}

struct Smallest {
    steps: Vec<Step>,
    divergence: Divergence,
}

impl Smallest {
    fn take(&mut self, mut steps: Vec<Step>, divergence: Divergence) {
        steps.truncate(divergence.position + 1);
        *self = Smallest { steps, divergence };
    }
}
