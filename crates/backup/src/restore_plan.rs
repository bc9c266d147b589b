//! Which snapshot and which segments make a state.

use zenobe_store::Stamp;
use zenobe_store::shipping::LogGroup;

use crate::error::{BackupError, Result};
use crate::manifest::Manifest;
use crate::names::{SegmentName, head_key};
use crate::repository::{Contents, Repository};
use crate::segment::Chain;

/// The state to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestorePoint {
    /// The newest one.
    Latest,
    /// A snapshot, without segments that follow it.
    Backup(String),
    /// The last state up to this millisecond.
    Time(u64),
}

#[derive(Debug, Clone)]
pub struct RestorePlan {
    pub manifest: Manifest,
    /// The segments to apply, in their order.
    pub segments: Vec<SegmentName>,
    /// Groups after this are left out.
    pub until: Stamp,
}

/// A finished snapshot, and how far its generation continues.
#[derive(Debug, Clone)]
struct Candidate {
    manifest: Manifest,
    /// Every state from the snapshot up to this can be restored.
    until: Stamp,
}

/// Finds what a state is made of.
///
/// # Errors
/// If there is no such state, or if what it needs is damaged or missing.
pub async fn plan(repository: &Repository, target: &RestorePoint) -> Result<RestorePlan> {
    let contents = repository.contents().await?;
    let place = || repository.place().to_owned();
    if contents.finished().next().is_none() {
        return Err(BackupError::NoBackup { place: place() });
    }
    match target {
        RestorePoint::Backup(id) => {
            if !contents.finished().any(|finished| finished == id) {
                return Err(BackupError::NoSuchBackup { place: place(), id: id.clone() });
            }
            let manifest = repository.manifest(id).await?;
            let until = manifest.at;
            Ok(RestorePlan { manifest, segments: Vec::new(), until })
        }
        RestorePoint::Latest => {
            let candidates = candidates(repository, &contents).await?;
            let latest = candidates
                .into_iter()
                .max_by_key(|candidate| (candidate.until, candidate.manifest.at));
            let latest = latest.ok_or_else(|| BackupError::NoBackup { place: place() })?;
            with_segments(repository, &contents, latest.manifest, Stamp::from_bits(u64::MAX))
        }
        RestorePoint::Time(at_ms) => {
            let at = Stamp::last_of_ms(*at_ms);
            let candidates = candidates(repository, &contents).await?;
            let covers =
                |candidate: &&Candidate| candidate.manifest.at <= at && at <= candidate.until;
            let newest =
                candidates.iter().filter(covers).max_by_key(|candidate| candidate.manifest.at);
            match newest {
                Some(newest) => with_segments(repository, &contents, newest.manifest.clone(), at),
                None => {
                    let known = describe(&candidates, at);
                    Err(BackupError::NotCovered { place: place(), known })
                }
            }
        }
    }
}

/// What times can be restored: from when on and until when, oldest first. Adjacent ones are one.
///
/// # Errors
/// If the repository can't be read.
pub async fn windows(repository: &Repository) -> Result<Vec<(Stamp, Stamp)>> {
    let contents = repository.contents().await?;
    let mut all: Vec<(Stamp, Stamp)> = candidates(repository, &contents)
        .await?
        .into_iter()
        .filter(|candidate| {
            candidate.manifest.generation.is_some() && candidate.manifest.at <= candidate.until
        })
        .map(|candidate| (candidate.manifest.at, candidate.until))
        .collect();
    all.sort();
    all.dedup_by(|later, earlier| {
        let overlaps = later.0 <= earlier.1;
        if overlaps {
            earlier.1 = earlier.1.max(later.1);
        }
        overlaps
    });
    Ok(all)
}

async fn candidates(repository: &Repository, contents: &Contents) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for id in contents.finished() {
        let manifest = repository.manifest(id).await?;
        let until = match &manifest.generation {
            None => manifest.at,
            Some(generation) => shipped_until(repository, contents, generation).await?,
        };
        candidates.push(Candidate { manifest, until });
    }
    Ok(candidates)
}

/// Every group up to this stamp is in the segments of a generation.
async fn shipped_until(repository: &Repository, contents: &Contents, id: &str) -> Result<Stamp> {
    let Some(generation) = contents.generations.get(id) else { return Ok(Stamp::default()) };
    let last_ms = generation.segments.last().map_or(0, |segment| segment.until_ms);
    // Another group of the same millisecond may be in the next one.
    let until = Stamp::first_of_ms(last_ms);
    match generation.has_head {
        true => Ok(until.max(repository.head(id).await?.until)),
        false => Ok(until),
    }
}

fn describe(candidates: &[Candidate], at: Stamp) -> String {
    let before = candidates
        .iter()
        .filter(|candidate| candidate.until < at)
        .map(|candidate| candidate.until)
        .max();
    let after =
        candidates.iter().map(|candidate| candidate.manifest.at).filter(|begin| *begin > at).min();
    let time = |stamp: Stamp| format!("{}.{:03}", stamp.at_ms() / 1_000, stamp.at_ms() % 1_000);
    match (before, after) {
        (Some(before), Some(after)) => format!(
            "The nearest states are those of {} and {} (seconds since 1970)",
            time(before),
            time(after)
        ),
        (Some(before), None) => {
            format!(
                "The newest state is that of {} (seconds since 1970); leave --to-time out to restore it",
                time(before)
            )
        }
        (None, Some(after)) => {
            format!("The oldest state is that of {} (seconds since 1970)", time(after))
        }
        (None, None) => String::new(),
    }
}

/// The segments after a snapshot, of which none may be missing.
fn with_segments(
    repository: &Repository,
    contents: &Contents,
    manifest: Manifest,
    until: Stamp,
) -> Result<RestorePlan> {
    let Some(id) = &manifest.generation else {
        return Ok(RestorePlan { manifest, segments: Vec::new(), until });
    };
    let all = contents.generations.get(id).map_or(&[][..], |generation| &generation.segments);
    // The last one that begins with or before the next group. Groups that the files hold are left out as they are applied.
    let next = manifest.sequence + 1;
    let begin = all.partition_point(|segment| segment.first <= next).saturating_sub(1);
    let mut segments: Vec<SegmentName> = Vec::new();
    for segment in &all[begin..] {
        let last = segments.last();
        let expected = last.map_or(segment.number, |last| last.number + 1);
        if segment.number != expected {
            let problem = match segment.number > expected {
                true => format!("segment {expected} before it is missing"),
                false => format!("there is another segment {}", segment.number),
            };
            return Err(BackupError::damaged(repository.segment_object(id, segment), problem));
        }
        // Everything in later ones is later.
        let is_last = last.is_some_and(|last| last.until_ms > until.at_ms());
        if is_last {
            break;
        }
        segments.push(segment.clone());
    }
    if let Some(first) = segments.first()
        && first.first > next
    {
        let problem = format!("it begins with sequence number {}, expected {next}", first.first);
        return Err(BackupError::damaged(repository.segment_object(id, first), problem));
    }
    Ok(RestorePlan { manifest, segments, until })
}

/// Reads the groups of a plan, in their order, and checks the chain that they are.
pub struct Groups<'a> {
    repository: &'a Repository,
    plan: &'a RestorePlan,
    generation: String,
    chain: Chain,
    next: usize,
}

impl<'a> Groups<'a> {
    pub fn new(repository: &'a Repository, plan: &'a RestorePlan) -> Groups<'a> {
        let generation = plan.manifest.generation.clone().unwrap_or_default();
        let chain = Chain::new(&generation);
        Groups { repository, plan, generation, chain, next: 0 }
    }

    /// The groups of the next segment, without those that are too late; `None` at the end.
    ///
    /// # Errors
    /// If the segment is missing, damaged or not the next one.
    pub async fn next(&mut self) -> Result<Option<Vec<LogGroup>>> {
        let Some(name) = self.plan.segments.get(self.next) else {
            self.check_end().await?;
            return Ok(None);
        };
        let (segment, checksum) = self.repository.segment(&self.generation, name).await?;
        let object = self.repository.segment_object(&self.generation, name);
        self.chain.add(&object, &segment, checksum)?;
        self.next += 1;
        let until = self.plan.until;
        Ok(Some(segment.groups.into_iter().filter(|group| group.stamp <= until).collect()))
    }

    /// The last segment that the head knows must be there, unless it is too late anyway.
    async fn check_end(&self) -> Result<()> {
        let last = self.plan.segments.last();
        if last.is_some_and(|last| last.until_ms > self.plan.until.at_ms()) {
            return Ok(());
        }
        let contents = self.repository.contents().await?;
        let generation = contents.generations.get(&self.generation);
        let Some(generation) = generation.filter(|generation| generation.has_head) else {
            return Ok(());
        };
        let head = self.repository.head(&self.generation).await?;
        let last = generation.segments.last().map_or(0, |segment| segment.number);
        match last < head.segments {
            true => {
                let object = self.repository.name_of(&head_key(&self.generation));
                let problem = format!(
                    "it says that segment {} was stored, and the last one is {last}",
                    head.segments
                );
                Err(BackupError::damaged(object, problem))
            }
            false => Ok(()),
        }
    }
}
