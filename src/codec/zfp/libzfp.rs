//! Safe wrappers around libzfp: the only file of the crate that calls it.
//!
//! libzfp checks neither the end of its input nor that of its output. [`decompress`] is safe nevertheless: it reads
//! back the parameters that libzfp took from the header, and calls the decoder only if the input is as long as a stream
//! with these parameters can be and the output has exactly the length that libzfp will write.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use zfp_sys::{
    ZFP_HEADER_FULL, bitstream, stream_close, stream_open, zfp_decompress, zfp_exec_policy_zfp_exec_serial, zfp_field,
    zfp_field_3d, zfp_field_free, zfp_read_header, zfp_stream, zfp_stream_close, zfp_stream_open,
    zfp_stream_set_execution, zfp_type_zfp_type_float,
};

use super::header::{self, Params};

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

/// Views the bytes as float32, if they are aligned and a whole number of samples.
pub(super) fn as_samples(bytes: &mut [u8]) -> Option<&mut [f32]> {
    // SAFETY: every pattern of 32 bits is a valid float32 and vice versa; `align_to_mut` takes care of the alignment.
    let (before, samples, after) = unsafe { bytes.align_to_mut() };
    (before.is_empty() && after.is_empty()).then_some(samples)
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

/// libzfp's description of the output array. Borrows the samples.
struct Field<'a> {
    raw: NonNull<zfp_field>,
    samples: PhantomData<&'a mut [f32]>,
}

impl<'a> Field<'a> {
    /// Describes `samples` without a shape; reading the header sets it.
    fn new(samples: &'a mut [f32]) -> Option<Self> {
        // SAFETY: the call only stores the pointer, which is valid for 'a.
        let raw = unsafe { zfp_field_3d(samples.as_mut_ptr().cast(), zfp_type_zfp_type_float, 0, 0, 0) };
        NonNull::new(raw).map(|raw| Self { raw, samples: PhantomData })
    }

    /// Returns the shape, slowest axis first, if the field is three-dimensional, contiguous float32.
    fn shape(&self) -> Option<[u64; 3]> {
        // SAFETY: the field exists, and nothing writes to it meanwhile.
        let field = unsafe { self.raw.as_ref() };
        let dense = [field.sx, field.sy, field.sz, field.sw] == [0; 4];
        let shape = [field.nz, field.ny, field.nx].map(|n| n as u64);
        (field.type_ == zfp_type_zfp_type_float && field.nw == 0 && dense && !shape.contains(&0)).then_some(shape)
    }
}

impl Drop for Field<'_> {
    fn drop(&mut self) {
        // SAFETY: `zfp_field_3d` returned the pointer and nothing else frees it; it does not own the samples.
        unsafe { zfp_field_free(self.raw.as_ptr()) }
    }
}

/// Decodes the stream in `words` into all of `samples` and returns how many bytes it consumed, in whole words. Returns
/// `None` if libzfp refuses the header, if the header announces another number of samples, or if there are fewer words
/// than a stream with these parameters can have.
pub(super) fn decompress(words: &Words<'_>, samples: &mut [f32]) -> Option<usize> {
    if words.len() < HEADER {
        return None;
    }
    let room = samples.len() as u64;
    let bits = BitStream::open(words)?;
    let decoder = Decoder::open(&bits)?;
    let field = Field::new(samples)?;
    // SAFETY: all three are open; a header takes no more than HEADER bytes, and `words` has at least that many.
    let header = unsafe { zfp_read_header(decoder.raw.as_ptr(), field.raw.as_ptr(), ZFP_HEADER_FULL) };
    if header == 0 {
        return None;
    }
    let shape = field.shape()?;
    let [nz, ny, nx] = shape;
    if nz.checked_mul(ny)?.checked_mul(nx)? != room {
        return None;
    }
    if decoder.params().longest(header::blocks(shape)) > words.len() as u64 {
        return None;
    }
    // SAFETY: the field is contiguous float32 with exactly as many samples as the slice, and the bit stream has at
    // least as many words as blocks with these parameters can make the decoder read.
    let used = unsafe { zfp_decompress(decoder.raw.as_ptr(), field.raw.as_ptr()) };
    debug_assert!(used <= words.len(), "libzfp read {used} of {} bytes", words.len());
    (used != 0).then_some(used)
}
