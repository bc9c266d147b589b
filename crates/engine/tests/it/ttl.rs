//! Expiry at scale, and against writers and changes of the setting.

use std::sync::Arc;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::{Engine, EngineOptions, Limits};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;

use crate::support::commands::Script;
use crate::support::{Fixture, block_on};

/// Lets the setting change at any time.
fn options(clock: &Arc<ManualClock>) -> EngineOptions {
    let limits = Limits { time_to_live_change_interval_ms: 0, ..Limits::default() };
    EngineOptions { clock: clock.clone(), limits, ..EngineOptions::default() }
}

async fn script(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Script {
    let engine = Engine::open(Arc::clone(store), options(clock)).await.unwrap();
    Script::with_fixture(Fixture::with_engine(engine, clock.clone()))
}

async fn count(script: &Script) -> u64 {
    let table = script.engine().describe_table(&script.table("t")).await.unwrap();
    table.statistics.item_count
}

#[test]
fn many_items_expire_in_one_go() {
    block_on(async {
        let mut script = Script::with_fixture(Fixture::new().await);
        script.run(&["create t pk:S", "gsi g v:N - keys"]).await;
        script.run(&["ttl t on e"]).await;
        script.run(&[r#"repeat 0..1500 put t {"pk": "$i", "e": 1000, "v": $i}"#]).await;
        script.run(&[r#"repeat 0..100 put t {"pk": "stays $i", "e": 9000, "v": $i}"#]).await;
        script.run(&["clock +2000"]).await;
        assert_eq!(count(&script).await, 1_600);
        script.run(&["work"]).await;
        assert_eq!(count(&script).await, 100);
        assert_eq!(script.engine().expired_items(), 1_500);
        script.check_consistency().await;
    });
}

#[test]
fn the_setting_can_change_while_its_index_is_filled() {
    block_on(async {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut one = script(&store, &clock).await;
        one.run(&["create t pk:S"]).await;
        one.run(&[r#"repeat 0..400 put t {"pk": "$i", "e": 10, "f": 2000}"#]).await;
        clock.set_ms(2_000_000);
        one.run(&["ttl t on e"]).await;
        // As after a crash: another engine finds the work undone.
        let mut two = script(&store, &clock).await;
        clock.advance_ms(1);
        two.run(&["ttl t off e"]).await;
        clock.advance_ms(1);
        two.run(&["ttl t on f"]).await;
        two.run(&[r#"update t {"pk": "7"} SET f = `9000`"#]).await;
        // The first engine still has the old setting.
        one.run(&["work"]).await;
        two.run(&["work"]).await;
        two.check_consistency().await;
        for name in ["t"] {
            let found = two.engine().check_consistency(&two.table(name)).await.unwrap();
            assert_eq!(found, []);
            let definition =
                two.engine().describe_table(&two.table(name)).await.unwrap().definition;
            assert!(definition.ttl_indexed);
        }
        assert_eq!(count(&two).await, 400);
        clock.set_ms(2_001_000);
        two.run(&["work"]).await;
        assert_eq!(count(&two).await, 1);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_is_changed_meanwhile_stays() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut setup = script(&store, &clock).await;
    setup.run(&["create t pk:S"]).await;
    setup.run(&["stream t both"]).await;
    setup.run(&["ttl t on e"]).await;
    setup.run(&[r#"repeat 0..300 put t {"pk": "$i", "e": 1000}"#]).await;
    clock.set_ms(1_005_000);
    // Every third item is renewed while the others expire.
    let engine = Arc::clone(setup.engine());
    let expiring = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { engine.run_pending_work().await.unwrap() }
    });
    let mut writer = Script::with_engine(Arc::clone(&engine));
    for number in (0..300).step_by(3) {
        let command = format!(r#"update t {{"pk": "{number}"}} SET e = `5000`"#);
        writer.run(&[&command, "if attribute_exists(pk)"]).await;
    }
    expiring.await.unwrap();
    engine.run_pending_work().await.unwrap();
    assert_eq!(engine.check_consistency(&setup.table("t")).await.unwrap(), []);
    let scan = Scan {
        table: setup.table("t"),
        index: None,
        segment: None,
        page: PageRequest { consistent: true, ..PageRequest::default() },
    };
    let left = engine.scan(&scan).await.unwrap();
    assert_eq!(left.count + engine.expired_items(), 300);
    for item in left.items.iter() {
        assert!(format!("{item:?}").contains("5000"), "{item:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_background_expires_items_by_itself() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut script = script(&store, &clock).await;
    script.run(&["create t pk:S"]).await;
    let background = tokio::spawn(Arc::clone(script.engine()).run_background());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    script.run(&["ttl t on e"]).await;
    script.run(&[r#"put t {"pk": "a", "e": 1000}"#]).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(count(&script).await, 1);
    clock.set_ms(1_001_000);
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(count(&script).await, 0);
    // Without waiting, if woken.
    script.run(&[r#"put t {"pk": "b", "e": 1000}"#]).await;
    script.engine().wake_background();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(count(&script).await, 0);
    background.abort();
}
