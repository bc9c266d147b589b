//! Writes that share a transaction.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use zenobe_store::{Error, Key};

use super::effects::WritePhase;
use crate::answers::Asker;
use zenobe_store::key_map::{KeyMap, KeySet};

pub type GroupId = u64;

/// The size at which a group is closed to more writes.
const WRITES_MAX: usize = 256;
const SIZE_BYTES_MAX: usize = 4 << 20;

/// While fewer writes than these are in flight, a node with few concurrent writes sends a group at once.
const FEW_WRITES: usize = 8;
/// The longest that a group gathers writes while other groups are in flight. Most commits take less than this, even on a busy machine, and
/// each one that ends lowers the number that the group must reach. But a lock or a silent connection may hold up a group in flight.
const BATCH_WINDOW: Duration = Duration::from_millis(20);
/// A node with so many concurrent writes waits for others of them even if few are in flight.
const MANY_WRITES: usize = 32;
/// How long it waits then, at most; timers may add a millisecond. Where a commit takes less than this, groups would hold only what arrives
/// during one.
const SHORT_WINDOW: Duration = Duration::from_millis(1);

/// How busy the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLoad {
    /// How many writes the groups in flight hold.
    pub writes_in_flight: usize,
    /// Since when these have been few. Meaningless while they are many.
    pub few_since: Instant,
    /// How many writes have lately been waiting and in flight at once.
    pub writes_peak: usize,
}

impl QueueLoad {
    pub fn are_few_in_flight(&self) -> bool {
        self.writes_in_flight < FEW_WRITES
    }

    /// How many writes a group must hold to be sent at once.
    fn writes_wanted(&self) -> usize {
        let peak = if self.writes_peak < MANY_WRITES { 0 } else { self.writes_peak };
        // Half of the writes form a group while the other half is in flight.
        match self.are_few_in_flight() {
            true => peak / 2,
            false => self.writes_in_flight.max(peak / 2),
        }
    }
}

/// The most writes that were seen within the last two periods.
#[derive(Debug)]
pub struct RecentPeak {
    period_end: Instant,
    now: usize,
    before: usize,
}

const PEAK_PERIOD: Duration = Duration::from_millis(20);

impl RecentPeak {
    pub fn new(now: Instant) -> RecentPeak {
        RecentPeak { period_end: now + PEAK_PERIOD, now: 0, before: 0 }
    }

    pub fn observe(&mut self, writes: usize, now: Instant) {
        if now >= self.period_end {
            let is_next = now < self.period_end + PEAK_PERIOD;
            self.before = if is_next { self.now } else { 0 };
            self.now = 0;
            self.period_end = now + PEAK_PERIOD;
        }
        self.now = self.now.max(writes);
    }

    pub fn get(&self) -> usize {
        self.now.max(self.before)
    }
}

/// A key as a decision saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The revision of its row, or `None` if there was none.
    pub revision: Option<i64>,
    /// Whether it is a key, not only a guard.
    pub is_exclusive: bool,
}

/// A declared key of one write.
#[derive(Debug, Clone)]
pub struct SeenKey<'a> {
    pub key: &'a Key,
    pub expected: Expected,
    /// The group whose change was seen, if that group was in flight.
    pub in_group: Option<GroupId>,
}

pub struct Group {
    pub id: GroupId,
    /// The revision of the rows that its first segment writes. Each later segment adds one.
    pub revision: i64,
    pub reads: KeyMap<Key, Expected>,
    pub segments: Vec<WritePhase>,
    pub waiting: Vec<Waiting>,
    /// Groups that must commit first, because decisions in this group depend on them.
    pub after: HashSet<GroupId>,
    /// Whether no other write may join.
    pub is_alone: bool,
    /// Where its additions to counters go. No two groups in flight of a node share one. 0 until the group is sent.
    pub slot: i16,
    /// The counters whose rows it may have to create, and must lock.
    pub unmarked_counters: KeySet<Key>,
    /// Whether some decision in it was made on what the node remembered, not on what it had just read.
    pub is_remembered: bool,
    size_bytes: usize,
    begun: Instant,
    done: watch::Sender<bool>,
}

/// A write that waits for its group to commit.
pub struct Waiting {
    pub asker: Asker<GroupResult>,
    /// How many of the group's appends, in order, belong to this write.
    pub appends: usize,
}

/// The result of a group, for one of its writes.
#[derive(Debug)]
pub enum GroupResult {
    Committed(Vec<u64>),
    /// A value has changed since the decision: decide again.
    Again,
    /// The connection was lost and nothing was committed: decide again.
    Lost(String),
    /// A write of the group adds to a value that is not a counter. Each retries alone.
    Alone,
    Failed(Error),
}

impl Group {
    pub fn new(id: GroupId, revision: i64, is_alone: bool) -> Group {
        Group {
            id,
            revision,
            reads: KeyMap::default(),
            segments: vec![WritePhase::default()],
            waiting: Vec::new(),
            after: HashSet::new(),
            is_alone,
            slot: 0,
            unmarked_counters: KeySet::default(),
            is_remembered: false,
            size_bytes: 0,
            begun: Instant::now(),
            done: watch::Sender::new(false),
        }
    }

    pub fn has_room(&self) -> bool {
        !self.is_alone && self.waiting.len() < WRITES_MAX && self.size_bytes < SIZE_BYTES_MAX
    }

    /// Whether every group that its decisions depend on has committed.
    pub fn is_ready(&self) -> bool {
        self.after.is_empty()
    }

    /// Whether to send it now. On a node with few concurrent writes nobody waits. Otherwise the group grows until it holds about half of
    /// them, and no fewer than are in flight, because few large transactions cost far less than many small ones.
    pub fn is_due(&self, load: &QueueLoad, now: Instant) -> bool {
        self.waiting.len() >= load.writes_wanted()
            || !self.has_room()
            || now >= self.window_end(load)
    }

    pub fn window_end(&self, load: &QueueLoad) -> Instant {
        match load.are_few_in_flight() {
            true => self.begun.max(load.few_since) + SHORT_WINDOW,
            false => self.begun + BATCH_WINDOW,
        }
    }

    /// Whether the group has not seen these keys with other values.
    pub fn agrees(&self, seen: &[SeenKey<'_>]) -> bool {
        seen.iter().filter(|seen| seen.in_group != Some(self.id)).all(|seen| {
            let own = self.reads.get(seen.key);
            own.is_none_or(|own| own.revision == seen.expected.revision)
        })
    }

    /// Adds a write, which must have been checked.
    pub fn join(
        &mut self,
        seen: &[SeenKey<'_>],
        mut segments: Vec<WritePhase>,
        asker: Asker<GroupResult>,
    ) -> Result<(), Error> {
        let appends = segments.iter().map(|segment| segment.appends.len()).sum();
        self.size_bytes += segments.iter().map(WritePhase::size_bytes).sum::<usize>();
        for SeenKey { key, expected, in_group } in seen {
            match self.reads.get_mut(*key) {
                Some(own) => own.is_exclusive |= expected.is_exclusive,
                // The store can't confirm what this group itself writes.
                None if *in_group == Some(self.id) => {}
                None => _ = self.reads.insert((*key).clone(), *expected),
            }
        }
        match segments.len() {
            1 if segments[0].is_mergeable() => {
                self.segments[0].merge(segments.remove(0))?;
            }
            _ => self.segments = segments,
        }
        self.waiting.push(Waiting { asker, appends });
        Ok(())
    }

    pub fn done(&self) -> watch::Receiver<bool> {
        self.done.subscribe()
    }

    pub fn announce(&self) {
        self.done.send_replace(true);
    }

    pub fn appends(&self) -> usize {
        self.segments.iter().map(|segment| segment.appends.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(writes: usize) -> Group {
        let mut group = Group::new(1, 1, false);
        for _ in 0..writes {
            let (asker, _) = Asker::new();
            group.join(&[], vec![WritePhase::default()], asker).unwrap();
        }
        group
    }

    fn load(writes_in_flight: usize, writes_peak: usize) -> QueueLoad {
        QueueLoad { writes_in_flight, few_since: Instant::now(), writes_peak }
    }

    #[test]
    fn a_small_group_grows_while_many_writes_are_in_flight() {
        for (writes, in_flight, peak, is_due) in [
            (1, 0, 1, true),
            (1, FEW_WRITES - 1, FEW_WRITES, true),
            (1, FEW_WRITES, FEW_WRITES + 1, false),
            (14, 15, 29, false),
            (15, 15, 30, true),
            (WRITES_MAX - 1, WRITES_MAX, 2 * WRITES_MAX, false),
            (WRITES_MAX, 3 * WRITES_MAX, 4 * WRITES_MAX, true),
        ] {
            let group = of(writes);
            let load = load(in_flight, peak);
            assert_eq!(group.is_due(&load, group.begun), is_due, "{writes} {in_flight}");
            assert!(group.is_due(&load, group.window_end(&load)), "{writes} {in_flight}");
        }
        let alone = Group { is_alone: true, ..of(1) };
        assert!(alone.is_due(&load(100, 101), alone.begun), "nothing can join it");
    }

    #[test]
    fn half_of_many_writes_form_a_group() {
        let group = of(40);
        assert!(!group.is_due(&load(0, 100), group.begun));
        assert!(!group.is_due(&load(20, 100), group.begun));
        assert!(group.is_due(&load(0, 80), group.begun));
        assert!(group.is_due(&load(0, MANY_WRITES - 1), group.begun));
        // It waits from when it could have been sent, not from when it began.
        let idle = load(0, 100);
        assert!(!group.is_due(&idle, idle.few_since));
        assert!(group.is_due(&idle, idle.few_since + SHORT_WINDOW));
    }

    #[test]
    fn a_peak_is_forgotten_after_two_periods() {
        let start = Instant::now();
        let mut peak = RecentPeak::new(start);
        peak.observe(100, start);
        peak.observe(3, start + PEAK_PERIOD);
        assert_eq!(peak.get(), 100);
        peak.observe(4, start + 2 * PEAK_PERIOD);
        assert_eq!(peak.get(), 4);
        peak.observe(50, start + 2 * PEAK_PERIOD);
        peak.observe(1, start + 9 * PEAK_PERIOD);
        assert_eq!(peak.get(), 1, "nothing was seen for a while");
    }
}
