//! `zenobe backup list`

use clap::Args;
use zenobe_backup::restore_plan::windows;
use zenobe_backup::{Repository, SegmentName};
use zenobe_load::human_bytes;

use super::PlaceArguments;
use crate::commands::{CommandError, print_line};
use crate::time::iso8601;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  zenobe backup list --from file:///var/backups/zenobe")]
pub struct ListArguments {
    #[command(flatten)]
    place: PlaceArguments,
}

pub async fn run(arguments: &ListArguments) -> Result<(), CommandError> {
    let object_store = arguments.place.object_store();
    let repository = Repository::open(&arguments.place.location()?, Some(&object_store), false)?;
    let contents = repository.contents().await?;
    for id in contents.finished() {
        let manifest = repository.manifest(id).await?;
        let kind = match &manifest.generation {
            Some(generation) => format!("shipped by generation {generation}"),
            None => "backup".to_owned(),
        };
        let stored: u64 = contents.snapshots[id].files.values().sum();
        print_line(&format!(
            "{id}  {}  {} in {} files, {} of them new  {kind}",
            iso8601(manifest.at.at_ms()),
            human_bytes(manifest.size_bytes() as f64),
            manifest.files.len(),
            human_bytes(stored as f64),
        ))?;
    }
    for (id, generation) in &contents.generations {
        let until = generation
            .segments
            .last()
            .map_or("nothing".to_owned(), |segment: &SegmentName| iso8601(segment.until_ms));
        let (count, bytes) = (generation.segments.len(), human_bytes(generation.size_bytes as f64));
        print_line(&format!(
            "generation {id}: {count} segments with {bytes}, last change {until}"
        ))?;
    }
    for (begin, end) in windows(&repository).await? {
        print_line(&format!(
            "every second can be restored from {} to {}",
            iso8601(begin.at_ms()),
            iso8601(end.at_ms())
        ))?;
    }
    match contents.finished().next() {
        Some(_) => Ok(()),
        None => print_line(&format!("there is no backup at {}", repository.place())),
    }
}
