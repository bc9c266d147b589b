//! The tokens that pages continue from: a position in hexadecimal digits.

use super::super::error::CloudWatchError;

pub fn write(position: &[u8]) -> String {
    hex::encode(position)
}

pub fn read(token: &str) -> Result<Vec<u8>, CloudWatchError> {
    hex::decode(token)
        .ok()
        .filter(|bytes| !bytes.is_empty())
        .ok_or_else(CloudWatchError::next_token)
}
