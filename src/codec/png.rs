//! PNG images of 8 or 16 bits and one to four channels, without palette and not interlaced, as samples.
//!
//! A PNG file is a signature and chunks: length, name, content, CRC-32. The contents of the chunks `IDAT` together are a
//! zlib stream: for each row a byte that names a filter, and the row, of which each byte is stored as the difference to
//! what the filter predicts. Samples of 16 bits are big-endian. The public description is the PNG specification of the
//! W3C.

use std::borrow::Cow;

use super::deflate;
use crate::memory::{try_with_capacity, try_zeroed};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Bytes of a chunk besides its content.
const FRAME: u64 = 12;

/// The least content of chunks that writers make: that of libpng is 8 KiB.
const SHORTEST: u64 = 1 << 10;
/// Bytes of chunks that say something else of the image, and of one that is short.
const OTHERS: u64 = 64 << 10;

/// Returns the most bytes that an image takes of which the samples have `decoded` bytes, generously.
pub(crate) fn longest(decoded: u64) -> u64 {
    // rows of one byte have as many bytes of filters; deflate adds little to what it cannot make smaller
    let stream = decoded.saturating_mul(2);
    stream.saturating_add(stream / SHORTEST * (FRAME + 5)).saturating_add(OTHERS)
}

/// Returns the memory that decoding takes besides `stored` and decoded bytes.
pub(crate) fn scratch(stored: u64, decoded: u64) -> u64 {
    // the stream in one piece, and rows with their filters
    stored.saturating_add(decoded.saturating_mul(2))
}

/// Decodes an image of `channels` samples of `size` bytes a pixel, 1 or 2, into `out`, which it must fill: row by row,
/// the samples of a pixel beside each other and little-endian. Its width and height may be any.
pub(crate) fn decode(stored: &[u8], channels: usize, size: usize, out: &mut [u8]) -> Result<(), String> {
    let image = Image::parse(stored)?;
    if image.channels != channels || image.size != size {
        let (found, bits) = (image.channels, 8 * image.size);
        return Err(format!("its image has {found} channels of {bits} bits, not {channels} of {}", 8 * size));
    }
    let pixel = channels * size;
    let [width, height] = [image.width, image.height].map(|n| n as usize);
    let row = width.checked_mul(pixel).filter(|row| *row > 0 && row.checked_mul(height) == Some(out.len()));
    let row = row.ok_or_else(|| {
        format!("its image is of {width} x {height} pixels, and the chunk of {}", out.len() / pixel.max(1))
    })?;
    let mut filtered = try_zeroed(out.len() + height).map_err(|e| e.to_string())?;
    deflate::zlib(&image.stream, &mut filtered)?;
    let rows = filtered.chunks_exact(row + 1);
    let filter = match pixel {
        1 => unfilter::<1>,
        2 => unfilter::<2>,
        3 => unfilter::<3>,
        4 => unfilter::<4>,
        6 => unfilter::<6>,
        _ => unfilter::<8>,
    };
    let (mut above, mut rest) = (&mut [][..], &mut *out);
    for filtered in rows {
        let (to, after) = rest.split_at_mut(row);
        let Some((name, bytes)) = filtered.split_first() else { break };
        to.copy_from_slice(bytes);
        filter(*name, above, to)?;
        (above, rest) = (to, after);
    }
    if size == 2 {
        out.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
    }
    Ok(())
}

/// What the chunks of an image say.
struct Image<'a> {
    width: u32,
    height: u32,
    channels: usize,
    /// Bytes of a sample.
    size: usize,
    /// The zlib stream.
    stream: Cow<'a, [u8]>,
}

impl<'a> Image<'a> {
    fn parse(stored: &'a [u8]) -> Result<Self, String> {
        let mut rest = stored.strip_prefix(&SIGNATURE).ok_or("it is not a PNG image")?;
        let mut image: Option<Self> = None;
        loop {
            let (name, content, after) = chunk(rest).ok_or("its PNG image is cut off")?;
            rest = after;
            match (&mut image, &name) {
                (None, b"IHDR") => image = Some(Self::header(checked(name, content)?)?),
                (None, _) => return Err("its PNG image has no header".into()),
                (Some(image), b"IDAT") => image.add(checked(name, content)?, rest.len())?,
                (_, b"IEND") => break,
                // what might do for a palette
                (_, b"PLTE") => {}
                // a capital says that an image cannot be read without
                _ if name[0].is_ascii_uppercase() => {
                    return Err(format!("PNG images with {} are not supported", name.escape_ascii()));
                }
                _ => {}
            }
        }
        image.ok_or_else(|| "its PNG image has no header".into())
    }

    fn header(content: &[u8]) -> Result<Self, String> {
        let [w0, w1, w2, w3, h0, h1, h2, h3, bits, color, 0, 0, interlace] = *content else {
            return Err("the header of its PNG image makes no sense".into());
        };
        if interlace != 0 {
            return Err("interlaced PNG images are not supported".into());
        }
        let channels = match color {
            0 => 1,
            4 => 2,
            2 => 3,
            6 => 4,
            3 => return Err("PNG images with a palette are not supported".into()),
            _ => return Err("the header of its PNG image makes no sense".into()),
        };
        let size = match bits {
            8 => 1,
            16 => 2,
            _ => return Err(format!("PNG images of {bits} bits are not supported")),
        };
        let [width, height] = [[w0, w1, w2, w3], [h0, h1, h2, h3]].map(u32::from_be_bytes);
        Ok(Self { width, height, channels, size, stream: Cow::default() })
    }

    /// Adds a part of the stream, which `after` bytes follow.
    fn add(&mut self, part: &'a [u8], after: usize) -> Result<(), String> {
        match &mut self.stream {
            Cow::Borrowed([]) => self.stream = Cow::Borrowed(part),
            Cow::Borrowed(first) => {
                let most = first.len() + part.len() + after;
                let mut whole = try_with_capacity(most).map_err(|e| e.to_string())?;
                whole.extend_from_slice(first);
                whole.extend_from_slice(part);
                self.stream = Cow::Owned(whole);
            }
            Cow::Owned(whole) => whole.extend_from_slice(part),
        }
        Ok(())
    }
}

type Chunk<'a> = ([u8; 4], (&'a [u8], u32), &'a [u8]);

/// Splits the first chunk off: its name, its content with the CRC that is stored, and what follows.
fn chunk(stored: &[u8]) -> Option<Chunk<'_>> {
    let (length, rest) = stored.split_first_chunk()?;
    let (name, rest) = rest.split_first_chunk()?;
    let (content, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (crc, rest) = rest.split_first_chunk()?;
    Some((*name, (content, u32::from_be_bytes(*crc)), rest))
}

/// Returns the content of a chunk if its CRC is right.
fn checked(name: [u8; 4], (content, crc): (&[u8], u32)) -> Result<&[u8], String> {
    if deflate::crc32(&[&name, content]) != crc {
        return Err(format!("the checksum of {} in its PNG image is wrong", name.escape_ascii()));
    }
    Ok(content)
}

/// Undoes a filter. `above` is the row above, empty for the first. A pixel has `N` bytes.
fn unfilter<const N: usize>(filter: u8, above: &[u8], row: &mut [u8]) -> Result<(), String> {
    let (pixels, above) = (row.as_chunks_mut::<N>().0, above.as_chunks::<N>().0);
    let (mut left, mut corner) = ([0u8; N], [0u8; N]);
    match filter {
        0 => {}
        1 => {
            for pixel in pixels {
                for (left, byte) in left.iter_mut().zip(&*pixel) {
                    *left = left.wrapping_add(*byte);
                }
                *pixel = left;
            }
        }
        // without a row above this changes nothing
        2 => {
            for (byte, above) in pixels.as_flattened_mut().iter_mut().zip(above.as_flattened()) {
                *byte = byte.wrapping_add(*above);
            }
        }
        3 => {
            for (n, pixel) in pixels.iter_mut().enumerate() {
                let above = above.get(n).copied().unwrap_or([0; N]);
                for at in 0..N {
                    let predicted = (u16::from(left[at]) + u16::from(above[at])) / 2;
                    left[at] = pixel[at].wrapping_add(predicted as u8);
                }
                *pixel = left;
            }
        }
        4 => {
            for (n, pixel) in pixels.iter_mut().enumerate() {
                let above = above.get(n).copied().unwrap_or([0; N]);
                for at in 0..N {
                    left[at] = pixel[at].wrapping_add(nearest(left[at], above[at], corner[at]));
                }
                *pixel = left;
                corner = above;
            }
        }
        _ => return Err(format!("its PNG image has an unknown filter {filter}")),
    }
    Ok(())
}

/// Returns which of three neighbours is nearest to left + above - corner: the first of those that are equally near
/// (Paeth's predictor).
#[inline]
fn nearest(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i32::from);
    let (to_left, to_above, to_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    // no branches, which nothing could predict
    let (nearest, distance) = if to_above < to_left { (b, to_above) } else { (a, to_left) };
    (if to_corner < distance { c } else { nearest }) as u8
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let crc = deflate::crc32(&[name, content]);
        [&(content.len() as u32).to_be_bytes(), &name[..], content, &crc.to_be_bytes()].concat()
    }

    fn header(width: u32, height: u32, bits: u8, color: u8, interlace: u8) -> Vec<u8> {
        let rest = [bits, color, 0, 0, interlace];
        chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &rest].concat())
    }

    /// Encodes rows of samples with the filters in turn, in several chunks.
    fn encode(samples: &[u8], width: usize, channels: usize, size: usize, filters: &[u8], part: usize) -> Vec<u8> {
        let (pixel, row) = (channels * size, width * channels * size);
        let mut bytes = samples.to_vec();
        if size == 2 {
            bytes.chunks_mut(2).for_each(<[u8]>::reverse);
        }
        let mut stream = Vec::new();
        for (y, filter) in (0..bytes.len() / row).zip(filters.iter().cycle()) {
            stream.push(*filter);
            for x in 0..row {
                let at = |y: usize, x: usize| i32::from(bytes[y * row + x]);
                let left = if x < pixel { 0 } else { at(y, x - pixel) };
                let above = if y == 0 { 0 } else { at(y - 1, x) };
                let corner = if y == 0 || x < pixel { 0 } else { at(y - 1, x - pixel) };
                let near = left + above - corner;
                let predicted = match filter {
                    0 => 0,
                    1 => left,
                    2 => above,
                    3 => (left + above) / 2,
                    _ => [left, above, corner].into_iter().min_by_key(|n| (near - n).abs()).unwrap(),
                };
                stream.push((at(y, x) - predicted) as u8);
            }
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&stream).unwrap();
        let color = [0, 4, 2, 6][channels - 1];
        let mut file = SIGNATURE.to_vec();
        file.extend(header(width as u32, (bytes.len() / row) as u32, 8 * size as u8, color, 0));
        file.extend(chunk(b"tEXt", b"Comment\0none"));
        encoder.finish().unwrap().chunks(part).for_each(|part| file.extend(chunk(b"IDAT", part)));
        file.extend(chunk(b"IEND", b""));
        file
    }

    fn decoded(stored: &[u8], channels: usize, size: usize, length: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0xaa; length];
        decode(stored, channels, size, &mut out).map(|()| out)
    }

    proptest! {
        #[test]
        fn images_of_every_kind_come_back(
            width in 1..20_usize, height in 1..12_usize, channels in 1..5_usize, size in 1..3_usize, seed in any::<u64>(),
            filters in prop::collection::vec(0..5_u8, 1..6), part in 1..200_usize, flip in any::<prop::sample::Index>(),
        ) {
            let length = width * height * channels * size;
            let samples: Vec<u8> = (0..length as u64).map(|n| ((n * n * 7) ^ (n.wrapping_mul(seed) >> 61)) as u8).collect();
            let mut file = encode(&samples, width, channels, size, &filters, part);
            prop_assert!(file.len() as u64 <= longest(length as u64) || part < 100);
            prop_assert_eq!(decoded(&file, channels, size, length), Ok(samples.clone()));
            prop_assert!(decoded(&file, channels % 4 + 1, size, length).is_err());
            prop_assert!(decoded(&file, channels, 3 - size, length).is_err());
            prop_assert!(decoded(&file, channels, size, length + channels * size).is_err());
            let at = flip.index(file.len());
            prop_assert!(decoded(&file[..at], channels, size, length).is_err());
            file[at] ^= 1;
            // of chunks that say nothing of the samples nothing is checked
            prop_assert!(decoded(&file, channels, size, length).map_or(true, |read| read == samples));
        }
    }

    #[test]
    fn other_kinds_are_refused_by_name() {
        let refused = |width: u32, height: u32, bits: u8, color: u8, interlace: u8| {
            let file = [&SIGNATURE[..], &header(width, height, bits, color, interlace), &chunk(b"IEND", b"")].concat();
            decoded(&file, 1, 1, 6).unwrap_err()
        };
        assert!(refused(2, 3, 8, 3, 0).contains("palette"));
        assert!(refused(2, 3, 8, 0, 1).contains("interlaced"));
        assert!(refused(2, 3, 4, 0, 0).contains("4 bits"));
        assert!(refused(2, 3, 16, 0, 0).contains("16 bits"));
        assert!(refused(2, 3, 8, 1, 0).contains("makes no sense"));
        for (width, height) in [(0, 0), (0, 6), (u32::MAX, u32::MAX), (3, 3), (1 << 31, 3)] {
            assert!(refused(width, height, 8, 0, 0).contains("pixels"), "{width} {height}");
        }
        assert!(decoded(b"\xff\xd8", 1, 1, 6).unwrap_err().contains("not a PNG"));
    }
}
