//! What an evaluation can cost, for schedulers that share a thread with it.

use crate::condition::{Condition, Operand};

/// How much of each item a condition has to look at. The limits of the language keep that small,
/// but the legacy parameters have no limit on operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// How often the condition mentions a path. Each mention can walk the item and all of the value
    /// at the path.
    pub path_count: u64,
    /// The size of the literals, counted once per mention.
    pub literal_size_bytes: u64,
}

impl Condition {
    pub fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        self.add_cost(&mut cost);
        cost
    }

    fn add_cost(&self, cost: &mut Cost) {
        match self {
            Condition::And(conditions) | Condition::Or(conditions) => {
                conditions.iter().for_each(|condition| condition.add_cost(cost));
            }
            Condition::Not(condition) => condition.add_cost(cost),
            Condition::Compare { left, right, .. } => cost.add([left, right]),
            Condition::Between { operand, low, high } => cost.add([operand, low, high]),
            Condition::In { operand, list } => {
                cost.add([operand]);
                cost.add(list);
            }
            Condition::AttributeExists(_) | Condition::AttributeNotExists(_) => {
                cost.path_count += 1;
            }
            Condition::AttributeType { operand, .. } => cost.add([operand]),
            Condition::BeginsWith { operand, prefix } => cost.add([operand, prefix]),
            Condition::Contains { container, element } => cost.add([container, element]),
        }
    }
}

impl Cost {
    /// The cost of one evaluation, in steps of about a byte each.
    pub fn of_item(self, item_size_bytes: u64) -> u64 {
        let per_path = LOOKUP_STEPS + item_size_bytes;
        self.path_count.saturating_mul(per_path).saturating_add(self.literal_size_bytes)
    }

    fn add<'o>(&mut self, operands: impl IntoIterator<Item = &'o Operand>) {
        for operand in operands {
            match operand {
                Operand::Path(_) | Operand::Size(_) => self.path_count += 1,
                Operand::Literal(literal) => {
                    self.literal_size_bytes += literal.as_value().encoded().len() as u64;
                }
                Operand::Test(condition) => condition.add_cost(self),
            }
        }
    }
}

/// A lookup costs something even if it finds nothing.
const LOOKUP_STEPS: u64 = 64;
