//! Finds the special characters of JSON strings.
//!
//! Most texts have none, so the search examines many bytes at a time.

const BLOCK_SIZE_BYTES: usize = 64;
const WORD_SIZE_BYTES: usize = 8;
/// Most strings end within this many words, and blocks would be too large for them.
const WORDS_FIRST: usize = 2;

/// How many bytes from the start need no escape inside a JSON string.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let Some(last) = bytes.last_chunk() else {
        return first_special(short_word(bytes)).unwrap_or(bytes.len());
    };
    let (words, _) = bytes.as_chunks();
    let mut length = plain_words(&words[..words.len().min(WORDS_FIRST)]);
    if length == WORDS_FIRST * WORD_SIZE_BYTES {
        length += plain_blocks(&bytes[length..]);
        length += plain_words(bytes[length..].as_chunks().0);
    }
    // Either less than a word is left, or a special byte comes next. The last word also covers
    // bytes that are known to be plain.
    if bytes.len() - length >= WORD_SIZE_BYTES {
        return length;
    }
    let last_at = bytes.len() - WORD_SIZE_BYTES;
    first_special(u64::from_le_bytes(*last)).map_or(bytes.len(), |position| last_at + position)
}

/// Examines blocks without branches, so that the compiler emits vector instructions.
fn plain_blocks(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK_SIZE_BYTES>();
    let is_plain = |block: &&[u8; BLOCK_SIZE_BYTES]| {
        !block.iter().fold(false, |found, &byte| found | is_special(byte))
    };
    blocks.iter().take_while(is_plain).count() * BLOCK_SIZE_BYTES
}

fn plain_words(words: &[[u8; WORD_SIZE_BYTES]]) -> usize {
    for (index, word) in words.iter().enumerate() {
        if let Some(position) = first_special(u64::from_le_bytes(*word)) {
            return index * WORD_SIZE_BYTES + position;
        }
    }
    words.len() * WORD_SIZE_BYTES
}

/// Fewer bytes than a word, padded with zeros, which are special. Two overlapping reads replace a
/// loop over bytes.
fn short_word(bytes: &[u8]) -> u64 {
    let shift = |size: usize| 8 * (bytes.len() - size);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << shift(4)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last()) {
        u64::from(u16::from_le_bytes(*first)) | u64::from(*last) << shift(1)
    } else {
        bytes.first().map_or(0, |&byte| u64::from(byte))
    }
}

/// Always makes all comparisons: a branch would prevent vectorisation.
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < FIRST_PRINTABLE)
}

const FIRST_PRINTABLE: u8 = 0x20;
/// A word whose bytes are all 1; its multiples repeat any other byte.
const ONES: u64 = u64::MAX / 255;

/// The position of the first special byte in a word whose lowest byte is the first.
///
/// Subtracting `n` from each byte sets the high bit of those that are less than `n` and were below
/// 128. A borrow can set others as well, but only above a byte that is less than `n` itself, so the
/// lowest one is right.
fn first_special(word: u64) -> Option<usize> {
    let less_than = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal_to = |byte: u8| less_than(word ^ (ONES * u64::from(byte)), 1);
    let found = less_than(word, FIRST_PRINTABLE) | equal_to(b'"') | equal_to(b'\\');
    let high_bits = found & (ONES * 0x80);
    (high_bits != 0).then(|| high_bits.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn naive(bytes: &[u8]) -> usize {
        let position = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        position.unwrap_or(bytes.len())
    }

    #[test]
    fn each_byte_is_classified_at_every_position() {
        for byte in 0..=u8::MAX {
            for position in 0..100 {
                let mut bytes = [b'x'; 105];
                bytes[position] = byte;
                for end in [position + 1, position + 2, bytes.len()] {
                    let bytes = &bytes[..end];
                    assert_eq!(plain_length(bytes), naive(bytes), "{byte} at {position} of {end}");
                }
                // Neighbours must neither hide nor fake it.
                bytes[position + 1] = 0x1f;
                bytes[position + 2] = 0x80;
                assert_eq!(plain_length(&bytes), naive(&bytes), "{byte} at {position}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(
            bytes in vec(prop_oneof![9 => 0x1e..=0x24_u8, 3 => 0x5a..=0x5e_u8, 3 => 0x7d..=0x82_u8, 1 => any::<u8>()], 0..9),
            plain in vec(prop_oneof![0x23..=0x5b_u8, 0x5d..=0xff_u8], 0..180),
        ) {
            let bytes = [plain, bytes].concat();
            prop_assert_eq!(plain_length(&bytes), naive(&bytes));
        }
    }
}
