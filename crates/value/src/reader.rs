//! A cursor over untrusted bytes, and the length prefix that reader and writer share.

use crate::DecodeError;

/// Reads from the front of a slice; every read is checked.
#[derive(Clone, Copy)]
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { rest: bytes }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A length or a count: seven bits per byte, low bits first, the top bit set on all but the
    /// last byte. Only the shortest form passes, so equal values have equal bytes.
    #[inline]
    pub fn length(&mut self) -> Result<usize, DecodeError> {
        match *self.rest {
            [first @ ..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(usize::from(first))
            }
            [first, second @ 1..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(usize::from(first & 0x7F) | usize::from(second) << 7)
            }
            _ => self.long_length(),
        }
    }

    /// A function of its own, so that the common cases of one and two bytes are inlined.
    fn long_length(&mut self) -> Result<usize, DecodeError> {
        let mut length = u64::from(self.byte()? & 0x7F);
        for shift in (7..LENGTH_BITS).step_by(7) {
            let byte = self.byte()?;
            length |= u64::from(byte & 0x7F) << shift;
            if byte == 0 {
                return Err(DecodeError::MalformedLength);
            }
            if byte < 0x80 {
                return usize::try_from(length).map_err(|_| DecodeError::MalformedLength);
            }
        }
        Err(DecodeError::MalformedLength)
    }

    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length()?;
        self.take(length)
    }

    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes) }
    }
}

/// Five groups of seven bits: far more than any item needs, and no overflow in a `u64`.
const LENGTH_BITS: u32 = 35;

/// The bytes of one length, held inline.
#[derive(Clone, Copy)]
pub(crate) struct LengthBytes {
    bytes: [u8; 5],
    used: usize,
}

impl LengthBytes {
    /// # Panics
    /// If the length has more than 35 bits. No value that fits in a request or a row does.
    pub fn new(length: usize) -> LengthBytes {
        let mut encoded = LengthBytes { bytes: [0; 5], used: 0 };
        let mut rest = length;
        while rest >= 0x80 {
            encoded.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        encoded.push(rest as u8);
        encoded
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }
}
