//! Snapshots, restores, resets and forks.

use serde_json::{Value, json};
use zenobe_testing::{ServerProcess, TemporaryDirectory, wait_until};

use super::{add_fault, client_of, control, controlled, items, outcome, refused, tables};
use crate::endpoint::{Answer, TestEndpoint};
use crate::triggers::{admin, create_table, put, serve};

fn fork(process: &ServerProcess, body: &Value) -> Value {
    control(process, "POST", "forks", body)
}

#[test]
fn a_fork_and_its_origin_go_their_own_ways() {
    let process = controlled(&[]);
    let mut client = process.client();
    create_table(&mut client, "events");
    put(&mut client, "events", "a", 1);
    let fork_one = fork(&process, &json!({}));
    put(&mut client, "events", "b", 2);
    let fork_two = fork(&process, &json!({}));
    let (mut one, mut two) = (client_of(&fork_one), client_of(&fork_two));
    assert_eq!((items(&mut one, "events"), items(&mut two, "events")), (1, 2));
    for number in 0..5 {
        put(&mut one, "events", &format!("one-{number}"), 1);
    }
    two.expect("DeleteTable", &json!({"TableName": "events"}));
    create_table(&mut two, "others");
    assert_eq!(items(&mut client, "events"), 2);
    assert_eq!(items(&mut one, "events"), 6);
    assert_eq!((tables(&mut two), tables(&mut client)), (json!(["others"]), json!(["events"])));

    // Forks can be forked, and faults are each one's own.
    let address = fork_two["endpoint"].as_str().unwrap().strip_prefix("http://").unwrap();
    let mut of_two = zenobe_testing::Client::new(address.parse().unwrap());
    let reply = of_two.send("POST", "/_zenobe/test/forks", &[], b"").unwrap();
    let mut three = client_of(&reply.body);
    assert_eq!(tables(&mut three), json!(["others"]));
    add_fault(&process, "kind=error");
    assert_eq!(outcome(&mut client, "ListTables", &json!({})), "InternalServerError");
    assert_eq!(outcome(&mut three, "ListTables", &json!({})), "OK");
    let mut four = client_of(&fork(&process, &json!({})));
    assert_eq!(outcome(&mut four, "ListTables", &json!({})), "InternalServerError");

    let listed = control(&process, "GET", "forks", &Value::Null);
    assert_eq!(listed["forks"].as_array().unwrap().len(), 4);
    control(&process, "DELETE", &format!("forks/{}", fork_one["id"]), &Value::Null);
    wait_until(|| {
        one.disconnect();
        one.call("ListTables", &json!({})).is_err()
    });
    assert_eq!(tables(&mut two), json!(["others"]));
    // Forks end with the server.
    process.stop();
    assert!(two.call("ListTables", &json!({})).is_err());
}

#[test]
fn the_number_of_forks_and_snapshots_is_bounded() {
    let process = controlled(&[]);
    let max = control(&process, "GET", "forks", &Value::Null)["max"].as_u64().unwrap();
    for _ in 0..max {
        fork(&process, &json!({}));
    }
    let why = refused(&process, "POST", "forks", &json!({}), 409);
    assert!(why.contains("forks already, all in use; end one first"), "{why}");
    control(&process, "DELETE", "forks/1", &Value::Null);
    assert_eq!(fork(&process, &json!({}))["id"], max + 1);
    let max = control(&process, "GET", "snapshots", &Value::Null)["max"].as_u64().unwrap();
    for number in 0..max {
        control(&process, "POST", "snapshots", &json!({"name": format!("s{number}")}));
    }
    control(&process, "POST", "snapshots", &json!({"name": "s0"}));
    let why = refused(&process, "POST", "snapshots", &json!({"name": "more"}), 409);
    assert!(why.contains("remove one first"), "{why}");
}

#[test]
fn a_snapshot_brings_everything_back_and_connections_stay() {
    let process = controlled(&["--driven-clock"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    put(&mut client, "events", "a", 1);
    control(&process, "POST", "snapshots", &json!({"name": "one"}));
    for round in 0..3 {
        put(&mut client, "events", "b", round);
        client.expect("DeleteItem", &json!({"TableName": "events", "Key": {"pk": {"S": "a"}}}));
        create_table(&mut client, "others");
        add_fault(&process, "kind=throttle");
        control(&process, "POST", "restore", &json!({"snapshot": "one"}));
        assert_eq!(tables(&mut client), json!(["events"]), "round {round}");
        let key = json!({"TableName": "events", "Key": {"pk": {"S": "a"}}});
        assert_eq!(client.expect("GetItem", &key)["Item"]["n"], json!({"N": "1"}));
        assert_eq!(items(&mut client, "events"), 1);
        let faults = control(&process, "GET", "faults", &Value::Null);
        assert_eq!(faults["faults"], json!([]), "faults of the last round are gone");
    }
    control(&process, "POST", "reset", &json!({}));
    assert_eq!(tables(&mut client), json!([]));
    control(&process, "POST", "restore", &json!({"snapshot": "one"}));
    assert_eq!(tables(&mut client), json!(["events"]));
    process.stop();
}

/// Ids of tables begin again in an empty database.
#[test]
fn hot_keys_of_a_database_go_with_it() {
    let process = controlled(&[]);
    let mut client = process.client();
    create_table(&mut client, "events");
    put(&mut client, "events", "a", 1);
    control(&process, "POST", "reset", &json!({}));
    create_table(&mut client, "others");
    put(&mut client, "others", "b", 1);
    let (status, report) = admin(&process, "GET", "/_zenobe/hot-keys/others", &Value::Null);
    assert_eq!(status, 200, "{report}");
    let report = report.to_string();
    assert!(report.contains(r#"{"S":"b"}"#) && !report.contains(r#"{"S":"a"}"#), "{report}");
    process.stop();
}

/// Requests run all the time while the database is replaced under them. Each finds one or the other.
#[test]
fn no_request_fails_while_the_database_is_replaced() {
    let process = controlled(&[]);
    let mut client = process.client();
    create_table(&mut client, "events");
    control(&process, "POST", "snapshots", &json!({"name": "one"}));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let mut client = process.client();
                scope.spawn(move || {
                    for number in 0..300 {
                        put(&mut client, "events", &format!("{writer}-{number}"), number);
                    }
                })
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            control(&process, "POST", "restore", &json!({"snapshot": "one"}));
        }
    });
    control(&process, "POST", "restore", &json!({"snapshot": "one"}));
    assert_eq!(items(&mut client, "events"), 0);
}

/// CloudWatch, auto scaling and the requests of operators use the same database as everybody.
#[test]
fn no_other_service_fails_while_the_database_is_replaced() {
    let process = controlled(&["--driven-clock"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    control(&process, "POST", "snapshots", &json!({"name": "one"}));
    let limits = json!({
        "ServiceNamespace": "dynamodb",
        "ResourceId": "table/events",
        "ScalableDimension": "dynamodb:table:ReadCapacityUnits",
        "MinCapacity": 1,
        "MaxCapacity": 9,
    });
    let points = json!({"Namespace": "Shop", "MetricData": [{"MetricName": "n", "Value": 1}]});
    let calls = [
        ("AnyScaleFrontendService.RegisterScalableTarget", limits),
        ("GraniteServiceVersion20100801.PutMetricData", points),
    ];
    std::thread::scope(|scope| {
        let mut callers: Vec<_> = Vec::new();
        for (target, body) in &calls {
            let mut client = process.client();
            callers.push(scope.spawn(move || {
                for _ in 0..200 {
                    let reply = client.call_target(target, body).unwrap();
                    assert_eq!(reply.status, 200, "{target}: {}", reply.body);
                }
            }));
        }
        callers.push(scope.spawn(|| {
            for _ in 0..200 {
                let minute = json!({"advance_ms": 60_000});
                let (status, answer) = admin(&process, "POST", "/_zenobe/clock", &minute);
                assert_eq!(status, 200, "{answer}");
            }
        }));
        while !callers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            control(&process, "POST", "restore", &json!({"snapshot": "one"}));
        }
    });
    process.stop();
}

#[test]
fn triggers_run_where_the_database_was_copied_and_again_after_a_restore() {
    let process = controlled(&[]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let endpoint = TestEndpoint::start(|_, _| Answer::Ok);
    let trigger = json!({"name": "t", "table": "events", "url": endpoint.url()});
    assert_eq!(admin(&process, "POST", "/_zenobe/triggers", &trigger).0, 200);
    control(&process, "POST", "snapshots", &json!({"name": "one"}));
    let mut forked = client_of(&fork(&process, &json!({})));
    put(&mut forked, "events", "forked", 1);
    control(&process, "POST", "restore", &json!({"snapshot": "one"}));
    put(&mut client, "events", "restored", 1);
    endpoint.wait_for(1);
    let keys: Vec<_> =
        endpoint.accepted().iter().map(|it| it["dynamodb"]["Keys"]["pk"].clone()).collect();
    assert_eq!(keys, [json!({"S": "restored"})]);
}

/// Forks have files of their own, which nothing else sees and which end with them.
#[test]
fn a_data_directory_is_forked() {
    let directory = TemporaryDirectory::new("fork-directory");
    let data = directory.path().to_str().unwrap();
    let start = || serve(&["--data", data, "--durability", "os", "--test-control"]);
    let process = start();
    let mut client = process.client();
    create_table(&mut client, "events");
    for number in 0..50 {
        put(&mut client, "events", &format!("before-{number}"), 1);
    }
    let first = fork(&process, &json!({}));
    let mut one = client_of(&first);
    put(&mut client, "events", "after", 1);
    put(&mut one, "events", "one", 1);
    put(&mut one, "events", "two", 1);
    // A fork of a fork outlives it.
    let reply = one.send("POST", "/_zenobe/test/forks", &[], b"").unwrap();
    let mut two = client_of(&reply.body);
    control(&process, "DELETE", &format!("forks/{}", first["id"]), &Value::Null);
    let copies = || std::fs::read_dir(directory.path().join("CHECKPOINTS")).unwrap().count();
    wait_until(|| copies() == 1);
    put(&mut two, "events", "three", 1);
    assert_eq!((items(&mut two, "events"), items(&mut client, "events")), (53, 51));
    two.expect("DeleteTable", &json!({"TableName": "events"}));
    assert_eq!(items(&mut client, "events"), 51);
    // A killed server leaves its forks behind, and the next one removes them.
    process.kill();
    assert_eq!(copies(), 1);
    let process = start();
    assert!(!directory.path().join("CHECKPOINTS").exists());
    assert_eq!(items(&mut process.client(), "events"), 51);
    fork(&process, &json!({}));
    process.stop();
    assert_eq!(copies(), 0, "forks end with the server");
}

#[test]
fn one_table_is_emptied_and_keeps_its_settings() {
    let directory = TemporaryDirectory::new("reset-table");
    let data = directory.path().to_str().unwrap();
    // Not only in memory.
    let process = serve(&["--data", data, "--durability", "os", "--test-control"]);
    let mut client = process.client();
    for table in ["events", "others"] {
        create_table(&mut client, table);
        put(&mut client, table, "a", 1);
        put(&mut client, table, "b", 1);
    }
    let before = client.expect("DescribeTable", &json!({"TableName": "events"}));
    control(&process, "POST", "reset", &json!({"table": "events"}));
    assert_eq!((items(&mut client, "events"), items(&mut client, "others")), (0, 2));
    let after = client.expect("DescribeTable", &json!({"TableName": "events"}));
    assert_eq!(after["Table"]["ItemCount"], 0);
    assert_eq!(after["Table"]["LatestStreamArn"], before["Table"]["LatestStreamArn"]);
    put(&mut client, "events", "c", 1);
    assert_eq!(items(&mut client, "events"), 1);

    for (method, path, body) in
        [("POST", "snapshots", json!({"name": "x"})), ("POST", "reset", json!({}))]
    {
        let why = refused(&process, method, path, &body, 409);
        assert_eq!(why, "only a database in memory (--memory) can return to an earlier state");
    }
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    client.expect(
        "UpdateContinuousBackups",
        &json!({"TableName": "events", "PointInTimeRecoverySpecification": recovery}),
    );
    let why = refused(&process, "POST", "reset", &json!({"table": "events"}), 409);
    assert!(why.contains("its past would be lost"), "{why}");
    assert_eq!(items(&mut client, "events"), 1);
}
