//! A chain of codecs: from the stored bytes of a chunk to its samples.

use super::Codec;
use crate::memory::{OutOfMemory, try_with_capacity, try_zeroed};
use crate::sync::{LazyPerProcess, Mutex};

/// What is done to samples last, in the memory that they are decoded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Nothing,
    /// The bytes of each word of this size are reversed.
    Swap(usize),
    /// Each sample is the upper half of a float32.
    WidenHalves {
        big_endian: bool,
    },
}

/// Codecs in the order in which they decode.
pub(crate) struct Pipeline {
    steps: Vec<Step>,
    finish: Finish,
    /// Bytes of the samples before the finish.
    decoded: usize,
    longest: u64,
    scratch: usize,
}

struct Step {
    codec: Box<dyn Codec>,
    length: Length,
}

/// The number of bytes that a step decodes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Exactly(usize),
    AtMost(usize),
}

/// Why a chunk cannot be decoded.
#[derive(Debug)]
pub(crate) enum DecodeError {
    Damaged(String),
    OutOfMemory(OutOfMemory),
}

impl Pipeline {
    /// Creates the pipeline that undoes `codecs`, which are in the order of encoding. `decoded` is the number of bytes
    /// of a chunk before it is encoded. Fails if numbers exceed what memory can have.
    pub(crate) fn new(codecs: Vec<Box<dyn Codec>>, decoded: u64, finish: Finish) -> Result<Self, String> {
        let too_large = || format!("chunks of {decoded} bytes are too large");
        // what is stored as it is, is never held as a whole
        let most = if codecs.is_empty() && finish == Finish::Nothing { usize::MAX >> 1 } else { MAX_BYTES };
        let size = |bytes: u64| usize::try_from(bytes).ok().filter(|n| *n <= most).ok_or_else(too_large);
        let (mut steps, mut bytes, mut scratch, mut is_exact) = (Vec::new(), decoded, 0usize, true);
        for (number, codec) in codecs.into_iter().enumerate() {
            // the most that may come of a compressor is more than what comes
            let length = size(if is_exact { bytes } else { bytes.min(MAX_BYTES as u64) })?;
            scratch = scratch.saturating_add(codec.scratch(length)).saturating_add(if number > 0 { length } else { 0 });
            let longest = codec.longest(bytes);
            // filters and checksums have encodings of one length
            let keeps_exact = is_exact && codec.decoded_len(longest) == Some(bytes);
            let length = if is_exact { Length::Exactly(length) } else { Length::AtMost(length) };
            steps.push(Step { codec, length });
            (bytes, is_exact) = (longest, keeps_exact);
        }
        let longest = if is_exact { size(bytes)? as u64 } else { bytes.min(MAX_BYTES as u64) };
        steps.reverse();
        let decoded = size(decoded)?;
        if let Finish::WidenHalves { .. } = finish {
            scratch = scratch.saturating_add(decoded);
        }
        Ok(Self { steps, finish, decoded, longest, scratch })
    }

    /// Whether stored bytes are the samples.
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.is_empty() && self.finish == Finish::Nothing
    }

    /// Returns the most bytes that a chunk takes.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the memory that decoding takes besides stored and decoded bytes.
    pub(crate) fn scratch(&self) -> usize {
        self.scratch
    }

    /// Returns the name of the codec that makes chunks smaller, or else of any.
    pub(crate) fn name(&self) -> &'static str {
        let compressor = self.steps.iter().find(|step| step.codec.decoded_len(1 << 20).is_none());
        compressor.map(|step| step.codec.name()).or_else(|| Some(self.steps.last()?.codec.name())).unwrap_or("raw")
    }

    /// Returns for people what is done to samples in encoding, in this order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let first = match self.finish {
            Finish::Nothing => None,
            Finish::Swap(_) => Some("big-endian"),
            Finish::WidenHalves { .. } => Some("halves of float32"),
        };
        first.into_iter().chain(self.steps.iter().rev().map(|step| step.codec.name()))
    }

    /// Decodes the stored bytes of a chunk into `out`, which they must fill exactly.
    pub(crate) fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        match self.finish {
            Finish::WidenHalves { big_endian } => {
                let mut halves = Intermediate::take(self.decoded)?;
                self.undo(stored, halves.bytes_mut())?;
                for (half, to) in halves.bytes().as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<4>().0) {
                    let half = if big_endian { u16::from_be_bytes(*half) } else { u16::from_le_bytes(*half) };
                    *to = (u32::from(half) << 16).to_le_bytes();
                }
            }
            Finish::Swap(word) => {
                self.undo(stored, out)?;
                swap(out, word);
            }
            Finish::Nothing => self.undo(stored, out)?,
        }
        Ok(())
    }

    /// Returns whether all codecs [are fast](Codec::is_fast).
    pub(crate) fn is_fast(&self) -> bool {
        self.steps.iter().all(|step| step.codec.is_fast())
    }

    /// Returns whether [`Pipeline::decode_part`] decodes a part in much less time than all.
    pub(crate) fn has_parts(&self) -> bool {
        let has_parts = matches!(&self.steps[..], [step] if step.codec.has_parts());
        has_parts && matches!(self.finish, Finish::Nothing | Finish::Swap(_))
    }

    /// Decodes to `out` the bytes of a chunk from `first` on: whole samples.
    pub(crate) fn decode_part(&self, stored: &[u8], first: usize, out: &mut [u8]) -> Result<(), DecodeError> {
        let [step] = &self.steps[..] else { return Err(DecodeError::Damaged("it has no parts".into())) };
        step.codec.decode_part(stored, self.decoded, first, out).map_err(|why| step.fault(why))?;
        if let Finish::Swap(word) = self.finish {
            swap(out, word);
        }
        Ok(())
    }

    fn undo(&self, stored: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
        if out.len() != self.decoded {
            return Err(DecodeError::Damaged(format!("a chunk has {} bytes, not {}", self.decoded, out.len())));
        }
        let Some((last, steps)) = self.steps.split_last() else {
            if stored.len() != out.len() {
                return Err(DecodeError::Damaged(format!("it has {} bytes, not {}", stored.len(), out.len())));
            }
            out.copy_from_slice(stored);
            return Ok(());
        };
        let mut held = Intermediate::default();
        for (number, step) in steps.iter().enumerate() {
            let input = if number == 0 { stored } else { held.bytes() };
            let decoded = match (step.length, step.codec.decoded_len(input.len() as u64)) {
                (Length::Exactly(length), _) => step.fill(input, length)?,
                (Length::AtMost(most), Some(length)) => match usize::try_from(length).ok().filter(|n| *n <= most) {
                    Some(length) => step.fill(input, length)?,
                    None => return Err(step.fault(format!("it has {} bytes", input.len()))),
                },
                (Length::AtMost(most), None) => {
                    step.codec.decode_unsized(input, most).map_err(|why| step.fault(why))?.into()
                }
            };
            held = decoded;
        }
        let input = if steps.is_empty() { stored } else { held.bytes() };
        last.codec.decode(input, out).map_err(|why| last.fault(why))
    }
}

/// The most bytes of a chunk, as stored, decoded, or between two codecs.
const MAX_BYTES: usize = if usize::BITS > 32 { 1 << 32 } else { 1 << 30 };

impl Step {
    fn fill(&self, stored: &[u8], length: usize) -> Result<Intermediate, DecodeError> {
        let mut out = Intermediate::take(length)?;
        self.codec.decode(stored, out.bytes_mut()).map_err(|why| self.fault(why))?;
        Ok(out)
    }

    fn fault(&self, why: String) -> DecodeError {
        DecodeError::Damaged(format!("{}: {why}", self.codec.name()))
    }
}

/// The most bytes of memory that are kept for the next chunks.
const MAX_KEPT: usize = 8 << 20;

/// Memory for what is between two steps, which the next chunks use again: the system takes longer to make its pages than
/// fast codecs to fill them.
static KEPT: LazyPerProcess<Mutex<Vec<Vec<u8>>>> = LazyPerProcess::new(Mutex::default);

/// Frees the memory that is kept for the next chunks.
pub(crate) fn release_idle() {
    let kept = std::mem::take(&mut *KEPT.lock());
    drop(kept);
}

/// The bytes between two codecs, or between two steps of one: the first `length` of a buffer.
#[derive(Default)]
pub(super) struct Intermediate {
    buffer: Vec<u8>,
    length: usize,
}

impl Intermediate {
    /// Returns bytes of arbitrary content.
    fn take(length: usize) -> Result<Self, OutOfMemory> {
        let kept = KEPT.lock().pop();
        let buffer = kept.filter(|buffer| buffer.len() >= length).map_or_else(|| try_zeroed(length), Ok)?;
        Ok(Self { buffer, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.length]
    }

    /// Returns the first `length` bytes, of arbitrary content. Takes another buffer if there are not so many.
    pub(super) fn first(&mut self, length: usize) -> Result<&mut [u8], String> {
        if self.length < length {
            *self = Self::take(length).map_err(|error| error.to_string())?;
        }
        Ok(&mut self.buffer[..length])
    }
}

impl From<Vec<u8>> for Intermediate {
    fn from(buffer: Vec<u8>) -> Self {
        Self { length: buffer.len(), buffer }
    }
}

impl Drop for Intermediate {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut kept = KEPT.lock();
        let all = kept.iter().map(Vec::capacity).fold(buffer.capacity(), usize::saturating_add);
        if !buffer.is_empty() && all <= MAX_KEPT {
            kept.push(buffer);
        } else {
            // memory is freed after the lock is released
            drop(kept);
            drop(buffer);
        }
    }
}

impl From<OutOfMemory> for DecodeError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

/// Reverses the bytes of each word of `size` bytes.
pub(crate) fn swap(bytes: &mut [u8], size: usize) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|word| word.reverse());
    }
    match size {
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        _ => {}
    }
}

/// Samples in big-endian order as a codec, where others follow it: those decode little-endian samples.
pub(crate) struct SwapBytes(pub usize);

impl Codec for SwapBytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        Some(stored)
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        if stored.len() != out.len() {
            return Err(format!("it has {} bytes, not {}", stored.len(), out.len()));
        }
        out.copy_from_slice(stored);
        swap(out, self.0);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        if stored.len() > most {
            return Err(format!("it has {} bytes, more than {most}", stored.len()));
        }
        let mut out: Vec<u8> = try_with_capacity(stored.len()).map_err(|e| e.to_string())?;
        out.extend_from_slice(stored);
        swap(&mut out, self.0);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores each byte twice, or (if its length is unknown) as many times as it likes.
    struct Doubled {
        is_known: bool,
    }

    impl Codec for Doubled {
        fn name(&self) -> &'static str {
            "doubled"
        }

        fn decoded_len(&self, stored: u64) -> Option<u64> {
            self.is_known.then_some(stored / 2)
        }

        fn longest(&self, decoded: u64) -> u64 {
            2 * decoded
        }

        fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
            let bytes = self.decode_unsized(stored, out.len())?;
            if bytes.len() != out.len() {
                return Err("another length".into());
            }
            out.copy_from_slice(&bytes);
            Ok(())
        }

        fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
            let bytes: Vec<u8> = stored.iter().copied().step_by(2).collect();
            if bytes.len() > most { Err("too long".into()) } else { Ok(bytes) }
        }
    }

    fn doubled(is_known: &[bool]) -> Vec<Box<dyn Codec>> {
        is_known.iter().map(|is_known| Box::new(Doubled { is_known: *is_known }) as Box<dyn Codec>).collect()
    }

    #[test]
    fn codecs_are_undone_in_reverse() {
        for known in [&[true, true][..], &[true, false], &[false, true], &[false, false]] {
            let pipeline = Pipeline::new(doubled(known), 4, Finish::Swap(2)).unwrap();
            assert_eq!((pipeline.longest(), pipeline.is_plain(), pipeline.name()), (16, false, "doubled"));
            let stored: Vec<u8> = [1, 2, 3, 4].iter().flat_map(|n| [*n; 4]).collect();
            let mut out = [0; 4];
            pipeline.decode(&stored, &mut out).unwrap();
            assert_eq!(out, [2, 1, 4, 3]);
            for wrong in [&stored[..8], &stored.repeat(2)] {
                assert!(matches!(pipeline.decode(wrong, &mut out), Err(DecodeError::Damaged(_))));
            }
        }
    }

    #[test]
    fn memory_is_that_between_codecs() {
        let scratch = |codecs: usize, finish| Pipeline::new(doubled(&vec![true; codecs]), 4, finish).unwrap().scratch();
        assert_eq!([0, 1, 2, 3].map(|codecs| scratch(codecs, Finish::Swap(2))), [0, 0, 8, 24]);
        assert_eq!(scratch(1, Finish::WidenHalves { big_endian: false }), 4);
    }

    #[test]
    fn no_codec_copies() {
        let pipeline = Pipeline::new(Vec::new(), 4, Finish::Nothing).unwrap();
        let mut out = [0; 4];
        pipeline.decode(&[1, 2, 3, 4], &mut out).unwrap();
        assert_eq!((out, pipeline.is_plain(), pipeline.name()), ([1, 2, 3, 4], true, "raw"));
        assert!(pipeline.decode(&[1, 2, 3], &mut out).is_err());
        assert!(Pipeline::new(Vec::new(), u64::MAX, Finish::Nothing).is_err());
    }

    #[test]
    fn chunks_may_have_any_bytes_that_memory_can_have_whatever_their_codec_could_make_of_them() {
        let large = MAX_BYTES as u64 / 2 + 1;
        let longest = |is_known: &[bool], bytes| {
            Pipeline::new(doubled(is_known), bytes, Finish::Nothing).map(|one| one.longest())
        };
        assert_eq!(longest(&[false], large), Ok(MAX_BYTES as u64));
        assert_eq!(longest(&[false, false], large), Ok(MAX_BYTES as u64));
        assert!(longest(&[true], large).is_err() && longest(&[true, false], large).is_err(), "so long they are");
        assert!(longest(&[false], MAX_BYTES as u64 + 1).is_err());
    }

    #[test]
    fn upper_halves_become_float32() {
        for (big_endian, stored) in [(false, [0x80, 0x3f, 0, 0xc0]), (true, [0x3f, 0x80, 0xc0, 0])] {
            let pipeline = Pipeline::new(Vec::new(), 4, Finish::WidenHalves { big_endian }).unwrap();
            let mut out = [0; 8];
            pipeline.decode(&stored, &mut out).unwrap();
            assert_eq!(out, [1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()[..]);
        }
    }
}
