//! Target tracking: from the consumption of the last minutes to a new capacity. Everything here is
//! pure; the worker carries it out.
//!
//! A policy acts like the two alarms that AWS creates for it. The high one needs two minutes in a row
//! above the target, the low one fifteen at least 20 points below it. Both compare with what is
//! provisioned now, as AWS moves the thresholds of its alarms with every change of the table.

mod target_state;

#[cfg(test)]
mod tests;

use crate::activity::{AlreadyAt, NotScaled};
use crate::policy::{AlarmKind, PolicySettings};
use crate::target::{CapacityLimits, Suspended};

pub(crate) use target_state::{Report, Sample, ScaledOut, TargetState, has_jumped_back};

/// How many minutes the high and the low alarm look at.
pub(crate) const OUT_MINUTES: usize = 2;
pub(crate) const IN_MINUTES: usize = 15;
/// How far below the target the low alarm's threshold is, in percentage points of what is provisioned.
/// AWS documents it: with a target of 70 %, capacity goes down at 50 %.
pub(crate) const LOW_POINTS: f64 = 20.0;
/// The rounding error that two computations of the same number may have.
const ROUNDING: f64 = 1e-9;

/// What a decision depends on besides the consumption.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub settings: &'a PolicySettings,
    pub limits: CapacityLimits,
    pub suspended: Suspended,
    /// Units per second.
    pub provisioned: u64,
    /// The last minute whose consumption is known.
    pub minute: u64,
    pub now_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalingDecision {
    /// No alarm.
    Quiet,
    /// An alarm, but a cooldown or a suspension blocks the policy.
    Wait,
    Scale {
        alarm: AlarmKind,
        units: u64,
    },
    NotScaled {
        alarm: AlarmKind,
        not_scaled: NotScaled,
    },
}

pub(crate) fn decide(situation: &Situation<'_>, state: &TargetState) -> ScalingDecision {
    let Situation { settings, provisioned, minute, .. } = *situation;
    let fitting = |sample: &Sample| fitting_units(sample.halves, settings.target_percent);
    let provisioned = provisioned as f64;
    let low = provisioned * (settings.target_percent - LOW_POINTS) / settings.target_percent;
    if let Some(recent) = state.last_minutes(minute, OUT_MINUTES)
        && recent.iter().all(|sample| fitting(sample) > provisioned * (1.0 + ROUNDING))
    {
        return scale_out(situation, state, fitting(&recent[OUT_MINUTES - 1]));
    }
    if settings.scales_in()
        && let Some(recent) = state.last_minutes(minute, IN_MINUTES)
        && recent.iter().all(|sample| fitting(sample) <= low * (1.0 + ROUNDING))
    {
        // The busiest minute decides, so that the next one like it does not undo it.
        let busiest = recent.iter().map(fitting).fold(0.0, f64::max);
        return scale_in(situation, state, busiest);
    }
    ScalingDecision::Quiet
}

fn scale_out(situation: &Situation<'_>, state: &TargetState, fitting: f64) -> ScalingDecision {
    let Situation { settings, limits, suspended, provisioned, now_ms, .. } = *situation;
    let alarm = AlarmKind::High;
    if suspended.scale_out {
        return ScalingDecision::Wait;
    }
    let units = limits.clamp(whole_units(fitting));
    if units <= provisioned {
        let not_scaled = NotScaled { reason: AlreadyAt::Maximum, units: limits.max };
        return ScalingDecision::NotScaled { alarm, not_scaled };
    }
    // A cooldown blocks further steps, unless a larger one is needed.
    let cooldown_ms = settings.scale_out_cooldown_s.unwrap_or(0) * 1_000;
    if let Some(last) = state.scaled_out
        && now_ms < last.at_ms + cooldown_ms
        && units - provisioned <= last.step
    {
        return ScalingDecision::Wait;
    }
    ScalingDecision::Scale { alarm, units }
}

fn scale_in(situation: &Situation<'_>, state: &TargetState, busiest: f64) -> ScalingDecision {
    let Situation { settings, limits, suspended, provisioned, now_ms, .. } = *situation;
    let alarm = AlarmKind::Low;
    if suspended.scale_in {
        return ScalingDecision::Wait;
    }
    let units = limits.clamp(whole_units(busiest));
    if units >= provisioned {
        let not_scaled = match provisioned <= limits.min {
            true => NotScaled { reason: AlreadyAt::Minimum, units: limits.min },
            false => NotScaled { reason: AlreadyAt::Desired, units: provisioned },
        };
        return ScalingDecision::NotScaled { alarm, not_scaled };
    }
    let cooldown_ms = settings.scale_in_cooldown_s.unwrap_or(0) * 1_000;
    match state.scaled_in_at_ms {
        Some(at_ms) if now_ms < at_ms + cooldown_ms => ScalingDecision::Wait,
        _ => ScalingDecision::Scale { alarm, units },
    }
}

/// The capacity of which a minute's half units use exactly the target, in units per second.
fn fitting_units(halves: u64, target_percent: f64) -> f64 {
    let units_per_second = halves as f64 / 2.0 / 60.0;
    units_per_second * 100.0 / target_percent
}

/// The next whole number of units, which is never less than one.
fn whole_units(units: f64) -> u64 {
    ((units * (1.0 - ROUNDING)).ceil() as u64).max(1)
}
