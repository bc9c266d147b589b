//! Requests over a connection, from the bytes of a head to the bytes of a response.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use zenobe::access::AccessControl;
use zenobe::dispatch::ApiHandler;
use zenobe::hot_keys::HotKeys;
use zenobe::http::BodyMemory;
use zenobe::http::allowed_hosts_and_origins::{CrossSitePolicy, KnownHosts};
use zenobe::http::connection::{self, ConnectionOptions};
use zenobe::http::overload::{self, Shedding};
use zenobe::http::service::{Root, Service};
use zenobe::http::workers::Workers;
use zenobe::observer::Observability;
use zenobe::services::Services;
use zenobe::shutdown::{self, Drain};
use zenobe_api::GatheredFacts;
use zenobe_engine::schema::Namespace;
use zenobe_monitoring::traffic::Traffic;

use crate::case::{Case, Measured};
use crate::database::{Backend, LoadedDatabase};
use crate::requests;

/// Longer than any run.
const TIMEOUT: Duration = Duration::from_secs(600);

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "http.get-item", iterations: 512, prepare: get_item },
        Case { name: "http.put-item", iterations: 512, prepare: put_item },
        Case { name: "http.query-25", iterations: 128, prepare: query },
        Case { name: "http.get-item.watched", iterations: 512, prepare: get_item_watched },
        Case { name: "http.put-item.watched", iterations: 512, prepare: put_item_watched },
    ]
}

fn get_item() -> Measured {
    exchange("GetItem", &requests::get_item(), &Observability::default())
}

fn get_item_watched() -> Measured {
    exchange("GetItem", &requests::get_item(), &default_observability())
}

fn put_item() -> Measured {
    exchange("PutItem", &requests::put_item(), &Observability::default())
}

fn put_item_watched() -> Measured {
    exchange("PutItem", &requests::put_item(), &default_observability())
}

fn query() -> Measured {
    exchange("Query", &requests::query(), &Observability::default())
}

/// What watches requests unless options say otherwise.
fn default_observability() -> Observability {
    let mut observability =
        Observability { facts: GatheredFacts::IfMetered, ..Observability::default() };
    observability.add(Arc::new(HotKeys::default()));
    observability.add(Arc::new(Traffic::default()));
    observability
}

/// One client on one connection to a server with one thread. The client only writes and reads, so
/// nearly everything that is counted belongs to the server. Work inside system calls is not
/// counted.
fn exchange(
    operation: &'static str,
    bodies: &[Vec<u8>],
    observability: &Observability,
) -> Measured {
    let mut connection =
        TcpStream::connect(start_server(observability)).expect("the server listens");
    connection.set_nodelay(true).expect("it is connected");
    let requests: Vec<Vec<u8>> = bodies.iter().map(|body| request(operation, body)).collect();
    let mut requests = requests.into_iter().cycle();
    let mut buffer = vec![0; 64 << 10];
    Box::new(move |iterations| {
        for request in requests.by_ref().take(iterations) {
            connection.write_all(&request).expect("the server reads");
            let answer = receive(&mut connection, &mut buffer);
            assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", answer.escape_ascii());
        }
    })
}

fn start_server(observability: &Observability) -> SocketAddr {
    let database = LoadedDatabase::load(Backend::Memory);
    let service = Arc::new(service(&database, observability));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("a listener can be");
    let address = listener.local_addr().expect("it is bound");
    let long = TIMEOUT;
    let options = ConnectionOptions {
        connections_max: 100,
        connections_per_peer_max: None,
        idle_timeout: long,
        stall_timeout: long,
        shutdown_timeout: long,
    };
    // The thread ends with the process.
    std::thread::spawn(move || {
        let _database = database;
        let mut builder = Builder::new_current_thread();
        builder.enable_all().on_thread_park(overload::note_rest);
        let runtime = builder.build().expect("it can be built");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is a listener");
            let (_trigger, listening) = shutdown::channel();
            connection::serve(listener, Workers::here(), service, options, listening).await;
        });
    });
    address
}

/// The server with its default options: it reads credentials and does not verify them.
fn service(database: &LoadedDatabase, observability: &Observability) -> Service<ApiHandler> {
    let Namespace { account, region } = (*database.namespace).clone();
    Service {
        handler: ApiHandler::new(
            &database.api,
            &database.store,
            None,
            Services::default(),
            observability.facts,
        ),
        access: AccessControl::new(None, false, Namespace { account, region }).on_loopback(true),
        cross_site: CrossSitePolicy::new(KnownHosts::Loopback, Vec::new(), Vec::new()),
        root: Root::Health,
        metrics: observability.metrics.clone(),
        observer: observability.observer(),
        shedding: Some(Shedding::default()),
        body_memory: BodyMemory::default(),
        stall_timeout: TIMEOUT,
        drain: Drain::default(),
    }
}

/// As an SDK sends it.
fn request(operation: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\n\
         host: localhost:8000\r\n\
         content-type: application/x-amz-json-1.0\r\n\
         x-amz-target: DynamoDB_20120810.{operation}\r\n\
         x-amz-date: 20231114T221320Z\r\n\
         authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
         Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\
         user-agent: aws-sdk-rust/1.3 os/linux lang/rust\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Reads one whole response. Responses of the same size arrive in the same number of pieces in
/// every run.
fn receive<'a>(connection: &mut TcpStream, buffer: &'a mut [u8]) -> &'a [u8] {
    let mut received = 0;
    loop {
        let count = connection.read(&mut buffer[received..]).expect("the server answers");
        assert!(count > 0, "the server closed the connection");
        received += count;
        if is_whole(&buffer[..received]) {
            return &buffer[..received];
        }
    }
}

/// Bodies are JSON objects, so they end with a brace, and the brace comes with the server's last
/// write.
fn is_whole(answer: &[u8]) -> bool {
    answer.ends_with(b"}")
}
