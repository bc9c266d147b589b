//! A restore drill: everything is fetched, applied, opened and read.

use std::path::Path;
use std::time::{Duration, Instant};

use zenobe_backup::restore_plan::{RestorePoint, plan};
use zenobe_backup::{BackupError, CpuShare, Repository};
use zenobe_transfer::objects::{ObjectLocation, ObjectStoreOptions};

use super::restoring::{RestoreSummary, restore_plan};
use super::{BackupObserver, BackupProgress, BackupStage, content};
use crate::ScratchDirectory;

/// How the names of the copies begin.
const SCRATCH_KIND: &str = "zenobe-verify";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifySummary {
    pub restored: RestoreSummary,
    pub rows: u64,
    pub bytes: u64,
    /// The ranges whose checksums agree with those of the original; `None` if none were recorded.
    pub ranges_compared: Option<u64>,
    pub elapsed: Duration,
}

/// Restores a state into a new directory below `scratch`, reads all of it, compares it with what was recorded, and removes it. Copies of earlier
/// drills that were killed are removed, too.
///
/// # Errors
/// Like those of restoring, and if the content differs.
pub async fn verify(
    from: &ObjectLocation,
    object_store: Option<&ObjectStoreOptions>,
    target: &RestorePoint,
    scratch: &Path,
    observe: &BackupObserver,
) -> Result<VerifySummary, BackupError> {
    let begin = Instant::now();
    let repository = Repository::open(from, object_store, false)?;
    let plan = plan(&repository, target).await?;
    let failed = |error| BackupError::Io { path: scratch.to_owned(), error };
    let drill = ScratchDirectory::create(scratch, SCRATCH_KIND).map_err(failed)?;
    let data = drill.data();
    let restored = restore_plan(&repository, &plan, &data, observe).await?;
    let mut seen = (0, 0);
    let progress = BackupProgress { stage: BackupStage::Reading, ..BackupProgress::default() };
    let mut read = |rows, bytes| {
        seen = (rows, bytes);
        observe(BackupProgress { rows, bytes, ..progress });
    };
    let ranges_compared = match &plan.manifest.content {
        Some(expected) => {
            content::compare(&data, expected, &mut read).await?;
            Some(expected.ranges.len() as u64)
        }
        None => {
            // Every block that is read is compared with its own checksum.
            content::sum(&data, &mut CpuShare::full(), &mut read).await?;
            None
        }
    };
    let (rows, bytes) = seen;
    Ok(VerifySummary { restored, rows, bytes, ranges_compared, elapsed: begin.elapsed() })
}
