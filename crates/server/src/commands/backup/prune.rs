//! `zenobe backup prune`

use clap::Args;
use zenobe_backup::Repository;
use zenobe_backup::prune::{Keep, prune};
use zenobe_load::human_bytes;
use zenobe_store::system_time_ms;

use super::PlaceArguments;
use crate::commands::{CommandError, print_line};

#[derive(Debug, Args)]
#[command(
    after_help = "Files that a remaining backup needs stay. What a server ships stays too: it is pruned by the server, after --ship-retention-days.\n\n\
Example:\n  zenobe backup prune --from s3://bucket/zenobe --keep 7"
)]
pub struct PruneArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// How many of the newest backups to keep
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

pub async fn run(arguments: &PruneArguments) -> Result<(), CommandError> {
    let object_store = arguments.place.object_store();
    let repository = Repository::open(&arguments.place.location()?, Some(&object_store), false)?;
    let keep = Keep::Backups(arguments.keep as usize);
    let pruned = prune(&repository, keep, system_time_ms()).await?;
    let mut line = format!(
        "removed {} backups, {} files with {}",
        pruned.snapshots,
        pruned.files,
        human_bytes(pruned.bytes as f64)
    );
    if pruned.is_waiting {
        line += "; a backup is being made, or was cut off today, so files stay until the next time";
    }
    print_line(&line)
}
