//! Values as plain JSON, for formats that have no types of their own for them. Binary values are base64, sets are arrays.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{MapRef, ValueRef, ValueView};

pub(crate) fn append_json(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value.view() {
        ValueView::S(text) => append_text(out, text),
        ValueView::N(text) => out.extend(text.bytes()),
        ValueView::B(bytes) => append_text(out, &STANDARD.encode(bytes)),
        ValueView::Bool(flag) => out.extend(if flag { &b"true"[..] } else { b"false" }),
        ValueView::Null => out.extend(b"null"),
        ValueView::Ss(set) => append_array(out, set.texts(), append_text),
        ValueView::Ns(set) => append_array(out, set.texts(), |out, text| out.extend(text.bytes())),
        ValueView::Bs(set) => {
            append_array(out, set.iter(), |out, bytes| append_text(out, &STANDARD.encode(bytes)));
        }
        ValueView::L(list) => append_array(out, list.iter(), append_json),
        ValueView::M(map) => append_members(out, map, append_text, append_json),
    }
}

/// An array of JSON, which is also a list of Ion.
pub(crate) fn append_array<T>(
    out: &mut Vec<u8>,
    members: impl Iterator<Item = T>,
    mut append: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (position, member) in members.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        append(out, member);
    }
    out.push(b']');
}

/// An object of JSON, which is also a structure of Ion, except for how names are written.
pub(crate) fn append_members(
    out: &mut Vec<u8>,
    members: MapRef<'_>,
    append_name: impl Fn(&mut Vec<u8>, &str),
    append_value: impl Fn(&mut Vec<u8>, ValueRef<'_>),
) {
    out.push(b'{');
    for (position, (name, value)) in members.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        append_name(out, name);
        out.push(b':');
        append_value(out, value);
    }
    out.push(b'}');
}

fn append_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("memory takes everything");
}
