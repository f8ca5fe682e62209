//! Safe wrappers around libzfp, the only file of the crate that calls it.
//!
//! libzfp checks neither the end of its input nor that of its output. [`decompress`] is safe nevertheless: it reads
//! back the parameters that libzfp took from the header, and calls the decoder only if the input is as long as a stream
//! with these parameters can be and the output has exactly the length that libzfp will write.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use zfp_sys::{
    ZFP_HEADER_FULL, bitstream, stream_close, stream_open, zfp_decompress, zfp_exec_policy_zfp_exec_serial, zfp_field,
    zfp_field_1d, zfp_field_free, zfp_read_header, zfp_stream, zfp_stream_close, zfp_stream_open,
    zfp_stream_set_execution, zfp_type_zfp_type_none,
};

use super::header::Header;
use super::params::Params;
use super::scalar::Scalar;

/// Bytes that libzfp may read for the header: the longest one, rounded up to whole words.
const HEADER: usize = 24;

/// A stream as libzfp reads it: aligned words of 64 bits.
pub(super) enum Words<'a> {
    /// Bytes whose address is aligned to a word.
    Borrowed(&'a [u8]),
    /// An aligned copy.
    Copied(Vec<u64>),
}

impl<'a> Words<'a> {
    /// Uses the bytes themselves, if they are aligned.
    pub(super) fn borrowed(bytes: &'a [u8]) -> Option<Self> {
        bytes.as_ptr().cast::<u64>().is_aligned().then_some(Self::Borrowed(bytes))
    }

    /// Copies `stream` and pads it with zeros to at least `length` bytes.
    pub(super) fn copied(stream: &[u8], length: usize) -> Self {
        let mut words: Vec<u64> = Vec::with_capacity(length.max(stream.len()).div_ceil(8));
        let (whole, rest) = stream.as_chunks();
        words.extend(whole.iter().map(|word| u64::from_ne_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        words.push(u64::from_ne_bytes(last));
        words.resize(words.len().max(length.div_ceil(8)), 0);
        Self::Copied(words)
    }

    fn as_ptr(&self) -> *const u8 {
        match self {
            Self::Borrowed(bytes) => bytes.as_ptr(),
            Self::Copied(words) => words.as_ptr().cast(),
        }
    }

    /// Returns the length in bytes, whole words only.
    fn len(&self) -> usize {
        match self {
            Self::Borrowed(bytes) => bytes.len() / 8 * 8,
            Self::Copied(words) => words.len() * 8,
        }
    }
}

/// libzfp's bit stream, open for reading. Borrows the words that it reads.
struct BitStream<'a> {
    raw: NonNull<bitstream>,
    words: PhantomData<&'a Words<'a>>,
}

impl<'a> BitStream<'a> {
    fn open(words: &'a Words<'a>) -> Option<Self> {
        // SAFETY: the words outlive the stream (lifetime 'a) and are aligned as libzfp's words are. A stream opened for
        // writing would write to them; this type has no way to do so.
        let raw = unsafe { stream_open(words.as_ptr().cast_mut().cast(), words.len()) };
        NonNull::new(raw).map(|raw| Self { raw, words: PhantomData })
    }
}

impl Drop for BitStream<'_> {
    fn drop(&mut self) {
        // SAFETY: `stream_open` returned the pointer, nothing else closes it, and the decoder that used it no longer
        // exists (`Decoder` borrows the bit stream).
        unsafe { stream_close(self.raw.as_ptr()) }
    }
}

/// libzfp's decoder. Borrows the bit stream that it reads.
struct Decoder<'a> {
    raw: NonNull<zfp_stream>,
    bits: PhantomData<&'a BitStream<'a>>,
}

impl<'a> Decoder<'a> {
    fn open(bits: &'a BitStream<'a>) -> Option<Self> {
        // SAFETY: the bit stream is open and outlives the decoder (lifetime 'a).
        let raw = NonNull::new(unsafe { zfp_stream_open(bits.raw.as_ptr()) })?;
        let decoder = Self { raw, bits: PhantomData };
        // SAFETY: the decoder was just opened.
        let serial = unsafe { zfp_stream_set_execution(raw.as_ptr(), zfp_exec_policy_zfp_exec_serial) };
        (serial != 0).then_some(decoder)
    }

    fn params(&self) -> Params {
        // SAFETY: the decoder is open, and nothing writes to it meanwhile.
        let zfp = unsafe { self.raw.as_ref() };
        Params { min_bits: zfp.minbits, max_bits: zfp.maxbits, max_precision: zfp.maxprec, min_exponent: zfp.minexp }
    }
}

impl Drop for Decoder<'_> {
    fn drop(&mut self) {
        // SAFETY: `zfp_stream_open` returned the pointer and nothing else closes it; it does not own the bit stream.
        unsafe { zfp_stream_close(self.raw.as_ptr()) }
    }
}

/// libzfp's description of the output array. Borrows its bytes.
struct Field<'a> {
    raw: NonNull<zfp_field>,
    samples: PhantomData<&'a mut [u8]>,
}

impl<'a> Field<'a> {
    /// Describes `samples` without type and shape; reading the header sets them.
    fn new(samples: &'a mut [u8]) -> Option<Self> {
        // SAFETY: the call only stores the pointer, which is valid for 'a.
        let raw = unsafe { zfp_field_1d(samples.as_mut_ptr().cast(), zfp_type_zfp_type_none, 0) };
        NonNull::new(raw).map(|raw| Self { raw, samples: PhantomData })
    }

    /// Returns what the field has as a header has it, if its samples are contiguous.
    fn header(&self, params: Params) -> Option<Header> {
        // SAFETY: the field exists, and nothing writes to it meanwhile.
        let field = unsafe { self.raw.as_ref() };
        let dense = [field.sx, field.sy, field.sz, field.sw] == [0; 4];
        let scalar = Scalar::of(u8::try_from(field.type_).ok()?).ok()?;
        let shape = [field.nx, field.ny, field.nz, field.nw].map(|n| n as u64);
        let axes = shape.iter().take_while(|extent| **extent > 0).count();
        let rest_is_zero = shape.iter().skip(axes).all(|extent| *extent == 0);
        let shape = shape.map(|extent| extent.max(1));
        (dense && axes > 0 && rest_is_zero).then_some(Header { scalar, axes: axes as u32, shape, params, bits: 0 })
    }
}

impl Drop for Field<'_> {
    fn drop(&mut self) {
        // SAFETY: `zfp_field_1d` returned the pointer and nothing else frees it; it does not own the samples.
        unsafe { zfp_field_free(self.raw.as_ptr()) }
    }
}

/// Decodes the stream in `words` into all of `out`, samples in native byte order, and returns how many bytes it
/// consumed, in whole words. Returns `None` if libzfp refuses the header, if the header announces other samples than
/// `out` has room for, if `out` is not aligned to these, or if there are fewer words than a stream with these
/// parameters can have.
pub(super) fn decompress(words: &Words<'_>, out: &mut [u8]) -> Option<usize> {
    if words.len() < HEADER {
        return None;
    }
    let (room, address) = (out.len() as u64, out.as_ptr());
    let bits = BitStream::open(words)?;
    let decoder = Decoder::open(&bits)?;
    let field = Field::new(out)?;
    // SAFETY: all three are open; a header takes no more than HEADER bytes, and `words` has at least that many.
    let header = unsafe { zfp_read_header(decoder.raw.as_ptr(), field.raw.as_ptr(), ZFP_HEADER_FULL) };
    if header == 0 {
        return None;
    }
    let header = field.header(decoder.params())?;
    let size = header.scalar.size();
    if header.samples().checked_mul(size as u64)? != room || address.align_offset(size) != 0 {
        return None;
    }
    if header.longest() > words.len() as u64 {
        return None;
    }
    // SAFETY: the field is contiguous, aligned, and has exactly as many bytes as the slice; and the bit stream has at
    // least as many words as blocks with these parameters can make the decoder read.
    let used = unsafe { zfp_decompress(decoder.raw.as_ptr(), field.raw.as_ptr()) };
    debug_assert!(used <= words.len(), "libzfp read {used} of {} bytes", words.len());
    (used != 0).then_some(used)
}
