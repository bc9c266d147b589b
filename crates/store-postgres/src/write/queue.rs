//! The writes of a node on their way: which share a transaction, which must wait for another, and what they leave behind for those
//! that are decided meanwhile.
//!
//! A group is committed as soon as a connection is free and no decision in it rests on a group that is not committed yet. Until
//! then others join it. Groups whose keys have nothing to do with each other are in flight side by side.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{oneshot, watch};
use zenobe_store::{Error, Key, KeyRange, Result, Value, WriteSet};

use super::cache::{Cache, Known};
use super::commit::{Outcome, commit};
use super::effects::{Effect, Segment};
use super::group::{Answer, Expected, Group, GroupId, Seen};
use crate::options::Options;
use crate::pool::Pool;
use crate::rows::Read;

pub struct Queue {
    pool: Arc<Pool>,
    in_flight_max: usize,
    /// The slot of counters that this node begins with: another node's is most likely another.
    slot: i16,
    state: Mutex<QueueState>,
    pub groups: AtomicU64,
    pub batches: AtomicU64,
}

struct QueueState {
    cache: Cache,
    /// What groups that are not committed yet have put or deleted.
    overlay: FxHashMap<Key, Overlaid>,
    waiting: VecDeque<Group>,
    in_flight: HashMap<GroupId, Arc<Group>>,
    last_id: u64,
    is_closed: bool,
    /// Told whenever nothing is left.
    idle: watch::Sender<bool>,
}

#[derive(Clone)]
struct Overlaid {
    /// `None` if it cannot be told before the commit.
    value: Option<Option<Value>>,
    revision: i64,
    group: GroupId,
    /// Tells one change of the key from the next.
    change: u64,
    done: watch::Receiver<bool>,
}

/// The declared keys, as a write is decided on them.
pub struct View {
    pub values: Vec<Option<Value>>,
    sources: Vec<Source>,
}

enum Source {
    Settled(Option<i64>),
    InFlight { revision: Option<i64>, group: GroupId, change: u64, done: watch::Receiver<bool> },
}

impl View {
    pub fn of(reads: &[Read]) -> View {
        View {
            values: reads.iter().map(|read| read.value.clone()).collect(),
            sources: reads.iter().map(|read| Source::Settled(read.revision)).collect(),
        }
    }

    /// Whether it is what one statement has read.
    pub fn is_one_state(&self, reads: &[Read]) -> bool {
        self.sources.iter().zip(reads).all(|(source, read)| match source {
            Source::Settled(revision) => *revision == read.revision,
            Source::InFlight { .. } => false,
        })
    }

    /// Waits until what the decision saw in flight has been committed, or has failed.
    pub async fn settle(self) {
        for source in self.sources {
            if let Source::InFlight { mut done, .. } = source {
                let _gone = done.wait_for(|done| *done).await;
            }
        }
    }
}

pub enum Lookup {
    Known(View),
    /// Some key must be read first.
    Missing,
    /// Some key's value shows only when this has been committed.
    Wait(watch::Receiver<bool>),
}

pub enum Joined {
    Waiting(oneshot::Receiver<Answer>),
    /// What the decision saw is no longer so.
    Changed,
}

/// The slots that the additions to a counter are spread over.
const SLOTS: i16 = 64;

impl Queue {
    pub fn new(pool: Arc<Pool>, options: &Options) -> Queue {
        let state = QueueState {
            cache: Cache::new(options.cache_bytes),
            overlay: FxHashMap::default(),
            waiting: VecDeque::new(),
            in_flight: HashMap::new(),
            last_id: 0,
            is_closed: false,
            idle: watch::Sender::new(true),
        };
        Queue {
            pool,
            in_flight_max: options.writers.max(1),
            slot: rand::random_range(0..SLOTS),
            state: Mutex::new(state),
            groups: AtomicU64::new(0),
            batches: AtomicU64::new(0),
        }
    }

    pub fn check_open(&self) -> Result<()> {
        if self.state.lock().is_closed { Err(Error::Closed) } else { Ok(()) }
    }

    /// What the declared keys hold after everything that is on its way; `fresh` is what this write has just read.
    pub fn look_up(&self, set: WriteSet<'_>, fresh: Option<&[Read]>) -> Lookup {
        let mut state = self.state.lock();
        let count = set.guards.len() + set.keys.len();
        let mut view =
            View { values: Vec::with_capacity(count), sources: Vec::with_capacity(count) };
        for (position, key) in declared(set).enumerate() {
            let (value, source) = match state.overlay.get(key) {
                Some(overlaid) => match &overlaid.value {
                    Some(value) => (value.clone(), overlaid.source()),
                    None => return Lookup::Wait(overlaid.done.clone()),
                },
                None => match (state.cache.get(key), fresh) {
                    (Some(known), _) => (known.value, Source::Settled(known.revision)),
                    (None, Some(fresh)) => {
                        let read = &fresh[position];
                        (read.value.clone(), Source::Settled(read.revision))
                    }
                    (None, None) => return Lookup::Missing,
                },
            };
            view.values.push(value);
            view.sources.push(source);
        }
        Lookup::Known(view)
    }

    /// Keeps what was read, where nothing is known that may be newer.
    pub fn remember(&self, set: WriteSet<'_>, reads: &[Read]) {
        let mut state = self.state.lock();
        for (key, read) in declared(set).zip(reads) {
            if read.is_settled && !state.overlay.contains_key(key) && state.cache.get(key).is_none()
            {
                let known = Known { value: read.value.clone(), revision: read.revision };
                state.cache.insert(key.clone(), known);
            }
        }
    }

    pub fn forget(&self, set: WriteSet<'_>) {
        let mut state = self.state.lock();
        declared(set).for_each(|key| state.cache.remove(key));
    }

    /// Gives a decided write its place: in a group, behind everything that its decision rests on.
    pub fn join(
        self: &Arc<Queue>,
        set: WriteSet<'_>,
        view: &View,
        segments: Vec<Segment>,
        is_alone: bool,
    ) -> Result<Joined> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::Closed);
        }
        if !state.is_as_seen(set, view) {
            return Ok(Joined::Changed);
        }
        let after = state.rests_on(set, view, &segments);
        let seen = seen(set, view);
        let is_alone = is_alone || segments.len() > 1 || !segments[0].is_mergeable();
        let place = state.place(&after, &seen, &segments[0], is_alone)?;
        let (answer, answered) = oneshot::channel();
        let group = &mut state.waiting[place];
        group.after.extend(after.into_iter().filter(|id| *id != group.id));
        let own_keys: Vec<Key> =
            segments.iter().flat_map(|segment| segment.entries.keys().cloned()).collect();
        group.join(seen, segments, answer)?;
        state.overlay(place, set, own_keys);
        state.idle.send_replace(false);
        self.pump(&mut state);
        Ok(Joined::Waiting(answered))
    }

    /// Sends off every group that waits for nothing but a connection.
    fn pump(self: &Arc<Queue>, state: &mut QueueState) {
        while state.in_flight.len() < self.in_flight_max {
            let Some(ready) = state.waiting.iter().position(|group| group.after.is_empty()) else {
                return;
            };
            let group = state.waiting.remove(ready).expect("the position is that of a group");
            let group = Arc::new(group);
            state.in_flight.insert(group.id, Arc::clone(&group));
            let queue = Arc::clone(self);
            self.pool.runtime.spawn(async move { queue.run(group).await });
        }
    }

    async fn run(self: Arc<Queue>, group: Arc<Group>) {
        let slot = 1 + (self.slot + (group.id % self.in_flight_max as u64) as i16) % SLOTS;
        let outcome = commit(&self.pool, &group, slot).await;
        self.finish(group, outcome);
    }

    fn finish(self: &Arc<Queue>, group: Arc<Group>, outcome: Outcome) {
        let mut state = self.state.lock();
        state.in_flight.remove(&group.id);
        let group = Arc::into_inner(group).expect("the queue has just let go of it");
        match outcome {
            Outcome::Committed(sequences) => {
                self.groups.fetch_add(1, Ordering::Relaxed);
                self.batches.fetch_add(group.waiting.len() as u64, Ordering::Relaxed);
                state.settle(&group);
                state.waiting.iter_mut().for_each(|waiting| _ = waiting.after.remove(&group.id));
                group.announce();
                let mut sequences = sequences.into_iter();
                for write in group.waiting {
                    let own = sequences.by_ref().take(write.appends).collect();
                    let _gone = write.answer.send(Answer::Committed(own));
                }
            }
            Outcome::Conflict => state.fail(group, &|_| Answer::Again),
            Outcome::Lost(detail) => state.fail(group, &|_| Answer::Lost(detail.clone())),
            Outcome::NoCounter => state.fail(group, &|writes| match writes {
                1 => {
                    let detail = "an addition to what is not a counter".to_owned();
                    Answer::Failed(Error::Corrupt { detail })
                }
                _ => Answer::Alone,
            }),
            Outcome::Failed(error) => state.fail(group, &|_| Answer::Failed(error.clone())),
        }
        if state.in_flight.is_empty() && state.waiting.is_empty() {
            state.idle.send_replace(true);
        }
        self.pump(&mut state);
    }

    /// Refuses what comes from now on, and waits for what came before.
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
    /// Whether a decision was made on what still holds.
    fn is_as_seen(&mut self, set: WriteSet<'_>, view: &View) -> bool {
        declared(set).zip(&view.sources).all(|(key, source)| {
            match (self.overlay.get(key), source) {
                (Some(overlaid), Source::InFlight { change, .. }) => overlaid.change == *change,
                (None, Source::Settled(revision)) => {
                    self.cache.get(key).is_none_or(|known| known.revision == *revision)
                }
                _ => false,
            }
        })
    }

    /// The groups that must be committed first: those whose values the decision saw, those that wrote the same keys, and
    /// those that declared them. What is decided first is committed first.
    fn rests_on(&self, set: WriteSet<'_>, view: &View, segments: &[Segment]) -> HashSet<GroupId> {
        let mut after = HashSet::new();
        for source in &view.sources {
            if let Source::InFlight { group, .. } = source {
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

    /// The position of the group to join: not before any that the write rests on, and rather one that need not wait than one
    /// that must.
    fn place(
        &mut self,
        after: &HashSet<GroupId>,
        seen: &[Seen],
        segment: &Segment,
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

    /// Shows what the group at this place has just taken in to whoever decides next.
    fn overlay(&mut self, place: usize, set: WriteSet<'_>, keys: Vec<Key>) {
        let group = &self.waiting[place];
        let (id, revision, done) = (group.id, group.revision, group.done());
        let ranges: Vec<&KeyRange> =
            group.segments.iter().flat_map(|segment| &segment.ranges).collect();
        let in_range = set.keys.iter().filter(|key| ranges.iter().any(|range| range.contains(key)));
        let keys: Vec<Key> = in_range.cloned().chain(keys).collect();
        for key in keys {
            // A batch with ranges is a group of its own, where the last segment that names a key has the last word.
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
            // The revision of a later segment is another, so nothing may be decided on it before the commit.
            let value = value.filter(|value| value.is_none() || group.segments.len() == 1);
            self.last_id += 1;
            let change = self.last_id;
            let done = done.clone();
            self.overlay.insert(key, Overlaid { value, revision, group: id, change, done });
        }
    }

    /// A group has been committed: what it wrote is known now.
    fn settle(&mut self, group: &Group) {
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
                        self.cache.insert(key.clone(), known);
                    }
                    Effect::Delete if is_plain && group.reads.contains_key(key) => {
                        self.cache.insert(key.clone(), Known { value: None, revision: None });
                    }
                    _ => self.cache.remove(key),
                }
            }
        }
        self.uncover(group);
    }

    fn uncover(&mut self, group: &Group) {
        let entries = group.segments.iter().flat_map(|segment| segment.entries.keys());
        for key in entries.chain(group.reads.keys()) {
            if self.overlay.get(key).is_some_and(|overlaid| overlaid.group == group.id) {
                self.overlay.remove(key);
            }
        }
    }

    /// A group has not been committed, and so none that rests on it can be.
    fn fail(&mut self, group: Group, answer: &dyn Fn(usize) -> Answer) {
        group.reads.keys().for_each(|key| self.cache.remove(key));
        self.uncover(&group);
        while let Some(place) =
            self.waiting.iter().position(|waiting| waiting.after.contains(&group.id))
        {
            let next = self.waiting.remove(place).expect("the position is that of a group");
            self.fail(next, &|_| Answer::Again);
        }
        group.announce();
        let writes = group.waiting.len();
        for write in group.waiting {
            let _gone = write.answer.send(answer(writes));
        }
    }
}

impl Overlaid {
    fn source(&self) -> Source {
        let is_there = self.value.as_ref().is_some_and(Option::is_some);
        Source::InFlight {
            revision: is_there.then_some(self.revision),
            group: self.group,
            change: self.change,
            done: self.done.clone(),
        }
    }
}

/// What the store must confirm. Where a key was seen in flight, the group before this one leaves it so.
fn seen(set: WriteSet<'_>, view: &View) -> Vec<Seen> {
    declared(set)
        .zip(&view.sources)
        .enumerate()
        .map(|(position, (key, source))| {
            let (revision, in_group) = match source {
                Source::Settled(revision) => (*revision, None),
                Source::InFlight { revision, group, .. } => (*revision, Some(*group)),
            };
            let is_exclusive = position >= set.guards.len();
            Seen { key: key.clone(), expected: Expected { revision, is_exclusive }, in_group }
        })
        .collect()
}

pub fn declared<'a>(set: WriteSet<'a>) -> impl Iterator<Item = &'a Key> {
    set.guards.iter().chain(set.keys)
}
