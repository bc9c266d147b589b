//! What a request holds between being admitted and having consumed something.

use std::sync::Arc;

use zenobe_store::Key;

use super::budget::Budget;
use super::cause::{Access, ThrottleReason};
use super::meter::{Meter, Partition};
use crate::request_facts::{self, KeyScope, Part};

/// The admission of a request. A ticket that is dropped unsettled gives back what it took.
#[must_use = "what the request consumed has to be settled"]
pub(crate) struct Ticket<'t>(Option<Held<'t>>);

pub(super) struct Held<'t> {
    pub meter: &'t Meter,
    pub partition: Arc<Partition>,
    /// That of the account, if it has one.
    pub budget: Option<&'t Budget>,
    pub access: Access,
    /// What was taken from the buckets; zero if a limit was met that nobody enforces.
    pub taken_halves: u64,
    pub now_ns: u64,
    /// The key after its prefix.
    pub key: Key,
    pub scope: KeyScope,
    /// The limits that were met.
    pub reasons: Vec<ThrottleReason>,
}

impl<'t> Ticket<'t> {
    /// The ticket of a request that is not metered.
    pub fn free() -> Ticket<'t> {
        Ticket(None)
    }

    pub(super) fn new(held: Held<'t>) -> Ticket<'t> {
        Ticket(Some(held))
    }

    /// Whether the request is metered.
    pub fn is_metered(&self) -> bool {
        self.0.is_some()
    }

    /// Charges the account for what the request costs beside its table.
    pub fn charge_budget(&self, halves: u64) {
        if let Some(held) = self.0.as_ref().filter(|held| held.taken_halves > 0) {
            held.charge_budget(halves);
        }
    }

    /// Charges the request for this many half units in all.
    pub fn settle(mut self, halves: u64) {
        let Some(held) = self.0.take() else { return };
        held.partition.count(held.access, &held.key, halves);
        // A request that met a limit takes nothing from the buckets: on DynamoDB it would not have run.
        if held.taken_halves > 0 && halves > held.taken_halves {
            let rest = halves - held.taken_halves;
            held.meter.charge(held.access, &held.partition, rest, held.now_ns);
            held.charge_budget(rest);
        }
        held.note(halves);
    }

    /// Charges the request for this many half units in all, and each partition for its share.
    pub fn settle_shares<'p>(
        mut self,
        halves: u64,
        shares: impl Iterator<Item = (&'p Arc<Partition>, u64)>,
    ) {
        let Some(held) = self.0.take() else { return };
        let is_charged = held.taken_halves > 0;
        if is_charged {
            // Admission charged the first partition only, which may not be the one that served most.
            held.refund();
            held.meter.charge_table(held.access, halves, held.now_ns);
            held.charge_budget(halves);
        }
        for (partition, halves) in shares.filter(|(_, halves)| *halves > 0) {
            // The key says where the page began, and nothing about other partitions.
            match Arc::ptr_eq(partition, &held.partition) {
                true => partition.count(held.access, &held.key, halves),
                false => _ = partition.count_only(held.access, halves),
            }
            if is_charged {
                partition.charge(held.access, halves, held.now_ns);
            }
        }
        held.note(halves);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        if held.taken_halves > 0 {
            held.refund();
        }
    }
}

impl Held<'_> {
    fn charge_budget(&self, halves: u64) {
        if let Some(budget) = self.budget {
            budget.charge(self.access, halves, self.now_ns);
        }
    }

    /// Gives back what was taken.
    fn refund(&self) {
        self.meter.refund(self.access, &self.partition, self.taken_halves);
        if let Some(budget) = self.budget {
            budget.refund(self.access, self.taken_halves);
        }
    }

    /// Adds this part to the facts of the request.
    pub fn note(self, halves: u64) {
        let Held { meter, partition, access, key, scope, reasons, .. } = self;
        let part = || Part {
            resource: Arc::clone(&meter.resource),
            access,
            halves,
            key,
            scope,
            partition: partition.id,
            causes: reasons.iter().map(|reason| reason.cause).collect(),
        };
        request_facts::note(part, &reasons);
    }
}
