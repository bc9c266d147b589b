//! `x-amzn-RequestId`: 52 characters of `[A-Z0-9]`, as AWS's are.

use bytes::Bytes;
use hyper::header::HeaderValue;
use rand::RngExt;

const LENGTH: usize = 52;
const ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// How many characters one random `u64` gives without a bias that anybody could measure.
const CHARACTERS_PER_DRAW: usize = 11;

pub fn generate() -> HeaderValue {
    let mut random = rand::rng();
    let mut id = Vec::with_capacity(LENGTH);
    while id.len() < LENGTH {
        let mut draw: u64 = random.random();
        for _ in 0..CHARACTERS_PER_DRAW.min(LENGTH - id.len()) {
            id.push(ALPHABET[(draw % 36) as usize]);
            draw /= 36;
        }
    }
    HeaderValue::from_maybe_shared(Bytes::from(id)).expect("the alphabet is plain ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_aws_and_differ() {
        let ids: Vec<_> = (0..100).map(|_| generate()).collect();
        for id in &ids {
            assert_eq!(id.len(), 52);
            assert!(id.as_bytes().iter().all(|byte| ALPHABET.contains(byte)));
        }
        let distinct: std::collections::BTreeSet<_> =
            ids.iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
