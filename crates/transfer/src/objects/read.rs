//! Objects as streams of bytes for code that blocks, such as decompression and parsing.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes};
use futures_util::TryStreamExt;
use md5::{Digest, Md5};
use object_store::{GetOptions, GetRange};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{Bucket, Object, ObjectError, path};

/// How many parts of a body wait for the reader.
const PARTS_AHEAD: usize = 16;
/// How often a body that breaks off is continued without getting any further.
const ATTEMPTS_MAX: u32 = 5;
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// The bytes of an object. It blocks its thread while it waits for them, so it must not be used on
/// one that runs asynchronous tasks.
pub struct ObjectReader {
    parts: Receiver<Result<Bytes, ObjectError>>,
    part: Bytes,
    /// How many bytes are still to come. The sender may be gone before it has sent them.
    left: u64,
    position: Arc<AtomicU64>,
}

impl Bucket {
    /// Starts to read an object. `md5` is its checksum in base64, if somebody knows it.
    ///
    /// # Panics
    /// Outside a runtime of Tokio.
    pub fn read(&self, object: &Object, md5: Option<String>) -> ObjectReader {
        let (sender, parts) = channel(PARTS_AHEAD);
        let left = object.size_bytes;
        let (bucket, object) = (self.clone(), object.clone());
        tokio::spawn(async move {
            if let Err(error) = bucket.send(&object, md5.as_deref(), &sender).await {
                // Nobody listens any more if the reader has given up.
                let _ = sender.send(Err(error)).await;
            }
        });
        ObjectReader { parts, part: Bytes::new(), left, position: Arc::default() }
    }

    /// Sends the parts of an object, and continues where a body breaks off.
    async fn send(
        &self,
        object: &Object,
        md5: Option<&str>,
        parts: &Sender<Result<Bytes, ObjectError>>,
    ) -> Result<(), ObjectError> {
        let mut progress = Progress { sent: 0, digest: md5.map(|_| Md5::new()) };
        let (mut attempts, mut pause) = (0, PAUSE_FIRST);
        while progress.sent < object.size_bytes {
            let before = progress.sent;
            let outcome = self.send_from(object, &mut progress, parts).await;
            if progress.sent > before {
                (attempts, pause) = (0, PAUSE_FIRST);
            }
            let error = match outcome {
                Ok(Sent::All) if progress.sent >= object.size_bytes => break,
                Ok(Sent::NobodyListens) => return Ok(()),
                Ok(Sent::All) => ObjectError::Truncated {
                    key: object.key.clone(),
                    actual: progress.sent,
                    expected: object.size_bytes,
                },
                Err(error) => error,
            };
            attempts += 1;
            if !error.is_transient() || attempts >= ATTEMPTS_MAX {
                return Err(error);
            }
            tracing::warn!(key = object.key, %error, "reading an object was interrupted; resuming");
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        progress.check(object, md5)
    }

    async fn send_from(
        &self,
        object: &Object,
        progress: &mut Progress,
        parts: &Sender<Result<Bytes, ObjectError>>,
    ) -> Result<Sent, ObjectError> {
        let options = GetOptions {
            if_match: object.etag.clone(),
            range: (progress.sent > 0).then_some(GetRange::Offset(progress.sent)),
            ..GetOptions::default()
        };
        let key = Some(object.key.as_str());
        let found = self.store.get_opts(&path(&object.key)?, options).await;
        let mut body = found.map_err(|error| self.error(error, key))?.into_stream();
        while let Some(part) = body.try_next().await.map_err(|error| self.error(error, key))? {
            progress.sent += part.len() as u64;
            if let Some(digest) = &mut progress.digest {
                digest.update(&part);
            }
            if parts.send(Ok(part)).await.is_err() {
                return Ok(Sent::NobodyListens);
            }
        }
        Ok(Sent::All)
    }
}

enum Sent {
    /// Everything that the store sent.
    All,
    NobodyListens,
}

struct Progress {
    sent: u64,
    digest: Option<Md5>,
}

impl Progress {
    fn check(self, object: &Object, md5: Option<&str>) -> Result<(), ObjectError> {
        let actual = self.digest.map(|digest| STANDARD.encode(digest.finalize()));
        match (actual, md5) {
            (Some(actual), Some(expected)) if actual != expected => Err(ObjectError::Checksum {
                key: object.key.clone(),
                actual,
                expected: expected.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

impl ObjectReader {
    /// Where it is in the object, for those who watch it.
    pub fn position(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.position)
    }

    /// The object's error behind an error of reading it.
    pub fn object_error(error: &io::Error) -> Option<&ObjectError> {
        error.get_ref()?.downcast_ref()
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                None if self.left == 0 => return Ok(0),
                None => {
                    let detail = "reading was interrupted".to_owned();
                    return Err(io::Error::other(ObjectError::Unavailable { detail }));
                }
                Some(Ok(part)) => {
                    self.left = self.left.saturating_sub(part.len() as u64);
                    self.part = part;
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
            }
        }
        let length = buffer.len().min(self.part.len());
        self.part.copy_to_slice(&mut buffer[..length]);
        self.position.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
