//! Raw LZ4 blocks: without frame, length prefix or dictionary.
//!
//! A sequence is a token, literals, and a match: earlier output that is repeated. Most sequences of a volume are
//! shorter than a chunk, and copying a chunk of constant size costs less than copying the exact length; so more is
//! written than the sequence has, and the next one overwrites that. Near the end of the block there is no room for it:
//! the last few bytes are left to lz4_flex, and so are invalid sequences.

use lz4_flex::block::decompress_into_with_dict;

/// The most bytes between a match and the bytes that it repeats.
const MAX_OFFSET: usize = u16::MAX as usize;

/// Returns the most bytes that a block of `length` bytes can decode to: no byte of LZ4 adds more than 255.
pub(crate) fn most(length: u64) -> u64 {
    length.saturating_mul(255)
}

/// Returns the most bytes that a block takes which decodes to `bytes` bytes.
pub(crate) fn longest(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 255).saturating_add(16)
}

/// Decodes a block, which must fill `out` exactly; after an error its content is unspecified.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    let wanted = out.len();
    let (read, written) = decode_sequences(stored, out);
    let (before, rest) = out.split_at_mut(written);
    if let Some(literals) = last_literals(&stored[read..]).filter(|literals| literals.len() == rest.len()) {
        rest.copy_from_slice(literals);
        return Ok(());
    }
    // the library decodes the end, and describes the fault of an invalid sequence
    let reachable = &before[written.saturating_sub(MAX_OFFSET)..];
    match decompress_into_with_dict(&stored[read..], rest, reachable) {
        Ok(found) if found == rest.len() => Ok(()),
        Ok(found) => Err(format!("the LZ4 block decodes to {} bytes, not {wanted}", written + found)),
        Err(e) => Err(format!("not a valid LZ4 block: {e}")),
    }
}

/// Returns the literals of the sequence that begins `block`, if nothing is behind them.
fn last_literals(block: &[u8]) -> Option<&[u8]> {
    let (literals, read) = length(block, 1, usize::from(block.first()? >> 4))?;
    block.get(read..).filter(|bytes| bytes.len() == literals)
}

/// Bytes of a block of zeros that the counting bytes of its match do not cover: the match covers all but one byte
/// before it and five after it, and its length is stored minus 4, of which the token holds 15.
const NOT_COUNTED: u64 = 1 + 5 + 4 + 15;

/// Returns the block that compressors write for `bytes` zeros: a literal, one long match, five literals. `None` if that
/// is too short for a match.
pub(crate) fn zeros(bytes: u64) -> Option<Vec<u8>> {
    let rest = usize::try_from(bytes.checked_sub(NOT_COUNTED)?).ok()?;
    let mut block = vec![0x1f, 0, 1, 0];
    block.resize(4 + rest / 255, 255);
    block.push((rest % 255) as u8);
    block.extend([0x50, 0, 0, 0, 0, 0]);
    Some(block)
}

/// Bytes that are copied at a time.
const CHUNK: usize = 32;
const HALF: usize = CHUNK / 2;
/// A length in a token that is continued in the next bytes.
const CONTINUED: usize = 15;
/// Bytes that a sequence has at most before its match, without those of longer lengths, and some more.
const FRONT: usize = 20;
/// Matches are stored without their first bytes, which all have.
const SHORTEST_MATCH: usize = 4;
/// Bytes of the longest match whose length is in the token.
const SHORT_MATCH: usize = CONTINUED - 1 + SHORTEST_MATCH;

/// Decodes sequences from the beginning of `block` into `out` until one is not valid or ends close to the end of either.
/// Returns how many bytes of the block were read, and how many were written.
fn decode_sequences(block: &[u8], out: &mut [u8]) -> (usize, usize) {
    let mut done = (0, 0);
    let (Some(last), Some(limit)) = (block.len().checked_sub(FRONT), out.len().checked_sub(HALF)) else {
        return done;
    };
    // after these two comparisons the compiler leaves out those of the front of a sequence
    while done.0 <= last && done.1 <= limit {
        let Some(further) = sequence(block, out, done) else { break };
        done = further;
    }
    done
}

/// Decodes the sequence that begins at byte `read` of the block, and returns where the next one begins. The bytes after
/// its output are unspecified.
#[inline(always)]
fn sequence(block: &[u8], out: &mut [u8], (read, written): (usize, usize)) -> Option<(usize, usize)> {
    let head: &[u8; FRONT] = block.get(read..)?.first_chunk()?;
    let token = usize::from(head[0]);
    let (literals, rest) = (token >> 4, token & 15);
    // a reference: two bytes would be loaded one by one
    let (offset, read, written): (&[u8; 2], _, _) = if literals < CONTINUED {
        *out.get_mut(written..)?.first_chunk_mut::<HALF>()? = *head[1..].first_chunk()?;
        (head[1 + literals..].first_chunk()?, read + 1 + literals, written + literals)
    } else {
        let (literals, read) = length(block, read + 1, literals)?;
        let from = block.get(read..)?;
        let offset = from.get(literals..)?.first_chunk()?;
        copy_literals(from, out.get_mut(written..)?, literals)?;
        (offset, read + literals, written + literals)
    };
    let offset = usize::from(u16::from_le_bytes(*offset));
    let from = written.checked_sub(offset)?;
    // most matches are short, and more is not copied: a load waits for all stores before it that overlap it
    if rest < CONTINUED && offset >= HALF {
        let bytes = out.get_mut(from..)?.get_mut(..offset + SHORT_MATCH)?;
        repeat_bytes::<HALF>(bytes, offset, 0)?;
        repeat_bytes::<{ SHORT_MATCH - HALF }>(bytes, offset, HALF)?;
        return Some((read + 2, written + rest + SHORTEST_MATCH));
    }
    let (rest, read) = length(block, read + 2, rest)?;
    let end = written.checked_add(rest)?.checked_add(SHORTEST_MATCH)?;
    let Some(bytes) = out.get_mut(from..end.checked_add(CHUNK)?) else {
        repeat_exactly(out.get_mut(from..end)?, offset)?;
        return Some((read, end));
    };
    match offset {
        0 => return None,
        1 | 2 | 4 | 8 => repeat_pattern(bytes, offset, end - written)?,
        3..HALF => repeat_short(bytes, offset, end - written)?,
        _ => repeat(bytes, offset, end - written)?,
    }
    Some((read, end))
}

/// Returns the length of which a token has `begun`, and the place after its further bytes, which begin at `at`.
#[inline(always)]
fn length(block: &[u8], at: usize, begun: usize) -> Option<(usize, usize)> {
    if begun < CONTINUED {
        return Some((begun, at));
    }
    match *block.get(at)? {
        u8::MAX => long_length(block, at),
        last => Some((CONTINUED + usize::from(last), at + 1)),
    }
}

/// Returns a length of which several bytes are stored from `at` on, and the place after them.
#[cold]
fn long_length(block: &[u8], at: usize) -> Option<(usize, usize)> {
    let full = block.get(at..)?.iter().position(|byte| *byte != u8::MAX)?;
    let last = usize::from(*block.get(at + full)?);
    Some((CONTINUED + full * usize::from(u8::MAX) + last, at + full + 1))
}

#[inline(always)]
fn copy_literals(from: &[u8], to: &mut [u8], literals: usize) -> Option<()> {
    if literals <= CHUNK {
        *to.first_chunk_mut::<CHUNK>()? = *from.first_chunk()?;
        return Some(());
    }
    let (from, to) = (from.get(..literals)?, to.get_mut(..literals)?);
    if literals <= 2 * CHUNK {
        *to.first_chunk_mut::<CHUNK>()? = *from.first_chunk()?;
        *to.last_chunk_mut::<CHUNK>()? = *from.last_chunk()?;
    } else {
        to.copy_from_slice(from);
    }
    Some(())
}

/// Copies the bytes at `at` to `at + offset`.
#[inline(always)]
fn repeat_bytes<const COUNT: usize>(bytes: &mut [u8], offset: usize, at: usize) -> Option<()> {
    let copied: [u8; COUNT] = *bytes.get(at..)?.first_chunk()?;
    *bytes.get_mut(offset + at..)?.first_chunk_mut()? = copied;
    Some(())
}

/// Repeats the beginning of `bytes` from `offset` on, at least to `offset + length`. `offset` is not less than half a
/// chunk.
#[inline(always)]
fn repeat(bytes: &mut [u8], offset: usize, length: usize) -> Option<()> {
    let mut at = 0;
    while at < length {
        let both = bytes.get_mut(at..at + offset + CHUNK)?;
        repeat_bytes::<HALF>(both, offset, 0)?;
        repeat_bytes::<HALF>(both, offset, HALF)?;
        at += CHUNK;
    }
    Some(())
}

/// Repeats the beginning of `bytes` from `offset` on, to their end.
#[cold]
fn repeat_exactly(bytes: &mut [u8], offset: usize) -> Option<()> {
    let mut at = offset;
    while at < bytes.len() {
        let (done, rest) = bytes.split_at_mut_checked(at).filter(|(done, _)| !done.is_empty())?;
        let count = done.len().min(rest.len());
        rest.get_mut(..count)?.copy_from_slice(done.get(..count)?);
        at += count;
    }
    Some(())
}

/// Like [`repeat`], for the size of a sample: neighbours are often equal.
#[inline(always)]
fn repeat_pattern(bytes: &mut [u8], offset: usize, length: usize) -> Option<()> {
    let first = u64::from_le_bytes(*bytes.first_chunk()?);
    let pattern = match offset {
        1 => (first & 0xff) * 0x0101_0101_0101_0101,
        2 => (first & 0xffff) * 0x0001_0001_0001_0001,
        4 => (first & 0xffff_ffff) * 0x0000_0001_0000_0001,
        _ => first,
    };
    let mut at = 0;
    while at < length {
        let chunk: &mut [u8; CHUNK] = bytes.get_mut(offset + at..)?.first_chunk_mut()?;
        chunk.as_chunks_mut().0.fill(pattern.to_le_bytes());
        at += CHUNK;
    }
    Some(())
}

/// Like [`repeat`], for an offset from 1 on that is less than a chunk: nothing that was just written is read, for which
/// the processor would wait.
#[inline(always)]
fn repeat_short(bytes: &mut [u8], offset: usize, length: usize) -> Option<()> {
    let mut bits = offset as u32 * u8::BITS;
    let mut pattern = u128::from_le_bytes(*bytes.first_chunk()?) & (u128::MAX >> (u128::BITS - bits));
    while bits < u128::BITS {
        pattern |= pattern << bits;
        bits *= 2;
    }
    // whole repetitions
    let step = HALF - HALF % offset;
    let mut at = 0;
    while at < length {
        *bytes.get_mut(offset + at..)?.first_chunk_mut()? = pattern.to_le_bytes();
        at += step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::{compress, decompress_into};
    use proptest::prelude::*;

    use super::*;

    /// Runs of `length` bytes that repeat what is `back` bytes before, or count from `back` on.
    fn runs() -> impl Strategy<Value = Vec<u8>> {
        let short = prop_oneof![4 => 1usize..40, 1 => 1usize..700];
        prop::collection::vec((any::<bool>(), 1usize..300, short), 1..60).prop_map(|runs| {
            let mut bytes: Vec<u8> = Vec::new();
            for (repeats, back, length) in runs {
                for n in 0..length {
                    let before = bytes.len().checked_sub(back).filter(|_| repeats).map(|at| bytes[at]);
                    bytes.push(before.unwrap_or((back * 7 + n * n / 3) as u8));
                }
            }
            bytes
        })
    }

    proptest! {
        #[test]
        fn blocks_are_decoded_as_by_the_library_alone(
            bytes in runs(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in prop::option::of(any::<prop::sample::Index>()), more in 0usize..3,
        ) {
            let mut block = compress(&bytes);
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(decode(&block, &mut out), Ok(()));
            prop_assert_eq!(&out, &bytes);
            for (at, value) in changes {
                let at = at.index(block.len());
                block[at] = value;
            }
            if let Some(cut) = cut {
                block.truncate(cut.index(block.len() + 1));
            }
            let length = (bytes.len() + more).saturating_sub(1);
            let (mut expected, mut out) = (vec![0; length], vec![0xaa; length]);
            match (decompress_into(&block, &mut expected), decode(&block, &mut out)) {
                (Ok(found), Ok(())) => {
                    prop_assert_eq!(found, length);
                    prop_assert_eq!(out, expected);
                }
                (Ok(found), Err(e)) => {
                    prop_assert_eq!(e, format!("the LZ4 block decodes to {found} bytes, not {length}"));
                }
                (Err(_), Err(e)) => prop_assert!(e.starts_with("not a valid LZ4 block: "), "{}", e),
                (Err(e), Ok(())) => prop_assert!(false, "{e}"),
            }
        }
    }

    /// A block of one sequence and `last` literals.
    fn block(literals: usize, offset: u16, length: usize, last: usize) -> Vec<u8> {
        let counted = |length: usize| match length.checked_sub(15) {
            Some(more) => [vec![255; more / 255], vec![(more % 255) as u8]].concat(),
            None => Vec::new(),
        };
        let token = (literals.min(15) << 4 | (length - 4).min(15)) as u8;
        let values: Vec<u8> = (0..literals).map(|n| n as u8).collect();
        let end = [vec![(last.min(15) << 4) as u8], counted(last), vec![9; last]].concat();
        [&[token][..], &counted(literals), &values, &offset.to_le_bytes(), &counted(length - 4), &end].concat()
    }

    /// Literals that leave room for whole chunks before them.
    const LAST: usize = 60;

    #[test]
    fn every_offset_and_length_repeats_what_was_before() {
        for literals in (1..100).chain([254, 270, 271, 300, 600]) {
            for offset in (0..=literals + 1).filter(|offset| *offset < 70 || *offset + 3 > literals) {
                for length in [4, 5, 18, 19, 20, 31, 32, 33, 64, 65, 273, 274, 600] {
                    let one = block(literals, offset as u16, length, LAST);
                    let total = literals + length + LAST;
                    let (mut out, mut expected) = (vec![1; total], vec![2; total]);
                    let wanted = decompress_into(&one, &mut expected).ok();
                    let read = decode_sequences(&one, &mut out).0;
                    assert_eq!(read, if wanted.is_some() { one.len() - LAST - 2 } else { 0 });
                    match decode(&one, &mut out) {
                        Ok(()) => assert!(wanted == Some(total) && out == expected, "{literals} {offset} {length}"),
                        Err(_) => assert!(wanted.is_none() && (offset == 0 || offset > literals)),
                    }
                }
            }
        }
    }

    #[test]
    fn matches_near_the_end_are_no_longer_than_they_should_be() {
        for (literals, last) in [(20, 5), (20, 14), (20, 15), (90, 5), (90, 31), (300, 6)] {
            for offset in 1..=literals {
                for length in [4, 18, 19, 33, 64, 273, 274, 1000] {
                    let one = block(literals, offset as u16, length, last);
                    let total = literals + length + last;
                    let (mut out, mut expected) = (vec![1; total], vec![2; total]);
                    decompress_into(&one, &mut expected).unwrap();
                    assert_eq!(decode(&one, &mut out), Ok(()));
                    assert_eq!(out, expected, "{literals} {offset} {length} {last}");
                }
            }
        }
    }

    #[test]
    fn a_block_decodes_to_its_length_and_no_other() {
        let block = [&[0x13, b'a', 1, 0, 0x50][..], b"bcdef"].concat();
        let mut out = [0; 13];
        assert_eq!(decode(&block, &mut out), Ok(()));
        assert_eq!(&out, b"aaaaaaaabcdef");
        assert_eq!(decode(&block, &mut [0; 14]), Err("the LZ4 block decodes to 13 bytes, not 14".into()));
        for wrong in [&block[..9], &block[..4], &[0x13, b'a', 2, 0, 0x50, 0, 0, 0, 0, 0], &[0xff; 40], &[]] {
            assert!(decode(wrong, &mut [0; 13]).is_err(), "{wrong:?}");
        }
        assert!(decode(&block, &mut [0; 12]).unwrap_err().starts_with("not a valid LZ4 block: "));
    }

    #[test]
    fn zeros_are_as_compressors_write_them() {
        for (bytes, length) in [(1, 139), (2, 267), (4, 524), (8, 1038)] {
            assert_eq!(zeros(bytes << 15).map(|block| block.len()), Some(length));
        }
        for bytes in [25, 26, 279, 280, 281, 512, 4096, 100_000] {
            let mut out = vec![1; bytes];
            assert_eq!(decode(&zeros(bytes as u64).unwrap(), &mut out), Ok(()), "{bytes}");
            assert!(out.iter().all(|b| *b == 0) && bytes as u64 <= most(zeros(bytes as u64).unwrap().len() as u64));
        }
        assert_eq!(zeros(24), None);
    }
}
