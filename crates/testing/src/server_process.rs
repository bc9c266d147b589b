//! A server as a separate process: the only way to test what survives its death.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;
use std::{env, fmt, io, thread};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};

use crate::process::{Output, Process, Stream};
use crate::{Client, TemporaryDirectory, server_binary};

/// A start includes the recovery of the store's log; a debug build on a busy machine needs time.
const START_TIME_MAX: Duration = Duration::from_secs(60);
const STOP_TIME_MAX: Duration = Duration::from_secs(30);

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
    process: Process,
    address: SocketAddr,
    /// Dropped after the process.
    directory: Option<TemporaryDirectory>,
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

    /// Starts a server on a temporary directory, which is removed with it.
    ///
    /// # Panics
    /// If it does not start.
    pub fn fresh(name: &str) -> ServerProcess {
        let directory = TemporaryDirectory::new(name);
        let mut server = ServerProcess::start(directory.path());
        server.directory = Some(directory);
        server
    }

    /// Like [`ServerProcess::start`], without a data directory.
    ///
    /// # Panics
    /// If it does not start.
    pub fn in_memory(arguments: &[&str]) -> ServerProcess {
        let mut command = Command::new(server_binary());
        command.args(["serve", "--memory", "--listen", "127.0.0.1:0"]).args(arguments);
        ServerProcess::launch(without_options(&mut command))
    }

    pub fn try_start(data: &Path, options: &ServerOptions) -> Result<ServerProcess, StartError> {
        ServerProcess::try_launch(&mut command(data, options))
    }

    /// Runs a command that becomes a server, and returns once it has printed its address.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(command: &mut Command) -> ServerProcess {
        ServerProcess::try_launch(command).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_launch(command: &mut Command) -> Result<ServerProcess, StartError> {
        let mut process = Process::start(command).map_err(StartError::Spawn)?;
        match listening_address(process.output()) {
            Some(address) => Ok(ServerProcess { process, address, directory: None }),
            // It has closed its output, or is too slow.
            None => match process.wait(STOP_TIME_MAX) {
                Some(status) => Err(StartError::Exited { status, output: process.output().text() }),
                None => Err(StartError::Silent { output: process.output().text() }),
            },
        }
    }

    /// Starts a server in an environment that kills it before it listens. This interrupts the
    /// recovery of a store. A server that gets to listen is killed then.
    ///
    /// # Panics
    /// If it ends in another way.
    pub fn start_and_kill(data: &Path, options: &ServerOptions) {
        match ServerProcess::try_start(data, options) {
            Ok(server) => server.kill(),
            Err(StartError::Exited { status, output }) => assert_killed(status, &output),
            Err(error) => panic!("{error}"),
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
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
        self.process.output().text()
    }

    /// Waits for a line of the server's log that contains a text.
    ///
    /// # Panics
    /// If there is none in time.
    pub fn expect_output(&self, text: &str) -> String {
        self.process.output().expect(START_TIME_MAX, text)
    }

    /// The first lines that the server prints to its standard output. Waits until they are there.
    ///
    /// # Panics
    /// If it prints fewer.
    pub fn first_lines(&self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let all = self.process.output().find(START_TIME_MAX, |stream, line| {
            lines.extend((stream == Stream::Output).then(|| line.to_owned()));
            (lines.len() == count).then_some(())
        });
        assert!(all.is_some(), "the server prints less than {count} lines:\n{}", self.output());
        lines
    }

    /// Lifts [`ServerOptions::file_size_blocks_max`], as if the disk had space again.
    ///
    /// # Panics
    /// If the limit cannot be changed.
    pub fn lift_file_size_limit(&self) {
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        let lifted = Rlimit { current: maximum, maximum };
        let set = prlimit(Some(self.process.pid()), Resource::Fsize, lifted);
        set.expect("a soft limit can be raised to the hard one");
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Whether the server runs.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Waits until the server has ended, by itself or by a signal.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn wait(mut self) -> ExitStatus {
        let ended = self.process.wait(STOP_TIME_MAX);
        ended.unwrap_or_else(|| panic!("the server does not end:\n{}", self.output()))
    }

    /// Ends the server as `kill -9` does: it gets no chance to finish anything.
    ///
    /// # Panics
    /// If it had already ended by itself.
    pub fn kill(mut self) {
        let status = self.process.kill();
        assert_killed(status, &self.output());
    }

    /// Asks the server to stop, as an operator does.
    ///
    /// # Panics
    /// If it does not stop in time, or without success.
    pub fn stop(self) {
        self.stop_by(Signal::TERM);
    }

    /// Like [`ServerProcess::stop`], with another signal.
    ///
    /// # Panics
    /// If it does not stop in time, or without success.
    pub fn stop_by(self, signal: Signal) {
        self.signal(signal);
        let output = self.process.output().clone();
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "after {signal:?} ({status}):\n{}", output.text());
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the server's last output:\n{}", self.output());
        }
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
    without_options(&mut command);
    command.args(["serve", "--listen", &options.listen, "--data"]).arg(data);
    command.args(&options.arguments);
    command.envs(options.environment.iter().cloned());
    command
}

/// Removes variables that would set options of the server: the environment of the test run must not
/// affect it.
pub fn without_options(command: &mut Command) -> &mut Command {
    let names = env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("ZENOBE_")) {
        command.env_remove(name);
    }
    command
}

/// Waits until a process has printed its address. `None` if it closes its output first, or is too
/// slow.
pub fn listening_address(output: &Output) -> Option<SocketAddr> {
    output.find(START_TIME_MAX, |_, line| address_in(line))
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
    use crate::wait_until;

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

    fn launch(script: &str) -> ServerProcess {
        ServerProcess::launch(Command::new("sh").args(["-c", script]))
    }

    #[test]
    #[should_panic(expected = "the server ended by itself (exit status: 3)")]
    fn a_server_that_died_on_its_own_was_not_killed() {
        let mut server = launch("echo http://127.0.0.1:1; exit 3");
        wait_until(|| !server.is_running());
        server.kill();
    }

    #[test]
    fn a_kill_is_one() {
        launch("echo http://127.0.0.1:1; exec sleep 1000").kill();
    }

    #[test]
    #[should_panic(expected = "(exit status: 3)")]
    fn a_stop_without_success_is_told() {
        let script = "trap 'exit 3' TERM; echo http://127.0.0.1:1; while :; do sleep 0.01; done";
        launch(script).stop();
    }

    #[test]
    fn a_refusal_carries_what_the_process_said() {
        let mut command = Command::new("sh");
        match ServerProcess::try_launch(command.args(["-c", "echo no data >&2; exit 3"])) {
            Err(StartError::Exited { status, output }) => {
                assert_eq!((status.code(), output.as_str()), (Some(3), "  | no data\n"));
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("there is no address"),
        }
    }
}
