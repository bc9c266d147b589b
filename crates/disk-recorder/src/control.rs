//! Faults, set and cleared while the process runs, through a file that it maps into its memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Kinds of system calls; combine them with `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls(u64);

impl Calls {
    pub const WRITE: Calls = Calls(1);
    pub const SYNC: Calls = Calls(2);
    /// Opens that create or truncate a file, and links.
    pub const CREATE: Calls = Calls(4);
    pub const RENAME: Calls = Calls(8);
    pub const UNLINK: Calls = Calls(16);
    pub const TRUNCATE: Calls = Calls(32);
    pub const ALLOCATE: Calls = Calls(64);
    pub const MAKE_DIRECTORY: Calls = Calls(128);
    /// Everything that a read-only file system rejects.
    pub const CHANGES: Calls = Calls(1 | 4 | 8 | 16 | 32 | 64 | 128);
    pub const ALL: Calls = Calls(255);
}

impl std::ops::BitOr for Calls {
    type Output = Calls;

    fn bitor(self, other: Calls) -> Calls {
        Calls(self.0 | other.0)
    }
}

/// Makes `count` calls of these kinds fail, starting with call number `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskFault {
    pub calls: Calls,
    /// Counted from 1 since the fault was set.
    pub first: u64,
    pub count: u64,
    /// The `errno`. With 0, writes succeed but take only part of their data.
    pub error: u64,
}

impl DiskFault {
    /// Takes the place of an `errno`: kills the process (SIGKILL) before the call has any effect.
    pub const KILL: u64 = u64::MAX;
}

/// The control block of a process: eight numbers, laid out as in `shim/recorder.c`.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    file: File,
}

const KINDS: u64 = 0;
const CALLS: u64 = 1;
const FIRST: u64 = 2;
const COUNT: u64 = 3;
const ERROR: u64 = 4;
const FAILED: u64 = 5;
const HOLD_SYNCS: u64 = 6;
const HELD_SYNCS: u64 = 7;

impl Control {
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Control> {
        fs::write(path, [0; 64])?;
        Control::open(path)
    }

    /// Opens a control block that this process or another one has created.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Control> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Control { path: path.to_owned(), file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets a fault and replaces the previous one.
    pub fn set(&self, fault: DiskFault) {
        // No call may fail while the numbers change.
        self.put(FIRST, 0);
        self.put(CALLS, 0);
        self.put(KINDS, fault.calls.0);
        self.put(COUNT, fault.count);
        self.put(ERROR, fault.error);
        self.put(FIRST, fault.first);
    }

    /// Only counts calls of these kinds.
    pub fn count(&self, calls: Calls) {
        self.set(DiskFault { calls, first: 0, count: 0, error: 0 });
    }

    pub fn lift(&self) {
        self.put(FIRST, 0);
    }

    /// The calls of the chosen kinds since the fault was set.
    pub fn calls(&self) -> u64 {
        self.get(CALLS)
    }

    /// The calls that have failed.
    pub fn failed(&self) -> u64 {
        self.get(FAILED)
    }

    /// Makes syncs wait, as on a very slow disk, or lets them continue.
    pub fn hold_syncs(&self, holds: bool) {
        self.put(HOLD_SYNCS, u64::from(holds));
    }

    /// Whether a sync is waiting.
    pub fn holds_a_sync(&self) -> bool {
        self.get(HELD_SYNCS) > 0
    }

    fn put(&self, place: u64, value: u64) {
        let written = self.file.write_all_at(&value.to_ne_bytes(), place * 8);
        written.expect("the control file can be written");
    }

    fn get(&self, place: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, place * 8).expect("the control file can be read");
        u64::from_ne_bytes(bytes)
    }
}
