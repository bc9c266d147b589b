//! The copy itself.

use std::collections::BTreeSet;

use futures_util::future::join;

use super::changes::{CHANGES_MAX, ChangeTracker, ChangedKeys};
use super::chunk::{Chunk, RangeChecksum, checksum};
use super::note::{CopyNote, CopyState};
use super::{Amount, CopyError, CopyResult, copy_note, is_empty, successor};
use super::{RESERVED, territories};
use crate::{Batch, Decision, Key, KeyRange, LogEnd, Store, Value, WriteSet};

/// Changed entries that are read and written at once. Each may have some hundred kilobytes.
const KEYS_AT_ONCE: usize = 256;
const LOGS_AT_ONCE: usize = 1_000;
/// Rounds of catching up without getting closer, after which it counts as hopeless.
const ROUNDS_MAX: usize = 100;

pub struct CopyOptions {
    /// How many bytes are copied at once.
    pub chunk_bytes: usize,
    /// How much may change while a range is copied and followed. What takes that long to follow leaves more to
    /// follow next time, and so on without end.
    pub changes_max: usize,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions { chunk_bytes: 4 << 20, changes_max: CHANGES_MAX }
    }
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyCounts {
    /// Copied, or found in the target already.
    pub done: Amount,
    /// Ranges whose checksums agree.
    pub ranges: u64,
    /// Changed entries that were copied again.
    pub changes: u64,
}

pub type OnProgress<'a> = dyn Fn(CopyCounts) + Send + Sync + 'a;

/// A copy under way. The target has no other writer.
pub struct StoreCopy<'a> {
    source: &'a dyn Store,
    target: &'a dyn Store,
    tracker: Option<&'a dyn ChangeTracker>,
    options: CopyOptions,
    on_progress: &'a OnProgress<'a>,
    note: CopyNote,
    /// Whether the target may hold entries where none have been copied yet.
    is_resumed: bool,
    progress: CopyCounts,
}

impl<'a> StoreCopy<'a> {
    /// Begins a copy, or resumes the one that the target has a note of.
    ///
    /// # Errors
    /// If the target holds something else.
    pub async fn begin(
        source: &'a dyn Store,
        target: &'a dyn Store,
        tracker: Option<&'a dyn ChangeTracker>,
        (id, from): (u64, &str),
        options: CopyOptions,
        on_progress: &'a OnProgress<'a>,
    ) -> CopyResult<StoreCopy<'a>> {
        let found = copy_note(target).await.map_err(CopyError::Target)?;
        let is_resumed = found.is_some();
        let start = CopyState::Copying { verified: Key::new(), done: Amount::default() };
        let mut note = CopyNote { id, from: from.to_owned(), state: start };
        match found {
            Some(found) if found.state == CopyState::Complete => {
                return Err(CopyError::NotEmpty);
            }
            Some(found) if found.from != note.from => {
                return Err(CopyError::OtherCopy { from: found.from });
            }
            // A source with another id, or one that is written to, may have changed in the meantime:
            // everything is compared again.
            Some(found) if found.id == id && tracker.is_none() => note = found,
            Some(_) => {}
            None => {
                if !is_empty(target).await.map_err(CopyError::Target)? {
                    return Err(CopyError::NotEmpty);
                }
            }
        }
        let mut progress = CopyCounts::default();
        if let CopyState::Copying { done, .. } = &note.state {
            progress.done = *done;
        }
        let copy =
            StoreCopy { source, target, tracker, options, on_progress, note, is_resumed, progress };
        copy.write(Batch::new()).await?;
        Ok(copy)
    }

    /// The id of the copy: that of the one that is resumed, or the new one.
    pub fn id(&self) -> u64 {
        self.note.id
    }

    pub fn progress(&self) -> CopyCounts {
        self.progress
    }

    /// Copies all entries and verifies them.
    pub async fn entries(&mut self) -> CopyResult<()> {
        let CopyState::Copying { verified, .. } = self.note.state.clone() else { return Ok(()) };
        for territory in territories() {
            let start = territory.start.clone().max(verified.clone());
            let rest = KeyRange { start, end: territory.end };
            if !rest.is_empty() {
                self.range(rest, true).await?;
            }
        }
        Ok(())
    }

    /// Copies a range, chunk by chunk. Only the first pass over all entries marks its progress.
    async fn range(&mut self, range: KeyRange, is_marking: bool) -> CopyResult<()> {
        let mut next = Some(self.read(range.clone()).await?);
        while let Some(chunk) = next.take() {
            let rest =
                chunk.range.end.clone().map(|start| KeyRange { start, end: range.end.clone() });
            let rest = rest.filter(|rest| !rest.is_empty());
            // With a tracker, a change of the next chunk must be read after the chunk or copied after it.
            // So the next chunk is read only when this one and all changes have been copied.
            let ahead = rest.clone().filter(|_| self.tracker.is_none());
            let (stored, read) = join(self.store(&chunk), async {
                match ahead {
                    Some(ahead) => self.read(ahead).await.map(Some),
                    None => Ok(None),
                }
            })
            .await;
            let is_new = stored?;
            self.advance(&chunk, is_new, is_marking);
            next = read?;
            if self.tracker.is_some() && is_marking {
                let copied_to = chunk.range.end.clone();
                self.follow(copied_to.as_ref()).await?;
            }
            if next.is_none()
                && let Some(rest) = rest
            {
                next = Some(self.read(rest).await?);
            }
        }
        Ok(())
    }

    fn advance(&mut self, chunk: &Chunk, is_new: bool, is_marking: bool) {
        self.progress.ranges += 1;
        if !is_marking {
            self.progress.changes += if is_new { chunk.entries.len() as u64 } else { 0 };
            return;
        }
        self.progress.done.rows += chunk.entries.len() as u64;
        self.progress.done.bytes += chunk.size_bytes as u64;
        if let Some(end) = &chunk.range.end {
            // Stored with the next chunk, so a note never claims what was not verified.
            let (verified, done) = (end.clone(), self.progress.done);
            self.note.state = CopyState::Copying { verified, done };
        }
        (self.on_progress)(self.progress);
    }

    async fn read(&self, range: KeyRange) -> CopyResult<Chunk> {
        let chunk = Chunk::read(self.source, range, self.options.chunk_bytes).await;
        chunk.map_err(CopyError::Source)
    }

    /// Makes the target's range like the chunk, and verifies it. Returns whether it was different.
    async fn store(&self, chunk: &Chunk) -> CopyResult<bool> {
        let mut must_delete = false;
        if self.is_resumed || self.tracker.is_some() {
            let (found, is_empty) = self.checksum(&chunk.range).await?;
            if found == chunk.checksum {
                return Ok(false);
            }
            must_delete = !is_empty;
        }
        let mut batch = Batch::with_capacity(chunk.entries.len() + 2);
        if must_delete {
            batch.delete_range(chunk.range.clone());
        }
        for (key, value) in &chunk.entries {
            batch.put(key.clone(), value.clone());
        }
        self.write(batch).await?;
        let (found, _) = self.checksum(&chunk.range).await?;
        self.compare(chunk.checksum, found, || describe(&chunk.range))?;
        Ok(true)
    }

    async fn checksum(&self, range: &KeyRange) -> CopyResult<(u128, bool)> {
        checksum(self.target, range.clone()).await.map_err(CopyError::Target)
    }

    fn compare(&self, expected: u128, found: u128, what: impl Fn() -> String) -> CopyResult<()> {
        match expected == found {
            true => Ok(()),
            false => Err(CopyError::Differs { what: what(), expected, found }),
        }
    }

    /// Writes a batch, and the note with it.
    async fn write(&self, batch: Batch) -> CopyResult<()> {
        let keys = [CopyNote::key()];
        let mut decide = |_: &[Option<Value>]| {
            let mut batch = batch.clone();
            batch.put(CopyNote::key(), self.note.encode());
            Decision::Commit(batch)
        };
        let set = WriteSet { guards: &[], keys: &keys };
        self.target.write(set, &mut decide).await.map_err(CopyError::Target)?;
        Ok(())
    }

    /// Copies the ends of all logs, after the entries.
    pub async fn logs(&mut self) -> CopyResult<()> {
        let mut start = Key::new();
        loop {
            let ends = self.source.log_ends(&start, LOGS_AT_ONCE).await;
            let ends = ends.map_err(CopyError::Source)?;
            let is_last = ends.len() < LOGS_AT_ONCE;
            let last = ends.last().filter(|_| !is_last).map(|(log, _)| log.clone());
            let range = KeyRange { start: start.clone(), end: last.as_deref().map(successor) };
            self.log_range(&range, ends).await?;
            match range.end {
                Some(end) => start = end,
                None => return Ok(()),
            }
        }
    }

    /// Makes the target's logs in a range like these.
    async fn log_range(&self, range: &KeyRange, ends: Vec<(Key, LogEnd)>) -> CopyResult<()> {
        let found = self.target_logs(range).await?;
        if found == ends {
            return Ok(());
        }
        let mut batch = Batch::new();
        let kept: BTreeSet<&Key> = ends.iter().map(|(log, _)| log).collect();
        for (log, _) in found.iter().filter(|(log, _)| !kept.contains(log)) {
            batch.mutations.push(crate::Mutation::ForgetLog { log: log.clone() });
        }
        for (log, end) in &ends {
            batch.set_log_end(log.clone(), *end);
        }
        self.write(batch).await?;
        let found = self.target_logs(range).await?;
        let what = || format!("the numbering of logs in {}", describe(range));
        self.compare(logs_checksum(&ends), logs_checksum(&found), what)
    }

    async fn target_logs(&self, range: &KeyRange) -> CopyResult<Vec<(Key, LogEnd)>> {
        let mut start = range.start.clone();
        let mut found = Vec::new();
        loop {
            let page = self.target.log_ends(&start, LOGS_AT_ONCE).await;
            let page = page.map_err(CopyError::Target)?;
            let is_last = page.len() < LOGS_AT_ONCE;
            let next = page.last().map(|(log, _)| successor(log));
            let inside = |(log, _): &(Key, LogEnd)| range.contains(log);
            let count = page.len();
            found.extend(page.into_iter().filter(inside));
            match next {
                Some(next) if !is_last && range.contains(&next) && count > 0 => start = next,
                _ => return Ok(found),
            }
        }
    }

    /// Copies what has changed since the last look. Keys at or after `copied_to` are left out,
    /// because they will be copied anyway.
    ///
    /// # Errors
    /// If so much has changed that this would never end.
    async fn follow(&mut self, copied_to: Option<&Key>) -> CopyResult<usize> {
        let Some(tracker) = self.tracker else { return Ok(0) };
        let changed = tracker.take()?;
        let count = changed.len();
        if count > self.options.changes_max {
            return Err(CopyError::TooFast { left: count });
        }
        self.apply(changed, copied_to).await?;
        Ok(count)
    }

    /// Copies changes in rounds, until a round has no more than `left_max`.
    ///
    /// # Errors
    /// If the rounds don't become smaller.
    pub async fn catch_up(&mut self, left_max: usize) -> CopyResult<()> {
        for _ in 0..ROUNDS_MAX {
            let left = self.follow(None).await?;
            (self.on_progress)(self.progress);
            if left <= left_max {
                return Ok(());
            }
        }
        let left = self.follow(None).await?;
        if left <= left_max { Ok(()) } else { Err(CopyError::TooFast { left }) }
    }

    /// Copies the last changes. The source must not change any more.
    pub async fn catch_up_at_last(&mut self) -> CopyResult<()> {
        self.follow(None).await?;
        (self.on_progress)(self.progress);
        Ok(())
    }

    async fn apply(&mut self, changed: ChangedKeys, copied_to: Option<&Key>) -> CopyResult<()> {
        let is_copied = |key: &Key| {
            !key.starts_with(RESERVED) && copied_to.is_none_or(|copied_to| key < copied_to)
        };
        for range in changed.ranges {
            for territory in territories() {
                let range = intersection(&range, &territory);
                let end = match (range.end.as_ref(), copied_to) {
                    (Some(end), Some(copied_to)) => Some(end.min(copied_to)),
                    (end, copied_to) => end.or(copied_to),
                };
                let range = KeyRange { start: range.start, end: end.cloned() };
                if !range.is_empty() {
                    Box::pin(self.range(range, false)).await?;
                }
            }
        }
        let keys: Vec<Key> = changed.keys.into_iter().filter(is_copied).collect();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            self.keys(keys).await?;
        }
        let logs: Vec<Key> = changed.logs.into_iter().collect();
        for log in logs {
            let ends = self.source.log_ends(&log, 1).await.map_err(CopyError::Source)?;
            let range = KeyRange::new(log.clone(), successor(&log));
            let ends = ends.into_iter().filter(|(found, _)| *found == log).collect();
            self.log_range(&range, ends).await?;
        }
        Ok(())
    }

    /// Copies single entries and verifies them.
    async fn keys(&mut self, keys: &[Key]) -> CopyResult<()> {
        let values = self.source.get_many(keys).await.map_err(CopyError::Source)?;
        let mut batch = Batch::with_capacity(keys.len() + 1);
        for (key, value) in keys.iter().zip(&values) {
            match value {
                Some(value) => batch.put(key.clone(), value.clone()),
                None => batch.delete(key.clone()),
            }
        }
        self.write(batch).await?;
        let found = self.target.get_many(keys).await.map_err(CopyError::Target)?;
        let what = || format!("{} changed entries from {:?} on", keys.len(), keys[0]);
        self.compare(values_checksum(keys, &values), values_checksum(keys, &found), what)?;
        self.progress.changes += keys.len() as u64;
        Ok(())
    }

    /// Declares the target complete: it can be served.
    pub async fn finish(&mut self) -> CopyResult<()> {
        self.note.state = CopyState::Complete;
        self.write(Batch::new()).await
    }

    /// Takes [`StoreCopy::finish`] back, because the source stays in use after all.
    pub async fn reopen(&mut self) -> CopyResult<()> {
        let (verified, done) = (Key::new(), Amount::default());
        self.note.state = CopyState::Copying { verified, done };
        self.write(Batch::new()).await
    }
}

fn intersection(one: &KeyRange, other: &KeyRange) -> KeyRange {
    let end = match (&one.end, &other.end) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.as_ref().or(other.as_ref()),
    };
    KeyRange { start: one.start.clone().max(other.start.clone()), end: end.cloned() }
}

fn values_checksum(keys: &[Key], values: &[Option<Value>]) -> u128 {
    let mut checksum = RangeChecksum::default();
    for (key, value) in keys.iter().zip(values) {
        // An entry that is absent differs from one that is empty.
        checksum.add(key, &[u8::from(value.is_some())]);
        checksum.add(key, value.as_deref().unwrap_or_default());
    }
    checksum.get()
}

fn logs_checksum(ends: &[(Key, LogEnd)]) -> u128 {
    let mut checksum = RangeChecksum::default();
    for (log, end) in ends {
        checksum.add(log, &[end.sequence.to_be_bytes(), end.stamp.to_be_bytes()].concat());
    }
    checksum.get()
}

fn describe(range: &KeyRange) -> String {
    match &range.end {
        Some(end) => format!("the range from {:?} to {end:?}", range.start),
        None => format!("the range from {:?} on", range.start),
    }
}
