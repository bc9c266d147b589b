//! From an object store into a new data directory.
//!
//! A file in the directory (`RESTORING`) says that it is not whole, from the first step until the last. While it is there, no server
//! opens the directory. A restore that was cut off is run again: it keeps the files that are whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use zenobe_backup::restore_plan::{Groups, RestorePlan, RestorePoint, plan};
use zenobe_backup::{BackupError, Repository, fetch};
use zenobe_store_embedded::{RESTORING_FILE, RestoringDirectory, remove_restoring_mark};
use zenobe_transfer::objects::{ObjectLocation, ObjectStoreOptions};

use super::source::copy_options;
use super::{BackupObserver, BackupProgress, BackupStage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSummary {
    /// The snapshot that it began with.
    pub id: String,
    pub files: u64,
    pub bytes: u64,
    pub segments: u64,
    /// The commit groups that were applied.
    pub groups: u64,
    /// When the last of them was committed, or a moment right after the snapshot, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Restores a database into a new or empty directory. `object_store` is for `s3://` places.
///
/// # Errors
/// If there is no such state, if anything that it needs is missing or damaged, or if the directory is in use.
pub async fn restore(
    from: &ObjectLocation,
    object_store: Option<&ObjectStoreOptions>,
    target: &RestorePoint,
    data: &Path,
    observe: &BackupObserver,
) -> Result<RestoreSummary, BackupError> {
    let repository = Repository::open(from, object_store, false)?;
    let plan = plan(&repository, target).await?;
    restore_plan(&repository, &plan, data, observe).await
}

pub(super) async fn restore_plan(
    repository: &Repository,
    plan: &RestorePlan,
    data: &Path,
    observe: &BackupObserver,
) -> Result<RestoreSummary, BackupError> {
    prepare(data, &plan.manifest.id)?;
    let progress = BackupProgress {
        stage: BackupStage::Fetching,
        segments_total: plan.segments.len() as u64,
        ..BackupProgress::default()
    };
    let observe_files = |files| observe(BackupProgress { files, ..progress });
    fetch::files(repository, &plan.manifest, data, &[RESTORING_FILE], &observe_files).await?;
    let summary = apply(repository, plan, data, &|segments| {
        let stage = BackupStage::Applying;
        observe(BackupProgress { stage, segments, ..progress });
    })
    .await?;
    remove_restoring_mark(data).map_err(failed(data))?;
    Ok(summary)
}

/// Takes an empty directory, or one that an earlier attempt has begun to fill.
fn prepare(data: &Path, id: &str) -> Result<(), BackupError> {
    let mark = data.join(RESTORING_FILE);
    fs::create_dir_all(data).map_err(failed(data))?;
    if !mark.exists() {
        let mut entries = fs::read_dir(data).map_err(failed(data))?;
        if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "lost+found")) {
            return Err(BackupError::NotEmpty(data.display().to_string()));
        }
    }
    let mut file = File::create(&mark).map_err(failed(&mark))?;
    let text = format!(
        "{id} is being restored here. Run the same `zenobe restore` again, or remove the directory.\n"
    );
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&mark))?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(failed(data))
}

/// Opens the files, and applies the log to them.
async fn apply(
    repository: &Repository,
    plan: &RestorePlan,
    data: &Path,
    observe: &(dyn Fn(u64) + Send + Sync),
) -> Result<RestoreSummary, BackupError> {
    let mut restoring = RestoringDirectory::open(data, &copy_options())?;
    let manifest = &plan.manifest;
    if restoring.last_sequence() != manifest.sequence {
        let problem = format!(
            "its files end with sequence number {}, and its manifest says {}",
            restoring.last_sequence(),
            manifest.sequence
        );
        return Err(BackupError::Damaged { object: manifest.id.clone(), problem });
    }
    let mut summary = RestoreSummary {
        id: manifest.id.clone(),
        files: manifest.files.len() as u64,
        bytes: manifest.size_bytes(),
        segments: 0,
        groups: 0,
        at_ms: manifest.at.at_ms(),
    };
    let mut groups = Groups::new(repository, plan);
    while let Some(next) = groups.next().await? {
        for group in &next {
            if restoring.apply(group)? {
                summary.groups += 1;
                summary.at_ms = group.stamp.at_ms();
            }
        }
        summary.segments += 1;
        observe(summary.segments);
    }
    restoring.finish()?;
    Ok(summary)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> BackupError {
    let path = path.to_owned();
    move |error| BackupError::Io { path: path.clone(), error }
}
