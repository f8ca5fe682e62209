//! The layout of a PNG whose pixels are stored without compression, so that its size and the place of each pixel are
//! known beforehand.
//!
//! The file consists of a prefix (signature, IHDR, PLTE, and an IDAT with the header of the zlib stream), IDAT chunks
//! that have one stored deflate block each, and a suffix (an IDAT with the Adler-32 of all blocks, and IEND). A block
//! has whole rows, as many as fit into one, or a part of a single row if that is longer than a block. So all bytes of
//! a block, its CRC included, follow from a rectangle of pixels; the Adler-32 alone depends on the whole picture.
//! Formats: PNG specification (third edition), 5 and 10; RFC 1950; RFC 1951, 3.2.4.

use std::ops::Range;

use super::palettes::Palette;
use crate::codec::deflate;

/// The longest side in pixels: libpng opens no larger picture unless it is told to.
const MAX_SIDE: u64 = 1_000_000;
/// The most bytes of a picture's file.
const MAX_BYTES: u64 = 256 << 20;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// The bytes of a chunk besides its data: length, type and CRC.
const CHUNK: u64 = 12;
/// The bytes of an IHDR's data.
const IHDR: u64 = 13;
/// The bytes of a palette of 256 colours.
const PLTE: u64 = 768;
/// The header of a zlib stream with a window of 32 KiB.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x01];
/// The bytes of a stored deflate block besides its data.
const STORED: u64 = 5;
/// The most bytes of data of a stored deflate block.
const MAX_BLOCK: u64 = 65_535;
/// The bytes of a block's chunk before the data of the block.
const BLOCK_HEAD: u64 = 8 + STORED;
/// The bytes of a block's chunk besides the data of the block.
const BLOCK_FRAME: u64 = CHUNK + STORED;
/// The bytes of the suffix.
const SUFFIX: u64 = CHUNK + 4 + CHUNK;

/// What a pixel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PixelFormat {
    Grey8,
    /// A grey of 16 bits, big-endian.
    Grey16,
    Rgb8,
    /// Red, green, blue of 16 bits each, big-endian.
    Rgb16,
    /// The number of one of 256 colours.
    Indexed,
}

impl PixelFormat {
    pub(crate) fn bytes(self) -> u64 {
        let [depth, colour] = self.codes().map(u64::from);
        depth / 8 * if colour == 2 { 3 } else { 1 }
    }

    fn codes(self) -> [u8; 2] {
        match self {
            Self::Grey8 => [8, 0],
            Self::Grey16 => [16, 0],
            Self::Rgb8 => [8, 2],
            Self::Rgb16 => [16, 2],
            Self::Indexed => [8, 3],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PngLayout {
    pub width: u64,
    pub height: u64,
    pub format: PixelFormat,
}

/// A stored block, and the chunk that it is in. Its data are the pixels of a rectangle, row by row; a row that begins
/// with the picture's first column has a filter byte 0 before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub offset: u64,
    pub rows: Range<u64>,
    pub columns: Range<u64>,
    pub length: u64,
    is_last: bool,
}

impl PngLayout {
    /// Returns the layout of a picture of `width` times `height` pixels; `None` if it has no pixels, or is larger than
    /// [`MAX_SIDE`] or [`MAX_BYTES`].
    pub(crate) fn new(width: u64, height: u64, format: PixelFormat) -> Option<Self> {
        let is_side = |side: u64| (1..=MAX_SIDE).contains(&side);
        let layout = Self { width, height, format };
        (is_side(width) && is_side(height) && layout.len() <= MAX_BYTES).then_some(layout)
    }

    /// Returns the bytes of a row: the filter byte and the pixels.
    pub(crate) fn row_bytes(&self) -> u64 {
        1 + self.width * self.format.bytes()
    }

    /// Returns the rows of each block but the last; 1 if a row has several blocks.
    fn rows_per_block(&self) -> u64 {
        (MAX_BLOCK / self.row_bytes()).clamp(1, self.height)
    }

    /// Returns the most pixels of a row that a block has, if a row has several blocks.
    fn pixels_per_block(&self) -> u64 {
        (MAX_BLOCK - 1) / self.format.bytes()
    }

    /// Returns the blocks of one row; 1 if a block has several rows.
    fn blocks_per_row(&self) -> u64 {
        if self.row_bytes() <= MAX_BLOCK { 1 } else { self.width.div_ceil(self.pixels_per_block()) }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.height.div_ceil(self.rows_per_block()) * self.blocks_per_row()
    }

    pub(crate) fn prefix_len(&self) -> u64 {
        let palette = if self.format == PixelFormat::Indexed { CHUNK + PLTE } else { 0 };
        SIGNATURE.len() as u64 + CHUNK + IHDR + palette + CHUNK + ZLIB_HEADER.len() as u64
    }

    pub(crate) fn suffix_at(&self) -> u64 {
        self.prefix_len() + self.height * self.row_bytes() + self.blocks() * BLOCK_FRAME
    }

    pub(crate) fn len(&self) -> u64 {
        self.suffix_at() + SUFFIX
    }

    /// Returns a block, which must exist.
    pub(crate) fn block(&self, number: u64) -> Block {
        let (rows_each, per_row) = (self.rows_per_block(), self.blocks_per_row());
        let (band, part) = (number / per_row, number % per_row);
        let rows = band * rows_each..((band + 1) * rows_each).min(self.height);
        let columns = match per_row {
            1 => 0..self.width,
            _ => part * self.pixels_per_block()..((part + 1) * self.pixels_per_block()).min(self.width),
        };
        let before_in_row = if part == 0 { 0 } else { 1 + columns.start * self.format.bytes() };
        let offset = self.prefix_len() + rows.start * self.row_bytes() + before_in_row + number * BLOCK_FRAME;
        let filters = u64::from(part == 0);
        let length = (rows.end - rows.start) * (filters + (columns.end - columns.start) * self.format.bytes());
        Block { offset, rows, columns, length, is_last: number + 1 == self.blocks() }
    }

    /// Returns the number of the block whose chunk has the byte at `offset`, or of the block that is nearest to it.
    pub(crate) fn block_at(&self, offset: u64) -> u64 {
        let (rows_each, per_row) = (self.rows_per_block(), self.blocks_per_row());
        let body = offset.saturating_sub(self.prefix_len());
        let band_bytes = rows_each * self.row_bytes() + per_row * BLOCK_FRAME;
        let (band, within) = (body / band_bytes, body % band_bytes);
        // the first block of a row has the filter byte as well
        let part = within.saturating_sub(1) / (self.pixels_per_block() * self.format.bytes() + BLOCK_FRAME);
        (band * per_row + part.min(per_row - 1)).min(self.blocks() - 1)
    }

    /// Returns the range of the file that depends on all pixels: the Adler-32, and the CRC of its chunk.
    pub(crate) fn checksums(&self) -> Range<u64> {
        self.suffix_at() + 8..self.suffix_at() + CHUNK + 4
    }

    /// Returns the bytes before the first block. A picture of [`PixelFormat::Indexed`] has a palette.
    pub(crate) fn prefix(&self, palette: Option<&Palette>) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        let side = |side: u64| u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
        let [depth, colour] = self.format.codes();
        let ihdr = [&side(self.width)[..], &side(self.height), &[depth, colour, 0, 0, 0]].concat();
        push_chunk(&mut bytes, *b"IHDR", &ihdr);
        if let Some(palette) = palette {
            push_chunk(&mut bytes, *b"PLTE", palette.as_flattened());
        }
        push_chunk(&mut bytes, *b"IDAT", &ZLIB_HEADER);
        bytes
    }

    /// Returns the bytes after the last block, given the Adler-32 of the data of all blocks.
    pub(crate) fn suffix(adler: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_chunk(&mut bytes, *b"IDAT", &adler.to_be_bytes());
        push_chunk(&mut bytes, *b"IEND", &[]);
        bytes
    }
}

impl Block {
    /// Returns the bytes of the chunk before the data.
    pub(super) fn head(&self) -> [u8; BLOCK_HEAD as usize] {
        let mut head = [0; BLOCK_HEAD as usize];
        let length = u16::try_from(self.length).unwrap_or(u16::MAX);
        head[..4].copy_from_slice(&(u32::from(length) + STORED as u32).to_be_bytes());
        head[4..8].copy_from_slice(b"IDAT");
        head[8] = self.is_last.into();
        head[9..11].copy_from_slice(&length.to_le_bytes());
        head[11..].copy_from_slice(&(!length).to_le_bytes());
        head
    }

    /// Writes the chunk with the data that `paint` writes, and returns the Adler-32 of the data.
    pub(crate) fn write(&self, chunk: &mut [u8], paint: impl FnOnce(&mut [u8])) -> u32 {
        let (head, rest) = chunk.split_at_mut(BLOCK_HEAD as usize);
        let (data, tail) = rest.split_at_mut(self.length as usize);
        head.copy_from_slice(&self.head());
        paint(data);
        tail.copy_from_slice(&crc32(&head[4..], data).to_be_bytes());
        deflate::adler32(data)
    }

    /// Returns the range of the file that the chunk is.
    pub(crate) fn chunk(&self) -> Range<u64> {
        self.offset..self.offset + BLOCK_FRAME + self.length
    }

    /// Returns the range of the file that the data are.
    pub(crate) fn data(&self) -> Range<u64> {
        let start = self.offset + BLOCK_HEAD;
        start..start + self.length
    }
}

fn crc32(kind: &[u8], data: &[u8]) -> u32 {
    deflate::crc32(&[kind, data])
}

fn push_chunk(bytes: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&kind);
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&crc32(&kind, data).to_be_bytes());
}

/// Returns the Adler-32 of two parts from those of each. The second part has `length` bytes.
pub(crate) fn combined(first: u32, second: u32, length: u64) -> u32 {
    const BASE: u64 = 65_521;
    let [a, b] = [first, second].map(|sum| (u64::from(sum & 0xffff), u64::from(sum >> 16)));
    // each sum of the second part began with 1
    let low = (a.0 + b.0 + BASE - 1) % BASE;
    let high = (a.1 + b.1 + length % BASE * (a.0 + BASE - 1)) % BASE;
    (high << 16 | low) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::deflate::adler32;

    fn formats() -> impl Strategy<Value = PixelFormat> {
        use PixelFormat::{Grey8, Grey16, Indexed, Rgb8, Rgb16};
        prop::sample::select(vec![Grey8, Grey16, Rgb8, Rgb16, Indexed])
    }

    /// Sides below and beyond what a block holds.
    fn sides() -> impl Strategy<Value = (u64, u64)> {
        prop_oneof![(1u64..600, 1u64..600), (9_000u64..200_000, 1u64..4), (1u64..4, 9_000u64..200_000)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn blocks_follow_each_other_and_have_all_pixels((width, height) in sides(), format in formats()) {
            let layout = PngLayout::new(width, height, format).unwrap();
            let (mut at, mut pixels) = (layout.prefix_len(), 0);
            for number in 0..layout.blocks() {
                let block = layout.block(number);
                prop_assert_eq!(block.offset, at);
                prop_assert!(block.length <= MAX_BLOCK && block.length > 0);
                let columns = block.columns.end - block.columns.start;
                prop_assert_eq!(block.rows.start * width + block.columns.start, pixels);
                pixels += (block.rows.end - block.rows.start) * columns;
                let end = block.chunk().end;
                prop_assert_eq!(end, block.data().end + 4);
                for offset in [at, at + 1, at + BLOCK_HEAD, end - 4, end - 1] {
                    prop_assert_eq!(layout.block_at(offset), number);
                }
                at = end;
            }
            prop_assert_eq!((at, pixels), (layout.suffix_at(), width * height));
            prop_assert_eq!(layout.block_at(0), 0);
            prop_assert_eq!(layout.block_at(layout.len()), layout.blocks() - 1);
            let last = layout.block(layout.blocks() - 1);
            prop_assert!(last.is_last && (layout.blocks() == 1 || !layout.block(0).is_last));
        }
    }

    #[test]
    fn pictures_that_readers_would_refuse_have_no_layout() {
        let grey = |width, height| PngLayout::new(width, height, PixelFormat::Grey8);
        assert!(grey(0, 5).is_none() && grey(5, 0).is_none());
        assert!(grey(MAX_SIDE, 1).is_some() && grey(MAX_SIDE + 1, 1).is_none() && grey(1, u64::MAX).is_none());
        assert!(grey(16_000, 16_000).is_some() && grey(17_000, 17_000).is_none());
        assert!(PngLayout::new(16_000, 16_000, PixelFormat::Rgb8).is_none());
    }

    #[test]
    fn the_size_is_that_of_the_specification() {
        let layout = PngLayout::new(300, 1000, PixelFormat::Grey16).unwrap();
        // 601 bytes a row, 109 rows a block, 10 blocks
        assert_eq!((layout.row_bytes(), layout.blocks()), (601, 10));
        assert_eq!(layout.len(), 8 + 25 + 14 + 601_000 + 10 * 17 + 16 + 12);
        assert_eq!(layout.prefix(None).len() as u64, layout.prefix_len());
        assert_eq!(PngLayout::suffix(1).len() as u64, SUFFIX);
        let indexed = PngLayout { format: PixelFormat::Indexed, ..layout };
        assert_eq!(indexed.prefix(Some(&[[1, 2, 3]; 256])).len() as u64, indexed.prefix_len());
    }

    #[test]
    fn sums_of_parts_are_that_of_the_whole() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8 | 0xe0).collect();
        for at in [0, 1, 5552, 65_521, 131_042, 199_999, 200_000] {
            let (first, second) = bytes.split_at(at);
            assert_eq!(combined(adler32(first), adler32(second), second.len() as u64), adler32(&bytes), "{at}");
        }
    }
}
