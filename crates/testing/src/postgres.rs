//! A PostgreSQL server for the tests of one process. It starts with the first test that asks, and
//! stops when the process ends, however it ends.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::wait::{PATIENCE, wait_for};

/// A running server, with a separate database for each test.
pub struct Postgres {
    pub port: u16,
    programs: PathBuf,
    databases: AtomicU32,
    /// Closing its input stops the server.
    _script: Child,
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postgres/cluster.sh");
        let directory =
            std::env::temp_dir().join(format!("zenobe-postgres-{}-{port}", std::process::id()));
        let mut script = Command::new("sh")
            .arg(&path)
            .arg(&directory)
            .arg(port.to_string())
            .env("ZENOBE_POSTGRES_OPTIONS", options(settings))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell runs the script");
        let mut line = String::new();
        let output = script.stdout.take().expect("the output is piped");
        BufReader::new(output).read_line(&mut line).expect("the script prints text");
        let programs = line.trim_end().strip_prefix("ready ").unwrap_or_else(|| {
            panic!("PostgreSQL does not start in {}; what it said is above", directory.display())
        });
        Postgres { port, programs: programs.into(), databases: AtomicU32::new(0), _script: script }
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
        let output = Command::new(self.programs.join("psql"))
            .args(["-h", "127.0.0.1", "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1"])
            .args(["-p", &self.port.to_string(), "-d", database, "-c", sql])
            .output()
            .expect("psql runs");
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

/// A port that nothing listens on just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("its address").port()
}
