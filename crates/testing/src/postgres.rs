//! A PostgreSQL server for the tests of one process. It starts with the first test that asks, and
//! stops when the process ends, however it ends.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::postgres_process::{PostgresProcess, free_port, psql};
use crate::wait::{PATIENCE, wait_for};

/// A running server, with a separate database for each test.
pub struct Postgres {
    pub port: u16,
    databases: AtomicU32,
    process: PostgresProcess,
}

impl Postgres {
    /// The server of this process.
    ///
    /// # Panics
    /// If none can be found or started; the output says why.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Postgres::start(&[]))
    }

    /// A server of its own, with settings such as `max_connections=10`. It stops when it is dropped.
    ///
    /// # Panics
    /// As [`Postgres::shared`].
    pub fn start(settings: &[&str]) -> Postgres {
        let port = free_port();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let directory =
            std::env::temp_dir().join(format!("zenobe-postgres-{}-{port}", std::process::id()));
        let environment = [("ZENOBE_POSTGRES_OPTIONS", options(settings))];
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        let started = PostgresProcess::start(&repository, &directory, port, &environment);
        let process = started.expect("a shell runs the script").unwrap_or_else(|| {
            panic!("PostgreSQL does not start in {}; what it said is above", directory.display())
        });
        Postgres { port, databases: AtomicU32::new(0), process }
    }

    /// Stops the server at once, as a crash does, and waits until it has recovered.
    ///
    /// # Panics
    /// If it does not recover; the output says why.
    pub fn crash(&mut self) {
        let has_recovered = self.process.crash().expect("the script runs");
        assert!(has_recovered, "PostgreSQL does not recover; what it said is above");
    }

    /// The URL of an empty database.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Removes a database, whoever still uses it.
    pub fn remove(&self, url: &str) {
        let name = url.rsplit('/').next().and_then(|rest| rest.split('?').next());
        let name = name.expect("a URL ends with its database");
        self.execute("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Runs SQL in a database, and returns what it printed. Waits while others have all connections.
    ///
    /// # Panics
    /// If the server refuses, or if no connection becomes free.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let done = wait_for(PATIENCE, || self.try_execute(database, sql));
        done.unwrap_or_else(|| panic!("{sql}: no connection is free"))
    }

    /// `None` if others have all connections.
    fn try_execute(&self, database: &str, sql: &str) -> Option<String> {
        let mut command = psql(&self.process.programs, self.port, database, sql);
        let output = command.output().expect("psql runs");
        let error = String::from_utf8_lossy(&output.stderr);
        // Also those for superusers: others occupy them for the moment that it takes to refuse them.
        if error.contains("sorry, too many clients already") {
            return None;
        }
        assert!(output.status.success(), "{sql}: {error}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The user's own options come last.
fn options(settings: &[&str]) -> String {
    let settings: String = settings.iter().map(|setting| format!("-c {setting} ")).collect();
    settings + &std::env::var("ZENOBE_POSTGRES_OPTIONS").unwrap_or_default()
}
