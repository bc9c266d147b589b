//! `zenobe restore`: a data directory from a backup, or from the shipped log as of a second.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use parking_lot::Mutex;
use rustix::fs::Mode;
use zenobe_backup::restore_plan::RestorePoint;
use zenobe_database::backup::{RestoreSummary, restore};
use zenobe_load::human_bytes;

use super::backup::{BackupDisplay, PlaceArguments};
use super::{CommandError, print_line, time_argument};
use crate::time::iso8601;

#[derive(Debug, Args)]
#[command(
    after_help = "Without --backup and --to-time it restores the newest state that is there. It compares every file and every part of the log with its checksum, refuses what is \
damaged, and names it. After an interruption, the same command finishes the restore; until then no server opens the directory.\n\n\
Examples:\n  zenobe restore --from s3://bucket/zenobe --data ./restored\n  \
zenobe restore --from s3://bucket/zenobe --to-time 2026-11-16T08:00:00Z --data ./restored\n  \
zenobe restore --from file:///var/backups/zenobe --backup 01794816000123-1a2b3c4d --data ./restored"
)]
pub struct RestoreArguments {
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    target: TargetArguments,
    /// New or empty data directory to restore into
    #[arg(long, value_name = "DIRECTORY")]
    data: PathBuf,
}

#[derive(Debug, Args)]
pub struct TargetArguments {
    /// Backup to use, as `zenobe backup list` names it
    #[arg(long, value_name = "ID", conflicts_with = "to_time")]
    backup: Option<String>,
    /// Time whose state to use, from what a server has shipped: 2026-11-16T08:00:00Z, or seconds since 1970. Without a fraction it means
    /// the end of that second
    #[arg(long, value_name = "TIME")]
    to_time: Option<String>,
}

impl TargetArguments {
    pub fn target(&self) -> Result<RestorePoint, CommandError> {
        match (&self.backup, &self.to_time) {
            (Some(id), _) => Ok(RestorePoint::Backup(id.clone())),
            (None, None) => Ok(RestorePoint::Latest),
            (None, Some(time)) => match time_argument(time) {
                Ok(time) => Ok(RestorePoint::Time(time.at_ms())),
                Err(problem) => Err(CommandError::Refused(format!("--to-time: {problem}"))),
            },
        }
    }
}

/// Only the owner may read the files that are created, and there may be many.
pub fn prepare_process() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    crate::open_files::raise_limit(0);
}

pub async fn run(arguments: &RestoreArguments) -> Result<(), CommandError> {
    let (from, object_store) = (arguments.place.location()?, arguments.place.object_store());
    let target = arguments.target.target()?;
    prepare_process();
    let display = Arc::new(Mutex::new(BackupDisplay::new()));
    let shown = display.clone();
    let observe = move |progress| shown.lock().show(&progress);
    let restored = restore(&from, Some(&object_store), &target, &arguments.data, &observe).await;
    display.lock().end();
    let RestoreSummary { id, files, bytes, segments, groups, at_ms } = restored?;
    let data = arguments.data.display();
    print_line(&format!(
        "restored {id}: {files} files with {}, {groups} groups in {segments} segments of the log, as of {}\n\
         serve it with --data {data}",
        human_bytes(bytes as f64),
        iso8601(at_ms),
    ))
}
