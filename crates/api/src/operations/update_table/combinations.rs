//! Which members of an UpdateTable request may be combined.

use super::Constrained;
use crate::error::ApiError;
use crate::messages::{request, table};

/// The changes that a request asks for. A member may be present without counting as a change.
pub(super) struct Members {
    provisioned: bool,
    billing_mode: bool,
    stream: bool,
    index_updates: Sent,
    starts_index_work: bool,
    creates_index: bool,
    encryption: bool,
    replicas: bool,
    table_class: bool,
    deletion_protection: bool,
    on_demand: Sent,
    warm: Sent,
    /// Some other member that only DynamoDB itself supports.
    unsupported: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    No,
    Empty,
    Yes,
}

impl Sent {
    fn of(given: bool, has_content: bool) -> Sent {
        match (given, has_content) {
            (false, _) => Sent::No,
            (true, false) => Sent::Empty,
            (true, true) => Sent::Yes,
        }
    }
}

impl Members {
    pub(super) fn of(input: &Constrained) -> Members {
        let updates = input.index_updates.as_deref();
        let any_update = |matching: fn(&super::IndexUpdateInput) -> bool| {
            updates.unwrap_or_default().iter().any(matching)
        };
        Members {
            provisioned: input.capacity.provisioned.is_some(),
            billing_mode: input.billing_mode.is_some(),
            stream: input.stream.is_some(),
            index_updates: Sent::of(
                updates.is_some(),
                updates.is_some_and(|updates| !updates.is_empty()),
            ),
            starts_index_work: any_update(super::IndexUpdateInput::creates_or_deletes),
            creates_index: any_update(super::IndexUpdateInput::creates),
            encryption: input.encryption.is_some(),
            replicas: input.replica_updates.is_some(),
            table_class: input.table_class.is_some(),
            deletion_protection: input.deletion_protection.is_some(),
            on_demand: Sent::of(
                input.capacity.on_demand.is_some(),
                input.capacity.gives_on_demand(),
            ),
            warm: Sent::of(input.capacity.warm.is_some(), input.capacity.gives_warm()),
            unsupported: input.unsupported.is_some(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ApiError> {
        let changes = self.changes();
        if changes == 0 {
            return Err(self.nothing_to_update());
        }
        if self.index_updates == Sent::Empty {
            return Err(table::index_updates_empty());
        }
        self.check_exclusive(changes)?;
        self.check_pairs()
    }

    /// How many members count as changes.
    fn changes(&self) -> usize {
        let members = [
            self.provisioned,
            self.billing_mode,
            self.stream,
            self.index_updates == Sent::Yes,
            self.encryption,
            self.replicas,
            self.table_class,
            self.deletion_protection,
            self.on_demand == Sent::Yes,
            self.warm == Sent::Yes,
            self.unsupported,
        ];
        members.iter().filter(|given| **given).count()
    }

    fn nothing_to_update(&self) -> ApiError {
        // DynamoDB itself fails on these.
        if self.on_demand == Sent::Empty || self.warm == Sent::Empty {
            return request::internal_failure();
        }
        let members: Vec<&str> = [
            "ProvisionedThroughput",
            "BillingMode",
            "UpdateStreamEnabled",
            "GlobalSecondaryIndexUpdates",
            "SSESpecification",
            "ReplicaUpdates",
            "MultiAccountReplicaReady",
            "ReplicaTransitRoleArn",
            "MultiRegionConsistency",
            "DeletionProtectionEnabled",
            "OnDemandThroughput",
            "WarmThroughput",
        ]
        .into_iter()
        .filter(|member| *member != "GlobalSecondaryIndexUpdates" || self.index_updates == Sent::No)
        .collect();
        table::nothing_to_update(&format!("{} or TableClass", members.join(", ")))
    }

    /// Changes that allow no other, in the order in which DynamoDB reports them.
    fn check_exclusive(&self, changes: usize) -> Result<(), ApiError> {
        if changes == 1 {
            return Ok(());
        }
        let exclusive = [
            (self.encryption, "Server-Side Encryption modification"),
            (self.table_class, "TableClass modification"),
            (self.deletion_protection, "DeletionProtection modification"),
            (self.replicas, "Replica modification"),
        ];
        if let Some((_, change)) = exclusive.iter().find(|(given, _)| *given) {
            return Err(table::must_be_only_operation(change));
        }
        match (self.warm, self.creates_index) {
            (Sent::Yes, true) => Err(table::index_while_warm()),
            (Sent::Yes, false) => Err(table::must_be_only_operation("WarmThroughput")),
            _ => Ok(()),
        }
    }

    fn check_pairs(&self) -> Result<(), ApiError> {
        let beside_billing = self.provisioned || self.stream || self.index_updates == Sent::Yes;
        if self.on_demand == Sent::Yes && beside_billing {
            return Err(table::on_demand_maximum_combined());
        }
        if self.stream && self.provisioned {
            return Err(table::stream_while_throughput());
        }
        if self.starts_index_work && self.provisioned {
            return Err(table::index_while_throughput());
        }
        if self.starts_index_work && self.stream {
            return Err(table::index_while_stream());
        }
        Ok(())
    }
}
