//! PostgreSQL, durable as a user would run it: what nodes keep their data in, and the limit that
//! they are compared with.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use zenobe_testing::{PostgresProcess, free_port};

use crate::measure::Sample;
use crate::{Result, machine};

/// More than the data of most groups, and as many log files as a measurement writes.
const SETTINGS: &str = "-c shared_buffers=1GB -c max_wal_size=8GB -c checkpoint_timeout=30min";
/// A table like the one that nodes use, without what only they need.
const TABLE: &str = "bare";
const VALUE_BYTES: usize = 400;
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. Dropping this value stops it and removes its data, and so does the end of this
/// process.
pub struct Postgres {
    process: PostgresProcess,
    /// The parent of all its processes.
    id: u32,
}

impl Postgres {
    /// Starts one with its data in `directory`, which must not exist yet. Its parent must be
    /// accessible to everybody: PostgreSQL does not run as root.
    pub fn start(repository: &Path, directory: &Path) -> Result<Postgres> {
        let environment = [("ZENOBE_POSTGRES_FSYNC", "on"), ("ZENOBE_POSTGRES_OPTIONS", SETTINGS)];
        let process = PostgresProcess::start(repository, directory, free_port(), &environment)?
            .ok_or("PostgreSQL does not start: cargo xtask postgres fetches one")?;
        let first_line = std::fs::read_to_string(directory.join("data/postmaster.pid"))?;
        let id = first_line.lines().next().unwrap_or_default().trim().parse()?;
        Ok(Postgres { process, id })
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.process.port)
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// `PostgreSQL 18.6`.
    pub fn version(&self) -> Result<String> {
        let text = run(Command::new(self.process.programs.join("postgres")).arg("--version"))?;
        Ok(text.trim().replace("postgres (PostgreSQL)", "PostgreSQL"))
    }

    /// Creates and fills the table of the bare client and of pgbench.
    pub fn create_table(&self, items: u64) -> Result<()> {
        let value = format!("repeat(chr(65 + (i % 26)::int), {VALUE_BYTES})");
        self.execute(&format!(
            "CREATE TABLE {TABLE} (k bigint PRIMARY KEY, v text NOT NULL);
             INSERT INTO {TABLE} SELECT i, {value} FROM generate_series(1, {items}) AS i;
             VACUUM ANALYZE {TABLE}"
        ))
    }

    fn execute(&self, sql: &str) -> Result<()> {
        let mut command = Command::new(self.process.programs.join("psql"));
        command.arg(self.url()).args(["-q", "-v", "ON_ERROR_STOP=1"]);
        sql.split(';').for_each(|statement| _ = command.args(["-c", statement]));
        run(&mut command).map(drop)
    }

    /// The statement that selects one row by its key.
    pub fn select() -> String {
        format!("SELECT v FROM {TABLE} WHERE k = $1")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let script = &mut self.process.script;
        drop(script.stdin.take());
        let ended = zenobe_testing::wait_for(PATIENCE, || script.try_wait().ok().flatten());
        if ended.is_none() {
            let _gone = script.kill();
        }
    }
}

/// pgbench with one durable upsert of a random row per transaction.
pub struct Pgbench<'p> {
    postgres: &'p Postgres,
    script: PathBuf,
    items: u64,
    pub clients: usize,
}

const CLIENTS: [usize; 7] = [1, 4, 8, 16, 32, 64, 128];
const TRIAL: Duration = Duration::from_secs(2);

impl Pgbench<'_> {
    /// Tries each number of clients briefly and keeps the fastest.
    pub fn fastest<'p>(postgres: &'p Postgres, script: &Path, items: u64) -> Result<Pgbench<'p>> {
        let text = format!(
            "\\set k random(1, {items})\n\\set letter random(0, 25)\n\
             INSERT INTO {TABLE} (k, v) VALUES (:k, repeat(chr(CAST(65 + :letter AS int)), {VALUE_BYTES})) \
             ON CONFLICT (k) DO UPDATE SET v = excluded.v;\n"
        );
        std::fs::write(script, text)?;
        let mut best: Option<(f64, Pgbench<'p>)> = None;
        for clients in CLIENTS {
            crate::progress::show(&format!("pgbench with {clients} clients"));
            let candidate = Pgbench { postgres, script: script.to_owned(), items, clients };
            let rate = candidate.transactions_per_second(TRIAL)?;
            if best.as_ref().is_none_or(|(fastest, _)| rate > *fastest) {
                best = Some((rate, candidate));
            }
        }
        Ok(best.ok_or("there is no number of clients")?.1)
    }

    fn transactions_per_second(&self, duration: Duration) -> Result<f64> {
        tps(&self.run(duration)?)
    }

    /// A measurement that includes PostgreSQL's processor time.
    pub fn sample(&self, duration: Duration) -> Result<Sample> {
        let before = machine::cpu_time(self.postgres.id)?;
        let report = self.run(duration)?;
        let used = machine::cpu_time(self.postgres.id)?.saturating_sub(before);
        let cpu_us = used.as_secs_f64() * 1e6 / transactions(&report)?;
        Ok(Sample { cpu_us: Some(cpu_us), ..Sample::of_rate(tps(&report)?) })
    }

    fn run(&self, duration: Duration) -> Result<String> {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut command = Command::new(self.postgres.process.programs.join("pgbench"));
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={}", self.clients))
            .arg(format!("--jobs={}", threads.min(self.clients)))
            .arg(format!("--time={}", duration.as_secs_f64().ceil()))
            .arg(format!("--file={}", self.script.display()))
            .arg(self.postgres.url());
        run(&mut command)
    }

    pub fn describe(&self) -> String {
        format!("{} clients, {} rows", self.clients, crate::outcome::count(self.items as f64))
    }
}

/// The rate in pgbench's report.
fn tps(report: &str) -> Result<f64> {
    let rate = report.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split_whitespace().next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench reports no rate: {report}").into())
}

/// The number of transactions in it.
fn transactions(report: &str) -> Result<f64> {
    const LINE: &str = "number of transactions actually processed: ";
    let number = report.lines().find_map(|line| line.strip_prefix(LINE));
    let number = number.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| format!("pgbench reports no transactions: {report}").into())
}

/// The output of a command that succeeds.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let program = command.get_program().to_string_lossy().into_owned();
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_one_without_connecting() {
        let report = "number of transactions actually processed: 33240\n\
            number of failed transactions: 0 (0.000%)\nlatency average = 1.204 ms\n\
            initial connection time = 15.1 ms\ntps = 3322.581 (without initial connection time)\n";
        assert_eq!(tps(report).unwrap(), 3322.581);
        assert_eq!(transactions(report).unwrap(), 33_240.0);
        assert!(tps("pgbench: error").is_err() && transactions("pgbench: error").is_err());
    }
}
