//! `zenobe stream tail`.

use serde_json::{Value, json};
use zenobe_testing::{PATIENCE, Process, ServerProcess};

use crate::commands::zenobe;
use crate::triggers::{create_table, put, serve};

struct Tail {
    process: Process,
    lines_read: usize,
}

impl Tail {
    fn start(server: &ServerProcess, more: &[&str]) -> Tail {
        let endpoint = server.endpoint();
        let arguments = ["stream", "tail", "events", "--endpoint", &endpoint];
        let mut command = zenobe(&[&arguments[..], more].concat());
        Tail { process: Process::start(&mut command).unwrap(), lines_read: 0 }
    }

    /// The next line.
    fn line(&mut self) -> String {
        let mut skipped = 0..self.lines_read;
        self.lines_read += 1;
        let next = |_, line: &str| skipped.next().is_none().then(|| line.to_owned());
        self.process.output().find(PATIENCE, next).expect("the tail prints something")
    }
}

#[test]
fn changes_are_printed_for_people_and_as_json() {
    let process = serve(&["--memory", "--stream-shards", "1"]);
    let mut client = process.client();
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
