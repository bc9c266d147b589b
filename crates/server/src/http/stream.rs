//! A stream that fails when its peer doesn't read for too long, or reads too slowly. Without this, clients
//! that ask and hardly read would hold their connections, and the answers in them, for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// A client may read slowly, but has this many stall timeouts for an answer.
const STALL_TIMEOUTS_PER_ANSWER: u32 = 10;

/// Answers up to this size are joined before they are written: sending one piece costs the kernel less than gathering
/// several, by more than it takes to copy so little.
const JOINED_SIZE_BYTES_MAX: usize = 2048;

pub struct GuardedStream<S = TcpStream> {
    stream: S,
    stall_timeout: Duration,
    /// When the answer that is being written first had to wait for the peer.
    waiting_since: Option<Instant>,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> GuardedStream<S> {
    pub fn new(stream: S, stall_timeout: Duration) -> GuardedStream<S> {
        GuardedStream { stream, stall_timeout, waiting_since: None, stalled: None }
    }

    /// Passes a finished write on and stops the clock; lets an unfinished one wait until the clock
    /// has run out.
    fn guard<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timeout = self.stall_timeout;
        let waiting_since = *self.waiting_since.get_or_insert_with(Instant::now);
        let clock = self.stalled.get_or_insert_with(|| {
            let end = waiting_since + timeout * STALL_TIMEOUTS_PER_ANSWER;
            Box::pin(sleep_until(end.min(Instant::now() + timeout)))
        });
        ready!(clock.as_mut().poll(context));
        clock.as_mut().reset(Instant::now() + timeout);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.guard(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = [0; JOINED_SIZE_BYTES_MAX];
        let stream = Pin::new(&mut self.stream);
        let written = match joined(slices, &mut buffer) {
            Some(bytes) => stream.poll_write(context, bytes),
            None => stream.poll_write_vectored(context, slices),
        };
        self.guard(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Comes when all of an answer has been written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.waiting_since = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The slices in one piece, if they fit.
fn joined<'b>(
    slices: &[io::IoSlice<'_>],
    buffer: &'b mut [u8; JOINED_SIZE_BYTES_MAX],
) -> Option<&'b [u8]> {
    let mut end = 0;
    for slice in slices {
        let start = end;
        end += slice.len();
        buffer.get_mut(start..end)?.copy_from_slice(slice);
    }
    Some(&buffer[..end])
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const STALL_TIMEOUT: Duration = Duration::from_millis(100);

    /// Writes an answer to a peer that reads a byte now and then, always before the stall timeout.
    async fn write_to_slow_reader(answer_size_bytes: usize) -> io::Result<()> {
        let (near, mut far) = duplex(1);
        let mut stream = GuardedStream::new(near, STALL_TIMEOUT);
        let reading = tokio::spawn(async move {
            while far.read_u8().await.is_ok() {
                tokio::time::sleep(STALL_TIMEOUT / 20).await;
            }
        });
        let written = stream.write_all(&vec![0; answer_size_bytes]).await;
        reading.abort();
        written
    }

    #[tokio::test]
    async fn slow_readers_get_small_answers_and_not_large_ones() {
        write_to_slow_reader(5).await.unwrap();
        let error = write_to_slow_reader(1_000_000).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn heads_and_bodies_of_any_size_arrive_in_order() {
        for body_size_bytes in [0, 1, 1_947, 1_948, 1_949, 100_000] {
            let (head, body) = (vec![b'h'; 100], vec![b'b'; body_size_bytes]);
            let (near, mut far) = duplex(1 << 20);
            let mut stream = GuardedStream::new(near, STALL_TIMEOUT);
            let slices = [io::IoSlice::new(&head), io::IoSlice::new(&body)];
            let written = stream.write_vectored(&slices).await.unwrap();
            drop(stream);
            let mut read = Vec::new();
            far.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, [head, body].concat()[..written], "{body_size_bytes}");
            assert_eq!(written, 100 + body_size_bytes);
        }
    }

    #[tokio::test]
    async fn every_answer_has_its_own_time() {
        let (near, mut far) = duplex(1);
        let mut stream = GuardedStream::new(near, STALL_TIMEOUT);
        let reading = tokio::spawn(async move { while far.read_u8().await.is_ok() {} });
        stream.write_all(&[0; 100]).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.waiting_since, None);
        reading.abort();
    }
}
