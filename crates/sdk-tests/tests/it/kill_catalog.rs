//! `kill -9` while tables change: acknowledged changes stay, and started ones are finished.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

use rand::RngExt;
use serde_json::{Value, json};
use zenobe_testing::{Client, ClientError, Seed, ServerProcess, TemporaryDirectory, wait_until};

use crate::tables::{create_simple, get, scan};

const ROUNDS: u64 = 12;

/// One client creates, fills and deletes tables. Each acknowledged step must survive a kill.
#[test]
fn tables_are_created_and_deleted_once_and_for_all() {
    let seed = Seed::announce("kill under table changes");
    let directory = TemporaryDirectory::new("kill-tables");
    let mut tables = BTreeSet::new();
    for round in 0..ROUNDS {
        let server = ServerProcess::start(directory.path());
        verify(&mut server.client(), &tables);
        let life = seed.generator(round).random_range(1..60);
        let (done, counted) = mpsc::channel();
        let uncertain = thread::scope(|scope| {
            let client = server.client();
            let builder = scope.spawn(|| {
                // Dropped with the builder, so that nobody waits for more.
                let done = done;
                build(client, &mut tables, round, &done)
            });
            counted.iter().take(life).for_each(drop);
            server.kill();
            builder.join().expect("the builder ends well")
        });
        let server = ServerProcess::start(directory.path());
        settle(&mut server.client(), &mut tables, &uncertain);
        verify(&mut server.client(), &tables);
    }
}

/// Creates tables with one item each and deletes every other one, until the server is gone. Reports
/// each finished step. Returns the table whose step was running.
fn build(
    mut client: Client,
    tables: &mut BTreeSet<String>,
    round: u64,
    done: &mpsc::Sender<()>,
) -> String {
    for number in 0.. {
        let name = format!("round{round}-{number:04}");
        let steps = [
            ("CreateTable", definition(&name)),
            ("PutItem", json!({"TableName": name, "Item": {"pk": {"S": name}}})),
            ("DeleteTable", json!({"TableName": name})),
        ];
        let count = if number % 2 == 0 { 2 } else { 3 };
        for (operation, request) in &steps[..count] {
            match client.call(operation, request) {
                Ok(reply) => {
                    assert_eq!(reply.status, 200, "{operation} answers {}", reply.body);
                    // Nobody counts any more once the server has ended.
                    let _ = done.send(());
                }
                Err(ClientError::Connect(_) | ClientError::Exchange(_)) => return name,
            }
        }
        if count == 2 {
            tables.insert(name);
        }
    }
    unreachable!("there is always another number")
}

fn definition(name: &str) -> Value {
    json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    })
}

/// The table of the unfinished step may exist with its item, without it, or not at all. If it
/// exists, it can be deleted, and its name can serve a new, empty table.
fn settle(client: &mut Client, tables: &mut BTreeSet<String>, uncertain: &str) {
    if listed(client).contains(uncertain) {
        client.expect("DeleteTable", &json!({"TableName": uncertain}));
    }
    create_simple(client, uncertain);
    assert_eq!(scan(client, uncertain, None), Vec::<Value>::new(), "{uncertain} is new");
    client.expect("PutItem", &json!({"TableName": uncertain, "Item": {"pk": {"S": uncertain}}}));
    tables.insert(uncertain.to_owned());
}

fn verify(client: &mut Client, tables: &BTreeSet<String>) {
    assert_eq!(&listed(client), tables);
    for table in tables {
        let item = json!({"pk": {"S": table}});
        assert_eq!(get(client, table, &item), Some(item), "the item of {table}");
    }
}

fn listed(client: &mut Client) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut request = json!({});
    loop {
        let page = client.expect("ListTables", &request);
        let found = page["TableNames"].as_array().expect("names are a list");
        names
            .extend(found.iter().map(|name| name.as_str().expect("a name is a string").to_owned()));
        match &page["LastEvaluatedTableName"] {
            Value::Null => return names,
            last => request["ExclusiveStartTableName"] = last.clone(),
        }
    }
}

const ITEMS: usize = 3000;

/// The server dies twice while it builds an index. In the end the index holds every item once.
#[test]
fn a_backfill_survives_kills() {
    let seed = Seed::announce("kill under a backfill");
    let directory = TemporaryDirectory::new("kill-backfill");
    let server = ServerProcess::start(directory.path());
    let client = &mut server.client();
    create_simple(client, "filled");
    let items: Vec<_> = (0..ITEMS).map(item).collect();
    for batch in items.chunks(25) {
        let puts: Vec<_> = batch.iter().map(|item| json!({"PutRequest": {"Item": item}})).collect();
        client.expect("BatchWriteItem", &json!({"RequestItems": {"filled": puts}}));
    }
    client.expect("UpdateTable", &creation_of_an_index());
    let mut random = seed.generator(0);
    look_on(client, random.random_range(0..40));
    server.kill();

    let server = ServerProcess::start(directory.path());
    // Writes during the backfill take part in it.
    let client = &mut server.client();
    client.expect("DeleteItem", &json!({"TableName": "filled", "Key": key(0)}));
    let mut moved = item(1);
    moved["g"] = json!({"S": "moved"});
    client.expect("PutItem", &json!({"TableName": "filled", "Item": moved}));
    look_on(client, random.random_range(0..40));
    server.kill();

    let server = ServerProcess::start(directory.path());
    let client = &mut server.client();
    wait_for_index(client);
    let as_set = |items: Vec<Value>| items.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    let indexed = scan(client, "filled", Some("by-group"));
    assert_eq!(indexed.len(), ITEMS - 1);
    assert_eq!(as_set(indexed), as_set(scan(client, "filled", None)));
}

fn key(number: usize) -> Value {
    json!({"pk": {"S": format!("item{number:05}")}})
}

fn item(number: usize) -> Value {
    let mut item = key(number);
    item["g"] = json!({"S": format!("group{}", number % 7)});
    item
}

fn creation_of_an_index() -> Value {
    json!({
        "TableName": "filled",
        "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": {
            "IndexName": "by-group",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }}],
    })
}

/// Lets the backfill continue for some requests.
fn look_on(client: &mut Client, requests: usize) {
    for _ in 0..requests {
        client.expect("DescribeTable", &json!({"TableName": "filled"}));
    }
}

fn wait_for_index(client: &mut Client) {
    let mut index = || {
        let mut answer = client.expect("DescribeTable", &json!({"TableName": "filled"}));
        answer["Table"]["GlobalSecondaryIndexes"][0].take()
    };
    wait_until(|| index()["IndexStatus"] == "ACTIVE");
    assert_eq!(index()["ItemCount"], ITEMS - 1);
}
