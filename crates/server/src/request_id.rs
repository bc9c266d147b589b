//! `x-amzn-RequestId`: 52 characters of `[A-Z0-9]`, like AWS's.

use hyper::header::HeaderValue;
use rand::RngExt;
use zenobe_api::{REQUEST_ID_LENGTH, RequestId};

const ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// How many characters one random `u64` yields without a measurable bias.
const CHARACTERS_PER_DRAW: usize = 11;

pub fn generate() -> RequestId {
    let mut random = rand::rng();
    let mut id = [0; REQUEST_ID_LENGTH];
    for characters in id.chunks_mut(CHARACTERS_PER_DRAW) {
        // A number between 0 and 1, whose base-36 digits select the characters.
        let mut fraction: u64 = random.random();
        for character in characters {
            let product = u128::from(fraction) * ALPHABET.len() as u128;
            *character = ALPHABET[(product >> 64) as usize];
            fraction = product as u64;
        }
    }
    RequestId::new(id).expect("the alphabet is plain ASCII")
}

/// The id of the request that runs now, for its response.
pub fn header() -> HeaderValue {
    let id = RequestId::current().unwrap_or_else(generate);
    HeaderValue::from_bytes(id.as_bytes()).expect("an id is plain ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_aws_and_differ() {
        let ids: Vec<_> = (0..100).map(|_| generate()).collect();
        for id in &ids {
            assert!(id.as_bytes().iter().all(|byte| ALPHABET.contains(byte)));
        }
        let distinct: std::collections::BTreeSet<_> = ids.iter().map(RequestId::as_bytes).collect();
        assert_eq!(distinct.len(), ids.len());
    }
}
