//! A proxy that breaks connections at COMMIT, and that counts statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use zenobe_testing::Postgres;

/// What happens to the next COMMIT. Each fault happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The connection ends before COMMIT arrives.
    CutBefore,
    /// COMMIT arrives, and the connection ends before its response.
    CutAfter,
    /// The node's connection ends, but the server's stays open. COMMIT and everything sent with it arrive later.
    Late(Duration),
    /// No response arrives until the next COMMIT has been sent.
    HoldAnswers,
    /// Nothing passes, and every connection ends.
    Down,
}

pub struct Proxy {
    port: u16,
    fault: Arc<watch::Sender<Fault>>,
    traffic: Arc<Traffic>,
    _runtime: Runtime,
}

/// What has been sent through all connections, and when answers may pass.
struct Traffic {
    statements: watch::Sender<usize>,
    /// No answer gets through before this many statements were sent.
    held_until: AtomicUsize,
}

const COMMIT: &[u8] = b"COMMIT\0";

impl Proxy {
    pub fn start() -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a socket");
        let port = listener.local_addr().expect("its address").port();
        let fault = Arc::new(watch::Sender::new(Fault::None));
        let statements = watch::Sender::new(0);
        let traffic = Arc::new(Traffic { statements, held_until: AtomicUsize::new(0) });
        let (faults, shared) = (Arc::clone(&fault), Arc::clone(&traffic));
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, Arc::clone(&faults), Arc::clone(&shared)));
            }
        });
        Proxy { port, fault, traffic, _runtime: runtime }
    }

    /// The URL of the same database, through the proxy.
    pub fn url(&self, url: &str) -> String {
        let direct = format!(":{}/", Postgres::shared().port);
        url.replace(&direct, &format!(":{}/", self.port))
    }

    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// How many statements were sent: each ends with a Sync, or is a simple query.
    pub fn statements(&self) -> usize {
        *self.traffic.statements.borrow()
    }

    /// Holds every answer back until this many statements have been sent. Whoever waits for an answer before waits for ever.
    pub fn hold_answers_until(&self, statements: usize) {
        self.traffic.held_until.store(statements, Ordering::SeqCst);
        // Answers that wait look again.
        self.traffic.statements.send_modify(|_| ());
    }

    pub fn has_struck(&self) -> bool {
        *self.fault.borrow() == Fault::None
    }
}

/// Takes the fault for this COMMIT, if there is one.
fn strike(fault: &watch::Sender<Fault>) -> Fault {
    let mut taken = Fault::None;
    fault.send_if_modified(|fault| {
        if *fault == Fault::Down {
            return false;
        }
        taken = std::mem::replace(fault, Fault::None);
        taken != Fault::None
    });
    taken
}

async fn serve(client: TcpStream, fault: Arc<watch::Sender<Fault>>, traffic: Arc<Traffic>) {
    if *fault.borrow() == Fault::Down {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", Postgres::shared().port)).await else {
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an option of the socket");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Stops the responses.
    let cut = watch::Sender::new(false);
    let (answering, faults) = (Arc::clone(&traffic), fault.subscribe());
    let answers = tokio::spawn(answer(from_server, to_client, faults, cut.subscribe(), answering));
    ask(from_client, to_server, &fault, &cut, &traffic).await;
    cut.send_replace(true);
    let _ended = answers.await;
}

async fn ask(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: &watch::Sender<Fault>,
    cut: &watch::Sender<bool>,
    traffic: &Traffic,
) {
    let mut messages = Messages::default();
    let mut down = fault.subscribe();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = down.wait_for(|fault| *fault == Fault::Down) => return,
        };
        let Ok(count @ 1..) = read else { return };
        let sent = &buffer[..count];
        let statements = messages.statements_in(sent);
        traffic.statements.send_modify(|sum| *sum += statements);
        let commit = sent.windows(COMMIT.len()).position(|window| window == COMMIT);
        let struck = if commit.is_some() { strike(fault) } else { Fault::None };
        match struck {
            Fault::CutBefore => {
                // A message has a head of five bytes.
                let before = commit.unwrap_or(0).saturating_sub(5);
                let _gone = to.write_all(&sent[..before]).await;
                return;
            }
            Fault::CutAfter => {
                cut.send_replace(true);
                let _gone = to.write_all(sent).await;
                // Until the server has executed it.
                tokio::time::sleep(Duration::from_millis(50)).await;
                return;
            }
            Fault::Late(delay) => {
                cut.send_replace(true);
                drop(from);
                tokio::time::sleep(delay).await;
                let _gone = to.write_all(sent).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                return;
            }
            Fault::None | Fault::HoldAnswers | Fault::Down => {
                if to.write_all(sent).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn answer(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut fault: watch::Receiver<Fault>,
    mut cut: watch::Receiver<bool>,
    traffic: Arc<Traffic>,
) {
    let mut statements = traffic.statements.subscribe();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => return,
            read = from.read(&mut buffer) => read,
        };
        let Ok(count @ 1..) = read else { return };
        if fault.wait_for(|fault| *fault != Fault::HoldAnswers).await.is_err() || *cut.borrow() {
            return;
        }
        let may_pass = |sent: &usize| *sent >= traffic.held_until.load(Ordering::SeqCst);
        if statements.wait_for(may_pass).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// The messages of a client, which may come in pieces.
#[derive(Default)]
struct Messages {
    rest: Vec<u8>,
    has_begun: bool,
}

impl Messages {
    /// How many statements end in these bytes.
    fn statements_in(&mut self, sent: &[u8]) -> usize {
        self.rest.extend_from_slice(sent);
        let mut statements = 0;
        loop {
            // Only the first message has no letter in front of its length.
            let letter = usize::from(self.has_begun);
            let Some(length) = self.rest.get(letter..letter + 4) else { return statements };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.rest.len() < letter + length {
                return statements;
            }
            let is_statement = self.has_begun && matches!(self.rest[0], b'S' | b'Q');
            statements += usize::from(is_statement);
            self.rest.drain(..letter + length);
            self.has_begun = true;
        }
    }
}
