//! Signature Version 4 from outside: AWS's published examples, every fault in its order, and round
//! trips through signing and verifying.

mod examples;
mod faults;
mod round_trip;

use http::{HeaderMap, HeaderName};

fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect()
}
