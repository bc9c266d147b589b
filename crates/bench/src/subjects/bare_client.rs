//! The limit of reads from PostgreSQL: a client that does nothing but select one row by its key, on
//! each of its connections over and over.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};
use zenobe_load::Histogram;

use crate::Result;
use crate::measure::{Latency, Sample};

use super::postgres::Postgres;

const TRIAL: Duration = Duration::from_secs(1);
const WARMUP: Duration = Duration::from_millis(300);
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// Open connections with their prepared statement, and the threads that they live on.
pub struct BareClient {
    runtime: Runtime,
    clients: Vec<(std::sync::Arc<Client>, Statement)>,
    items: u64,
    threads: &'static str,
}

impl BareClient {
    /// Connects with one thread and with all cores, and keeps what is faster.
    pub fn fastest(postgres: &Postgres, connections: usize, items: u64) -> Result<BareClient> {
        let mut best: Option<(f64, BareClient)> = None;
        let ways: [(&str, Builder); 2] = [
            ("one thread", Builder::new_current_thread()),
            ("a thread per core", Builder::new_multi_thread()),
        ];
        for (threads, mut builder) in ways {
            let runtime = builder.enable_all().build()?;
            let clients = runtime.block_on(connect(&postgres.url(), connections))?;
            let candidate = BareClient { runtime, clients, items, threads };
            let rate = candidate.sample(TRIAL)?.requests_per_second;
            if best.as_ref().is_none_or(|(fastest, _)| rate > *fastest) {
                best = Some((rate, candidate));
            }
        }
        Ok(best.ok_or("there is no way")?.1)
    }

    pub fn describe(&self) -> &'static str {
        self.threads
    }

    pub fn sample(&self, duration: Duration) -> Result<Sample> {
        self.runtime.block_on(self.select(WARMUP))?;
        let (latencies, elapsed) = self.runtime.block_on(self.select(duration))?;
        Ok(Sample {
            requests_per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
            latency: Some(Latency::of(&latencies, NANOSECONDS_PER_MILLISECOND)),
            cpu_us: None,
        })
    }

    /// Selects on all connections at once, and returns how long each statement and all of them took.
    async fn select(&self, duration: Duration) -> Result<(Histogram<u64>, Duration)> {
        let start = Instant::now();
        let mut connections = JoinSet::new();
        for (number, (client, statement)) in self.clients.iter().enumerate() {
            let (client, statement) = (client.clone(), statement.clone());
            let keys = Keys { state: 0x9E37_79B9_7F4A_7C15 ^ number as u64, items: self.items };
            connections.spawn(select_until(client, statement, keys, start + duration));
        }
        let mut all = Histogram::new(3)?;
        for latencies in connections.join_all().await {
            all.add(latencies?)?;
        }
        Ok((all, start.elapsed()))
    }
}

async fn connect(
    url: &str,
    connections: usize,
) -> Result<Vec<(std::sync::Arc<Client>, Statement)>> {
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let statement = client.prepare(&Postgres::select()).await?;
        clients.push((std::sync::Arc::new(client), statement));
    }
    Ok(clients)
}

async fn select_until(
    client: std::sync::Arc<Client>,
    statement: Statement,
    mut keys: Keys,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut latencies = Histogram::new(3)?;
    loop {
        let sent = Instant::now();
        let row = client.query_one(&statement, &[&keys.next()]).await?;
        let value: &str = row.get(0);
        std::hint::black_box(value);
        let answered = Instant::now();
        latencies.record((answered - sent).as_nanos() as u64)?;
        if answered >= end {
            return Ok(latencies);
        }
    }
}

/// Keys drawn evenly (xorshift).
struct Keys {
    state: u64,
    items: u64,
}

impl Keys {
    fn next(&mut self) -> i64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        1 + (self.state % self.items) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_table() {
        let mut keys = Keys { state: 7, items: 10 };
        let drawn: std::collections::BTreeSet<i64> = (0..1000).map(|_| keys.next()).collect();
        assert_eq!(drawn, (1..=10).collect());
    }
}
