//! `zenobe backup verify`

use std::path::PathBuf;

use clap::Args;
use zenobe_database::backup::{VerifySummary, verify};
use zenobe_load::{human_bytes, human_count};

use super::{BackupDisplay, PlaceArguments};
use crate::commands::restore::TargetArguments;
use crate::commands::{CommandError, print_line};
use crate::time::iso8601;

#[derive(Debug, Args)]
#[command(
    after_help = "Without --backup and --to-time it verifies the newest state. The scratch directory needs as much space as the database, and is removed at the end. \
The exit code is 1 if anything is damaged or missing, and the message names it.\n\n\
Example:\n  zenobe backup verify --from file:///var/backups/zenobe"
)]
pub struct VerifyArguments {
    #[command(flatten)]
    place: PlaceArguments,
    #[command(flatten)]
    target: TargetArguments,
    /// Directory for the copy [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIRECTORY")]
    scratch: Option<PathBuf>,
}

pub async fn run(arguments: &VerifyArguments) -> Result<(), CommandError> {
    let (from, object_store) = (arguments.place.location()?, arguments.place.object_store());
    let scratch = arguments.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let target = arguments.target.target()?;
    crate::commands::restore::prepare_process();
    let display = std::sync::Arc::new(parking_lot::Mutex::new(BackupDisplay::new()));
    let shown = display.clone();
    let observe = move |progress| shown.lock().show(&progress);
    let verified = verify(&from, Some(&object_store), &target, &scratch, &observe).await;
    display.lock().end();
    print_line(&describe(&verified?))
}

fn describe(summary: &VerifySummary) -> String {
    let VerifySummary { restored, rows, bytes, ranges_compared, elapsed } = summary;
    let compared = match ranges_compared {
        Some(ranges) => {
            format!("the checksums of {ranges} ranges agree with those of the original")
        }
        None => format!("{} groups of the log applied in order", restored.groups),
    };
    format!(
        "{} is whole, as of {}: {} files with {} fetched, {} rows with {} read, {compared}; it took {:.1} s",
        restored.id,
        iso8601(restored.at_ms),
        restored.files,
        human_bytes(restored.bytes as f64),
        human_count(*rows),
        human_bytes(*bytes as f64),
        elapsed.as_secs_f64(),
    )
}
