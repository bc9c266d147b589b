//! A store that was tampered with: undecodable bytes are errors, and the consistency check finds
//! the rest.

use std::sync::Arc;

use zenobe_engine::Inconsistency;
use zenobe_engine::command::UpdateTable;
use zenobe_engine::error::Error;
use zenobe_engine::keyspace;
use zenobe_store::{Batch, Key, Store, WriteSet, write_with};
use zenobe_value::EncodedItem;

use crate::support::commands::Script;
use crate::support::dump::{self, Entries};
use crate::support::notation::parse_item;
use crate::support::streams::names;
use crate::support::{block_on, output};

#[test]
fn undecodable_bytes_are_an_error_everywhere() {
    block_on(async {
        let mut script = filled().await;
        let key = only_key(&script, b'T').await;
        tamper(&script, |batch| batch.put(key.clone(), "garbage")).await;
        for command in [
            r#"get t {"pk": "p", "sk": 1}"#,
            r#"put t {"pk": "p", "sk": 1}"#,
            r#"delete t {"pk": "p", "sk": 1}"#,
            r#"update t {"pk": "p", "sk": 1} SET x = `"y"`"#,
            r#"query t pk = `"p"`"#,
            "scan t",
        ] {
            let text = script.run(&[command]).await;
            assert!(text.starts_with("error: Corrupt"), "{command}: {text}");
        }
        let found = script.engine().check_consistency(&script.table("t")).await;
        assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
    });
}

#[test]
fn a_damaged_item_does_not_block_the_expiry_of_others() {
    block_on(async {
        let mut script = filled().await;
        let damaged = only_key(&script, b'T').await;
        script.run(&[r#"put t {"pk": "q", "sk": 1, "expires": 5000}"#]).await;
        script.run(&[r#"put t {"pk": "r", "sk": 1, "expires": 5000}"#]).await;
        tamper(&script, |batch| batch.put(damaged.clone(), "garbage")).await;
        script.run(&["clock +5000000"]).await;
        script.engine().run_pending_work().await.expect("work around the damage");
        assert_eq!(script.engine().expired_items(), 2);
        let entries = dump::entries(&**script.engine().store()).await;
        let left = entries.keys().filter(|key| key[0] == b'T').collect::<Vec<_>>();
        assert_eq!(left, [&damaged]);
    });
}

#[test]
fn a_negative_statistic_is_shown_as_none() {
    block_on(async {
        let script = filled().await;
        let table = script.table("t");
        let key = only_key(&script, b'N').await;
        tamper(&script, |batch| batch.add(key.clone(), -5)).await;
        let description = script.engine().describe_table(&table).await.expect("a description");
        assert_eq!(description.statistics.item_count, 0);
        assert!(description.statistics.size_bytes > 0);
    });
}

#[test]
fn an_undecodable_statistic_does_not_fail_a_change_that_was_made() {
    block_on(async {
        let script = filled().await;
        let table = script.table("t");
        let key = only_key(&script, b'N').await;
        tamper(&script, |batch| batch.put(key.clone(), "odd")).await;
        let mut update = UpdateTable::of(table);
        update.deletion_protection = Some(true);
        let updated = script.engine().update_table(update).await.expect("an update");
        assert!(updated.after.definition.deletion_protection);
        assert_eq!(updated.after.statistics.item_count, 0);
        assert_eq!(updated.after.index_statistics.len(), 2);
    });
}

#[test]
fn an_entry_without_its_item_fails_reads_of_the_item() {
    block_on(async {
        let mut script = filled().await;
        let key = only_key(&script, b'T').await;
        tamper(&script, |batch| batch.delete(key.clone())).await;
        let text = script.run(&["query t/local pk = `\"p\"`", "select all"]).await;
        assert!(text.starts_with("error: Corrupt"), "{text}");
        let text = script.run(&["query t/local pk = `\"p\"`"]).await;
        assert!(text.starts_with('{'), "{text}");
    });
}

#[test]
fn the_check_finds_what_does_not_follow_from_the_items() {
    type Damage = fn(&Entries, &mut Batch);
    type Expected = fn(&Inconsistency) -> bool;
    let cases: [(&str, Damage, Expected); 10] = [
        (
            "an entry is gone",
            |entries, batch| batch.delete(key_of(entries, b'G')),
            |found| matches!(found, Inconsistency::MissingEntry { .. }),
        ),
        (
            "an entry has other attributes",
            |entries, batch| {
                let value = parse_item(r#"{"pk": "p", "sk": 1, "x": "x", "more": 1}"#);
                batch.put(key_of(entries, b'G'), EncodedItem::encode(&value).into_bytes());
            },
            |found| matches!(found, Inconsistency::WrongEntry { .. }),
        ),
        (
            "an entry is where it should not be",
            |entries, batch| {
                let mut key = key_of(entries, b'L').to_vec();
                key.push(0);
                batch.put(key, entries[&key_of(entries, b'L')].clone());
            },
            |found| matches!(found, Inconsistency::StrayEntry { .. }),
        ),
        (
            "an item is under another's key",
            |entries, batch| {
                let mut key = key_of(entries, b'T').to_vec();
                key.push(0);
                batch.put(key, entries[&key_of(entries, b'T')].clone());
            },
            |found| matches!(found, Inconsistency::MisplacedItem { .. }),
        ),
        (
            "the item is gone, its entries are not",
            |entries, batch| batch.delete(key_of(entries, b'T')),
            |found| matches!(found, Inconsistency::StrayEntry { .. }),
        ),
        (
            "a count is off",
            |entries, batch| batch.add(key_of(entries, b'N'), 1),
            |found| matches!(found, Inconsistency::ItemCount { stored: 2, actual: 1, .. }),
        ),
        (
            "a size is off",
            |entries, batch| {
                let key = entries.keys().rfind(|key| key[0] == b'N').expect("a size").clone();
                batch.add(key, 5);
            },
            |found| matches!(found, Inconsistency::SizeBytes { index: Some(_), .. }),
        ),
        (
            "a collection's size is off",
            |entries, batch| batch.add(key_of(entries, b'Z'), -1),
            |found| matches!(found, Inconsistency::CollectionSize { .. }),
        ),
        (
            "an expiry is gone",
            |entries, batch| batch.delete(key_of(entries, b'E')),
            |found| matches!(found, Inconsistency::MissingExpiry { .. }),
        ),
        (
            "an expiry is at another time",
            |entries, batch| {
                let mut key = key_of(entries, b'E').to_vec();
                key[16] += 1;
                batch.put(key, "");
            },
            |found| matches!(found, Inconsistency::StrayExpiry { .. }),
        ),
    ];
    block_on(async {
        for (name, damage, expected) in cases {
            let script = filled().await;
            let engine = Arc::clone(script.engine());
            let table = script.table("t");
            assert_eq!(engine.check_consistency(&table).await.expect("a check"), []);
            let entries = dump::entries(&**engine.store()).await;
            tamper(&script, |batch| damage(&entries, batch)).await;
            let found = engine.check_consistency(&table).await.expect("a check");
            assert!(found.iter().any(expected), "{name}: {found:?}");
        }
    });
}

#[test]
fn an_undecodable_record_fails_its_readers() {
    block_on(async {
        let mut script = filled().await;
        let key = only_key(&script, b'S').await;
        tamper(&script, |batch| batch.put(key.clone(), "garbage")).await;
        let text = script.run(&["records t"]).await;
        assert!(text.starts_with("error: Corrupt"), "{text}");
        let text = script.run(&[r#"put t {"pk": "p", "sk": 1}"#]).await;
        assert!(text.starts_with("old"), "writers don't read it: {text}");
    });
}

#[test]
fn an_undecodable_stream_fails_its_readers() {
    block_on(async {
        let mut script = filled().await;
        let table = script.table("t");
        let stream = names(script.engine(), &table).await.expect("a stream").remove(0);
        let key = keyspace::stream_row(&table.namespace, "t", &stream.label);
        tamper(&script, |batch| batch.put(key.clone(), "garbage")).await;
        for command in ["streams t", "records t"] {
            let text = script.run(&[command]).await;
            assert!(text.starts_with("error: Corrupt"), "{command}: {text}");
        }
    });
}

#[test]
fn a_damaged_stream_does_not_block_the_removal_of_others() {
    block_on(async {
        let mut script = filled().await;
        script.run(&["create other pk:S"]).await;
        script.run(&["stream other keys"]).await;
        let table = script.table("t");
        let stream = names(script.engine(), &table).await.expect("a stream").remove(0);
        let other =
            names(script.engine(), &script.table("other")).await.expect("a stream").remove(0);
        for command in ["stream t off", "stream other off", "clock +90000000"] {
            script.run(&[command]).await;
        }
        let damaged = keyspace::stream_row(&table.namespace, "t", &stream.label);
        tamper(&script, |batch| batch.put(damaged.clone(), "garbage")).await;
        script.engine().run_pending_work().await.expect("work around the damage");
        let other = keyspace::stream_row(&table.namespace, "other", &other.label);
        let store = script.engine().store();
        assert!(store.get(&damaged).await.expect("a read").is_some());
        assert_eq!(store.get(&other).await.expect("a read"), None);
    });
}

#[test]
fn a_damaged_token_does_not_block_the_deletion_of_others() {
    block_on(async {
        let mut script = filled().await;
        for token in ["one", "two", "three"] {
            let put = format!(r#"put t {{"pk": "{token}", "sk": 1}}"#);
            script.run(&["transact-write", &put, &format!("token {token}")]).await;
        }
        let damaged = only_key(&script, b'K').await;
        tamper(&script, |batch| {
            batch.put(damaged.clone(), "garbage");
            // An expiry that names no token at all.
            batch.put("X", "");
        })
        .await;
        script.run(&["clock +900000"]).await;
        script.engine().run_pending_work().await.expect("work around the damage");
        let entries = dump::entries(&**script.engine().store()).await;
        let left = entries.keys().filter(|key| matches!(key[0], b'K' | b'X')).collect::<Vec<_>>();
        assert_eq!(left, [&damaged]);
    });
}

/// A table with a stream and one item that expires and is in a local and in a global index.
async fn filled() -> Script {
    let mut script = Script::new().await;
    let create = ["create t pk:S sk:N", "lsi local x:S keys", "gsi global x:S - keys"];
    let item = r#"put t {"pk": "p", "sk": 1, "x": "x", "more": 2, "expires": 5000}"#;
    for command in [&create[..], &["stream t both"], &["ttl t on expires"], &["work"], &[item]] {
        let text = script.run(command).await;
        assert!(!text.starts_with("error"), "{text}");
    }
    script
}

async fn only_key(script: &Script, kind: u8) -> Key {
    key_of(&dump::entries(&**script.engine().store()).await, kind)
}

fn key_of(entries: &Entries, kind: u8) -> Key {
    entries.keys().find(|key| key[0] == kind).expect("an entry of that kind").clone()
}

async fn tamper(script: &Script, change: impl Fn(&mut Batch) + Send + Sync) {
    let store: &Arc<dyn Store> = script.engine().store();
    let written = write_with(&**store, WriteSet::default(), |_| {
        let mut batch = Batch::new();
        change(&mut batch);
        Ok::<_, Error>((batch, ()))
    });
    if let Err(error) = written.await.expect("a write") {
        panic!("{}", output::error(&error));
    }
}
