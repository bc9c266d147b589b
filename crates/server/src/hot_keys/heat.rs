//! What the partitions of a table or a global index consumed, minute by minute.

use std::collections::VecDeque;

/// How many minutes are kept.
pub const MINUTES_MAX: usize = 60;
/// How many partitions have their own figures in each minute: the first ones that were used. The
/// others are added up.
pub const PARTITIONS_MAX: usize = 32;

#[derive(Debug, Default)]
pub struct Heat {
    /// Oldest first. Minutes without requests are left out.
    minutes: VecDeque<HeatMinute>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatMinute {
    /// Minutes since the epoch.
    pub minute: u64,
    /// By the partition's id.
    pub partitions: Vec<(u32, Use)>,
    /// Everything else.
    pub others: Use,
}

/// What was consumed, and how often a limit was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    pub read_halves: u64,
    pub write_halves: u64,
    pub throttle_events: u64,
}

impl Use {
    pub fn add(&mut self, other: Use) {
        self.read_halves += other.read_halves;
        self.write_halves += other.write_halves;
        self.throttle_events += other.throttle_events;
    }
}

impl Heat {
    /// Threads add their requests late, so the minute may be an older one.
    pub fn add(&mut self, minute: u64, partition: u32, used: Use) {
        let Some(minute) = self.minute(minute) else { return };
        match minute.partitions.iter().position(|(id, _)| *id == partition) {
            Some(at) => minute.partitions[at].1.add(used),
            None if minute.partitions.len() < PARTITIONS_MAX => {
                minute.partitions.push((partition, used));
            }
            None => minute.others.add(used),
        }
    }

    /// A minute's figures, which begin empty; `None` if it is too long ago.
    fn minute(&mut self, minute: u64) -> Option<&mut HeatMinute> {
        let newest = self.minutes.back().map_or(minute, |newest| newest.minute.max(minute));
        let first = newest.saturating_sub(MINUTES_MAX as u64 - 1);
        while self.minutes.front().is_some_and(|oldest| oldest.minute < first) {
            self.minutes.pop_front();
        }
        if minute < first {
            return None;
        }
        // Nearly always the last one.
        let before = self.minutes.iter().rposition(|known| known.minute <= minute);
        let at = match before {
            Some(at) if self.minutes[at].minute == minute => at,
            before => {
                let at = before.map_or(0, |before| before + 1);
                let (partitions, others) = (Vec::new(), Use::default());
                self.minutes.insert(at, HeatMinute { minute, partitions, others });
                at
            }
        };
        self.minutes.get_mut(at)
    }

    /// The minutes that are still recent enough, oldest first.
    pub fn minutes(&self, now: u64) -> impl Iterator<Item = &HeatMinute> {
        let first = now.saturating_sub(MINUTES_MAX as u64 - 1);
        self.minutes.iter().filter(move |it| it.minute >= first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Use = Use { read_halves: 1, write_halves: 0, throttle_events: 0 };

    #[test]
    fn an_hour_is_kept() {
        let mut heat = Heat::default();
        (1_000..1_100).for_each(|minute| heat.add(minute, 3, READ));
        assert_eq!(heat.minutes.len(), MINUTES_MAX);
        assert_eq!(heat.minutes(1_099).next().unwrap().minute, 1_040);
        assert_eq!(heat.minutes(1_150).next().unwrap().minute, 1_091);
        heat.add(2_000, 3, READ);
        heat.add(2_000, 3, READ);
        assert_eq!(heat.minutes.len(), 1);
        let used = Use { read_halves: 2, ..Use::default() };
        assert_eq!(heat.minutes[0].partitions, [(3, used)]);
        // What is added late belongs to its own minute, unless that is too long ago.
        heat.add(1_999, 3, READ);
        heat.add(1_999, 3, READ);
        heat.add(1_940, 3, READ);
        let minutes = heat.minutes(2_000).map(|it| (it.minute, it.partitions[0].1.read_halves));
        assert_eq!(minutes.collect::<Vec<_>>(), [(1_999, 2), (2_000, 2)]);
    }

    #[test]
    fn many_partitions_are_added_up() {
        let mut heat = Heat::default();
        (0..1_000).for_each(|partition| heat.add(1, partition, READ));
        let minute = heat.minutes(1).next().unwrap();
        assert_eq!(minute.partitions.len(), PARTITIONS_MAX);
        assert_eq!(minute.others.read_halves, 1_000 - PARTITIONS_MAX as u64);
    }
}
