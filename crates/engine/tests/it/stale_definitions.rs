//! Two engines on one store: each discovers the other's changes of a table inside its own writes.

use std::sync::Arc;

use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::memory::MemoryStore;

use crate::support::block_on;
use crate::support::commands::Script;

#[test]
fn a_write_never_misses_an_index_that_another_engine_added() {
    block_on(async {
        let (mut here, mut there) = two_engines().await;
        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&[r#"put t {"pk": "a", "g": "G"}"#], "new").await;
        here.expect(&["add-index t by_g g:S - keys"], "ok").await;

        // Nothing has told the other engine: it finds out inside each kind of write.
        there.expect(&[r#"put t {"pk": "b", "g": "G"}"#], "new").await;
        here.expect(&["work"], "ok").await;
        there.expect(&[r#"update t {"pk": "c"} SET g = `"G"`"#], "new").await;
        let transaction = ["transact-write", r#"put t {"pk": "d", "g": "G"}"#];
        there.expect(&transaction, "consumed").await;
        let batch = ["batch-write", r#"put t {"pk": "e", "g": "G"}"#, r#"delete t {"pk": "a"}"#];
        there.expect(&batch, "consumed").await;

        let found = here.run(&["query t/by_g g = `\"G\"`", "select count"]).await;
        assert!(found.starts_with("count 4 of 4"), "{found}");
        here.check_consistency().await;
    });
}

#[test]
fn a_write_is_checked_against_the_new_definition() {
    block_on(async {
        let (mut here, mut there) = two_engines().await;
        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&[r#"put t {"pk": "a", "g": 1}"#], "new").await;
        here.expect(&["add-index t by_g g:S - keys"], "ok").await;
        there.expect(&[r#"put t {"pk": "b", "g": 1}"#], "error: IndexKey").await;
        let transaction = ["transact-write", r#"put t {"pk": "b", "g": 1}"#];
        there.expect(&transaction, "error: cancelled").await;
    });
}

#[test]
fn a_write_never_lands_in_a_table_that_another_engine_deleted() {
    block_on(async {
        let (mut here, mut there) = two_engines().await;
        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&[r#"put t {"pk": "a"}"#], "new").await;
        here.expect(&["drop t"], "ok").await;
        there.expect(&[r#"put t {"pk": "b"}"#], "error: TableNotFound").await;

        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&[r#"put t {"pk": "c"}"#], "new").await;
        here.expect(&["drop t"], "ok").await;
        here.expect(&["create t other:N"], "ok").await;
        there.expect(&[r#"put t {"pk": "d"}"#], "error: Key(Missing").await;
        there.expect(&[r#"put t {"other": 1}"#], "new").await;
        here.check_consistency().await;
    });
}

#[test]
fn a_read_sees_the_table_that_now_has_the_name() {
    block_on(async {
        let (mut here, mut there) = two_engines().await;
        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&[r#"put t {"pk": "a"}"#], "new").await;
        for read in READS {
            here.expect(&["drop t"], "ok").await;
            there.expect(read, "error: TableNotFound").await;
            here.expect(&["create t pk:S"], "ok").await;
            here.expect(&[r#"put t {"pk": "a", "new": true}"#], "new").await;
            there.expect(read, r#"{"new": true, "pk": "a"}"#).await;
        }
        // Once more, now that the other engine holds the table: replaced without a read in between.
        for read in READS {
            here.expect(&["drop t"], "ok").await;
            here.expect(&["create t pk:S"], "ok").await;
            here.expect(&[r#"put t {"pk": "a", "newer": true}"#], "new").await;
            there.expect(read, r#"{"newer": true, "pk": "a"}"#).await;
        }
        here.expect(&["add-index t by_pk pk:S - all"], "ok").await;
        here.expect(&["work"], "ok").await;
        there.expect(&[r#"query t/by_pk pk = `"a"`"#], "{").await;
    });
}

const READS: [&[&str]; 5] = [
    &[r#"get t {"pk": "a"}"#],
    &[r#"query t pk = `"a"`"#],
    &["scan t"],
    &["batch-get", r#"get t {"pk": "a"}"#],
    &["transact-get", r#"get t {"pk": "a"}"#],
];

async fn two_engines() -> (Script, Script) {
    let store = Arc::new(MemoryStore::shared());
    let mut scripts = Vec::new();
    for _ in 0..2 {
        let engine = Engine::open(store.clone(), EngineOptions::default()).await;
        scripts.push(Script::with_engine(engine.expect("a store opens twice")));
    }
    let there = scripts.pop().expect("two engines");
    (scripts.pop().expect("two engines"), there)
}
