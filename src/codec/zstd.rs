//! Zstandard frames (RFC 8878): the C library, and where a C compiler for the target cannot be expected a decoder in
//! Rust. Tests compare the two.

use super::sizes::{Fault, exactly, growing};
use super::{Codec, Configuration};

#[cfg(target_os = "linux")]
pub(super) use c::frames;
#[cfg(target_os = "linux")]
use c::stated;
#[cfg(not(target_os = "linux"))]
pub(super) use rust::frames;
#[cfg(not(target_os = "linux"))]
use rust::stated;

pub(super) fn new(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Zstd))
}

struct Zstd;

impl Codec for Zstd {
    fn name(&self) -> &'static str {
        "zstd"
    }

    fn longest(&self, decoded: u64) -> u64 {
        longest(decoded)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        decode(stored, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(self.name(), stored.len(), stated(stored), most, |out| frames(stored, out))
    }

    fn scratch(&self, _: usize) -> usize {
        WORKSPACE
    }
}

/// Bytes that the C library keeps for a thread.
pub(super) const WORKSPACE: usize = 192 << 10;

/// Returns the most bytes that frames take which decode to `decoded` bytes: blocks that are not compressed, a frame for
/// each few KiB, and some that are skipped.
fn longest(decoded: u64) -> u64 {
    decoded.saturating_add(decoded / 16).saturating_add(4 << 10)
}

/// Decodes all frames, which must fill `out` exactly.
fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    exactly("zstd", out.len(), frames(stored, out))
}

fn invalid(error: &dyn std::fmt::Display) -> Fault {
    Fault::Invalid(format!("its zstd data are damaged: {error}"))
}

#[cfg(target_os = "linux")]
mod c {
    use std::cell::RefCell;

    use zstd_safe::{DCtx, get_error_name};

    use super::super::sizes::{Fault, Written};
    use super::invalid;

    /// The error of a buffer that is too short (`ZSTD_error_dstSize_tooSmall`); errors are negative numbers.
    const NO_ROOM: usize = 70;

    thread_local! {
        static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    }

    /// Returns the length that the first frame says of itself, or 0.
    pub(super) fn stated(stored: &[u8]) -> usize {
        let length = zstd_safe::get_frame_content_size(stored).ok().flatten();
        length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0)
    }

    /// Decodes all frames to the start of `out`. What a frame says of its length and window allocates nothing: decoded
    /// bytes are written to `out` alone.
    pub(crate) fn frames(stored: &[u8], out: &mut [u8]) -> Written {
        CONTEXT.with_borrow_mut(|context| {
            if context.is_none() {
                *context = DCtx::try_create();
            }
            let Some(context) = context else { return Err(Fault::Invalid("no memory for zstd".into())) };
            match context.decompress(out, stored) {
                Ok(written) => Ok(written),
                Err(code) if code.wrapping_neg() == NO_ROOM => Err(Fault::NoRoom),
                Err(code) => Err(invalid(&get_error_name(code))),
            }
        })
    }
}

#[cfg(any(test, not(target_os = "linux")))]
mod rust {
    use std::cell::RefCell;

    use zrip_core::error::DecompressError;
    use zrip_decode::context::DecompressContext;

    use super::super::sizes::{Fault, Written};
    use super::invalid;

    /// The most decoded bytes of which a thread keeps the memory.
    const KEPT: usize = 1 << 20;

    thread_local! {
        static CONTEXT: RefCell<DecompressContext> = RefCell::new(DecompressContext::new());
    }

    #[cfg(not(target_os = "linux"))]
    /// Nothing that a frame says of itself is asked for.
    pub(super) fn stated(_: &[u8]) -> usize {
        0
    }

    /// Decodes all frames to the start of `out`.
    pub(crate) fn frames(stored: &[u8], out: &mut [u8]) -> Written {
        CONTEXT.with_borrow_mut(|context| {
            let written = match context.decompress_with_limit(stored, out.len()) {
                Ok(decoded) => {
                    out.get_mut(..decoded.len()).ok_or(Fault::NoRoom)?.copy_from_slice(&decoded);
                    decoded.len()
                }
                Err(DecompressError::OutputTooSmall) => return Err(Fault::NoRoom),
                Err(error) => return Err(invalid(&error)),
            };
            if written > KEPT {
                *context = DecompressContext::new();
            }
            Ok(written)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sizes::Written;
    use super::*;

    type Frames = fn(&[u8], &mut [u8]) -> Written;

    fn encode(bytes: &[u8], level: i32) -> Vec<u8> {
        let mut stored = vec![0; zstd_safe::compress_bound(bytes.len())];
        let length = zstd_safe::compress(&mut stored[..], bytes, level).unwrap();
        stored.truncate(length);
        stored
    }

    fn decoded(frames: Frames, stored: &[u8], length: usize) -> Result<Vec<u8>, Fault> {
        let mut out = vec![0xaa; length];
        let written = frames(stored, &mut out)?;
        out.truncate(written);
        Ok(out)
    }

    proptest! {
        #[test]
        fn both_decoders_are_the_same(
            bytes in prop::collection::vec(0u8..30, 0..3000), repeats in 1usize..60, level in 1i32..12,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3), cut in 0usize..3,
        ) {
            let bytes = bytes.repeat(repeats);
            let mut stored = encode(&bytes, level);
            for frames in [c::frames, rust::frames] {
                prop_assert_eq!(decoded(frames, &stored, bytes.len()), Ok(bytes.clone()));
                prop_assert_eq!(decoded(frames, &stored, bytes.len() + 9), Ok(bytes.clone()));
                if let Some(less) = bytes.len().checked_sub(1) {
                    prop_assert_eq!(decoded(frames, &stored, less), Err(Fault::NoRoom));
                }
                prop_assert_eq!(decoded(frames, &stored.repeat(2), 2 * bytes.len()), Ok(bytes.repeat(2)));
            }
            for (at, value) in changes {
                let at = at.index(stored.len());
                stored[at] = value;
            }
            stored.truncate(stored.len() - cut);
            let [one, other] = [c::frames, rust::frames].map(|frames| decoded(frames, &stored, bytes.len()));
            if let (Ok(one), Ok(other)) = (one, other) {
                prop_assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn frames_are_decoded_whatever_their_number_is() {
        let stored =
            [encode(b"abc", 1), [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2][..], &encode(b"", 1)].concat()].concat();
        let codec = new(&Configuration::new()).unwrap();
        assert_eq!(codec.decode_unsized(&stored, 3), Ok(b"abc".to_vec()));
        let error = codec.decode_unsized(&stored, 2).unwrap_err();
        assert_eq!(error, "its zstd data decode to more than 2 bytes");
        assert_eq!(codec.decode(&stored, &mut [0; 4]), Err("its zstd data decode to 3 bytes, not 4".into()));
        assert!(codec.decode(b"zstd?", &mut [0; 4]).unwrap_err().starts_with("its zstd data are damaged: "));
    }
}
