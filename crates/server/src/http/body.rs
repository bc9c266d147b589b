//! Reads a request's body, bounded in size and time, and decompresses it.

use std::io::Read;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{EXPECT, HeaderMap};
use tokio::time::{Instant, timeout_at};

use super::BODY_SIZE_BYTES_MAX;
use super::head::{self, ContentEncoding};
use super::memory::{BodyMemory, Share, UNIT_SIZE_BYTES};
use super::transfer_rate::{TransferProgress, TransferVerdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    TooLarge,
    /// The client sent nothing, or too little, for too long.
    Stalled,
    /// The connection broke, or the chunks are malformed.
    Broken,
    /// The compressed stream does not match its encoding.
    Corrupt,
    /// Other bodies held all the memory for too long, or need it more.
    NoMemory,
}

/// How much of an oversized body to read and drop before responding. A client that is still sending
/// does not read the response, and would see a reset instead.
const DISCARDED_SIZE_BYTES_MAX: u64 = 4 * BODY_SIZE_BYTES_MAX as u64;

/// A body as sent. It holds its share of the memory for as long as it lives.
pub struct ReceivedBody<'m> {
    pub bytes: Bytes,
    share: Share<'m>,
}

impl BodyMemory {
    /// Reads a body as sent, as memory for it becomes available.
    pub async fn receive(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        stall_timeout: Duration,
    ) -> Result<ReceivedBody<'_>, BodyError> {
        let mut share = self.share(stall_timeout);
        let bytes = read(headers, BodySource::new(body, stall_timeout), &mut share).await?;
        Ok(ReceivedBody { bytes, share })
    }

    /// Reads and drops a body that nobody needs, so that its client reads the response. Returns
    /// whether that was all of it.
    pub async fn discard(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        stall_timeout: Duration,
    ) -> bool {
        // A client that waits for permission to send has not sent anything, and never will now.
        let is_sent = !headers.contains_key(EXPECT);
        let is_bounded = head::content_length(headers).unwrap_or(0) <= DISCARDED_SIZE_BYTES_MAX;
        let share = self.share(stall_timeout);
        is_sent && is_bounded && discard(BodySource::new(body, stall_timeout), &share).await
    }
}

async fn read(
    headers: &HeaderMap,
    mut source: BodySource,
    share: &mut Share<'_>,
) -> Result<Bytes, BodyError> {
    let announced = head::content_length(headers).unwrap_or(0);
    if announced > BODY_SIZE_BYTES_MAX as u64 {
        if !headers.contains_key(EXPECT) && announced <= DISCARDED_SIZE_BYTES_MAX {
            discard(source, share).await;
        }
        return Err(BodyError::TooLarge);
    }
    // A small body arrives in one piece, which is then used without copying.
    let Some(first) = source.next_chunk(share).await? else {
        return Ok(Bytes::new());
    };
    source.cover(share, first.len()).await?;
    if source.body.is_end_stream() {
        return Ok(first);
    }
    let mut next = source.next_chunk(share).await?;
    if next.is_none() {
        return Ok(first);
    }
    let mut collected = BytesMut::new();
    collected.extend_from_slice(&first);
    while let Some(chunk) = next {
        let size_bytes = collected.len() + chunk.len();
        if size_bytes > BODY_SIZE_BYTES_MAX {
            discard(source, share).await;
            return Err(BodyError::TooLarge);
        }
        source.cover(share, size_bytes).await?;
        collected.extend_from_slice(&chunk);
        next = source.next_chunk(share).await?;
    }
    Ok(collected.freeze())
}

/// Returns whether all was read.
async fn discard(mut source: BodySource, share: &Share<'_>) -> bool {
    let mut discarded = 0;
    loop {
        match source.next_chunk(share).await {
            Ok(Some(chunk)) => discarded += chunk.len() as u64,
            Ok(None) => return true,
            Err(_) => return false,
        }
        if discarded > DISCARDED_SIZE_BYTES_MAX {
            return false;
        }
    }
}

impl ReceivedBody<'_> {
    /// Whether the body is large enough to have a share of the memory.
    pub fn holds_memory(&self) -> bool {
        !self.share.is_empty()
    }

    /// Undoes the content encoding. The decompressed size has the same bound as the compressed one,
    /// so a small body cannot fill the memory.
    pub async fn unpacked(&mut self, encoding: ContentEncoding) -> Result<Bytes, BodyError> {
        let packed = self.bytes.clone();
        match encoding {
            ContentEncoding::Identity => Ok(packed),
            // Several gzip members in a row form one body.
            ContentEncoding::Gzip => self.unpack(&mut MultiGzDecoder::new(packed.reader())).await,
            // Several deflate streams don't.
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

/// The source of a body, and its pace.
struct BodySource {
    body: Incoming,
    stall_timeout: Duration,
    /// Starts when a read first had to wait.
    pace: Option<TransferProgress>,
}

impl BodySource {
    fn new(body: Incoming, stall_timeout: Duration) -> BodySource {
        BodySource { body, stall_timeout, pace: None }
    }

    async fn next_chunk(&mut self, share: &Share<'_>) -> Result<Option<Bytes>, BodyError> {
        loop {
            let Some(frame) = self.next_frame(share).await? else { return Ok(None) };
            // Nobody uses trailers.
            let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
            if let Some(pace) = &mut self.pace {
                let now = Instant::now();
                pace.moved(data.len(), now);
                check(pace.judge(now, share.is_contended()))?;
            }
            return Ok(Some(data));
        }
    }

    /// Reserves memory for what has arrived. While that waits for others, the client cannot send.
    async fn cover(&mut self, share: &mut Share<'_>, size_bytes: usize) -> Result<(), BodyError> {
        let Some(pace) = &mut self.pace else { return share.cover(size_bytes).await };
        let since = Instant::now();
        let covered = share.cover(size_bytes).await;
        pace.excuse(since.elapsed());
        covered
    }

    async fn next_frame(
        &mut self,
        share: &Share<'_>,
    ) -> Result<Option<hyper::Result<Frame<Bytes>>>, BodyError> {
        let BodySource { body, stall_timeout, pace } = self;
        let mut frame = pin!(body.frame());
        let first = std::future::poll_fn(|context| Poll::Ready(frame.as_mut().poll(context))).await;
        if let Poll::Ready(frame) = first {
            return Ok(frame);
        }
        let pace =
            pace.get_or_insert_with(|| TransferProgress::new(*stall_timeout, Instant::now()));
        loop {
            let look = pace.next_look(Instant::now(), !share.is_empty());
            if let Ok(frame) = timeout_at(look, frame.as_mut()).await {
                return Ok(frame);
            }
            check(pace.judge(Instant::now(), share.is_contended()))?;
        }
    }
}

fn check(verdict: TransferVerdict) -> Result<(), BodyError> {
    match verdict {
        TransferVerdict::GoOn => Ok(()),
        TransferVerdict::TooSlow => Err(BodyError::Stalled),
        TransferVerdict::Displaced => Err(BodyError::NoMemory),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[tokio::test]
    async fn unpacking_takes_what_the_unpacked_body_needs() {
        let memory = BodyMemory::default();
        let units = memory.available_units();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![b'1'; 1 << 20]).unwrap();
        let bytes = Bytes::from(encoder.finish().unwrap());
        let mut body = ReceivedBody { bytes, share: memory.share(Duration::from_secs(60)) };
        assert_eq!((memory.available_units(), body.holds_memory()), (units, false));
        assert_eq!(body.unpacked(ContentEncoding::Gzip).await.unwrap().len(), 1 << 20);
        assert_eq!((memory.available_units(), body.holds_memory()), (units - 17, true));
    }
}
