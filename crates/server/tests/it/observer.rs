//! Whoever observes requests sees each one that was answered, under the id that its client got.

use std::sync::{Arc, Mutex};

use zenobe::observer::{ObservedRequest, RequestObserver};
use zenobe_api::Operation;

use crate::support::{ECHO, TestOptions, TestServer};

#[derive(Default)]
struct Seen(Mutex<Vec<(String, Operation, Option<&'static str>)>>);

impl RequestObserver for Seen {
    fn observe(&self, request: ObservedRequest<'_>) {
        let ObservedRequest { request_id, operation, error, facts, .. } = request;
        assert!(facts.parts.is_empty(), "the test's handler reads and writes nothing");
        self.0.lock().unwrap().push((request_id.to_owned(), operation, error));
    }
}

#[test]
fn an_observer_sees_what_was_answered() {
    let seen = Arc::new(Seen::default());
    let observer: Arc<dyn RequestObserver> = seen.clone();
    let options = TestOptions { observer: Some(observer), ..TestOptions::default() };
    let server = TestServer::start_with(options);
    let reply = server.call(ECHO, b"{}");
    // A request that names no operation never reaches the database.
    server.call("DynamoDB_20120810.Nothing", b"{}");
    let id = reply.header("x-amzn-requestid").expect("a request id").to_owned();
    assert_eq!(*seen.0.lock().unwrap(), [(id, Operation::PutItem, None)]);
}
