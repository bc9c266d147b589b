//! Nodes: servers without data, each with its own network to each store and its own idea of the
//! time.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::json;
use zenobe_testing::{
    Client, NetworkFault, Proxy, ServerProcess, Signal, server_binary, wait_for, without_options,
};

use super::ledger;

/// A store that comes back and a node that starts need this long at most, on a busy machine.
pub const RECOVERY_TIME_MAX: Duration = Duration::from_secs(180);

/// How long a node may be silent before others take over its background work.
pub const LEASE: Duration = Duration::from_secs(4);

pub struct Node {
    url: String,
    /// The node's network, one for each store.
    pub links: Vec<Proxy>,
    address: SocketAddr,
    server: Option<ServerProcess>,
}

impl Node {
    /// Starts a node on the stores that listen on these ports. Its clock differs from the
    /// machine's by `clock_offset_s`.
    pub fn start(store_ports: &[u16], database: &str, clock_offset_s: i64) -> Node {
        let links: Vec<Proxy> = store_ports.iter().map(|port| Proxy::start(*port)).collect();
        let hosts: Vec<String> =
            links.iter().map(|link| format!("127.0.0.1:{}", link.port())).collect();
        let url = format!("postgres://zenobe@{}/{database}?sslmode=disable", hosts.join(","));
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut node = Node { url, links, address: any_port, server: None };
        node.restart(clock_offset_s);
        node
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the node again on the same address.
    pub fn restart(&mut self, clock_offset_s: i64) {
        // A node that finds no primary ends, and is started again, as by any supervisor.
        let started = wait_for(RECOVERY_TIME_MAX, || {
            let mut command = Command::new(server_binary());
            without_options(&mut command);
            command.args(["serve", "--listen", &self.address.to_string(), "--store", &self.url]);
            command.args(["--stream-shards", "3", "--stream-shard-records", "500"]);
            command.args(["--lease-seconds", &LEASE.as_secs().to_string()]);
            // What only eventually consistent reads use.
            command.args(["--item-cache-mb", "16"]);
            if self.links.len() > 1 {
                command.arg("--eventual-reads-from-standbys");
            }
            command.env("LD_PRELOAD", clock_library());
            command.env("CLOCK_OFFSET_S", clock_offset_s.to_string());
            match ServerProcess::try_launch(&mut command) {
                Ok(server) => Some(server),
                Err(error) => {
                    eprintln!("a node does not start yet: {error}");
                    None
                }
            }
        });
        let server = started.expect("the node starts");
        self.address = server.address();
        self.server = Some(server);
    }

    pub fn kill(&mut self) {
        self.server.take().expect("the node runs").kill();
    }

    pub fn signal(&self, signal: Signal) {
        self.server.as_ref().expect("the node runs").signal(signal);
    }

    /// Does this to the network between the node and every store.
    pub fn disturb(&self, fault: NetworkFault) {
        self.links.iter().for_each(|link| link.set(fault));
    }

    /// Waits until the node reads and writes.
    pub fn wait_until_well(&self) {
        let mut client = Client::new(self.address);
        let probe = json!({"TableName": ledger::TABLE, "Item": {
            "pk": {"S": "probe"}, "sk": {"N": self.address.port().to_string()},
            "kind": {"S": "probe"},
        }});
        let well = wait_for(RECOVERY_TIME_MAX, || {
            let reply = client.call("PutItem", &probe).ok()?;
            reply.is_success().then_some(())
        });
        let output = || self.server.as_ref().map_or(String::new(), ServerProcess::output);
        assert!(well.is_some(), "a node does not recover:\n{}", output());
    }
}

/// The library that sets the clock of a process, compiled on first use.
fn clock_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/drill/clock.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clock.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        let status = compiler.arg(&library).arg(source).status().expect("a C compiler can be run");
        assert!(status.success(), "the library does not compile; see above");
        library
    })
}
