//! What one node does to tables, as another node sees it.

use std::sync::Arc;
use std::time::Duration;

use super::{contents, count, two_nodes};
use crate::support::block_on;

/// Requests that fit the table that now has the name, but not the previous one. Each is the first
/// that a node with the old definition gets.
#[test]
fn an_outdated_definition_refuses_nothing() {
    const REQUESTS: [(&[&str], &str); 11] = [
        (&[r#"put t {"id": 1}"#], "new"),
        (&[r#"update t {"id": 0} SET a = `1`"#], "old"),
        (&[r#"delete t {"id": 0}"#], "old"),
        (&[r#"get t {"id": 0}"#], "{"),
        (&["query t id = `0`"], "{"),
        (&["scan t", r#"start {"id": 7}"#], ""),
        (&["batch-get", r#"get t {"id": 0}"#], "{"),
        (&["transact-get", r#"get t {"id": 0}"#], "{"),
        (&["batch-write", r#"put t {"id": 1}"#, r#"put t {"id": 2}"#], "consumed"),
        // With the old key, these two would be one item.
        (
            &["batch-write", r#"put t {"pk": "a", "id": 1}"#, r#"put t {"pk": "a", "id": 2}"#],
            "consumed",
        ),
        (&["transact-write", r#"put t {"id": 1}"#, r#"delete t {"id": 0}"#], "consumed"),
    ];
    block_on(async {
        for (request, answer) in REQUESTS {
            let (_store, _, mut here, mut there) = two_nodes().await;
            here.expect(&["create t pk:S"], "ok").await;
            there.expect(&[r#"put t {"pk": "a"}"#], "new").await;
            here.expect(&["drop t"], "ok").await;
            here.expect(&["create t id:N"], "ok").await;
            here.expect(&[r#"put t {"id": 0}"#], "new").await;
            there.expect(request, answer).await;
        }
    });
}

/// Requests that no longer fit fail, although the old definition would accept them.
#[test]
fn an_outdated_definition_lets_nothing_pass() {
    block_on(async {
        let (_store, _, mut here, mut there) = two_nodes().await;
        here.expect(&["create t pk:S sk:N"], "ok").await;
        there.expect(&[r#"put t {"pk": "a", "sk": 1}"#], "new").await;
        here.expect(&["drop t"], "ok").await;
        here.expect(&["create t pk:S"], "ok").await;
        // Two items with the old key, one with the new.
        let twice =
            ["batch-write", r#"put t {"pk": "a", "sk": 1}"#, r#"put t {"pk": "a", "sk": 2}"#];
        there.expect(&twice, "error: DuplicateKeys").await;
        assert_eq!(count(&here, "t").await, 0);
    });
}

/// Background work sees the tables that another node has created, changed or deleted.
#[test]
fn work_is_done_on_tables_of_other_nodes() {
    block_on(async {
        let (store, _, mut here, mut there) = two_nodes().await;
        there.expect(&["work"], "ok").await;
        here.expect(&["create t pk:S"], "ok").await;
        here.run(&[r#"repeat 0..30 put t {"pk": "$i", "g": "G", "e": 1699999999}"#]).await;
        here.expect(&["add-index t by_g g:S - keys"], "ok").await;
        here.expect(&["ttl t on e"], "ok").await;
        // The first node has the work, and does nothing.
        here.expect(&["work"], "ok").await;
        assert_eq!(count(&here, "t").await, 30);
        there.expect(&["work"], "ok").await;
        assert_eq!(there.engine().expired_items(), 30);
        here.expect(&["scan t/by_g"], "").await;
        assert_eq!(here.engine().check_consistency(&here.table("t")).await.unwrap(), []);

        here.run(&[r#"repeat 0..2500 put t {"pk": "$i", "g": "G"}"#]).await;
        here.expect(&["drop t"], "ok").await;
        let of_table = |entries: &std::collections::BTreeMap<Vec<u8>, Vec<u8>>| {
            entries.keys().filter(|key| b"TGNEJ".contains(&key[0])).count()
        };
        assert!(of_table(&contents(&store).await) > 5_000, "its entries are garbage now");
        here.expect(&["create t pk:S"], "ok").await;
        there.expect(&["scan t"], "count 0").await;
        there.expect(&["work"], "ok").await;
        assert_eq!(of_table(&contents(&store).await), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_change_is_followed_within_a_second() {
    let (_store, _, mut here, there) = two_nodes().await;
    let background = tokio::spawn(Arc::clone(there.engine()).run_background());
    tokio::time::sleep(Duration::from_secs(5)).await;
    here.expect(&["create t pk:S"], "ok").await;
    here.run(&[r#"repeat 0..30 put t {"pk": "$i", "g": "G"}"#]).await;
    here.expect(&["add-index t by_g g:S - keys"], "ok").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let found = here.run(&["query t/by_g g = `\"G\"`", "select count"]).await;
    assert!(found.starts_with("count 30 of 30"), "{found}");
    background.abort();
}

/// An expiry index that is disabled and enabled again before its garbage was collected has none of
/// its earlier entries.
#[test]
fn an_expiry_index_begins_empty() {
    block_on(async {
        let (_store, _, mut here, mut there) = two_nodes().await;
        there.expect(&["work"], "ok").await;
        here.expect(&["create t pk:S"], "ok").await;
        here.expect(&["ttl t on e"], "ok").await;
        here.run(&[r#"repeat 0..30 put t {"pk": "$i", "e": 1699999999, "f": 1800000000}"#]).await;
        here.expect(&["ttl t off e"], "ok").await;
        let found = here.engine().check_consistency(&here.table("t")).await.unwrap();
        assert_eq!(found, [], "what is left of the index is garbage, not damage");
        here.expect(&["ttl t on f"], "ok").await;
        here.expect(&[r#"put t {"pk": "new", "f": 1800000000}"#], "new").await;
        there.expect(&["work"], "ok").await;
        assert_eq!(here.engine().check_consistency(&here.table("t")).await.unwrap(), []);
        assert_eq!(count(&here, "t").await, 31);
    });
}
