//! `zenobe backup`, `zenobe restore` and `--ship-to`: nothing but the bucket is left, and the database comes back.

mod made;
mod shipped;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use zenobe_testing::{ServerProcess, wait_until};

use crate::commands::zenobe;
use crate::moving::text;

fn serve(data: &Path, more: &[&str]) -> ServerProcess {
    ServerProcess::launch(&mut serve_command(data, more))
}

fn serve_command(data: &Path, more: &[&str]) -> Command {
    let common = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "info",
        "--stream-shards",
        "2",
        "--data",
        text(data),
    ];
    zenobe(&[&common[..], more].concat())
}

fn restore(from: &Path, data: &Path, more: &[&str]) -> Command {
    zenobe(&[&["restore", "--from", text(from), "--data", text(data)][..], more].concat())
}

/// What the server says of its shipping.
fn shipping(server: &ServerProcess) -> Value {
    let reply = server.client().send("GET", "/_zenobe/status", &[], b"").expect("an answer");
    reply.body["shipping"].clone()
}

/// Waits until the state of this millisecond is in the bucket.
fn wait_until_shipped(server: &ServerProcess, at_ms: u64) {
    wait_until(|| {
        shipping(server)["restorable_until_ms"].as_u64().is_some_and(|until_ms| until_ms >= at_ms)
    });
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a time").as_millis() as u64
}
