//! The tokens that pages continue from: a position in hexadecimal digits.

use super::super::fault::Fault;

pub fn write(position: &[u8]) -> String {
    position.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn read(token: &str) -> Result<Vec<u8>, Fault> {
    let digits: Vec<char> = token.chars().collect();
    let byte = |pair: &[char]| match pair {
        [high, low] => {
            let (high, low) = (high.to_digit(16)?, low.to_digit(16)?);
            u8::try_from(high << 4 | low).ok()
        }
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty()).ok_or_else(Fault::next_token)
}
