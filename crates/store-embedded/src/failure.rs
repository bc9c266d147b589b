//! When the disk fails: writes stop, reads go on, and the store recovers by itself once it can.
//!
//! Any error of a write to RocksDB or of a sync of its log fails every write that is not yet acknowledged,
//! with [`Error::Io`]. Whether such a write is on disk is unknown. Nothing of it is published, and no
//! decision is based on it: readers keep seeing the last durable state, and writes are refused with
//! [`Error::WritesDisabled`] until the database has been closed and opened again. Opening it replays the
//! log as it is on disk, so that what is read and decided afterwards is what a restart would find.
//!
//! Reopening is tried once a second, as soon as a probe file can be written and synced and nobody seems to
//! hold a snapshot of the old database. Reads wait for it, without holding a thread. If the database cannot
//! be opened again, reads fail too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_store::{Error, Result};

use crate::database::Database;
use crate::directory::{Directory, probe_room};
use crate::group::Group;
use crate::log::AcceptDamage;
use crate::shared::{Absence, Shared};
use crate::view::View;

/// How long to wait before each attempt to recover.
pub(crate) const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// How long an attempt waits for reads that are running.
const READERS_WAIT: Duration = Duration::from_millis(200);

/// Among so many attempts, one makes new reads wait until those before them have ended. Otherwise reads that
/// never pause could keep the store from recovering.
const INSISTING_EVERY: u32 = 10;

/// The room that a disk must have before writes are tried again.
const RECOVERY_ROOM_BYTES: usize = 8 << 20;

/// Fails every write that has not been acknowledged, these groups among them, and refuses new ones.
pub(crate) fn disable_writes(shared: &Shared, error: &Error, groups: Vec<Group>) {
    tracing::error!("writing failed, so the store refuses writes until it has recovered: {error}");
    let (waiting, last_order) = shared.queue.fail(error.to_string());
    // From here on nobody is decided on what has been lost.
    shared.overlay.settle(last_order);
    shared.overlay.clear();
    shared.known_counters.clear();
    let error = Error::Io { detail: error.to_string() };
    let waiting = Group::without_outcome(waiting);
    fail_groups(shared, &error, groups);
    fail_groups(shared, &error, vec![waiting]);
}

pub(crate) fn fail_groups(shared: &Shared, error: &Error, groups: Vec<Group>) {
    for group in groups {
        let (count, size_bytes) = (group.batches.len(), group.size_bytes());
        group.fail(error);
        shared.queue.release(count, size_bytes);
    }
}

/// Opens the database again as soon as that is possible. `None` if the store is closed before. Nothing may
/// be in flight any more.
pub(crate) fn recover(shared: &Shared, database: Arc<Database>) -> Option<Arc<Database>> {
    let directory = Arc::clone(database.directory());
    drop(database);
    let mut reported = None;
    let mut attempts = 0;
    while !shared.queue.wait_unless_closed(RECOVERY_INTERVAL) {
        attempts += 1;
        let insists = attempts % INSISTING_EVERY == 0;
        let reopened = probe_room(directory.path(), RECOVERY_ROOM_BYTES)
            .map_err(|error| Error::Io { detail: format!("the disk still fails: {error}") })
            .and_then(|()| reopen(shared, &directory, insists));
        match reopened {
            Ok(database) => {
                tracing::warn!("the database has been reopened; the store takes writes again");
                shared.queue.recover();
                return Some(database);
            }
            Err(error) => {
                // Once per cause, not once per second.
                let text = error.to_string();
                if reported.as_ref() != Some(&text) {
                    tracing::warn!("not recovered yet: {text}");
                    reported = Some(text);
                }
            }
        }
    }
    None
}

fn reopen(shared: &Shared, directory: &Arc<Directory>, insists: bool) -> Result<Arc<Database>> {
    let in_use =
        || Error::Io { detail: "a snapshot of the failed database is still in use".to_owned() };
    shared.cancel_reclaiming();
    if !insists && !wait_until(READERS_WAIT, || shared.looks_unused()) {
        return Err(in_use());
    }
    // Absent already if an earlier attempt closed the database but could not open it.
    if let Some(view) = shared.withdraw(Absence::Reopening) {
        close(view).map_err(|view| {
            shared.publish_again(view);
            in_use()
        })?;
    }
    // Whoever accepted a damaged log at the start meant that one, not whatever comes later.
    match Database::open(Arc::clone(directory), &shared.options, AcceptDamage::No) {
        Ok(database) => {
            let database = Arc::new(database);
            // The log may have more than was published before the failure.
            shared.values.clear();
            let view = View::new(Arc::clone(&database), Arc::clone(&shared.values));
            shared.publish_again(Arc::new(view));
            Ok(database)
        }
        Err(error) => {
            shared.withdraw(Absence::CannotReopen { detail: error.to_string() });
            Err(error)
        }
    }
}

/// Closes a database by dropping its last view, or hands the view back if others still use it.
fn close(view: Arc<View>) -> std::result::Result<(), Arc<View>> {
    let mut view = Some(view);
    wait_until(READERS_WAIT, || {
        view = match view.take().map(Arc::try_unwrap) {
            None => None,
            Some(Ok(only)) if only.is_last() => None,
            Some(Ok(other)) => Some(Arc::new(other)),
            Some(Err(used)) => Some(used),
        };
        view.is_none()
    });
    view.map_or(Ok(()), Err)
}

/// Looks every millisecond whether a condition holds. Says whether it came to hold in time.
fn wait_until(duration: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if begun.elapsed() > duration {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::reopen;
    use crate::database::Database;
    use crate::directory::Directory;
    use crate::log;
    use crate::options::Options;
    use crate::shared::Shared;
    use std::sync::Arc;
    use zenobe_store::conformance::{Random, block_on};
    use zenobe_store::{Error, KeyRange};

    #[test]
    fn a_snapshot_in_use_does_not_make_reads_wait() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Shared::open(directory.path(), Options::default()).unwrap();
        let held = shared.published().unwrap();
        let directory = Arc::clone(held.database().directory());
        std::thread::scope(|scope| {
            let attempt = scope.spawn(|| reopen(&shared, &directory, false).map(drop));
            while !attempt.is_finished() {
                assert!(shared.published().is_some(), "reads would wait");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert!(attempt.join().unwrap().is_err());
        });
        assert!(reopen(&shared, &directory, true).is_err());
        assert!(Arc::ptr_eq(&shared.published().unwrap(), &held), "published again");

        drop(held);
        let reopened = reopen(&shared, &directory, false).unwrap();
        assert!(Arc::ptr_eq(shared.published().unwrap().database(), &reopened));
    }

    #[test]
    fn reclaiming_does_not_delay_recovery() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { write_buffer_bytes: 1 << 20, ..Options::default() };
        let shared = Shared::open(directory.path(), options).unwrap();
        let directory = fill(shared.published().unwrap().database());
        // Much more than can be done before the reopening gives up.
        for _ in 0..100 {
            block_on(shared.reclaim(KeyRange::all())).unwrap();
        }
        reopen(&shared, &directory, false).unwrap();
    }

    /// Whoever accepted a loss once, at the start, has not accepted the next one.
    #[test]
    fn what_was_accepted_at_the_start_does_not_hold_for_recovery() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { accept_log_damage: true, ..Options::default() };
        let shared = Shared::open(directory.path(), options).unwrap();
        let directory = Arc::clone(shared.published().unwrap().database().directory());
        let path = write_three_groups(shared.published().unwrap().database());
        let mut content = std::fs::read(&path).unwrap();
        content[30] ^= 1;
        std::fs::write(&path, content).unwrap();
        let refused = reopen(&shared, &directory, false).map(drop);
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        assert!(shared.published().is_none(), "nothing is shown in place of what was lost");
    }

    /// Each but the last is said to be durable by the one after it. Yields the log.
    fn write_three_groups(database: &Database) -> std::path::PathBuf {
        let nonce = database.directory().nonce();
        for key in ["a", "b", "c"] {
            let horizon = database.rocks().latest_sequence_number();
            let mut write = log::write_with(nonce, horizon, 0);
            write.put(key, "value");
            database.write(write).unwrap();
            database.sync_log().unwrap();
        }
        let files = std::fs::read_dir(database.directory().rocksdb_path()).unwrap();
        let paths = files.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|name| name == "log")).max().unwrap()
    }

    /// Writes the same range again and again, so that there is something to compact.
    fn fill(database: &Database) -> Arc<Directory> {
        let mut random = Random::new(1);
        for round in 0..200_u32 {
            let mut write = rocksdb::WriteBatch::default();
            for row in 0..20_u32 {
                write.put((row * 1000 + round).to_be_bytes(), random.bytes(20_000));
            }
            database.write(write).unwrap();
        }
        Arc::clone(database.directory())
    }
}
