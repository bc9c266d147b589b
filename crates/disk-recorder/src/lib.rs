//! What a process does to its files, recorded where it meets the operating system.
//!
//! - [`Recorder`] loads a small library into a process (`LD_PRELOAD`), which records every change below one directory,
//!   and every sync, in the order in which they took effect ([`Trace`]).
//! - [`Disk`] replays a trace up to any moment and says what a power cut would leave there ([`Survival`]): what was
//!   synced, and as much or as little of the rest as a disk may have got round to.
//! - [`Control`] makes calls fail, or syncs wait, while the process runs.
//!
//! A sync covers the changes before its beginning, once it has ended. `sync_file_range` is no sync. The name of a file
//! is durable when its directory has been synced. Calls that the recorder does not model end the process, and
//! [`Image::read`] of the real directory must equal the replay of the whole trace: nothing can be missed silently.
//!
//! Invariant: this crate knows files and system calls, and nothing of databases.

mod content;
mod control;
mod disk;
mod image;
mod survival;
mod trace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use control::{Calls, Control, Fault};
pub use disk::Disk;
pub use image::Image;
pub use survival::{Data, Names, Survival};
pub use trace::{Cut, Event, Trace};

/// The library that is loaded into the recorded process.
const LIBRARY: &str = env!("DISK_RECORDER_LIBRARY");

/// How a process is recorded: set [`Recorder::variables`] in its environment.
#[derive(Debug, Clone)]
pub struct Recorder {
    directory: PathBuf,
    trace: Option<PathBuf>,
    control: Option<PathBuf>,
    mark: Option<String>,
    swallows_syncs: bool,
}

impl Recorder {
    /// Watches what happens below an existing directory.
    pub fn new(directory: &Path) -> Recorder {
        let directory = directory.to_owned();
        Recorder { directory, trace: None, control: None, mark: None, swallows_syncs: false }
    }

    /// Appends records to this file, which lies elsewhere.
    #[must_use]
    pub fn trace(self, file: &Path) -> Recorder {
        Recorder { trace: Some(file.to_owned()), ..self }
    }

    #[must_use]
    pub fn control(self, control: &Control) -> Recorder {
        Recorder { control: Some(control.path().to_owned()), ..self }
    }

    /// Also records what the process writes to a socket or a pipe, if it begins like this: its acknowledgements.
    #[must_use]
    pub fn marks(self, prefix: &str) -> Recorder {
        Recorder { mark: Some(prefix.to_owned()), ..self }
    }

    /// A mutant: syncs answer success and do nothing.
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
