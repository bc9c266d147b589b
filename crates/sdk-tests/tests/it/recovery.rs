//! An interrupted recovery: the server is killed at one of the changes that it makes to its files
//! as it starts.

use std::path::Path;

use rand::RngExt;
use rand::rngs::StdRng;
use zenobe_disk_recorder::{Calls, Control, DiskFault, Recorder};
use zenobe_testing::{ServerOptions, ServerProcess, TemporaryDirectory};

/// About as many changes as a start makes. A server that makes fewer is killed as soon as it
/// listens.
const CHANGES_MAX: u64 = 60;

/// Starts a server and kills it at a random change of a file.
pub fn interrupt(data: &Path, options: &ServerOptions, random: &mut StdRng) {
    let directory = TemporaryDirectory::new("control");
    let control = Control::create(&directory.path().join("control")).expect("a control file");
    let first = random.random_range(1..=CHANGES_MAX);
    control.set(DiskFault { calls: Calls::ALL, first, count: 1, error: DiskFault::KILL });
    let mut options = options.clone();
    options.environment.extend(Recorder::new(data).control(&control).variables());
    ServerProcess::start_and_kill(data, &options);
}
