//! Partitions and throttling, from outside.

mod batches;
mod budgets;
mod limits;
mod modes;
mod pages;
mod partitions;
mod vectors;

use std::sync::Arc;

use zenobe_engine::command::*;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::throughput::cause::Throttled;
use zenobe_engine::throughput::report::PartitionReport;
use zenobe_engine::{EngineOptions, ThroughputMode};
use zenobe_store::memory::MemoryStore;
use zenobe_value::{AttributeValue, Attributes};

use crate::tables::harness::*;

async fn harness(throughput: ThroughputMode) -> Harness {
    let options = EngineOptions { throughput, ..EngineOptions::default() };
    Harness::with_options(Arc::new(MemoryStore::new()), options).await
}

/// How many requests of a kind pass at one moment, up to `most`, and what the next one says.
async fn passing<T>(
    most: usize,
    request: impl AsyncFn(usize) -> Result<T>,
) -> (usize, Vec<&'static str>) {
    for number in 0..most {
        match request(number).await {
            Ok(_) => {}
            Err(Error::Throttled(throttled)) => return (number, names(&throttled)),
            Err(error) => panic!("{error}"),
        }
    }
    (most, Vec::new())
}

fn names(throttled: &Throttled) -> Vec<&'static str> {
    throttled.reasons.iter().map(|reason| reason.name()).collect()
}

impl Harness {
    async fn put_id(&self, id: &str) -> Result<WriteOutcome> {
        self.put(item(id, &[])).await
    }

    async fn get_id(&self, id: &str, consistent: bool) -> Result<ReadOutcome> {
        let key = Attributes::from([("id".to_owned(), text(id))]);
        let command = GetItem { table: name("t"), key, projection: None, consistent };
        self.engine.get_item(&command).await
    }

    /// The partitions of table `t`.
    async fn partitions(&self) -> PartitionReport {
        self.engine.partitions(&name("t")).await.unwrap().swap_remove(0)
    }

    /// What table `t` or an index has consumed, and the limits it met.
    fn consumed(&self, index: Option<&str>) -> (f64, f64, Vec<(&'static str, u64)>) {
        let all = self.engine.consumption();
        let one = all.iter().find(|it| it.resource.index_name() == index);
        one.map_or_else(Default::default, |it| {
            let events = it.throttle_events.iter();
            let events = events.map(|(reason, count)| (reason.name(), *count)).collect();
            (it.read_units, it.write_units, events)
        })
    }
}

/// A text of this many bytes.
fn long(bytes: usize) -> AttributeValue {
    text(&"x".repeat(bytes))
}
