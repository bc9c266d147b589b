//! The process of a PostgreSQL server, and `psql`.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running server. It stops when this process ends, or as soon as the script's input is closed.
pub struct PostgresProcess {
    pub port: u16,
    /// The directory of its programs, such as `psql`.
    pub programs: PathBuf,
    pub script: Child,
    output: BufReader<ChildStdout>,
}

impl PostgresProcess {
    /// Runs `tests/postgres/cluster.sh` of a repository, with these variables of its environment. The directory must not exist
    /// yet. `None` if there is no server in the end; the script has said why on standard error.
    pub fn start(
        repository: &Path,
        directory: &Path,
        port: u16,
        environment: &[(&str, &str)],
    ) -> io::Result<Option<PostgresProcess>> {
        let mut script = Command::new("sh")
            .arg(repository.join("tests/postgres/cluster.sh"))
            .arg(directory)
            .arg(port.to_string())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = script.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut output = BufReader::new(output);
        let programs = wait_until_ready(&mut output)?;
        Ok(programs.map(|programs| PostgresProcess { port, programs, script, output }))
    }

    /// Stops the server at once, as a crash does, and starts it again. Returns whether it has recovered.
    pub fn crash(&mut self) -> io::Result<bool> {
        let input = self.script.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(b"crash\n")?;
        Ok(wait_until_ready(&mut self.output)?.is_some())
    }
}

/// The directory of the server's programs, or `None` if the script has ended.
fn wait_until_ready(output: &mut BufReader<ChildStdout>) -> io::Result<Option<PathBuf>> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    Ok(line.trim_end().strip_prefix("ready ").map(PathBuf::from))
}

/// The command that carries out SQL in a database and prints only values.
pub fn psql(programs: &Path, port: u16, database: &str, sql: &str) -> Command {
    let mut command = Command::new(programs.join("psql"));
    command.args(["-h", "127.0.0.1", "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1"]).args([
        "-p",
        &port.to_string(),
        "-d",
        database,
        "-c",
        sql,
    ]);
    command
}

/// A port that nothing listens on just now.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("its address").port()
}
