//! How a server starts, and when it must refuse to.

use zenobe_testing::{ServerOptions, ServerProcess, StartError, TemporaryDirectory};

use crate::tables::create_simple;

#[test]
fn a_directory_has_one_server() {
    let directory = TemporaryDirectory::new("shared");
    let first = ServerProcess::start(directory.path());
    create_simple(&mut first.client(), "mine");
    match ServerProcess::try_start(directory.path(), &ServerOptions::default()) {
        Err(StartError::Exited { status, .. }) => assert_eq!(status.code(), Some(1)),
        Err(other) => panic!("a second server must be refused, not fail otherwise: {other}"),
        Ok(_) => panic!("two servers share one directory"),
    }
    // The first one continues as if nothing had happened.
    create_simple(&mut first.client(), "mine-too");
    first.kill();
    // Its death frees the directory.
    let second = ServerProcess::start(directory.path());
    let names = second.client().expect("ListTables", &serde_json::json!({}));
    assert_eq!(names["TableNames"], serde_json::json!(["mine", "mine-too"]));
}

#[test]
fn a_server_needs_credentials_beyond_loopback() {
    let directory = TemporaryDirectory::new("open");
    let options = ServerOptions { listen: "0.0.0.0:0".into(), ..ServerOptions::default() };
    let refusal = ServerProcess::try_start(directory.path(), &options);
    assert!(matches!(refusal, Err(StartError::Exited { .. })), "anybody could write to it");
}
