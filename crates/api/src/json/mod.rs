//! JSON at the edge: a pull reader for requests and a compact writer for responses.
//!
//! **Invariant:** no JSON tree is ever built. Requests stream into structs of options, items stream
//! from their stored bytes to the response.

pub(crate) mod attribute_value;
pub(crate) mod decode;
mod reader;
mod render;
mod writer;

pub(crate) use reader::{Kind, Reader};
pub(crate) use render::{write_attributes, write_item};
pub(crate) use writer::Writer;

/// How many bytes at the start need no escape inside a JSON string. Whole blocks are looked at without
/// branches, which the compiler turns into vector instructions.
fn plain_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 16;
    let is_special = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
    let plain_blocks = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| !block.iter().fold(false, |found, &byte| found | is_special(byte)))
        .count();
    let start = plain_blocks * BLOCK;
    let rest = bytes[start..].iter().position(|&byte| is_special(byte));
    rest.map_or(bytes.len(), |length| start + length)
}

/// Whether the bytes are one JSON value and nothing else.
pub fn is_valid_json(bytes: &[u8]) -> bool {
    reader::is_valid(bytes)
}
