//! Bytes that rot on disk cause an error, never an item that seems not to exist.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Seed, ServerOptions, ServerProcess, StartError, TemporaryDirectory};

use crate::tables::create_simple;

const TABLE: &str = "rotten";
const ITEMS: usize = 1500;

#[test]
fn one_flipped_byte_is_an_error_and_not_a_missing_item() {
    let seed = Seed::announce("one flipped byte");
    check(seed, |bytes, random| {
        // A table file starts with its data blocks, and this test has few rows besides its items,
        // so the second quarter holds nothing but items.
        let position = random.random_range(bytes.len() / 4..bytes.len() / 2);
        bytes[position] ^= 0x55;
    });
}

#[test]
fn a_rotten_file_is_an_error_and_not_an_empty_table() {
    let seed = Seed::announce("a rotten file");
    check(seed, |bytes, random| {
        let offset = random.random_range(0..512);
        for position in (offset..bytes.len()).step_by(512) {
            bytes[position] ^= 0x55;
        }
    });
}

/// Stores items and damages the largest table file. The server must refuse to start, or answer each
/// read with the right item or an error, and at least one with an error.
fn check(seed: Seed, damage: impl FnOnce(&mut [u8], &mut StdRng)) {
    let directory = TemporaryDirectory::new("rotten");
    let items = store_items(directory.path(), &mut seed.generator(0));
    let file = largest_table_file(directory.path()).expect("the directory can be read");
    let mut bytes = fs::read(&file).expect("the file can be read");
    damage(&mut bytes, &mut seed.generator(1));
    fs::write(&file, bytes).expect("the file can be written");

    let server = match ServerProcess::try_start(directory.path(), &ServerOptions::default()) {
        Ok(server) => server,
        Err(refusal) => return check_refusal(&refusal, &file),
    };
    let client = &mut server.client();
    let mut errors = 0;
    for item in &items {
        let request =
            json!({"TableName": TABLE, "Key": {"pk": item["pk"]}, "ConsistentRead": true});
        let reply = client.call("GetItem", &request).expect("the server answers");
        match reply.status {
            200 => assert_eq!(&reply.body["Item"], item, "{} is served wrongly", item["pk"]),
            _ => {
                assert_eq!((reply.status, reply.error()), (500, Some("InternalServerError")));
                errors += 1;
            }
        }
    }
    assert!(errors > 0, "the damage was not noticed");
    let reply = client.call("Scan", &json!({"TableName": TABLE})).expect("the server answers");
    let complete = reply.body["Count"] == items.len();
    assert!(
        reply.status == 500 || complete,
        "a scan skips what it cannot read: {}",
        reply.body["Count"]
    );
}

/// A server may refuse to start, but only because of this damage, and its message must say so.
fn check_refusal(refusal: &StartError, file: &Path) {
    let StartError::Exited { status, output } = refusal else {
        panic!("the server must refuse, not fail otherwise: {refusal}");
    };
    assert_eq!(status.code(), Some(1), "{output}");
    let name = file.file_name().expect("a file has a name").to_string_lossy();
    assert!(output.contains("stored data is corrupt") && output.contains(&*name), "{output}");
}

/// Writes the items and restarts once: the store moves its log into table files when it opens.
fn store_items(data: &Path, random: &mut StdRng) -> Vec<Value> {
    let server = ServerProcess::start(data);
    let client = &mut server.client();
    create_simple(client, TABLE);
    let items: Vec<_> = (0..ITEMS).map(|number| item(number, random)).collect();
    for batch in items.chunks(25) {
        let puts: Vec<_> = batch.iter().map(|item| json!({"PutRequest": {"Item": item}})).collect();
        let answer = client.expect("BatchWriteItem", &json!({"RequestItems": {TABLE: puts}}));
        assert_eq!(answer["UnprocessedItems"], json!({}));
    }
    server.stop();
    ServerProcess::start(data).stop();
    items
}

fn item(number: usize, random: &mut StdRng) -> Value {
    let filler: String = (0..500).map(|_| char::from(random.random_range(b'!'..=b'~'))).collect();
    json!({"pk": {"S": format!("item{number:05}")}, "filler": {"S": filler}})
}

fn largest_table_file(data: &Path) -> io::Result<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![data.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sst") {
                files.push((fs::metadata(&path)?.len(), path));
            }
        }
    }
    let largest = files.into_iter().max();
    largest.map(|(_, path)| path).ok_or_else(|| io::Error::other("no table file was written"))
}
