//! A store that commits a change of a definition and then fails to say so, like a disk that fails
//! during a sync. The engine can't know the outcome of the change, and must not answer reads as if
//! it had not happened.

use std::sync::Arc;

use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::Error;
use zenobe_store::failing::{FailingStore, WriteFailure};
use zenobe_store::memory::MemoryStore;

use crate::support::block_on;
use crate::support::commands::Script;

#[test]
fn reads_notice_a_deletion_whose_answer_was_lost() {
    block_on(async {
        for read in [r#"get t {"pk": "a"}"#, r#"query t pk = `"a"`"#, "scan t"] {
            let (store, mut script) = exclusive_engine().await;
            script.expect(&["create t pk:S"], "ok").await;
            script.expect(&[r#"put t {"pk": "a"}"#], "new").await;
            let lost = Error::Io { detail: "the answer was lost".to_owned() };
            store.set(WriteFailure::AnswerLost(lost));
            script.expect(&["drop t"], "error: Store").await;
            store.set(WriteFailure::None);
            script.expect(&[read], "error: TableNotFound").await;
        }
    });
}

#[test]
fn a_rejected_change_leaves_the_table_readable() {
    block_on(async {
        let (_store, mut script) = exclusive_engine().await;
        script.expect(&["create t pk:S"], "ok").await;
        script.expect(&[r#"put t {"pk": "a"}"#], "new").await;
        script.expect(&["add-index t by_g g:S - keys"], "ok").await;
        script.expect(&["add-index t by_g g:S - keys"], "error: UpdateTable").await;
        script.expect(&[r#"get t {"pk": "a"}"#], "{").await;
    });
}

async fn exclusive_engine() -> (Arc<FailingStore>, Script) {
    let store = Arc::new(FailingStore::new(Arc::new(MemoryStore::new())));
    let engine = Engine::open(store.clone(), EngineOptions::default()).await;
    let engine = engine.expect("an empty store opens");
    (store, Script::with_engine(engine))
}
