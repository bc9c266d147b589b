//! What the rules do to one request, decided before it starts.

use std::sync::Arc;

use zenobe_api::Operation;

use super::request_subjects::RequestSubjects;
use super::rule::{RuleKind, When};
use super::rules::{ActiveRule, Fired};

#[derive(Default)]
pub struct FaultPlan<'r> {
    pub latency_ms: u64,
    before: Option<PlannedFailure<'r>>,
    after: Option<PlannedFailure<'r>>,
    /// The rules about parts of batches. They fire for each entry.
    unprocessed: Vec<&'r ActiveRule>,
    /// The rules that close shards of streams behind the request.
    pub of_shards: Vec<&'r ActiveRule>,
}

/// A failure to come.
pub struct PlannedFailure<'r>(Fired<'r>);

impl PlannedFailure<'_> {
    pub fn kind(&self) -> RuleKind {
        self.0.rule.rule.kind
    }

    pub fn choose(&self, count: usize) -> usize {
        self.0.choose(count)
    }
}

impl<'r> FaultPlan<'r> {
    /// Delays add up; of several failures, the first rule's comes.
    pub fn of(
        rules: &'r [Arc<ActiveRule>],
        operation: Operation,
        subjects: &RequestSubjects,
    ) -> FaultPlan<'r> {
        let mut plan = FaultPlan::default();
        for rule in rules.iter().filter(|rule| rule.matches(operation, subjects)) {
            // These fire when they act: on an entry of a batch, or behind a write that succeeded.
            match rule.rule.kind {
                RuleKind::Unprocessed => {
                    plan.unprocessed.push(rule);
                    continue;
                }
                kind if kind.is_of_shards() => {
                    plan.of_shards.push(rule);
                    continue;
                }
                _ => {}
            }
            let Some(fired) = rule.fire() else { continue };
            match (rule.rule.kind, rule.rule.when) {
                (RuleKind::Latency, _) => plan.latency_ms += fired.delay_ms(),
                (_, When::Before) => plan.before = plan.before.or(Some(PlannedFailure(fired))),
                (_, When::After) => plan.after = plan.after.or(Some(PlannedFailure(fired))),
            }
        }
        plan
    }

    pub fn effect(&self, when: When) -> Option<&PlannedFailure<'r>> {
        match when {
            When::Before => self.before.as_ref(),
            When::After => self.after.as_ref(),
        }
    }

    /// Whether the next entry of a batch for this table stays unprocessed.
    pub fn is_unprocessed(&self, table: &str) -> bool {
        let rules = self.unprocessed.iter().filter(|it| it.rule.matches_table(table, None));
        // Each rule counts the entry, also behind one that has fired.
        rules.filter(|rule| rule.fire().is_some()).count() > 0
    }
}
