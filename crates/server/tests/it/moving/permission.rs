//! Who may move a server that is running, and where to.

use std::process::Command;

use serde_json::json;
use zenobe_load::{Credential, Target, exchange};
use zenobe_testing::{ServerProcess, TemporaryDirectory};

use super::{create_plain_table, refuse, run, serve_command, succeed, text};
use crate::commands::zenobe;

/// A server with two access keys.
fn serve(directory: &str, options: &[&str]) -> ServerProcess {
    let mut command = serve_command(directory);
    ServerProcess::launch(command.args(options).env("ZENOBE_CREDENTIALS", "ALICE:a,BOB:b"))
}

fn signed(mut command: Command, key: &str) -> Command {
    command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", key[..1].to_lowercase());
    command.env_remove("AWS_SESSION_TOKEN").env("AWS_REGION", "us-east-1");
    command
}

fn move_to(server: &ServerProcess, key: &str, to: &str) -> Command {
    signed(zenobe(&["move", "--endpoint", &server.endpoint(), "--to", to]), key)
}

/// Whoever holds any key could otherwise take everything away.
#[test]
fn a_server_with_access_keys_moves_only_where_it_was_told() {
    let directory = TemporaryDirectory::new("move-permission");
    let [here, there, elsewhere] =
        ["here", "there", "elsewhere"].map(|name| directory.path().join(name));
    let (here, there, elsewhere) = (text(&here), text(&there), text(&elsewhere));
    for options in [&[][..], &["--namespaces-from-credentials"]] {
        let server = serve(here, options);
        refuse(&mut move_to(&server, "BOB", there), &["--allow-move-to", "--from"]);
        server.stop();
    }
    // Without keys, but with tables that belong to somebody else.
    let mut command = serve_command(here);
    let server = ServerProcess::launch(command.arg("--namespaces-from-credentials"));
    refuse(&mut move_to(&server, "BOB", there), &["--allow-move-to"]);
    server.stop();
    assert!(!directory.path().join("there").exists());

    let server = serve(here, &["--allow-move-to", there]);
    refuse(&mut move_to(&server, "BOB", elsewhere), &["only to the store", "--allow-move-to"]);
    let place = "postgres://zenobe@127.0.0.1:1/zenobe";
    refuse(&mut move_to(&server, "BOB", place), &["only to the store"]);
    assert!(!directory.path().join("elsewhere").exists());
    succeed(&mut move_to(&server, "ALICE", there));
    server.stop();
    refuse(&mut serve_command(here), &["was moved to", there]);
}

/// Tenants learn nothing about each other, and decide nothing for each other.
#[test]
fn tenants_see_their_own() {
    let directory = TemporaryDirectory::new("tenants");
    let here = directory.path().join("here");
    let server = serve(text(&here), &["--namespaces-from-credentials"]);
    let credential =
        Credential { access_key: "ALICE".into(), secret_key: "a".into(), session_token: None };
    let target = Target::new(&server.endpoint(), "us-east-1", Some(credential)).unwrap();
    let call = |operation: &str, body: serde_json::Value| {
        let answer = exchange(&target, operation, body.to_string().as_bytes()).unwrap();
        assert!(answer.is_success(), "{operation}: {}", answer.error_message());
    };
    call(
        "CreateTable",
        json!({
            "TableName": "diary", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        }),
    );
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    call(
        "UpdateContinuousBackups",
        json!({"TableName": "diary", "PointInTimeRecoverySpecification": recovery}),
    );
    let status =
        |key| succeed(&mut signed(zenobe(&["status", "--endpoint", &server.endpoint()]), key));
    assert!(status("ALICE").contains("diary"));
    assert!(!status("BOB").contains("diary"));
    let endpoint = server.endpoint();
    let history = ["history", "diary", r#"{"pk": {"S": "a"}}"#, "--endpoint", &endpoint];
    succeed(&mut signed(zenobe(&history), "ALICE"));
    assert!(!run(&mut signed(zenobe(&history), "BOB")).status.success());
    let confirm = zenobe(&["clock", "confirm", "--endpoint", &server.endpoint()]);
    refuse(&mut signed(confirm, "BOB"), &["concerns everybody", "--clock-jump-seconds"]);
    server.stop();
}

/// On a laptop the command works without further options.
#[test]
fn a_server_for_one_user_moves_anywhere() {
    let directory = TemporaryDirectory::new("move-own");
    let [here, there] = ["here", "there"].map(|name| directory.path().join(name));
    let server = ServerProcess::launch(&mut serve_command(text(&here)));
    create_plain_table(&mut server.client(), "counters");
    succeed(&mut zenobe(&["move", "--endpoint", &server.endpoint(), "--to", text(&there)]));
    server.stop();
}

/// A backup holds everything, and the server writes it with its own rights.
#[test]
fn a_server_with_access_keys_is_backed_up_only_where_it_was_told() {
    let directory = TemporaryDirectory::new("backup-permission");
    let [here, there, elsewhere] =
        ["here", "there", "elsewhere"].map(|name| directory.path().join(name));
    let (here, there, elsewhere) = (text(&here), text(&there), text(&elsewhere));
    let back_up = |server: &ServerProcess, to: &str| {
        signed(zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", to]), "BOB")
    };
    let server = serve(here, &[]);
    refuse(&mut back_up(&server, there), &["--allow-backup-to"]);
    server.stop();
    let server = serve(here, &["--allow-backup-to", there]);
    refuse(&mut back_up(&server, elsewhere), &["only to the place", "--allow-backup-to"]);
    succeed(&mut back_up(&server, there));
    server.stop();
    assert!(!directory.path().join("elsewhere").exists());
}
