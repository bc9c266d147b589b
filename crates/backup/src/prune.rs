//! Removing what nobody needs any more.
//!
//! Manifests go first, each after the mark that its snapshot was begun, then the files that no remaining manifest names. A snapshot in
//! progress relies on the files of earlier ones, and announces itself before it looks for them ([`crate::stored_files::begin`]). So if
//! there is an unfinished snapshot once the manifests are gone, no file is removed this time. A snapshot that starts later does not
//! find the removed manifests, and files that it stores get new names.

use std::collections::HashSet;

use crate::error::Result;
use crate::manifest::Manifest;
use crate::names::{head_key, manifest_key, segment_key, started_key, time_of_id};
use crate::repository::{Contents, Repository};

/// A snapshot that has not been finished for so long was given up.
const GIVEN_UP_AFTER_MS: u64 = 24 * 60 * 60 * 1_000;

/// What to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The newest backups that commands have made. What is shipped continuously stays.
    Backups(usize),
    /// What is needed to restore every second since this time from the shipped log. Backups that commands have made stay.
    ShippedSince(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    pub snapshots: usize,
    pub files: usize,
    pub segments: usize,
    pub bytes: u64,
    /// Files stay this time, because a snapshot is being made.
    pub is_waiting: bool,
}

/// # Errors
/// If the repository can't be read or changed. What was removed before that is gone.
pub async fn prune(repository: &Repository, keep: Keep, now_ms: u64) -> Result<Pruned> {
    let contents = repository.contents().await?;
    let mut manifests = Vec::new();
    for id in contents.finished() {
        manifests.push(repository.manifest(id).await?);
    }
    let mut pruned = Pruned::default();
    for id in expendable(&manifests, keep) {
        // If it stops between the two, the snapshot still counts as finished, not as being made.
        repository.delete(&started_key(&id)).await?;
        repository.delete(&manifest_key(&id)).await?;
        manifests.retain(|manifest| manifest.id != id);
        pruned.snapshots += 1;
    }
    remove_files(repository, &manifests, now_ms, &mut pruned).await?;
    if let Keep::ShippedSince(_) = keep {
        remove_segments(repository, &contents, &manifests, now_ms, &mut pruned).await?;
    }
    Ok(pruned)
}

/// The snapshots that may go. `manifests` are in the order of their ids.
fn expendable(manifests: &[Manifest], keep: Keep) -> Vec<String> {
    let (made, shipped): (Vec<&Manifest>, Vec<&Manifest>) =
        manifests.iter().partition(|manifest| manifest.generation.is_none());
    let ids =
        |manifests: &[&Manifest]| manifests.iter().map(|manifest| manifest.id.clone()).collect();
    match keep {
        Keep::Backups(count) => ids(&made[..made.len().saturating_sub(count)]),
        Keep::ShippedSince(since_ms) => {
            // The newest one before that time is where restoring to it begins.
            let old = shipped.iter().filter(|manifest| manifest.at.at_ms() <= since_ms).count();
            ids(&shipped[..old.saturating_sub(1)])
        }
    }
}

async fn remove_files(
    repository: &Repository,
    manifests: &[Manifest],
    now_ms: u64,
    pruned: &mut Pruned,
) -> Result<()> {
    // Listed after the manifests are gone: see above.
    let contents = repository.contents().await?;
    let is_being_made =
        |id: &str| time_of_id(id).is_some_and(|at_ms| at_ms + GIVEN_UP_AFTER_MS > now_ms);
    let unfinished = contents.snapshots.iter().filter(|(_, objects)| objects.is_unfinished());
    if unfinished.clone().any(|(id, _)| is_being_made(id)) {
        pruned.is_waiting = true;
        return Ok(());
    }
    let known: HashSet<&str> = manifests.iter().map(|manifest| manifest.id.as_str()).collect();
    if contents.finished().any(|id| !known.contains(id)) {
        // It was finished meanwhile, and may rely on anything.
        pruned.is_waiting = true;
        return Ok(());
    }
    let needed: HashSet<&str> = manifests
        .iter()
        .flat_map(|manifest| &manifest.files)
        .filter_map(|file| file.object.as_deref())
        .collect();
    for (id, objects) in &contents.snapshots {
        let unneeded = || objects.files.iter().filter(|(key, _)| !needed.contains(key.as_str()));
        let keys: Vec<String> = unneeded().map(|(key, _)| key.clone()).collect();
        repository.delete_many(&keys).await?;
        pruned.files += keys.len();
        pruned.bytes += unneeded().map(|(_, size_bytes)| size_bytes).sum::<u64>();
        if objects.is_unfinished() {
            repository.delete(&started_key(id)).await?;
        }
    }
    Ok(())
}

async fn remove_segments(
    repository: &Repository,
    contents: &Contents,
    manifests: &[Manifest],
    now_ms: u64,
    pruned: &mut Pruned,
) -> Result<()> {
    for (id, generation) in &contents.generations {
        let of_this = manifests.iter().filter(|manifest| manifest.generation.as_ref() == Some(id));
        let count = match of_this.map(|manifest| manifest.sequence).min() {
            // The segment with the next group, and all after it, are needed.
            Some(sequence) => {
                let begun =
                    generation.segments.partition_point(|segment| segment.first <= sequence + 1);
                begun.saturating_sub(1)
            }
            // Its first snapshot may be under way.
            None if time_of_id(id).is_some_and(|at_ms| at_ms + GIVEN_UP_AFTER_MS > now_ms) => 0,
            None => {
                repository.delete(&head_key(id)).await?;
                generation.segments.len()
            }
        };
        let segments = &generation.segments[..count];
        let keys: Vec<String> = segments.iter().map(|segment| segment_key(id, segment)).collect();
        // No snapshot needs them, so an interruption that leaves some of them does no harm.
        repository.delete_many(&keys).await?;
        pruned.segments += count;
    }
    Ok(())
}
