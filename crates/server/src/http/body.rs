//! Reading a request's body: bounded in size and in time, unpacked if it is compressed.

use std::io::Read;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{EXPECT, HeaderMap};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::head::{self, ContentEncoding};
use super::{BODIES_SIZE_BYTES_MAX, BODY_SIZE_BYTES_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    TooLarge,
    /// The client sent nothing for too long.
    Stalled,
    /// The connection broke, or the chunks are malformed.
    Broken,
    /// The compressed stream is not what its encoding says.
    Corrupt,
    /// Other bodies have taken all the memory for too long.
    NoRoom,
}

/// How much of a body that is too large is read and dropped before the answer: a client that is
/// still sending doesn't read it, and would see a reset instead.
const DISCARDED_SIZE_BYTES_MAX: u64 = 4 * BODY_SIZE_BYTES_MAX as u64;

/// The memory that bodies take together, handed out in units.
pub struct BodyMemory {
    units: Semaphore,
}

/// Small bodies are not counted: what they take is bounded by the number of connections.
const UNCOUNTED_SIZE_BYTES_MAX: usize = 64 * 1024;
const UNIT_SIZE_BYTES: usize = 64 * 1024;
/// A body may trickle in, but not for ever: this many times the stall timeout.
const STALL_TIMEOUTS_PER_BODY: u32 = 10;

/// A body as sent, with its share of the memory for as long as it lives.
pub struct ReceivedBody<'a> {
    pub bytes: Bytes,
    share: Share<'a>,
}

/// What one request has of the memory. It grows with what has arrived and never with what was merely
/// announced, so that idle connections take nothing from the others.
struct Share<'a> {
    memory: &'a BodyMemory,
    permit: Option<SemaphorePermit<'a>>,
    /// How long to wait for others to give memory back. Those who wait hold some, too, so somebody has to
    /// give up.
    timeout: Duration,
}

impl Default for BodyMemory {
    fn default() -> BodyMemory {
        BodyMemory { units: Semaphore::new(BODIES_SIZE_BYTES_MAX / UNIT_SIZE_BYTES) }
    }
}

impl BodyMemory {
    /// Reads a body as sent, as far as there is room for it.
    pub async fn receive(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        stall_timeout: Duration,
    ) -> Result<ReceivedBody<'_>, BodyError> {
        let receive = async {
            let mut share = self.share(stall_timeout);
            let bytes = read(headers, body, stall_timeout, &mut share).await?;
            Ok(ReceivedBody { bytes, share })
        };
        let received = within(stall_timeout * STALL_TIMEOUTS_PER_BODY, receive).await;
        received.unwrap_or(Err(BodyError::Stalled))
    }

    fn share(&self, timeout: Duration) -> Share<'_> {
        Share { memory: self, permit: None, timeout }
    }
}

impl Share<'_> {
    /// Grows until it covers so many bytes.
    async fn cover(&mut self, size_bytes: usize) -> Result<(), BodyError> {
        let needed = match size_bytes {
            0..=UNCOUNTED_SIZE_BYTES_MAX => 0,
            _ => size_bytes.div_ceil(UNIT_SIZE_BYTES),
        };
        let held = self.permit.as_ref().map_or(0, SemaphorePermit::num_permits);
        if needed <= held {
            return Ok(());
        }
        let more = self.memory.units.acquire_many((needed - held) as u32);
        let more = within(self.timeout, more).await.ok_or(BodyError::NoRoom)?;
        let more = more.expect("the semaphore is never closed");
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }
}

async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    stall_timeout: Duration,
    share: &mut Share<'_>,
) -> Result<Bytes, BodyError> {
    let announced = head::content_length(headers).unwrap_or(0);
    if announced > BODY_SIZE_BYTES_MAX as u64 {
        // A client that waits for permission to send hasn't sent anything, and now never will.
        if !headers.contains_key(EXPECT) && announced <= DISCARDED_SIZE_BYTES_MAX {
            discard(body, stall_timeout).await;
        }
        return Err(BodyError::TooLarge);
    }
    // Small bodies arrive in one piece, which is then used as it is.
    let Some(first) = next_chunk(&mut body, stall_timeout).await? else {
        return Ok(Bytes::new());
    };
    share.cover(first.len()).await?;
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut next = next_chunk(&mut body, stall_timeout).await?;
    if next.is_none() {
        return Ok(first);
    }
    let mut collected = BytesMut::new();
    collected.extend_from_slice(&first);
    while let Some(chunk) = next {
        let size_bytes = collected.len() + chunk.len();
        if size_bytes > BODY_SIZE_BYTES_MAX {
            discard(body, stall_timeout).await;
            return Err(BodyError::TooLarge);
        }
        share.cover(size_bytes).await?;
        collected.extend_from_slice(&chunk);
        next = next_chunk(&mut body, stall_timeout).await?;
    }
    Ok(collected.freeze())
}

impl ReceivedBody<'_> {
    /// Undoes the content encoding. The unpacked size has the same bound as the packed one, so that a small
    /// body cannot fill the memory.
    pub async fn unpacked(&mut self, encoding: ContentEncoding) -> Result<Bytes, BodyError> {
        let packed = self.bytes.clone();
        match encoding {
            ContentEncoding::Identity => Ok(packed),
            // Several gzip members in a row are one body.
            ContentEncoding::Gzip => self.unpack(&mut MultiGzDecoder::new(packed.reader())).await,
            // Several deflate streams are not.
            ContentEncoding::Deflate => {
                let mut decoder = ZlibDecoder::new(packed.reader());
                let unpacked = self.unpack(&mut decoder).await?;
                match decoder.get_ref().get_ref().has_remaining() {
                    true => Err(BodyError::Corrupt),
                    false => Ok(unpacked),
                }
            }
        }
    }

    async fn unpack(&mut self, decoder: &mut impl Read) -> Result<Bytes, BodyError> {
        let mut unpacked = Vec::new();
        loop {
            let step = decoder.by_ref().take(UNIT_SIZE_BYTES as u64).read_to_end(&mut unpacked);
            if step.map_err(|_| BodyError::Corrupt)? == 0 {
                return Ok(unpacked.into());
            }
            if unpacked.len() > BODY_SIZE_BYTES_MAX {
                return Err(BodyError::TooLarge);
            }
            self.share.cover(self.bytes.len() + unpacked.len()).await?;
        }
    }
}

async fn next_chunk(
    body: &mut Incoming,
    stall_timeout: Duration,
) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = within(stall_timeout, body.frame()).await;
        match frame.ok_or(BodyError::Stalled)? {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Broken),
            // Trailers are of no use to anybody.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_) => continue,
            },
        }
    }
}

/// What comes of the future, unless it takes too long. Most are ready at once (small bodies come together with their
/// head), and only those that are not set a clock.
async fn within<F: Future>(timeout: Duration, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    match first {
        Poll::Ready(output) => Some(output),
        Poll::Pending => tokio::time::timeout(timeout, future).await.ok(),
    }
}

async fn discard(mut body: Incoming, stall_timeout: Duration) {
    let mut discarded = 0;
    while let Ok(Some(chunk)) = next_chunk(&mut body, stall_timeout).await {
        discarded += chunk.len() as u64;
        if discarded > DISCARDED_SIZE_BYTES_MAX {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const UNITS: usize = BODIES_SIZE_BYTES_MAX / UNIT_SIZE_BYTES;
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_share_grows_with_its_body_and_is_given_back() {
        let memory = BodyMemory::default();
        let mut share = memory.share(LONG);
        for (size_bytes, units) in [(1, 0), (65_536, 0), (65_537, 2), (1 << 20, 16), (1, 16)] {
            share.cover(size_bytes).await.unwrap();
            assert_eq!(memory.units.available_permits(), UNITS - units, "{size_bytes}");
        }
        drop(share);
        assert_eq!(memory.units.available_permits(), UNITS);
    }

    #[tokio::test]
    async fn those_who_wait_too_long_for_memory_give_up() {
        let memory = BodyMemory::default();
        let mut first = memory.share(LONG);
        first.cover(BODIES_SIZE_BYTES_MAX).await.unwrap();
        let mut second = memory.share(Duration::from_millis(1));
        assert_eq!(second.cover(100_000).await, Err(BodyError::NoRoom));
        drop(first);
        assert_eq!(second.cover(100_000).await, Ok(()));
    }

    #[tokio::test]
    async fn unpacking_takes_what_the_unpacked_body_needs() {
        let memory = BodyMemory::default();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![b'1'; 1 << 20]).unwrap();
        let bytes = Bytes::from(encoder.finish().unwrap());
        let mut body = ReceivedBody { bytes, share: memory.share(LONG) };
        assert_eq!(memory.units.available_permits(), UNITS);
        assert_eq!(body.unpacked(ContentEncoding::Gzip).await.unwrap().len(), 1 << 20);
        assert_eq!(memory.units.available_permits(), UNITS - 17);
    }
}
