//! Why a request is throttled, and what it asked for.

use std::sync::Arc;

use crate::catalog::Table;
use crate::command::TableName;
use crate::schema::{BillingMode, IndexDefinition, IndexId, KeySchema, TableId, table_arn};

/// What a request does with capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Access {
    Read,
    Write,
}

impl Access {
    pub const ALL: [Access; 2] = [Access::Read, Access::Write];
}

/// Which limit a request met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ThrottleCause {
    /// The provisioned units of the table or index.
    Provisioned,
    /// The account's quota for an on-demand table, or for all its tables together.
    AccountLimit,
    /// What a partition serves, or what an on-demand table serves before it has grown.
    KeyRange,
    /// The maximum that was set for an on-demand table or index.
    MaxOnDemand,
}

impl ThrottleCause {
    pub const ALL: [ThrottleCause; 4] = [
        ThrottleCause::Provisioned,
        ThrottleCause::AccountLimit,
        ThrottleCause::KeyRange,
        ThrottleCause::MaxOnDemand,
    ];

    pub(crate) fn from_number(number: u8) -> ThrottleCause {
        ThrottleCause::ALL[usize::from(number) % ThrottleCause::ALL.len()]
    }
}

/// The limits that one part of a request met, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CauseSet(u8);

impl CauseSet {
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, cause: ThrottleCause) -> bool {
        self.0 & 1 << cause as u8 != 0
    }
}

impl FromIterator<ThrottleCause> for CauseSet {
    fn from_iter<I: IntoIterator<Item = ThrottleCause>>(causes: I) -> CauseSet {
        CauseSet(causes.into_iter().fold(0, |set, cause| set | 1 << cause as u8))
    }
}

/// How often parts of requests met limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThrottleEvents {
    /// Each part counts once, however many limits it met.
    pub total: u64,
    by_cause: [u64; ThrottleCause::ALL.len()],
}

impl ThrottleEvents {
    /// How many parts met this limit, perhaps besides others.
    pub fn of(&self, cause: ThrottleCause) -> u64 {
        self.by_cause[cause as usize]
    }

    /// Adds a part that met these limits, if any.
    pub fn add(&mut self, causes: CauseSet) {
        if causes.is_empty() {
            return;
        }
        self.total += 1;
        for cause in ThrottleCause::ALL {
            self.by_cause[cause as usize] += u64::from(causes.contains(cause));
        }
    }

    pub fn merge(&mut self, other: &ThrottleEvents) {
        self.total += other.total;
        for (count, other) in self.by_cause.iter_mut().zip(other.by_cause) {
            *count += other;
        }
    }
}

/// A table or a global index: what has capacity of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub table: TableName,
    pub table_id: TableId,
    /// The name and id of the index; `None` is the table.
    pub index: Option<(String, IndexId)>,
    pub keys: KeySchema,
}

impl Resource {
    pub(crate) fn of(table: &Table, index: Option<&IndexDefinition>) -> Resource {
        let definition = table.definition();
        Resource {
            table: table.name().clone(),
            table_id: definition.id,
            index: index.map(|index| (index.name.clone(), index.id)),
            keys: index.map_or(&definition.keys, |index| &index.keys).clone(),
        }
    }

    pub fn index_name(&self) -> Option<&str> {
        self.index.as_ref().map(|(name, _)| name.as_str())
    }

    pub fn arn(&self) -> String {
        let arn = table_arn(&self.table.namespace, &self.table.name);
        match self.index_name() {
            None => arn,
            Some(index) => format!("{arn}/index/{index}"),
        }
    }
}

/// One limit that a request met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleReason {
    pub resource: Arc<Resource>,
    pub access: Access,
    pub cause: ThrottleCause,
}

impl ThrottleReason {
    /// DynamoDB's name for the reason, such as `TableReadKeyRangeThroughputExceeded`.
    pub fn name(&self) -> &'static str {
        use Access::{Read, Write};
        use ThrottleCause::{AccountLimit, KeyRange, MaxOnDemand, Provisioned};
        match (self.resource.index.is_some(), self.access, self.cause) {
            (false, Read, Provisioned) => "TableReadProvisionedThroughputExceeded",
            (false, Read, AccountLimit) => "TableReadAccountLimitExceeded",
            (false, Read, KeyRange) => "TableReadKeyRangeThroughputExceeded",
            (false, Read, MaxOnDemand) => "TableReadMaxOnDemandThroughputExceeded",
            (false, Write, Provisioned) => "TableWriteProvisionedThroughputExceeded",
            (false, Write, AccountLimit) => "TableWriteAccountLimitExceeded",
            (false, Write, KeyRange) => "TableWriteKeyRangeThroughputExceeded",
            (false, Write, MaxOnDemand) => "TableWriteMaxOnDemandThroughputExceeded",
            (true, Read, Provisioned) => "IndexReadProvisionedThroughputExceeded",
            (true, Read, AccountLimit) => "IndexReadAccountLimitExceeded",
            (true, Read, KeyRange) => "IndexReadKeyRangeThroughputExceeded",
            (true, Read, MaxOnDemand) => "IndexReadMaxOnDemandThroughputExceeded",
            (true, Write, Provisioned) => "IndexWriteProvisionedThroughputExceeded",
            (true, Write, AccountLimit) => "IndexWriteAccountLimitExceeded",
            (true, Write, KeyRange) => "IndexWriteKeyRangeThroughputExceeded",
            (true, Write, MaxOnDemand) => "IndexWriteMaxOnDemandThroughputExceeded",
        }
    }
}

/// A request that was refused for its throughput. It consumed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttled {
    /// At least one.
    pub reasons: Vec<ThrottleReason>,
    /// Whether the table is billed on demand, which decides the exception.
    pub on_demand: bool,
}

impl Throttled {
    /// The refusal of a table that has used up its capacity, or that of one of its global indexes.
    pub fn by(table: &Table, index: Option<&str>, access: Access) -> Throttled {
        let definition = table.definition();
        // Local indexes use the table's capacity.
        let index = definition.global_indexes.iter().find(|it| Some(it.name.as_str()) == index);
        let resource = Resource::of(table, index);
        let on_demand = definition.billing_mode == BillingMode::PayPerRequest;
        let cause = if on_demand { ThrottleCause::KeyRange } else { ThrottleCause::Provisioned };
        let reason = ThrottleReason { resource: Arc::new(resource), access, cause };
        Throttled { reasons: vec![reason], on_demand }
    }

    /// Adds the reasons of another part of the request, each once.
    pub(crate) fn add(all: &mut Option<Box<Throttled>>, other: Box<Throttled>) {
        let Some(all) = all else {
            *all = Some(other);
            return;
        };
        for reason in other.reasons {
            if !all.reasons.contains(&reason) {
                all.reasons.push(reason);
            }
        }
    }
}
