//! Encodes a tree into one buffer of bytes.

use super::{HEADER_BYTES_MAX, VERSION, tag_of};
use crate::reader::LengthBytes;
use crate::{AttributeValue, Attributes, item_size_bytes};

pub(super) fn item(attributes: &Attributes) -> Vec<u8> {
    let size_bytes = item_size_bytes(attributes);
    // Each name and value has a prefix of about three bytes, and a number's text takes about twice
    // its size, so an item rarely outgrows this.
    let mut out = Vec::with_capacity(HEADER_BYTES_MAX + size_bytes + size_bytes / 4 + 32);
    out.push(VERSION);
    length(size_bytes, &mut out);
    members(attributes, &mut out);
    out
}

pub(super) fn single_value(single: &AttributeValue) -> Vec<u8> {
    let mut out = Vec::with_capacity(single.size_bytes() + 8);
    value(single, &mut out);
    out
}

fn value(value: &AttributeValue, out: &mut Vec<u8>) {
    out.push(tag_of(value.attribute_type()));
    match value {
        AttributeValue::S(text) => prefixed(text.as_bytes(), out),
        AttributeValue::N(number) => prefixed(number.to_text().as_bytes(), out),
        AttributeValue::B(bytes) => prefixed(bytes, out),
        AttributeValue::Bool(flag) => prefixed(&[u8::from(*flag)], out),
        AttributeValue::Null => prefixed(&[], out),
        AttributeValue::Ss(set) => within_length(out, |out| {
            length(set.len(), out);
            set.iter().for_each(|member| prefixed(member.as_bytes(), out));
        }),
        AttributeValue::Ns(set) => within_length(out, |out| {
            length(set.len(), out);
            set.iter().for_each(|member| prefixed(member.to_text().as_bytes(), out));
        }),
        AttributeValue::Bs(set) => within_length(out, |out| {
            length(set.len(), out);
            set.iter().for_each(|member| prefixed(member, out));
        }),
        AttributeValue::L(list) => within_length(out, |out| {
            length(list.len(), out);
            list.iter().for_each(|member| self::value(member, out));
        }),
        AttributeValue::M(map) => within_length(out, |out| members(map, out)),
    }
}

fn members(attributes: &Attributes, out: &mut Vec<u8>) {
    length(attributes.len(), out);
    attributes.iter().for_each(|(name, value)| member(name, value, out));
}

pub(super) fn member(name: &str, value: &AttributeValue, out: &mut Vec<u8>) {
    prefixed(name.as_bytes(), out);
    self::value(value, out);
}

fn prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(LengthBytes::new(length).as_slice());
}

/// Writes the closure's output behind its length. It reserves one byte for the length, which
/// usually suffices. A longer length moves the content, which is cheaper than measuring first.
fn within_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let length_at = out.len();
    out.push(0);
    write(out);
    let content_at = length_at + 1;
    let content_length = out.len() - content_at;
    let prefix = LengthBytes::new(content_length);
    let prefix = prefix.as_slice();
    if prefix.len() > 1 {
        out.resize(out.len() + prefix.len() - 1, 0);
        out.copy_within(content_at..content_at + content_length, length_at + prefix.len());
    }
    out[length_at..length_at + prefix.len()].copy_from_slice(prefix);
}
