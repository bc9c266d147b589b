//! The second yardstick: the same engine on the same store, called in process without HTTP or JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use zenobe_engine::command::{CreateTable, GetItem, PutItem, TableName};
use zenobe_engine::schema::{BillingMode, KeyAttribute, KeySchema, Namespace, ScalarType};
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store_embedded::{Durability, EmbeddedStore};
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::Result;
use crate::client::{Sample, empty_histogram};
use crate::workload::{self, Operation, TABLE, Workload};

const LOAD_CALLERS: u64 = 64;

pub struct LocalEngine {
    runtime: Runtime,
    engine: Arc<Engine>,
    table: TableName,
}

impl LocalEngine {
    pub fn open(directory: &Path, durability: &str) -> Result<LocalEngine> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let durability = if durability == "os" { Durability::Os } else { Durability::Sync };
        let options = zenobe_store_embedded::Options { durability, ..Default::default() };
        let store = EmbeddedStore::open(directory, options)?;
        let engine_options = EngineOptions { shared_store: false, ..EngineOptions::default() };
        let engine = runtime.block_on(Engine::open(Arc::new(store), engine_options))?;
        let namespace =
            Namespace { account: "000000000000".to_owned(), region: "us-east-1".to_owned() };
        let table = TableName { namespace: Arc::new(namespace), name: TABLE.to_owned() };
        Ok(LocalEngine { runtime, engine, table })
    }

    pub fn load(&self, items: u64) -> Result<()> {
        self.runtime.block_on(async {
            self.engine.create_table(create_table(self.table.clone())).await?;
            let mut tasks = JoinSet::new();
            for worker in 0..LOAD_CALLERS {
                let (engine, table) = (self.engine.clone(), self.table.clone());
                tasks.spawn(async move {
                    for number in (worker..items).step_by(LOAD_CALLERS as usize) {
                        engine.put_item(put_item(&table, number, 0)).await?;
                    }
                    Ok::<(), zenobe_engine::error::Error>(())
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok(())
        })
    }

    pub fn measure(&self, workload: &Workload, items: u64, duration: Duration) -> Result<Sample> {
        let workload = *workload;
        self.runtime.block_on(async {
            let start = Instant::now();
            let mut tasks = JoinSet::new();
            for caller in 0..workload.connections {
                let (engine, table) = (self.engine.clone(), self.table.clone());
                let mut random = SmallRng::seed_from_u64(caller as u64);
                tasks.spawn(async move {
                    let mut histogram = empty_histogram();
                    let mut now = Instant::now();
                    while now < start + duration {
                        let number = random.random_range(0..items);
                        match workload.operation {
                            Operation::GetItem => {
                                engine.get_item(&get_item(&table, number)).await?;
                            }
                            Operation::PutItem => {
                                engine.put_item(put_item(&table, number, random.random())).await?;
                            }
                        }
                        let after = Instant::now();
                        histogram.saturating_record((after - now).as_micros() as u64);
                        now = after;
                        // A read that never waits would otherwise keep its thread to itself.
                        tokio::task::coop::consume_budget().await;
                    }
                    Ok::<_, zenobe_engine::error::Error>(histogram)
                });
            }
            let mut latency_us = empty_histogram();
            while let Some(histogram) = tasks.join_next().await {
                latency_us.add(histogram??)?;
            }
            Ok(Sample::new(latency_us, start.elapsed()))
        })
    }
}

fn get_item(table: &TableName, number: u64) -> GetItem {
    let key = AttributeValue::S(workload::key(number));
    GetItem {
        table: table.clone(),
        key: Attributes::from([("pk".to_owned(), key)]),
        projection: None,
        consistent: false,
    }
}

fn put_item(table: &TableName, number: u64, version: u32) -> PutItem {
    let fill = "x".repeat(workload::fill_size_bytes());
    let item = Attributes::from([
        ("pk".to_owned(), AttributeValue::S(workload::key(number))),
        ("version".to_owned(), AttributeValue::N(Number::from(u64::from(version)))),
        ("active".to_owned(), AttributeValue::Bool(true)),
        ("fill".to_owned(), AttributeValue::S(fill)),
    ]);
    PutItem { table: table.clone(), item, condition: None }
}

fn create_table(table: TableName) -> CreateTable {
    let key = KeyAttribute { name: "pk".to_owned(), scalar_type: ScalarType::S };
    CreateTable {
        table,
        attribute_types: BTreeMap::from([("pk".to_owned(), ScalarType::S)]),
        keys: KeySchema { partition: vec![key], sort: Vec::new() },
        local_indexes: Vec::new(),
        global_indexes: Vec::new(),
        billing_mode: BillingMode::PayPerRequest,
        throughput: Default::default(),
        stream: None,
        kms_key: None,
        table_class: None,
        deletion_protection: false,
        tags: BTreeMap::new(),
    }
}
