//! The definition of a restored table: that of its source, with the request's overrides.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{
    CreateIndex, CreateTable, EncryptionChange, KmsKey, OnDemandMaximum, ProvisionedUnits,
    TableName, ThroughputSettings,
};
use crate::error::{RestoreError, Result};
use crate::schema::{
    BillingMode, IndexDefinition, IndexProjection, IndexStatus, KeyAttribute, ScalarType,
    TableDefinition, Throughput,
};

/// `None` keeps what the source has.
#[derive(Debug, Clone, Default)]
pub struct RestoreOverrides {
    pub billing_mode: Option<BillingMode>,
    /// The table's own; those of its indexes are in `global_indexes`.
    pub throughput: ThroughputSettings,
    pub local_indexes: Option<Vec<IndexOverride>>,
    pub global_indexes: Option<Vec<IndexOverride>>,
    pub encryption: Option<EncryptionChange>,
}

/// One of the source's indexes, which is known by its keys and its projection, under this name.
#[derive(Debug, Clone)]
pub struct IndexOverride {
    pub name: String,
    pub partition: Vec<String>,
    pub sort: Vec<String>,
    pub projection: IndexProjection,
    pub throughput: ThroughputSettings,
}

impl RestoreOverrides {
    /// The table to create.
    pub(crate) fn target(
        &self,
        source: &TableDefinition,
        table: TableName,
    ) -> Result<CreateTable, RestoreError> {
        let billing_mode = self.billing_mode.unwrap_or(source.billing_mode);
        self.check_capacity(billing_mode)?;
        let local_indexes =
            self.indexes(&source.local_indexes, &self.local_indexes, |kept, _| {
                Ok(created(kept, &kept.name, ThroughputSettings::default()))
            })?;
        let global_indexes =
            self.indexes(&source.global_indexes, &self.global_indexes, |kept, given| {
                let throughput = index_throughput(kept, given, billing_mode, source.billing_mode)?;
                let name = given.map_or(&kept.name, |given| &given.name);
                Ok(created(kept, name, throughput))
            })?;
        let local_indexes = renamed(local_indexes, self.local_indexes.as_deref());
        check_names(local_indexes.iter().chain(&global_indexes))?;
        let kms_key = match &self.encryption {
            Some(EncryptionChange::Kms(key)) => Some(key.clone()),
            Some(EncryptionChange::Default) => None,
            None => source.kms_key_arn.clone().map(KmsKey::Customer),
        };
        Ok(CreateTable {
            table,
            attribute_types: types(source, &local_indexes, &global_indexes),
            keys: source.keys.clone(),
            local_indexes,
            global_indexes,
            billing_mode,
            throughput: self.table_throughput(source, billing_mode),
            stream: None,
            kms_key,
            table_class: None,
            deletion_protection: false,
            tags: BTreeMap::new(),
        })
    }

    fn check_capacity(&self, billing_mode: BillingMode) -> Result<(), RestoreError> {
        let provisioned = self.throughput.provisioned;
        match (self.billing_mode, provisioned) {
            (Some(BillingMode::PayPerRequest), Some(_)) => {
                return Err(RestoreError::ThroughputOnDemand { index: None });
            }
            (Some(BillingMode::Provisioned), None) => {
                return Err(RestoreError::ThroughputRequired);
            }
            (None, Some(_)) if billing_mode == BillingMode::PayPerRequest => {
                return Err(RestoreError::ThroughputUnlessProvisioned);
            }
            _ => {}
        }
        let maxima = [
            (false, self.throughput.on_demand_max_read_units),
            (true, self.throughput.on_demand_max_write_units),
        ];
        for (write, maximum) in maxima {
            if maximum.is_some() && billing_mode == BillingMode::Provisioned {
                return Err(RestoreError::OnDemandMaximum { write });
            }
        }
        Ok(())
    }

    fn table_throughput(
        &self,
        source: &TableDefinition,
        billing_mode: BillingMode,
    ) -> ThroughputSettings {
        let given = &self.throughput;
        let kept = kept_throughput(&source.throughput, billing_mode, source.billing_mode);
        ThroughputSettings {
            provisioned: given.provisioned.or(kept.provisioned),
            on_demand_max_read_units: given
                .on_demand_max_read_units
                .or(kept.on_demand_max_read_units),
            on_demand_max_write_units: given
                .on_demand_max_write_units
                .or(kept.on_demand_max_write_units),
            ..kept
        }
    }

    /// The source's indexes that are kept: all of them, or those that the request lists.
    fn indexes(
        &self,
        source: &[IndexDefinition],
        given: &Option<Vec<IndexOverride>>,
        create: impl Fn(&IndexDefinition, Option<&IndexOverride>) -> Result<CreateIndex, RestoreError>,
    ) -> Result<Vec<CreateIndex>, RestoreError> {
        let mut source: Vec<&IndexDefinition> =
            source.iter().filter(|index| index.status != IndexStatus::Deleting).collect();
        let Some(given) = given else {
            return source.into_iter().map(|kept| create(kept, None)).collect();
        };
        let mut indexes = Vec::new();
        for index in given {
            // Each of the source's indexes is kept once.
            let Some(position) = source.iter().position(|kept| index.is_like(kept)) else {
                return Err(RestoreError::IndexMismatch { index: index.name.clone() });
            };
            indexes.push(create(source.remove(position), Some(index))?);
        }
        Ok(indexes)
    }
}

impl IndexOverride {
    fn is_like(&self, kept: &IndexDefinition) -> bool {
        let names = |keys: &[KeyAttribute]| -> Vec<String> {
            keys.iter().map(|key| key.name.clone()).collect()
        };
        let sorted = |projection: &IndexProjection| match projection {
            IndexProjection::Include(names) => {
                let mut names = names.clone();
                names.sort_unstable();
                IndexProjection::Include(names)
            }
            other => other.clone(),
        };
        self.partition == names(&kept.keys.partition)
            && self.sort == names(&kept.keys.sort)
            && sorted(&self.projection) == sorted(&kept.projection)
    }
}

fn check_names<'a>(indexes: impl Iterator<Item = &'a CreateIndex>) -> Result<(), RestoreError> {
    let mut names = BTreeSet::new();
    for index in indexes {
        if !names.insert(&index.name) {
            return Err(RestoreError::DuplicateIndexName { index: index.name.clone() });
        }
    }
    Ok(())
}

fn created(kept: &IndexDefinition, name: &str, throughput: ThroughputSettings) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        keys: kept.keys.clone(),
        projection: kept.projection.clone(),
        throughput,
    }
}

/// Local indexes have nothing to override but their names.
fn renamed(mut indexes: Vec<CreateIndex>, given: Option<&[IndexOverride]>) -> Vec<CreateIndex> {
    for (index, given) in indexes.iter_mut().zip(given.unwrap_or_default()) {
        index.name.clone_from(&given.name);
    }
    indexes
}

fn index_throughput(
    kept: &IndexDefinition,
    given: Option<&IndexOverride>,
    billing_mode: BillingMode,
    source_mode: BillingMode,
) -> Result<ThroughputSettings, RestoreError> {
    let name = given.map_or(&kept.name, |given| &given.name);
    let provisioned = given.and_then(|given| given.throughput.provisioned);
    if billing_mode == BillingMode::PayPerRequest && provisioned.is_some() {
        return Err(RestoreError::ThroughputOnDemand { index: Some(name.clone()) });
    }
    let mut throughput = kept_throughput(&kept.throughput, billing_mode, source_mode);
    throughput.provisioned = provisioned.or(throughput.provisioned);
    if let Some(given) = given {
        let given = given.throughput;
        let read = given.on_demand_max_read_units;
        let write = given.on_demand_max_write_units;
        throughput.on_demand_max_read_units = read.or(throughput.on_demand_max_read_units);
        throughput.on_demand_max_write_units = write.or(throughput.on_demand_max_write_units);
    }
    if billing_mode == BillingMode::Provisioned && throughput.provisioned.is_none() {
        return Err(RestoreError::IndexThroughputRequired { index: name.clone() });
    }
    Ok(throughput)
}

/// What the source had, as far as it makes sense in the new table's billing mode.
fn kept_throughput(
    source: &Throughput,
    billing_mode: BillingMode,
    source_mode: BillingMode,
) -> ThroughputSettings {
    let provisioned = ProvisionedUnits { read: source.read_units, write: source.write_units };
    let is_provisioned = |mode| mode == BillingMode::Provisioned;
    let maximum = |units: Option<u64>| {
        units.filter(|_| !is_provisioned(billing_mode)).map(OnDemandMaximum::Units)
    };
    ThroughputSettings {
        provisioned: (is_provisioned(billing_mode) && is_provisioned(source_mode))
            .then_some(provisioned),
        on_demand_max_read_units: maximum(source.on_demand_max_read_units),
        on_demand_max_write_units: maximum(source.on_demand_max_write_units),
        warm_read_units: None,
        warm_write_units: None,
    }
}

/// The types of the attributes that are keys.
fn types(
    source: &TableDefinition,
    local: &[CreateIndex],
    global: &[CreateIndex],
) -> BTreeMap<String, ScalarType> {
    let indexes = local.iter().chain(global).flat_map(|index| index.keys.attributes());
    let keys = source.keys.attributes().chain(indexes);
    keys.map(|key| (key.name.clone(), key.scalar_type)).collect()
}
