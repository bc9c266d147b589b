//! What one thread has seen and the sketches have not.
//!
//! The sketches of a table are shared by all threads. A thread that added to them with every request
//! would wait for the others, and fetch every counter from another core's cache. So each thread
//! collects its requests here, and adds them to the sketches together.

use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::request_facts::{KeyScope, Part, RequestFacts};
use zenobe_engine::throughput::cause::{Access, Resource};

/// How many parts of requests a thread collects.
const PARTS_MAX: usize = 64;
/// How large their keys may be together.
const KEYS_SIZE_BYTES_MAX: usize = 32 << 10;
/// How many tables and indexes they may have.
const RESOURCES_MAX: usize = 16;

/// The parts of a thread's last requests. Reused, so collecting allocates nothing in the long run.
#[derive(Debug, Default)]
pub struct Pending {
    resources: Vec<Arc<Resource>>,
    parts: Vec<PendingPart>,
    /// The keys of the parts, one after the other.
    keys: Vec<u8>,
}

#[derive(Debug)]
struct PendingPart {
    /// The position of its table or index.
    resource: usize,
    key_end: usize,
    count: PartCount,
}

/// What is counted of a part of a request, besides its key.
#[derive(Debug, Clone, Copy)]
pub struct PartCount {
    /// The minute since the epoch in which the request was answered.
    pub minute: u64,
    /// How long the request took, if this is its first part of the table or index.
    pub elapsed: Option<Duration>,
    pub access: Access,
    pub halves: u64,
    pub scope: KeyScope,
    pub partition: u32,
    pub is_throttled: bool,
}

impl Pending {
    pub fn is_full(&self) -> bool {
        self.parts.len() >= PARTS_MAX
            || self.keys.len() >= KEYS_SIZE_BYTES_MAX
            || self.resources.len() >= RESOURCES_MAX
    }

    /// Collects a request.
    pub fn add(&mut self, facts: &RequestFacts, elapsed: Duration, minute: u64) {
        let begun = self.parts.len();
        for part in &facts.parts {
            let resource = self.position(&part.resource);
            // The last part has most likely used it, if any has.
            let is_first = self.parts[begun..].iter().rev().all(|it| it.resource != resource);
            self.push(resource, part, is_first.then_some(elapsed), minute);
        }
    }

    fn push(&mut self, resource: usize, part: &Part, elapsed: Option<Duration>, minute: u64) {
        let Part { access, halves, scope, partition, .. } = *part;
        let is_throttled = part.is_throttled();
        let count = PartCount { minute, elapsed, access, halves, scope, partition, is_throttled };
        self.keys.extend_from_slice(&part.key);
        self.parts.push(PendingPart { resource, key_end: self.keys.len(), count });
    }

    fn position(&mut self, resource: &Arc<Resource>) -> usize {
        // Each meter has one `Resource` for all requests.
        let known = self.resources.iter().position(|known| Arc::ptr_eq(known, resource));
        known.unwrap_or_else(|| {
            self.resources.push(Arc::clone(resource));
            self.resources.len() - 1
        })
    }

    /// The tables and indexes of the parts, each with its position.
    pub fn resources(&self) -> impl Iterator<Item = (usize, &Arc<Resource>)> {
        self.resources.iter().enumerate()
    }

    /// The parts of a table or index, each with its key.
    pub fn parts_of(&self, resource: usize) -> impl Iterator<Item = (&[u8], PartCount)> {
        let mut key_start = 0;
        let with_keys = self.parts.iter().map(move |part| {
            let key = &self.keys[key_start..part.key_end];
            key_start = part.key_end;
            (key, part)
        });
        let of_resource = with_keys.filter(move |(_, part)| part.resource == resource);
        of_resource.map(|(key, part)| (key, part.count))
    }

    pub fn clear(&mut self) {
        self.resources.clear();
        self.parts.clear();
        self.keys.clear();
        // One huge request must not keep its memory for good.
        self.keys.shrink_to(2 * KEYS_SIZE_BYTES_MAX);
        self.parts.shrink_to(2 * PARTS_MAX);
    }
}
