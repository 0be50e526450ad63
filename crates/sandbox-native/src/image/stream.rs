//! From the bytes of a blob to the tar stream in it.
//!
//! Owns which compressions are read, told by their first bytes as media types lie, and
//! how much may come out of how little. Decoders of pure Rust only.

use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::limits;

/// A range of a file, read without moving its position: others may share it.
#[derive(Debug)]
pub(crate) struct FileSlice<F> {
    file: F,
    at: u64,
    end: u64,
}

impl<F: AsFd> FileSlice<F> {
    pub(crate) fn new(file: F, offset: u64, length: u64) -> Self {
        Self { file, at: offset, end: offset.saturating_add(length) }
    }
}

impl<F: AsFd> Read for FileSlice<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let got = rustix::io::pread(&self.file, &mut buffer[..wanted], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// A blob's content without its compression.
pub(crate) enum Decoder<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<R>>>),
    Zstd(ZstdFrames<BufReader<R>>),
}

impl<R: Read> Decoder<R> {
    /// Looks at the first bytes.
    pub(crate) fn new(source: R) -> io::Result<Self> {
        use std::io::BufRead;
        let mut source = BufReader::with_capacity(limits::LAYER_BUFFER_BYTES, source);
        Ok(match source.fill_buf()? {
            [0x1f, 0x8b, ..] => Self::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source))),
            // A frame, or a skippable one (RFC 8878, section 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Self::Zstd(ZstdFrames::new(source))
            }
            _ => Self::Plain(source),
        })
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// The source, to read what the decoder left.
    pub(crate) fn into_source(self) -> BufReader<R> {
        match self {
            Self::Plain(source) => source,
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Zstd(frames) => frames.source,
        }
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(frames) => frames.read(buffer),
        }
    }
}

/// The frames of a zstd stream one after the other.
pub(crate) struct ZstdFrames<R> {
    source: R,
    decoder: Box<FrameDecoder>,
    /// Whether a frame was begun and not ended.
    inside: bool,
}

impl<R: io::BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        let mut decoder = Box::new(FrameDecoder::new());
        decoder.set_max_window_size(limits::LAYER_WINDOW_BYTES_MAX);
        Self { source, decoder, inside: false }
    }

    /// Begins the next frame, past those that are to be skipped. `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        use ReadFrameHeaderError::SkipFrame;
        while !self.source.fill_buf()?.is_empty() {
            let skip = match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(SkipFrame { length, .. })) => length,
                Err(error) => return Err(damaged(error)),
            };
            io::copy(&mut (&mut self.source).take(u64::from(skip)), &mut io::sink())?;
        }
        Ok(false)
    }
}

fn damaged(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<R: io::BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside && !self.begin()? {
                return Ok(0);
            }
            self.inside = true;
            let got = self.decoder.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            if self.decoder.is_finished() {
                self.inside = false;
            } else {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(damaged)?;
            }
        }
    }
}

/// Ends a stream that grows out of all proportion, or above a limit.
pub(crate) struct BoundedReader<R> {
    inner: R,
    bytes: u64,
    bytes_max: u64,
}

impl<R> BoundedReader<R> {
    /// For what comes out of `packed` bytes, at most `bytes_max`.
    pub(crate) fn new(inner: R, packed: u64, bytes_max: u64) -> Self {
        let grown = packed.saturating_mul(limits::LAYER_RATIO_MAX);
        let bytes_max = bytes_max.min(grown.max(limits::LAYER_RATIO_FREE_BYTES));
        Self { inner, bytes: 0, bytes_max }
    }

    pub(crate) fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.bytes += got as u64;
        if self.bytes > self.bytes_max {
            let reason = format!(
                "more than {} bytes come out of it, too many for what it is or how long it is",
                self.bytes_max
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn compressions_are_told_by_their_bytes_and_may_come_in_pieces() {
        let (one, two) = (b"one".repeat(1000), b"two".repeat(1000));
        let both = [one.clone(), two.clone()].concat();
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let cases = [
            ("plain", both.clone()),
            ("gzip", gzip(&both)),
            ("gzip members", [gzip(&one), gzip(&two)].concat()),
            ("zstd", zstd(&both)),
            ("zstd frames", [skipped.clone(), zstd(&one), skipped, zstd(&two)].concat()),
        ];
        for (name, packed) in cases {
            let mut unpacked = Vec::new();
            let mut decoded = Decoder::new(&packed[..]).unwrap();
            decoded.read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == both, "{name}");
            assert_eq!(io::copy(&mut decoded.into_source(), &mut io::sink()).unwrap(), 0, "{name}");
        }
    }

    #[test]
    fn what_is_damaged_or_grows_too_much_is_an_error() {
        let zeros = vec![0; limits::LAYER_RATIO_FREE_BYTES as usize + 1];
        for packed in [gzip(&zeros), zstd(&zeros)] {
            let length = packed.len() as u64;
            assert!(length * limits::LAYER_RATIO_MAX < zeros.len() as u64);
            let decoded = Decoder::new(&packed[..]).unwrap();
            let mut bounded = BoundedReader::new(decoded, length, u64::MAX);
            io::copy(&mut bounded, &mut io::sink()).unwrap_err();
            let mut cut = Decoder::new(&packed[..packed.len() - 20]).unwrap();
            io::copy(&mut cut, &mut io::sink()).unwrap_err();
        }
    }

    proptest::proptest! {
        #[test]
        fn bytes_of_any_kind_do_not_panic(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 16..2048),
            kind in 0_usize..3,
        ) {
            let magic: &[u8] =
                [&[0x1f, 0x8b, 8, 0][..], &[0x28, 0xb5, 0x2f, 0xfd], &[0x50, 0x2a, 0x4d, 0x18]][kind];
            bytes[..4].copy_from_slice(magic);
            let decoded = Decoder::new(&bytes[..]).unwrap();
            let mut bounded = BoundedReader::new(decoded, bytes.len() as u64, 1 << 24);
            let _ = io::copy(&mut bounded, &mut io::sink());
        }
    }
}
