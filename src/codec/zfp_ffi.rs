//! libzfp behind types that cannot leak: the only place of the crate where ZFP's pointers are.
//!
//! libzfp checks neither the end of its input nor that of its output. [`decompress`] is safe all the same, since it asks
//! libzfp what it understood of the header, and calls the decoder only if the input is as long as that can take and the
//! output is exactly what it will write.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use zfp_sys::{
    ZFP_HEADER_FULL, bitstream, stream_close, stream_open, zfp_decompress, zfp_exec_policy_zfp_exec_serial, zfp_field,
    zfp_field_3d, zfp_field_free, zfp_read_header, zfp_stream, zfp_stream_close, zfp_stream_open,
    zfp_stream_set_execution, zfp_type_zfp_type_float,
};

use super::zfp_header::{self, Params};

/// Bytes that libzfp reads before it knows anything of the stream: the longest header, in words.
const HEADER: usize = 24;

/// A stream as libzfp reads it: whole words of 64 bits, at their place in memory.
pub(super) enum Words<'a> {
    /// Bytes that begin at an address of a word.
    Bytes(&'a [u8]),
    /// A copy.
    NativeJson(Vec<u64>),
}

impl<'a> Words<'a> {
    /// The bytes themselves, if they can serve.
    pub(super) fn borrowed(bytes: &'a [u8]) -> Option<Self> {
        bytes.as_ptr().cast::<u64>().is_aligned().then_some(Self::Bytes(bytes))
    }

    /// A copy of `stream` with zeros behind it, `length` bytes or more.
    pub(super) fn copied(stream: &[u8], length: usize) -> Self {
        let mut words: Vec<u64> = Vec::with_capacity(length.max(stream.len()).div_ceil(8));
        let (whole, rest) = stream.as_chunks();
        words.extend(whole.iter().map(|word| u64::from_ne_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        words.push(u64::from_ne_bytes(last));
        words.resize(words.len().max(length.div_ceil(8)), 0);
        Self::NativeJson(words)
    }

    fn as_ptr(&self) -> *const u8 {
        match self {
            Self::Bytes(bytes) => bytes.as_ptr(),
            Self::NativeJson(words) => words.as_ptr().cast(),
        }
    }

    /// Bytes in whole words.
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len() / 8 * 8,
            Self::NativeJson(words) => words.len() * 8,
        }
    }
}

/// The bytes as float32, if they begin and end where such samples may.
pub(super) fn as_samples(bytes: &mut [u8]) -> Option<&mut [f32]> {
    // SAFETY: every pattern of 32 bits is a float32 and the other way round; `align_to_mut` sees to the addresses.
    let (before, samples, after) = unsafe { bytes.align_to_mut() };
    (before.is_empty() && after.is_empty()).then_some(samples)
}

/// Bits to read. Borrows the words that it reads.
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
        // SAFETY: `stream_open` returned it, nobody else closes it, and the decoder that used it is gone (`Decoder`
        // borrows it).
        unsafe { stream_close(self.raw.as_ptr()) }
    }
}

/// libzfp's decoder. Borrows the bits that it reads.
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
        // SAFETY: the decoder is open, and nobody writes to it meanwhile.
        let zfp = unsafe { self.raw.as_ref() };
        Params { min_bits: zfp.minbits, max_bits: zfp.maxbits, max_precision: zfp.maxprec, min_exponent: zfp.minexp }
    }
}

impl Drop for Decoder<'_> {
    fn drop(&mut self) {
        // SAFETY: `zfp_stream_open` returned it and nobody else closes it; it does not own the bit stream.
        unsafe { zfp_stream_close(self.raw.as_ptr()) }
    }
}

/// Where samples go. Borrows them.
struct Field<'a> {
    raw: NonNull<zfp_field>,
    samples: PhantomData<&'a mut [f32]>,
}

impl<'a> Field<'a> {
    /// A field over `samples` that has no shape yet: the header gives it one.
    fn new(samples: &'a mut [f32]) -> Option<Self> {
        // SAFETY: only stores the pointer, which stays good for 'a.
        let raw = unsafe { zfp_field_3d(samples.as_mut_ptr().cast(), zfp_type_zfp_type_float, 0, 0, 0) };
        NonNull::new(raw).map(|raw| Self { raw, samples: PhantomData })
    }

    /// The shape, slowest axis first, if it is one of three-dimensional float32 without gaps.
    fn shape(&self) -> Option<[u64; 3]> {
        // SAFETY: the field exists, and nobody writes to it meanwhile.
        let field = unsafe { self.raw.as_ref() };
        let dense = [field.sx, field.sy, field.sz, field.sw] == [0; 4];
        let shape = [field.nz, field.ny, field.nx].map(|n| n as u64);
        (field.type_ == zfp_type_zfp_type_float && field.nw == 0 && dense && !shape.contains(&0)).then_some(shape)
    }
}

impl Drop for Field<'_> {
    fn drop(&mut self) {
        // SAFETY: `zfp_field_3d` returned it and nobody else frees it; it does not own the samples.
        unsafe { zfp_field_free(self.raw.as_ptr()) }
    }
}

/// Decodes the stream in `words` into `samples`, all of them, and returns how many bytes it took, in whole words. `None`
/// if libzfp refuses the header, if the header announces another number of samples, or if the words are fewer than a
/// stream with these parameters may take.
pub(super) fn decompress(words: &Words<'_>, samples: &mut [f32]) -> Option<usize> {
    if words.len() < HEADER {
        return None;
    }
    let room = samples.len() as u64;
    let bits = BitStream::open(words)?;
    let decoder = Decoder::open(&bits)?;
    let field = Field::new(samples)?;
    // SAFETY: all three are open; a header takes no more than the HEADER bytes that are there.
    let header = unsafe { zfp_read_header(decoder.raw.as_ptr(), field.raw.as_ptr(), ZFP_HEADER_FULL) };
    if header == 0 {
        return None;
    }
    let shape = field.shape()?;
    let [nz, ny, nx] = shape;
    if nz.checked_mul(ny)?.checked_mul(nx)? != room {
        return None;
    }
    if decoder.params().longest(zfp_header::blocks(shape)) > words.len() as u64 {
        return None;
    }
    // SAFETY: the field is dense float32 of as many samples as the slice behind it has, and the words behind the bit
    // stream are at least as many as blocks with these parameters can make the decoder read.
    let used = unsafe { zfp_decompress(decoder.raw.as_ptr(), field.raw.as_ptr()) };
    debug_assert!(used <= words.len(), "libzfp read {used} of {} bytes", words.len());
    (used != 0).then_some(used)
}
