//! A network between a node and its PostgreSQL, or between two servers, that fails on demand.
//!
//! Some faults last until they are lifted. Others happen once, at the next COMMIT. It also counts
//! statements.

mod messages;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use messages::Messages;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkFault {
    None,
    /// The connection ends before the next COMMIT arrives.
    CutBefore,
    /// The next COMMIT arrives, and the connection ends before its response.
    CutAfter,
    /// The node's connection ends, but the server's stays open. The next COMMIT and everything sent
    /// with it arrive later.
    Late(Duration),
    /// No response arrives until the next COMMIT has been sent.
    HoldAnswers,
    /// Every connection ends, and no new one is accepted. Lasts until it is lifted.
    Down,
    /// Nothing passes, but no connection ends. Lasts; what is sent meanwhile arrives later.
    Silent,
    /// Everything takes this long, in each direction. Lasts.
    Slow(Duration),
}

impl NetworkFault {
    fn lasts(self) -> bool {
        matches!(
            self,
            NetworkFault::None | NetworkFault::Down | NetworkFault::Silent | NetworkFault::Slow(_)
        )
    }

    fn delay(self) -> Duration {
        match self {
            NetworkFault::Slow(delay) => delay,
            _ => Duration::ZERO,
        }
    }
}

/// Listens on a port of its own, and passes everything on to another port of this machine. Dropping
/// it ends all connections.
pub struct Proxy {
    port: u16,
    target: u16,
    fault: Arc<watch::Sender<NetworkFault>>,
    traffic: Arc<Traffic>,
    runtime: Option<Runtime>,
}

/// What has been sent through all connections, and when answers may pass.
struct Traffic {
    statements: watch::Sender<usize>,
    /// No answer gets through before this many statements were sent.
    held_until: AtomicUsize,
    /// So many bytes may still be sent before the network falls silent.
    bytes_left: AtomicU64,
    connections: AtomicUsize,
}

impl Traffic {
    fn may_send(&self, bytes: usize) -> bool {
        let take = |left: u64| left.checked_sub(bytes as u64);
        self.bytes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }
}

const COMMIT: &[u8] = b"COMMIT\0";
/// The length of a message's head in PostgreSQL's protocol.
const MESSAGE_HEAD_BYTES: usize = 5;
/// Long enough for a server to execute what has just arrived.
const ARRIVAL: Duration = Duration::from_millis(50);

impl Proxy {
    /// # Panics
    /// If there is no port to listen on.
    pub fn start(target: u16) -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a socket");
        let port = listener.local_addr().expect("its address").port();
        let fault = Arc::new(watch::Sender::new(NetworkFault::None));
        let statements = watch::Sender::new(0);
        let traffic = Arc::new(Traffic {
            statements,
            held_until: AtomicUsize::new(0),
            bytes_left: AtomicU64::new(u64::MAX),
            connections: AtomicUsize::new(0),
        });
        let (faults, shared) = (Arc::clone(&fault), Arc::clone(&traffic));
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (faults, shared) = (Arc::clone(&faults), Arc::clone(&shared));
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    serve(client, target, faults, Arc::clone(&shared)).await;
                    shared.connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Proxy { port, target, fault, traffic, runtime: Some(runtime) }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the same database, through the proxy.
    pub fn url(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.target), &format!(":{}/", self.port))
    }

    pub fn set(&self, fault: NetworkFault) {
        self.fault.send_replace(fault);
    }

    /// How many statements were sent: each ends with a Sync, or is a simple query.
    pub fn statements(&self) -> usize {
        *self.traffic.statements.borrow()
    }

    /// Holds every answer back until this many statements have been sent. Whoever waits for an
    /// answer before waits forever.
    pub fn hold_answers_until(&self, statements: usize) {
        self.traffic.held_until.store(statements, Ordering::SeqCst);
        // Answers that wait look again.
        self.traffic.statements.send_modify(|_| ());
    }

    /// Lets this many bytes more pass to the server, and then nothing ([`NetworkFault::Silent`]).
    pub fn silence_after(&self, bytes: u64) {
        self.traffic.bytes_left.store(bytes, Ordering::SeqCst);
    }

    pub fn is_silent(&self) -> bool {
        *self.fault.borrow() == NetworkFault::Silent
    }

    /// Ends all connections, with what is under way, and lets new ones pass.
    pub fn reset(&self) {
        self.set(NetworkFault::Down);
        self.silence_after(u64::MAX);
        // Whoever listens to the network sees that it was down, and not only that it is up again.
        while self.traffic.connections.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.set(NetworkFault::None);
    }

    pub fn has_struck(&self) -> bool {
        *self.fault.borrow() == NetworkFault::None
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Takes the fault for this COMMIT, if there is one.
fn strike(fault: &watch::Sender<NetworkFault>) -> NetworkFault {
    let mut taken = NetworkFault::None;
    fault.send_if_modified(|fault| {
        if fault.lasts() {
            return false;
        }
        taken = std::mem::replace(fault, NetworkFault::None);
        true
    });
    taken
}

async fn serve(
    client: TcpStream,
    target: u16,
    fault: Arc<watch::Sender<NetworkFault>>,
    traffic: Arc<Traffic>,
) {
    let mut network = fault.subscribe();
    if !is_open(&mut network, |fault| fault != NetworkFault::Silent).await {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an option of the socket");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Stops the responses.
    let cut = watch::Sender::new(false);
    let (answering, is_cut) = (Arc::clone(&traffic), cut.subscribe());
    let answers = tokio::spawn(answer(from_server, to_client, network, is_cut, answering));
    ask(from_client, Line::to(to_server), &fault, &cut, &traffic).await;
    cut.send_replace(true);
    let _ended = answers.await;
}

/// Waits until the network lets bytes pass. Returns whether it still has connections then.
async fn is_open(
    network: &mut watch::Receiver<NetworkFault>,
    passes: impl Fn(NetworkFault) -> bool,
) -> bool {
    match network.wait_for(|fault| passes(*fault)).await {
        Ok(fault) => *fault != NetworkFault::Down,
        Err(_) => false,
    }
}

async fn ask(
    mut from: OwnedReadHalf,
    to: Line,
    fault: &watch::Sender<NetworkFault>,
    cut: &watch::Sender<bool>,
    traffic: &Traffic,
) {
    let mut messages = Messages::default();
    let mut network = fault.subscribe();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = network.wait_for(|fault| *fault == NetworkFault::Down) => return,
        };
        let Ok(count @ 1..) = read else { return };
        if !traffic.may_send(count) {
            fault.send_if_modified(|fault| {
                let is_up = *fault != NetworkFault::Down;
                if is_up {
                    *fault = NetworkFault::Silent;
                }
                is_up
            });
        }
        if !is_open(&mut network, |fault| fault != NetworkFault::Silent).await {
            return;
        }
        let sent = &buffer[..count];
        let statements = messages.statements_in(sent);
        traffic.statements.send_modify(|sum| *sum += statements);
        let commit = sent.windows(COMMIT.len()).position(|window| window == COMMIT);
        let struck = if commit.is_some() { strike(fault) } else { NetworkFault::None };
        match struck {
            NetworkFault::CutBefore => {
                let before = commit.unwrap_or(0).saturating_sub(MESSAGE_HEAD_BYTES);
                to.send(&sent[..before], Duration::ZERO);
                return;
            }
            NetworkFault::CutAfter => {
                cut.send_replace(true);
                to.send(sent, Duration::ZERO);
                // Until the server has executed it.
                sleep(ARRIVAL).await;
                return;
            }
            NetworkFault::Late(delay) => {
                cut.send_replace(true);
                drop(from);
                to.send(sent, delay);
                sleep(delay + ARRIVAL).await;
                return;
            }
            _ => {
                let delay = network.borrow().delay();
                if !to.send(sent, delay) {
                    return;
                }
            }
        }
    }
}

async fn answer(
    mut from: OwnedReadHalf,
    to: OwnedWriteHalf,
    mut network: watch::Receiver<NetworkFault>,
    mut cut: watch::Receiver<bool>,
    traffic: Arc<Traffic>,
) {
    let to = Line::to(to);
    let mut statements = traffic.statements.subscribe();
    let may_pass = |sent: &usize| *sent >= traffic.held_until.load(Ordering::SeqCst);
    let passes = |fault| !matches!(fault, NetworkFault::HoldAnswers | NetworkFault::Silent);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => return to.cut(),
            read = from.read(&mut buffer) => read,
        };
        let Ok(count @ 1..) = read else { return };
        let is_open = tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => false,
            is_open = async {
                is_open(&mut network, passes).await && statements.wait_for(may_pass).await.is_ok()
            } => is_open,
        };
        if !is_open {
            return to.cut();
        }
        let delay = network.borrow().delay();
        if !to.send(&buffer[..count], delay) {
            return;
        }
    }
}

/// One direction of a connection. What is sent comes out after its delay, in order; what comes
/// later does not wait for what came before. It ends once all has come out.
struct Line {
    bytes: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    delivery: JoinHandle<()>,
}

impl Line {
    fn to(mut end: OwnedWriteHalf) -> Line {
        let (bytes, mut coming) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
        let delivery = tokio::spawn(async move {
            while let Some((due, bytes)) = coming.recv().await {
                sleep_until(due).await;
                if end.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        });
        Line { bytes, delivery }
    }

    /// Returns whether the other end still takes something.
    fn send(&self, bytes: &[u8], delay: Duration) -> bool {
        self.bytes.send((Instant::now() + delay, bytes.to_vec())).is_ok()
    }

    /// Ends at once.
    fn cut(self) {
        self.delivery.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net;
    use std::thread;

    use super::*;

    /// A server that sends everything back, and the proxy in front of it.
    fn echo() -> (Proxy, impl Fn() -> net::TcpStream) {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap().port());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut back = stream.try_clone().unwrap();
                    let _ended = std::io::copy(&mut &stream, &mut back);
                });
            }
        });
        let port = proxy.port();
        (proxy, move || net::TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    fn exchange(stream: &mut net::TcpStream, text: &[u8]) -> Vec<u8> {
        stream.write_all(text).unwrap();
        let mut back = vec![0; text.len()];
        let read = stream.read_exact(&mut back);
        if read.is_ok() { back } else { Vec::new() }
    }

    #[test]
    fn a_slow_network_delays_both_ways() {
        let (proxy, connect) = echo();
        let mut stream = connect();
        assert_eq!(exchange(&mut stream, b"one"), b"one");
        proxy.set(NetworkFault::Slow(Duration::from_millis(50)));
        let started = std::time::Instant::now();
        assert_eq!(exchange(&mut stream, b"two"), b"two");
        assert!(started.elapsed() >= Duration::from_millis(100));
    }

    #[test]
    fn a_silent_network_keeps_what_was_sent_for_later() {
        let (proxy, connect) = echo();
        let mut stream = connect();
        assert_eq!(exchange(&mut stream, b"one"), b"one");
        proxy.set(NetworkFault::Silent);
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert_eq!(exchange(&mut stream, b"two"), b"");
        proxy.set(NetworkFault::None);
        stream.set_read_timeout(None).unwrap();
        let mut back = [0; 3];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"two");
    }

    #[test]
    fn a_network_that_is_down_has_no_connections() {
        let (proxy, connect) = echo();
        let mut stream = connect();
        assert_eq!(exchange(&mut stream, b"one"), b"one");
        proxy.set(NetworkFault::Down);
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        assert_eq!(connect().read(&mut [0; 1]).unwrap_or(0), 0);
        proxy.set(NetworkFault::None);
        assert_eq!(exchange(&mut connect(), b"two"), b"two");
    }
}
