//! Items as DynamoDB's exports write them in Ion: one line per item, in text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{ItemRef, MapRef, SetRef, ValueRef, ValueView};

use crate::plain_json::{append_array, append_members};

/// Appends the line of a full export.
pub fn write_item(out: &mut Vec<u8>, item: ItemRef<'_>) {
    out.extend_from_slice(b"$ion_1_0 {Item:");
    write_structure(out, item.attributes());
    out.extend_from_slice(b"}\n");
}

/// Appends the line of an incremental export. A change without an old image inserted the item, one
/// without a new image deleted it.
pub fn write_change(
    out: &mut Vec<u8>,
    written_at_micros: u64,
    keys: ItemRef<'_>,
    old: Option<ItemRef<'_>>,
    new: Option<ItemRef<'_>>,
) {
    out.extend_from_slice(b"$ion_1_0 {Record:{Keys:");
    write_structure(out, keys.attributes());
    let metadata = format!(",Metadata:{{WriteTimestampMicros:{written_at_micros}.}}");
    out.extend_from_slice(metadata.as_bytes());
    for (name, image) in [(",OldImage:", old), (",NewImage:", new)] {
        if let Some(image) = image {
            out.extend_from_slice(name.as_bytes());
            write_structure(out, image.attributes());
        }
    }
    out.extend_from_slice(b"}}\n");
}

fn write_structure(out: &mut Vec<u8>, members: MapRef<'_>) {
    append_members(out, members, write_name, write_value);
}

fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value.view() {
        ValueView::S(text) => write_quoted(out, text, b'"'),
        ValueView::N(text) => write_decimal(out, text),
        ValueView::B(bytes) => write_blob(out, bytes),
        ValueView::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        ValueView::Null => out.extend_from_slice(b"null"),
        ValueView::Ss(set) => write_set(out, "SS", set.texts(), |out, text| {
            write_quoted(out, text, b'"');
        }),
        ValueView::Ns(set) => {
            // The largest number comes first, as in every answer.
            let mut members: Vec<&str> = set.texts().collect();
            members.reverse();
            write_set(out, "NS", members.into_iter(), write_decimal);
        }
        ValueView::Bs(set) => write_set(out, "BS", SetRef::iter(&set), write_blob),
        ValueView::L(list) => append_array(out, list.iter(), write_value),
        ValueView::M(map) => write_structure(out, map),
    }
}

fn write_set<T>(
    out: &mut Vec<u8>,
    set: &str,
    members: impl Iterator<Item = T>,
    write: impl FnMut(&mut Vec<u8>, T),
) {
    out.extend_from_slice(format!("$dynamodb_{set}::").as_bytes());
    append_array(out, members, write);
}

fn write_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"{{");
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.extend_from_slice(b"}}");
}

/// A number in the form of Ion's Java library, which AWS uses: `103.`, `6d2`, `0.5`, `1d-130`. It
/// adds no zeros after the last digit, because they would claim precision.
fn write_decimal(out: &mut Vec<u8>, canonical: &str) {
    let (sign, magnitude) = match canonical.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", canonical),
    };
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    out.extend_from_slice(sign.as_bytes());
    if fraction.is_empty() {
        let digits = if whole == "0" { whole } else { whole.trim_end_matches('0') };
        out.extend_from_slice(digits.as_bytes());
        match whole.len() - digits.len() {
            0 => out.push(b'.'),
            exponent => out.extend_from_slice(format!("d{exponent}").as_bytes()),
        }
        return;
    }
    let significant = fraction.trim_start_matches('0');
    let leading_zeros = fraction.len() - significant.len();
    if whole == "0" && leading_zeros >= PLAIN_ZEROS_MAX {
        out.extend_from_slice(format!("{significant}d-{}", fraction.len()).as_bytes());
    } else {
        out.extend_from_slice(magnitude.as_bytes());
    }
}

/// With this many zeros after the point, a number gets an exponent.
const PLAIN_ZEROS_MAX: usize = 6;

fn write_name(out: &mut Vec<u8>, name: &str) {
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let is_keyword = matches!(name, "null" | "true" | "false" | "nan");
    // `$12` would be the symbol with that number.
    let is_number =
        name.strip_prefix('$').is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()));
    if starts && name.bytes().all(is_plain) && !is_keyword && !is_number {
        out.extend_from_slice(name.as_bytes());
    } else {
        write_quoted(out, name, b'\'');
    }
}

fn write_quoted(out: &mut Vec<u8>, text: &str, quote: u8) {
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            _ if character == char::from(quote) => out.extend_from_slice(&[b'\\', quote]),
            '\0'..='\x1f' | '\x7f'..='\u{9f}' => {
                out.extend_from_slice(format!("\\x{:02x}", u32::from(character)).as_bytes());
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(quote);
}
