//! A server inside the test with a handler that acts on the operation's name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zenobe::access::AccessControl;
use zenobe::dispatch::{Circumstances, Dropped, Handler};
use zenobe::http::BodyMemory;
use zenobe::http::allowed_hosts_and_origins::CrossSitePolicy;
use zenobe::http::connection::{self, ConnectionOptions};
use zenobe::http::overload::Shedding;
use zenobe::http::service::{Root, Service};
use zenobe::http::workers::Workers;
use zenobe::metrics::Metrics;
use zenobe::observer::RequestObserver;
use zenobe::shutdown::{self, Drain, StopHandle};
use zenobe_api::{Operation, Response};
use zenobe_auth::Credentials;
use zenobe_engine::schema::Namespace;
use zenobe_store::Statistics;
use zenobe_testing::{Connection, Reply, wait_until};

/// The operations whose behaviour tests rely on.
pub const ECHO: &str = "DynamoDB_20120810.PutItem";
pub const NAMESPACE: &str = "DynamoDB_20120810.DescribeLimits";
pub const PANIC: &str = "DynamoDB_20120810.DeleteTable";
/// Responds with a JSON text of the size that the body names.
pub const LARGE: &str = "DynamoDB_20120810.Scan";
/// Occupies its thread until the test allows it to go on.
pub const BLOCK: &str = "DynamoDB_20120810.UpdateItem";
/// Responds once the test allows it.
pub const WAIT: &str = "DynamoDB_20120810.Query";

#[derive(Clone)]
pub struct Script {
    pub gate: Arc<Semaphore>,
    pub finished_waits: Arc<AtomicUsize>,
    pub is_blocked: Arc<AtomicBool>,
}

impl Handler for Script {
    async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        _: Circumstances,
        body: Bytes,
    ) -> Result<Response, Dropped> {
        let body = match operation {
            Operation::PutItem => body,
            Operation::DescribeLimits => {
                format!("{{\"{}\":\"{}\"}}", namespace.account, namespace.region).into()
            }
            Operation::DeleteTable => panic!("as the test wants"),
            Operation::Scan => {
                let size: usize = std::str::from_utf8(&body).unwrap().parse().unwrap();
                format!("\"{}\"", "a".repeat(size - 2)).into()
            }
            Operation::Query => {
                self.gate.acquire().await.unwrap().forget();
                self.finished_waits.fetch_add(1, Ordering::SeqCst);
                body
            }
            Operation::UpdateItem => {
                self.is_blocked.store(true, Ordering::SeqCst);
                while self.is_blocked.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                body
            }
            other => unreachable!("no test calls {}", other.name()),
        };
        // As the API does for somebody who observes requests.
        let facts = Some(Box::default());
        Ok(Response { status: 200, body, error: None, plan: None, facts })
    }

    fn statistics(&self) -> Statistics {
        Statistics { size_bytes: 4242, ..Statistics::default() }
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    pub script: Script,
    stop: StopHandle,
    serving: Option<JoinHandle<()>>,
    runtime: Runtime,
}

pub struct TestOptions {
    pub connections: ConnectionOptions,
    pub credentials: Option<Credentials>,
    pub namespaces_from_credentials: bool,
    pub cross_site: CrossSitePolicy,
    pub observer: Option<Arc<dyn RequestObserver>>,
    pub shedding: Option<Shedding>,
    /// One per processor, if not set.
    pub workers: Option<usize>,
}

impl Default for TestOptions {
    fn default() -> TestOptions {
        let long = Duration::from_secs(20);
        TestOptions {
            connections: ConnectionOptions {
                connections_max: 100,
                connections_per_peer_max: None,
                idle_timeout: long,
                stall_timeout: long,
                shutdown_timeout: long,
            },
            credentials: None,
            namespaces_from_credentials: false,
            cross_site: CrossSitePolicy::default(),
            observer: None,
            shedding: Some(Shedding::default()),
            workers: None,
        }
    }
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::start_with(TestOptions::default())
    }

    pub fn start_with(options: TestOptions) -> TestServer {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let script = Script {
            gate: Arc::new(Semaphore::new(0)),
            finished_waits: Arc::default(),
            is_blocked: Arc::default(),
        };
        let namespace = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
        let service = Arc::new(Service {
            handler: script.clone(),
            access: AccessControl::new(
                options.credentials,
                options.namespaces_from_credentials,
                namespace,
            ),
            cross_site: options.cross_site,
            root: Root::Health,
            metrics: Arc::new(Metrics::default()),
            observer: options.observer,
            shedding: options.shedding,
            body_memory: BodyMemory::default(),
            stall_timeout: options.connections.stall_timeout,
            drain: Drain::default(),
        });
        let (stop, listening) = shutdown::channel();
        let workers = match options.workers {
            Some(count) => Workers::start_many(count).unwrap(),
            None => Workers::start().unwrap(),
        };
        let serving = connection::serve(listener, workers, service, options.connections, listening);
        let serving = Some(runtime.spawn(serving));
        TestServer { address, script, stop, serving, runtime }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// Sends one request on a new connection.
    pub fn call(&self, target: &str, body: &[u8]) -> Reply {
        self.connect().call(target, body)
    }

    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Waits until the server has ended, which it must within `timeout`.
    pub fn join(&mut self, timeout: Duration) {
        let serving = self.serving.take().unwrap();
        let ended = self.runtime.block_on(async { tokio::time::timeout(timeout, serving).await });
        ended.expect("the server ends in time").unwrap();
    }

    /// How many connections the server counts, besides the one that asks.
    pub fn open_connections(&self) -> u64 {
        let reply = self.connect().send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").reply();
        let text = reply.text();
        let line = text.lines().find_map(|line| line.strip_prefix("zenobe_connections ")).unwrap();
        line.parse::<u64>().unwrap() - 1
    }

    pub fn wait_for_open_connections(&self, expected: u64) {
        wait_until(|| self.open_connections() == expected);
    }
}

/// Checks what every response of the service itself has.
pub fn assert_from_service(reply: &Reply) {
    let id = reply.header("x-amzn-requestid").expect("a request id");
    let is_valid = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    assert!(id.len() == 52 && id.bytes().all(is_valid), "{id}");
    let crc32 = crc32fast::hash(&reply.bytes).to_string();
    assert_eq!(reply.header("x-amz-crc32"), Some(crc32.as_str()));
    assert_eq!(reply.header("server"), Some("Server"));
    assert!(reply.header("date").is_some_and(|date| date.ends_with(" GMT")));
}
