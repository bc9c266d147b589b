//! Segments of shipped backups. Any bytes are refused, or are the one encoding of a segment; and no segment, whatever numbers it
//! holds, is more than a chain can judge.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use zenobe_backup::segment::{Chain, Checksum, LogSegment};

const MAGIC: &[u8] = b"zenobe-segment 1\n";

fuzz_target!(|input: &[u8]| {
    // Random bytes never have the right checksum.
    let _ = LogSegment::decode("any", input);
    let mut bytes = [MAGIC, input].concat();
    let checksum: Checksum = Sha256::digest(&bytes).into();
    bytes.extend_from_slice(&checksum);
    let Ok((segment, found)) = LogSegment::decode("made", &bytes) else { return };
    assert_eq!(found, checksum);
    assert_eq!(segment.encode(), (bytes, checksum));
    judge(&segment, checksum);
});

/// As the first of a chain, before itself, and behind one that ends where it begins.
fn judge(segment: &LogSegment, checksum: Checksum) {
    let name = segment.name().to_string();
    let mut chain = Chain::new(&segment.generation);
    if chain.add(&name, segment, checksum).is_err() {
        return;
    }
    assert!(chain.add(&name, segment, checksum).is_err(), "it comes twice");
    let mut next = segment.clone();
    next.number = next.number.wrapping_add(1);
    next.previous = checksum;
    let (_, checksum) = next.encode();
    let _ = chain.add(&next.name().to_string(), &next, checksum);
}
