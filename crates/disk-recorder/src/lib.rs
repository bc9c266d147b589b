//! Records what a process does to its files, at the boundary to the operating system.
//!
//! - [`Recorder`] preloads a small library into a process (`LD_PRELOAD`). It records every change
//!   below one directory, and every sync, in the order in which they took effect ([`Trace`]).
//! - [`Disk`] replays a trace up to any moment and computes what a power cut would leave
//!   ([`Survival`]): everything that was synced, and any part of the rest that a disk may have
//!   written by then.
//! - [`Control`] makes calls fail, makes syncs wait, or kills the process at a call.
//!
//! When a sync has ended, the changes before its start are durable. `sync_file_range` is not a
//! sync. A file's name is durable once its directory has been synced. A call that the recorder does
//! not model ends the process, and [`Image::read`] of the real directory must equal the replay of
//! the whole trace: nothing can be missed silently.
//!
//! **Invariant:** this crate knows files and system calls, and nothing about databases.

mod content;
mod control;
mod disk;
mod image;
mod survival;
mod trace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use control::{Calls, Control, DiskFault};
pub use disk::Disk;
pub use image::Image;
pub use survival::{Data, Names, Survival};
pub use trace::{Cut, Event, Trace};

/// The library to preload into the recorded process.
const LIBRARY: &str = env!("DISK_RECORDER_LIBRARY");

/// Configures the recording of a process: set [`Recorder::variables`] in its environment.
#[derive(Debug, Clone)]
pub struct Recorder {
    directory: PathBuf,
    trace: Option<PathBuf>,
    control: Option<PathBuf>,
    mark: Option<String>,
    swallows_syncs: bool,
}

impl Recorder {
    /// Records changes below an existing directory.
    pub fn new(directory: &Path) -> Recorder {
        let directory = directory.to_owned();
        Recorder { directory, trace: None, control: None, mark: None, swallows_syncs: false }
    }

    /// Appends records to this file, which must lie outside that directory.
    #[must_use]
    pub fn trace(self, file: &Path) -> Recorder {
        Recorder { trace: Some(file.to_owned()), ..self }
    }

    #[must_use]
    pub fn control(self, control: &Control) -> Recorder {
        Recorder { control: Some(control.path().to_owned()), ..self }
    }

    /// Also records what the process writes to a socket or a pipe, if it starts with `prefix`.
    /// These are its acknowledgements.
    #[must_use]
    pub fn marks(self, prefix: &str) -> Recorder {
        Recorder { mark: Some(prefix.to_owned()), ..self }
    }

    /// For mutation tests: syncs report success and do nothing.
    #[must_use]
    pub fn swallowing_syncs(self) -> Recorder {
        Recorder { swallows_syncs: true, ..self }
    }

    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("LD_PRELOAD".into(), LIBRARY.into()),
            ("DISK_RECORDER_DIRECTORY".into(), self.directory.clone().into()),
        ];
        let mut set = |name: &str, value: Option<OsString>| {
            variables.extend(value.map(|value| (name.into(), value)));
        };
        set("DISK_RECORDER_TRACE", self.trace.clone().map(Into::into));
        set("DISK_RECORDER_CONTROL", self.control.clone().map(Into::into));
        set("DISK_RECORDER_MARK", self.mark.clone().map(Into::into));
        set("DISK_RECORDER_SWALLOW_SYNCS", self.swallows_syncs.then(|| "1".into()));
        variables
    }
}
