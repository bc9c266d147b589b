//! Three PostgreSQL servers under Patroni, with one of two standbys before each acknowledgement,
//! and an etcd.
//!
//! Between the servers, and between each agent and etcd, there is a network that can fail. Nodes
//! have their own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

use rand::RngExt;
use rand::rngs::StdRng;
use zenobe_testing::{NetworkFault, Process, Proxy, TemporaryDirectory, free_port, psql, wait_for};

use super::faults::Fault;
use super::nodes::RECOVERY_TIME_MAX;

const MEMBERS: usize = 3;

pub struct Patroni {
    members: Vec<Member>,
    /// The directory of PostgreSQL's programs.
    programs: PathBuf,
    _etcd: Process,
    /// Dropped last.
    _directory: TemporaryDirectory,
}

/// A server and its agent.
struct Member {
    name: String,
    port: u16,
    rest_port: u16,
    data: PathBuf,
    configuration: PathBuf,
    /// How the other servers reach this one.
    peers: Proxy,
    /// How the agent reaches etcd.
    etcd: Proxy,
    agent: Option<Process>,
}

impl Patroni {
    /// # Panics
    /// If something is missing or does not start.
    pub fn start() -> Patroni {
        let directory = TemporaryDirectory::new("cluster");
        let programs = PathBuf::from(variable("ZENOBE_POSTGRES_BIN"));
        let (etcd_port, etcd) = start_etcd(directory.path());
        let members = (1..=MEMBERS)
            .map(|number| Member::new(directory.path(), number, etcd_port, &programs))
            .collect();
        let mut patroni = Patroni { members, programs, _etcd: etcd, _directory: directory };
        // The first to come creates the database, and the others copy it.
        for member in &mut patroni.members {
            member.start();
        }
        patroni.wait_until_whole();
        patroni
    }

    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.port).collect()
    }

    pub fn primary_port(&self) -> u16 {
        self.members[self.primary()].port
    }

    /// Runs SQL on the primary.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let done = wait_for(RECOVERY_TIME_MAX, || {
            let primary = self.try_primary()?;
            self.try_execute(self.members[primary].port, database, sql)
        });
        done.unwrap_or_else(|| panic!("no primary carries out {sql}"))
    }

    /// `None` if the server is not there, or not the primary any more.
    fn try_execute(&self, port: u16, database: &str, sql: &str) -> Option<String> {
        let mut command = psql(&self.programs, port, database, sql);
        let output = command.env("PGCONNECT_TIMEOUT", "5").output().expect("psql runs");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn primary(&self) -> usize {
        let found = wait_for(RECOVERY_TIME_MAX, || self.try_primary());
        found.unwrap_or_else(|| panic!("there is no primary:\n{}", self.output()))
    }

    /// The one that has the lock in etcd, by its own account.
    fn try_primary(&self) -> Option<usize> {
        self.members.iter().position(|member| member.ask("GET", "/primary", "").0 == 200)
    }

    /// Waits until both standbys follow the primary.
    fn wait_until_whole(&self) {
        let count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        let whole = wait_for(RECOVERY_TIME_MAX, || {
            thread::sleep(Duration::from_millis(200));
            let port = self.members[self.try_primary()?].port;
            let streaming = self.try_execute(port, "postgres", count)?;
            let is_quorum = "SELECT current_setting('synchronous_standby_names') LIKE 'ANY 1 %,%'";
            let quorum = self.try_execute(port, "postgres", is_quorum)?;
            (streaming.trim() == "2" && quorum.trim() == "t").then_some(())
        });
        assert!(whole.is_some(), "the stores do not recover:\n{}", self.output());
    }

    fn output(&self) -> String {
        let output = |member: &Member| {
            let text = member.agent.as_ref().map_or(String::new(), |agent| agent.output().text());
            format!("{}:\n{text}", member.name)
        };
        self.members.iter().map(output).collect()
    }

    /// Lets a fault of the stores happen, and waits until they are whole again.
    pub fn suffer(&mut self, fault: Fault, random: &mut StdRng) {
        let primary = self.primary();
        match fault {
            Fault::PrimaryKilled => {
                self.members[primary].kill_postgres();
            }
            Fault::PrimaryLost => {
                self.members[primary].kill();
                self.wait_for_another_primary(primary);
                self.members[primary].start();
            }
            Fault::StandbyLost => {
                let standby = (primary + random.random_range(1..MEMBERS)) % MEMBERS;
                self.members[standby].kill();
                thread::sleep(Duration::from_secs(3));
                self.members[standby].start();
            }
            Fault::StoresCutOff => {
                self.members[primary].peers.set(NetworkFault::Down);
                thread::sleep(Duration::from_millis(random.random_range(1_000..6_000)));
                self.members[primary].peers.set(NetworkFault::None);
            }
            Fault::PrimaryIsolated => {
                self.members[primary].peers.set(NetworkFault::Down);
                self.members[primary].etcd.set(NetworkFault::Down);
                self.wait_for_another_primary(primary);
                self.members[primary].peers.set(NetworkFault::None);
                self.members[primary].etcd.set(NetworkFault::None);
            }
            Fault::Switchover => {
                let name = &self.members[primary].name;
                let body = format!("{{\"leader\": \"{name}\"}}");
                let (status, text) = self.members[primary].ask("POST", "/switchover", &body);
                assert_eq!(status, 200, "{text}");
                self.wait_for_another_primary(primary);
            }
            other => panic!("{other:?} is no fault of the stores"),
        }
        self.wait_until_whole();
    }

    fn wait_for_another_primary(&self, old: usize) {
        let found = wait_for(RECOVERY_TIME_MAX, || {
            thread::sleep(Duration::from_millis(50));
            self.try_primary().filter(|primary| *primary != old)
        });
        assert!(found.is_some(), "no standby takes over:\n{}", self.output());
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
    }
}

impl Member {
    fn new(directory: &Path, number: usize, etcd_port: u16, programs: &Path) -> Member {
        let name = format!("store{number}");
        let (port, rest_port) = (free_port(), free_port());
        let peers = Proxy::start(port);
        let etcd = Proxy::start(etcd_port);
        let data = directory.join(&name);
        let configuration = directory.join(format!("{name}.yml"));
        let text = include_str!("patroni.yml")
            .replace("{name}", &name)
            .replace("{port}", &port.to_string())
            .replace("{peers}", &peers.port().to_string())
            .replace("{etcd}", &etcd.port().to_string())
            .replace("{rest}", &rest_port.to_string())
            .replace("{directory}", &directory.display().to_string())
            .replace("{programs}", &programs.display().to_string());
        fs::write(&configuration, text).expect("a file can be written");
        Member { name, port, rest_port, data, configuration, peers, etcd, agent: None }
    }

    fn start(&mut self) {
        let mut command = as_ordinary_user(&variable("ZENOBE_PATRONI"));
        command.args(["-m", "patroni"]).arg(&self.configuration);
        self.agent = Some(Process::start(&mut command).expect("Patroni can be run"));
    }

    /// `kill -9` of the agent and of the server.
    fn kill(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            agent.kill();
        }
        self.kill_postgres();
    }

    /// `kill -9` of all processes of the server at once, as if its machine were gone.
    fn kill_postgres(&self) {
        let Ok(text) = fs::read_to_string(self.data.join("postmaster.pid")) else { return };
        let Some(postmaster) = text.lines().next().map(|line| line.trim().to_owned()) else {
            return;
        };
        let mut all = children_of(&postmaster);
        all.insert(0, postmaster);
        // Those that have ended in the meantime are no failure.
        let _ended = Command::new("kill").arg("-9").args(&all).output().expect("kill can be run");
    }

    /// Asks the agent over HTTP. Returns the status, or 0 if there is no answer, and the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let exchange = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.rest_port))?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            let length = body.len();
            write!(
                stream,
                "{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = exchange().unwrap_or_default();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or(0), answer)
    }
}

fn start_etcd(directory: &Path) -> (u16, Process) {
    let (port, peer_port) = (free_port(), free_port());
    let url = format!("http://127.0.0.1:{port}");
    let peer_url = format!("http://127.0.0.1:{peer_port}");
    let mut command = as_ordinary_user(&variable("ZENOBE_ETCD"));
    command.arg("--data-dir").arg(directory.join("etcd"));
    command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
    command.args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url]);
    command.args(["--initial-cluster", &format!("default={peer_url}")]);
    let process = Process::start(&mut command).expect("etcd can be run");
    let answers = || TcpStream::connect(("127.0.0.1", port)).ok();
    let up = wait_for(RECOVERY_TIME_MAX, answers);
    assert!(up.is_some(), "etcd does not start:\n{}", process.output().text());
    (port, process)
}

/// PostgreSQL refuses to be root's. Root becomes somebody else in a namespace of its own, where
/// what belongs to it still does. What runs ends with these tests, however they end.
fn as_ordinary_user(program: &str) -> Command {
    let id = Command::new("id").arg("-u").output().expect("id can be run");
    let mut command = Command::new("env");
    if id.stdout.trim_ascii() == b"0" {
        command.args(["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]);
    }
    command.args(["setpriv", "--pdeathsig", "TERM", "--", program]);
    command
}

fn children_of(parent: &str) -> Vec<String> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes are listed").flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name is in parentheses and may hold anything; the parent is the second word behind.
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        if behind.split_whitespace().nth(1) == Some(parent) {
            children.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    children
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set; use `cargo xtask cluster`"))
}
