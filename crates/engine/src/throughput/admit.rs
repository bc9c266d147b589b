//! Admission: whether a request may go on, before it reads or locks anything.

use std::sync::Arc;

use zenobe_store::Key;

use super::bucket::nanoseconds;
use super::budget::Budget;
use super::cause::{Access, Throttled};
use super::meter::{LimitsHit, Meter};
use super::ticket::{Held, Ticket};
use super::{TableCapacity, ThroughputMode};
use crate::Engine;
use crate::capacity_units::item_write_halves;
use crate::catalog::Table;
use crate::change::{IndexEffect, size_bytes};
use crate::error::{Error, Result};
use crate::request_facts::{self, KeyScope, Part};
use crate::schema::{BillingMode, IndexId, IndexKind};
use crate::write::commit::WrittenItem;

/// What a request is about to use.
#[derive(Clone, Copy)]
pub(crate) struct Demand<'a> {
    pub access: Access,
    /// The global index, or `None` for the table. Local indexes use the table's capacity.
    pub index: Option<IndexId>,
    /// The key of the item, or where a page begins.
    pub key: &'a Key,
    /// The length of the key's prefix.
    pub prefix_length: usize,
    /// What the request does with the key.
    pub scope: KeyScope,
    /// The minimum cost of the request.
    pub halves_min: u64,
}

impl<'a> Demand<'a> {
    /// A request for one item of a table.
    pub fn item(access: Access, table: &Table, key: &'a Key, halves_min: u64) -> Demand<'a> {
        let (prefix_length, scope) = (table.item_prefix().len(), KeyScope::Item);
        Demand { access, index: None, key, prefix_length, scope, halves_min }
    }

    fn suffix(&self) -> &'a [u8] {
        self.key.get(self.prefix_length..).unwrap_or_default()
    }

    /// The same, sharing the key's memory.
    fn suffix_key(&self) -> Key {
        self.key.slice(self.prefix_length.min(self.key.len())..)
    }
}

impl Engine {
    /// Whether requests are metered: false if throughput is off for the server and for every table
    /// that has had requests.
    pub fn is_metering(&self) -> bool {
        self.meters.is_metering()
    }

    /// The meters of a table, whatever its mode.
    pub(crate) fn capacity_of<'t>(&self, table: &'t Table) -> &'t TableCapacity {
        table.capacity(|| self.meters.of(table, self.clock.now_ms()))
    }

    /// Takes the minimum cost of a request, or refuses the request.
    pub(crate) fn admit<'t>(&self, table: &'t Table, demand: Demand<'_>) -> Result<Ticket<'t>> {
        let mode = self.throughput_mode(table);
        if mode == ThroughputMode::Off {
            return Ok(Ticket::free());
        }
        self.meters.begin_metering();
        let capacity = self.capacity_of(table);
        let meter = match demand.index {
            None => capacity.table(),
            // An index without a meter is being deleted.
            Some(index) => match capacity.index(index) {
                Some(meter) => meter,
                None => return Ok(Ticket::free()),
            },
        };
        let budget = capacity.meters.budget.as_deref();
        self.admit_to(table, meter, budget, mode, &demand)
    }

    fn admit_to<'t>(
        &self,
        table: &'t Table,
        meter: &'t Meter,
        budget: Option<&'t Budget>,
        mode: ThroughputMode,
        demand: &Demand<'_>,
    ) -> Result<Ticket<'t>> {
        let now_ns = nanoseconds(self.clock.now_ms());
        let Demand { access, halves_min, .. } = *demand;
        let suffix = demand.suffix();
        let (partition, taken) = meter.take(access, suffix, halves_min, budget, now_ns);
        let mut held = Held {
            meter,
            partition,
            budget,
            access,
            taken_halves: halves_min,
            now_ns,
            key: demand.suffix_key(),
            scope: demand.scope,
            reasons: Vec::new(),
        };
        if let Err(met) = taken {
            held.taken_halves = 0;
            if mode == ThroughputMode::Enforce {
                let throttled = throttled(table, meter, access, met);
                if request_facts::are_wanted() {
                    held.reasons.clone_from(&throttled.reasons);
                    held.note(0);
                }
                return Err(Error::Throttled(throttled));
            }
            held.reasons = meter.reasons(access, met);
        }
        Ok(Ticket::new(held))
    }

    /// Settles a write of one item, and takes what its entries in global indexes cost. Transactions
    /// cost the table a multiple.
    pub(crate) fn settle_write(
        &self,
        ticket: Ticket<'_>,
        table: &Table,
        written: &WrittenItem,
        table_factor: u64,
    ) {
        if !ticket.is_metered() {
            return;
        }
        let of_kind = |kind| written.effect.indexes.iter().filter(move |it| it.kind == kind);
        let [local, global] = [IndexKind::Local, IndexKind::Global]
            .map(|kind| of_kind(kind).map(|effect| effect.halves).sum::<u64>());
        ticket.charge_budget(global);
        ticket.settle(written.table_halves(table_factor) + local);
        for effect in of_kind(IndexKind::Global) {
            // The entry is written already, so it is counted even if the index is over its limit.
            let demand = entry_demand(effect);
            let Some(meter) = self.capacity_of(table).index(effect.id) else { continue };
            if let Ok(ticket) = self.admit_to(table, meter, None, ThroughputMode::Observe, &demand)
            {
                ticket.settle(effect.halves);
            }
        }
    }

    /// Settles a write that was refused. As DynamoDB documents it, a failed condition costs what writing the existing item
    /// would, and at least one unit, however large the item is that was sent. (BatchExecuteStatement reports another cost.)
    pub(crate) fn settle_refused(&self, ticket: Ticket<'_>, error: &Error, table_factor: u64) {
        if let Error::ConditionFailed { item } = error {
            ticket.settle(item_write_halves(size_bytes(item.as_ref()), table_factor));
        }
    }

    /// Refuses a write if a global index has no capacity for its entry: an index that can't keep up
    /// throttles the writes of its table.
    pub(crate) fn check_entries(&self, table: &Table, effects: &[IndexEffect]) -> Result<()> {
        let now_ns = nanoseconds(self.clock.now_ms());
        let mut refused: Option<Box<Throttled>> = None;
        for effect in effects.iter().filter(|effect| effect.kind == IndexKind::Global) {
            let Some(meter) = self.capacity_of(table).index(effect.id) else { continue };
            let suffix = entry_demand(effect).suffix();
            if let Err((partition, met)) = meter.check(Access::Write, suffix, now_ns) {
                let reasons = meter.reasons(Access::Write, met);
                let part = || Part {
                    resource: Arc::clone(&meter.resource),
                    access: Access::Write,
                    halves: 0,
                    key: Key::copy_from_slice(suffix),
                    scope: KeyScope::Item,
                    partition: partition.id,
                    causes: reasons.iter().map(|reason| reason.cause).collect(),
                };
                request_facts::note(part, &reasons);
                Throttled::add(&mut refused, throttled(table, meter, Access::Write, met));
            }
        }
        refused.map_or(Ok(()), |refused| Err(Error::Throttled(refused)))
    }
}

fn entry_demand(effect: &IndexEffect) -> Demand<'_> {
    Demand {
        access: Access::Write,
        index: Some(effect.id),
        key: &effect.entry,
        prefix_length: effect.prefix_length,
        scope: KeyScope::Item,
        halves_min: effect.halves,
    }
}

fn throttled(table: &Table, meter: &Meter, access: Access, met: LimitsHit) -> Box<Throttled> {
    let on_demand = table.definition().billing_mode == BillingMode::PayPerRequest;
    Box::new(Throttled { reasons: meter.reasons(access, met), on_demand })
}
