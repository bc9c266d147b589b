//! How fast items expire: load a table with expired items, enable its time to live, and watch its
//! item count until nothing is left.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::outcome::{Finding, Outcome, count};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, progress};

use super::Context;
use super::write_batches::{BATCH_ITEMS, write_batches};

const TABLE: &str = "expiring";
const FILL_BYTES: usize = 350;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(300);

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    // Whole batches only.
    let items = context.effort.items.div_ceil(BATCH_ITEMS) * BATCH_ITEMS;
    let mut findings = Vec::new();
    for (streamed, what) in
        [(false, "items expire, `sync`"), (true, "items expire into a stream, `sync`")]
    {
        let data = context.scratch.path(&format!("expiry-{streamed}"));
        let server = Server::start(context.binary, &data, Keeping::Sync)?;
        progress::show("expiry: loading");
        create_table(server.address, streamed)?;
        load(server.address, items)?;
        progress::show("expiry: watching items go");
        let expiry = watch(server.address, items)?;
        let measured = format!(
            "{} items/s, {} items/s with the time to index them first",
            count(expiry.items_per_second),
            count(expiry.items_per_second_with_indexing)
        );
        let what = format!("{} {what}", count(items as f64));
        findings.push(Finding::told("expiry", what, measured));
    }
    Ok(Outcome { findings, ..Outcome::default() })
}

fn create_table(address: SocketAddr, streamed: bool) -> Result<()> {
    let mut request = json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    if streamed {
        request["StreamSpecification"] =
            json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"});
    }
    answers::call(address, "CreateTable", &request).map(drop)
}

fn load(address: SocketAddr, items: u64) -> Result<()> {
    let an_hour_ago = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() - 3_600;
    let fill = "x".repeat(FILL_BYTES);
    let put = |number: u64| {
        json!({"PutRequest": {"Item": {
            "pk": {"S": format!("user#{number:012}")},
            "expires": {"N": an_hour_ago.to_string()},
            "fill": {"S": fill},
        }}})
    };
    write_batches(address, TABLE, 0..items, put)
}

struct Expiry {
    /// From the first deletion to the last.
    items_per_second: f64,
    /// From enabling it to the last deletion: the server first indexes the items by expiry.
    items_per_second_with_indexing: f64,
}

fn watch(address: SocketAddr, items: u64) -> Result<Expiry> {
    if answers::item_count(address, TABLE)? != items {
        return Err("not all items were loaded".into());
    }
    let setting = json!({
        "TableName": TABLE,
        "TimeToLiveSpecification": {"Enabled": true, "AttributeName": "expires"},
    });
    let enabled = Instant::now();
    answers::call(address, "UpdateTimeToLive", &setting)?;
    let mut still_full = enabled;
    loop {
        let asked = Instant::now();
        if asked - enabled > WAIT_MAX {
            return Err("items don't expire".into());
        }
        match answers::item_count(address, TABLE)? {
            0 => break,
            count if count == items => still_full = asked,
            _ => {}
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let rate = |since: Instant| items as f64 / since.elapsed().as_secs_f64();
    Ok(Expiry { items_per_second: rate(still_full), items_per_second_with_indexing: rate(enabled) })
}
