//! Other programs that speak DynamoDB's API, each started as its own documentation says.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use zenobe_testing::wait_for;

use crate::Result;
use crate::cleanup::Process;
use crate::load;

const START_PATIENCE: Duration = Duration::from_secs(60);

/// A peer: where it is installed, or why it is not.
#[derive(Debug, Clone)]
pub struct Installation {
    pub name: String,
    pub version: String,
    pub directory: std::result::Result<PathBuf, String>,
}

impl Installation {
    pub fn title(&self) -> &str {
        match self.name.as_str() {
            "dynoxide" => "Dynoxide",
            "dynamodb-local" => "DynamoDB Local",
            other => other,
        }
    }

    /// The modes in which it can run. Their system calls show what each mode promises.
    pub fn modes(&self) -> Vec<Mode> {
        let file = match self.name.as_str() {
            "dynoxide" => Some((Survives::PowerLoss, "SQLite, one sync per write")),
            "dynalite" => Some((Survives::Crash, "LevelDB, not synced")),
            "dynamodb-local" => Some((Survives::PowerLoss, "SQLite, four syncs per write")),
            _ => None,
        };
        let memory = Mode { survives: Survives::Nothing, description: "in memory" };
        let file = file.map(|(survives, description)| Mode { survives, description });
        std::iter::once(memory).chain(file).collect()
    }
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    Nothing,
    Crash,
    PowerLoss,
}

impl Survives {
    pub fn name(self) -> &'static str {
        match self {
            Survives::Nothing => "nothing (memory)",
            Survives::Crash => "a crash of the process",
            Survives::PowerLoss => "power loss",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub survives: Survives,
    pub description: &'static str,
}

pub struct Peer {
    process: Process,
    pub address: SocketAddr,
}

impl Peer {
    /// Starts it, with any data below `data`, and waits for its first response.
    pub fn start(installation: &Installation, mode: Mode, data: &Path) -> Result<Peer> {
        let directory = installation.directory.as_ref().map_err(|reason| reason.clone())?;
        std::fs::create_dir_all(data)?;
        let address = free_address()?;
        let file = (mode.survives != Survives::Nothing).then(|| data.join("store"));
        let mut command = command(&installation.name, directory, address.port(), file.as_deref())?;
        let peer = Peer { process: Process::start(command.current_dir(data))?, address };
        peer.wait()?;
        Ok(peer)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    fn wait(&self) -> Result<()> {
        let answers = || load::exchange(self.address, "ListTables", "{}").is_ok();
        let settled = wait_for(START_PATIENCE, || match answers() {
            true => Some(true),
            false => self.process.has_ended().then_some(false),
        });
        match settled {
            Some(true) => Ok(()),
            Some(false) => Err(format!("it ended at once: {}", self.process.complaint()).into()),
            None => Err("it does not answer".into()),
        }
    }
}

fn command(name: &str, directory: &Path, port: u16, file: Option<&Path>) -> Result<Command> {
    let port = port.to_string();
    let mut command = match name {
        "dynoxide" => dynoxide(directory, &port, file),
        "dynalite" => dynalite(directory, &port, file),
        "dynamodb-local" => dynamodb_local(directory, &port, file)?,
        "moto" => moto(directory, &port),
        other => return Err(format!("there is no way to start `{other}`").into()),
    };
    // The user's credentials are none of a peer's business.
    for variable in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] {
        command.env_remove(variable);
    }
    Ok(command)
}

fn dynoxide(directory: &Path, port: &str, file: Option<&Path>) -> Command {
    let mut command = Command::new(directory.join("bin/dynoxide"));
    command.args(["serve", "--port", port]);
    if let Some(file) = file {
        command.arg("--db-path").arg(file);
    }
    command
}

fn dynalite(directory: &Path, port: &str, file: Option<&Path>) -> Command {
    let mut command = Command::new("node");
    command.arg(directory.join("node_modules/dynalite/cli.js"));
    command.args(["--host", "127.0.0.1", "--port", port, "--createTableMs", "0"]);
    if let Some(file) = file {
        command.arg("--path").arg(file);
    }
    command
}

fn dynamodb_local(directory: &Path, port: &str, file: Option<&Path>) -> Result<Command> {
    let libraries = directory.join("lib");
    let mut command = Command::new("java");
    command.arg(format!("-Djava.library.path={}", libraries.display()));
    command.arg("-cp").arg(libraries.join("*"));
    command.arg("software.amazon.dynamodb.services.local.main.ServerRunner");
    command.args(["-disableTelemetry", "-sharedDb", "-port", port]);
    match file {
        Some(file) => {
            std::fs::create_dir_all(file)?;
            command.arg("-dbPath").arg(file);
        }
        None => drop(command.arg("-inMemory")),
    }
    Ok(command)
}

/// moto keeps its tables in the process, so it can use several threads but not several workers.
fn moto(directory: &Path, port: &str) -> Command {
    let venv = directory.join("venv/bin/python");
    let mut command = match venv.exists() {
        true => Command::new(venv),
        false => {
            let mut command = Command::new("python3");
            command.env("PYTHONPATH", directory.join("packages"));
            command
        }
    };
    command.args(["-m", "gunicorn", "--no-control-socket", "--worker-class", "gthread"]);
    command.args(["--workers", "1", "--threads", "16", "--keep-alive", "75", "--bind"]);
    command.arg(format!("127.0.0.1:{port}")).arg("moto.server:create_backend_app(\"dynamodb\")");
    command
}

/// An address that nobody listens on. Some peers can't choose a port themselves and report it.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
