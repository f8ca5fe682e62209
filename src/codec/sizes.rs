//! Decoded lengths: as expected, or within a bound where nothing is expected. No length that an encoding states of
//! itself is trusted.

use crate::memory::try_zeroed;

/// Why a decoder has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There are more bytes than there is room for.
    NoRoom,
    /// What is wrong with the stored bytes.
    Invalid(String),
}

impl From<String> for Fault {
    fn from(error: String) -> Self {
        Self::Invalid(error)
    }
}

/// What a decoder gives that writes to the start of a buffer: how many bytes that was.
pub(crate) type Written = Result<usize, Fault>;

/// Judges what a decoder has `written` to a buffer of `expected` bytes, which it must fill. `name` is that of the codec.
pub(super) fn exactly(name: &str, expected: usize, written: Written) -> Result<(), String> {
    match written {
        Ok(length) if length == expected => Ok(()),
        Ok(length) => Err(format!("its {name} data decode to {length} bytes, not {expected}")),
        Err(Fault::NoRoom) => Err(format!("its {name} data decode to more than the expected {expected} bytes")),
        Err(Fault::Invalid(error)) => Err(error),
    }
}

/// The bytes that a buffer has at first, for each stored byte and at least.
const FIRST: usize = 8;
const LEAST: usize = 64 << 10;
/// How much longer the next buffer is.
const GROWTH: usize = 4;

/// Decodes at most `most` bytes: `decode` gets buffers of increasing length, the first of which has about `first` bytes,
/// until one has room. `first` may be what an encoding says of itself, or 0.
pub(super) fn growing(
    name: &str,
    stored: usize,
    first: usize,
    most: usize,
    mut decode: impl FnMut(&mut [u8]) -> Written,
) -> Result<Vec<u8>, String> {
    let mut length = if first == 0 { stored.saturating_mul(FIRST).max(LEAST) } else { first }.min(most);
    loop {
        let mut out = try_zeroed(length).map_err(|e| e.to_string())?;
        match decode(&mut out) {
            Ok(written) => {
                out.truncate(written);
                return Ok(out);
            }
            Err(Fault::Invalid(error)) => return Err(error),
            Err(Fault::NoRoom) if length < most => length = length.saturating_mul(GROWTH).max(LEAST).min(most),
            Err(Fault::NoRoom) => return Err(format!("its {name} data decode to more than {most} bytes")),
        }
    }
}

/// Returns a buffer of `length` bytes, of which an encoding says that it decodes to them: not more than `most`.
pub(super) fn stated(name: &str, length: usize, most: usize) -> Result<Vec<u8>, String> {
    if length > most {
        return Err(format!("its {name} data decode to {length} bytes, more than the {most} that there can be"));
    }
    try_zeroed(length).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_grow_up_to_the_bound() {
        let decode =
            |length: usize| move |out: &mut [u8]| if length > out.len() { Err(Fault::NoRoom) } else { Ok(length) };
        for length in [0, 1, 65_535, 65_536, 65_537, 999_999, 1_000_000] {
            for first in [0, 1, 70_000, usize::MAX] {
                assert_eq!(growing("x", 10, first, 1_000_000, decode(length)).map(|out| out.len()), Ok(length));
            }
        }
        let error = growing("x", usize::MAX, 0, 1_000_000, decode(1_000_001)).unwrap_err();
        assert_eq!(error, "its x data decode to more than 1000000 bytes");
        let error = growing("x", 1, 0, 10, |_| Err("no".to_owned().into())).unwrap_err();
        assert_eq!(error, "no");
    }

    #[test]
    fn other_lengths_are_errors() {
        assert_eq!(exactly("x", 3, Ok(3)), Ok(()));
        assert_eq!(exactly("x", 3, Ok(2)), Err("its x data decode to 2 bytes, not 3".into()));
        assert_eq!(
            exactly("x", 3, Err(Fault::NoRoom)),
            Err("its x data decode to more than the expected 3 bytes".into())
        );
        assert_eq!(stated("x", 3, 3), Ok(vec![0; 3]));
        assert!(stated("x", 4, 3).is_err());
    }
}
