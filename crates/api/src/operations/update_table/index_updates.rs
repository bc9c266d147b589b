//! `GlobalSecondaryIndexUpdates`.

use zenobe_engine::command::{IndexChange, UnresolvedIndex};
use zenobe_engine::schema::{BillingMode, KeyAttribute};

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::table;
use crate::operations::table_input::indexes::{IndexInput, constrain_index_name};
use crate::operations::table_input::keys::{Definitions, first_repeated, global_index_keys};
use crate::operations::table_input::shapes::{
    DeleteGlobalSecondaryIndexAction, GlobalSecondaryIndex, GlobalSecondaryIndexUpdate,
    UpdateGlobalSecondaryIndexAction,
};
use crate::operations::table_input::throughput::{Capacity, CapacityOwner};

/// One entry of the list, after its constraints. It should have exactly one action.
pub(super) struct IndexUpdateInput {
    update: Option<(String, Capacity)>,
    create: Option<IndexInput>,
    delete: Option<String>,
}

impl IndexUpdateInput {
    pub(super) fn constrain(
        updates: Vec<GlobalSecondaryIndexUpdate>,
        violations: &mut Violations,
    ) -> Vec<IndexUpdateInput> {
        let constrain = |(position, entry): (usize, GlobalSecondaryIndexUpdate)| {
            let path = format!("globalSecondaryIndexUpdates.{}.member", position + 1);
            IndexUpdateInput {
                update: entry
                    .update
                    .map(|action| constrain_update(action, &format!("{path}.update"), violations)),
                create: entry.create.map(|action| {
                    let index = GlobalSecondaryIndex::from(action);
                    IndexInput::constrain_global(index, &format!("{path}.create"), violations)
                }),
                delete: entry
                    .delete
                    .map(|action| constrain_delete(action, &format!("{path}.delete"), violations)),
            }
        };
        updates.into_iter().enumerate().map(constrain).collect()
    }

    pub(super) fn creates(&self) -> bool {
        self.create.is_some()
    }

    pub(super) fn creates_or_deletes(&self) -> bool {
        self.create.is_some() || self.delete.is_some()
    }

    /// Whether an index is to get more capacity than any can have. DynamoDB reports this only after
    /// it has found the table.
    pub(super) fn exceeds_bounds(&self) -> bool {
        self.update.as_ref().is_some_and(|(_, capacity)| capacity.check_bounds().is_err())
    }

    fn check_single_action(&self) -> Result<&str, ApiError> {
        let names = [
            self.update.as_ref().map(|(name, _)| name),
            self.create.as_ref().map(|index| &index.name),
            self.delete.as_ref(),
        ];
        let mut names = names.into_iter().flatten();
        match (names.next(), names.next()) {
            (None, _) => Err(table::index_update_without_action()),
            (Some(_), Some(_)) => Err(table::index_update_with_several_actions()),
            (Some(name), None) => Ok(name),
        }
    }
}

/// The rules about the list and its entries.
pub(super) fn lower_index_updates(
    updates: Vec<IndexUpdateInput>,
    definitions: &Definitions,
    billing_mode: Option<BillingMode>,
) -> Result<Vec<IndexChange>, ApiError> {
    let names = updates.iter().map(IndexUpdateInput::check_single_action);
    let names = names.collect::<Result<Vec<&str>, ApiError>>()?;
    if let Some(name) = first_repeated(names.into_iter()) {
        return Err(table::index_updated_twice(name));
    }
    if updates.iter().filter(|update| update.creates_or_deletes()).count() > 1 {
        return Err(table::one_index_at_a_time());
    }
    updates
        .into_iter()
        .map(|update| lower_index_update(update, definitions, billing_mode))
        .collect()
}

fn lower_index_update(
    input: IndexUpdateInput,
    definitions: &Definitions,
    billing_mode: Option<BillingMode>,
) -> Result<IndexChange, ApiError> {
    if let Some(name) = input.delete {
        return Ok(IndexChange::Delete { name });
    }
    if let Some(index) = input.create {
        return lower_create(&index, definitions, billing_mode);
    }
    let (name, capacity) = input.update.unwrap_or_default();
    check_billing(&name, &capacity, billing_mode)?;
    capacity.check_on_demand_range(CapacityOwner::Index(&name))?;
    if capacity.warm.is_some() && !capacity.gives_warm() {
        return Err(table::index_warm_empty(&name));
    }
    Ok(IndexChange::Update { throughput: capacity.settings(), name })
}

fn lower_create(
    index: &IndexInput,
    definitions: &Definitions,
    billing_mode: Option<BillingMode>,
) -> Result<IndexChange, ApiError> {
    if definitions.is_empty() {
        return Err(table::definitions_missing(&index.name));
    }
    definitions.reject_duplicates()?;
    let keys = global_index_keys(&index.keys, definitions)?;
    let projection = index.projection()?;
    check_capacity(&index.name, &index.capacity, billing_mode)?;
    let names = |keys: Vec<KeyAttribute>| keys.into_iter().map(|key| key.name).collect();
    Ok(IndexChange::Create(Box::new(UnresolvedIndex {
        name: index.name.clone(),
        partition: names(keys.partition),
        sort: names(keys.sort),
        projection,
        throughput: index.capacity.settings(),
    })))
}

fn check_capacity(
    name: &str,
    capacity: &Capacity,
    billing_mode: Option<BillingMode>,
) -> Result<(), ApiError> {
    check_billing(name, capacity, billing_mode)?;
    capacity.check_bounds()?;
    capacity.check_on_demand_range(CapacityOwner::Index(name))
}

fn check_billing(
    name: &str,
    capacity: &Capacity,
    billing_mode: Option<BillingMode>,
) -> Result<(), ApiError> {
    match capacity.provisioned {
        Some(_) if billing_mode == Some(BillingMode::PayPerRequest) => {
            Err(table::updated_index_throughput_on_demand(name))
        }
        _ => Ok(()),
    }
}

fn constrain_update(
    action: UpdateGlobalSecondaryIndexAction,
    path: &str,
    violations: &mut Violations,
) -> (String, Capacity) {
    let name = constrain_index_name(action.index_name, path, violations);
    let capacity = Capacity::constrain(
        action.provisioned_throughput,
        action.on_demand_throughput,
        action.warm_throughput,
        path,
        violations,
    );
    (name, capacity)
}

fn constrain_delete(
    action: DeleteGlobalSecondaryIndexAction,
    path: &str,
    violations: &mut Violations,
) -> String {
    constrain_index_name(action.index_name, path, violations)
}
