//! Many callers on few items: what each of them sees is as if all had run one after the other.
//!
//! Each race runs on every store in this process, which yields in the middle of requests, and
//! against a server over HTTP, with real threads and syncs.

mod database;
mod event;
mod operations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::sync::Mutex;
use zenobe_testing::linearizability::is_linearizable;

use self::database::{Caller, on_every_database};
use self::event::{Event, RegisterOperation, Response, Told};
use self::operations::{add, add_if_at_least, check_missing, create};

const CALLERS: usize = 8;

/// Each item behaves as if there were one copy of it, whatever callers do to it, alone or in
/// transactions.
#[test]
fn every_item_is_linearizable() {
    on_every_database("every_item_is_linearizable", async |database| {
        const ROUNDS: usize = 25;
        const KEYS: usize = 3;
        for round in 0..ROUNDS {
            let keys: Vec<String> = (0..KEYS).map(|key| format!("{round}-{key}")).collect();
            let recorder = Arc::new(Recorder::default());
            let play = |number, caller| {
                let random = database.seed.generator((round * CALLERS + number) as u64);
                play(caller, keys.clone(), Arc::clone(&recorder), random)
            };
            database.race(0..CALLERS, play).await;
            for (key, events) in &*recorder.histories.lock().await {
                assert!(is_linearizable(None, events), "{key}: {events:#?}");
            }
        }
    });
}

/// Money moves between accounts in transactions of two and three. None appears or disappears, for
/// anyone at any time. No account is overdrawn, and in the end each holds what the acknowledged
/// transactions imply.
#[test]
fn transactions_are_all_or_nothing() {
    on_every_database("transactions_are_all_or_nothing", async |database| {
        const ACCOUNTS: usize = 4;
        const START: i64 = 50;
        const ROUNDS: usize = 60;
        let accounts: Vec<String> =
            (0..ACCOUNTS).map(|account| format!("account-{account}")).collect();
        for account in &accounts {
            database.caller().put(account, START).await;
        }
        let play = |number: usize, mut caller: Caller| {
            let accounts = accounts.clone();
            let mut random = database.seed.generator(number as u64);
            async move {
                let mut moved = vec![0; ACCOUNTS];
                for _ in 0..ROUNDS {
                    let changes = transfer(&mut caller, &accounts, &mut random).await;
                    changes.into_iter().for_each(|(account, amount)| moved[account] += amount);
                    let seen = caller.get_together(&accounts).await;
                    let total: i64 = seen.iter().map(|state| state.unwrap_or(0)).sum();
                    assert_eq!(total, START * ACCOUNTS as i64, "{seen:?}");
                    assert!(seen.iter().all(|state| *state >= Some(0)), "{seen:?}");
                }
                moved
            }
        };
        let moved = database.race(0..CALLERS, play).await;
        let expected: Vec<Option<i64>> = (0..ACCOUNTS)
            .map(|account| Some(START + moved.iter().map(|each| each[account]).sum::<i64>()))
            .collect();
        assert_eq!(database.caller().get_together(&accounts).await, expected);
    });
}

/// Each increment counts once, and every caller sees distinct numbers in ascending order.
#[test]
fn a_hot_counter_loses_no_increment() {
    on_every_database("a_hot_counter_loses_no_increment", async |database| {
        const INCREMENTS: usize = 60;
        let play = |_, mut caller: Caller| async move {
            let mut told = Vec::new();
            for _ in 0..INCREMENTS {
                match caller.perform("counter", RegisterOperation::Add(1)).await {
                    Response::After(Some(number)) => told.push(number),
                    other => panic!("an increment answered {other:?}"),
                }
            }
            assert!(told.is_sorted(), "the counter went back: {told:?}");
            told
        };
        let told = database.race(0..CALLERS, play).await;
        let distinct: BTreeSet<i64> = told.into_iter().flatten().collect();
        let total = (CALLERS * INCREMENTS) as i64;
        assert!(distinct.into_iter().eq(1..=total), "two increments were told the same");
        assert_eq!(database.caller().get("counter").await, Some(total));
    });
}

/// Reading, adding one and writing back on condition that nobody else did: each success counts once.
#[test]
fn optimistic_locking_loses_no_update() {
    on_every_database("optimistic_locking_loses_no_update", async |database| {
        const SUCCESSES: usize = 40;
        database.caller().put("counter", 0).await;
        let play = |_, mut caller: Caller| async move {
            let mut written = Vec::new();
            while written.len() < SUCCESSES {
                let expected = caller.get("counter").await.expect("the counter is there");
                let swap = RegisterOperation::Swap { expected, new: expected + 1 };
                match caller.perform("counter", swap).await {
                    Response::Before(before) => {
                        assert_eq!(before, Some(expected));
                        written.push(expected + 1);
                    }
                    Response::Refused(current) => {
                        assert!(current > Some(expected), "{current:?} was as expected");
                        tokio::task::yield_now().await;
                    }
                    other => panic!("a swap answered {other:?}"),
                }
            }
            written
        };
        let written = database.race(0..CALLERS, play).await;
        let versions: BTreeSet<i64> = written.into_iter().flatten().collect();
        let total = (CALLERS * SUCCESSES) as i64;
        assert!(versions.into_iter().eq(1..=total), "a version was written twice");
        assert_eq!(database.caller().get("counter").await, Some(total));
    });
}

/// Some callers want one item, some want it together with another. Only one of them gets it.
#[test]
fn a_contested_item_has_one_creator() {
    on_every_database("a_contested_item_has_one_creator", async |database| {
        const ITEMS: usize = 40;
        let play = |number: usize, mut caller: Caller| async move {
            let mut won = Vec::new();
            for item in 0..ITEMS {
                let names = [item, (item + 1) % ITEMS].map(|item| format!("item-{item}"));
                if number.is_multiple_of(2) {
                    let operation = RegisterOperation::Create(number as i64);
                    match caller.perform(&names[0], operation).await {
                        Response::Before(None) => won.push((names[0].clone(), number as i64)),
                        Response::Refused(Some(_)) => {}
                        other => panic!("a creation answered {other:?}"),
                    }
                } else {
                    let put = |name: &String| json!({"Put": create(name, number as i64)});
                    if caller.transact(names.iter().map(put).collect(), None).await {
                        won.extend(names.map(|name| (name, number as i64)));
                    }
                }
            }
            won
        };
        let won: Vec<_> = database.race(0..CALLERS, play).await.into_iter().flatten().collect();
        let winners: BTreeMap<&String, i64> =
            won.iter().map(|(name, number)| (name, *number)).collect();
        assert_eq!((winners.len(), won.len()), (ITEMS, ITEMS), "each item has one winner");
        for (name, winner) in winners {
            assert_eq!(database.caller().get(name).await, Some(winner), "{name}");
        }
    });
}

/// Repeating a transaction under its token, at the same time or later, changes nothing more.
#[test]
fn a_token_is_good_for_one_transaction() {
    on_every_database("a_token_is_good_for_one_transaction", async |database| {
        const ROUNDS: usize = 100;
        let play = |_, mut caller: Caller| async move {
            for round in 0..ROUNDS {
                let increment = vec![json!({"Update": add("counter", 1)})];
                assert!(caller.transact(increment, Some(&format!("round {round}"))).await);
            }
        };
        database.race(0..CALLERS, play).await;
        assert_eq!(database.caller().get("counter").await, Some(ROUNDS as i64));
    });
}

/// One caller's part in a round: random operations, each recorded.
async fn play(mut caller: Caller, keys: Vec<String>, recorder: Arc<Recorder>, mut random: StdRng) {
    const OPERATIONS: usize = 12;
    for _ in 0..OPERATIONS {
        let key = keys[random.random_range(0..keys.len())].clone();
        let number = random.random_range(0..4);
        let operation = match random.random_range(0..10) {
            0..2 => RegisterOperation::Get,
            2 => RegisterOperation::Put(number),
            3 => RegisterOperation::Create(number),
            4..6 => RegisterOperation::Swap { expected: number, new: (number + 1) % 4 },
            6 => RegisterOperation::Add(1),
            7 => RegisterOperation::Delete,
            8 => {
                let called = recorder.now();
                let states = caller.get_together(&keys).await;
                let told = |state| Told {
                    operation: RegisterOperation::Get,
                    response: Response::Before(state),
                };
                recorder.add(called, keys.iter().zip(states.into_iter().map(told))).await;
                continue;
            }
            _ => {
                let called = recorder.now();
                let actions = keys.iter().map(|key| json!({"Update": add(key, 1)}));
                assert!(caller.transact(actions.collect(), None).await);
                let told = Told { operation: RegisterOperation::Add(1), response: Response::Done };
                recorder.add(called, keys.iter().map(|key| (key, told))).await;
                continue;
            }
        };
        let called = recorder.now();
        let response = caller.perform(&key, operation).await;
        recorder.add(called, [(&key, Told { operation, response })]).await;
    }
}

/// What happened to each item, with times from one clock that never shows the same time twice.
#[derive(Default)]
struct Recorder {
    clock: AtomicU64,
    histories: Mutex<BTreeMap<String, Vec<Event>>>,
}

impl Recorder {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Records what the response to a request, sent at this time, shows about items.
    async fn add(&self, called: u64, told: impl IntoIterator<Item = (&String, Told)>) {
        let returned = self.now();
        let mut histories = self.histories.lock().await;
        for (key, event) in told {
            histories.entry(key.clone()).or_default().push(Event { called, returned, event });
        }
    }
}

/// Moves some money from one account to one or two others, or tries to create some from nothing in
/// a transaction that must fail. Returns what was moved.
async fn transfer(
    caller: &mut Caller,
    accounts: &[String],
    random: &mut StdRng,
) -> Vec<(usize, i64)> {
    let amount = random.random_range(1..20);
    let first = random.random_range(0..accounts.len());
    let place = |offset: usize| (first + offset) % accounts.len();
    let name = |offset: usize| &accounts[place(offset)];
    let taken = |amount: i64| json!({"Update": add_if_at_least(name(0), -amount, amount)});
    let given = |offset: usize| json!({"Update": add(name(offset), amount)});
    let (actions, changes) = match random.random_range(0..5) {
        0..2 => (vec![taken(amount), given(1)], vec![(place(0), -amount), (place(1), amount)]),
        2..4 => (
            vec![taken(2 * amount), given(1), given(2)],
            vec![(place(0), -2 * amount), (place(1), amount), (place(2), amount)],
        ),
        _ => {
            let doomed =
                vec![given(0), given(1), json!({"ConditionCheck": check_missing(name(2))})];
            assert!(!caller.transact(doomed, None).await, "a failed check stopped nothing");
            return Vec::new();
        }
    };
    if caller.transact(actions, None).await { changes } else { Vec::new() }
}
