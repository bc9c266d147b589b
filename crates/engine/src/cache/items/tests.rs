use zenobe_value::{AttributeValue, Attributes};

use crate::clock::ManualClock;

use super::*;

const TTL_MS: u64 = 1_000;

struct Harness {
    clock: Arc<ManualClock>,
    cache: ItemCache,
}

impl Harness {
    fn new() -> Harness {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let options = CacheOptions { size_bytes_max: 1 << 20, time_to_live_ms: TTL_MS };
        Harness { cache: ItemCache::new(options, clock.clone()), clock }
    }

    /// What a read of the key finds here: `Some(None)` is that there is no item.
    fn found(&self) -> Option<Option<EncodedItem>> {
        match self.cache.look_up(&key()) {
            Lookup::Hit(item) => Some(item),
            Lookup::Miss(_) => None,
        }
    }

    /// Starts a read that misses.
    fn miss(&self) -> Option<FillTicket> {
        match self.cache.look_up(&key()) {
            Lookup::Miss(ticket) => ticket,
            Lookup::Hit(item) => panic!("found {item:?}"),
        }
    }

    fn begin_write(&self) -> UncommittedWrites<'_> {
        self.cache.begin_writes([key()].iter())
    }

    fn read(&self, value: &str) {
        let ticket = self.miss().expect("nothing is in flight");
        self.cache.fill(key(), ticket, Some(&item(value)));
    }

    fn check(&self, expected: Option<&str>) {
        let expected = expected.map(|value| Some(item(value)));
        assert_eq!(self.found(), expected);
    }
}

fn key() -> Key {
    Key::from_static(b"key")
}

fn item(value: &str) -> EncodedItem {
    let value = AttributeValue::S(value.to_owned());
    EncodedItem::encode(&Attributes::from([("v".to_owned(), value)]))
}

fn write(writes: UncommittedWrites<'_>, value: &str) {
    writes.written([Some(&item(value))].into_iter());
}

#[test]
fn what_was_read_is_kept_for_its_time() {
    let harness = Harness::new();
    let ticket = harness.miss().unwrap();
    // The time counts from before the read.
    harness.clock.advance_ms(TTL_MS / 2);
    harness.cache.fill(key(), ticket, Some(&item("a")));
    harness.check(Some("a"));
    harness.clock.advance_ms(TTL_MS / 2);
    harness.check(None);
    harness.cache.fill(key(), harness.miss().unwrap(), None);
    assert_eq!(harness.found(), Some(None));
    let CacheStatistics { hits, misses, entries, .. } = harness.cache.statistics();
    assert_eq!((hits, misses, entries), (2, 3, 1));
}

#[test]
fn a_write_replaces_the_entry_when_it_has_ended() {
    let harness = Harness::new();
    harness.read("a");
    let writing = harness.begin_write();
    harness.check(Some("a"));
    write(writing, "b");
    harness.check(Some("b"));
    harness.begin_write().written([None].into_iter());
    assert_eq!(harness.found(), Some(None));
    harness.begin_write().changed();
    harness.check(None);
    harness.read("c");
    harness.begin_write().nothing_written();
    harness.check(Some("c"));
}

#[test]
fn a_read_from_before_a_write_is_not_kept() {
    // It overlaps the beginning of the write, or all of it, or starts in the middle.
    let harness = Harness::new();
    let ticket = harness.miss().unwrap();
    let writing = harness.begin_write();
    harness.cache.fill(key(), ticket, Some(&item("old")));
    harness.check(None);
    assert!(harness.miss().is_none());
    writing.changed();
    harness.cache.fill(key(), ticket, Some(&item("old")));
    harness.check(None);
    harness.read("new");
    harness.check(Some("new"));
}

#[test]
fn of_two_reads_the_one_that_started_later_counts() {
    let harness = Harness::new();
    let early = harness.miss().unwrap();
    harness.clock.advance_ms(1);
    let late = harness.miss().unwrap();
    harness.cache.fill(key(), late, Some(&item("late")));
    harness.cache.fill(key(), early, Some(&item("early")));
    harness.check(Some("late"));
}

/// Nobody here knows in which order they were committed.
#[test]
fn writes_that_overlap_leave_no_entry() {
    for first_ends_first in [true, false] {
        let harness = Harness::new();
        harness.read("a");
        let (first, second) = (harness.begin_write(), harness.begin_write());
        let (one, other) = if first_ends_first { (first, second) } else { (second, first) };
        write(one, "b");
        harness.check(None);
        write(other, "c");
        harness.check(None);
        write(harness.begin_write(), "d");
        harness.check(Some("d"));
    }
}

#[test]
fn a_write_with_an_unknown_end_closes_the_stripe_for_a_while() {
    let harness = Harness::new();
    harness.read("a");
    drop(harness.begin_write());
    assert!(harness.miss().is_none());
    write(harness.begin_write(), "b");
    harness.check(None);
    harness.clock.advance_ms(UNSETTLED_MS);
    harness.read("c");
    harness.check(Some("c"));
}

/// Every interleaving of a few reads and writes of one key: once a write has ended, no look-up may
/// find a state from before it.
#[test]
fn no_schedule_shows_a_state_from_before_an_ended_write() {
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    let mut random = StdRng::seed_from_u64(1);
    let mut hits = 0;
    for _ in 0..2_000 {
        let harness = Harness::new();
        // The store's value is the number of the last commit.
        let (mut committed, mut acknowledged) = (0_u32, 0_u32);
        let mut reads: Vec<(FillTicket, Option<u32>)> = Vec::new();
        let mut writes: Vec<(UncommittedWrites<'_>, Option<u32>)> = Vec::new();
        for _ in 0..30 {
            harness.clock.advance_ms(1);
            match random.random_range(0..6) {
                0 => match harness.cache.look_up(&key()) {
                    Lookup::Hit(found) => {
                        hits += 1;
                        let newest = (acknowledged..=committed)
                            .any(|number| found == Some(item(&number.to_string())));
                        assert!(newest, "{found:?} after {acknowledged}");
                    }
                    Lookup::Miss(ticket) => reads.extend(ticket.map(|ticket| (ticket, None))),
                },
                1 => {
                    if let Some((_, value)) = reads.iter_mut().find(|(_, value)| value.is_none()) {
                        *value = Some(committed);
                    }
                }
                2 if !reads.is_empty() => {
                    let at = random.random_range(0..reads.len());
                    if let (ticket, Some(value)) = reads.swap_remove(at) {
                        harness.cache.fill(key(), ticket, Some(&item(&value.to_string())));
                    }
                }
                3 if writes.len() < 2 => writes.push((harness.begin_write(), None)),
                4 => {
                    let at = random.random_range(0..2);
                    if let Some((_, value @ None)) = writes.get_mut(at) {
                        committed += 1;
                        *value = Some(committed);
                    }
                }
                5 if !writes.is_empty() => {
                    let at = random.random_range(0..writes.len());
                    if let (_, Some(number)) = writes[at] {
                        let (writing, _) = writes.swap_remove(at);
                        write(writing, &number.to_string());
                        acknowledged = acknowledged.max(number);
                    }
                }
                _ => {}
            }
        }
    }
    assert!(hits > 1_000, "{hits}");
}
