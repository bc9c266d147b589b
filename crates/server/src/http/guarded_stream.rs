//! A stream that fails when its peer stops reading for too long, or reads too slowly. Without this,
//! clients that never read would hold their connections, and the responses in them, forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::memory::BodyMemory;
use super::transfer_rate::{TransferProgress, TransferVerdict};

/// Responses up to this size are joined before they are written. Sending one piece saves the kernel
/// more work than copying so few bytes costs.
const JOINED_SIZE_BYTES_MAX: usize = 2048;

pub struct GuardedStream<S = TcpStream> {
    stream: S,
    stall_timeout: Duration,
    /// The memory that unread responses hold.
    memory: BodyMemory,
    /// The pace of the current response, from when a write first had to wait for the peer.
    pace: Option<TransferProgress>,
    /// Runs while a write waits for the peer.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> GuardedStream<S> {
    pub fn new(stream: S, stall_timeout: Duration, memory: BodyMemory) -> GuardedStream<S> {
        GuardedStream { stream, stall_timeout, memory, pace: None, stalled: None }
    }

    /// Passes a finished write on and stops the timer. An unfinished one waits until the peer is
    /// too slow.
    fn guard(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            self.stalled = None;
            let count = written?;
            if let Some(pace) = &mut self.pace {
                let now = Instant::now();
                pace.moved(count, now);
                check(pace.judge(now, self.memory.is_contended()))?;
            }
            return Poll::Ready(Ok(count));
        }
        let now = Instant::now();
        let pace = self.pace.get_or_insert_with(|| TransferProgress::new(self.stall_timeout, now));
        let clock = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(pace.next_look(now, HOLDS_MEMORY))));
        loop {
            ready!(clock.as_mut().poll(context));
            let now = Instant::now();
            check(pace.judge(now, self.memory.is_contended()))?;
            clock.as_mut().reset(pace.next_look(now, HOLDS_MEMORY));
        }
    }
}

/// A response that the system does not accept at once is large enough to be counted.
const HOLDS_MEMORY: bool = true;

fn check(verdict: TransferVerdict) -> io::Result<()> {
    let why = match verdict {
        TransferVerdict::GoOn => return Ok(()),
        TransferVerdict::TooSlow => "the client does not read",
        TransferVerdict::Displaced => "the client reads slowly while others wait for memory",
    };
    Err(io::Error::new(io::ErrorKind::TimedOut, why))
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

    /// Called when all of a response has been written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pace = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The slices as one piece, if they fit.
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

    fn guarded<S>(stream: S) -> GuardedStream<S> {
        GuardedStream::new(stream, STALL_TIMEOUT, BodyMemory::default())
    }

    /// Writes a response to a peer that reads a byte now and then, always before the stall timeout.
    async fn write_to_slow_reader(answer_size_bytes: usize) -> io::Result<()> {
        let (near, mut far) = duplex(1);
        let mut stream = guarded(near);
        let reading = tokio::spawn(async move {
            while far.read_u8().await.is_ok() {
                tokio::time::sleep(STALL_TIMEOUT / 20).await;
            }
        });
        let written = stream.write_all(&vec![0; answer_size_bytes]).await;
        reading.abort();
        written
    }

    #[tokio::test(start_paused = true)]
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
            let mut stream = guarded(near);
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
        let mut stream = guarded(near);
        let reading = tokio::spawn(async move { while far.read_u8().await.is_ok() {} });
        stream.write_all(&[0; 100]).await.unwrap();
        stream.flush().await.unwrap();
        assert_eq!(stream.pace, None);
        reading.abort();
    }
}
