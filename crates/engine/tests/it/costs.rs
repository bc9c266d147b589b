//! Requests that ask for more work than they suggest. Pages with costly filters yield the thread
//! again and again, and still show one state. Updates with results larger than any item fail.
//!
//! The memory store never waits, so each time that a read is pending, it has yielded.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use zenobe_engine::command::{PageOutcome, PageRequest, Query, Scan, Select, UpdateItem};
use zenobe_engine::error::Error;
use zenobe_expression::{
    Action, Comparator, Condition, KeyCondition, KeyOperator, Operand, SetOperand, SetValue, Update,
};
use zenobe_value::{AttributeValue, Path};

use crate::support::block_on;
use crate::support::commands::Script;
use crate::support::notation::parse_item;

const ITEMS: u64 = 8;

#[test]
fn a_cheap_filter_needs_one_turn() {
    block_on(async {
        let script = filled().await;
        for filter in [None, Some(filter_on("more", 1))] {
            for forward in [true, false] {
                let (page, polls) = read(&script, Read::Query { forward }, filter.clone()).await;
                assert_eq!((page.count, polls), (ITEMS, 1));
            }
            let (page, polls) = read(&script, Read::Scan, filter).await;
            assert_eq!((page.count, polls), (ITEMS, 1));
        }
    });
}

#[test]
fn a_costly_filter_takes_a_turn_for_every_item() {
    block_on(async {
        let script = filled().await;
        let filter = Some(filter_on("more", LEAVES));
        for kind in READS {
            let (page, polls) = read(&script, kind, filter.clone()).await;
            assert_eq!((page.count, page.scanned_count), (ITEMS, ITEMS), "{kind:?}");
            assert!(polls >= ITEMS, "{kind:?}: {polls}");
            assert_eq!(page.last_evaluated_key, None, "{kind:?}");
        }
    });
}

#[test]
fn a_filter_can_take_many_turns_for_one_item() {
    block_on(async {
        let script = filled().await;
        let filter = Some(filter_on("more", 10 * LEAVES));
        for kind in READS {
            let request = PageRequest { limit: Some(1), ..request(filter.clone()) };
            let (page, polls) = read_page(&script, kind, request).await;
            assert_eq!((page.count, page.scanned_count), (1, 1), "{kind:?}");
            assert!(polls >= 10, "{kind:?}: {polls}");
        }
    });
}

#[test]
fn the_order_of_a_page_is_that_of_its_keys() {
    block_on(async {
        let script = filled().await;
        let cheap = Some(filter_on("more", 1));
        let costly = Some(filter_on("more", LEAVES));
        for kind in READS {
            let (expected, _) = read(&script, kind, cheap.clone()).await;
            let (page, _) = read(&script, kind, costly.clone()).await;
            assert_eq!(page.items, expected.items, "{kind:?}");
        }
    });
}

#[test]
fn a_page_is_one_state_however_many_turns_it_takes() {
    block_on(async {
        for kind in READS {
            let mut script = filled().await;
            let request = request(Some(filter_on("more", LEAVES)));
            let engine = script.engine().clone();
            let (query, scan) = (query(&script, kind, request.clone()), scan(&script, request));
            let mut reading = pin!(async {
                match kind {
                    Read::Scan => engine.scan(&scan).await,
                    Read::Query { .. } | Read::Index => engine.query(&query).await,
                }
            });
            let mut context = Context::from_waker(Waker::noop());
            assert!(reading.as_mut().poll(&mut context).is_pending(), "{kind:?}");
            for number in 0..ITEMS {
                script.run(&[&format!(r#"delete t {{"pk": "p", "sk": {number}}}"#)]).await;
            }
            let page = reading.await.expect("a page");
            assert_eq!(page.count, ITEMS, "{kind:?}");
        }
    });
}

#[test]
fn an_update_larger_than_any_item_fails() {
    block_on(async {
        let script = filled().await;
        let literal = Arc::new(AttributeValue::L(vec![AttributeValue::Null; 100_000]));
        let set = |number: u64| Action::Set {
            path: Path::top_level(format!("a{number}")),
            value: SetValue::Operand(SetOperand::Literal(literal.clone())),
        };
        for count in [3, 300] {
            let update = UpdateItem {
                table: script.table("t"),
                key: parse_item(r#"{"pk": "p", "sk": 1}"#),
                update: Some(Update { actions: (0..count).map(set).collect() }),
                condition: None,
            };
            let outcome = script.engine().update_item(update).await;
            assert!(matches!(outcome, Err(Error::UpdateTooLarge)), "{count}: {outcome:?}");
        }
    });
}

/// The size of a legacy filter, which has no limit on operators.
pub const LEAVES: usize = 30_000;

#[derive(Debug, Clone, Copy)]
enum Read {
    Query {
        forward: bool,
    },
    Scan,
    /// A local index that must fetch what it returns.
    Index,
}

const READS: [Read; 4] =
    [Read::Query { forward: true }, Read::Query { forward: false }, Read::Scan, Read::Index];

async fn filled() -> Script {
    let mut script = Script::new().await;
    let text = script.run(&["create t pk:S sk:N", "lsi local x:S more"]).await;
    assert!(!text.starts_with("error"), "{text}");
    for number in 0..ITEMS {
        let item = format!(r#"put t {{"pk": "p", "sk": {number}, "x": "x", "more": 1}}"#);
        let text = script.run(&[&item]).await;
        assert!(!text.starts_with("error"), "{text}");
    }
    script
}

/// True for every item, but only because of its last leaf.
pub fn filter_on(attribute: &str, leaves: usize) -> Condition {
    let leaf = |number: usize| Condition::Compare {
        left: Operand::Path(Path::top_level(attribute)),
        comparator: Comparator::Equal,
        right: Operand::literal(&AttributeValue::N((number as u64).into())),
    };
    Condition::Or((1..=leaves).rev().map(leaf).collect())
}

fn request(filter: Option<Condition>) -> PageRequest {
    PageRequest { filter, consistent: true, ..PageRequest::default() }
}

fn query(script: &Script, kind: Read, page: PageRequest) -> Query {
    let select = matches!(kind, Read::Index).then_some(Select::AllAttributes);
    let page = PageRequest { select, ..page };
    let operator = KeyOperator::Equal(AttributeValue::S("p".to_owned()));
    Query {
        table: script.table("t"),
        index: matches!(kind, Read::Index).then(|| "local".to_owned()),
        key_conditions: vec![KeyCondition { attribute: "pk".to_owned(), operator }],
        forward: !matches!(kind, Read::Query { forward: false }),
        page,
    }
}

fn scan(script: &Script, page: PageRequest) -> Scan {
    Scan { table: script.table("t"), index: None, segment: None, page }
}

/// The page, and how often it was polled.
async fn read(script: &Script, kind: Read, filter: Option<Condition>) -> (PageOutcome, u64) {
    read_page(script, kind, request(filter)).await
}

async fn read_page(script: &Script, kind: Read, request: PageRequest) -> (PageOutcome, u64) {
    let engine = script.engine();
    let page = match kind {
        Read::Scan => count_polls(engine.scan(&scan(script, request))).await,
        Read::Query { .. } | Read::Index => {
            count_polls(engine.query(&query(script, kind, request))).await
        }
    };
    (page.0.expect("a page"), page.1)
}

async fn count_polls<T>(future: impl Future<Output = T>) -> (T, u64) {
    let mut future = pin!(future);
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        future.as_mut().poll(context).map(|output| (output, polls))
    })
    .await
}
