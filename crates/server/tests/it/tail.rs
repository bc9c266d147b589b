//! `zenobe stream tail`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::{Value, json};
use zenobe_testing::Client;

use crate::commands::{Process, zenobe};
use crate::triggers::{create_table, put, serve};

struct Tail {
    child: Child,
    lines: Receiver<String>,
}

impl Tail {
    fn start(process: &Process, more: &[&str]) -> Tail {
        let server = format!("http://{}", process.address);
        let arguments = ["stream", "tail", "events", "--endpoint", &server];
        let mut command = zenobe(&[&arguments[..], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        follow(child.stdout.take().unwrap(), sender.clone());
        follow(child.stderr.take().unwrap(), sender);
        Tail { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).expect("the tail prints something")
    }
}

fn follow(stream: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // The test may have ended.
            let _ = lines.send(line);
        }
    });
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_are_printed_for_people_and_as_json() {
    let process = serve(&["--memory", "--stream-shards", "1"]);
    let mut client = Client::new(process.address);
    let mut waiting = Tail::start(&process, &[]);
    assert_eq!(waiting.line(), "zenobe: waiting for a stream of table events");
    create_table(&mut client, "events");
    put(&mut client, "events", "a", 1);
    put(&mut client, "events", "a", 2);
    client.expect("DeleteItem", &json!({"TableName": "events", "Key": {"pk": {"S": "a"}}}));

    let mut from_the_start = Tail::start(&process, &["--from", "TRIM_HORIZON"]);
    for expected in [" INSERT pk=\"a\" n: 1", " MODIFY pk=\"a\" n: 1 -> 2", " REMOVE pk=\"a\" n: 2"]
    {
        for tail in [&mut from_the_start, &mut waiting] {
            let line = tail.line();
            assert!(line.ends_with(expected), "{line} lacks {expected}");
        }
    }
    put(&mut client, "events", "b", 3);
    assert!(from_the_start.line().ends_with(" INSERT pk=\"b\" n: 3"));

    let mut json = Tail::start(&process, &["--json", "--from", "trim_horizon"]);
    let record: Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!(record["eventName"], "INSERT");
    assert_eq!(record["dynamodb"]["NewImage"]["n"]["N"], "1");
}
