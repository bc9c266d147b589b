//! Decompression of what is read, and compression of what is written.

use std::io::{self, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::fault::{Fault, ReadError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// The bytes that a reader's bytes decompress to.
    ///
    /// Faults of the compressed data have the kind `InvalidData` or `UnexpectedEof`; the reader's
    /// own errors keep theirs.
    pub fn decoder<'a>(self, reader: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        match self {
            Compression::None => Box::new(reader),
            Compression::Gzip => Box::new(GzipDecoder(MultiGzDecoder::new(reader))),
            Compression::Zstd => Box::new(ZstdDecoder::new(reader)),
        }
    }
}

/// A gzip file being written.
pub type Gzip<W> = GzEncoder<W>;

/// Begins a gzip file, which will have one member.
pub fn gzip<W: Write>(writer: W) -> Gzip<W> {
    GzEncoder::new(writer, flate2::Compression::fast())
}

/// What an error while reading means: whether the content is damaged or did not arrive.
pub(crate) fn read_error(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            ReadError::File(Fault::Compression(error.to_string()))
        }
        _ => ReadError::Io(error),
    }
}

/// Gives errors of the format one kind.
struct GzipDecoder<R>(MultiGzDecoder<R>);

impl<R: Read> Read for GzipDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })
    }
}

/// Decodes frame after frame: a file may have several, and frames to skip.
struct ZstdDecoder<R> {
    source: Tracked<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: Read> ZstdDecoder<R> {
    fn new(reader: R) -> ZstdDecoder<R> {
        let source = Tracked { reader, peeked: None, failure: None };
        ZstdDecoder { source, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Enters the next frame, or returns false after the last one.
    fn begin_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.is_at_end()? {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(length.into());
                    let copied = io::copy(&mut skipped, &mut io::sink());
                    copied.map_err(|error| self.source.failure.take().unwrap_or(error))?;
                }
                Err(error) => return Err(self.source.failure_or(&error)),
            }
        }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(invalid("the checksum is wrong"));
        }
        self.is_in_frame = false;
        Ok(())
    }
}

impl<R: Read> Read for ZstdDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                if !self.begin_frame()? {
                    return Ok(0);
                }
                self.is_in_frame = true;
            }
            if self.decoder.can_collect() > 0 {
                return Read::read(&mut self.decoder, buffer);
            }
            if self.decoder.is_finished() {
                self.end_frame()?;
                continue;
            }
            let strategy = BlockDecodingStrategy::UptoBytes(buffer.len().max(1));
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, strategy) {
                return Err(self.source.failure_or(&error));
            }
        }
    }
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.to_owned())
}

/// A reader that can be asked whether it has ended, and that remembers its own failure, which the
/// decoder's errors hide.
struct Tracked<R> {
    reader: R,
    peeked: Option<u8>,
    failure: Option<io::Error>,
}

impl<R: Read> Tracked<R> {
    fn is_at_end(&mut self) -> io::Result<bool> {
        if self.peeked.is_none() {
            let mut byte = [0];
            self.peeked = (self.reader.read(&mut byte)? == 1).then_some(byte[0]);
        }
        Ok(self.peeked.is_none())
    }

    /// The reader's failure if it had one, as it was, or else a fault of the data.
    fn failure_or(&mut self, error: &dyn std::error::Error) -> io::Error {
        self.failure.take().unwrap_or_else(|| invalid(&error.to_string()))
    }
}

impl<R: Read> Read for Tracked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.peeked.take(), buffer) {
            (None, buffer) => self.reader.read(buffer).map_err(|error| {
                let kind = error.kind();
                self.failure = Some(error);
                kind.into()
            }),
            (Some(byte), [first, ..]) => {
                *first = byte;
                Ok(1)
            }
            (peeked, []) => {
                self.peeked = peeked;
                Ok(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = gzip(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn decode(compression: Compression, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        compression.decoder(bytes).read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    fn text() -> Vec<u8> {
        (0..20_000).flat_map(|number: u32| format!("line {number}\n").into_bytes()).collect()
    }

    #[test]
    fn files_of_several_parts_are_decoded() {
        let text = text();
        let (one, other) = text.split_at(100_000);
        let parts = [gzipped(one), gzipped(other)].concat();
        assert_eq!(decode(Compression::Gzip, &parts).unwrap(), text);
        let skipped = [&0x184d_2a50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
        let parts = [zstd(one), skipped.clone(), zstd(other), skipped].concat();
        assert_eq!(decode(Compression::Zstd, &parts).unwrap(), text);
        assert_eq!(decode(Compression::None, one).unwrap(), one);
        for compression in [Compression::Zstd, Compression::None] {
            assert_eq!(decode(compression, b"").unwrap(), b"");
        }
    }

    #[test]
    fn damage_is_found() {
        let text = text();
        for (compression, whole) in
            [(Compression::Gzip, gzipped(&text)), (Compression::Zstd, zstd(&text))]
        {
            for length in [1, 3, 10, whole.len() / 2, whole.len() - 1] {
                let error = decode(compression, &whole[..length]).unwrap_err();
                let error = read_error(error);
                assert!(matches!(error, ReadError::File(_)), "{compression:?} {length} {error}");
            }
            let mut damaged = whole.clone();
            damaged[whole.len() / 2] ^= 0x55;
            assert!(decode(compression, &damaged).is_err(), "{compression:?}");
            assert!(decode(compression, b"plain text, not compressed").is_err());
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the network")]
    struct NetworkFault;

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(NetworkFault))
        }
    }

    #[test]
    fn failures_of_the_reader_are_not_faults_of_the_data() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let start = match compression {
                Compression::None => text(),
                Compression::Gzip => gzipped(&text()),
                Compression::Zstd => zstd(&text()),
            };
            let reader = io::Cursor::new(start[..start.len() / 2].to_vec()).chain(Broken);
            let mut decoded = Vec::new();
            let error = compression.decoder(reader).read_to_end(&mut decoded).unwrap_err();
            let ReadError::Io(error) = read_error(error) else { panic!("{compression:?}") };
            // Whoever reads tells by it whether to try again.
            let inner = error.get_ref().map(|inner| inner.is::<NetworkFault>());
            assert_eq!(inner, Some(true), "{compression:?}");
        }
    }
}
