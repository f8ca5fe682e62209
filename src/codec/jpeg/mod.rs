//! JPEG images: gray, or three colours, in sequential mode with Huffman codes and samples of 8 bits.
//!
//! The format leaves the last bit of a sample to the decoder. All readers of volumes use libjpeg-turbo, so the samples
//! here are those of its default methods: [`idct`] and [`colour`]. [`huffman`] reads bits and codes. The public
//! description is ITU-T T.81; T.871 (JFIF) has the colours.

mod colour;
mod huffman;
mod idct;

use colour::{Plane, RowsOut};
use huffman::{Bits, Codes};

/// The greatest width and height.
const MAX_SIDE: u64 = 65_535;
/// The most samples that a component may have for one of another component, along either axis.
const MAX_SAMPLING: usize = 2;
/// Samples of a block along either axis, and all of them.
const SIDE: usize = 8;
const BLOCK: usize = SIDE * SIDE;

/// Returns the most bytes that an image of so many samples takes, generously.
pub(crate) fn longest(samples: u64) -> u64 {
    // a code of 16 bits and up to 11 more for each sample at worst; profiles and comments
    samples.saturating_mul(4).saturating_add(256 << 10)
}

/// Returns the memory that decoding an image takes besides stored and decoded bytes.
pub(crate) fn scratch(pixels: u64, channels: usize) -> u64 {
    let rows = 3 * (MAX_SAMPLING * SIDE * channels) as u64;
    let widest = pixels.min(MAX_SIDE) + (MAX_SAMPLING * SIDE) as u64;
    let planes = if channels > 1 { widest * (rows + 4) } else { 0 };
    planes + (64 << 10)
}

/// Decodes an image of `channels` samples a pixel, 1 or 3, into `out`, which it must fill: row by row, the samples of a
/// pixel beside each other. Its width and height may be any.
pub(crate) fn decode(stored: &[u8], channels: usize, out: &mut [u8]) -> Result<(), String> {
    let mut image = Image::default();
    let mut rest = stored.strip_prefix(&[0xff, SOI]).ok_or("it is not a JPEG image")?;
    loop {
        let (marker, content, after) = segment(rest).ok_or("its JPEG image is cut off")?;
        rest = after;
        match marker {
            DQT => image.quantisation(content)?,
            DHT => image.codes(content)?,
            DRI => image.restart = number(content, 0).ok_or_else(damaged)?,
            ADOBE if content.starts_with(b"Adobe") => image.adobe = content.get(11).copied(),
            JFIF if content.starts_with(b"JFIF\0") => image.is_jfif = true,
            SOF0 | SOF1 => image.frame(content, channels, out.len())?,
            SOF2 => return Err("progressive JPEG images are not supported".into()),
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err(format!("JPEG images of the kind {marker:#x} are not supported"));
            }
            SOS => return image.scan(content, rest, out),
            EOI => return Err("its JPEG image has no samples".into()),
            _ => {}
        }
    }
}

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const DQT: u8 = 0xdb;
const DHT: u8 = 0xc4;
const DRI: u8 = 0xdd;
const SOF0: u8 = 0xc0;
const SOF1: u8 = 0xc1;
const SOF2: u8 = 0xc2;
const JFIF: u8 = 0xe0;
const ADOBE: u8 = 0xee;

/// Splits the next marker off: its second byte, the content of its segment, and what follows.
fn segment(stored: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    // any number of bytes may fill the space before the last of a marker
    let rest = stored.strip_prefix(&[0xff])?;
    let at = rest.iter().position(|byte| *byte != 0xff)?;
    let (marker, rest) = (rest[at], &rest[at + 1..]);
    if marker == EOI {
        return Some((marker, &[], rest));
    }
    let (segment, rest) = rest.split_at_checked(number(rest, 0)?.into())?;
    Some((marker, segment.get(2..)?, rest))
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn damaged() -> String {
    "its JPEG image is damaged".into()
}

/// What the segments before the samples say.
#[derive(Default)]
struct Image {
    /// Steps of the coefficients in the order in which they are stored.
    steps: [Option<[u16; BLOCK]>; 4],
    /// Codes of the differences of means, and of other coefficients.
    dc: [Option<Box<Codes>>; 4],
    ac: [Option<Box<Codes>>; 4],
    /// The number of units after which decoding begins anew; 0 for none.
    restart: u16,
    /// What Adobe's segment says of the colours.
    adobe: Option<u8>,
    is_jfif: bool,
    width: usize,
    height: usize,
    components: Vec<Component>,
}

#[derive(Clone, Copy)]
struct Component {
    id: u8,
    /// Samples along x and y for one of the component with fewest.
    sampling: [usize; 2],
    steps: usize,
}

impl Image {
    fn quantisation(&mut self, mut content: &[u8]) -> Result<(), String> {
        while let [head, rest @ ..] = content {
            let bytes = if head >> 4 == 0 { 1 } else { 2 };
            let (values, after) = rest.split_at_checked(BLOCK * bytes).ok_or_else(damaged)?;
            let table = self.steps.get_mut(usize::from(head & 15)).ok_or_else(damaged)?;
            let mut steps = [0; BLOCK];
            for (step, value) in steps.iter_mut().zip(values.chunks_exact(bytes)) {
                *step = value.iter().fold(0, |step, byte| step << 8 | u16::from(*byte));
            }
            *table = Some(steps);
            content = after;
        }
        Ok(())
    }

    fn codes(&mut self, mut content: &[u8]) -> Result<(), String> {
        while let [head, rest @ ..] = content {
            let (lengths, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
            let count = lengths.iter().map(|n| usize::from(*n)).sum();
            let (symbols, after) = rest.split_at_checked(count).ok_or_else(damaged)?;
            let tables = if head >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            let table = tables.get_mut(usize::from(head & 15)).ok_or_else(damaged)?;
            *table = Some(Box::new(Codes::new(lengths, symbols).ok_or_else(damaged)?));
            content = after;
        }
        Ok(())
    }

    /// Reads the segment of a frame, whose samples must have `bytes` bytes.
    fn frame(&mut self, content: &[u8], channels: usize, bytes: usize) -> Result<(), String> {
        let [bits, h0, h1, w0, w1, count, components @ ..] = content else { return Err(damaged()) };
        if *bits != 8 {
            return Err(format!("JPEG images of {bits} bits are not supported"));
        }
        let [height, width] = [[*h0, *h1], [*w0, *w1]].map(|n| usize::from(u16::from_be_bytes(n)));
        if usize::from(*count) != channels || !matches!(channels, 1 | 3) {
            return Err(format!("its JPEG image has {count} channels, not {channels}"));
        }
        if width == 0 || height == 0 || width.checked_mul(height).and_then(|n| n.checked_mul(channels)) != Some(bytes) {
            let pixels = bytes / channels;
            return Err(format!("its JPEG image is of {width} x {height} pixels, and the chunk of {pixels}"));
        }
        let (components, rest) = components.as_chunks::<3>();
        if components.len() != channels || !rest.is_empty() || !self.components.is_empty() {
            return Err(damaged());
        }
        for [id, sampling, steps] in components {
            let mut sampling = [sampling >> 4, sampling & 15].map(usize::from);
            if channels == 1 {
                // blocks of a component alone are in order, whatever it says
                sampling = [1, 1];
            }
            if sampling.iter().any(|n| !(1..=MAX_SAMPLING).contains(n)) {
                return Err("the subsampling of its JPEG image is not supported".into());
            }
            self.components.push(Component { id: *id, sampling, steps: usize::from(*steps) });
        }
        (self.width, self.height) = (width, height);
        Ok(())
    }

    /// Returns whether colours are stored as they are, and not as brightness and two differences.
    fn is_rgb(&self) -> bool {
        match (self.is_jfif, self.adobe) {
            (true, _) => false,
            (false, Some(transform)) => transform == 0,
            (false, None) => self.components.iter().map(|component| component.id).eq(*b"RGB"),
        }
    }

    /// Decodes the scan that the segment `content` describes.
    fn scan(&self, content: &[u8], coded: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (count, rest) = content.split_first().ok_or_else(damaged)?;
        let count = usize::from(*count);
        if self.components.is_empty() || count == 0 {
            return Err(damaged());
        }
        if count != self.components.len() {
            return Err("JPEG images in several scans are not supported".into());
        }
        let selected = rest.get(..2 * count).ok_or_else(damaged)?.as_chunks::<2>().0;
        let most = [0, 1].map(|a| self.components.iter().map(|component| component.sampling[a]).max().unwrap_or(1));
        let units = [self.width.div_ceil(SIDE * most[0]), self.height.div_ceil(SIDE * most[1])];
        let mut parts = Vec::with_capacity(count);
        for (component, [id, tables]) in self.components.iter().zip(selected) {
            let dc = self.dc.get(usize::from(tables >> 4)).and_then(Option::as_deref).ok_or_else(damaged)?;
            let ac = self.ac.get(usize::from(tables & 15)).and_then(Option::as_deref).ok_or_else(damaged)?;
            let steps = self.steps.get(component.steps).and_then(Option::as_ref).ok_or_else(damaged)?;
            if *id != component.id {
                return Err(damaged());
            }
            parts.push(Part { dc, ac, steps, sampling: component.sampling, mean: 0 });
        }
        let mut scan = Scan { bits: Bits::new(coded), parts, restart: self.restart.into(), units, done: 0 };
        match self.components.len() {
            1 => scan.gray(self.width, out),
            _ => scan.colours(self, most, out),
        }
    }
}

/// A component of a scan.
struct Part<'a> {
    dc: &'a Codes,
    ac: &'a Codes,
    steps: &'a [u16; BLOCK],
    sampling: [usize; 2],
    /// The mean of the last block.
    mean: i32,
}

impl Part<'_> {
    /// Decodes the next block: its samples, row by row.
    #[inline]
    fn block(&mut self, bits: &mut Bits) -> Result<[u8; BLOCK], String> {
        let mut coefficients = [0i16; BLOCK];
        self.mean = self.mean.wrapping_add(bits.difference(self.dc).ok_or_else(damaged)?);
        coefficients[0] = dequantised(self.mean, self.steps[0]);
        let last = bits.coefficients(self.ac, self.steps, &mut coefficients).ok_or_else(damaged)?;
        Ok(if last == 0 { idct::constant(coefficients[0]) } else { idct::samples(&coefficients) })
    }
}

/// Returns a coefficient. Those of images are small: what does not fit into 16 bits is damaged.
#[inline]
fn dequantised(level: i32, step: u16) -> i16 {
    level.wrapping_mul(i32::from(step)) as i16
}

/// The units of an image while they are decoded. A unit has one block of each component, or more of those with more
/// samples.
struct Scan<'a> {
    bits: Bits<'a>,
    parts: Vec<Part<'a>>,
    restart: usize,
    /// Units along x and y.
    units: [usize; 2],
    done: usize,
}

impl Scan<'_> {
    /// Prepares for the next unit.
    fn begin(&mut self) -> Result<(), String> {
        if self.restart > 0 && self.done > 0 && self.done.is_multiple_of(self.restart) {
            self.bits.restart(self.done / self.restart - 1).ok_or_else(damaged)?;
            self.parts.iter_mut().for_each(|part| part.mean = 0);
        }
        self.done += 1;
        Ok(())
    }

    /// Notices after a row of units that the data have ended.
    fn end_row(&self) -> Result<(), String> {
        if self.bits.has_ended() { Err("its JPEG image is cut off".into()) } else { Ok(()) }
    }

    fn gray(&mut self, width: usize, out: &mut [u8]) -> Result<(), String> {
        for rows in out.chunks_mut(width * SIDE) {
            for x in 0..self.units[0] {
                self.begin()?;
                let part = self.parts.first_mut().ok_or_else(damaged)?;
                put(&part.block(&mut self.bits)?, rows, width, x * SIDE);
            }
            self.end_row()?;
        }
        Ok(())
    }

    fn colours(&mut self, image: &Image, most: [usize; 2], out: &mut [u8]) -> Result<(), String> {
        let mut planes = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            planes.push(Plane::new([image.width, image.height], most, part.sampling).map_err(|e| e.to_string())?);
        }
        let mut rows = RowsOut::new(image.width, image.is_rgb(), out).map_err(|e| e.to_string())?;
        for y in 0..self.units[1] {
            for x in 0..self.units[0] {
                self.begin()?;
                for (part, plane) in self.parts.iter_mut().zip(&mut planes) {
                    let [across, down] = part.sampling;
                    for row in 0..down {
                        for column in 0..across {
                            let samples = part.block(&mut self.bits)?;
                            let (rows, width) = plane.rows(y * down + row);
                            put(&samples, rows, width, (x * across + column) * SIDE);
                        }
                    }
                }
            }
            self.end_row()?;
            // the last row of these needs the first of the next
            let until = if y + 1 == self.units[1] { image.height } else { (y + 1) * SIDE * most[1] - 1 };
            rows.write(&planes, until);
        }
        Ok(())
    }
}

/// Copies a block to rows of `width` samples, as far as there is room.
fn put(block: &[u8; BLOCK], rows: &mut [u8], width: usize, x: usize) {
    for (row, samples) in rows.chunks_mut(width).zip(block.as_chunks::<SIDE>().0) {
        if let Some(to) = row.get_mut(x..x + SIDE) {
            to.copy_from_slice(samples);
        } else if let Some(to) = row.get_mut(x..) {
            to.iter_mut().zip(samples).for_each(|(to, sample)| *to = *sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::codec::deflate::crc32;

    struct Sample {
        name: String,
        channels: usize,
        samples: usize,
        crc: String,
        stored: Vec<u8>,
    }

    /// Returns what others have encoded (scripts/make_precomputed_fixtures.py).
    fn images() -> Vec<Sample> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/precomputed/images.json");
        let images: Vec<Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let text = |image: &Value, key: &str| image[key].as_str().unwrap().to_owned();
        let sample = |image: &Value| Sample {
            name: text(image, "name"),
            channels: image["channels"].as_u64().unwrap() as usize,
            samples: image["samples"].as_u64().unwrap() as usize,
            crc: text(image, "crc32"),
            stored: STANDARD.decode(text(image, "jpeg")).unwrap(),
        };
        images.iter().map(sample).collect()
    }

    fn decoded(stored: &[u8], channels: usize, samples: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0xaa; samples];
        decode(stored, channels, &mut out).map(|()| out)
    }

    #[test]
    fn samples_are_those_of_libjpeg() {
        for Sample { name, channels, samples, crc, stored } in images() {
            let found = decoded(&stored, channels, samples);
            if name == "progressive" {
                assert!(found.unwrap_err().contains("progressive"));
                continue;
            }
            let found = found.unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(format!("{:08x}", crc32(&[&found])), crc, "{name}");
            assert!(stored.len() as u64 <= longest(samples as u64));
            assert!(decoded(&stored, 4 - channels, samples).unwrap_err().contains("channels"), "{name}");
            let other = decoded(&stored, channels, samples + channels).unwrap_err();
            let pixels = format!(" pixels, and the chunk of {}", samples / channels + 1);
            assert!(other.ends_with(&pixels), "{name}: {other}");
            for cut in 0..stored.len() - 2 {
                let why = decoded(&stored[..cut], channels, samples).unwrap_err();
                assert!(why.contains("JPEG"), "{name}: {cut} of {}: {why}", stored.len());
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_images_are_samples_or_an_error(
            which in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let images = images();
            let Sample { channels, samples, mut stored, .. } = images.into_iter().nth(which.index(38)).unwrap();
            for (at, byte) in changes {
                let at = at.index(stored.len());
                stored[at] = byte;
            }
            let _ = decoded(&stored, channels, samples);
        }
    }
}
