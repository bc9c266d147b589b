//! An HTTP endpoint inside the test, which treats each delivery as the test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use zenobe_testing::wait_until;

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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, bodies) = (Arc::default(), Arc::default());
        let endpoint = TestEndpoint { address, accepted, bodies };
        let (accepted, bodies) = (endpoint.accepted.clone(), endpoint.bodies.clone());
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (accepted, bodies) = (accepted.clone(), bodies.clone());
                let answer = answer.clone();
                std::thread::spawn(move || serve(stream, &*answer, &accepted, &bodies));
            }
        });
        endpoint
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

fn serve(
    mut stream: TcpStream,
    answer: &dyn Fn(usize, &[Value]) -> Answer,
    accepted: &Mutex<Vec<Value>>,
    bodies: &Mutex<Vec<Value>>,
) {
    let Some(body) = read_body(&mut stream) else { return };
    let call = {
        let mut bodies = bodies.lock().unwrap();
        bodies.push(body.clone());
        bodies.len() - 1
    };
    let records = body["Records"].as_array().cloned().unwrap_or_default();
    let (status, taken, text) = match answer(call, &records) {
        Answer::Ok => (200, records.len(), String::new()),
        Answer::Status(status) => (status, 0, String::new()),
        Answer::Says(text) => (200, 0, text),
        Answer::FailsAt(index) => {
            let sequence = &records[index]["dynamodb"]["SequenceNumber"];
            let text = format!("{{\"batchItemFailures\":[{{\"itemIdentifier\":{sequence}}}]}}");
            (200, index, text)
        }
        Answer::Hang(time) => return std::thread::sleep(time),
    };
    accepted.lock().unwrap().extend_from_slice(&records[..taken]);
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", text.len());
    // The server may have given up waiting.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
}

fn read_body(stream: &mut TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?;
            }
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
