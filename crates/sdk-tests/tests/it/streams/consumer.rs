//! A consumer that keeps checkpoints, as hand-written consumers do, and maintains a copy of the
//! table from the records alone. It checks every record against the copy: a lost, repeated or
//! reordered record does not fit.

use std::collections::{BTreeMap, HashSet};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Client, ClientError};

/// The items of a table by key.
pub type Copy = BTreeMap<String, Value>;

#[derive(Default)]
pub struct Consumer {
    stream: String,
    /// Sorted by name, so that parents come before their children.
    shards: BTreeMap<String, Shard>,
    pub copy: Copy,
    event_ids: HashSet<String>,
    pub records: u64,
    pub expired: u64,
}

#[derive(Default)]
struct Shard {
    parent: Option<String>,
    /// The sequence number of the last record processed, which is what a consumer stores.
    checkpoint: Option<String>,
    at_end: bool,
}

impl Consumer {
    pub fn new(stream: &str) -> Consumer {
        Consumer { stream: stream.to_owned(), ..Consumer::default() }
    }

    /// Starts from the checkpoints and processes records until the server is gone or the stream
    /// ends.
    pub fn follow(&mut self, client: &mut Client, random: &mut StdRng) -> Result<(), ClientError> {
        let mut iterators = BTreeMap::new();
        loop {
            self.discover(client)?;
            let mut open = Vec::new();
            for (id, shard) in &self.shards {
                let parent = shard.parent.as_ref().and_then(|parent| self.shards.get(parent));
                if !shard.at_end && parent.is_none_or(|parent| parent.at_end) {
                    open.push(id.clone());
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            for id in open {
                let iterator = match iterators.remove(&id) {
                    Some(iterator) => iterator,
                    None => self.iterator(client, &id)?,
                };
                let limit = random.random_range(1..100);
                match self.take_page(client, &id, &iterator, limit)? {
                    Some(next) => _ = iterators.insert(id, next),
                    None => self.shard(&id).at_end = true,
                }
            }
        }
    }

    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    fn discover(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let mut request = json!({"StreamArn": self.stream});
        if let Some((last, _)) = self.shards.last_key_value() {
            request["ExclusiveStartShardId"] = json!(last);
        }
        loop {
            let page = expect(client, "DescribeStream", &request)?;
            let description = &page["StreamDescription"];
            for shard in description["Shards"].as_array().expect("a stream has shards") {
                let parent = shard["ParentShardId"].as_str().map(str::to_owned);
                let id = shard["ShardId"].as_str().expect("a shard has a name").to_owned();
                let known = Shard { parent, ..Shard::default() };
                assert!(self.shards.insert(id, known).is_none(), "a shard is listed twice");
            }
            match &description["LastEvaluatedShardId"] {
                Value::Null => return Ok(()),
                last => request["ExclusiveStartShardId"] = last.clone(),
            }
        }
    }

    fn iterator(&mut self, client: &mut Client, id: &str) -> Result<String, ClientError> {
        let mut request = json!({"StreamArn": self.stream, "ShardId": id});
        match &self.shard(id).checkpoint {
            None => request["ShardIteratorType"] = json!("TRIM_HORIZON"),
            Some(number) => {
                request["ShardIteratorType"] = json!("AFTER_SEQUENCE_NUMBER");
                request["SequenceNumber"] = json!(number);
            }
        }
        let answer = expect(client, "GetShardIterator", &request)?;
        Ok(answer["ShardIterator"].as_str().expect("an iterator is text").to_owned())
    }

    /// Reads a page and returns the iterator of the next one, unless the shard is at its end.
    fn take_page(
        &mut self,
        client: &mut Client,
        id: &str,
        iterator: &str,
        limit: usize,
    ) -> Result<Option<String>, ClientError> {
        let request = json!({"ShardIterator": iterator, "Limit": limit});
        let page = expect(client, "GetRecords", &request)?;
        for record in page["Records"].as_array().expect("a page has records") {
            self.check_number(id, record);
            self.apply(record);
        }
        Ok(page["NextShardIterator"].as_str().map(str::to_owned))
    }

    /// Sequence numbers rise within a shard and from a parent to its child.
    fn check_number(&mut self, id: &str, record: &Value) {
        let number = record["dynamodb"]["SequenceNumber"].as_str().expect("a number is text");
        let mut ancestor = self.shards.get(id);
        while let Some(shard) = ancestor {
            if let Some(earlier) = &shard.checkpoint {
                let numbers = [earlier, number].map(|text| text.parse::<u128>().expect("digits"));
                assert!(numbers[0] < numbers[1], "{number} follows {earlier} in {id}");
                break;
            }
            ancestor = shard.parent.as_ref().and_then(|parent| self.shards.get(parent));
        }
        self.shard(id).checkpoint = Some(number.to_owned());
        let event = record["eventID"].as_str().expect("an event has an id").to_owned();
        assert!(self.event_ids.insert(event), "{record} came twice");
    }

    fn apply(&mut self, record: &Value) {
        let body = &record["dynamodb"];
        let (key, old, new) = (key_of(&body["Keys"]), &body["OldImage"], &body["NewImage"]);
        let known = self.copy.get(&key).unwrap_or(&Value::Null);
        assert_eq!(known, old, "{record} does not continue what was there");
        let event = match (old.is_null(), new.is_null()) {
            (true, false) => "INSERT",
            (false, false) => "MODIFY",
            (false, true) => "REMOVE",
            (true, true) => panic!("{record} changes nothing"),
        };
        assert_eq!(record["eventName"], event, "{record}");
        assert_ne!(old, new, "{record} changes nothing");
        match new.is_null() {
            true => self.copy.remove(&key),
            false => self.copy.insert(key, new.clone()),
        };
        self.records += 1;
        self.expired += u64::from(!record["userIdentity"].is_null());
    }

    fn shard(&mut self, id: &str) -> &mut Shard {
        self.shards.get_mut(id).expect("the shard was discovered")
    }
}

/// The copy according to a scan.
pub fn copy_of(items: Vec<Value>) -> Copy {
    items.into_iter().map(|item| (key_of(&item), item)).collect()
}

fn key_of(item: &Value) -> String {
    format!("{} {}", item["pk"], item["sk"])
}

fn expect(client: &mut Client, operation: &str, request: &Value) -> Result<Value, ClientError> {
    let reply = client.call_streams(operation, request)?;
    assert_eq!(reply.status, 200, "{operation} {request} answers {}", reply.body);
    Ok(reply.body)
}
