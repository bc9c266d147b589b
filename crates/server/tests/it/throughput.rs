//! The throughput mode of a table, by command and by admin request.

use serde_json::{Value, json};

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
