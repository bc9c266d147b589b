//! Secondary indexes of a request: constraints, projections and names.

use std::collections::BTreeSet;

use zenobe_engine::command::CreateIndex;
use zenobe_engine::schema::{BillingMode, IndexProjection, KeySchema};

use super::keys::{
    Definitions, KeyCount, KeyElement, constrain_key_schema, first_repeated, global_index_keys,
    local_index_keys,
};
use super::shapes::{GlobalSecondaryIndex, LocalSecondaryIndex, Projection};
use super::throughput::{Capacity, CapacityOwner};
use crate::constraints::{Violations, printed_list};
use crate::error::ApiError;
use crate::messages::constraint::Constraint;
use crate::messages::table;
use crate::operations::enumerations::{PROJECTION_TYPE, ProjectionType};

const LOCAL_INDEXES_MAX: usize = 5;
const GLOBAL_INDEXES_MAX: usize = 20;
const NON_KEY_ATTRIBUTES_MAX: usize = 20;
/// For all indexes of a table together; a name counts once for each index that lists it.
const NON_KEY_ATTRIBUTES_PER_TABLE_MAX: usize = 100;

/// An index that passed its constraints.
#[derive(Debug, Clone)]
pub(crate) struct IndexInput {
    pub(crate) name: String,
    pub(crate) keys: Vec<KeyElement>,
    projection: ProjectionInput,
    pub(crate) capacity: Capacity,
}

#[derive(Debug, Clone)]
struct ProjectionInput {
    projection_type: Option<ProjectionType>,
    attributes: Option<Vec<String>>,
}

impl IndexInput {
    pub(crate) fn constrain_local(
        index: LocalSecondaryIndex,
        path: &str,
        violations: &mut Violations,
    ) -> IndexInput {
        let name = constrain_index_name(index.index_name, path, violations);
        let keys_path = format!("{path}.keySchema");
        let keys =
            constrain_key_schema(index.key_schema, &keys_path, KeyCount::AtMostTwo, violations);
        let projection = constrain_projection(index.projection, path, violations);
        IndexInput { name, keys, projection, capacity: Capacity::default() }
    }

    pub(crate) fn constrain_global(
        index: GlobalSecondaryIndex,
        path: &str,
        violations: &mut Violations,
    ) -> IndexInput {
        let name = constrain_index_name(index.index_name, path, violations);
        let keys_path = format!("{path}.keySchema");
        let keys = constrain_key_schema(index.key_schema, &keys_path, KeyCount::Many, violations);
        let projection = constrain_projection(index.projection, path, violations);
        let capacity = Capacity::constrain(
            index.provisioned_throughput,
            index.on_demand_throughput,
            index.warm_throughput,
            path,
            violations,
        );
        IndexInput { name, keys, projection, capacity }
    }

    /// The projection, checked by the rules beyond the constraints.
    pub(crate) fn projection(&self) -> Result<IndexProjection, ApiError> {
        let attributes = self.projection.attributes.as_ref();
        match (self.projection.projection_type, attributes) {
            (None, _) => Err(table::projection_type_missing()),
            (Some(ProjectionType::All), None) => Ok(IndexProjection::All),
            (Some(ProjectionType::KeysOnly), None) => Ok(IndexProjection::KeysOnly),
            (Some(ProjectionType::Include), None) => Err(table::projection_attributes_missing()),
            (Some(ProjectionType::Include), Some(attributes)) => {
                match first_repeated(attributes.iter().map(String::as_str)) {
                    Some(name) => Err(table::projection_attribute_duplicate(name)),
                    None => Ok(IndexProjection::Include(attributes.clone())),
                }
            }
            (Some(other), Some(_)) => {
                Err(table::projection_attributes_unexpected(PROJECTION_TYPE.name_of(&other)))
            }
        }
    }
}

/// The rules for a new table's lists of indexes.
pub(crate) fn check_index_lists(
    local: Option<&[IndexInput]>,
    global: Option<&[IndexInput]>,
    table_keys: &KeySchema,
) -> Result<(), ApiError> {
    if local.is_some_and(<[IndexInput]>::is_empty) {
        return Err(table::local_indexes_empty());
    }
    if global.is_some_and(<[IndexInput]>::is_empty) {
        return Err(table::global_indexes_empty());
    }
    if local.is_some() && table_keys.sort.is_empty() {
        return Err(table::local_index_on_hash_table());
    }
    Ok(())
}

/// The keys of a new table's local indexes.
pub(crate) fn local_keys(
    indexes: &[IndexInput],
    table_keys: &KeySchema,
    definitions: &Definitions,
) -> Result<Vec<KeySchema>, ApiError> {
    let resolve = |index: &IndexInput| {
        let keys = local_index_keys(&index.keys, definitions)?;
        if keys.sort.is_empty() {
            return Err(table::index_without_range_key(&index.name));
        }
        let (hash, table_hash) = (&keys.partition[0].name, &table_keys.partition[0].name);
        if hash != table_hash {
            return Err(table::index_hash_key_differs(&index.name, hash, table_hash));
        }
        Ok(keys)
    };
    indexes.iter().map(resolve).collect()
}

/// The keys of a new table's global indexes.
pub(crate) fn global_keys(
    indexes: &[IndexInput],
    definitions: &Definitions,
) -> Result<Vec<KeySchema>, ApiError> {
    indexes.iter().map(|index| global_index_keys(&index.keys, definitions)).collect()
}

/// The remaining rules for the local indexes of a new table.
pub(crate) fn local_indexes(
    indexes: &[IndexInput],
    keys: Vec<KeySchema>,
    names: &mut IndexNames,
) -> Result<Vec<CreateIndex>, ApiError> {
    let mut created = Vec::new();
    for (index, keys) in indexes.iter().zip(keys) {
        let projection = index.projection()?;
        names.add(&index.name)?;
        let throughput = index.capacity.settings();
        created.push(CreateIndex { name: index.name.clone(), keys, projection, throughput });
    }
    if indexes.len() > LOCAL_INDEXES_MAX {
        return Err(table::too_many_local_indexes());
    }
    Ok(created)
}

/// The remaining rules for the global indexes of a new table.
pub(crate) fn global_indexes(
    indexes: &[IndexInput],
    keys: Vec<KeySchema>,
    billing_mode: BillingMode,
    names: &mut IndexNames,
) -> Result<Vec<CreateIndex>, ApiError> {
    let mut created = Vec::new();
    for (index, keys) in indexes.iter().zip(keys) {
        let projection = index.projection()?;
        index.capacity.check_provisioned(CapacityOwner::Index(&index.name), billing_mode)?;
        names.add(&index.name)?;
        let throughput = index.capacity.settings();
        created.push(CreateIndex { name: index.name.clone(), keys, projection, throughput });
    }
    if indexes.len() > GLOBAL_INDEXES_MAX {
        return Err(table::too_many_global_indexes());
    }
    Ok(created)
}

/// The rule for the projections of all indexes together.
pub(crate) fn check_projected_attributes<'a>(
    indexes: impl Iterator<Item = &'a CreateIndex>,
) -> Result<(), ApiError> {
    let count = |index: &CreateIndex| match &index.projection {
        IndexProjection::Include(attributes) => attributes.len(),
        IndexProjection::All | IndexProjection::KeysOnly => 0,
    };
    if indexes.map(count).sum::<usize>() > NON_KEY_ATTRIBUTES_PER_TABLE_MAX {
        return Err(table::too_many_projected_attributes());
    }
    Ok(())
}

/// Index names seen so far; local and global indexes share one namespace.
#[derive(Debug, Default)]
pub(crate) struct IndexNames(BTreeSet<String>);

impl IndexNames {
    fn add(&mut self, name: &str) -> Result<(), ApiError> {
        if self.0.insert(name.to_owned()) { Ok(()) } else { Err(table::duplicate_index_name(name)) }
    }
}

pub(crate) fn constrain_index_name(
    name: Option<String>,
    path: &str,
    violations: &mut Violations,
) -> String {
    let path = format!("{path}.indexName");
    let given = name.is_some();
    let name = violations.required(name, &path);
    if given {
        violations.name(&name, &path);
    }
    name
}

fn constrain_projection(
    projection: Option<Projection>,
    path: &str,
    violations: &mut Violations,
) -> ProjectionInput {
    let path = format!("{path}.projection");
    let projection = violations.required(projection, &path);
    let type_path = format!("{path}.projectionType");
    let projection_type =
        violations.enumeration(projection.projection_type.as_deref(), &type_path, &PROJECTION_TYPE);
    let attributes = projection.non_key_attributes;
    if let Some(names) = &attributes {
        let path = format!("{path}.nonKeyAttributes");
        let print = || printed_list(names, String::clone);
        violations.count(names.len(), &path, 1, NON_KEY_ATTRIBUTES_MAX, print);
        if names.iter().any(|name| !(1..=255).contains(&name.chars().count())) {
            violations.add(Some(&print()), &path, Constraint::MemberLength { min: 1, max: 255 });
        }
    }
    ProjectionInput { projection_type, attributes }
}
