//! Recovery after a failure: the database is closed and opened again as soon as the disk accepts writes.
//!
//! [`crate::commit`] tells what a failure is and what it does to writes. Until the database has been reopened,
//! readers keep seeing the last published snapshot, and writes answer [`Error::WritesRefused`]. Opening the database
//! replays the log as it is on disk, so that reads and decisions see what a restart would find.
//!
//! Reopening is tried once a second, if a probe file can be written and synced and no reader seems to hold a snapshot
//! of the old database. Reads wait for it without blocking a thread. If the database cannot be opened again, reads
//! fail too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_store::{Error, Result};

use crate::directory::{Directory, probe_room};
use crate::inner::Inner;
use crate::published::Absence;
use crate::rocks_database::RocksDatabase;
use crate::snapshot::Snapshot;
use crate::write_ahead_log::AcceptDamage;

/// How long to wait before each attempt.
pub(crate) const ATTEMPT_INTERVAL: Duration = Duration::from_secs(1);

/// How long an attempt waits for reads that are running.
const READERS_WAIT: Duration = Duration::from_millis(200);

/// One of this many attempts makes new reads wait until the earlier ones have ended. Otherwise reads that never
/// pause could keep the store from recovering.
const INSISTING_EVERY: u32 = 10;

/// The free space that the disk must have before writes are tried again.
const ROOM_BYTES: usize = 8 << 20;

/// Opens the database again as soon as that is possible. `None` if the store is closed before. Nothing may be in
/// flight any more.
pub(crate) fn reopen_when_possible(
    store: &Inner,
    database: Arc<RocksDatabase>,
) -> Option<Arc<RocksDatabase>> {
    let directory = Arc::clone(database.directory());
    drop(database);
    let mut reported = None;
    let mut attempts = 0;
    while !store.queue.wait_unless_closed(ATTEMPT_INTERVAL) {
        attempts += 1;
        let insists = attempts % INSISTING_EVERY == 0;
        let reopened = probe_room(directory.path(), ROOM_BYTES)
            .map_err(|error| Error::Io { detail: format!("the disk still fails: {error}") })
            .and_then(|()| reopen(store, &directory, insists));
        match reopened {
            Ok(database) => {
                tracing::warn!("the store has recovered and accepts writes again");
                store.queue.recover();
                return Some(database);
            }
            Err(error) => {
                // Once per cause, not once per second.
                let text = error.to_string();
                if reported.as_ref() != Some(&text) {
                    tracing::warn!("recovery failed; trying again in a second: {text}");
                    reported = Some(text);
                }
            }
        }
    }
    None
}

fn reopen(store: &Inner, directory: &Arc<Directory>, insists: bool) -> Result<Arc<RocksDatabase>> {
    let in_use =
        || Error::Io { detail: "a snapshot of the failed database is still in use".to_owned() };
    store.cancel_background_work();
    if !insists && !wait_until(READERS_WAIT, || store.published.looks_unused()) {
        return Err(in_use());
    }
    // Absent already if an earlier attempt closed the database but could not open it.
    if let Some(snapshot) = store.published.withdraw(Absence::Reopening) {
        close(snapshot).map_err(|snapshot| {
            store.published.publish_again(snapshot);
            in_use()
        })?;
    }
    // An operator who accepted a damaged log at the start accepted that loss, not a later one.
    match RocksDatabase::open(Arc::clone(directory), &store.options, AcceptDamage::No) {
        Ok(database) => {
            let database = Arc::new(database);
            // The log may have more than was published before the failure.
            store.value_cache.clear();
            store.change_tap.lose();
            let snapshot = Snapshot::new(Arc::clone(&database), Arc::clone(&store.value_cache));
            store.published.publish_again(Arc::new(snapshot));
            Ok(database)
        }
        Err(error) => {
            store.published.withdraw(Absence::CannotReopen { detail: error.to_string() });
            Err(error)
        }
    }
}

/// Closes a database by dropping its last snapshot, or hands the snapshot back if others still use the database.
fn close(snapshot: Arc<Snapshot>) -> std::result::Result<(), Arc<Snapshot>> {
    let mut snapshot = Some(snapshot);
    wait_until(READERS_WAIT, || {
        snapshot = match snapshot.take().map(Arc::try_unwrap) {
            None => None,
            Some(Ok(only)) if only.is_last() => None,
            Some(Ok(other)) => Some(Arc::new(other)),
            Some(Err(used)) => Some(used),
        };
        snapshot.is_none()
    });
    snapshot.map_or(Ok(()), Err)
}

/// Checks a condition every millisecond. Returns whether it became true in time.
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
    use crate::directory::Directory;
    use crate::inner::Inner;
    use crate::options::Options;
    use crate::rocks_database::RocksDatabase;
    use crate::write_ahead_log;
    use std::sync::Arc;
    use zenobe_store::conformance::{Random, block_on};
    use zenobe_store::copying::CopyError;
    use zenobe_store::{Error, KeyRange};

    #[test]
    fn a_snapshot_in_use_does_not_make_reads_wait() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let held = store.published.get().unwrap();
        let directory = Arc::clone(held.database().directory());
        std::thread::scope(|scope| {
            let attempt = scope.spawn(|| reopen(&store, &directory, false).map(drop));
            while !attempt.is_finished() {
                assert!(store.published.get().is_some(), "reads would wait");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert!(attempt.join().unwrap().is_err());
        });
        assert!(reopen(&store, &directory, true).is_err());
        assert!(Arc::ptr_eq(&store.published.get().unwrap(), &held), "published again");

        drop(held);
        let reopened = reopen(&store, &directory, false).unwrap();
        assert!(Arc::ptr_eq(store.published.get().unwrap().database(), &reopened));
    }

    /// The tap never sees writes that recovery finds in the log but that were never published.
    #[test]
    fn a_tap_does_not_outlive_a_recovery() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let directory = Arc::clone(store.published.get().unwrap().database().directory());
        store.change_tap.open();
        assert!(store.change_tap.take().unwrap().is_empty());
        reopen(&store, &directory, false).unwrap();
        assert!(matches!(store.change_tap.take(), Err(CopyError::ChangesLost(_))));
    }

    #[test]
    fn reclaiming_does_not_delay_recovery() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { write_buffer_bytes: 1 << 20, ..Options::default() };
        let store = Inner::open(directory.path(), options).unwrap();
        let directory = fill(store.published.get().unwrap().database());
        // Much more than can be done before the reopening gives up. The ranges are apart from each other.
        for number in 0..100_u32 {
            let [start, end] = [0, 150].map(|offset| (number * 200 + offset).to_be_bytes());
            let range = KeyRange::new(start.to_vec(), end.to_vec());
            block_on(store.reclaim(range)).unwrap();
        }
        reopen(&store, &directory, false).unwrap();
    }

    /// A loss that was accepted at the start does not extend to later ones.
    #[test]
    fn what_was_accepted_at_the_start_does_not_hold_for_recovery() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { accept_log_damage: true, ..Options::default() };
        let store = Inner::open(directory.path(), options).unwrap();
        let directory = Arc::clone(store.published.get().unwrap().database().directory());
        let path = write_three_groups(store.published.get().unwrap().database());
        let mut content = std::fs::read(&path).unwrap();
        content[30] ^= 1;
        std::fs::write(&path, content).unwrap();
        let refused = reopen(&store, &directory, false).map(drop);
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        assert!(store.published.get().is_none(), "nothing is shown in place of what was lost");
    }

    /// Each but the last is said to be durable by the one after it. Yields the log.
    fn write_three_groups(database: &RocksDatabase) -> std::path::PathBuf {
        let nonce = database.directory().nonce();
        for key in ["a", "b", "c"] {
            let horizon = database.rocks().latest_sequence_number();
            let mut write = write_ahead_log::batch_with_horizon(nonce, horizon, 0);
            write.put(key, "value");
            database.write(write).unwrap();
            database.sync_log().unwrap();
        }
        let files = std::fs::read_dir(database.directory().rocksdb_path()).unwrap();
        let paths = files.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|name| name == "log")).max().unwrap()
    }

    /// Writes the same range again and again, so that there is something to compact.
    fn fill(database: &RocksDatabase) -> Arc<Directory> {
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
