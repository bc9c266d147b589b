//! A server on a disk that fails at one of its calls: no acknowledged write is lost, reads
//! continue, the health check tells the truth, and writes succeed again once the fault is gone.
//! (`crates/store-embedded` does the same with the store alone, at every single call.)

use serde_json::{Value, json};
use zenobe_disk_recorder::{Calls, Control, DiskFault, Recorder};
use zenobe_testing::{Client, ServerOptions, ServerProcess, TemporaryDirectory, wait_until};

use crate::io_failure::{TABLE, check, write};
use crate::tables::{create_simple, scan};

const EIO: u64 = 5;
const ENOSPC: u64 = 28;

/// The call at which the fault starts, after the server has accepted some writes.
const FIRST_CALLS: [u64; 5] = [1, 2, 3, 5, 8];
const WRITES_BEFORE: usize = 3;
/// Each write makes more than one call, so the fault starts within this many.
const WRITES_MAX: usize = 40;

#[test]
fn a_disk_without_room() {
    check_every(Calls::WRITE | Calls::ALLOCATE | Calls::CREATE, ENOSPC, u64::MAX);
}

#[test]
fn a_write_that_fails_once() {
    check_every(Calls::WRITE, EIO, 1);
}

#[test]
fn a_sync_that_fails_once() {
    check_every(Calls::SYNC, EIO, 1);
}

fn check_every(calls: Calls, error: u64, count: u64) {
    for first in FIRST_CALLS {
        let fault = DiskFault { calls, first, count, error };
        eprintln!("{fault:?}");
        check_fault(fault);
    }
}

fn check_fault(fault: DiskFault) {
    let directory = TemporaryDirectory::new("fault");
    let recorded = directory.path().join("recorded");
    std::fs::create_dir(&recorded).expect("a directory can be created");
    let control = Control::create(&directory.path().join("control")).expect("a control file");
    let environment = Recorder::new(&recorded).control(&control).variables();
    let options = ServerOptions { environment, ..ServerOptions::default() };
    let data = recorded.join("data");
    let server = ServerProcess::start_with(&data, &options);
    let client = &mut server.client();
    create_simple(client, TABLE);
    let mut acknowledged: Vec<usize> = (0..WRITES_BEFORE).collect();
    assert!(acknowledged.iter().all(|number| write(client, *number)), "the disk works");

    control.set(fault);
    let more = WRITES_BEFORE..WRITES_BEFORE + WRITES_MAX;
    acknowledged.extend(more.clone().take_while(|number| write(client, *number)));
    assert!(control.failed() > 0, "the fault never came");
    assert!(acknowledged.len() < more.end, "nobody noticed the fault");
    check(client, &acknowledged);
    if fault.count == u64::MAX {
        let failing =
            json!({"ready": false, "reads": "ok", "writes": "failing", "store": "recovering"});
        assert_eq!(health(client), (503, failing), "the server:\n{}", server.output());
        assert!(!write(client, more.end), "the disk is full");
    }
    // A refused write may or may not have happened. But once a reader has seen it, it must stay.
    let seen = scan(client, TABLE, None);

    control.lift();
    wait_until(|| health(client).0 == 200);
    assert!(write(client, more.end + 1), "a server that is ready takes writes");
    acknowledged.push(more.end + 1);
    check(client, &acknowledged);
    server.kill();

    let server = ServerProcess::start(&data);
    let client = &mut server.client();
    check(client, &acknowledged);
    let kept = scan(client, TABLE, None);
    assert!(seen.iter().all(|item| kept.contains(item)), "a reader saw what was never stored");
    server.stop();
}

fn health(client: &mut Client) -> (u16, Value) {
    let reply = client.send("GET", "/_zenobe/health/ready", &[], b"").expect("the server answers");
    (reply.status, reply.body)
}
