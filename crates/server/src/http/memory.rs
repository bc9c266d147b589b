//! The memory that the bodies of requests and responses take together.
//!
//! A body takes its share as it arrives, and a response keeps its share until the client has read
//! it. Requests for more than is available wait, so clients that upload slowly or do not read
//! cannot fill the memory of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zenobe_api::{Operation, ResponseSize};

use super::BODIES_SIZE_BYTES_MAX;
use super::body::BodyError;
use super::within;

/// Small bodies are not counted: the number of connections bounds what they take.
const UNCOUNTED_SIZE_BYTES_MAX: usize = 64 * 1024;
pub const UNIT_SIZE_BYTES: usize = 64 * 1024;
/// What a page of items or records may need as JSON.
const PAGE_ANSWER_SIZE_BYTES: usize = 2 << 20;
/// What nearly all batches need. Reserving more would make many of them wait for each other in
/// vain.
const BATCH_ANSWER_SIZE_BYTES: usize = 4 << 20;

#[derive(Clone)]
pub struct BodyMemory {
    units: Arc<Semaphore>,
    /// How many requests are waiting for units.
    waiting: Arc<AtomicUsize>,
}

/// One body's share of the memory. It grows with what has arrived, never with what was merely
/// announced, so idle connections take nothing from others.
pub struct Share<'m> {
    memory: &'m BodyMemory,
    permit: Option<OwnedSemaphorePermit>,
    /// How long to wait for others to release memory. Those who wait hold some as well, so somebody
    /// has to give up.
    timeout: Duration,
}

/// The bytes of a response and their share, which is released when the last of them is written.
struct HeldAnswer {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for BodyMemory {
    fn default() -> BodyMemory {
        BodyMemory {
            units: Arc::new(Semaphore::new(BODIES_SIZE_BYTES_MAX / UNIT_SIZE_BYTES)),
            waiting: Arc::default(),
        }
    }
}

impl BodyMemory {
    pub fn share(&self, timeout: Duration) -> Share<'_> {
        Share { memory: self, permit: None, timeout }
    }

    /// Whether anybody is waiting for memory.
    pub fn is_contended(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits until there is memory for an operation's response. For operations with large
    /// responses, reserves what they may need.
    pub async fn reserve_response(
        &self,
        operation: Operation,
        timeout: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, BodyError> {
        let size_bytes = match operation.response_size() {
            ResponseSize::Batch => BATCH_ANSWER_SIZE_BYTES,
            ResponseSize::Page => PAGE_ANSWER_SIZE_BYTES,
            // It is counted once it exists. It only has to wait until some memory is free.
            ResponseSize::Small if self.units.available_permits() > 0 => return Ok(None),
            ResponseSize::Small => UNIT_SIZE_BYTES,
        };
        self.acquire(size_bytes.div_ceil(UNIT_SIZE_BYTES), timeout).await.map(Some)
    }

    /// Lets a response keep what it needs of its reservation until it is written. It takes anything
    /// beyond that only if available: the response exists already.
    pub fn hold(&self, bytes: Bytes, reserved: Option<OwnedSemaphorePermit>) -> Bytes {
        let needed = units(bytes.len());
        if needed == 0 {
            return bytes;
        }
        let mut share = reserved.or_else(|| Arc::clone(&self.units).try_acquire_many_owned(0).ok());
        let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if let Some(share) = &mut share {
            if held > needed {
                drop(share.split(held - needed));
            }
            let missing = needed.saturating_sub(held).min(self.units.available_permits());
            if let Ok(more) = Arc::clone(&self.units).try_acquire_many_owned(missing as u32) {
                share.merge(more);
            }
        }
        match share {
            Some(share) => Bytes::from_owner(HeldAnswer { bytes, _share: share }),
            None => bytes,
        }
    }

    async fn acquire(
        &self,
        units: usize,
        timeout: Duration,
    ) -> Result<OwnedSemaphorePermit, BodyError> {
        let units = units as u32;
        if let Ok(permit) = Arc::clone(&self.units).try_acquire_many_owned(units) {
            return Ok(permit);
        }
        let _waiting = Waiting::new(&self.waiting);
        let acquired = within(timeout, Arc::clone(&self.units).acquire_many_owned(units)).await;
        Ok(acquired.ok_or(BodyError::NoMemory)?.expect("the semaphore is never closed"))
    }

    /// What bodies take now, as far as they are counted.
    pub fn used_size_bytes(&self) -> usize {
        BODIES_SIZE_BYTES_MAX - self.units.available_permits() * UNIT_SIZE_BYTES
    }

    #[cfg(test)]
    pub fn available_units(&self) -> usize {
        self.units.available_permits()
    }
}

impl Share<'_> {
    /// Grows until it covers this many bytes.
    pub async fn cover(&mut self, size_bytes: usize) -> Result<(), BodyError> {
        let held = self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let needed = units(size_bytes);
        if needed <= held {
            return Ok(());
        }
        let more = self.memory.acquire(needed - held, self.timeout).await?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.permit.is_none()
    }

    /// Whether others wait for memory while this share holds some.
    pub fn is_contended(&self) -> bool {
        !self.is_empty() && self.memory.is_contended()
    }
}

fn units(size_bytes: usize) -> usize {
    match size_bytes {
        0..=UNCOUNTED_SIZE_BYTES_MAX => 0,
        _ => size_bytes.div_ceil(UNIT_SIZE_BYTES),
    }
}

/// Counts a waiting request.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn new(waiting: &AtomicUsize) -> Waiting<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: usize = BODIES_SIZE_BYTES_MAX / UNIT_SIZE_BYTES;
    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_share_grows_with_its_body_and_is_given_back() {
        let memory = BodyMemory::default();
        let mut share = memory.share(LONG);
        for (size_bytes, units) in [(1, 0), (65_536, 0), (65_537, 2), (1 << 20, 16), (1, 16)] {
            share.cover(size_bytes).await.unwrap();
            assert_eq!(memory.available_units(), UNITS - units, "{size_bytes}");
        }
        drop(share);
        assert_eq!(memory.available_units(), UNITS);
    }

    #[tokio::test]
    async fn those_who_wait_too_long_for_memory_give_up() {
        let memory = BodyMemory::default();
        let mut first = memory.share(LONG);
        first.cover(BODIES_SIZE_BYTES_MAX).await.unwrap();
        let mut second = memory.share(SHORT);
        assert!(!first.is_contended());
        assert_eq!(second.cover(100_000).await, Err(BodyError::NoMemory));
        drop(first);
        assert_eq!(second.cover(100_000).await, Ok(()));
    }

    #[tokio::test]
    async fn those_who_hold_memory_see_that_others_wait() {
        let memory = BodyMemory::default();
        let mut holder = memory.share(LONG);
        holder.cover(BODIES_SIZE_BYTES_MAX).await.unwrap();
        let other = memory.clone();
        let waiting = tokio::spawn(async move { other.share(LONG).cover(100_000).await });
        while !holder.is_contended() {
            tokio::task::yield_now().await;
        }
        drop(holder);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert!(!memory.is_contended());
    }

    #[tokio::test]
    async fn answers_keep_their_share_until_they_are_written() {
        let memory = BodyMemory::default();
        let reserved = memory.reserve_response(Operation::Query, LONG).await.unwrap();
        assert_eq!(memory.available_units(), UNITS - 32);
        let answer = memory.hold(Bytes::from(vec![0; 1 << 20]), reserved);
        assert_eq!(memory.available_units(), UNITS - 16);
        let rest = answer.slice(1..);
        drop(answer);
        assert_eq!((memory.available_units(), rest.len()), (UNITS - 16, (1 << 20) - 1));
        drop(rest);
        assert_eq!(memory.available_units(), UNITS);

        let reserved = memory.reserve_response(Operation::Query, LONG).await.unwrap();
        let small = memory.hold(Bytes::from_static(b"{}"), reserved);
        assert_eq!((memory.available_units(), &small[..]), (UNITS, &b"{}"[..]));
        let larger = memory.reserve_response(Operation::Query, LONG).await.unwrap();
        let larger = memory.hold(Bytes::from(vec![0; 4 << 20]), larger);
        assert_eq!(memory.available_units(), UNITS - 64);
        drop(larger);
    }

    #[tokio::test]
    async fn every_operation_reserves_what_its_response_may_need() {
        let memory = BodyMemory::default();
        for operation in Operation::ALL {
            let reserved = memory.reserve_response(*operation, SHORT).await.unwrap();
            let size_bytes =
                reserved.map_or(0, |reserved| reserved.num_permits() * UNIT_SIZE_BYTES);
            let expected = match operation.response_size() {
                ResponseSize::Small => 0,
                ResponseSize::Page => PAGE_ANSWER_SIZE_BYTES,
                ResponseSize::Batch => BATCH_ANSWER_SIZE_BYTES,
            };
            assert_eq!(size_bytes, expected, "{operation:?}");
        }
    }

    #[tokio::test]
    async fn nothing_is_answered_while_unread_answers_take_all_memory() {
        let memory = BodyMemory::default();
        assert!(memory.reserve_response(Operation::GetItem, SHORT).await.unwrap().is_none());
        let unread = memory.hold(Bytes::from(vec![0; BODIES_SIZE_BYTES_MAX]), None);
        assert_eq!(memory.available_units(), 0);
        for operation in [Operation::GetItem, Operation::Query, Operation::BatchGetItem] {
            let reserved = memory.reserve_response(operation, SHORT).await.map(drop);
            assert_eq!(reserved, Err(BodyError::NoMemory));
        }
        drop(unread);
        assert!(memory.reserve_response(Operation::BatchGetItem, SHORT).await.is_ok());
    }
}
