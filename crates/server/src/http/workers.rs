//! The threads that serve connections.
//!
//! Each has its own runtime, and a connection stays on its thread from the first byte to the last.
//! A runtime that shares its connections among threads wakes a second thread for work that the
//! first one is about to do anyway: at a quarter of the highest rate that takes a quarter of the
//! processor time and doubles the 99th percentile.

use std::future::Future;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use zenobe_database::RuntimeThread;

use super::overload;

/// Threads that serve connections. Clones share them. Dropping the last one ends them, and what they
/// still serve.
#[derive(Clone)]
pub struct Workers {
    workers: Arc<[Worker]>,
}

struct Worker {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
    /// The thread of the runtime, if it is ours.
    _thread: Option<RuntimeThread>,
}

impl Workers {
    /// One per processor that the process may use.
    pub fn start() -> io::Result<Workers> {
        Workers::start_many(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    pub fn start_many(count: usize) -> io::Result<Workers> {
        let workers = (0..count).map(|_| Worker::start()).collect::<io::Result<_>>()?;
        Ok(Workers { workers })
    }

    /// Uses the caller's runtime instead of threads.
    pub fn here() -> Workers {
        let runtime = Handle::current();
        let worker = Worker { runtime, connections: Arc::default(), _thread: None };
        Workers { workers: Arc::new([worker]) }
    }

    /// Serves a connection on the thread with the fewest connections.
    pub fn serve<F: Future<Output = ()> + Send + 'static>(
        &self,
        connections: &mut JoinSet<()>,
        stream: TcpStream,
        serve: impl FnOnce(TcpStream) -> F + Send + 'static,
    ) -> io::Result<()> {
        let worker = self.workers.iter().min_by_key(|it| it.connections.load(Ordering::Relaxed));
        let Some(worker) = worker else { return Ok(()) };
        // A stream belongs to the runtime that created it.
        let stream = stream.into_std()?;
        let counted = Counted::new(&worker.connections);
        let connection = async move {
            let _counted = counted;
            match TcpStream::from_std(stream) {
                Ok(stream) => serve(stream).await,
                Err(error) => tracing::warn!(%error, "a connection cannot be served"),
            }
        };
        connections.spawn_on(connection, &worker.runtime);
        Ok(())
    }
}

impl Worker {
    fn start() -> io::Result<Worker> {
        let thread = RuntimeThread::start_noting_rest("zenobe-worker", overload::note_rest)?;
        let runtime = thread.runtime.clone();
        Ok(Worker { runtime, connections: Arc::default(), _thread: Some(thread) })
    }
}

/// Counts a connection for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(connections: &Arc<AtomicUsize>) -> Counted {
        connections.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(connections))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Workers;
    use std::sync::atomic::Ordering;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinSet;

    impl Workers {
        fn counts(&self) -> Vec<usize> {
            self.workers.iter().map(|it| it.connections.load(Ordering::Relaxed)).collect()
        }
    }

    /// Echoes bytes until the peer disconnects.
    async fn echo(mut stream: TcpStream) {
        while let Ok(byte) = stream.read_u8().await {
            stream.write_u8(byte).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_goes_to_the_thread_with_the_fewest() {
        let workers = Workers::start_many(2).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut serving = JoinSet::new();
        let mut peers = Vec::new();
        for opened in 1..=4 {
            peers.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            let (stream, _) = listener.accept().await.unwrap();
            workers.serve(&mut serving, stream, echo).unwrap();
            let counts = workers.counts();
            assert_eq!(counts.iter().sum::<usize>(), opened);
            assert!(counts[0].abs_diff(counts[1]) <= 1, "{counts:?}");
        }
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.write_u8(number as u8).await.unwrap();
            assert_eq!(usize::from(peer.read_u8().await.unwrap()), number);
        }
        peers.clear();
        while serving.join_next().await.is_some() {}
        assert_eq!(workers.counts(), [0, 0]);
    }

    #[tokio::test]
    async fn open_connections_end_with_the_threads() {
        let workers = Workers::start_many(1).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut serving = JoinSet::new();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        workers.serve(&mut serving, stream, echo).unwrap();
        peer.write_u8(7).await.unwrap();
        assert_eq!(peer.read_u8().await.unwrap(), 7);
        drop(workers);
        assert!(serving.join_next().await.unwrap().unwrap_err().is_cancelled());
        assert!(peer.read_u8().await.is_err(), "the connection is closed");
    }
}
