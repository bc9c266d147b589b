//! The dashboard and the alert rules that we ship ask for metrics that the server has.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use zenobe_testing::{PATIENCE, ServerOptions, ServerProcess, TemporaryDirectory, wait_for};

use crate::triggers::admin;

/// A server with everything that has metrics of its own.
fn server(directory: &TemporaryDirectory) -> ServerProcess {
    let [data, bucket] = ["data", "bucket"].map(|name| directory.path().join(name));
    let arguments = vec!["--ship-to".into(), bucket.into_os_string()];
    let options = ServerOptions { arguments, ..ServerOptions::default() };
    let server = ServerProcess::start_with(&data, &options);
    let mut client = server.client();
    client.expect(
        "CreateTable",
        &json!({
            "TableName": "Orders",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }),
    );
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    client.expect(
        "UpdateContinuousBackups",
        &json!({"TableName": "Orders", "PointInTimeRecoverySpecification": recovery}),
    );
    client.expect("CreateBackup", &json!({"TableName": "Orders", "BackupName": "first"}));
    client.expect("PutItem", &json!({"TableName": "Orders", "Item": {"id": {"S": "1"}}}));
    let trigger = json!({"name": "t", "table": "none", "url": "http://127.0.0.1:9/"});
    assert_eq!(admin(&server, "POST", "/_zenobe/triggers", &trigger).0, 200);
    server
}

/// The metrics that the server exposes. Histograms and summaries have series of other names.
fn exposed(server: &ServerProcess) -> BTreeSet<String> {
    let text = server.client().send("GET", "/metrics", &[], b"").unwrap().text();
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        match kind {
            "histogram" => {
                names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
            }
            "summary" => names.extend(["sum", "count"].map(|part| format!("{name}_{part}"))),
            _ => _ = names.insert(name.to_owned()),
        }
    }
    names
}

/// The names of our metrics in a file.
fn used(file: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("zenobe_")).map(str::to_owned).collect()
}

#[test]
fn dashboards_and_alerts_use_metrics_that_exist() {
    let directory = TemporaryDirectory::new("dashboards");
    let server = server(&directory);
    for (file, names_min) in [("grafana/zenobe-dashboard.json", 20), ("prometheus/alerts.yml", 14)]
    {
        let used = used(file);
        assert!(used.len() >= names_min, "{file}: {used:?}");
        // A busy server leaves out what its store does not tell within a second.
        let all_exposed =
            wait_for(PATIENCE, || used.is_subset(&exposed(&server)).then_some(())).is_some();
        let exposed = exposed(&server);
        let unknown: Vec<_> = used.difference(&exposed).collect();
        assert!(all_exposed, "{file} asks for {unknown:?}, which is not in {exposed:?}");
    }
}

#[test]
fn the_dashboard_is_one() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/zenobe-dashboard.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        // Without thresholds of its own, a coloured panel is red from 80 on, whatever it shows.
        let thresholds = &panel["fieldConfig"]["defaults"]["thresholds"];
        assert!(panel["type"] != "stat" || thresholds.is_object(), "{panel}");
    }
}
