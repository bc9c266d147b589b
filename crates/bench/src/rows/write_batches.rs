//! Writes items in batches, over several connections at a time.

use std::net::SocketAddr;
use std::ops::Range;
use std::thread;

use serde_json::{Value, json};

use crate::{Result, answers};

pub const LOADERS: u64 = 8;
pub const BATCH_ITEMS: u64 = 25;

/// Sends the request of each number. The range must hold whole batches.
pub fn write_batches(
    address: SocketAddr,
    table: &str,
    numbers: Range<u64>,
    request: impl Fn(u64) -> Value + Sync,
) -> Result<()> {
    let write = |loader: u64| -> Result<()> {
        let step = (LOADERS * BATCH_ITEMS) as usize;
        for first in (numbers.start + loader * BATCH_ITEMS..numbers.end).step_by(step) {
            let requests = (first..first + BATCH_ITEMS).map(&request);
            let batch = json!({"RequestItems": {table: requests.collect::<Vec<_>>()}});
            answers::call(address, "BatchWriteItem", &batch)?;
        }
        Ok(())
    };
    let write = &write;
    thread::scope(|scope| {
        let loaders: Vec<_> =
            (0..LOADERS).map(|loader| scope.spawn(move || write(loader))).collect();
        for loader in loaders {
            loader.join().map_err(|_| "a loader panicked")??;
        }
        Ok(())
    })
}
