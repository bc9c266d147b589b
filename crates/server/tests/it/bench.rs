//! `zenobe bench` as a process: its output, its files, its exit status.

use std::fs;
use std::net::TcpListener;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use zenobe_testing::{ScriptedReply, ServerProcess, TemporaryDirectory, start_scripted_server};

use crate::commands::{check_refusal, check_usage_error, zenobe};

const SMALL: [&str; 6] = ["--items", "50", "--operations", "40", "--connections", "2"];

fn bench(endpoint: &str, arguments: &[&str]) -> Output {
    let mut command = zenobe(&["bench"]);
    command.args(arguments).args(SMALL).args(["--endpoint", endpoint]);
    command.env_remove("AWS_ACCESS_KEY_ID").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_run_is_summarised_written_as_json_and_drawn() {
    let server =
        ServerProcess::launch(&mut zenobe(&["serve", "--memory", "--listen", "127.0.0.1:0"]));
    let endpoint = server.endpoint();
    let directory = TemporaryDirectory::new("bench");
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();

    let output = bench(&endpoint, &["ycsb-f", "--json", "-", "--plot", &path("plot.svg")]);
    let progress = text(&output.stderr);
    assert!(output.status.success(), "{progress}");
    assert!(progress.contains("creating table zenobe-bench\n"), "{progress}");
    assert!(progress.contains("loading 50 of 50 items"), "{progress}");
    assert!(progress.contains("ReadModifyWrite"), "{progress}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["requests"], 40);
    assert_eq!(report["zenobe"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(fs::read_to_string(path("plot.svg")).unwrap().starts_with("<svg"));

    let files = ["--json", &path("report.json"), "--plot", &path("plot.html"), "--drop"];
    let output = bench(&endpoint, &[&["put"][..], &files[..]].concat());
    let progress = text(&output.stderr);
    assert!(progress.contains("table zenobe-bench is loaded already\n"), "{progress}");
    let summary = text(&output.stdout);
    assert!(summary.starts_with(&format!("put on {endpoint}, table zenobe-bench\n")), "{summary}");
    let report = fs::read_to_string(path("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["operations"][0]["operation"], "PutItem");
    assert!(fs::read_to_string(path("plot.html")).unwrap().contains("</svg>"));

    let output = bench(&endpoint, &["get", "--rate", "5000"]);
    // The table was dropped, so it is created again.
    assert!(text(&output.stderr).contains("creating table"));
    assert!(text(&output.stdout).contains("open loop at 5000 requests/s"));
}

#[test]
fn unwritable_results_fail_before_the_run_or_drop_the_table() {
    let server =
        ServerProcess::launch(&mut zenobe(&["serve", "--memory", "--listen", "127.0.0.1:0"]));
    let endpoint = server.endpoint();
    for option in ["--json", "--plot"] {
        let output = bench(&endpoint, &["put", "--drop", option, "/nonexistent/report.svg"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("cannot write /nonexistent/report.svg"), "{told}");
        assert!(!told.contains("creating table"), "{told}");
    }
    // It can be opened, but not written to.
    for _ in 0..2 {
        let output = bench(&endpoint, &["put", "--drop", "--json", "/dev/full"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("creating table"), "the table was kept: {told}");
        assert!(told.contains("cannot write /dev/full"), "{told}");
    }
}

#[test]
fn failed_operations_fail_the_command_unless_that_is_accepted() {
    let output = bench(&start_unreadable_table(), &["get"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("zenobe: 40 of 40 operations failed; --allow-errors accepts that"),
        "{told}"
    );
    let summary = text(&output.stdout);
    assert!(summary.contains("40 × ValidationException: no"), "{summary}");
    let accepted = bench(&start_unreadable_table(), &["get", "--allow-errors"]);
    assert!(accepted.status.success());
}

/// The endpoint of a new table that accepts writes but rejects reads.
fn start_unreadable_table() -> String {
    let is_created = AtomicBool::new(false);
    let address = start_scripted_server(move |request| {
        let (status, body) = match request.operation() {
            Some("DescribeTable") if is_created.swap(true, Ordering::SeqCst) => {
                (200, r#"{"Table":{"TableStatus":"ACTIVE"}}"#)
            }
            Some("DescribeTable") => (400, r#"{"__type":"x#ResourceNotFoundException"}"#),
            Some("GetItem") => (400, r#"{"__type":"x#ValidationException","message":"no"}"#),
            _ => (200, "{}"),
        };
        ScriptedReply::response(status, body)
    });
    format!("http://{address}")
}

#[test]
fn bad_arguments_are_explained() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{closed}");
    for (arguments, expected) in [
        (["--endpoint", &endpoint], "is the server running?"),
        (["--endpoint", "localhost:8000"], "it must begin with http:// or https://"),
        (["--item-bytes", "10"], "items of this workload have between"),
        (["--items", "0"], "at least 1 items"),
        (["--rate", "0"], "the rate must be a positive number"),
    ] {
        let mut command = zenobe(&["bench"]);
        check_refusal(command.args(arguments), 1, expected);
    }
    for (arguments, expected) in [
        (&["gut"][..], "[possible values: get, put, update"),
        (&["--plot", "plot.png"], "must end in .svg or .html"),
        (&["--keys", "zipf"], "it can be uniform, zipfian"),
        (&["--duration", "long"], "a time is a number of seconds"),
    ] {
        check_usage_error(zenobe(&["bench"]).args(arguments), expected);
    }
}
