//! DynamoDB's attribute values, and the bytes that store them.
//!
//! This crate is a pure core: it knows no JSON, no tables and no expressions. It answers four
//! questions.
//!
//! * What is a value? [`AttributeValue`], [`Number`], and the [`Path`] that leads into one.
//! * How big is it? `size_bytes` everywhere, as DynamoDB measures items ([`item_size_bytes`]).
//! * How is an item stored? [`EncodedItem`]: canonical bytes, read in place through [`ItemRef`] and
//!   [`ValueRef`].
//! * How is a key stored? [`key_bytes`]: bytes that sort as the values do.
//!
//! `docs/store-format/values.md` describes both formats byte by byte.

mod attribute_type;
mod attribute_value;
mod decode_error;
mod item_bytes;
pub mod key_bytes;
pub mod limits;
mod number;
mod path;
mod reader;
mod size;

pub use attribute_type::AttributeType;
pub use attribute_value::{AttributeValue, Attributes};
pub use decode_error::DecodeError;
pub use item_bytes::{
    EncodedItem, EncodedValue, ItemBuffer, ItemRef, ListRef, MapRef, SetRef, ValueRef, ValueView,
};
pub use key_bytes::NotAKey;
pub use number::{Number, NumberError, NumberText};
pub use path::{Path, PathElement};
pub use size::item_size_bytes;
