//! What is late: eventually consistent reads, statuses, expiry and streams. The clock is driven, so that
//! nothing here depends on how fast the test runs.

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerProcess};

use super::{add_fault, control, controlled, outcome};
use crate::triggers::{admin, create_table, put};

fn advance(process: &ServerProcess, by_ms: u64) {
    let (status, answer) =
        admin(process, "POST", "/_zenobe/clock", &json!({ "advance_ms": by_ms }));
    assert_eq!(status, 200, "{answer}");
}

fn driven() -> (ServerProcess, Client) {
    let process = controlled(&["--driven-clock"]);
    let client = process.client();
    (process, client)
}

fn create_indexed(client: &mut Client) {
    let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |name: &str| json!([{"AttributeName": name, "KeyType": "HASH"}]);
    client.expect(
        "CreateTable",
        &json!({
            "TableName": "orders",
            "AttributeDefinitions": [attribute("pk"), attribute("city")],
            "KeySchema": key("pk"),
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-city",
                "KeySchema": key("city"),
                "Projection": {"ProjectionType": "ALL"},
            }],
        }),
    );
}

fn put_order(client: &mut Client, city: &str) {
    let item = json!({"pk": {"S": "a"}, "city": {"S": city}});
    client.expect("PutItem", &json!({"TableName": "orders", "Item": item}));
}

/// The city of the one order, by each way to read it.
struct Seen<'c>(&'c mut Client);

impl Seen<'_> {
    fn get(&mut self, consistent: bool) -> Value {
        let key = json!({"pk": {"S": "a"}});
        let get = json!({"TableName": "orders", "Key": key, "ConsistentRead": consistent});
        self.0.expect("GetItem", &get)["Item"]["city"]["S"].clone()
    }

    fn scan(&mut self, consistent: bool) -> Value {
        let scan = json!({"TableName": "orders", "ConsistentRead": consistent});
        self.0.expect("Scan", &scan)["Items"][0]["city"]["S"].clone()
    }

    fn filtered(&mut self) -> Value {
        let scan = json!({"TableName": "orders", "FilterExpression": "attribute_exists(city)"});
        self.0.expect("Scan", &scan)["Items"][0]["city"]["S"].clone()
    }

    fn batch(&mut self, consistent: bool) -> Value {
        let keys = json!({"Keys": [{"pk": {"S": "a"}}], "ConsistentRead": consistent});
        let got = self.0.expect("BatchGetItem", &json!({"RequestItems": {"orders": keys}}));
        got["Responses"]["orders"][0]["city"]["S"].clone()
    }

    fn transaction(&mut self) -> Value {
        let get = json!({"Get": {"TableName": "orders", "Key": {"pk": {"S": "a"}}}});
        let got = self.0.expect("TransactGetItems", &json!({ "TransactItems": [get] }));
        got["Responses"][0]["Item"]["city"]["S"].clone()
    }

    fn index(&mut self, city: &str) -> u64 {
        let query = json!({
            "TableName": "orders",
            "IndexName": "by-city",
            "KeyConditionExpression": "city = :c",
            "ExpressionAttributeValues": {":c": {"S": city}},
        });
        self.0.expect("Query", &query)["Count"].as_u64().unwrap()
    }
}

#[test]
fn eventually_consistent_reads_lag_and_consistent_ones_never_do() {
    let (process, mut client) = driven();
    create_indexed(&mut client);
    put_order(&mut client, "Paris");
    advance(&process, 1_000);
    add_fault(&process, "kind=stale table=orders delay=fixed:100ms");
    put_order(&mut client, "Rome");
    advance(&process, 99);
    put_order(&mut client, "Oslo");
    let mut seen = Seen(&mut client);
    // Rome came 99 ms ago, Oslo now: the state of 100 ms ago is still Paris.
    for _ in 0..3 {
        assert_eq!([seen.get(false), seen.scan(false), seen.batch(false)], ["Paris"; 3]);
        assert_eq!(seen.filtered(), "Paris");
        assert_eq!((seen.index("Paris"), seen.index("Oslo")), (1, 0));
        assert_eq!([seen.get(true), seen.scan(true), seen.batch(true)], ["Oslo"; 3]);
        assert_eq!(seen.transaction(), "Oslo");
    }
    // Conditions of writes see the present.
    let update = json!({
        "TableName": "orders",
        "Key": {"pk": {"S": "a"}},
        "UpdateExpression": "SET n = :n",
        "ConditionExpression": "city = :c",
        "ExpressionAttributeValues": {":n": {"N": "1"}, ":c": {"S": "Oslo"}},
    });
    seen.0.expect("UpdateItem", &update);
    advance(&process, 1);
    let mut seen = Seen(&mut client);
    assert_eq!([seen.get(false), seen.scan(false)], ["Rome"; 2], "each state comes in its turn");
    advance(&process, 99);
    let mut seen = Seen(&mut client);
    assert_eq!(
        [seen.get(false), seen.scan(false), seen.filtered()],
        ["Oslo"; 3],
        "and all converge"
    );
    assert_eq!((seen.index("Paris"), seen.index("Oslo")), (0, 1));
}

#[test]
fn an_index_can_lag_alone_and_only_sometimes() {
    let (process, mut client) = driven();
    create_indexed(&mut client);
    put_order(&mut client, "Paris");
    advance(&process, 1_000);
    add_fault(&process, "kind=stale table=orders index=by-city delay=1h rate=0.5");
    put_order(&mut client, "Rome");
    let mut seen = Seen(&mut client);
    assert_eq!(seen.get(false), "Rome");
    let found: Vec<u64> = (0..50).map(|_| seen.index("Rome")).collect();
    assert!(found.contains(&0) && found.contains(&1), "{found:?}");
    let faults = control(&process, "GET", "faults", &Value::Null);
    let stale = found.iter().filter(|count| **count == 0).count();
    assert_eq!(faults["faults"][0]["fired"], stale);
}

/// Without a rule nothing is remembered, and after a change of the table its reads are current.
#[test]
fn a_lag_never_shows_another_definition() {
    let (process, mut client) = driven();
    create_indexed(&mut client);
    add_fault(&process, "kind=stale delay=1h");
    put_order(&mut client, "Paris");
    advance(&process, 10);
    assert_eq!(Seen(&mut client).get(false), Value::Null, "the table is older than the item");
    client.expect("DeleteTable", &json!({"TableName": "orders"}));
    create_indexed(&mut client);
    advance(&process, 10);
    put_order(&mut client, "Rome");
    assert_eq!(Seen(&mut client).get(true), "Rome");
    assert_ne!(Seen(&mut client).get(false), "Paris", "that was another table");
}

#[test]
fn tables_take_their_time_to_be_created_changed_and_deleted() {
    let (process, mut client) = driven();
    add_fault(&process, "kind=status delay=5s");
    let describe = json!({"TableName": "events"});
    let status = |client: &mut Client| match client.call("DescribeTable", &describe) {
        Ok(reply) if reply.status == 200 => reply.body["Table"]["TableStatus"].clone(),
        _ => Value::Null,
    };
    let item = json!({"TableName": "events", "Item": {"pk": {"S": "a"}}});
    let update = json!({"TableName": "events", "TableClass": "STANDARD_INFREQUENT_ACCESS"});
    create_table(&mut client, "events");
    assert_eq!(status(&mut client), "CREATING");
    assert_eq!(outcome(&mut client, "PutItem", &item), "ResourceNotFoundException");
    assert_eq!(outcome(&mut client, "DeleteTable", &describe), "ResourceInUseException");
    advance(&process, 4_999);
    assert_eq!(status(&mut client), "CREATING");
    advance(&process, 1);
    assert_eq!(status(&mut client), "ACTIVE");
    assert_eq!(outcome(&mut client, "PutItem", &item), "OK");

    assert_eq!(outcome(&mut client, "UpdateTable", &update), "OK");
    assert_eq!(status(&mut client), "UPDATING");
    assert_eq!(outcome(&mut client, "PutItem", &item), "OK");
    assert_eq!(outcome(&mut client, "DeleteTable", &describe), "ResourceInUseException");
    advance(&process, 5_000);
    assert_eq!(status(&mut client), "ACTIVE");

    assert_eq!(outcome(&mut client, "DeleteTable", &describe), "OK");
    assert_eq!(status(&mut client), "DELETING");
    assert_eq!(outcome(&mut client, "PutItem", &item), "ResourceNotFoundException");
    advance(&process, 5_000);
    assert_eq!(status(&mut client), Value::Null);
    create_table(&mut client, "events");
    assert_eq!(status(&mut client), "CREATING");
}

#[test]
fn items_expire_late() {
    let (process, mut client) = driven();
    create_table(&mut client, "events");
    let specification = json!({"Enabled": true, "AttributeName": "until"});
    client.expect(
        "UpdateTimeToLive",
        &json!({"TableName": "events", "TimeToLiveSpecification": specification}),
    );
    add_fault(&process, "kind=expiry table=events delay=1h");
    let now_ms = admin(&process, "GET", "/_zenobe/clock", &Value::Null).1["now_ms"].clone();
    let until = (now_ms.as_u64().unwrap() / 1_000 + 60).to_string();
    let item = json!({"pk": {"S": "a"}, "until": {"N": until}});
    client.expect("PutItem", &json!({"TableName": "events", "Item": item}));
    let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
    advance(&process, 3_600_000);
    assert!(client.expect("GetItem", &key)["Item"].is_object(), "an hour and no more");
    advance(&process, 120_000);
    assert!(client.expect("GetItem", &key)["Item"].is_null());
}

/// The records of the stream, shard by shard from the first, as far as they show.
fn records(client: &mut Client) -> (Vec<String>, usize) {
    let mut streams = |operation: &str, body: &Value| {
        let reply = client.call_streams(operation, body).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    };
    let arn =
        streams("ListStreams", &json!({"TableName": "events"}))["Streams"][0]["StreamArn"].clone();
    let described = streams("DescribeStream", &json!({ "StreamArn": arn }));
    let shards = described["StreamDescription"]["Shards"].as_array().unwrap().clone();
    let mut found = Vec::new();
    for shard in &shards {
        let start = json!({
            "StreamArn": arn,
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        });
        let iterator = streams("GetShardIterator", &start)["ShardIterator"].clone();
        let page = streams("GetRecords", &json!({ "ShardIterator": iterator }));
        for record in page["Records"].as_array().unwrap() {
            found.push(record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap().to_owned());
        }
    }
    (found, shards.len())
}

#[test]
fn records_show_late_and_shards_roll_over_on_demand() {
    let (process, mut client) = driven();
    create_table(&mut client, "events");
    put(&mut client, "events", "a", 1);
    control(&process, "POST", "rollover", &json!({"table": "events"}));
    put(&mut client, "events", "b", 1);
    assert_eq!(records(&mut client), (vec!["a".to_owned(), "b".to_owned()], 2));
    let id = add_fault(&process, "kind=stream table=events delay=10s");
    assert_eq!(records(&mut client), (vec![], 2));
    advance(&process, 5_000);
    put(&mut client, "events", "c", 1);
    advance(&process, 5_000);
    assert_eq!(records(&mut client).0, ["a", "b"]);
    control(&process, "DELETE", &format!("faults/{id}"), &Value::Null);
    assert_eq!(records(&mut client).0, ["a", "b", "c"]);
}

/// An iterator names its table, although its caller can't read it.
#[test]
fn reads_of_a_stream_meet_the_rules_of_its_table() {
    let process = controlled(&[]);
    let mut client = process.client();
    let iterators = ["events", "others"].map(|table| {
        create_table(&mut client, table);
        let mut streams = |operation: &str, body: &Value| {
            let reply = client.call_streams(operation, body).unwrap();
            assert_eq!(reply.status, 200, "{}", reply.body);
            reply.body
        };
        let found = streams("ListStreams", &json!({ "TableName": table }));
        let arn = &found["Streams"][0]["StreamArn"];
        let described = streams("DescribeStream", &json!({ "StreamArn": arn }));
        let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
        let start = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST"});
        json!({"ShardIterator": streams("GetShardIterator", &start)["ShardIterator"]})
    });
    let [events, others] = &iterators;
    let mut statuses =
        || [others, events, events].map(|it| client.call_streams("GetRecords", it).unwrap().status);
    add_fault(&process, "kind=unavailable table=events operation=GetRecords times=1");
    assert_eq!(statuses(), [200, 503, 200]);
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/events";
    let tag = json!([{"Key": "zenobe:test:error", "Value": "operation=GetRecords times=1"}]);
    process.client().expect("TagResource", &json!({"ResourceArn": arn, "Tags": tag}));
    assert_eq!(statuses(), [200, 500, 200]);
}

/// The shards of the stream, and how many of them have a parent.
fn lineage(client: &mut Client) -> (usize, usize) {
    let of_table = json!({"TableName": "events"});
    let streams = client.call_streams("ListStreams", &of_table).unwrap().body;
    let arn = json!({"StreamArn": streams["Streams"][0]["StreamArn"]});
    let described = client.call_streams("DescribeStream", &arn).unwrap().body;
    let shards = described["StreamDescription"]["Shards"].as_array().unwrap();
    let children = shards.iter().filter(|shard| shard["ParentShardId"].is_string()).count();
    (shards.len(), children)
}

/// A rule of the command line, of a table's tag and of a request, in turn.
#[test]
fn writes_split_shards_and_roll_them_over_by_rule() {
    let process = controlled(&["--fault", "kind=split table=events operation=PutItem times=1"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    create_table(&mut client, "others");
    put(&mut client, "others", "a", 1);
    client.expect("Scan", &json!({"TableName": "events"}));
    let refused = json!({
        "TableName": "events", "Item": {"pk": {"S": "a"}}, "ConditionExpression": "attribute_exists(pk)",
    });
    assert_eq!(client.call("PutItem", &refused).unwrap().status, 400);
    assert_eq!(lineage(&mut client), (1, 0), "no write of the table yet");
    put(&mut client, "events", "a", 1);
    assert_eq!(lineage(&mut client), (3, 2));
    put(&mut client, "events", "b", 1);
    assert_eq!(lineage(&mut client), (3, 2), "once");

    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/events";
    let tag = json!([{"Key": "zenobe:test:rollover", "Value": "times=1"}]);
    client.expect("TagResource", &json!({"ResourceArn": arn, "Tags": tag}));
    let insert = json!({"Statement": "INSERT INTO events VALUE {'pk': 'c'}"});
    let select = json!({"Statement": "SELECT * FROM events"});
    client.expect("ExecuteStatement", &select);
    assert_eq!(lineage(&mut client), (3, 2), "a statement that reads");
    client.expect("ExecuteStatement", &insert);
    assert_eq!(lineage(&mut client), (5, 4), "a child of each");

    add_fault(&process, "kind=split table=events rate=0.5 times=1");
    let puts = json!([{"PutRequest": {"Item": {"pk": {"S": "d"}}}}]);
    // The rule fires for every second write or so.
    for _ in 0..100 {
        if lineage(&mut client).0 != 5 {
            break;
        }
        client.expect("BatchWriteItem", &json!({"RequestItems": {"events": puts}}));
    }
    assert_eq!(lineage(&mut client), (9, 8));
    let (mut keys, _) = records(&mut client);
    keys.sort();
    keys.dedup();
    assert_eq!(keys, ["a", "b", "c", "d"], "nothing is lost");
}
