use std::sync::Arc;
use std::time::Duration;

use zenobe_backup::prune::{Keep, prune};
use zenobe_backup::restore_plan::RestorePoint;
use zenobe_backup::ship::ShipOptions;
use zenobe_backup::stored_files::{self, Subject};
use zenobe_backup::{BackupError, CpuShare, Repository, new_id};
use zenobe_store::Stamp;
use zenobe_testing::TemporaryDirectory;

use crate::faulty_store::{Fault, FaultyStore};
use crate::list_source::{DATABASE, ListSource, repository, restored, until, until_shipped};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

async fn back_up(repository: &Repository, directory: &TemporaryDirectory, at_ms: u64) -> String {
    let id = new_id(at_ms);
    let earlier = stored_files::begin(repository, &id, DATABASE).await.unwrap();
    let at = Stamp::first_of_ms(at_ms);
    let subject =
        Subject { id, generation: None, database: DATABASE, sequence: 0, at, content: None };
    let cpu_share = &mut CpuShare::full();
    stored_files::store(repository, directory.path(), subject, &earlier, cpu_share, &|_| {})
        .await
        .unwrap()
        .id
}

/// Wherever pruning is cut off, the next one removes the rest at once, and what is kept can be restored.
#[tokio::test]
async fn pruning_goes_on_where_it_was_cut_off() {
    for part in ["started", "manifest", "files/"] {
        let store = Arc::default();
        let repository = repository(&store);
        let directory = TemporaryDirectory::new("cut-off");
        let write = |name: &str| std::fs::write(directory.path().join(name), name).unwrap();
        write("old.sst");
        back_up(&repository, &directory, 10 * DAY_MS).await;
        std::fs::remove_file(directory.path().join("old.sst")).unwrap();
        write("new.sst");
        let kept = back_up(&repository, &directory, 10 * DAY_MS + 1).await;
        store.fail(part, Fault::Away, usize::MAX);
        prune(&repository, Keep::Backups(1), 10 * DAY_MS + 2).await.unwrap_err();
        store.heal();
        let manifest = repository.manifest(&kept).await.unwrap();
        let check = async || {
            let target = TemporaryDirectory::new("cut-off-target");
            let fetched =
                zenobe_backup::fetch::files(&repository, &manifest, target.path(), &[], &|_| {});
            fetched.await.unwrap();
            assert_eq!(std::fs::read(target.path().join("new.sst")).unwrap(), b"new.sst");
        };
        check().await;
        let pruned = prune(&repository, Keep::Backups(1), 10 * DAY_MS + 3).await.unwrap();
        assert!(!pruned.is_waiting, "{part}: nothing is being made");
        let left = repository.contents().await.unwrap();
        assert_eq!(left.finished().collect::<Vec<_>>(), [kept.as_str()], "{part}");
        let files: usize = left.snapshots.values().map(|objects| objects.files.len()).sum();
        assert_eq!(files, 1, "{part}: {left:?}");
        check().await;
    }
}

#[tokio::test]
async fn files_that_a_kept_backup_needs_stay() {
    let repository = repository(&Arc::default());
    let directory = TemporaryDirectory::new("pruned");
    let write = |name: &str| std::fs::write(directory.path().join(name), name).unwrap();
    write("shared.sst");
    write("old.sst");
    let first = back_up(&repository, &directory, 10 * DAY_MS).await;
    std::fs::remove_file(directory.path().join("old.sst")).unwrap();
    write("new.sst");
    back_up(&repository, &directory, 10 * DAY_MS + 1).await;

    // While another is being made, no file goes.
    let unfinished = new_id(10 * DAY_MS + 2);
    stored_files::begin(&repository, &unfinished, DATABASE).await.unwrap();
    let pruned = prune(&repository, Keep::Backups(1), 10 * DAY_MS + 3).await.unwrap();
    assert_eq!((pruned.snapshots, pruned.files, pruned.is_waiting), (1, 0, true));
    // A day later it has been given up.
    let pruned = prune(&repository, Keep::Backups(1), 12 * DAY_MS).await.unwrap();
    assert_eq!((pruned.snapshots, pruned.files, pruned.is_waiting), (0, 1, false));

    // Files that a removed backup leaves to others don't look like one that is being made.
    let third = back_up(&repository, &directory, 12 * DAY_MS + 1).await;
    let pruned = prune(&repository, Keep::Backups(1), 12 * DAY_MS + 2).await.unwrap();
    assert_eq!((pruned.snapshots, pruned.files, pruned.is_waiting), (1, 0, false));

    let target = TemporaryDirectory::new("pruned-target");
    let manifest = repository.manifest(&third).await.unwrap();
    zenobe_backup::fetch::files(&repository, &manifest, target.path(), &[], &|_| {}).await.unwrap();
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 2);
    let gone = restored(&repository, &RestorePoint::Backup(first)).await.unwrap_err();
    assert!(matches!(gone, BackupError::NoSuchBackup { .. }), "{gone}");
}

/// What is older than the retention goes, and every second since can be restored.
#[tokio::test]
async fn old_parts_of_the_shipped_log_go() {
    let (store, source) = (Arc::new(FaultyStore::default()), ListSource::new("retention"));
    let repository = repository(&store);
    let options = ShipOptions {
        interval: Duration::from_millis(20),
        snapshot_interval: Duration::from_millis(300),
        ..ShipOptions::default()
    };
    source.commit("first");
    let (status, shipping) = source.ship_with(&repository, options);
    for number in 0.. {
        source.commit(&format!("{number}"));
        tokio::time::sleep(Duration::from_millis(10)).await;
        if status.get().snapshots >= 4 {
            break;
        }
    }
    until_shipped(&status).await;
    source.close();
    shipping.await.unwrap();
    until(|| !status.get().is_running).await;
    let contents = repository.contents().await.unwrap();
    let ids: Vec<String> = contents.finished().map(str::to_owned).collect();
    let third = repository.manifest(&ids[2]).await.unwrap();
    // More than a day later: a last snapshot that was cut off counts as given up by then.
    let pruned =
        prune(&repository, Keep::ShippedSince(third.at.at_ms()), third.at.at_ms() + 2 * DAY_MS)
            .await
            .unwrap();
    assert_eq!(pruned.snapshots, 2, "{ids:?}");
    assert!(pruned.segments > 0 && !pruned.is_waiting, "{pruned:?}");
    assert_eq!(restored(&repository, &RestorePoint::Latest).await.unwrap(), source.all_texts());
    let expected = source.texts(Stamp::last_of_ms(third.at.at_ms()));
    assert_eq!(
        restored(&repository, &RestorePoint::Time(third.at.at_ms())).await.unwrap(),
        expected
    );
}
