//! Backups of a data directory in an object store, and the log that is shipped there continuously.
//!
//! ```text
//! snapshots/<id>/started        written first: a snapshot is being made
//! snapshots/<id>/files/<name>   the files that no earlier snapshot has stored
//! snapshots/<id>/manifest       written last: every file with its size and SHA-256, its own or an earlier snapshot's
//! segments/<generation>/<name>  committed groups; each segment names the checksum of the one before
//! segments/<generation>/head    how far the generation has been shipped
//! ```
//!
//! A *snapshot* is a copy of the directory's files. Without its manifest it doesn't count. Files never change, so a further
//! snapshot stores only new ones. A *generation* is an unbroken sequence of commit groups, from the moment in which a server begins to ship
//! until it stops, or falls too far behind. A snapshot of a generation says after which group it was taken: it and the segments after it give every
//! state since.
//!
//! | module | what it does |
//! |---|---|
//! | [`manifest`], [`segment`], [`head`] | the formats, with their checksums |
//! | [`repository`] | objects by their keys: stored, checked and repeated |
//! | [`stored_files`], [`fetch`] | storing the files of a directory, and fetching them |
//! | [`restore_plan`] | which snapshot and which segments make the state of a time |
//! | [`prune`] | what may go |
//! | [`ship`] | the shipper of a running server |
//!
//! **Invariant:** nothing here knows what the files and the groups hold. What was read back is compared with its checksum before
//! anybody uses it.

mod cpu_share;
mod error;
pub mod fetch;
pub mod head;
mod json;
pub mod manifest;
mod names;
pub mod prune;
pub mod repository;
pub mod restore_plan;
pub mod segment;
pub mod ship;
pub mod stored_files;

pub use cpu_share::CpuShare;
pub use error::{BackupError, Result};
pub use names::{SegmentName, new_id, time_of_id};
pub use repository::Repository;
