//! Capacity members of tables and global indexes.

use zenobe_engine::command::{OnDemandMaximum, ProvisionedUnits, ThroughputSettings};
use zenobe_engine::schema::{
    BillingMode, ON_DEMAND_INITIAL_READ_UNITS, ON_DEMAND_INITIAL_WRITE_UNITS,
};

use super::shapes::{OnDemandThroughput, ProvisionedThroughput, WarmThroughput};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::table;
use crate::messages::throughput::{
    capacity_units, max_request_units, units_per_second, warm_place,
};

const CAPACITY_UNITS_BOUND: i64 = 1_000_000_000_000;

/// The capacity members of a table or an index, after their constraints.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Capacity {
    pub(crate) provisioned: Option<Units<i64>>,
    /// Maxima; `-1` means none.
    pub(crate) on_demand: Option<Units<Option<i64>>>,
    /// Per second.
    pub(crate) warm: Option<Units<Option<i64>>>,
}

/// The two members of every structure about capacity.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Units<T> {
    read: T,
    write: T,
}

/// Whose capacity a rule is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CapacityOwner<'a> {
    Table,
    Index(&'a str),
}

impl Capacity {
    /// `path` is that of the structure with these members; empty for the request itself.
    pub(crate) fn constrain(
        provisioned: Option<ProvisionedThroughput>,
        on_demand: Option<OnDemandThroughput>,
        warm: Option<WarmThroughput>,
        path: &str,
        violations: &mut Violations,
    ) -> Capacity {
        let separator = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{separator}provisionedThroughput");
        let provisioned = provisioned.map(|given| {
            // DynamoDB checks the write units first.
            let write = constrain_units(
                given.write_capacity_units,
                &path,
                "writeCapacityUnits",
                violations,
            );
            let read =
                constrain_units(given.read_capacity_units, &path, "readCapacityUnits", violations);
            Units { read, write }
        });
        let on_demand = on_demand.map(|given| Units {
            read: given.max_read_request_units,
            write: given.max_write_request_units,
        });
        let warm = warm.map(|given| Units {
            read: given.read_units_per_second,
            write: given.write_units_per_second,
        });
        Capacity { provisioned, on_demand, warm }
    }

    /// The rules for provisioned units of a new table or index.
    pub(crate) fn check_provisioned(
        &self,
        place: CapacityOwner<'_>,
        billing_mode: BillingMode,
    ) -> Result<(), ApiError> {
        match (billing_mode, self.provisioned, place) {
            (BillingMode::PayPerRequest, Some(_), CapacityOwner::Table) => {
                Err(table::throughput_on_demand())
            }
            (BillingMode::PayPerRequest, Some(_), CapacityOwner::Index(index)) => {
                Err(table::index_throughput_on_demand(index))
            }
            (BillingMode::Provisioned, None, CapacityOwner::Table) => {
                Err(table::throughput_required())
            }
            (BillingMode::Provisioned, None, CapacityOwner::Index(index)) => {
                Err(table::index_throughput_required(index))
            }
            (BillingMode::PayPerRequest, None, _) => Ok(()),
            (BillingMode::Provisioned, Some(_), _) => self.check_bounds(),
        }
    }

    pub(crate) fn check_bounds(&self) -> Result<(), ApiError> {
        let Units { read, write } = self.provisioned.unwrap_or_default();
        for (units, is_write) in [(read, false), (write, true)] {
            if units > CAPACITY_UNITS_BOUND {
                return Err(table::capacity_out_of_bounds(units, capacity_units(is_write)));
            }
        }
        Ok(())
    }

    /// The rules for on-demand maxima of a new table or index.
    pub(crate) fn check_on_demand(
        &self,
        place: CapacityOwner<'_>,
        billing_mode: BillingMode,
    ) -> Result<(), ApiError> {
        for (units, is_write) in given_members(self.on_demand) {
            if billing_mode == BillingMode::Provisioned {
                let place = match place {
                    CapacityOwner::Table => String::new(),
                    CapacityOwner::Index(index) => format!(" for index: {index}"),
                };
                let member = max_request_units(is_write);
                return Err(table::on_demand_maximum_provisioned(member, &place));
            }
            // A new table has no maximum for -1 to remove.
            if units < 1 {
                return Err(on_demand_out_of_range(is_write, place));
            }
        }
        Ok(())
    }

    /// The range of on-demand maxima; `-1` means none.
    pub(crate) fn check_on_demand_range(&self, place: CapacityOwner<'_>) -> Result<(), ApiError> {
        given_members(self.on_demand)
            .try_for_each(|(units, is_write)| check_on_demand_range(units, is_write, place))
    }

    /// The rules for warm throughput of a new table or index.
    pub(crate) fn check_warm(
        &self,
        place: CapacityOwner<'_>,
        billing_mode: BillingMode,
    ) -> Result<(), ApiError> {
        let min = match billing_mode {
            BillingMode::PayPerRequest => Units {
                read: ON_DEMAND_INITIAL_READ_UNITS as i64,
                write: ON_DEMAND_INITIAL_WRITE_UNITS as i64,
            },
            BillingMode::Provisioned => self.provisioned.unwrap_or_default(),
        };
        for (units, is_write) in given_members(self.warm) {
            if units >= if is_write { min.write } else { min.read } {
                continue;
            }
            let (member, place) = (units_per_second(is_write), warm_place(place.index()));
            return Err(match billing_mode {
                BillingMode::PayPerRequest => table::warm_below_on_demand(member, &place),
                BillingMode::Provisioned => {
                    table::warm_below_provisioned(member, &place, capacity_units(is_write))
                }
            });
        }
        Ok(())
    }

    /// The engine's form. Constraints and rules have ruled out negative units.
    pub(crate) fn settings(&self) -> ThroughputSettings {
        let units = |units: i64| u64::try_from(units).unwrap_or_default();
        let maximum = |given: i64| match given {
            -1 => OnDemandMaximum::Unlimited,
            given => OnDemandMaximum::Units(units(given)),
        };
        let on_demand = self.on_demand.unwrap_or_default();
        let warm = self.warm.unwrap_or_default();
        ThroughputSettings {
            provisioned: self.provisioned.map(|given| ProvisionedUnits {
                read: units(given.read),
                write: units(given.write),
            }),
            on_demand_max_read_units: on_demand.read.map(maximum),
            on_demand_max_write_units: on_demand.write.map(maximum),
            warm_read_units: warm.read.map(units),
            warm_write_units: warm.write.map(units),
        }
    }

    /// The member of an on-demand maximum that no table can have.
    pub(crate) fn on_demand_out_of_range(&self) -> Option<&'static str> {
        let mut given = given_members(self.on_demand);
        let (_, is_write) = given.find(|(units, _)| *units < 1 && *units != -1)?;
        Some(max_request_units(is_write))
    }

    pub(crate) fn gives_on_demand(&self) -> bool {
        given_members(self.on_demand).next().is_some()
    }

    pub(crate) fn gives_warm(&self) -> bool {
        given_members(self.warm).next().is_some()
    }
}

impl<'a> CapacityOwner<'a> {
    fn index(self) -> Option<&'a str> {
        match self {
            CapacityOwner::Table => None,
            CapacityOwner::Index(index) => Some(index),
        }
    }
}

/// The given ones of a read and a write member, reads first, each with whether it is the write one.
fn given_members(members: Option<Units<Option<i64>>>) -> impl Iterator<Item = (i64, bool)> {
    let Units { read, write } = members.unwrap_or_default();
    let tagged = |units: Option<i64>, is_write| units.map(|units| (units, is_write));
    tagged(read, false).into_iter().chain(tagged(write, true))
}

fn check_on_demand_range(
    units: i64,
    is_write: bool,
    place: CapacityOwner<'_>,
) -> Result<(), ApiError> {
    if units >= 1 || units == -1 { Ok(()) } else { Err(on_demand_out_of_range(is_write, place)) }
}

fn on_demand_out_of_range(is_write: bool, place: CapacityOwner<'_>) -> ApiError {
    let place = match place {
        CapacityOwner::Table => "for table".to_owned(),
        CapacityOwner::Index(index) => format!("for index : {index}"),
    };
    table::on_demand_maximum_range(max_request_units(is_write), &place)
}

fn constrain_units(
    units: Option<i64>,
    path: &str,
    member: &str,
    violations: &mut Violations,
) -> i64 {
    let path = format!("{path}.{member}");
    let given = units.is_some();
    let units = violations.required(units, &path);
    if given {
        violations.range(units, &path, 1, i64::MAX);
    }
    units
}
