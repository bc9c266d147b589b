//! Lines of bounded length.

use std::io::Read;

use crate::byte_window::{ByteSource, RECORD_SIZE_BYTES_MAX};
use crate::compression::read_error;
use crate::read_error::{ContentError, ReadError};

/// Reads the lines of a file, without those that hold only white space.
pub struct Lines<R> {
    source: ByteSource<R>,
    /// The length of the line that was returned last, with its end.
    returned: usize,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Lines<R> {
        Lines { source: ByteSource::new(reader), returned: 0 }
    }

    /// The next line without its end, or `None` after the last one.
    ///
    /// # Errors
    /// Every error is final.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, ReadError> {
        self.source.consume(std::mem::take(&mut self.returned));
        let mut searched = 0;
        loop {
            let window = self.source.window();
            let found = window[searched..].iter().position(|byte| *byte == b'\n');
            let length = match found {
                Some(position) => searched + position + 1,
                None if self.source.is_at_end() => window.len(),
                None if window.len() > RECORD_SIZE_BYTES_MAX => {
                    return Err(ReadError::File(ContentError::TooLong {
                        limit: RECORD_SIZE_BYTES_MAX,
                    }));
                }
                None => {
                    searched = window.len();
                    self.source.grow().map_err(read_error)?;
                    continue;
                }
            };
            if length == 0 {
                return Ok(None);
            }
            if window[..length].trim_ascii().is_empty() {
                self.source.consume(length);
                searched = 0;
                continue;
            }
            self.returned = length;
            return Ok(Some(self.source.window()[..length].trim_ascii_end()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut lines = Lines::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(String::from_utf8(line.to_vec()).unwrap());
        }
        found
    }

    #[test]
    fn lines_end_with_the_file_too() {
        assert_eq!(lines("a\n\n b\r\n  \nc"), ["a", " b", "c"]);
        assert_eq!(lines("\n \n"), [""; 0]);
        let long = "x".repeat(200_000);
        assert_eq!(lines(&format!("{long}\n{long}\ny")), [long.as_str(), &long, "y"]);
    }

    #[test]
    fn the_length_of_a_line_is_bounded() {
        let mut lines = Lines::new(std::io::repeat(b'x'));
        let error = lines.next_line().unwrap_err();
        assert!(matches!(error, ReadError::File(ContentError::TooLong { .. })), "{error}");
    }
}
