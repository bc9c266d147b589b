//! The commit queue of a node: which writes share a transaction, which must wait for another, and which values later decisions see.
//!
//! A group is ready once every group that its decisions depend on has committed. A node with few concurrent writes sends a ready group at
//! once. Otherwise it is sent when it is large enough ([`Group::is_due`]), as long as a connection is free. Until then more writes
//! join it. A transaction costs PostgreSQL and the node as much as dozens of rows, so a busy node must not send many small groups.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use zenobe_store::{Error, Key, KeyRange, Result, Value, WriteSet};

use super::cache::{Cache, Known};
use super::commit::{Outcome, commit};
use super::effects::{Effect, WritePhase};
use super::group::{
    Expected, Group, GroupId, GroupResult, QueueLoad, RecentPeak, SeenKey, Waiting,
};
use super::marked_counters::{MarkedCounters, SLOTS};
use super::trust::CacheTrust;
use crate::answers::{Answers, Asker};
use crate::options::Options;
use crate::pool::Pool;
use crate::rows::Read;
use zenobe_store::key_map::KeyMap;

pub struct Queue {
    pool: Arc<Pool>,
    in_flight_max: usize,
    /// The first counter slot of this node, chosen at random so that nodes rarely share one.
    first_slot: i16,
    state: Mutex<QueueState>,
    pub groups: AtomicU64,
    pub committed_writes: AtomicU64,
}

struct QueueState {
    cache: Cache,
    counters: MarkedCounters,
    /// Whether decisions on cached values are worth trying.
    trust: CacheTrust,
    /// The puts and deletes of groups that have not committed yet.
    overlay: KeyMap<Key, Overlaid>,
    waiting: VecDeque<Group>,
    in_flight: HashMap<GroupId, Arc<Group>>,
    /// How many writes the groups in flight hold.
    writes_in_flight: usize,
    /// Since when these have been few.
    few_since: Instant,
    /// How many writes were waiting and in flight at once.
    writes_peak: RecentPeak,
    /// The end of the batch window for which a task waits.
    timer: Option<Instant>,
    last_id: u64,
    is_closed: bool,
    is_idle: bool,
    /// Notified of changes of that.
    idle: watch::Sender<bool>,
}

#[derive(Clone)]
struct Overlaid {
    /// `None` if it is unknown until the commit.
    value: Option<Option<Value>>,
    revision: i64,
    group: GroupId,
    /// Distinguishes this change of the key from later ones.
    change: u64,
}

/// The declared keys as a decision sees them.
pub struct SeenValues {
    pub values: Vec<Option<Value>>,
    /// Where each of the values comes from.
    origins: Vec<ValueOrigin>,
}

enum ValueOrigin {
    Settled(Option<i64>),
    InFlight { revision: Option<i64>, group: GroupId, change: u64 },
}

impl SeenValues {
    pub fn of(reads: &[Read]) -> SeenValues {
        SeenValues {
            values: reads.iter().map(|read| read.value.clone()).collect(),
            origins: reads.iter().map(|read| ValueOrigin::Settled(read.revision)).collect(),
        }
    }

    /// Whether a single statement has read all of it.
    pub fn is_one_state(&self, reads: &[Read]) -> bool {
        self.origins.iter().zip(reads).all(|(origin, read)| match origin {
            ValueOrigin::Settled(revision) => *revision == read.revision,
            ValueOrigin::InFlight { .. } => false,
        })
    }

    /// Waits until the groups that the decision saw in flight have committed or failed.
    pub async fn settle(&self, queue: &Queue) {
        for origin in &self.origins {
            if let ValueOrigin::InFlight { group, .. } = origin {
                queue.end_of(*group).await;
            }
        }
    }
}

pub enum Lookup {
    Known(SeenValues),
    /// A key must be read first.
    Missing,
    /// The value of a key is unknown until this group commits.
    Wait(GroupId),
}

/// How a write was decided, and how it wants to be committed.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub is_alone: bool,
    /// On what the node remembered, not on what it has just read.
    pub is_remembered: bool,
}

pub enum Joined {
    Waiting(oneshot::Receiver<GroupResult>),
    /// A value that the decision saw has changed.
    Changed,
}

impl Queue {
    pub fn new(pool: Arc<Pool>, options: &Options) -> Queue {
        let now = Instant::now();
        let state = QueueState {
            cache: Cache::new(options.cache_bytes),
            counters: MarkedCounters::default(),
            trust: CacheTrust::default(),
            overlay: KeyMap::default(),
            waiting: VecDeque::new(),
            in_flight: HashMap::new(),
            writes_in_flight: 0,
            few_since: now,
            writes_peak: RecentPeak::new(now),
            timer: None,
            last_id: 0,
            is_closed: false,
            is_idle: true,
            idle: watch::Sender::new(true),
        };
        Queue {
            pool,
            in_flight_max: options.writers.max(1),
            first_slot: rand::random_range(0..SLOTS),
            state: Mutex::new(state),
            groups: AtomicU64::new(0),
            committed_writes: AtomicU64::new(0),
        }
    }

    /// The values of the declared keys after all changes in flight. `fresh` is what this write has just read.
    pub fn look_up(&self, set: WriteSet<'_>, fresh: Option<&[Read]>) -> Result<Lookup> {
        let count = set.guards.len() + set.keys.len();
        let mut view =
            SeenValues { values: Vec::with_capacity(count), origins: Vec::with_capacity(count) };
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if fresh.is_none() && !state.trust.check() {
            // Guards change rarely; if one does, all that rest on it notice.
            set.keys.iter().for_each(|key| state.cache.remove(key));
        }
        for (position, key) in declared(set).enumerate() {
            let (value, origin) = match state.overlay.get(key) {
                Some(overlaid) => match &overlaid.value {
                    Some(value) => (value.clone(), overlaid.origin()),
                    None => return Ok(Lookup::Wait(overlaid.group)),
                },
                None => match (state.cache.get(key), fresh) {
                    (Some(known), _) => (known.value, ValueOrigin::Settled(known.revision)),
                    (None, Some(fresh)) => {
                        let read = &fresh[position];
                        (read.value.clone(), ValueOrigin::Settled(read.revision))
                    }
                    (None, None) => return Ok(Lookup::Missing),
                },
            };
            view.values.push(value);
            view.origins.push(origin);
        }
        Ok(Lookup::Known(view))
    }

    /// Waits until a group has committed or failed.
    pub async fn end_of(&self, group: GroupId) {
        let done = self.state.lock().done(group);
        if let Some(mut done) = done {
            let _gone = done.wait_for(|done| *done).await;
        }
    }

    /// Caches what was read, unless something newer may be known.
    pub fn remember(&self, set: WriteSet<'_>, reads: &[Read]) {
        let mut state = self.state.lock();
        for (key, read) in declared(set).zip(reads) {
            if read.is_settled
                && !state.overlay.contains_key(key)
                && state.cache.revision(key).is_none()
            {
                let known = Known { value: read.value.clone(), revision: read.revision };
                state.cache.put(key, known);
            }
        }
    }

    pub fn forget(&self, set: WriteSet<'_>) {
        let mut state = self.state.lock();
        declared(set).for_each(|key| state.cache.remove(key));
    }

    /// Adds a decided write to a group, behind every group that its decision depends on.
    pub fn join(
        self: &Arc<Queue>,
        set: WriteSet<'_>,
        view: &SeenValues,
        segments: Vec<WritePhase>,
        manner: Manner,
    ) -> Result<Joined> {
        let (asker, answered) = Asker::new();
        let seen = seen(set, view);
        let own_keys: Vec<Key> =
            segments.iter().flat_map(|segment| segment.entries.keys().cloned()).collect();
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if !state.is_as_seen(set, view) {
            return Ok(Joined::Changed);
        }
        let after = state.rests_on(set, view, &segments);
        let is_alone = manner.is_alone || segments.len() > 1 || !segments[0].is_mergeable();
        let place = state.place(&after, &seen, &segments[0], is_alone)?;
        let group = &mut state.waiting[place];
        group.is_remembered |= manner.is_remembered;
        group.after.extend(after.into_iter().filter(|id| *id != group.id));
        group.join(&seen, segments, asker)?;
        state.overlay(place, set, own_keys);
        if std::mem::replace(&mut state.is_idle, false) {
            state.idle.send_replace(false);
        }
        state.observe_writes();
        self.pump(&mut state);
        Ok(Joined::Waiting(answered))
    }

    /// Sends every group that is ready and due, as long as there are free connections. Ready groups don't depend on each other, so a
    /// due one may overtake one that still grows.
    fn pump(self: &Arc<Queue>, state: &mut QueueState) {
        while state.in_flight.len() < self.in_flight_max {
            let (now, load) = (Instant::now(), state.load());
            let is_due = |group: &Group| group.is_due(&load, now);
            let due = state.waiting.iter().position(|group| group.is_ready() && is_due(group));
            let Some(due) = due else {
                let ready = state.waiting.iter().filter(|group| group.is_ready());
                if let Some(window_end) = ready.map(|group| group.window_end(&load)).min() {
                    self.pump_at(state, window_end);
                }
                return;
            };
            let mut group = state.waiting.remove(due).expect("the position is that of a group");
            group.slot = self.free_slot(state);
            group.unmarked_counters = state.counters.unmarked(&group.segments, group.slot);
            let group = Arc::new(group);
            state.writes_in_flight += group.waiting.len();
            state.in_flight.insert(group.id, Arc::clone(&group));
            let queue = Arc::clone(self);
            self.pool.runtime.spawn(async move { queue.run(group).await });
        }
    }

    /// A counter slot that no group in flight uses, so groups never wait for each other's additions.
    fn free_slot(&self, state: &QueueState) -> i16 {
        let is_free = |slot: &i16| state.in_flight.values().all(|group| group.slot != *slot);
        let mut slots = (0..SLOTS).map(|number| 1 + (self.first_slot + number) % SLOTS);
        // With more groups in flight than slots, two of them share one, and one waits.
        slots.find(is_free).unwrap_or(1 + self.first_slot)
    }

    /// Looks again at the end of a batch window, unless it does so before.
    fn pump_at(self: &Arc<Queue>, state: &mut QueueState, window_end: Instant) {
        if state.timer.is_some_and(|timer| timer <= window_end) {
            return;
        }
        state.timer = Some(window_end);
        let queue = Arc::clone(self);
        self.pool.runtime.spawn(async move {
            tokio::time::sleep_until(window_end.into()).await;
            let mut state = queue.state.lock();
            state.timer.take_if(|timer| *timer == window_end);
            queue.pump(&mut state);
        });
    }

    async fn run(self: Arc<Queue>, group: Arc<Group>) {
        let outcome = commit(&self.pool, &group).await;
        self.finish(group, outcome);
    }

    /// Sends the next groups, and then the answers: every write of the node waits for the lock meanwhile.
    fn finish(self: &Arc<Queue>, group: Arc<Group>, outcome: Outcome) {
        let mut answers = Answers::default();
        let mut state = self.state.lock();
        state.in_flight.remove(&group.id);
        let were_few = state.load().are_few_in_flight();
        state.writes_in_flight -= group.waiting.len();
        if !were_few && state.load().are_few_in_flight() {
            state.few_since = Instant::now();
        }
        let group = Arc::into_inner(group).expect("the queue has just let go of it");
        let mut fail = |state: &mut QueueState, group, answer: &dyn Fn(usize) -> GroupResult| {
            state.fail(group, answer, &mut answers);
        };
        let mut committed = None;
        match outcome {
            Outcome::Committed(sequences) => {
                self.groups.fetch_add(1, Ordering::Relaxed);
                self.committed_writes.fetch_add(group.waiting.len() as u64, Ordering::Relaxed);
                if group.is_remembered {
                    state.trust.record_commit();
                }
                state.settle(&group);
                state.waiting.iter_mut().for_each(|waiting| _ = waiting.after.remove(&group.id));
                group.announce();
                committed = Some((group, sequences));
            }
            Outcome::Conflict => {
                if group.is_remembered {
                    state.trust.record_conflict();
                }
                fail(&mut state, group, &|_| GroupResult::Again);
            }
            Outcome::Lost(detail) => {
                fail(&mut state, group, &|_| GroupResult::Lost(detail.clone()));
            }
            Outcome::NoCounter => fail(&mut state, group, &|writes| match writes {
                1 => {
                    let detail = "an addition to what is not a counter".to_owned();
                    GroupResult::Failed(Error::Corrupt { detail })
                }
                _ => GroupResult::Alone,
            }),
            Outcome::Failed(error) => {
                fail(&mut state, group, &|_| GroupResult::Failed(error.clone()));
            }
        }
        if state.in_flight.is_empty() && state.waiting.is_empty() {
            state.is_idle = true;
            state.idle.send_replace(true);
        }
        self.pump(&mut state);
        drop(state);
        if let Some((group, sequences)) = committed {
            let mut sequences = sequences.into_iter();
            for Waiting { asker, appends } in group.waiting {
                let own = sequences.by_ref().take(appends).collect();
                answers.push(asker, GroupResult::Committed(own));
            }
        }
        drop(answers);
    }

    /// Refuses new writes, and waits for the accepted ones.
    pub async fn close(&self) {
        let mut idle = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.idle.subscribe()
        };
        let _gone = idle.wait_for(|idle| *idle).await;
    }
}

impl QueueState {
    /// Tells when the group has committed or failed, unless it has.
    fn done(&self, group: GroupId) -> Option<watch::Receiver<bool>> {
        let in_flight = self.in_flight.get(&group).map(|group| group.done());
        in_flight.or_else(|| self.waiting.iter().find(|it| it.id == group).map(Group::done))
    }

    fn load(&self) -> QueueLoad {
        QueueLoad {
            writes_in_flight: self.writes_in_flight,
            few_since: self.few_since,
            writes_peak: self.writes_peak.get(),
        }
    }

    fn observe_writes(&mut self) {
        // Those that depend on a group in flight can't be sent, so nobody should wait for more of them.
        let ready = self.waiting.iter().filter(|group| group.is_ready());
        let waiting: usize = ready.map(|group| group.waiting.len()).sum();
        self.writes_peak.observe(self.writes_in_flight + waiting, Instant::now());
    }

    /// Whether the values that a decision saw are still current.
    fn is_as_seen(&self, set: WriteSet<'_>, view: &SeenValues) -> bool {
        declared(set).zip(&view.origins).all(|(key, origin)| {
            match (self.overlay.get(key), origin) {
                (Some(overlaid), ValueOrigin::InFlight { change, .. }) => {
                    overlaid.change == *change
                }
                (None, ValueOrigin::Settled(revision)) => {
                    self.cache.revision(key).is_none_or(|known| known == *revision)
                }
                _ => false,
            }
        })
    }

    /// The groups that must commit first: those whose values the decision saw, and those that write or declare the same keys. Writes
    /// of the same key commit in the order of their decisions.
    fn rests_on(
        &self,
        set: WriteSet<'_>,
        view: &SeenValues,
        segments: &[WritePhase],
    ) -> HashSet<GroupId> {
        let mut after = HashSet::new();
        for origin in &view.origins {
            if let ValueOrigin::InFlight { group, .. } = origin {
                after.insert(*group);
            }
        }
        let deletes_ranges = segments.iter().any(|segment| !segment.ranges.is_empty());
        for group in self.in_flight.values().map(|group| &**group).chain(&self.waiting) {
            let is_exclusive =
                |key: &Key| group.reads.get(key).is_some_and(|expected| expected.is_exclusive);
            if deletes_ranges
                || set.keys.iter().any(|key| group.reads.contains_key(key))
                || set.guards.iter().any(is_exclusive)
            {
                after.insert(group.id);
            }
        }
        for segment in segments {
            let overlaid = segment.entries.keys().filter_map(|key| self.overlay.get(key));
            after.extend(overlaid.map(|overlaid| overlaid.group));
        }
        after
    }

    /// The position of the group to join. It is not before any group that the write depends on, and preferably one that need not
    /// wait.
    fn place(
        &mut self,
        after: &HashSet<GroupId>,
        seen: &[SeenKey<'_>],
        segment: &WritePhase,
        is_alone: bool,
    ) -> Result<usize> {
        let last = self.waiting.iter().rposition(|group| after.contains(&group.id));
        let must_wait = after.iter().any(|id| self.in_flight.contains_key(id));
        let fits = |group: &Group, is_last: bool| {
            let waits_alike = is_last || group.after.is_empty() != must_wait;
            group.has_room() && group.agrees(seen) && waits_alike
        };
        if !is_alone {
            for place in last.unwrap_or(0)..self.waiting.len() {
                let group = &self.waiting[place];
                if fits(group, Some(place) == last) {
                    group.segments[0].check(segment)?;
                    return Ok(place);
                }
            }
        }
        self.last_id += 1;
        let revision = rand::random_range(1..i64::MAX / 2);
        self.waiting.push_back(Group::new(self.last_id, revision, is_alone));
        Ok(self.waiting.len() - 1)
    }

    /// Makes what the group at this position has just added visible to later decisions.
    fn overlay(&mut self, place: usize, set: WriteSet<'_>, keys: Vec<Key>) {
        let group = &self.waiting[place];
        let (id, revision) = (group.id, group.revision);
        let ranges: Vec<&KeyRange> =
            group.segments.iter().flat_map(|segment| &segment.ranges).collect();
        let in_range = set.keys.iter().filter(|key| ranges.iter().any(|range| range.contains(key)));
        let keys: Vec<Key> = in_range.cloned().chain(keys).collect();
        for key in keys {
            // A batch with ranges is a group of its own, in which the last segment that changes a key decides its value.
            let last = group.segments.iter().rev().find_map(|segment| {
                let deleted = segment.ranges.iter().any(|range| range.contains(&key));
                match (segment.entries.get(&key), deleted) {
                    (Some(Effect::Put(value)), _) => Some(Some(Some(value.clone()))),
                    (Some(Effect::Delete), _) => Some(Some(None)),
                    (Some(Effect::Add(_)), true) => Some(None),
                    (Some(Effect::Add(_)), false) => {
                        self.overlay.contains_key(&key).then_some(None)
                    }
                    (None, true) => Some(Some(None)),
                    (None, false) => None,
                }
            });
            let Some(value) = last else { continue };
            // Later segments have other revisions, so no decision may use this before the commit.
            let value = value.filter(|value| value.is_none() || group.segments.len() == 1);
            self.last_id += 1;
            let change = self.last_id;
            self.overlay.insert(key, Overlaid { value, revision, group: id, change });
        }
    }

    /// Caches what a committed group has written.
    fn settle(&mut self, group: &Group) {
        self.counters.record(&group.segments, group.slot);
        let is_plain = group.segments.len() == 1;
        for segment in &group.segments {
            for range in &segment.ranges {
                self.cache.remove_if(|key| range.contains(key));
            }
            for (key, effect) in &segment.entries {
                let revision = Some(group.revision);
                match effect {
                    Effect::Put(value) if is_plain && group.reads.contains_key(key) => {
                        let known = Known { value: Some(value.clone()), revision };
                        self.cache.put(key, known);
                    }
                    Effect::Delete if is_plain && group.reads.contains_key(key) => {
                        self.cache.put(key, Known { value: None, revision: None });
                    }
                    _ => self.cache.remove(key),
                }
            }
        }
        self.uncover(group);
    }

    fn uncover(&mut self, group: &Group) {
        let changed = group.segments.iter().flat_map(|segment| segment.entries.keys());
        // Ranges cover declared keys.
        let has_ranges = group.segments.iter().any(|segment| !segment.ranges.is_empty());
        let covered = group.reads.keys().filter(|_| has_ranges);
        for key in changed.chain(covered) {
            // Rarely a later group has changed it as well.
            if let Some((key, overlaid)) = self.overlay.remove_entry(key)
                && overlaid.group != group.id
            {
                self.overlay.insert(key, overlaid);
            }
        }
    }

    /// Fails all groups that depend on a group that failed.
    fn fail(
        &mut self,
        group: Group,
        answer: &dyn Fn(usize) -> GroupResult,
        answers: &mut Answers<GroupResult>,
    ) {
        group.reads.keys().for_each(|key| self.cache.remove(key));
        self.counters.forget(&group.segments);
        self.uncover(&group);
        while let Some(place) =
            self.waiting.iter().position(|waiting| waiting.after.contains(&group.id))
        {
            let next = self.waiting.remove(place).expect("the position is that of a group");
            self.fail(next, &|_| GroupResult::Again, answers);
        }
        group.announce();
        let writes = group.waiting.len();
        for write in group.waiting {
            answers.push(write.asker, answer(writes));
        }
    }
}

impl Overlaid {
    fn origin(&self) -> ValueOrigin {
        let is_there = self.value.as_ref().is_some_and(Option::is_some);
        ValueOrigin::InFlight {
            revision: is_there.then_some(self.revision),
            group: self.group,
            change: self.change,
        }
    }
}

/// What the store must confirm. A key that was seen in flight has the value that the earlier group leaves.
fn seen<'a>(set: WriteSet<'a>, view: &SeenValues) -> Vec<SeenKey<'a>> {
    declared(set)
        .zip(&view.origins)
        .enumerate()
        .map(|(position, (key, origin))| {
            let (revision, in_group) = match origin {
                ValueOrigin::Settled(revision) => (*revision, None),
                ValueOrigin::InFlight { revision, group, .. } => (*revision, Some(*group)),
            };
            let is_exclusive = position >= set.guards.len();
            SeenKey { key, expected: Expected { revision, is_exclusive }, in_group }
        })
        .collect()
}

pub fn declared<'a>(set: WriteSet<'a>) -> impl Iterator<Item = &'a Key> {
    set.guards.iter().chain(set.keys)
}
