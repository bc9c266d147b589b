//! What the rules do to one request, decided before it starts.

use std::sync::Arc;

use zenobe_api::Operation;

use super::rule::{Kind, When};
use super::rules::{ActiveRule, Fired};
use super::targets::Targets;

#[derive(Default)]
pub struct Plan<'r> {
    pub latency_ms: u64,
    before: Option<Effect<'r>>,
    after: Option<Effect<'r>>,
    /// The rules about parts of batches. They fire for each entry.
    unprocessed: Vec<&'r ActiveRule>,
}

/// A failure to come.
pub struct Effect<'r>(Fired<'r>);

impl Effect<'_> {
    pub fn kind(&self) -> Kind {
        self.0.rule.rule.kind
    }

    pub fn choose(&self, count: usize) -> usize {
        self.0.choose(count)
    }
}

impl<'r> Plan<'r> {
    /// Delays add up; of several failures, the first rule's comes.
    pub fn of(rules: &'r [Arc<ActiveRule>], operation: Operation, targets: &Targets) -> Plan<'r> {
        let mut plan = Plan::default();
        for rule in rules.iter().filter(|rule| rule.matches(operation, targets)) {
            if rule.rule.kind == Kind::Unprocessed {
                plan.unprocessed.push(rule);
                continue;
            }
            let Some(fired) = rule.fire() else { continue };
            match (rule.rule.kind, rule.rule.when) {
                (Kind::Latency, _) => plan.latency_ms += fired.delay_ms(),
                (_, When::Before) => plan.before = plan.before.or(Some(Effect(fired))),
                (_, When::After) => plan.after = plan.after.or(Some(Effect(fired))),
            }
        }
        plan
    }

    pub fn effect(&self, when: When) -> Option<&Effect<'r>> {
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
