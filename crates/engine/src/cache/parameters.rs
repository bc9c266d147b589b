//! The parameters of a request as bytes: equal bytes, equal requests.

use std::hash::{Hash, Hasher};

use zenobe_store::Key;

/// Requests with more parameters than this are not worth remembering.
const SIZE_BYTES_MAX: usize = 64 << 10;

/// `None` if the request is too large. Derived implementations of `Hash` write everything that
/// `Eq` compares, and write lengths and variants too, so that no two values write the same bytes.
pub(super) fn parameters(request: &impl Hash) -> Option<Key> {
    let mut bytes = Bytes::default();
    request.hash(&mut bytes);
    (!bytes.is_too_long).then(|| bytes.written.into())
}

#[derive(Default)]
struct Bytes {
    written: Vec<u8>,
    is_too_long: bool,
}

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        match self.written.len() + bytes.len() <= SIZE_BYTES_MAX {
            true => self.written.extend_from_slice(bytes),
            false => self.is_too_long = true,
        }
    }

    fn finish(&self) -> u64 {
        unreachable!("the bytes are the result")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_have_different_bytes() {
        let differ = |one: &[&str], other: &[&str]| parameters(&one) != parameters(&other);
        assert!(differ(&["ab", "c"], &["a", "bc"]));
        assert!(differ(&["a"], &["a", ""]));
        assert_ne!(parameters(&(None::<u8>, Some(1_u8))), parameters(&(Some(1_u8), None::<u8>)));
        assert_eq!(parameters(&["a", "b"]), parameters(&["a", "b"]));
    }

    #[test]
    fn a_large_request_has_none() {
        assert!(parameters(&"a".repeat(SIZE_BYTES_MAX / 2)).is_some());
        assert_eq!(parameters(&"a".repeat(SIZE_BYTES_MAX)), None);
        assert_eq!(parameters(&vec!["a".repeat(1000); 100]), None);
    }
}
