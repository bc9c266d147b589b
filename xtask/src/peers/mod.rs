//! The programs that the comparison measures besides our own, installed from their registries into
//! the per-user cache.
//!
//! Every version is pinned: a comparison without versions proves nothing. A peer that can't be
//! installed here is not an error: the comparison names it and the reason.

mod dynalite;
mod dynamodb_local;
mod dynoxide;
mod moto;

use std::path::{Path, PathBuf};

use crate::process::Failure;
use crate::{cache, workspace};

/// A program that speaks DynamoDB's API, at the version to compare.
struct Peer {
    name: &'static str,
    version: &'static str,
    /// Puts everything needed to run it into the directory.
    install: fn(&Path) -> Result<(), Failure>,
    /// Checks that its runtime is there.
    require: fn() -> Result<(), Failure>,
}

const PEERS: [Peer; 4] = [dynoxide::PEER, dynalite::PEER, dynamodb_local::PEER, moto::PEER];

pub struct Provided {
    pub name: &'static str,
    pub version: &'static str,
    /// Where it is installed, or why it is not.
    pub directory: Result<PathBuf, Failure>,
}

/// Installs the missing peers.
pub fn provide() -> Result<Vec<Provided>, Failure> {
    let cache = cache::directory()?;
    let provide = |peer: &Peer| Provided {
        name: peer.name,
        version: peer.version,
        directory: provide_one(peer, &cache),
    };
    Ok(PEERS.iter().map(provide).collect())
}

fn provide_one(peer: &Peer, cache: &Path) -> Result<PathBuf, Failure> {
    (peer.require)()?;
    let entry = cache.join(format!("peer-{}-{}", peer.name, peer.version));
    let _lock = cache::lock(&entry)?;
    // Some installed files contain their own path, so an entry is filled in place and marked when
    // complete.
    let mark = entry.join("installed");
    if mark.exists() {
        return Ok(entry);
    }
    eprintln!("xtask: installing {} {} into the cache", peer.name, peer.version);
    cache::remove(&entry)?;
    cache::create(&entry)?;
    (peer.install)(&entry)?;
    std::fs::write(&mark, peer.version).map_err(|error| Failure::file("write", &mark, &error))?;
    Ok(entry)
}

/// A file of this directory in the repository.
fn source(path: &str) -> PathBuf {
    workspace::root().join("xtask/src/peers").join(path)
}

fn copy(path: &str, directory: &Path) -> Result<(), Failure> {
    let from = source(path);
    let name = from.file_name().ok_or_else(|| Failure::new(format!("{path} names no file")))?;
    std::fs::copy(&from, directory.join(name))
        .map(drop)
        .map_err(|error| Failure::file("copy", &from, &error))
}

/// Checks that a program is there, or says how to install it.
fn require_program(program: &str, packages: &[&str]) -> Result<(), Failure> {
    match workspace::has_program(program) {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{program} is not installed (Debian: apt-get install {})",
            packages.join(" ")
        ))),
    }
}
