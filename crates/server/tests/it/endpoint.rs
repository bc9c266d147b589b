//! An HTTP endpoint inside the test, which treats each delivery as the test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use zenobe_testing::{ScriptedReply, http_response, start_scripted_server, wait_until};

/// What the endpoint does with a delivery.
pub enum Answer {
    Ok,
    Status(u16),
    /// Answers 200 with this text.
    Says(String),
    /// Accepts everything before the record with this index.
    FailsAt(usize),
    /// Stays silent for a while, then closes without a response.
    Hang(Duration),
}

pub struct TestEndpoint {
    address: SocketAddr,
    accepted: Arc<Mutex<Vec<Value>>>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl TestEndpoint {
    pub fn start(
        answer: impl Fn(usize, &[Value]) -> Answer + Send + Sync + 'static,
    ) -> TestEndpoint {
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let address = {
            let (accepted, bodies) = (Arc::clone(&accepted), Arc::clone(&bodies));
            start_scripted_server(move |request| {
                let body = serde_json::from_slice(&request.body).expect("a delivery is JSON");
                deliver(body, &answer, &accepted, &bodies)
            })
        };
        TestEndpoint { address, accepted, bodies }
    }

    pub fn url(&self) -> String {
        format!("http://{}/deliver", self.address)
    }

    /// The accepted records, in order.
    pub fn accepted(&self) -> Vec<Value> {
        self.accepted.lock().unwrap().clone()
    }

    /// Everything that was sent.
    pub fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// The accepted records of one item, as the numbers in attribute `n`.
    pub fn numbers_of(&self, pk: &str) -> Vec<u64> {
        let accepted = self.accepted();
        let own = accepted.iter().filter(|record| record["dynamodb"]["Keys"]["pk"]["S"] == pk);
        let number =
            |record: &Value| record["dynamodb"]["NewImage"]["n"]["N"].as_str()?.parse().ok();
        own.filter_map(number).collect()
    }

    pub fn wait_for(&self, count: usize) {
        wait_until(|| self.accepted.lock().unwrap().len() >= count);
    }
}

fn deliver(
    body: Value,
    answer: &dyn Fn(usize, &[Value]) -> Answer,
    accepted: &Mutex<Vec<Value>>,
    bodies: &Mutex<Vec<Value>>,
) -> ScriptedReply {
    let records = body["Records"].as_array().cloned().unwrap_or_default();
    let call = {
        let mut bodies = bodies.lock().unwrap();
        bodies.push(body);
        bodies.len() - 1
    };
    let (status, taken, text) = match answer(call, &records) {
        Answer::Ok => (200, records.len(), String::new()),
        Answer::Status(status) => (status, 0, String::new()),
        Answer::Says(text) => (200, 0, text),
        Answer::FailsAt(index) => {
            let sequence = &records[index]["dynamodb"]["SequenceNumber"];
            let text = format!("{{\"batchItemFailures\":[{{\"itemIdentifier\":{sequence}}}]}}");
            (200, index, text)
        }
        Answer::Hang(time) => {
            std::thread::sleep(time);
            return ScriptedReply::Close;
        }
    };
    accepted.lock().unwrap().extend_from_slice(&records[..taken]);
    ScriptedReply::SendAndClose(http_response(status, &text))
}
