//! Decompression of what is read, and compression of what is written.

use std::io::{self, Read, Write};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compress, Crc, FlushCompress};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::read_error::{ContentError, ReadError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// The bytes that a reader's bytes decompress to.
    ///
    /// Errors of the compressed data have the kind `InvalidData` or `UnexpectedEof`; the reader's
    /// own errors keep theirs.
    pub fn decoder<'a>(self, reader: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
        match self {
            Compression::None => Box::new(reader),
            Compression::Gzip => Box::new(GzipDecoder(MultiGzDecoder::new(reader))),
            Compression::Zstd => Box::new(ZstdDecoder::new(reader)),
        }
    }
}

/// Exports take most of their time to compress.
const LEVEL: flate2::Compression = flate2::Compression::new(1);

/// A gzip file being written.
pub type Gzip<W> = GzEncoder<W>;

/// Begins a gzip file, which will have one member.
pub fn gzip<W: Write>(writer: W) -> Gzip<W> {
    GzEncoder::new(writer, LEVEL)
}

/// A part of a gzip file. It is compressed without the parts before it, so several threads can compress a file; behind one
/// another, as [`GzipParts`], they are a file with one member.
pub struct GzipPart {
    deflated: Vec<u8>,
    checksum: Crc,
}

/// A part that is being compressed.
pub struct GzipPartWriter {
    compressor: Compress,
    deflated: Vec<u8>,
    checksum: Crc,
}

/// The parts of a gzip file so far.
pub struct GzipParts {
    bytes: Vec<u8>,
    checksum: Crc,
}

/// How much space a compressor gets at a time.
const SPARE_BYTES: usize = 64 << 10;

/// The format, deflate, no name and no time, compressed fast, by an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];
/// A last block without content.
const DEFLATE_END: [u8; 2] = [0x03, 0x00];

impl Default for GzipPartWriter {
    fn default() -> GzipPartWriter {
        let compressor = Compress::new(LEVEL, false);
        GzipPartWriter { compressor, deflated: Vec::new(), checksum: Crc::new() }
    }
}

impl GzipPartWriter {
    pub fn write(&mut self, bytes: &[u8]) {
        self.checksum.update(bytes);
        self.deflate(bytes, FlushCompress::None);
    }

    pub fn end(mut self) -> GzipPart {
        // This ends the last block on a whole byte, and does not mark it as the last.
        self.deflate(&[], FlushCompress::Sync);
        GzipPart { deflated: self.deflated, checksum: self.checksum }
    }

    fn deflate(&mut self, mut bytes: &[u8], flush: FlushCompress) {
        loop {
            self.deflated.reserve(SPARE_BYTES);
            let before = self.compressor.total_in();
            let status = self.compressor.compress_vec(bytes, &mut self.deflated, flush);
            status.expect("a compressor takes everything");
            bytes = &bytes[(self.compressor.total_in() - before) as usize..];
            // Otherwise there may be more to write than there was space for.
            if bytes.is_empty() && self.deflated.len() < self.deflated.capacity() {
                return;
            }
        }
    }
}

impl Default for GzipParts {
    fn default() -> GzipParts {
        GzipParts { bytes: GZIP_HEADER.to_vec(), checksum: Crc::new() }
    }
}

impl GzipParts {
    pub fn add(&mut self, part: &GzipPart) {
        self.bytes.extend_from_slice(&part.deflated);
        self.checksum.combine(&part.checksum);
    }

    /// How large the file is so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&DEFLATE_END);
        self.bytes.extend_from_slice(&self.checksum.sum().to_le_bytes());
        self.bytes.extend_from_slice(&self.checksum.amount().to_le_bytes());
        self.bytes
    }
}

/// What an error while reading means: whether the content is damaged or did not arrive.
pub(crate) fn read_error(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            ReadError::File(ContentError::Compression(error.to_string()))
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

    /// The reader's failure if it had one, as it was, or else an error of the data.
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
    fn parts_are_one_file_with_one_member() {
        let text = text();
        let mut file = GzipParts::default();
        for part in [&text[..70_000], b"", &text[70_000..]] {
            let mut writer = GzipPartWriter::default();
            part.chunks(9_000).for_each(|bytes| writer.write(bytes));
            file.add(&writer.end());
        }
        let file = file.finish();
        assert!(file.len() < text.len() / 2);
        assert_eq!(only_member(&file), text);
        assert_eq!(decode(Compression::Gzip, &GzipParts::default().finish()).unwrap(), b"");
    }

    /// Reads one member, and compares its checksum and its length.
    fn only_member(file: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut decoded).unwrap();
        decoded
    }

    /// What does not compress needs more space than it takes itself.
    #[test]
    fn parts_hold_noise_of_any_length() {
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let noise: Vec<u8> = (0..3_000_000).map(|_| noise()).collect();
        let mut file = GzipParts::default();
        let mut rest = &noise[..];
        for length in [1, 65_535, 65_536, 65_537, 131_072, 400_003, 1_048_576] {
            let (part, behind) = rest.split_at(length);
            let mut writer = GzipPartWriter::default();
            part.chunks(390_000).for_each(|bytes| writer.write(bytes));
            file.add(&writer.end());
            rest = behind;
        }
        let length = noise.len() - rest.len();
        assert!(only_member(&file.finish()) == noise[..length]);
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
    fn failures_of_the_reader_are_not_errors_of_the_data() {
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
            // The importer tells by this whether to try again.
            let inner = error.get_ref().map(|inner| inner.is::<NetworkFault>());
            assert_eq!(inner, Some(true), "{compression:?}");
        }
    }
}
