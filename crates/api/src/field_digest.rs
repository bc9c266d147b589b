//! A digest of fields, by which requests are recognised: clients' tokens are bound to it.
//!
//! It protects clients from their own mistakes, so it must be good but not cryptographic. Clients hold digests and rows store
//! them while servers are updated, so the bytes that are hashed never change.

use xxhash_rust::xxh3::Xxh3;

/// Hashes every field with its length, so that no two lists of fields produce the same bytes.
pub(crate) struct FieldDigest(Xxh3);

impl FieldDigest {
    pub(crate) fn new() -> FieldDigest {
        FieldDigest(Xxh3::new())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.update(bytes);
    }

    pub(crate) fn text(&mut self, text: Option<&str>) {
        self.0.update(&[u8::from(text.is_some())]);
        self.bytes(text.unwrap_or_default().as_bytes());
    }

    pub(crate) fn length(&mut self, length: usize) {
        self.0.update(&(length as u64).to_le_bytes());
    }

    pub(crate) fn finish(&self) -> [u8; 16] {
        self.0.digest128().to_le_bytes()
    }
}
