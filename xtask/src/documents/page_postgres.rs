//! A PostgreSQL for one page, in place of the one that the page names.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::process::Failure;
use crate::{postgres, workspace};

/// The user and the host in the URLs that pages show.
const SHOWN: &str = "zenobe@db1.example.com";

pub struct PagePostgres {
    port: String,
    programs: PathBuf,
    /// Closing its input stops the server.
    script: Child,
}

impl PagePostgres {
    pub fn is_shown_in(text: &str) -> bool {
        text.contains(SHOWN)
    }

    pub fn start(port: String) -> Result<PagePostgres, Failure> {
        let failed = |error| Failure::new(format!("1: PostgreSQL cannot be started: {error}"));
        let installed = postgres::provide()?;
        // Another user, as which it may run, must reach it.
        let directory = std::env::temp_dir().join(format!("zenobe-page-postgres-{port}"));
        let mut script = Command::new("sh")
            .arg(workspace::root().join("tests/postgres/cluster.sh"))
            .args([directory.as_os_str(), port.as_ref()])
            .env("ZENOBE_POSTGRES_BIN", installed)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = script.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let Some(programs) = line.trim_end().strip_prefix("ready ") else {
            return Err(Failure::new("1: PostgreSQL does not start; what it said is above"));
        };
        Ok(PagePostgres { port, programs: PathBuf::from(programs), script })
    }

    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// The text with this server in place of the shown one.
    pub fn put_into(&self, text: &str) -> String {
        text.replace(SHOWN, &format!("postgres@127.0.0.1:{}", self.port))
    }

    /// What makes its programs find the server.
    pub fn environment(&self) -> [(&'static str, &str); 3] {
        [("PGHOST", "127.0.0.1"), ("PGPORT", &self.port), ("PGUSER", "postgres")]
    }
}

impl Drop for PagePostgres {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        // It removes its directory. Nobody needs to know if it is already gone.
        let _ = self.script.wait();
    }
}
