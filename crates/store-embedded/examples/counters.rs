//! Counters by RocksDB's merge operator, against counters that the leader keeps in memory and writes as sums.
//!
//! `cargo run --profile quick -p zenobe-store-embedded --example counters` prints what docs/performance.md cites. A group is
//! one RocksDB write of an item of 300 bytes and additions to two counters, as a PutItem makes it.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rocksdb::{DB, MergeOperands, Options, WriteBatch};

const GROUPS: u64 = 200_000;
const COUNTERS: [&[u8]; 2] = [b"N count", b"N size"];
const READS: u32 = 1_000;

fn main() {
    for round in 0..3 {
        println!("round {round}");
        measure("kept in memory", &mut Kept::default());
        measure("merge operator", &mut Merged);
    }
}

/// A way to add to a counter.
trait Adds {
    fn add(&mut self, key: &'static [u8], delta: i64, write: &mut WriteBatch);
}

#[derive(Default)]
struct Kept(HashMap<&'static [u8], i64>);

impl Adds for Kept {
    fn add(&mut self, key: &'static [u8], delta: i64, write: &mut WriteBatch) {
        let sum = self.0.entry(key).or_default();
        *sum += delta;
        write.put(key, sum.to_be_bytes());
    }
}

struct Merged;

impl Adds for Merged {
    fn add(&mut self, key: &'static [u8], delta: i64, write: &mut WriteBatch) {
        write.merge(key, delta.to_be_bytes());
    }
}

fn measure(name: &str, counters: &mut dyn Adds) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_merge_operator_associative("sum", sum);
    let database = DB::open(&options, directory.path()).expect("a database");
    let item = [7; 300];
    let begin = Instant::now();
    let mut slowest_read = Duration::ZERO;
    for group in 0..GROUPS {
        let mut write = WriteBatch::default();
        write.put(group.to_be_bytes(), item);
        for key in COUNTERS {
            counters.add(key, 1, &mut write);
        }
        database.write(write).expect("a write");
        // As DescribeTable does, or every write of a table with item collections.
        if group % (GROUPS / 20) == GROUPS / 40 {
            slowest_read = slowest_read.max(read(&database));
        }
    }
    let took = begin.elapsed();
    let reads: Duration = (0..READS).map(|_| read(&database)).sum();
    println!(
        "  {name}: {:.2} us a group, a read {:.2} us, the slowest beside writes {:.2} us",
        took.as_secs_f64() * 1e6 / GROUPS as f64,
        reads.as_secs_f64() * 1e6 / f64::from(READS),
        slowest_read.as_secs_f64() * 1e6,
    );
}

fn read(database: &DB) -> Duration {
    let begin = Instant::now();
    black_box(database.get(COUNTERS[0]).expect("a read"));
    begin.elapsed()
}

fn sum(_: &[u8], first: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_be_bytes);
    let total = first.map_or(0, number) + operands.iter().map(number).sum::<i64>();
    Some(total.to_be_bytes().to_vec())
}
