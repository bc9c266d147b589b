//! A space-saving sketch: the heaviest keys of a stream of any number of keys, in fixed memory.
//!
//! It has a fixed number of counters. A key without one takes over the lightest counter and adds to
//! its weight, remembering how much of the weight may belong to others. So a key that makes up more
//! than one part in [`COUNTERS`] of the stream always has a counter, and each counter's weight is
//! exact up to what it remembers (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and
//! Top-k Elements in Data Streams, 2005).
//!
//! There are few counters, and they lie side by side. Comparing a key with all of them is cheaper than
//! an index of them.

/// How many keys a sketch knows. A key with more than 1.6 % of the traffic is always among them.
pub const COUNTERS: usize = 64;

/// How much of a key is kept. Longer keys are counted, but only their beginning is shown.
pub const KEPT_SIZE_BYTES_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct Sketch {
    /// What identifies the keys of the counters: a hash.
    identities: Vec<u64>,
    counters: Vec<Counter>,
    /// No counter is lighter than this.
    floor: u64,
    /// Where the search for the lightest counter continues.
    next: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The key, or its beginning.
    pub key: Vec<u8>,
    pub is_cut: bool,
    pub tally: Tally,
    /// How much of the weight may belong to other keys.
    pub error: u64,
}

/// What was counted of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// What keys are ranked by.
    pub weight: u64,
    pub events: u64,
    pub read_halves: u64,
    pub write_halves: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.weight += other.weight;
        self.events += other.events;
        self.read_halves += other.read_halves;
        self.write_halves += other.write_halves;
    }
}

impl Sketch {
    pub fn add(&mut self, identity: u64, key: &[u8], tally: Tally) {
        if let Some(at) = self.find(identity) {
            self.counters[at].tally.add(tally);
            return;
        }
        if self.counters.len() < COUNTERS {
            self.identities.push(identity);
            self.counters.push(Counter::new(key, tally));
            return;
        }
        let lightest = self.lightest();
        self.identities[lightest] = identity;
        self.counters[lightest].take_over(key, tally);
    }

    /// The place of a key's counter.
    fn find(&self, identity: u64) -> Option<usize> {
        const LANES: usize = 8;
        for (number, known) in self.identities.chunks(LANES).enumerate() {
            // Without an early end, so that the compiler compares several at once.
            if known.iter().fold(false, |found, known| found | (*known == identity)) {
                let within = known.iter().position(|known| *known == identity)?;
                return Some(number * LANES + within);
            }
        }
        None
    }

    /// The place of a lightest counter; there must be one. Weights only grow. So while any counter still has
    /// the weight that was the lowest last time, it is one of the lightest, and the search continues where it
    /// ended. It looks at all counters only once no counter has that weight.
    fn lightest(&mut self) -> usize {
        let count = self.counters.len();
        let is_lightest = |at: &usize| self.counters[*at].tally.weight == self.floor;
        let found = (self.next..count).chain(0..self.next).find(is_lightest);
        let at = found.unwrap_or_else(|| {
            let weights = self.counters.iter().map(|counter| counter.tally.weight).enumerate();
            let lightest = weights.min_by_key(|(_, weight)| *weight);
            let (at, weight) = lightest.unwrap_or_default();
            self.floor = weight;
            at
        });
        self.next = (at + 1) % count.max(1);
        at
    }

    pub fn clear(&mut self) {
        self.identities.clear();
        self.counters.clear();
        (self.floor, self.next) = (0, 0);
    }

    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// The most that a key without a counter can weigh.
    fn unseen_max(&self) -> u64 {
        match self.counters.len() < COUNTERS {
            true => 0,
            false => self.counters.iter().map(|it| it.tally.weight).min().unwrap_or_default(),
        }
    }

    /// The keys of two sketches together, heaviest first by what is certain.
    pub fn merged(&self, other: &Sketch) -> Vec<Counter> {
        let mut merged: Vec<Counter> = Vec::new();
        for (identity, counter) in self.identities.iter().zip(&self.counters) {
            let mut counter = counter.clone();
            match other.identities.iter().position(|known| known == identity) {
                Some(at) => {
                    counter.tally.add(other.counters[at].tally);
                    counter.error += other.counters[at].error;
                }
                None => counter.add_error(other.unseen_max()),
            }
            merged.push(counter);
        }
        for (identity, counter) in other.identities.iter().zip(&other.counters) {
            if !self.identities.contains(identity) {
                let mut counter = counter.clone();
                counter.add_error(self.unseen_max());
                merged.push(counter);
            }
        }
        merged.sort_by(|left, right| {
            right.certain().cmp(&left.certain()).then_with(|| left.key.cmp(&right.key))
        });
        merged
    }
}

impl Counter {
    fn new(key: &[u8], tally: Tally) -> Counter {
        let mut counter = Counter { key: Vec::new(), is_cut: false, tally, error: 0 };
        counter.keep(key);
        counter
    }

    fn keep(&mut self, key: &[u8]) {
        self.is_cut = key.len() > KEPT_SIZE_BYTES_MAX;
        self.key.clear();
        self.key.extend_from_slice(&key[..key.len().min(KEPT_SIZE_BYTES_MAX)]);
    }

    /// Events and units are those of the new key alone; only the weight is inherited.
    fn take_over(&mut self, key: &[u8], tally: Tally) {
        let weight = self.tally.weight;
        self.keep(key);
        self.error = weight;
        self.tally = Tally { weight: weight + tally.weight, ..tally };
    }

    fn add_error(&mut self, error: u64) {
        self.tally.weight += error;
        self.error += error;
    }

    /// The least that the key weighs.
    pub fn certain(&self) -> u64 {
        self.tally.weight - self.error
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use zenobe_testing::Seed;

    use super::*;

    fn one(weight: u64) -> Tally {
        Tally { weight, events: 1, read_halves: weight, write_halves: 0 }
    }

    #[test]
    fn a_hot_key_stands_out_among_a_million_others() {
        let mut sketch = Sketch::default();
        for number in 0..1_000_000_u64 {
            sketch.add(number + 1, &number.to_be_bytes(), one(1));
            if number % 20 == 0 {
                sketch.add(0, b"hot", one(1));
            }
        }
        assert_eq!(sketch.counters.len(), COUNTERS);
        let top = &sketch.merged(&Sketch::default())[0];
        assert_eq!(top.key, b"hot");
        // It was in the sketch from the start, so nothing is uncertain.
        assert_eq!((top.certain(), top.tally.events), (50_000, 50_000));
    }

    /// The bounds that the sketch promises, whatever the traffic.
    #[test]
    fn weights_are_bounded_on_both_sides() {
        let mut random = Seed::announce("weights_are_bounded_on_both_sides").generator(0);
        let mut exact = std::collections::BTreeMap::<u64, u64>::new();
        let (mut sketch, mut total) = (Sketch::default(), 0);
        for _ in 0..100_000 {
            // Small numbers are frequent.
            let largest = random.random_range(1..2_000);
            let key: u64 = random.random_range(0..largest);
            let weight = random.random_range(1..=5);
            sketch.add(key, &key.to_be_bytes(), one(weight));
            *exact.entry(key).or_default() += weight;
            total += weight;
        }
        let counters = sketch.merged(&Sketch::default());
        for counter in &counters {
            let key = u64::from_be_bytes(counter.key[..].try_into().unwrap());
            let weight = exact[&key];
            assert!(counter.certain() <= weight && weight <= counter.tally.weight, "{key}");
        }
        for (key, weight) in exact {
            let is_known = counters.iter().any(|it| it.key == key.to_be_bytes());
            assert!(is_known || weight <= total / COUNTERS as u64, "{key}");
        }
    }

    /// Whatever the weights, and whichever counter they go to.
    #[test]
    fn the_counter_that_is_replaced_is_a_lightest_one() {
        let mut random = Seed::announce("the_counter_that_is_replaced").generator(0);
        let mut sketch = Sketch::default();
        for _ in 0..20_000 {
            let (key, weight) = (random.random_range(0..200_u64), random.random_range(1..=4));
            let full = sketch.counters.len() == COUNTERS;
            let (lightest, place) = (sketch.unseen_max(), sketch.find(key));
            assert_eq!(place, sketch.identities.iter().position(|known| *known == key));
            sketch.add(key, &key.to_be_bytes(), one(weight));
            if full && place.is_none() {
                let taken = &sketch.counters[sketch.find(key).unwrap()];
                assert_eq!((taken.error, taken.tally.weight), (lightest, lightest + weight));
            }
        }
        sketch.clear();
        sketch.add(1, b"a", one(1));
        assert_eq!(sketch.merged(&Sketch::default()).len(), 1);
    }

    #[test]
    fn long_keys_are_cut() {
        let mut sketch = Sketch::default();
        sketch.add(1, &[7; 3_000], one(1));
        sketch.add(2, &[8; 10], one(1));
        let [long, short] = &sketch.merged(&Sketch::default())[..] else { panic!("two keys") };
        assert_eq!((long.key.len(), long.is_cut), (KEPT_SIZE_BYTES_MAX, true));
        assert_eq!((short.key.len(), short.is_cut), (10, false));
    }

    #[test]
    fn merging_adds_what_is_uncertain() {
        let (mut full, mut other) = (Sketch::default(), Sketch::default());
        (0..COUNTERS as u64).for_each(|key| full.add(key, &key.to_be_bytes(), one(3)));
        other.add(0, &0_u64.to_be_bytes(), one(4));
        other.add(1_000, b"other", one(5));
        let merged = full.merged(&other);
        assert_eq!((merged[0].certain(), merged[0].error), (7, 0));
        assert_eq!(
            (&merged[1].key[..], merged[1].certain(), merged[1].error),
            (&b"other"[..], 5, 3)
        );
        assert_eq!(merged.len(), COUNTERS + 1);
    }
}
