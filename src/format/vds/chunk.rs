//! Decodes chunks that are stored uncompressed or compressed by RLE or Zip: a header of 24 bytes, then the samples.
//! Also makes the samples of constant chunks, of chunks of NoValue, and of chunks that were never written.

use super::chunk_grid::ChunkGrid;
use super::description::{Channel, SampleFormat};
use super::store::CompressionMethod;
use crate::codec::inflate;
use crate::format::bytes::ByteReader;
use crate::memory::try_zeroed;
use crate::volume::{Dims, Element};

pub(super) const HEADER: usize = 24;

/// Checks that the header is that of the chunk at `at`.
pub(super) fn check_header(
    header: &[u8; HEADER],
    grid: &ChunkGrid,
    format: SampleFormat,
    at: &Dims,
) -> Result<(), String> {
    let fields = ByteReader::new("chunk header", header).several(ByteReader::i32);
    let [dimensions, x, y, z, code, components] = fields.map_err(|_| "it is shorter than its header")?;
    if !(1..=3).contains(&dimensions) {
        return Err(format!("its header has {dimensions} dimensions"));
    }
    // sizes beyond the number of dimensions are not specified
    let size = |d: i32, samples: i32| if d < dimensions { i64::from(samples) } else { 1 };
    let (found, expected) = ([size(0, x), size(1, y), size(2, z)], grid.sizes(at).map(|n| n as i64));
    if found != expected {
        return Err(format!("its header says {found:?} samples, expected {expected:?}"));
    }
    if code != format as i32 {
        return Err(format!("its header says format {code}, but the channel has {}", format.name()));
    }
    if i64::from(components) != grid.components as i64 {
        return Err(format!("its header says {components} components, but the channel has {}", grid.components));
    }
    Ok(())
}

/// Returns an upper bound of the stored bytes of a chunk whose uncompressed samples have `uncompressed` bytes; longer
/// chunks are damaged. RLE at worst doubles the bytes, and deflate adds few. Wavelet coefficients are floats even if
/// samples are single bytes, and a lossless chunk has a residual as well.
pub(super) fn most_stored_bytes(method: CompressionMethod, uncompressed: usize) -> u64 {
    let uncompressed = uncompressed as u64;
    match method {
        CompressionMethod::None => uncompressed + HEADER as u64,
        _ if method.is_wavelet() => 16 * uncompressed + (64 << 10),
        _ => 2 * uncompressed + 4096,
    }
}

/// Decodes the stored bytes of the chunk at `at` to samples; single bits become a byte each.
pub(super) fn decode(
    method: CompressionMethod,
    stored: &[u8],
    grid: &ChunkGrid,
    format: SampleFormat,
    at: &Dims,
    out: &mut [u8],
) -> Result<(), String> {
    let (header, body) = stored.split_first_chunk().ok_or("it is shorter than its header")?;
    check_header(header, grid, format, at)?;
    if format != SampleFormat::Bit {
        return decompress(method, body, out);
    }
    let mut packed = try_zeroed(grid.uncompressed_bytes(at)).map_err(|e| e.to_string())?;
    decompress(method, body, &mut packed)?;
    expand_bits(&packed, grid.sizes(at)[0] * grid.components, out);
    Ok(())
}

fn decompress(method: CompressionMethod, body: &[u8], out: &mut [u8]) -> Result<(), String> {
    match method {
        CompressionMethod::Rle => decode_rle(body, out),
        CompressionMethod::Zip => inflate::decode(body, out),
        _ if body.len() == out.len() => {
            out.copy_from_slice(body);
            Ok(())
        }
        _ => Err(format!("it has {} bytes of samples, expected {}", body.len(), out.len())),
    }
}

/// Expands each bit to a byte. Rows of `row` bits begin on a byte; the lowest bit is the first sample.
fn expand_bits(packed: &[u8], row: u64, out: &mut [u8]) {
    let row = row as usize;
    for (bits, bytes) in packed.chunks_exact(row.div_ceil(8).max(1)).zip(out.chunks_exact_mut(row.max(1))) {
        for (bits, bytes) in bits.iter().zip(bytes.chunks_mut(8)) {
            for (n, byte) in bytes.iter_mut().enumerate() {
                *byte = bits >> n & 1;
            }
        }
    }
}

/// Bytes of the header: encoded size, decoded size, bytes of a unit, 32 bits each.
const RLE_HEADER: usize = 12;

/// Decodes `packed`, which begins with its header, into all of `out`.
pub(crate) fn decode_rle(packed: &[u8], out: &mut [u8]) -> Result<(), String> {
    let fields = ByteReader::new("run lengths", packed).several(ByteReader::i32);
    let [size, unpacked, unit] = fields.map_err(|_| "its run lengths are shorter than their header")?;
    let size = usize::try_from(size).ok().filter(|n| (RLE_HEADER..=packed.len()).contains(n));
    let size = size.ok_or("the size of its run lengths makes no sense")?;
    if usize::try_from(unpacked) != Ok(out.len()) {
        return Err(format!("its run lengths say {unpacked} bytes, expected {}", out.len()));
    }
    let runs = &packed[RLE_HEADER..size];
    match unit {
        1 => expand_runs::<1>(runs, out),
        2 => expand_runs::<2>(runs, out),
        4 => expand_runs::<4>(runs, out),
        8 => expand_runs::<8>(runs, out),
        _ => return Err(format!("its run lengths have units of {unit} bytes")),
    }
    .ok_or_else(|| "its run lengths do not end where they should".into())
}

/// Expands runs of units of `UNIT` bytes; `None` if a run goes beyond `out`, or the runs end before it is full.
fn expand_runs<const UNIT: usize>(mut runs: &[u8], mut out: &mut [u8]) -> Option<()> {
    while !out.is_empty() {
        let (&head, rest) = runs.split_first()?;
        runs = rest;
        let mut units = usize::from(head & 63);
        if head & 128 != 0 {
            let (&more, rest) = runs.split_first()?;
            runs = rest;
            units |= usize::from(more) << 6;
        }
        let (now, later) = std::mem::take(&mut out).split_at_mut_checked((units + 1) * UNIT)?;
        out = later;
        if head & 64 != 0 {
            let (copied, rest) = runs.split_at_checked(now.len())?;
            now.copy_from_slice(copied);
            runs = rest;
        } else {
            let (unit, rest) = runs.split_first_chunk::<UNIT>()?;
            now.as_chunks_mut::<UNIT>().0.fill(*unit);
            runs = rest;
        }
    }
    Some(())
}

/// Returns a sample of the value `v`. As in OpenVDS the arithmetic is in float32, each operation rounded on its own.
pub(super) fn element(channel: &Channel, v: f32) -> Element {
    match channel.format {
        SampleFormat::Bit => Element::new(&[u8::from(v != 0.0)]),
        SampleFormat::U8 => Element::new(&[code(channel, v) as u8]),
        SampleFormat::U16 => Element::new(&code(channel, v).to_le_bytes()),
        // a float that is out of range becomes the nearest number of the type
        SampleFormat::U32 => Element::new(&((v + 0.5) as u32).to_le_bytes()),
        SampleFormat::U64 => Element::new(&((v + 0.5) as u64).to_le_bytes()),
        SampleFormat::R32 => Element::new(&v.to_le_bytes()),
        SampleFormat::R64 => Element::new(&f64::from(v).to_le_bytes()),
    }
}

fn code(channel: &Channel, v: f32) -> u16 {
    let q = (v - channel.integer_offset) * (1.0 / channel.integer_scale);
    // NaN becomes 0
    // if the channel has a NoValue, the last code means that
    let all = if channel.format == SampleFormat::U8 { 255.0 } else { 65535.0 };
    let greatest = if channel.no_value.is_some() { all - 1.0 } else { all };
    (q.max(0.0).min(greatest) + 0.5) as u16
}

/// Returns the code of NoValue in U8 and U16, which does not depend on the channel's NoValue.
pub(super) fn no_value_code(channel: &Channel) -> Option<u16> {
    channel.no_value?;
    match channel.format {
        SampleFormat::U8 => Some(255),
        SampleFormat::U16 => Some(65535),
        _ => None,
    }
}

/// Returns the stored number that means NoValue.
pub(super) fn no_value_number(channel: &Channel) -> Option<f64> {
    let value = channel.no_value?;
    Some(match channel.format {
        SampleFormat::U8 | SampleFormat::U16 => no_value_code(channel)?.into(),
        SampleFormat::U32 => ((value + 0.5) as u32).into(),
        SampleFormat::U64 => (value + 0.5) as u64 as f64,
        _ => value.into(),
    })
}

/// Returns a sample that is NoValue; the real value zero if the channel has no NoValue.
pub(super) fn no_value(channel: &Channel) -> Element {
    match no_value_code(channel) {
        Some(code) => Element::new(&code.to_le_bytes()[..channel.format.dtype().size()]),
        None => element(channel, channel.no_value.unwrap_or(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_of_bits_begin_on_a_byte() {
        let mut out = [9; 20];
        expand_bits(&[0b1000_0001, 0b1111_1110, 0b0101_0101, 0b10], 10, &mut out);
        assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    }

    fn packed(unpacked: i32, unit: i32, runs: &[u8]) -> Vec<u8> {
        let size = (RLE_HEADER + runs.len()) as i32;
        [&size.to_le_bytes()[..], &unpacked.to_le_bytes(), &unit.to_le_bytes(), runs].concat()
    }

    /// Encodes runs of up to 100 units, repeated or literal.
    fn pack(unit: usize, data: &[u8]) -> Vec<u8> {
        let mut runs = Vec::new();
        let mut head = |n: usize, copy: bool, body: &[u8]| {
            let low = (n - 1) as u8 & 63 | u8::from(copy) << 6;
            match (n - 1) >> 6 {
                0 => runs.push(low),
                high => runs.extend([low | 128, high as u8]),
            }
            runs.extend(body);
        };
        let mut left = data;
        while !left.is_empty() {
            let same = left.chunks(unit).take(100).take_while(|u| *u == &left[..unit]).count();
            if same > 1 {
                head(same, false, &left[..unit]);
                left = &left[same * unit..];
            } else {
                let n = (left.len() / unit).min(70);
                head(n, true, &left[..n * unit]);
                left = &left[n * unit..];
            }
        }
        runs
    }

    #[test]
    fn runs_are_repeated_or_copied() {
        let mut out = [0; 8];
        decode_rle(&packed(8, 2, &[2, 1, 2, 0x40, 7, 8]), &mut out).unwrap();
        assert_eq!(out, [1, 2, 1, 2, 1, 2, 7, 8]);
        let mut out = vec![0; 1000];
        decode_rle(&packed(1000, 1, &[128 | (999 & 63) as u8, (999 >> 6) as u8, 5]), &mut out).unwrap();
        assert!(out.iter().all(|b| *b == 5));
    }

    #[test]
    fn damaged_runs_are_refused() {
        let refused = |bytes: &[u8]| decode_rle(bytes, &mut [0; 8]).unwrap_err();
        assert!(refused(&packed(8, 2, &[3])[..11]).contains("header"));
        assert!(refused(&packed(9, 1, &[8, 1])).contains("say 9 bytes"));
        assert!(refused(&packed(8, 3, &[7, 1])).contains("units of 3"));
        for runs in [&[][..], &[8, 1], &[6, 1], &[7], &[0x47, 1, 2, 3], &[0x80]] {
            assert!(refused(&packed(8, 1, runs)).contains("do not end"), "{runs:?}");
        }
        let mut long = packed(8, 1, &[7, 1]);
        long[0] += 1;
        assert!(refused(&long).contains("size"));
    }

    proptest! {
        #[test]
        fn decoding_restores_what_was_encoded(log in 0u32..4, data in prop::collection::vec(0u8..3, 0..2000)) {
            let unit = 1 << log;
            let data = &data[..data.len() / unit * unit];
            let mut out = vec![9; data.len()];
            prop_assert_eq!(decode_rle(&packed(data.len() as i32, unit as i32, &pack(unit, data)), &mut out), Ok(()));
            prop_assert_eq!(&out, data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(log in 0i32..4, runs in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_rle(&packed(64, 1 << log, &runs), &mut [0; 64]);
        }
    }

    fn channel(format: SampleFormat) -> Channel {
        Channel { format, integer_scale: 1.0, ..Channel::default() }
    }

    #[test]
    fn constants_become_samples_of_each_format() {
        let bytes = |format, v| element(&channel(format), v).bytes().to_vec();
        assert_eq!(bytes(SampleFormat::Bit, -2.0), [1]);
        assert_eq!(bytes(SampleFormat::U32, 16_777_217.0), 16_777_216u32.to_le_bytes());
        assert_eq!(bytes(SampleFormat::U32, -1.0), [0; 4]);
        assert_eq!(bytes(SampleFormat::U32, 1e20), [255; 4]);
        assert_eq!(bytes(SampleFormat::U64, 1e30), [255; 8]);
        assert_eq!(bytes(SampleFormat::R64, 0.1), f64::from(0.1f32).to_le_bytes());
        assert_eq!(bytes(SampleFormat::R32, -0.0), (-0.0f32).to_le_bytes());
        assert_eq!(bytes(SampleFormat::U16, f32::NAN), [0, 0]);
    }

    #[test]
    fn codes_stop_before_the_one_of_no_value() {
        let scaled = Channel { integer_scale: 0.1, integer_offset: -12.7, ..channel(SampleFormat::U8) };
        assert_eq!(element(&scaled, 0.0).bytes(), [127]);
        assert_eq!(element(&scaled, 1000.0).bytes(), [255]);
        let with = Channel { no_value: Some(-999.25), ..scaled };
        assert_eq!(element(&with, 1000.0).bytes(), [254]);
        assert_eq!(no_value(&with).bytes(), [255]);
        let with = Channel { no_value: Some(-999.25), ..channel(SampleFormat::R32) };
        assert_eq!(no_value(&with).bytes(), (-999.25f32).to_le_bytes());
        assert_eq!(no_value(&channel(SampleFormat::U16)).bytes(), [0, 0]);
        for (format, number) in [(SampleFormat::U32, 0.0), (SampleFormat::U16, 65535.0), (SampleFormat::R64, -999.25)] {
            assert_eq!(no_value_number(&Channel { no_value: Some(-999.25), ..channel(format) }), Some(number));
        }
        let with = Channel { no_value: Some(7.75), ..channel(SampleFormat::U64) };
        assert_eq!((no_value(&with).bytes()[0], no_value_number(&with)), (8, Some(8.0)));
    }
}
