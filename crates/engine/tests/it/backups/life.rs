//! A backup from its creation to its end.

use futures_util::future::join;
use zenobe_engine::backups::{Backup, Content, ListBackups};
use zenobe_engine::error::{RestoreError, TableBackupError};

use super::*;

#[test]
fn a_backup_keeps_one_moment_before_and_after_it_is_copied() {
    on_each_store(async |store| {
        let mut world = World::with_table(store()).await;
        for key in 0..20 {
            world.put(&key.to_string(), key).await;
        }
        assert_eq!(world.count(b'U').await, 0, "nothing is kept before");
        let before = world.state("t").await;
        let id = world.back_up().await;
        world.put("3", 100).await;
        world.put("new", 1).await;
        world.script.run(&[r#"delete t {"pk": "4"}"#]).await;
        assert_eq!((world.count(b'U').await, world.count(b'F').await), (3, 1));
        world.script.check_consistency().await;

        // The copy and the restore run side by side, and finish.
        assert_eq!(world.restored(&id).await, before);
        let backup = world.engine().backup(&world.script.table("t"), &id).await.unwrap();
        assert!(matches!(backup.content, Content::Copied { .. }), "{:?}", backup.content);
        assert_eq!(backup.statistics.item_count, 20);

        // Nothing is kept any more, and no job is left.
        world.put("3", 101).await;
        let left = [b'U', b'W', b'J'].map(|kind| world.count(kind));
        let [undo, jobs, garbage] = futures_util::future::join_all(left).await[..] else {
            panic!()
        };
        // The job of the restore can still be described.
        assert_eq!((undo, jobs, garbage), (0, 1, 0));
        assert_eq!(world.engine().history_sizes().await.unwrap(), []);
        world.script.check_consistency().await;
        assert_eq!(world.restored(&id).await, before);
    });
}

#[test]
fn an_empty_table_can_be_backed_up() {
    on_each_store(async |store| {
        let mut world = World::with_table(store()).await;
        let held = world.back_up().await;
        world.put("a", 1).await;
        assert_eq!(world.restored(&held).await, State::new());
        assert_eq!(world.restored(&held).await, State::new());
    });
}

#[test]
fn a_deleted_backup_leaves_nothing() {
    on_each_store(async |store| {
        for is_copied in [false, true] {
            let mut world = World::with_table(store()).await;
            world.put("a", 1).await;
            let id = world.back_up().await;
            world.put("a", 2).await;
            if is_copied {
                world.work().await;
            }
            let (engine, table) = (world.engine().clone(), world.script.table("t"));
            let deleted = engine.delete_backup(&table, &id).await.unwrap();
            assert_eq!(deleted.id, id);
            let gone = |result: Result<Backup, Error>| {
                assert!(
                    matches!(result, Err(Error::Backup(TableBackupError::NotFound { .. }))),
                    "{result:?}"
                );
            };
            gone(engine.backup(&table, &id).await);
            gone(engine.delete_backup(&table, &id).await);
            let restore = world.begin_restore(&id, "restored").await;
            assert!(matches!(restore, Err(Error::Backup(TableBackupError::NotFound { .. }))));
            world.work().await;
            for kind in [b'F', b'J', b'P', b'U', b'W'] {
                assert_eq!(world.count(kind).await, 0, "{}", char::from(kind));
            }
            world.put("a", 3).await;
            assert_eq!(world.count(b'U').await, 0, "the table holds nothing for it");
            world.script.check_consistency().await;
        }
    });
}

/// The items stay until the last backup has them, also if another table has the name by then.
#[test]
fn a_table_deleted_while_it_is_copied_stays_until_then() {
    on_each_store(async |store| {
        for has_recovery in [false, true] {
            let mut world = World::with_table(store()).await;
            if has_recovery {
                world.recover(true, None).await;
            }
            world.put("a", 1).await;
            let first = world.back_up().await;
            world.put("a", 2).await;
            world.put("b", 2).await;
            let second = world.back_up().await;
            world.put("a", 3).await;
            world.script.run(&["drop t"]).await;
            world.script.run(&["create t pk:S"]).await;
            world.put("other", 1).await;

            let values = async |world: &World, id: &str| -> Vec<u64> {
                let items = world.restored(id).await;
                items.iter().map(|item| number(item, "v")).collect()
            };
            assert_eq!(values(&world, &first).await, [1]);
            assert_eq!(values(&world, &second).await, [2, 2]);
            // The other table's item, and what the database keeps of a table with recovery.
            let kept = if has_recovery { (3, 4) } else { (1, 0) };
            assert_eq!((world.count(b'T').await, world.count(b'U').await), kept);
            world.clock.advance_ms(36 * DAY_MS);
            world.work().await;
            assert_eq!((world.count(b'T').await, world.count(b'U').await), (1, 0));
            assert_eq!(world.count(b'P').await, 2, "users' backups don't expire");
            assert_eq!(values(&world, &first).await, [1]);
            world.script.check_consistency().await;
        }
    });
}

#[test]
fn recovery_may_be_switched_while_a_backup_is_copied() {
    on_each_store(async |store| {
        let mut world = World::with_table(store()).await;
        world.put("a", 1).await;
        let id = world.back_up().await;
        world.put("a", 2).await;
        world.recover(true, None).await;
        world.put("a", 3).await;
        let restored = world.restored(&id).await;
        assert_eq!(number(&restored[0], "v"), 1);
        assert_eq!(world.count(b'U').await, 2, "recovery keeps them now");
        world.script.check_consistency().await;

        let id = world.back_up().await;
        world.put("a", 4).await;
        world.recover(false, None).await;
        world.put("a", 5).await;
        assert_eq!(world.count(b'U').await, 4, "the backup still needs them");
        world.script.check_consistency().await;
        let restored = world.restored(&id).await;
        assert_eq!(number(&restored[0], "v"), 3);
        assert_eq!(world.count(b'U').await, 0);
        world.put("a", 6).await;
        assert_eq!(world.count(b'U').await, 0);
        world.script.check_consistency().await;
    });
}

/// A node that has taken a job and does nothing.
async fn keep_busy(world: &World, job: &zenobe_engine::jobs::JobRow) -> Script {
    let hour = Duration::from_secs(60 * 60);
    let busy = open_with(world.store.clone(), &world.clock, hour).await;
    let lease = busy.engine().lease(&format!("jobs/{}/{}", job.kind, job.id)).await.unwrap();
    assert!(lease.is_some());
    busy
}

#[test]
fn trimming_waits_for_backups() {
    block_on(async {
        let mut world = World::with_table(MemoryStore::shared()).await;
        let table = world.script.table("t");
        world.engine().update_continuous_backups(&table, true, Some(1)).await.unwrap();
        world.put("a", 1).await;
        world.clock.advance_ms(1_000);
        let id = world.back_up().await;
        world.put("a", 2).await;
        world.clock.advance_ms(4 * DAY_MS);
        world.put("a", 3).await;
        assert_eq!(world.count(b'U').await, 3);
        let job = world.engine().open_jobs().await.unwrap().remove(0);
        let busy = keep_busy(&world, &job).await;
        world.work().await;
        assert_eq!(world.count(b'U').await, 2, "the backup needs what is younger than itself");
        busy.engine().leave().await.unwrap();
        let restored = world.restored(&id).await;
        assert_eq!(number(&restored[0], "v"), 1);
        world.clock.advance_ms(DAY_MS / 12);
        world.work().await;
        assert_eq!(world.count(b'U').await, 1, "only the last change is younger than a day");
        world.script.check_consistency().await;
    });
}

/// Backups that overlap keep one era, but not everything in it.
#[test]
fn what_only_earlier_backups_needed_is_trimmed() {
    block_on(async {
        let mut world = World::with_table(MemoryStore::shared()).await;
        world.put("a", 1).await;
        let first = world.back_up().await;
        world.put("a", 2).await;
        world.put("b", 2).await;
        world.clock.advance_ms(1_000);
        let second = world.back_up().await;
        world.put("a", 3).await;
        assert_eq!(world.count(b'U').await, 3);
        let jobs = world.engine().open_jobs().await.unwrap();
        let busy = keep_busy(&world, jobs.iter().max_by_key(|job| &job.id).unwrap()).await;
        let restored = world.restored(&first).await;
        assert_eq!(number(&restored[0], "v"), 1);
        assert_eq!(world.count(b'U').await, 1, "the second backup still needs the last change");
        world.script.check_consistency().await;
        busy.engine().leave().await.unwrap();
        let restored = world.restored(&second).await;
        assert_eq!(restored.iter().map(|item| number(item, "v")).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(world.count(b'U').await, 0);
    });
}

#[test]
fn one_restore_at_a_time() {
    on_each_store(async |store| {
        let mut world = World::with_table(store()).await;
        world.put("a", 1).await;
        let id = world.back_up().await;
        let both = join(world.begin_restore(&id, "one"), world.begin_restore(&id, "other")).await;
        let in_use = |result: &Result<(), Error>| {
            matches!(result, Err(Error::Restore(RestoreError::BackupInUse { .. })))
        };
        assert!(both.0.is_ok() && in_use(&both.1), "{both:?}");
        let table = world.script.table("t");
        let deleted = world.engine().delete_backup(&table, &id).await;
        assert!(
            matches!(deleted, Err(Error::Backup(TableBackupError::BeingRestored { .. }))),
            "{deleted:?}"
        );
        world.work().await;
        assert_eq!(world.state("one").await, world.state("t").await);
        world.begin_restore(&id, "other").await.unwrap();
        world.work().await;
        world.engine().delete_backup(&table, &id).await.unwrap();
    });
}

#[test]
fn so_many_backups_of_a_table_can_wait() {
    on_each_store(async |store| {
        let world = World::with_table(store()).await;
        for _ in 0..50 {
            world.back_up().await;
        }
        let table = world.script.table("t");
        let more = world.engine().create_backup(&table, "nightly").await;
        assert!(matches!(more, Err(Error::Backup(TableBackupError::TooMany))), "{more:?}");
        world.work().await;
        world.back_up().await;
    });
}

#[test]
fn lists_are_in_the_order_of_time_and_can_be_continued() {
    on_each_store(async |store| {
        let mut world = World::with_table(store()).await;
        world.script.run(&["create other pk:S"]).await;
        let mut ids = Vec::new();
        for number in 0..9 {
            world.clock.advance_ms(10);
            let table = world.script.table(if number % 2 == 0 { "t" } else { "other" });
            ids.push(world.engine().create_backup(&table, "nightly").await.unwrap().id);
        }
        let namespace = world.script.table("t").namespace;
        let all = ListBackups {
            namespace: &namespace,
            table: None,
            users: true,
            systems: true,
            created_at_ms: 0..u64::MAX,
            after: None,
            limit: 4,
        };
        let list = async |request: &ListBackups<'_>| {
            let list = world.engine().list_backups(request).await.unwrap();
            let places = list.backups.into_iter().map(|it| (it.id, it.definition.name));
            (places.collect::<Vec<_>>(), list.has_more)
        };
        let (mut found, mut after) = (Vec::new(), None::<(String, String)>);
        loop {
            let after_place = after.as_ref().map(|(id, table)| (id.as_str(), table.as_str()));
            let (page, has_more) = list(&ListBackups { after: after_place, ..all.clone() }).await;
            after = page.last().cloned();
            found.extend(page.into_iter().map(|(id, _)| id));
            if !has_more {
                break;
            }
        }
        assert_eq!(found, ids);
        let (page, has_more) = list(&ListBackups { limit: 9, ..all.clone() }).await;
        assert_eq!((page.len(), has_more), (9, false), "no more than there are");
        let (page, _) =
            list(&ListBackups { table: Some("other"), limit: 100, ..all.clone() }).await;
        assert_eq!(page.len(), 4);
        let created_at_ms = START_MS + 20..START_MS + 40;
        let (page, _) = list(&ListBackups { created_at_ms, ..all.clone() }).await;
        assert_eq!(page.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ids[1..3]);
        let (page, _) = list(&ListBackups { users: false, ..all }).await;
        assert_eq!(page, []);

        let sizes = world.engine().backup_sizes().await.unwrap();
        let counts = sizes.iter().map(|size| (size.table.as_str(), size.backups));
        assert_eq!(counts.collect::<Vec<_>>(), [("other", 4), ("t", 5)]);
    });
}
