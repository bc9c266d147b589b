//! A window on a stream of bytes that grows until one record fits.

use std::io::{self, Read};

/// No record of a legal item is longer: an item has at most 400 KiB, and no format needs more than
/// a few times that.
pub(crate) const RECORD_SIZE_BYTES_MAX: usize = 16 << 20;

const READ_SIZE_BYTES: usize = 64 << 10;

pub(crate) struct ByteSource<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    /// How many bytes were consumed before `start`.
    consumed: u64,
    is_at_end: bool,
}

impl<R: Read> ByteSource<R> {
    pub(crate) fn new(reader: R) -> ByteSource<R> {
        ByteSource { reader, buffer: Vec::new(), start: 0, consumed: 0, is_at_end: false }
    }

    pub(crate) fn window(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Whether no bytes follow the window.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// The position of the window in the stream.
    pub(crate) fn position(&self) -> u64 {
        self.consumed
    }

    pub(crate) fn consume(&mut self, length: usize) {
        self.start += length;
        self.consumed += length as u64;
    }

    /// Makes the window about twice as large, so that a record that is parsed again and again until
    /// it is whole costs no more than a few passes over it.
    pub(crate) fn grow(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let wanted = self.buffer.len() + self.buffer.len().max(READ_SIZE_BYTES);
        while self.buffer.len() < wanted {
            let length = self.buffer.len();
            self.buffer.resize(wanted, 0);
            let read = match self.reader.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                outcome => outcome.map(Some),
            };
            self.buffer.truncate(length + read.as_ref().ok().copied().flatten().unwrap_or(0));
            if read? == Some(0) {
                self.is_at_end = true;
                break;
            }
        }
        Ok(())
    }
}
