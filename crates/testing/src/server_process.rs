//! A server as a separate process: the only way to test what survives its death.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use crate::{Client, server_binary};

/// A start includes the recovery of the store's log; a debug build on a busy machine needs time.
const START_TIME_MAX: Duration = Duration::from_secs(60);
const STOP_TIME_MAX: Duration = Duration::from_secs(30);
const KEPT_OUTPUT_LINES_MAX: usize = 200;

/// Options of `zenobe serve` besides the data directory.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen on; by default a free port of the loopback interface.
    pub listen: String,
    /// Further command line arguments.
    pub arguments: Vec<OsString>,
    /// The largest file the server may write, in 512-byte blocks (`ulimit -f`). Writes beyond it
    /// fail with EFBIG, because SIGXFSZ is ignored: a full disk without filling one.
    pub file_size_blocks_max: Option<u64>,
    /// Further environment variables.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: "127.0.0.1:0".into(),
            arguments: Vec::new(),
            file_size_blocks_max: None,
            environment: Vec::new(),
        }
    }
}

/// A running server. Dropping it kills it.
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
    output: Output,
}

impl ServerProcess {
    /// Starts a server on `data` and returns once it has printed its address.
    ///
    /// # Panics
    /// If it does not start; use [`ServerProcess::try_start`] in tests that expect that.
    pub fn start(data: &Path) -> ServerProcess {
        ServerProcess::start_with(data, &ServerOptions::default())
    }

    /// Like [`ServerProcess::start`], with options.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_with(data: &Path, options: &ServerOptions) -> ServerProcess {
        ServerProcess::try_start(data, options).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_start(data: &Path, options: &ServerOptions) -> Result<ServerProcess, StartError> {
        let mut child = command(data, options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(StartError::Spawn)?;
        let (found, addresses) = mpsc::channel();
        let output = Output::default();
        output.follow(child.stdout.take().expect("stdout is piped"), found.clone());
        output.follow(child.stderr.take().expect("stderr is piped"), found);
        // Both senders are dropped when the process closes its output, so this also returns at once
        // when the server refuses to start.
        match addresses.recv_timeout(START_TIME_MAX) {
            Ok(address) => Ok(ServerProcess { child, address, output }),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = child.wait().map_err(StartError::Spawn)?;
                Err(StartError::Exited { status, output: output.text() })
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().map_err(StartError::Spawn)?;
                child.wait().map_err(StartError::Spawn)?;
                Err(StartError::Silent { output: output.text() })
            }
        }
    }

    /// Starts a server and kills it after this time, whether or not it listens by then. This
    /// interrupts the recovery of a store.
    ///
    /// # Panics
    /// If the process cannot be run.
    pub fn start_and_kill(data: &Path, options: &ServerOptions, after: Duration) {
        let mut command = command(data, options);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be run");
        thread::sleep(after);
        child.kill().expect("a child can be killed");
        let status = child.wait().expect("a killed child can be waited for");
        assert_killed(status, "a server that was just started");
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// The last lines that the server printed.
    pub fn output(&self) -> String {
        self.output.text()
    }

    /// Lifts [`ServerOptions::file_size_blocks_max`], as if the disk had space again.
    ///
    /// # Panics
    /// If the limit cannot be changed.
    pub fn lift_file_size_limit(&self) {
        let pid = Some(Pid::from_child(&self.child));
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        let lifted = Rlimit { current: maximum, maximum };
        prlimit(pid, Resource::Fsize, lifted).expect("a soft limit can be raised to the hard one");
    }

    /// Ends the server as `kill -9` does: it gets no chance to finish anything.
    ///
    /// # Panics
    /// If the process cannot be killed, or had ended by itself before.
    pub fn kill(mut self) {
        self.child.kill().expect("a running child can be killed");
        let status = self.child.wait().expect("a killed child can be waited for");
        assert_killed(status, &self.output());
    }

    /// Asks the server to stop (SIGTERM) and waits until it has.
    ///
    /// # Panics
    /// If it does not stop in time.
    pub fn stop(mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("a running child can be signalled");
        let deadline = Instant::now() + STOP_TIME_MAX;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server ignores SIGTERM:\n{}", self.output());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the server's last output:\n{}", self.output.text());
        }
        // After `kill` or `stop` the process is gone and both calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that died on its own must not pass for one that was killed.
fn assert_killed(status: ExitStatus, output: &str) {
    const SIGKILL: i32 = 9;
    assert_eq!(status.signal(), Some(SIGKILL), "the server ended by itself ({status}):\n{output}");
}

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    Spawn(io::Error),
    Exited { status: ExitStatus, output: String },
    Silent { output: String },
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Spawn(error) => write!(formatter, "the server cannot be run: {error}"),
            StartError::Exited { status, output } => {
                write!(formatter, "the server ended before it listened ({status}):\n{output}")
            }
            StartError::Silent { output } => {
                write!(formatter, "the server printed no address in time:\n{output}")
            }
        }
    }
}

impl std::error::Error for StartError {}

fn command(data: &Path, options: &ServerOptions) -> Command {
    let mut command = match options.file_size_blocks_max {
        None => Command::new(server_binary()),
        // A shell sets the limit because the standard library cannot. `exec` keeps the process id,
        // so that signals reach the server itself. It is the soft limit, which
        // `lift_file_size_limit` may raise again without being root.
        Some(blocks) => {
            let mut shell = Command::new("sh");
            let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$@\"");
            shell.args(["-c", &script, "sh"]).arg(server_binary());
            shell
        }
    };
    command.args(["serve", "--listen", &options.listen, "--data"]).arg(data);
    command.args(&options.arguments);
    command.envs(options.environment.iter().cloned());
    command
}

/// The server's output. It yields the address and keeps the last lines.
#[derive(Clone, Default)]
struct Output {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl Output {
    /// Reads the stream to its end on a separate thread, so that the server never blocks on it.
    fn follow(&self, stream: impl Read + Send + 'static, found: mpsc::Sender<SocketAddr>) {
        let output = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Nobody receives once the first address has been taken.
                    let _ = found.send(address);
                }
                output.push(line);
            }
        });
    }

    fn push(&self, line: String) {
        let mut lines = self.lines.lock().expect("no holder of this lock panics");
        if lines.len() == KEPT_OUTPUT_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().expect("no holder of this lock panics");
        lines.iter().map(|line| format!("  | {line}\n")).collect()
    }
}

/// Finds `http://127.0.0.1:<port>` in a line of the server's output.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
    rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ':']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_a_line() {
        let check = |line: &str, port: Option<u16>| {
            assert_eq!(address_in(line).map(|address| address.port()), port, "{line}");
        };
        check("listening on http://127.0.0.1:41234", Some(41234));
        check("Zenobe listens on http://127.0.0.1:8000/, data in ./x", Some(8000));
        check("\u{1b}[1mhttp://127.0.0.1:9\u{1b}[0m", Some(9));
        check("aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000.", Some(8000));
        check("see http://example.org/docs", None);
        check("starting", None);
    }

    #[test]
    #[should_panic(expected = "the server ended by itself (exit status: 3)")]
    fn a_server_that_died_on_its_own_was_not_killed() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = child.wait().unwrap();
        assert_killed(status, "");
    }

    #[test]
    fn a_refusal_carries_what_the_process_said() {
        let mut child = Command::new("sh");
        let child = child.args(["-c", "echo no data >&2; exit 3"]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (found, addresses) = mpsc::channel();
        let output = Output::default();
        output.follow(child.stdout.take().unwrap(), found.clone());
        output.follow(child.stderr.take().unwrap(), found);
        assert!(addresses.recv_timeout(Duration::from_secs(10)).is_err());
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(output.text(), "  | no data\n");
    }
}
