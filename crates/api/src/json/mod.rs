//! JSON at the edge: a pull reader for requests and a compact writer for responses.
//!
//! **Invariant:** nothing builds a JSON tree. Requests stream into structs of options, and items
//! stream from their stored bytes into the response.

pub(crate) mod attribute_value;
pub(crate) mod decode;
pub(crate) mod lines;
pub(crate) mod pages;
mod plain;
mod reader;
mod render;
mod writer;

pub(crate) use reader::{JsonReader, Kind};
pub(crate) use render::{write_attributes, write_item, write_value};
pub(crate) use writer::Writer;

/// Whether the bytes are one JSON value and nothing else.
pub fn is_valid_json(bytes: &[u8]) -> bool {
    reader::is_valid(bytes)
}
