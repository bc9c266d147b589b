//! The throughput mode of a table, by command and by admin request.

use serde_json::{Value, json};
use zenobe_load::{Credential, Target, exchange};
use zenobe_testing::ServerProcess;

use crate::commands::zenobe;
use crate::triggers::{admin, create_table, serve};

const PATH: &str = "/_zenobe/throughput/events";

#[test]
fn the_mode_of_a_table_can_be_set() {
    let process = serve(&["--memory"]);
    let mut client = process.client();
    create_table(&mut client, "events");
    let mode = |mode: &str, own: Value| json!({"table": "events", "mode": mode, "own_mode": own});
    let get = || admin(&process, "GET", PATH, &Value::Null);
    let put = |mode: &str| admin(&process, "PUT", PATH, &json!({ "mode": mode }));
    assert_eq!(get(), (200, mode("observe", Value::Null)));
    assert_eq!(put("enforce"), (200, mode("enforce", json!("enforce"))));
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/events";
    let tags = client.expect("ListTagsOfResource", &json!({ "ResourceArn": arn }));
    assert_eq!(tags["Tags"], json!([{"Key": "zenobe:throughput", "Value": "enforce"}]));
    let (status, partitions) = admin(&process, "GET", "/_zenobe/partitions/events", &Value::Null);
    assert_eq!((status, &partitions["resources"][0]["mode"]), (200, &json!("enforce")));
    assert_eq!(put("default"), (200, mode("observe", Value::Null)));

    let (status, refusal) = put("sometimes");
    assert_eq!(status, 400);
    assert!(refusal["error"].as_str().unwrap().contains("\"enforce\""), "{refusal}");
    let absent = admin(&process, "PUT", "/_zenobe/throughput/absent", &json!({"mode": "off"}));
    assert_eq!(absent, (404, json!({"error": "there is no table absent"})));
    assert_eq!(admin(&process, "DELETE", PATH, &Value::Null).0, 405);
}

#[test]
fn the_command_shows_and_sets_it() {
    let process = serve(&["--memory"]);
    create_table(&mut process.client(), "events");
    let endpoint = format!("http://{}", process.address());
    let run = |arguments: &[&str]| {
        let all = [&["throughput", "--endpoint", &endpoint], arguments].concat();
        let output = zenobe(&all).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (_, shown, _) = run(&["events"]);
    assert_eq!(shown, "events: observe (by the server's --throughput)");
    let (_, shown, _) = run(&["events", "enforce"]);
    assert_eq!(shown, "events: enforce (by the table's tag)");
    let (_, shown, _) = run(&["events", "default", "--json"]);
    let expected = json!({"table": "events", "mode": "observe", "own_mode": null});
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), expected);
    let (succeeded, _, said) = run(&["absent", "off"]);
    assert!(!succeeded && said.contains("there is no table absent"), "{said}");
}

/// With `--throughput enforce` and a tenant per access key, throughput is a quota.
#[test]
fn tenants_can_not_loosen_what_the_operator_enforces() {
    let options = ["--memory", "--namespaces-from-credentials", "--throughput", "enforce"];
    let limits = ["--account-capacity-units-max=10", "--account-write-units-per-second=1"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
    let mut command = zenobe(&[&serve[..], &options, &limits].concat());
    let server = ServerProcess::launch(command.env("ZENOBE_CREDENTIALS", "ALICE:a,BOB:b"));
    let call = |key: &str, operation: &str, body: Value| {
        let (access_key, secret_key) = (key.to_owned(), key[..1].to_lowercase());
        let credential = Credential { access_key, secret_key, session_token: None };
        let target = Target::new(&server.endpoint(), "us-east-1", Some(credential)).unwrap();
        let answer = exchange(&target, operation, body.to_string().as_bytes()).unwrap();
        if answer.is_success() { String::new() } else { answer.error_message() }
    };
    let table = |units: u64, tags: Value| {
        json!({
            "TableName": "events", "Tags": tags,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": units, "WriteCapacityUnits": units},
        })
    };
    let lax = json!([{"Key": "zenobe:throughput", "Value": "off"}]);
    let refused = "The tag zenobe:throughput can't be off: the server's throughput mode is enforce, \
                   and its tables can't loosen it";
    assert_eq!(call("ALICE", "CreateTable", table(1, lax.clone())), refused);
    let above = call("ALICE", "CreateTable", table(11, json!([])));
    assert!(above.contains("Per table maximum: 10."), "{above}");
    for key in ["ALICE", "BOB"] {
        assert_eq!(call(key, "CreateTable", table(10, json!([]))), "", "each has a quota");
    }
    let arn = "arn:aws:dynamodb:us-east-1:ALICE:table/events";
    let tagged = call("ALICE", "TagResource", json!({"ResourceArn": arn, "Tags": lax}));
    assert_eq!(tagged, refused);

    let endpoint = server.endpoint();
    let run = |mode: &str| {
        let mut command = zenobe(&["throughput", "--endpoint", &endpoint, "events", mode]);
        command.env("AWS_ACCESS_KEY_ID", "ALICE").env("AWS_SECRET_ACCESS_KEY", "a");
        let output = command.env_remove("AWS_SESSION_TOKEN").env("AWS_REGION", "us-east-1");
        let output = output.output().unwrap();
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let [_, refusal] = run("observe");
    assert!(refusal.contains("events can't have the mode observe"), "{refusal}");
    let [shown, _] = run("default");
    assert_eq!(shown.trim(), "events: enforce (by the server's --throughput)");

    // An item of 300 units leaves its account in debt for minutes, and only its account.
    let item = |size_bytes: usize| json!({"pk": {"S": "a"}, "data": {"S": "x".repeat(size_bytes)}});
    let put = |size_bytes| json!({"TableName": "events", "Item": item(size_bytes)});
    assert_eq!(call("ALICE", "PutItem", put(300_000)), "");
    let throttled = call("ALICE", "PutItem", put(1));
    let expected = "Throughput exceeds the current throughput limit for your account.";
    assert!(throttled.starts_with(expected), "{throttled}");
    assert_eq!(call("BOB", "PutItem", put(1)), "");
}

#[test]
fn the_limits_of_an_account_are_options() {
    let process =
        serve(&["--memory", "--account-capacity-units-max=100", "--table-capacity-units-max=60"]);
    let limits = process.client().expect("DescribeLimits", &json!({}));
    let expected = json!({
        "AccountMaxReadCapacityUnits": 100, "AccountMaxWriteCapacityUnits": 100,
        "TableMaxReadCapacityUnits": 60, "TableMaxWriteCapacityUnits": 60,
    });
    assert_eq!(limits, expected);
}
