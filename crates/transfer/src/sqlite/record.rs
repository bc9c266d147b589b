//! The values of one row.

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    /// The bytes of a text or a blob: some programs store text as either.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Value::Text(text) => Some(text.into_bytes()),
            Value::Blob(bytes) => Some(bytes),
            Value::Null | Value::Integer(_) | Value::Real(_) => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The types of all values stand before the values.
pub(super) fn values(payload: &[u8]) -> Result<Vec<Value>, &'static str> {
    const CUT_OFF: &str = "a row is cut off";
    let (header_length, rest) = read_varint(payload).ok_or(CUT_OFF)?;
    let header_length = usize::try_from(header_length).map_err(|_| CUT_OFF)?;
    let types_at = payload.len() - rest.len();
    let mut types = payload.get(types_at..header_length).ok_or(CUT_OFF)?;
    let mut content = &payload[header_length..];
    let mut values = Vec::new();
    while !types.is_empty() {
        let (of, rest) = read_varint(types).ok_or(CUT_OFF)?;
        types = rest;
        let (bytes, rest) = content.split_at_checked(length_of(of)).ok_or(CUT_OFF)?;
        content = rest;
        values.push(value(of, bytes)?);
    }
    Ok(values)
}

/// How many bytes a value of this type has.
fn length_of(of: u64) -> usize {
    match of {
        0 | 8..=11 => 0,
        1..=4 => of as usize,
        5 => 6,
        6 | 7 => 8,
        _ => usize::try_from((of - 12) / 2).unwrap_or(usize::MAX),
    }
}

fn value(of: u64, bytes: &[u8]) -> Result<Value, &'static str> {
    Ok(match of {
        0 => Value::Null,
        1..=6 => Value::Integer(integer(bytes)),
        7 => Value::Real(f64::from_bits(integer(bytes) as u64)),
        8 | 9 => Value::Integer(of as i64 - 8),
        10 | 11 => return Err("a value has an unknown type"),
        _ if of.is_multiple_of(2) => Value::Blob(bytes.to_vec()),
        _ => match str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => return Err("a text is not UTF-8"),
        },
    })
}

/// Up to eight bytes, big-endian, in two's complement.
fn integer(bytes: &[u8]) -> i64 {
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if is_negative { -1 } else { 0 };
    bytes.iter().fold(start, |value, byte| value << 8 | i64::from(*byte))
}

/// Seven bits per byte and eight in the ninth, and what follows.
pub(super) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (position, byte) in bytes.iter().take(9).enumerate() {
        let rest = &bytes[position + 1..];
        if position == 8 {
            return Some((value << 8 | u64::from(*byte), rest));
        }
        value = value << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_up_to_nine_bytes() {
        for (bytes, expected) in [
            (&[0x00][..], Some(0)),
            (&[0x7F], Some(127)),
            (&[0x81, 0x00], Some(128)),
            (&[0xFF; 9], Some(u64::MAX)),
            (&[], None),
            (&[0x81], None),
        ] {
            assert_eq!(read_varint(bytes).map(|(value, _)| value), expected, "{bytes:?}");
        }
        assert_eq!(read_varint(&[0x01, 0x02]), Some((1, &[0x02][..])));
    }

    #[test]
    fn values_follow_their_types() {
        let row = [
            &[10, 0, 1, 2, 6, 7, 8, 9, 16, 19][..],
            &[0xFF],
            &[0x01, 0x00],
            &i64::MIN.to_be_bytes(),
            &1.5_f64.to_be_bytes(),
            b"\x00\x01",
            b"abc",
        ]
        .concat();
        let expected = [
            Value::Null,
            Value::Integer(-1),
            Value::Integer(256),
            Value::Integer(i64::MIN),
            Value::Real(1.5),
            Value::Integer(0),
            Value::Integer(1),
            Value::Blob(vec![0, 1]),
            Value::Text("abc".to_owned()),
        ];
        assert_eq!(values(&row).unwrap(), expected);
    }

    #[test]
    fn a_row_that_is_cut_off_is_refused() {
        for row in [&[][..], &[5, 1], &[0], &[2, 1], &[2, 23, b'a'], &[0xFF; 9], &[2, 10]] {
            assert!(values(row).is_err(), "{row:?}");
        }
        assert!(values(&[2, 15, 0xFF]).is_err(), "not UTF-8");
    }
}
