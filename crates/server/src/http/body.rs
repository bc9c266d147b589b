//! Reading a request's body: bounded in size and in time, unpacked if it is compressed.

use std::io::Read;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{EXPECT, HeaderMap, TRANSFER_ENCODING};
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
    UnknownEncoding,
}

/// How much of a body that is too large is read and dropped before the answer: a client that is
/// still sending doesn't read it, and would see a reset instead.
const DISCARDED_SIZE_BYTES_MAX: u64 = 4 * BODY_SIZE_BYTES_MAX as u64;

/// The memory that bodies take together, handed out in units.
pub struct BodyMemory {
    units: Semaphore,
}

/// Small bodies are not counted: what they take is bounded by the number of connections.
const UNCOUNTED_SIZE_BYTES_MAX: u64 = 64 * 1024;
const UNIT_SIZE_BYTES: usize = 64 * 1024;
/// A body may trickle in, but not for ever: this many times the stall timeout.
const STALL_TIMEOUTS_PER_BODY: u32 = 10;

/// A body as sent, with its share of the memory for as long as it lives.
pub struct ReceivedBody<'a> {
    pub bytes: Bytes,
    _share: Option<SemaphorePermit<'a>>,
}

impl Default for BodyMemory {
    fn default() -> BodyMemory {
        BodyMemory { units: Semaphore::new(BODIES_SIZE_BYTES_MAX / UNIT_SIZE_BYTES) }
    }
}

impl BodyMemory {
    /// Reads a body as sent, once there is room for it.
    pub async fn receive(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        stall_timeout: Duration,
    ) -> Result<ReceivedBody<'_>, BodyError> {
        let receive = async {
            let share = match largest_size(headers) {
                0..=UNCOUNTED_SIZE_BYTES_MAX => None,
                size => Some(self.share(size).await),
            };
            let bytes = read(headers, body, stall_timeout).await?;
            Ok(ReceivedBody { bytes, _share: share })
        };
        let received = tokio::time::timeout(stall_timeout * STALL_TIMEOUTS_PER_BODY, receive).await;
        received.unwrap_or(Err(BodyError::Stalled))
    }

    async fn share(&self, size_bytes: u64) -> SemaphorePermit<'_> {
        let size_bytes = size_bytes.min(BODY_SIZE_BYTES_MAX as u64) as usize;
        let units = size_bytes.div_ceil(UNIT_SIZE_BYTES) as u32;
        self.units.acquire_many(units).await.expect("the semaphore is never closed")
    }
}

/// The most that a body may take once it is unpacked.
fn largest_size(headers: &HeaderMap) -> u64 {
    match (head::content_length(headers), ContentEncoding::of(headers)) {
        (Some(length), Some(ContentEncoding::Identity)) => length,
        (Some(0), _) => 0,
        (None, _) if !headers.contains_key(TRANSFER_ENCODING) => 0,
        _ => BODY_SIZE_BYTES_MAX as u64,
    }
}

async fn read(
    headers: &HeaderMap,
    mut body: Incoming,
    stall_timeout: Duration,
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
    let mut next = next_chunk(&mut body, stall_timeout).await?;
    if next.is_none() {
        return Ok(first);
    }
    let mut collected = BytesMut::with_capacity(announced as usize);
    collected.extend_from_slice(&first);
    while let Some(chunk) = next {
        if collected.len() + chunk.len() > BODY_SIZE_BYTES_MAX {
            discard(body, stall_timeout).await;
            return Err(BodyError::TooLarge);
        }
        collected.extend_from_slice(&chunk);
        next = next_chunk(&mut body, stall_timeout).await?;
    }
    Ok(collected.freeze())
}

/// Undoes the content encoding. The unpacked size has the same bound as the packed one, so that a small
/// body cannot fill the memory.
pub fn decode(encoding: ContentEncoding, body: Bytes) -> Result<Bytes, BodyError> {
    match encoding {
        ContentEncoding::Identity => Ok(body),
        // Several gzip members in a row are one body.
        ContentEncoding::Gzip => read_bounded(MultiGzDecoder::new(body.reader())),
        ContentEncoding::Deflate => read_bounded(ZlibDecoder::new(body.reader())),
    }
}

async fn next_chunk(
    body: &mut Incoming,
    stall_timeout: Duration,
) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = tokio::time::timeout(stall_timeout, body.frame()).await;
        match frame.map_err(|_| BodyError::Stalled)? {
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

async fn discard(mut body: Incoming, stall_timeout: Duration) {
    let mut discarded = 0;
    while let Ok(Some(chunk)) = next_chunk(&mut body, stall_timeout).await {
        discarded += chunk.len() as u64;
        if discarded > DISCARDED_SIZE_BYTES_MAX {
            return;
        }
    }
}

fn read_bounded(decoder: impl Read) -> Result<Bytes, BodyError> {
    let mut decoded = Vec::new();
    let mut bounded = decoder.take(BODY_SIZE_BYTES_MAX as u64 + 1);
    bounded.read_to_end(&mut decoded).map_err(|_| BodyError::Corrupt)?;
    match decoded.len() > BODY_SIZE_BYTES_MAX {
        true => Err(BodyError::TooLarge),
        false => Ok(decoded.into()),
    }
}
