//! LZF, as the filter of h5py stores it: literals, and copies of what was decoded a while ago.
//!
//! The public description is LibLZF. A byte below 32 is before so many literals and one more. Others have the length of
//! a copy in the highest three bits (7: a byte with more of it follows) and the high bits of its distance in the others.

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

const NAME: &str = "lzf";

pub(super) fn new(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Lzf))
}

struct Lzf;

impl Codec for Lzf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn longest(&self, decoded: u64) -> u64 {
        // a byte before 32 literals
        decoded.saturating_add(decoded / 32).saturating_add(64)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(NAME, out.len(), written(stored, out))
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(NAME, stored.len(), 0, most, |out| written(stored, out))
    }
}

fn written(mut stored: &[u8], out: &mut [u8]) -> Written {
    let damaged = || Fault::Invalid(format!("its {NAME} data are damaged or cut off"));
    let mut filled = 0;
    while let Some((control, rest)) = stored.split_first() {
        let control = usize::from(*control);
        if control < 32 {
            let (literals, rest) = rest.split_at_checked(control + 1).ok_or_else(damaged)?;
            let target = out[filled..].get_mut(..literals.len()).ok_or(Fault::NoRoom)?;
            target.copy_from_slice(literals);
            filled += literals.len();
            stored = rest;
            continue;
        }
        let (more, rest) = match (control >> 5, rest) {
            (7, [more, rest @ ..]) => (usize::from(*more), rest),
            (7, []) => return Err(damaged()),
            (_, rest) => (0, rest),
        };
        let (low, rest) = rest.split_first().ok_or_else(damaged)?;
        let length = (control >> 5) + more + 2;
        let distance = ((control & 31) << 8 | usize::from(*low)) + 1;
        let from = filled.checked_sub(distance).ok_or_else(damaged)?;
        let end = filled + length;
        if end > out.len() {
            return Err(Fault::NoRoom);
        }
        if distance >= length {
            out.copy_within(from..from + length, filled);
        } else {
            // a copy that overlaps itself repeats what it begins with
            for at in filled..end {
                out[at] = out[at - distance];
            }
        }
        filled = end;
        stored = rest;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_little_longer_than_what_they_encode() {
        assert!((1 << 20..(1 << 20) + (1 << 16)).contains(&Lzf.longest(1 << 20)));
    }

    #[test]
    fn copies_may_overlap_themselves() {
        let stored = [2, b'a', b'b', b'c', 0xe0, 3, 2, 0x20, 0];
        assert_eq!(Lzf.decode_unsized(&stored, 100), Ok(b"abcabcabcabcabcccc".to_vec()));
        for wrong in [&stored[..2], &stored[..5], &stored[..6], &[0x20, 0], &[0, b'a', 0x20, 1]] {
            assert!(Lzf.decode_unsized(wrong, 100).is_err(), "{wrong:?}");
        }
        assert!(Lzf.decode_unsized(&stored, 17).unwrap_err().contains("more than 17"));
    }
}
