//! The same load, but power fails: of the server's files only what it synced is sure to survive.
//!
//! The recorder logs the server's system calls, including its responses, so the acknowledged writes
//! of every moment are known. The test then cuts the power at many moments and starts a server on
//! what each cut leaves. (`crates/store-embedded` does the same with the store alone, at many more
//! moments, with flushes and reused logs.)
//!
//! `ZENOBE_POWER_CUTS` sets how many cuts the store gets; the server gets a tenth. `ZENOBE_SEED`
//! selects them.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use serde_json::json;
use zenobe_disk_recorder::{Cut, Disk, Image, Recorder, Survival, Trace};
use zenobe_testing::{Client, Seed, ServerOptions, ServerProcess, TemporaryDirectory};

use super::ledger::Ledger;
use super::{Counter, TABLE, WRITERS, create_table, verify, writer};

const CUTS_DEFAULT: usize = 40;
const LIVES: u64 = 2;
const WRITES_PER_LIFE: usize = 400;

/// A recorded run: the trace, and what the clients know.
struct Recorded {
    trace: Trace,
    ledgers: Vec<Ledger>,
    /// The id of the response that created the table.
    created: String,
}

fn options(recorder: &Recorder) -> ServerOptions {
    ServerOptions { environment: recorder.variables(), ..super::options() }
}

/// Runs a server under load, twice, and stops it cleanly.
fn record(directory: &TemporaryDirectory, seed: Seed, swallows_syncs: bool) -> Recorded {
    let recorded = directory.path().join("recorded");
    std::fs::create_dir(&recorded).expect("a directory can be created");
    let file = directory.path().join("trace");
    let recorder = Recorder::new(&recorded).trace(&file).marks("HTTP/1.1 ");
    let recorder = if swallows_syncs { recorder.swallowing_syncs() } else { recorder };
    let mut ledgers: Vec<_> = (0..WRITERS).map(Ledger::new).collect();
    let mut created = None;
    for life in 0..LIVES {
        let server = ServerProcess::start_with(&recorded.join("data"), &options(&recorder));
        let created = created.get_or_insert_with(|| create_table(&mut server.client()));
        assert!(!created.is_empty());
        write(&server, &mut ledgers, seed, life);
        server.stop();
    }
    let trace = Trace::read(&file).expect("the trace can be read");
    assert_complete(&trace, &recorded);
    Recorded { trace, ledgers, created: created.expect("there was a life") }
}

/// A call that the recorder missed would be missing from the replay.
fn assert_complete(trace: &Trace, recorded: &Path) {
    let mut disk = Disk::new(&Image::default());
    trace.events.iter().for_each(|event| disk.apply(event));
    let real = Image::read(recorded).expect("the directory can be read");
    let missed = disk.after_power_cut(&Survival::ALL).differences(&real);
    assert_eq!(missed, Vec::<String>::new(), "the recorder missed something");
}

/// Runs all writers until they have received this many responses together.
fn write(server: &ServerProcess, ledgers: &mut [Ledger], seed: Seed, life: u64) {
    let address = server.address();
    let (acknowledged, counted) = mpsc::channel();
    thread::scope(|scope| {
        for (number, ledger) in ledgers.iter_mut().enumerate() {
            let random = seed.generator(life << 8 | number as u64);
            let acknowledged = acknowledged.clone();
            scope.spawn(move || writer::run(Client::new(address), ledger, random, &acknowledged));
        }
        drop(acknowledged);
        counted.iter().take(WRITES_PER_LIFE).for_each(drop);
        // The writers end when nobody counts any more.
        drop(counted);
    });
}

impl Recorded {
    /// The ids of the requests that were answered before a cut.
    fn answered(&self, cut: &Cut) -> BTreeSet<String> {
        let id = |mark: &[u8]| {
            let head = String::from_utf8_lossy(mark);
            let mut headers = head.lines().filter_map(|line| line.split_once(':'));
            let found = headers.find(|(name, _)| name.eq_ignore_ascii_case("x-amzn-requestid"));
            found.map(|(_, value)| value.trim().to_owned())
        };
        self.trace.marks(cut.before).filter_map(id).collect()
    }

    /// Starts a server on what a cut has left, and checks it against what had been answered.
    fn verify(&self, cut: &Cut, data: &Path) {
        let answered = self.answered(cut);
        assert_eq!(answered.len(), self.trace.marks(cut.before).count(), "answers without an id");
        let server = ServerProcess::start_with(data, &super::options());
        let client = &mut server.client();
        let names = client.expect("ListTables", &json!({}));
        if names["TableNames"] != json!([TABLE]) {
            assert!(!answered.contains(&self.created), "the table is gone");
            return;
        }
        let mut counter = Counter::default();
        let mut ledgers: Vec<Ledger> =
            self.ledgers.iter().map(|ledger| ledger.as_of(&answered, &mut counter)).collect();
        verify::items(client, &mut ledgers, cut.before as u64);
        verify::indexes(client);
        verify::counts(client);
        counter.verify(client);
        verify::stream(client);
    }

    /// Cuts the power. Returns the cuts that lost something, with what was found.
    fn cut(&self, cuts: &[Cut]) -> Vec<(Cut, String)> {
        let threads = thread::available_parallelism().map_or(2, usize::from).min(4);
        thread::scope(|scope| {
            let part = |part: usize| {
                let part: Vec<Cut> = cuts.iter().copied().skip(part).step_by(threads).collect();
                scope.spawn(move || self.cut_one_by_one(&part))
            };
            let parts: Vec<_> = (0..threads).map(part).collect();
            let join = |part: thread::ScopedJoinHandle<'_, Vec<_>>| part.join().expect("caught");
            parts.into_iter().flat_map(join).collect()
        })
    }

    fn cut_one_by_one(&self, cuts: &[Cut]) -> Vec<(Cut, String)> {
        let directory = TemporaryDirectory::new("power-cut");
        let mut faults = Vec::new();
        self.trace.cut(Disk::new(&Image::default()), cuts, |cut, image| {
            let image_path = directory.path().join("image");
            image.write(&image_path).expect("an image can be written");
            let checked =
                catch_unwind(AssertUnwindSafe(|| self.verify(cut, &image_path.join("data"))));
            if let Err(panic) = checked {
                let text = panic.downcast_ref::<String>().cloned();
                faults.push((*cut, text.unwrap_or_else(|| "a panic".to_owned())));
            }
        });
        faults
    }
}

#[test]
fn acknowledged_writes_survive_power_cuts() {
    let seed = Seed::announce("power cuts");
    let directory = TemporaryDirectory::new("power-cuts");
    let recorded = record(&directory, seed, false);
    let count = std::env::var("ZENOBE_POWER_CUTS").ok();
    let count = count.map_or(CUTS_DEFAULT, |text| text.parse::<usize>().expect("a number") / 10);
    let cuts = recorded.trace.cuts(count, seed.value());
    let faults = recorded.cut(&cuts);
    let answers = recorded.trace.marks(recorded.trace.events.len()).count();
    eprintln!("{count} power cuts of a server that had answered {answers} requests");
    assert!(answers > LIVES as usize * WRITES_PER_LIFE, "only {answers} answers were recorded");
    assert!(faults.is_empty(), "{} of {count} cuts fail: {faults:#?}", faults.len());
}

/// The test must be able to fail: a server whose syncs do nothing must not survive it.
#[test]
fn a_server_that_does_not_sync_dies() {
    let directory = TemporaryDirectory::new("no-sync");
    let recorded = record(&directory, Seed::from(1), true);
    let cuts = recorded.trace.cuts(8, 1);
    let faults = recorded.cut(&cuts);
    eprintln!("without syncs, {} of {} cuts lose something", faults.len(), cuts.len());
    assert!(faults.len() > cuts.len() / 4, "the mutant lives: {faults:#?}");
}
