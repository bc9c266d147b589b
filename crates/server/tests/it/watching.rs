//! What operators see of requests: the log of slow ones, traces and metrics, hot keys, `zenobe top`.

use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use zenobe_testing::{
    Client, Connection, ScriptedReply, ScriptedRequest, ServerProcess, api_request,
    start_scripted_server, wait_until,
};

use crate::commands::zenobe;
use crate::triggers::admin;

const TABLE: &str = "Orders";

fn create_table(client: &mut Client) {
    let attribute = |name| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |name, role| json!({"AttributeName": name, "KeyType": role});
    client.expect(
        "CreateTable",
        &json!({
            "TableName": TABLE,
            "AttributeDefinitions": [attribute("owner"), attribute("id"), attribute("state")],
            "KeySchema": [key("owner", "HASH"), key("id", "RANGE")],
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-state",
                "KeySchema": [key("state", "HASH"), key("id", "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }],
            "BillingMode": "PAY_PER_REQUEST",
        }),
    );
}

fn put(client: &mut Client, owner: &str, id: &str) {
    let item = json!({"owner": {"S": owner}, "id": {"S": id}, "state": {"S": "open"}});
    client.expect("PutItem", &json!({"TableName": TABLE, "Item": item}));
}

fn query_index() -> Value {
    json!({
        "TableName": TABLE,
        "IndexName": "by-state",
        "KeyConditionExpression": "#s = :s AND begins_with(id, :p)",
        "FilterExpression": "#o <> :o",
        "ExpressionAttributeNames": {"#s": "state", "#o": "owner"},
        "ExpressionAttributeValues": {":s": {"S": "open"}, ":p": {"S": "1"}, ":o": {"S": "bob"}},
    })
}

/// A client's support call names the id of its request.
#[test]
fn the_log_has_the_id_of_each_request() {
    let server = ServerProcess::in_memory(&["--log", "info,zenobe=debug", "--log-format", "json"]);
    let mut client = server.client();
    let mut logged = |target: &str, body: &Value| {
        let reply = client.call_target(target, body).unwrap();
        let line = server.expect_output(reply.request_id());
        let fields = serde_json::from_str::<Value>(&line).unwrap()["fields"].take();
        assert_eq!(fields["message"], "answered");
        fields
    };
    let fields = logged("DynamoDB_20120810.ListTables", &json!({}));
    assert_eq!((&fields["operation"], &fields["status"]), (&json!("ListTables"), &json!(200)));
    // Other services are counted too.
    let describe = "AnyScaleFrontendService.DescribeScalableTargets";
    for (body, status) in [(json!({"ServiceNamespace": "dynamodb"}), 200), (json!({}), 400)] {
        let fields = logged(describe, &body);
        assert_eq!(fields["service"], "application-autoscaling");
        assert_eq!(fields["operation"], "DescribeScalableTargets");
        assert_eq!(fields["status"], status);
        let metrics = server.client().send("GET", "/metrics", &[], b"").unwrap().text();
        let line = format!(
            "zenobe_service_requests_total{{service=\"application-autoscaling\",status=\"{status}\"}} 1"
        );
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
}

#[test]
fn slow_requests_are_logged_with_their_plan() {
    let server = ServerProcess::in_memory(&["--slow-request-ms", "0", "--log-format", "json"]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    put(&mut client, "bob", "10");
    let reply = client.call("Query", &query_index()).unwrap();
    let line = server.expect_output(reply.request_id());
    let line: Value = serde_json::from_str(&line).unwrap();
    let fields = &line["fields"];
    assert_eq!(fields["message"], "slow request");
    assert_eq!(fields["operation"], "Query");
    assert_eq!(fields["tables"], "Orders,Orders/by-state");
    let plan = "Query Orders/by-state sort begins_with, filtered, 2 scanned, 1 returned";
    assert_eq!(fields["plan"], plan);
    assert_eq!((&fields["read_units"], &fields["write_units"]), (&json!(0.5), &json!(0.0)));
    assert!(fields["elapsed_ms"].as_f64().unwrap() > 0.0);
    assert!(fields["access_key"].as_str().is_some_and(|key| !key.is_empty()), "{line}");
    assert_eq!(fields["error"], Value::Null);
}

#[test]
fn fast_requests_are_not_logged() {
    let server = ServerProcess::in_memory(&["--slow-request-ms", "60000"]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    assert!(!server.output().contains("slow request"), "{}", server.output());
    server.stop();
}

/// A collector that takes everything, and what it got.
fn start_collector() -> (String, Receiver<(String, Value)>) {
    let (sender, received) = channel();
    let address = start_scripted_server(move |request: &ScriptedRequest| {
        assert_eq!(request.header("content-type"), Some("application/json"));
        let body: Value = serde_json::from_slice(&request.body).expect("a body of JSON");
        let _ = sender.send((request.path.clone(), body));
        ScriptedReply::response(200, "{}")
    });
    (format!("http://{address}/base"), received)
}

/// The attributes of a span or data point, by their keys.
fn attributes(of: &Value) -> Value {
    let list = of["attributes"].as_array().expect("attributes");
    let entries = list.iter().map(|it| {
        let value = it["value"].as_object().expect("a value").values().next().cloned();
        (it["key"].as_str().expect("a key").to_owned(), value.unwrap_or(Value::Null))
    });
    Value::Object(entries.collect())
}

#[test]
fn requests_become_spans_and_metrics() {
    let (endpoint, received) = start_collector();
    let server = ServerProcess::in_memory(&["--otlp-endpoint", &endpoint, "--node-name", "n1"]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    let trace_id = "0af7651916cd43dd8448eb211c80319c";
    let traced = |sampled: &str, body: &Value| {
        let parent = format!("traceparent: 00-{trace_id}-b7ad6b7169203331-{sampled}\r\n");
        let body = body.to_string();
        let target = "DynamoDB_20120810.Query";
        let mut connection = Connection::open(server.address());
        connection.send(&api_request(target, &parent, body.as_bytes())).reply()
    };
    let reply = traced("01", &query_index());
    let refused = traced(
        "01",
        &json!({"TableName": "Missing", "KeyConditionExpression": "a = :a",
        "ExpressionAttributeValues": {":a": {"S": "a"}}}),
    );
    let unsampled = traced("00", &query_index());
    // What is left is sent before the server ends.
    server.stop();
    let bodies: Vec<(String, Value)> = received.try_iter().collect();
    let of_path = |wanted: &'static str| {
        bodies.iter().filter(move |(path, _)| path == wanted).map(|(_, body)| body)
    };

    let spans: Vec<&Value> = of_path("/base/v1/traces")
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap())
        .collect();
    let of_request =
        |id: &str| spans.iter().find(|span| attributes(span)["aws.request_id"] == id).copied();
    assert_eq!(of_request(unsampled.request_id()), None, "its caller records no trace");
    let span = of_request(reply.request_id()).expect("a span of the query");
    assert_eq!(span["traceId"], trace_id);
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    assert_eq!((&span["name"], &span["kind"]), (&json!("Query Orders"), &json!(2)));
    let time = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
    assert!(time("startTimeUnixNano") < time("endTimeUnixNano"));
    let found = attributes(span);
    for (name, value) in [
        ("db.system.name", json!("aws.dynamodb")),
        ("db.operation.name", json!("Query")),
        ("db.collection.name", json!("Orders")),
        ("aws.dynamodb.table_names", json!({"values": [{"stringValue": "Orders"}]})),
        ("aws.dynamodb.index_name", json!("by-state")),
        ("aws.dynamodb.scanned_count", json!("1")),
        ("aws.dynamodb.count", json!("1")),
        ("http.response.status_code", json!("200")),
    ] {
        assert_eq!(found[name], value, "{name}");
    }
    let capacity = found["aws.dynamodb.consumed_capacity"]["values"][0]["stringValue"].as_str();
    let capacity: Value = serde_json::from_str(capacity.unwrap()).unwrap();
    assert_eq!(capacity["ReadCapacityUnits"], 0.5);
    let span = of_request(refused.request_id()).expect("a span of the refused query");
    assert_eq!(attributes(span)["error.type"], "ResourceNotFoundException");
    assert_eq!(span["status"], Value::Null, "a client's mistake is no error of the server");
    // Without a caller's trace, a request begins its own.
    let put = spans.iter().find(|span| span["name"] == "PutItem Orders").expect("a span");
    assert_ne!(put["traceId"], trace_id);
    assert_eq!(put["parentSpanId"], Value::Null);

    let last = of_path("/base/v1/metrics").next_back().expect("metrics");
    let resource = attributes(&last["resourceMetrics"][0]["resource"]);
    assert_eq!(resource["service.instance.id"], "n1");
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"] == name).expect("it");
    let points = metric("zenobe.requests")["sum"]["dataPoints"].as_array().unwrap();
    let of = |operation: &str, error: Value| {
        let is_it = |point: &&Value| {
            let found = attributes(point);
            found["db.operation.name"] == operation && found["error.type"] == error
        };
        points.iter().find(is_it).map(|point| point["asInt"].clone())
    };
    assert_eq!(of("Query", Value::Null), Some(json!("2")));
    assert_eq!(of("Query", json!("ResourceNotFoundException")), Some(json!("1")));
    let duration = &metric("zenobe.request.duration")["histogram"]["dataPoints"][0];
    let buckets = duration["bucketCounts"].as_array().unwrap();
    assert_eq!(buckets.len(), duration["explicitBounds"].as_array().unwrap().len() + 1);
    let consumed = metric("zenobe.consumed_capacity")["sum"]["dataPoints"].as_array().unwrap();
    assert!(consumed.iter().any(|point| {
        attributes(point)["aws.dynamodb.index_name"] == "by-state" && point["asDouble"] == 1.0
    }));
}

#[test]
fn spans_that_nobody_takes_are_dropped_and_counted() {
    let address = start_scripted_server(|_| ScriptedReply::response(400, "no"));
    let endpoint = format!("http://{address}");
    let server = ServerProcess::in_memory(&["--otlp-endpoint", &endpoint]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    let mut scrape = || client.send("GET", "/metrics", &[], b"").unwrap().text();
    wait_until(|| scrape().contains("\nzenobe_otlp_dropped_spans_total 2\n"));
    assert!(scrape().contains("\nzenobe_otlp_sent_spans_total 0\n"));
    server.expect_output("the OpenTelemetry collector accepted nothing");
}

fn hot_keys(client: &mut Client, table: &str) -> Value {
    client.send("GET", &format!("/_zenobe/hot-keys/{table}"), &[], b"").unwrap().body
}

#[test]
fn hot_keys_are_reported_as_dynamodb_json() {
    let server = ServerProcess::in_memory(&[]);
    let mut client = server.client();
    create_table(&mut client);
    for id in ["1", "2", "3"] {
        put(&mut client, "alice", id);
    }
    let key = json!({"owner": {"S": "bob"}, "id": {"S": "1"}});
    client.expect("GetItem", &json!({"TableName": TABLE, "Key": key}));
    client.expect("Query", &query_index());
    client.expect("Scan", &json!({"TableName": TABLE}));
    let report = hot_keys(&mut client, TABLE);
    let [table, index] = &report["resources"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&table["index"], &index["index"]), (&Value::Null, &json!("by-state")));
    assert_eq!(table["contributor_insights"], "DISABLED");
    let [alice, bob] = &table["partition_keys"]["accessed"].as_array().unwrap()[..] else {
        panic!("{table}")
    };
    assert_eq!(alice["key"], json!({"owner": {"S": "alice"}}));
    assert_eq!((&alice["accesses"], &alice["write_units"]), (&json!(3), &json!(3.0)));
    assert_eq!(alice["weighted_units"], 9.0);
    assert_eq!(bob["key"], json!({"owner": {"S": "bob"}}));
    assert_eq!(bob["read_units"], 0.5);
    let keys = table["keys"]["accessed"].as_array().unwrap();
    assert_eq!(keys.len(), 4);
    assert!(keys.iter().any(|it| it["key"] == key));
    let [open] = &index["partition_keys"]["accessed"].as_array().unwrap()[..] else {
        panic!("{index}")
    };
    assert_eq!(open["key"], json!({"state": {"S": "open"}}));
    assert_eq!((&open["accesses"], &open["write_units"]), (&json!(4), &json!(3.0)));
    let heat = table["heat"].as_array().unwrap();
    let written = |minute: &Value| {
        let partitions = minute["partitions"].as_array().unwrap();
        partitions.iter().map(|it| it["write_units"].as_f64().unwrap()).sum::<f64>()
    };
    assert_eq!(heat.iter().map(written).sum::<f64>(), 3.0);
    assert_eq!(hot_keys(&mut client, "Missing")["error"], "there is no table Missing");
}

#[test]
fn throttled_keys_are_counted_and_insights_meter_a_table() {
    let server = ServerProcess::in_memory(&["--throughput", "off"]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "before", "1");
    assert_eq!(hot_keys(&mut client, TABLE)["resources"][0]["heat"], json!([]));
    let enable = json!({"TableName": TABLE, "ContributorInsightsAction": "ENABLE"});
    client.expect("UpdateContributorInsights", &enable);
    // The first request that is metered finds that something is.
    put(&mut client, "alice", "1");
    put(&mut client, "alice", "1");
    let report = hot_keys(&mut client, TABLE);
    let table = &report["resources"][0];
    assert_eq!(table["contributor_insights"], "ACCESSED_AND_THROTTLED_KEYS");
    let accessed = table["partition_keys"]["accessed"].as_array().unwrap();
    assert_eq!(accessed[0]["key"], json!({"owner": {"S": "alice"}}));

    let arn = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}");
    let tags = json!([{"Key": "zenobe:throughput", "Value": "enforce"}]);
    client.expect("TagResource", &json!({"ResourceArn": arn, "Tags": tags}));
    let units = json!({"ReadCapacityUnits": 1, "WriteCapacityUnits": 1});
    client.expect(
        "UpdateTable",
        &json!({
            "TableName": TABLE, "BillingMode": "PROVISIONED", "ProvisionedThroughput": units,
            "GlobalSecondaryIndexUpdates": [
                {"Update": {"IndexName": "by-state", "ProvisionedThroughput": units}},
            ],
        }),
    );
    let item = json!({"owner": {"S": "hot"}, "id": {"S": "1"}, "data": {"S": "x".repeat(50_000)}});
    let put = json!({"TableName": TABLE, "Item": item});
    while client.call("PutItem", &put).unwrap().is_success() {}
    let report = hot_keys(&mut client, TABLE);
    let throttled = report["resources"][0]["partition_keys"]["throttled"].as_array().unwrap();
    assert_eq!(throttled[0]["key"], json!({"owner": {"S": "hot"}}));
    assert_eq!(throttled[0]["throttle_events"], 1);
}

#[test]
fn top_prints_one_frame() {
    let server = ServerProcess::in_memory(&[]);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    let endpoint = server.endpoint();
    let arguments = ["top", "--once", "--interval", "0.1", "--endpoint", &endpoint];
    let output = zenobe(&arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let line = |start: &str| {
        let found = text.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start} in\n{text}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("zenobe ")[2], endpoint);
    assert_eq!(line("PutItem")[1], "0.0");
    assert_eq!(line("owner=alice")[..3], ["owner=alice", "Orders", "1"]);
    assert!(!text.contains('\u{1b}'), "no terminal, no escape sequences");
    server.stop();
    let refused = zenobe(&arguments).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("is the server running?"), "{text}");
}

/// The counters of tables outlive the minute after which they are stored for CloudWatch.
#[test]
fn tables_have_the_metrics_of_cloudwatch() {
    let server = ServerProcess::in_memory(&["--driven-clock"]);
    let minute = json!({"advance_ms": 60_000});
    let next_minute = || assert_eq!(admin(&server, "POST", "/_zenobe/clock", &minute).0, 200);
    let mut client = server.client();
    create_table(&mut client);
    put(&mut client, "alice", "1");
    put(&mut client, "bob", "10");
    client.expect("Query", &query_index());
    let new = json!({
        "TableName": TABLE,
        "Item": {"owner": {"S": "bob"}, "id": {"S": "10"}},
        "ConditionExpression": "attribute_not_exists(id)",
    });
    assert_eq!(client.call("PutItem", &new).unwrap().status, 400);
    assert_eq!(
        client.call("GetItem", &json!({"TableName": TABLE, "Key": {}})).unwrap().status,
        400
    );
    let check = |puts: u64| {
        let text = server.client().send("GET", "/metrics", &[], b"").unwrap().text();
        let labels = |further: &str| {
            format!("{{table=\"Orders\",{further}account=\"000000000000\",region=\"us-east-1\"}}")
        };
        let of = |operation: &str| labels(&format!("operation=\"{operation}\","));
        for expected in [
            format!("zenobe_table_requests_total{} {}", of("PutItem"), puts + 1),
            format!(
                "zenobe_table_successful_request_latency_seconds_count{} {puts}",
                of("PutItem")
            ),
            format!("zenobe_table_returned_items_total{} 1", of("Query")),
            format!("zenobe_table_system_errors_total{} 0", of("Query")),
            format!("zenobe_table_throttled_requests_total{} 0", of("Query")),
            format!("zenobe_table_conditional_check_failed_requests_total{} 1", labels("")),
            format!("zenobe_table_expired_items_total{} 0", labels("")),
            "zenobe_account_user_errors_total{account=\"000000000000\",region=\"us-east-1\"} 1"
                .into(),
            "zenobe_account_tables{account=\"000000000000\",region=\"us-east-1\"} 1".into(),
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
    };
    check(2);
    next_minute();
    check(2);
    put(&mut client, "carol", "1");
    check(3);
}

#[test]
fn errors_that_a_test_wants_are_system_errors_of_their_table() {
    let fault = "kind=error table=Orders operation=PutItem times=1";
    let server = ServerProcess::in_memory(&["--test-control", "--fault", fault]);
    let mut client = server.client();
    create_table(&mut client);
    let item = json!({"owner": {"S": "a"}, "id": {"S": "1"}});
    let failed = client.call("PutItem", &json!({"TableName": TABLE, "Item": item})).unwrap();
    assert_eq!(failed.status, 500);
    put(&mut client, "a", "1");
    let text = client.send("GET", "/metrics", &[], b"").unwrap().text();
    let labels =
        "{table=\"Orders\",operation=\"PutItem\",account=\"000000000000\",region=\"us-east-1\"}";
    for (name, count) in [
        ("zenobe_table_fault_injection_service_induced_errors_total", 1),
        ("zenobe_table_system_errors_total", 1),
        ("zenobe_table_requests_total", 2),
    ] {
        let expected = format!("{name}{labels} {count}");
        assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
    }
}

/// CloudWatch lists the alarms that PutScalingPolicy has named, on metrics that exist.
#[test]
fn cloudwatch_lists_the_alarms_of_scaling_policies() {
    let server = ServerProcess::in_memory(&[]);
    let mut client = server.client();
    client.expect(
        "CreateTable",
        &json!({
            "TableName": TABLE,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 5},
        }),
    );
    let mut call = |service: &str, operation: &str, body: &Value| {
        let reply = client.call_target(&format!("{service}.{operation}"), body).unwrap();
        assert_eq!(reply.status, 200, "{operation}: {}", reply.body);
        reply.body
    };
    let target = json!({
        "ServiceNamespace": "dynamodb",
        "ResourceId": format!("table/{TABLE}"),
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    });
    let with = |more: Value| {
        let mut body = target.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let scaling = "AnyScaleFrontendService";
    let limits = with(json!({"MinCapacity": 1, "MaxCapacity": 9}));
    call(scaling, "RegisterScalableTarget", &limits);
    let metric = json!({"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"});
    let policy = with(json!({
        "PolicyName": "p",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration":
            {"TargetValue": 70, "PredefinedMetricSpecification": metric},
    }));
    let put = call(scaling, "PutScalingPolicy", &policy);
    let listed = call("GraniteServiceVersion20100801", "DescribeAlarms", &json!({}));
    let pairs = |alarms: &Value, arn: &str| {
        let alarms = alarms.as_array().unwrap().iter();
        alarms.map(|it| (it["AlarmName"].clone(), it[arn].clone())).collect::<Vec<_>>()
    };
    assert_eq!(pairs(&listed["MetricAlarms"], "AlarmArn"), pairs(&put["Alarms"], "AlarmARN"));
    let members = ["MetricName", "Statistic", "Period", "Threshold", "ComparisonOperator"];
    let shown = listed["MetricAlarms"].as_array().unwrap().iter();
    let shown: Vec<Value> =
        shown.map(|it| members.iter().map(|name| it[name].clone()).collect()).collect();
    let consumed = "ConsumedWriteCapacityUnits";
    let provisioned = "ProvisionedWriteCapacityUnits";
    assert_eq!(
        shown,
        [
            json!([consumed, "Sum", 60, 210.0, "GreaterThanThreshold"]),
            json!([consumed, "Sum", 60, 150.0, "LessThanThreshold"]),
            json!([provisioned, "Average", 300, 5.0, "GreaterThanThreshold"]),
            json!([provisioned, "Average", 300, 5.0, "LessThanThreshold"]),
        ]
    );
    let policy_arn = &put["PolicyARN"];
    assert_eq!(listed["MetricAlarms"][0]["AlarmActions"], json!([policy_arn]));
}
