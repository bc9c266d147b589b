//! The throughput settings of a table or a global index: what it starts with, and how they may change.

use crate::command::{OnDemandMaximum, ProvisionedUnits, ThroughputSettings};
use crate::error::{Error, LimitError, Result, UpdateTableError};
use crate::options::Limits;
use crate::schema::{
    BillingMode, ON_DEMAND_INITIAL_READ_UNITS, ON_DEMAND_INITIAL_WRITE_UNITS, Throughput,
};

/// This many decreases are free per UTC day; after that, one per hour.
const FREE_DECREASES_PER_DAY: u32 = 4;
const DECREASE_INTERVAL_MS: u64 = 3_600 * 1_000;
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The capacity of a new table, or of a new index if `index` names one.
pub(super) fn initial(
    mode: BillingMode,
    settings: &ThroughputSettings,
    index: Option<&str>,
) -> Result<Throughput, UpdateTableError> {
    let mut throughput = Throughput::default();
    match (mode, settings.provisioned) {
        (BillingMode::Provisioned, Some(units)) => set_units(&mut throughput, units),
        (BillingMode::PayPerRequest, None) => warm_up_for_on_demand(&mut throughput),
        (BillingMode::Provisioned, None) => return Err(required(index)),
        (BillingMode::PayPerRequest, Some(_)) => return Err(not_on_demand(index)),
    }
    if mode == BillingMode::Provisioned {
        refuse_on_demand_maximum(settings, index)?;
    }
    merge_on_demand_maximum(&mut throughput, settings);
    let warm = (settings.warm_read_units, settings.warm_write_units);
    throughput.warm_read_units = throughput.warm_read_units.max(warm.0.unwrap_or(0));
    throughput.warm_write_units = throughput.warm_write_units.max(warm.1.unwrap_or(0));
    Ok(throughput)
}

/// Rejects what exceeds the account's quota.
pub(super) fn check_limits(
    limits: &Limits,
    settings: &ThroughputSettings,
    index: Option<&str>,
) -> Result<()> {
    let maximum = limits.table_capacity_units_max;
    if let Some(ProvisionedUnits { read, write }) = settings.provisioned {
        for (write, requested) in [(false, read), (true, write)] {
            if requested > maximum {
                return Err(Error::Limit(LimitError::TableCapacity { write, requested, maximum }));
            }
        }
    }
    let on_demand_maxima =
        [(false, settings.on_demand_max_read_units), (true, settings.on_demand_max_write_units)];
    for (write, requested) in on_demand_maxima {
        if matches!(requested, Some(OnDemandMaximum::Units(units)) if units > maximum) {
            let index = index.map(str::to_owned);
            return Err(Error::Limit(LimitError::OnDemandMaximum { write, index }));
        }
    }
    Ok(())
}

/// Changes the provisioned units of a table or index that already has some.
pub(super) fn change_units(
    throughput: &mut Throughput,
    units: ProvisionedUnits,
    index: Option<&str>,
    now_ms: u64,
) -> Result<(), UpdateTableError> {
    let (read, write) = (throughput.read_units, throughput.write_units);
    if (read, write) == (units.read, units.write) {
        let index = index.map(str::to_owned);
        return Err(UpdateTableError::ThroughputUnchanged { index, read, write });
    }
    // Decreasing both in one call counts as one decrease.
    if units.read < read || units.write < write {
        count_decrease(throughput, now_ms)?;
    }
    if units.read > read || units.write > write {
        throughput.last_increase_ms = Some(now_ms);
    }
    set_units(throughput, units);
    Ok(())
}

pub(super) fn become_provisioned(throughput: &mut Throughput, units: ProvisionedUnits) {
    throughput.on_demand_max_read_units = None;
    throughput.on_demand_max_write_units = None;
    set_units(throughput, units);
}

pub(super) fn become_on_demand(throughput: &mut Throughput) {
    throughput.read_units = 0;
    throughput.write_units = 0;
    warm_up_for_on_demand(throughput);
}

/// Applies the given on-demand maxima; the others stay.
pub(super) fn merge_on_demand_maximum(throughput: &mut Throughput, settings: &ThroughputSettings) {
    let merge = |current: &mut Option<u64>, given: Option<OnDemandMaximum>| match given {
        Some(OnDemandMaximum::Units(units)) => *current = Some(units),
        Some(OnDemandMaximum::Unlimited) => *current = None,
        None => {}
    };
    merge(&mut throughput.on_demand_max_read_units, settings.on_demand_max_read_units);
    merge(&mut throughput.on_demand_max_write_units, settings.on_demand_max_write_units);
}

pub(super) fn refuse_on_demand_maximum(
    settings: &ThroughputSettings,
    index: Option<&str>,
) -> Result<(), UpdateTableError> {
    if !has_on_demand_maximum(settings) {
        return Ok(());
    }
    let write = settings.on_demand_max_read_units.is_none();
    Err(match index.map(str::to_owned) {
        Some(index) => UpdateTableError::IndexOnDemandMaximumOnProvisioned { index, write },
        None => UpdateTableError::OnDemandMaximumOnProvisioned { write },
    })
}

pub(super) fn has_on_demand_maximum(settings: &ThroughputSettings) -> bool {
    settings.on_demand_max_read_units.is_some() || settings.on_demand_max_write_units.is_some()
}

/// Warm throughput only ever rises.
pub(super) fn raise_warm(
    throughput: &mut Throughput,
    settings: &ThroughputSettings,
    index: Option<&str>,
) -> Result<(), UpdateTableError> {
    let raise = |current: &mut u64, given: Option<u64>, write: bool| match given {
        Some(units) if units < *current => {
            Err(UpdateTableError::WarmThroughputDecrease { write, index: index.map(str::to_owned) })
        }
        Some(units) => {
            *current = units;
            Ok(())
        }
        None => Ok(()),
    };
    raise(&mut throughput.warm_read_units, settings.warm_read_units, false)?;
    raise(&mut throughput.warm_write_units, settings.warm_write_units, true)
}

/// How many decreases count towards the budget of the UTC day of `now_ms`.
pub(super) fn decreases_today(throughput: &Throughput, now_ms: u64) -> u32 {
    match throughput.last_decrease_ms {
        Some(last_ms) if last_ms / DAY_MS == now_ms / DAY_MS => throughput.decreases_today,
        _ => 0,
    }
}

pub(super) fn required(index: Option<&str>) -> UpdateTableError {
    match index.map(str::to_owned) {
        Some(index) => UpdateTableError::IndexThroughputRequired { index },
        None => UpdateTableError::ThroughputRequired,
    }
}

pub(super) fn not_on_demand(index: Option<&str>) -> UpdateTableError {
    match index.map(str::to_owned) {
        Some(index) => UpdateTableError::IndexThroughputOnDemand { index },
        None => UpdateTableError::ThroughputOnDemand,
    }
}

fn set_units(throughput: &mut Throughput, units: ProvisionedUnits) {
    throughput.read_units = units.read;
    throughput.write_units = units.write;
    throughput.warm_read_units = throughput.warm_read_units.max(units.read);
    throughput.warm_write_units = throughput.warm_write_units.max(units.write);
}

fn warm_up_for_on_demand(throughput: &mut Throughput) {
    throughput.warm_read_units = throughput.warm_read_units.max(ON_DEMAND_INITIAL_READ_UNITS);
    throughput.warm_write_units = throughput.warm_write_units.max(ON_DEMAND_INITIAL_WRITE_UNITS);
}

fn count_decrease(throughput: &mut Throughput, now_ms: u64) -> Result<(), UpdateTableError> {
    let decreases_today = decreases_today(throughput, now_ms);
    if let Some(last_decrease_ms) = throughput.last_decrease_ms
        && decreases_today >= FREE_DECREASES_PER_DAY
    {
        let next_day_ms = (last_decrease_ms / DAY_MS + 1) * DAY_MS;
        let next_ms = next_day_ms.min(last_decrease_ms + DECREASE_INTERVAL_MS);
        if now_ms < next_ms {
            return Err(UpdateTableError::TooManyDecreases {
                decreases_today,
                last_decrease_ms,
                next_ms,
            });
        }
    }
    throughput.decreases_today = decreases_today + 1;
    throughput.last_decrease_ms = Some(now_ms);
    Ok(())
}
