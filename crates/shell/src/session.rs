//! The endpoint: cancellable calls, and a cache of its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use zenobe_load::{Client, LoadError, Target, is_throttling};

use crate::error::ShellError;
use crate::value::Row;

/// How old cached table descriptions may get while somebody types.
const KNOWN_FOR: Duration = Duration::from_secs(30);
const THROTTLED_ATTEMPTS_MAX: u32 = 6;
const THROTTLED_DELAY: Duration = Duration::from_millis(100);
/// Far more tables than anybody chooses from.
const TABLES_MAX: usize = 1_000;

pub struct Session {
    runtime: Runtime,
    client: Client,
    endpoint: String,
    region: String,
    /// Ctrl-C, once the shell is interactive. Until then Ctrl-C ends the program, as usual.
    interrupts: Option<Signal>,
    /// How long to wait for a response.
    pub patience: Duration,
    tables: Option<(Instant, Vec<String>)>,
    descriptions: BTreeMap<String, (Instant, Value)>,
    /// The attributes seen in results.
    attributes: BTreeMap<String, BTreeSet<String>>,
}

impl Session {
    /// A page of a statement takes DynamoDB a second or two at most.
    pub const PATIENCE: Duration = Duration::from_secs(60);

    pub fn open(target: Target) -> Result<Session, ShellError> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().map_err(LoadError::Runtime)?;
        Ok(Session {
            endpoint: target.to_string(),
            region: target.region().to_owned(),
            client: Client::new(target)?,
            runtime,
            interrupts: None,
            patience: Session::PATIENCE,
            tables: None,
            descriptions: BTreeMap::new(),
            attributes: BTreeMap::new(),
        })
    }

    /// From now on Ctrl-C cancels a call instead of ending the program.
    pub fn heed_interrupts(&mut self) -> Result<(), ShellError> {
        let _guard = self.runtime.enter();
        self.interrupts = Some(signal(SignalKind::interrupt()).map_err(LoadError::Runtime)?);
        Ok(())
    }

    /// The endpoint and region, for messages.
    pub fn place(&self) -> String {
        format!("{} ({})", self.endpoint, self.region)
    }

    pub fn call(&mut self, operation: &str, body: &Value) -> Result<Value, ShellError> {
        let Session { runtime, client, interrupts, patience, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                answer = answered(client, operation, body, *patience) => answer,
                () = interrupted(interrupts) => Err(ShellError::Cancelled),
            }
        })
    }

    /// Discards a Ctrl-C that arrived while no call was running. Returns whether there was one.
    pub fn take_interrupt(&mut self) -> bool {
        let Session { runtime, interrupts, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = interrupted(interrupts) => true,
                // The runtime delivers the signal when it next polls.
                () = tokio::task::yield_now() => false,
            }
        })
    }

    /// The names of the tables, from the cache while it is fresh.
    pub fn tables(&mut self) -> Result<&[String], ShellError> {
        let is_fresh = |(since, _): &(Instant, _)| since.elapsed() < KNOWN_FOR;
        if !self.tables.as_ref().is_some_and(is_fresh) {
            let names = self.list_tables()?;
            self.tables = Some((Instant::now(), names));
        }
        Ok(self.tables.as_ref().map_or(&[], |(_, names)| names))
    }

    fn list_tables(&mut self) -> Result<Vec<String>, ShellError> {
        let mut names: Vec<String> = Vec::new();
        let mut request = json!({});
        while names.len() < TABLES_MAX {
            let page = self.call("ListTables", &request)?;
            let listed = page["TableNames"].as_array().into_iter().flatten();
            names.extend(listed.filter_map(Value::as_str).map(str::to_owned));
            match page["LastEvaluatedTableName"].as_str() {
                Some(last) => request["ExclusiveStartTableName"] = last.into(),
                None => break,
            }
        }
        Ok(names)
    }

    /// The `Table` of DescribeTable, from the cache while it is fresh.
    pub fn table(&mut self, name: &str) -> Result<&Value, ShellError> {
        let is_fresh = |(since, _): &(Instant, _)| since.elapsed() < KNOWN_FOR;
        if !self.descriptions.get(name).is_some_and(is_fresh) {
            self.describe(name)?;
        }
        Ok(&self.descriptions[name].1)
    }

    /// Like [`Session::table`], but always asks the endpoint.
    pub fn describe(&mut self, name: &str) -> Result<&Value, ShellError> {
        let mut answer = self.call("DescribeTable", &json!({ "TableName": name }))?;
        let known = (Instant::now(), answer["Table"].take());
        self.descriptions.insert(name.to_owned(), known);
        Ok(&self.descriptions[name].1)
    }

    pub fn learn_attributes(&mut self, table: &str, rows: &[Row]) {
        let known = self.attributes.entry(table.to_owned()).or_default();
        // A sample suffices. The bound is for tables whose items share no attributes.
        for row in rows.iter().take(100) {
            known.extend(row.keys().take(500_usize.saturating_sub(known.len())).cloned());
        }
    }

    /// The known attributes of a table.
    pub fn attributes(&mut self, table: &str) -> Vec<String> {
        let mut names = self.attributes.get(table).cloned().unwrap_or_default();
        if let Ok(description) = self.table(table) {
            let defined = description["AttributeDefinitions"].as_array().into_iter().flatten();
            names
                .extend(defined.filter_map(|one| one["AttributeName"].as_str().map(str::to_owned)));
        }
        names.into_iter().collect()
    }
}

async fn interrupted(interrupts: &mut Option<Signal>) {
    match interrupts {
        Some(interrupts) => drop(interrupts.recv().await),
        None => std::future::pending().await,
    }
}

/// The JSON of the response. Retries throttled calls, as SDKs do.
async fn answered(
    client: &mut Client,
    operation: &str,
    body: &Value,
    patience: Duration,
) -> Result<Value, ShellError> {
    let body = body.to_string();
    let mut attempt = 0;
    loop {
        let calling = client.call(operation, body.as_bytes());
        let timed_out = |_| ShellError::TimedOut {
            operation: operation.to_owned(),
            seconds: patience.as_secs(),
        };
        let answer = tokio::time::timeout(patience, calling).await.map_err(timed_out)??;
        if answer.is_success() {
            let not_json = |_| ShellError::NotJson { operation: operation.to_owned() };
            return serde_json::from_slice(&answer.body).map_err(not_json);
        }
        let name = answer.error_name();
        attempt += 1;
        if !is_throttling(&name) || attempt == THROTTLED_ATTEMPTS_MAX {
            let message = crate::value::escaped(&answer.error_message());
            return Err(ShellError::Refused { name, message });
        }
        tokio::time::sleep(THROTTLED_DELAY * 2_u32.pow(attempt - 1)).await;
    }
}
