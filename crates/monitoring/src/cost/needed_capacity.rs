//! What would have to be provisioned for the observed traffic, minute by minute. Peaks within a minute
//! are not seen.

use std::collections::VecDeque;
use std::ops::Range;

use zenobe_engine::Limits;

/// What a table or index consumed in a minute, in half units. Minutes are counted from the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinuteUse {
    pub minute: u64,
    pub halves: u64,
}

/// The half units that one provisioned unit serves in a minute.
const HALVES_PER_MINUTE: u64 = 120;
/// Unused capacity of this many minutes is saved for a burst.
const BURST_MINUTES: u64 = 5;

/// The cheapest capacity that never changes and would not have throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstantCapacity {
    pub units: u64,
    /// What it would have to be without a burst.
    pub units_without_burst: u64,
    /// In how many minutes saved capacity was used.
    pub burst_minutes: u64,
}

impl ConstantCapacity {
    /// `uses` are in order; minutes without one consumed nothing.
    pub fn for_traffic(uses: &[MinuteUse]) -> ConstantCapacity {
        let peak = uses.iter().map(|used| used.halves).max().unwrap_or(0);
        let units_without_burst = peak.div_ceil(HALVES_PER_MINUTE).max(1);
        // The least that is enough: more is always enough, too.
        let (mut low, mut high) = (1, units_without_burst);
        while low < high {
            let middle = low.midpoint(high);
            match is_enough(middle, uses) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let is_burst = |used: &&MinuteUse| used.halves > high * HALVES_PER_MINUTE;
        ConstantCapacity {
            units: high,
            units_without_burst,
            burst_minutes: uses.iter().filter(is_burst).count() as u64,
        }
    }
}

fn is_enough(units: u64, uses: &[MinuteUse]) -> bool {
    let mut bucket = BurstBucket::default();
    let mut next = None;
    uses.iter().all(|used| {
        let idle = next.map_or(0, |next| used.minute.saturating_sub(next));
        bucket.rest(units, idle);
        next = Some(used.minute + 1);
        bucket.serve(units, used.halves) == used.halves
    })
}

/// What has been saved for a burst. It begins empty, as that of a new table.
#[derive(Debug, Default)]
struct BurstBucket {
    halves: u64,
}

impl BurstBucket {
    /// Minutes without requests.
    fn rest(&mut self, units: u64, minutes: u64) {
        let saved = units * HALVES_PER_MINUTE * minutes.min(BURST_MINUTES);
        self.halves = (self.halves + saved).min(units * HALVES_PER_MINUTE * BURST_MINUTES);
    }

    /// A minute; returns what could be served.
    fn serve(&mut self, units: u64, halves: u64) -> u64 {
        let available = self.halves + units * HALVES_PER_MINUTE;
        let served = halves.min(available);
        let saved_max = units * HALVES_PER_MINUTE * BURST_MINUTES;
        self.halves = (available - served).min(saved_max);
        served
    }
}

/// What auto scaling would have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScaledCapacity {
    /// The sum over all minutes, which is what is paid.
    pub unit_minutes: u64,
    pub minutes: u64,
    pub units_max: u64,
    pub increases: u64,
    pub decreases: u64,
    /// Minutes in which more was requested than capacity and burst could serve.
    pub throttled_minutes: u64,
}

impl ScaledCapacity {
    pub fn mean_units(&self) -> f64 {
        self.unit_minutes as f64 / self.minutes.max(1) as f64
    }

    /// Follows AWS's rules for a target of 70 %, over the minutes that were observed. `observed` are
    /// ranges of minutes in order, `uses` as well. It begins with what the first minute with requests needs,
    /// as if the traffic had been there before: a month does not begin with an empty table.
    pub fn for_traffic(observed: &[Range<u64>], uses: &[MinuteUse]) -> ScaledCapacity {
        let is_observed = |used: &&MinuteUse| observed.iter().any(|it| it.contains(&used.minute));
        let first = uses.iter().find(is_observed).map_or(0, |used| used.halves);
        let mut scaler = Scaler::new(first);
        let mut uses = uses.iter().peekable();
        for minute in observed.iter().flat_map(Range::clone) {
            while uses.next_if(|used| used.minute < minute).is_some() {}
            let used = uses.next_if(|used| used.minute == minute);
            scaler.minute(minute, used.map_or(0, |used| used.halves));
        }
        scaler.done
    }
}

/// Scale out if more than the target was used for this many minutes in a row.
const HIGH_MINUTES: usize = 2;
/// Scale in if utilisation was at least 20 percentage points below the target for this many. The busiest of them decides.
const LOW_MINUTES: usize = 15;
/// Half units per minute and unit: 70 % of what a unit serves.
const TARGET_HALVES: u64 = 84;
/// 50 % of it.
const LOW_HALVES: u64 = 60;
const UNITS_MIN: u64 = 1;
/// AWS's quota for a table.
const UNITS_MAX: u64 = Limits::TABLE_CAPACITY_UNITS as u64;
/// This many decreases a day are allowed at any time, and further ones an hour after the last.
const DECREASES_FREE: u32 = 4;
const DECREASES_MAX: u32 = 27;
const MINUTES_PER_HOUR: u64 = 60;
const MINUTES_PER_DAY: u64 = 24 * MINUTES_PER_HOUR;

struct Scaler {
    units: u64,
    bucket: BurstBucket,
    /// What was consumed in the last minutes, the newest last.
    recent: VecDeque<u64>,
    day: u64,
    decreases_today: u32,
    last_decrease: Option<u64>,
    done: ScaledCapacity,
}

impl Scaler {
    fn new(first_halves: u64) -> Scaler {
        Scaler {
            units: wanted_units(first_halves),
            bucket: BurstBucket::default(),
            recent: VecDeque::with_capacity(LOW_MINUTES),
            day: 0,
            decreases_today: 0,
            last_decrease: None,
            done: ScaledCapacity::default(),
        }
    }

    fn minute(&mut self, minute: u64, requested: u64) {
        let consumed = self.bucket.serve(self.units, requested);
        self.done.unit_minutes += self.units;
        self.done.minutes += 1;
        self.done.units_max = self.done.units_max.max(self.units);
        self.done.throttled_minutes += u64::from(consumed < requested);
        // Alarms see what was consumed, not what was asked for.
        if self.recent.len() == LOW_MINUTES {
            self.recent.pop_front();
        }
        self.recent.push_back(consumed);
        if let Some(wanted) = self.wanted_out() {
            self.done.increases += 1;
            self.units = wanted;
        } else if let Some(wanted) = self.wanted_in()
            && self.may_decrease(minute)
        {
            self.done.decreases += 1;
            self.decreases_today += 1;
            self.last_decrease = Some(minute);
            self.units = wanted;
        }
    }

    /// The larger capacity that the high alarm asks for. Alarms compare all their minutes with the present
    /// capacity.
    fn wanted_out(&self) -> Option<u64> {
        let above = |halves: &&u64| **halves > self.units * TARGET_HALVES;
        let is_high = self.recent.iter().rev().take_while(above).count() >= HIGH_MINUTES;
        let wanted = wanted_units(*self.recent.back()?);
        (is_high && wanted > self.units).then_some(wanted)
    }

    /// The smaller capacity that the low alarm asks for.
    fn wanted_in(&self) -> Option<u64> {
        let busiest = *self.recent.iter().max()?;
        let is_low = self.recent.len() == LOW_MINUTES && busiest <= self.units * LOW_HALVES;
        let wanted = wanted_units(busiest);
        (is_low && wanted < self.units).then_some(wanted)
    }

    fn may_decrease(&mut self, minute: u64) -> bool {
        let day = minute / MINUTES_PER_DAY;
        if day != self.day {
            (self.day, self.decreases_today) = (day, 0);
        }
        let rested = self.last_decrease.is_none_or(|last| minute - last >= MINUTES_PER_HOUR);
        self.decreases_today < DECREASES_FREE || (self.decreases_today < DECREASES_MAX && rested)
    }
}

/// The capacity of which this is 70 %.
fn wanted_units(halves: u64) -> u64 {
    halves.div_ceil(TARGET_HALVES).clamp(UNITS_MIN, UNITS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units, which are two half units each, from a minute on.
    fn uses(from: u64, units: &[u64]) -> Vec<MinuteUse> {
        let minutes = from..;
        let uses = minutes.zip(units).filter(|(_, units)| **units > 0);
        uses.map(|(minute, units)| MinuteUse { minute, halves: 2 * units }).collect()
    }

    #[test]
    fn constant_capacity_uses_the_burst() {
        let check = |units: &[u64], expected: [u64; 3]| {
            let constant = ConstantCapacity::for_traffic(&uses(100, units));
            let ConstantCapacity { units: found, units_without_burst, burst_minutes } = constant;
            assert_eq!([found, units_without_burst, burst_minutes], expected, "{units:?}");
        };
        check(&[], [1, 1, 0]);
        check(&[60, 60, 60], [1, 1, 0]);
        // Nothing has been saved yet.
        check(&[600], [10, 10, 0]);
        // 5 idle minutes save 5 of 6 minutes' worth: 600 units in one minute need 100 per minute.
        check(&[1, 0, 0, 0, 0, 0, 600], [2, 10, 1]);
        // Twice in a row the saved capacity does not last: 2 · 360 < 600 + 600, but 3 · 360 + 3 · 60 is enough.
        check(&[1, 0, 0, 0, 0, 0, 600, 600], [3, 10, 2]);
        // More than five minutes are not saved.
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 720], [2, 12, 1]);
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 721], [3, 13, 1]);
    }

    /// The capacity in each minute, by running the simulation up to it.
    fn scaled(from: u64, units: &[u64]) -> (Vec<u64>, ScaledCapacity) {
        let uses = uses(from, units);
        let run = |minutes: u64| {
            let observed = from..from + minutes;
            ScaledCapacity::for_traffic(std::slice::from_ref(&observed), &uses)
        };
        let minutes = units.len() as u64;
        let by_minute =
            (0..minutes).map(|minute| run(minute + 1).unit_minutes - run(minute).unit_minutes);
        (by_minute.collect(), run(minutes))
    }

    #[test]
    fn scaling_out_takes_two_minutes_above_the_target() {
        // One unit serves 60 in a minute; its target is 42. 126 / 42 = 3.
        let (capacity, done) = scaled(0, &[42, 42, 43, 10, 43, 43, 43, 126, 126, 126, 126]);
        // The first minutes save capacity, so that 126 can be served.
        assert_eq!(capacity, [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!((done.increases, done.decreases, done.throttled_minutes), (2, 0, 0));
        assert_eq!((done.unit_minutes, done.units_max), (18, 3));
    }

    #[test]
    fn what_could_not_be_served_slows_scaling_down() {
        // 600 are asked for, but 60 served: 60 / 42 = 2 units, then 120 / 42 = 3, then 180 / 42 = 5.
        let (capacity, done) = scaled(0, &[10, 600, 600, 600, 600, 600, 600, 600, 600, 600]);
        assert_eq!(capacity, [1, 1, 1, 2, 2, 3, 3, 5, 5, 8]);
        assert_eq!(done.throttled_minutes, 9);
    }

    #[test]
    fn scaling_in_takes_fifteen_minutes_below() {
        let mut units = vec![420; 12];
        units.extend([0; 20]);
        let (capacity, done) = scaled(0, &units);
        // It begins with what the first minute needs. Idle minutes are the 13th to the 27th.
        assert_eq!(capacity[..27], [10; 27]);
        assert_eq!(capacity[27..], [1; 5]);
        assert_eq!(done.decreases, 1);
        // Exactly half is low enough: 300 / 42 = 8 units.
        let mut units = vec![420; 12];
        units.extend([300; 20]);
        let (capacity, done) = scaled(0, &units);
        assert_eq!((&capacity[..27], &capacity[27..]), (&[10; 27][..], &[8; 5][..]));
        assert_eq!(done.decreases, 1);
        units[12..].fill(301);
        assert_eq!(scaled(0, &units).1.decreases, 0);
    }

    #[test]
    fn the_busiest_of_the_quiet_minutes_says_what_stays() {
        let mut units = vec![420; 12];
        units.push(84);
        units.extend([0; 19]);
        let (capacity, done) = scaled(0, &units);
        // 84 / 42 = 2 units, until that minute is one of the last fifteen no more.
        assert_eq!(capacity[..27], [10; 27]);
        assert_eq!(capacity[27..], [2, 1, 1, 1, 1]);
        assert_eq!(done.decreases, 2);
    }

    #[test]
    fn decreases_are_limited_by_day() {
        // Every 30 minutes a peak of 12 and a rest of 18 minutes: more than four decreases in the first hours.
        let day: Vec<u64> =
            (0..24 * 60).map(|minute| if minute % 30 < 12 { 420 } else { 0 }).collect();
        let (_, done) = scaled(0, &day);
        // Four at any time, and one per hour for the rest of the day.
        assert!((20..=27).contains(&done.decreases), "{}", done.decreases);
        let (_, unlimited) = scaled(0, &day[..120]);
        assert_eq!(unlimited.decreases, 4);
    }

    #[test]
    fn minutes_that_were_not_observed_cost_nothing() {
        let done = ScaledCapacity::for_traffic(&[0..10, 100..105], &uses(50, &[42, 42]));
        assert_eq!((done.minutes, done.unit_minutes), (15, 15));
        assert_eq!(done.mean_units(), 1.0);
    }
}
