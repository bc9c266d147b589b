//! The canonical form of a request, which both sides sign.

use std::fmt::Write;

use http::HeaderMap;

/// A query string as decoded pairs, in the order given.
pub fn query_pairs(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(name), percent_decoded(value))
        })
        .collect()
}

/// Encoded and sorted pairs of names and values. The signature itself is left out: it cannot sign
/// itself.
pub fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query_pairs(query)
        .iter()
        .filter(|(name, _)| name != b"X-Amz-Signature")
        .map(|(name, value)| (percent_encoded(name), percent_encoded(value)))
        .collect();
    pairs.sort();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

/// One `name:value\n` per signed header, in the order of the sorted names. Commas join the values
/// of a header that occurs several times.
pub fn canonical_headers(headers: &HeaderMap, signed_names: &[String]) -> Vec<u8> {
    let mut canonical = Vec::new();
    for name in signed_names {
        canonical.extend_from_slice(name.as_bytes());
        canonical.push(b':');
        for (index, value) in headers.get_all(name).iter().enumerate() {
            if index > 0 {
                canonical.push(b',');
            }
            push_collapsed(value.as_bytes(), &mut canonical);
        }
        canonical.push(b'\n');
    }
    canonical
}

/// Trims spaces at both ends and collapses each run of spaces within to one.
fn push_collapsed(value: &[u8], out: &mut Vec<u8>) {
    let mut after_space = false;
    for &byte in value.trim_ascii() {
        let is_space = byte == b' ';
        if !(is_space && after_space) {
            out.push(byte);
        }
        after_space = is_space;
    }
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escape = bytes.get(index + 1..index + 3).filter(|_| bytes[index] == b'%');
        let value = escape.and_then(|digits| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
        });
        decoded.push(value.unwrap_or(bytes[index]));
        index += if value.is_some() { 3 } else { 1 };
    }
    decoded
}

fn percent_encoded(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_sorted_and_encoded_one_way() {
        // From AWS's test suite: get-vanilla-query-order-key-case and get-vanilla-query-unreserved.
        assert_eq!(canonical_query("Param2=value2&Param1=value1"), "Param1=value1&Param2=value2");
        assert_eq!(canonical_query("Param1=value2&Param1=Value1"), "Param1=Value1&Param1=value2");
        let unreserved = "-._~0123456789ABCXYZabcxyz=-._~0123456789ABCXYZabcxyz";
        assert_eq!(canonical_query(unreserved), unreserved);
        assert_eq!(
            canonical_query("a=%e1%88%b4&b=x/y&c&X-Amz-Signature=1"),
            "a=%E1%88%B4&b=x%2Fy&c="
        );
        assert_eq!(canonical_query("a=100%&b=%4"), "a=100%25&b=%254");
    }

    #[test]
    fn header_values_are_trimmed_and_joined() {
        let mut headers = HeaderMap::new();
        headers.append("my-header1", "  a   b   c  ".parse().unwrap());
        headers.append("my-header1", "d".parse().unwrap());
        let canonical = canonical_headers(&headers, &["my-header1".into(), "absent".into()]);
        assert_eq!(String::from_utf8(canonical).unwrap(), "my-header1:a b c,d\nabsent:\n");
    }
}
