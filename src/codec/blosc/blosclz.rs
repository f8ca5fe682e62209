//! BloscLZ: literals, and matches that repeat earlier output.
//!
//! The first byte of an item has three high bits. If they are 0 the item is literals, one more than the other bits say.
//! Otherwise it is a match of two more bytes than they say; 7 is continued in the next bytes, up to one that is not 255.
//! The other five bits are the high ones of the distance, a byte with the low ones follows. A distance of 8191 is
//! continued in two bytes, highest first. All distances are stored minus 1. The first item is literals, whatever its
//! high bits are.

use super::super::sizes::{Fault, Written};

/// The distance, minus 1, that is continued.
const FAR: usize = 8191;
/// Bytes that are copied at a time.
const CHUNK: usize = 16;
/// Bits of the first byte that are a number of literals or a part of the distance.
const LOW: u8 = 31;

/// Decodes a stream to the start of `out`.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Written {
    let mut input = Input(stored);
    let mut written = 0;
    let mut item = input.byte()? & LOW;
    loop {
        if item <= LOW {
            let length = usize::from(item) + 1;
            copy_literals(&mut input, out, written, length)?;
            written += length;
        } else {
            let mut length = usize::from(item >> 5) + 2;
            if item >> 5 == 7 {
                loop {
                    let more = input.byte()?;
                    length = length.saturating_add(usize::from(more));
                    if more != u8::MAX {
                        break;
                    }
                }
            }
            let mut distance = usize::from(item & LOW) << 8 | usize::from(input.byte()?);
            if distance == FAR {
                distance += usize::from(input.byte()?) << 8 | usize::from(input.byte()?);
            }
            repeat(out, written, distance + 1, length)?;
            written += length;
        }
        match input.0.split_first() {
            Some((first, rest)) => (item, input.0) = (*first, rest),
            None => return Ok(written),
        }
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    #[inline(always)]
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*first)
    }
}

fn damaged() -> Fault {
    Fault::Invalid("not a valid BloscLZ stream".into())
}

/// There are at most 32 literals. Where there is room for it, more is copied, and overwritten by what follows.
#[inline(always)]
fn copy_literals(input: &mut Input<'_>, out: &mut [u8], at: usize, length: usize) -> Result<(), Fault> {
    let target = out.get_mut(at..).ok_or(Fault::NoRoom)?;
    if let (Some(from), Some(to)) = (input.0.first_chunk::<32>(), target.first_chunk_mut()) {
        *to = *from;
    } else {
        let target = target.get_mut(..length).ok_or(Fault::NoRoom)?;
        target.copy_from_slice(input.0.get(..length).ok_or_else(damaged)?);
    }
    input.0 = &input.0[length..];
    Ok(())
}

/// Repeats what is `distance` bytes before `at`.
#[inline(always)]
fn repeat(out: &mut [u8], at: usize, distance: usize, length: usize) -> Result<(), Fault> {
    let from = at.checked_sub(distance).ok_or_else(damaged)?;
    let end = at.checked_add(length).filter(|end| *end <= out.len()).ok_or(Fault::NoRoom)?;
    if distance == 1 {
        let value = out[from];
        out[at..end].fill(value);
    } else if let (CHUNK.., Some(bytes)) = (distance, out.get_mut(from..end + CHUNK)) {
        for n in (0..length).step_by(CHUNK) {
            if let Some(chunk) = bytes.get(n..).and_then(|rest| rest.first_chunk::<CHUNK>().copied())
                && let Some(to) = bytes.get_mut(n + distance..).and_then(|rest| rest.first_chunk_mut())
            {
                *to = chunk;
            }
        }
    } else {
        let bytes = &mut out[from..end];
        // what is repeated becomes twice as long with each copy
        let mut done = distance;
        while done < bytes.len() {
            let step = done.min(bytes.len() - done);
            let (before, rest) = bytes.split_at_mut(done);
            rest[..step].copy_from_slice(&before[..step]);
            done += step;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(stored: &[u8], room: usize) -> Result<Vec<u8>, Fault> {
        let mut out = vec![0xaa; room];
        let length = decode(stored, &mut out)?;
        out.truncate(length);
        Ok(out)
    }

    #[test]
    fn literals_and_matches_are_decoded() {
        // the high bits of the first item are ignored
        let begin = [0x22, b'a', b'b', b'c'];
        let with = |more: &[u8]| decoded(&[&begin, more].concat(), 1000).map(|out| String::from_utf8(out).unwrap());
        assert_eq!(with(&[]), Ok("abc".into()));
        assert_eq!(with(&[0x20, 2]), Ok("abcabc".into()));
        assert_eq!(with(&[0x40, 0, 0, b'd']), Ok("abcccccd".into()));
        assert_eq!(with(&[0xe0, 0, 1]), Ok("abcbcbcbcbcb".into()));
        assert_eq!(with(&[0xe0, 255, 1, 0]), Ok(format!("ab{}", "c".repeat(1 + 9 + 256))));
        for wrong in [&[0x20, 3][..], &[0x20], &[0xe0], &[0xe0, 255], &[1, b'd'], &[0x3f, 0xff, 0]] {
            assert!(matches!(with(wrong), Err(Fault::Invalid(_))), "{wrong:?}");
        }
        assert_eq!(decoded(&begin, 2), Err(Fault::NoRoom));
        assert_eq!(decoded(&[2, 1, 2, 3, 0x20, 2], 5), Err(Fault::NoRoom));
        assert!(matches!(decoded(&[], 5), Err(Fault::Invalid(_))));
    }

    #[test]
    fn far_matches_are_decoded() {
        let begin: Vec<u8> = (0..300u32).flat_map(|n| [&[31][..], &[(n % 251) as u8; 32]].concat()).collect();
        let plain = decoded(&begin, 20_000).unwrap();
        for (distance, stored) in [(8191, [0x3f, 0xfe, 0, 0]), (8192, [0x3f, 0xff, 0, 0]), (8195, [0x3f, 0xff, 0, 3])] {
            let stored = if distance == 8191 { &stored[..2] } else { &stored };
            let all = decoded(&[&begin, stored].concat(), 20_000).unwrap();
            assert_eq!(all[plain.len()..], plain[plain.len() - distance..][..3], "{distance}");
        }
    }
}
