//! Dynoxide: Rust and SQLite, from crates.io.

use std::path::Path;

use crate::process::{self, Failure};
use crate::workspace;

use super::Peer;

pub const PEER: Peer = Peer { name: "dynoxide", version: "3.2.0", install, require: || Ok(()) };

fn install(directory: &Path) -> Result<(), Failure> {
    let mut command = workspace::cargo();
    command
        .args(["install", "--quiet", "--locked", "dynoxide-rs", "--version", PEER.version])
        .args(["--no-default-features", "--features", "native-sqlite,http-server,cli", "--root"])
        .arg(directory)
        // Its own profile optimises for size; we compare it at its fastest.
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_TARGET_DIR", directory.join("target"));
    process::run(&mut command)?;
    crate::cache::remove(&directory.join("target"))
}
