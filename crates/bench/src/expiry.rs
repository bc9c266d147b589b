//! How fast items expire: a table is loaded with items whose time has passed, then it is given its time-to-live
//! setting, and its item count is watched until nothing is left.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::client::Connection;
use crate::subjects::server::{Server, create_table};
use crate::{Arguments, Result, workload};

const TABLE: &str = "expiring";
const LOAD_CONNECTIONS: u64 = 16;
const BATCH_ITEMS: u64 = 25;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(300);

pub struct Expiry {
    pub items: u64,
    pub streamed: bool,
    /// From the first item that went to the last.
    pub items_per_second: f64,
    /// From the setting to the last item: the server first indexes the items by their times.
    pub items_per_second_with_indexing: f64,
}

pub fn measure(
    arguments: &Arguments,
    binary: &Path,
    data: &Path,
    streamed: bool,
) -> Result<Expiry> {
    let server = Server::start(binary, data, &arguments.durability)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Whole batches only.
        let items = arguments.expiring_items.div_ceil(BATCH_ITEMS) * BATCH_ITEMS;
        let mut connection = Connection::open(server.address).await?;
        connection.request("CreateTable", create_table(TABLE, streamed).as_bytes()).await?;
        load(&server, items).await?;
        watch(&mut connection, items, streamed).await
    })
}

async fn load(server: &Server, items: u64) -> Result<()> {
    let an_hour_ago = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() - 3_600;
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..LOAD_CONNECTIONS {
        let mut connection = Connection::open(server.address).await?;
        let step = LOAD_CONNECTIONS * BATCH_ITEMS;
        tasks.spawn(async move {
            for first in (worker * BATCH_ITEMS..items).step_by(step as usize) {
                let body = batch(first..first + BATCH_ITEMS, an_hour_ago);
                connection.request("BatchWriteItem", body.as_bytes()).await?;
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

fn batch(numbers: std::ops::Range<u64>, expires_at_s: u64) -> String {
    let fill = "x".repeat(workload::fill_size_bytes());
    let puts = numbers.map(|number| {
        let key = workload::key(number);
        format!(
            r#"{{"PutRequest":{{"Item":{{"pk":{{"S":"{key}"}},"expires":{{"N":"{expires_at_s}"}},"fill":{{"S":"{fill}"}}}}}}}}"#
        )
    });
    format!(r#"{{"RequestItems":{{"{TABLE}":[{}]}}}}"#, puts.collect::<Vec<_>>().join(","))
}

async fn watch(connection: &mut Connection, items: u64, streamed: bool) -> Result<Expiry> {
    if item_count(connection).await? != items {
        return Err("not all items were loaded".into());
    }
    let setting = format!(
        r#"{{"TableName":"{TABLE}","TimeToLiveSpecification":{{"Enabled":true,"AttributeName":"expires"}}}}"#
    );
    let enabled = Instant::now();
    connection.request("UpdateTimeToLive", setting.as_bytes()).await?;
    let mut still_full = enabled;
    loop {
        let asked = Instant::now();
        if asked - enabled > WAIT_MAX {
            return Err("items don't expire".into());
        }
        match item_count(connection).await? {
            0 => break,
            count if count == items => still_full = asked,
            _ => {}
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let rate = |since: Instant| items as f64 / since.elapsed().as_secs_f64();
    Ok(Expiry {
        items,
        streamed,
        items_per_second: rate(still_full),
        items_per_second_with_indexing: rate(enabled),
    })
}

async fn item_count(connection: &mut Connection) -> Result<u64> {
    let request = format!(r#"{{"TableName":"{TABLE}"}}"#);
    let answer = connection.request("DescribeTable", request.as_bytes()).await?;
    let answer = std::str::from_utf8(answer)?;
    let (_, rest) = answer.split_once(r#""ItemCount":"#).ok_or("no item count")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Ok(rest[..end].parse()?)
}
