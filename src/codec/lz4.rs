//! Raw LZ4 blocks: without frame, length prefix or dictionary.
//!
//! A sequence is a token, literals, and a match: earlier output that is repeated. Most sequences of a volume are
//! shorter than a chunk, and copying a chunk of constant size costs less than copying the exact length; so more is
//! written than the sequence has, and the next one overwrites that. Near the end of the block there is no room for it:
//! the end is left to lz4_flex, and so are invalid sequences.

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
    // the library decodes the end, and describes the fault of an invalid sequence
    let (before, rest) = out.split_at_mut(written);
    let reachable = &before[written.saturating_sub(MAX_OFFSET)..];
    match decompress_into_with_dict(&stored[read..], rest, reachable) {
        Ok(found) if found == rest.len() => Ok(()),
        Ok(found) => Err(format!("the LZ4 block decodes to {} bytes, not {wanted}", written + found)),
        Err(e) => Err(format!("not a valid LZ4 block: {e}")),
    }
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
/// Bytes that are copied at a time if a match begins less than a chunk before its end.
const HALF: usize = CHUNK / 2;
/// A length in a token that is continued in the next bytes.
const CONTINUED: usize = 15;
/// Bytes that a sequence has at most before its match, without those of longer lengths, and some more.
const FRONT: usize = 20;
/// Matches are stored without their first bytes, which all have.
const SHORTEST_MATCH: usize = 4;

/// Decodes sequences from the beginning of `block` into `out` until one is not valid or ends within a chunk of the end
/// of either. Returns how many bytes of the block were read, and how many were written.
fn decode_sequences(block: &[u8], out: &mut [u8]) -> (usize, usize) {
    let mut done = (0, 0);
    while let Some(further) = sequence(block, out, done) {
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
    let (offset, read, written) = if literals < CONTINUED {
        *out.get_mut(written..)?.first_chunk_mut::<HALF>()? = *head[1..].first_chunk()?;
        ([head[1 + literals], head[2 + literals]], read + 1 + literals, written + literals)
    } else {
        let (literals, read) = length(block, read + 1, literals)?;
        copy_literals(block.get(read..)?, out.get_mut(written..)?, literals)?;
        (*block.get(read + literals..)?.first_chunk()?, read + literals, written + literals)
    };
    let offset = usize::from(u16::from_le_bytes(offset));
    let from = written.checked_sub(offset)?;
    // most matches are short, and more is not copied: a load waits for all stores before it that overlap it
    if rest < CONTINUED && offset >= HALF {
        let repeated = out.get_mut(from..)?;
        let chunk: [u8; HALF] = *repeated.first_chunk()?;
        *repeated.get_mut(offset..)?.first_chunk_mut()? = chunk;
        if rest + SHORTEST_MATCH > HALF {
            let last: [u8; 2] = *repeated.get(HALF..)?.first_chunk()?;
            *repeated.get_mut(offset + HALF..)?.first_chunk_mut()? = last;
        }
        return Some((read + 2, written + rest + SHORTEST_MATCH));
    }
    let (rest, read) = length(block, read + 2, rest)?;
    let end = written.checked_add(rest)?.checked_add(SHORTEST_MATCH)?;
    // room for whole chunks
    let repeated = out.get_mut(from..end.checked_add(CHUNK)?)?;
    match offset {
        0 => return None,
        1 | 2 | 4 | 8 => repeat_pattern(repeated, offset, end - written)?,
        3..HALF => repeat_short(repeated, offset, end - written)?,
        HALF..CHUNK => repeat::<HALF>(repeated, offset, end - written)?,
        _ => repeat::<CHUNK>(repeated, offset, end - written)?,
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

/// Repeats the beginning of `bytes` from `offset` on, at least to `offset + length`. `offset` is not less than a chunk.
#[inline(always)]
fn repeat<const CHUNK: usize>(bytes: &mut [u8], offset: usize, length: usize) -> Option<()> {
    let mut at = 0;
    while at < length {
        let chunk: [u8; CHUNK] = *bytes.get(at..)?.first_chunk()?;
        *bytes.get_mut(offset + at..)?.first_chunk_mut()? = chunk;
        at += CHUNK;
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

    /// A block of one sequence, and last literals that leave room for whole chunks behind it.
    fn block(literals: usize, offset: u16, length: usize) -> Vec<u8> {
        let counted = |length: usize| match length.checked_sub(15) {
            Some(more) => [vec![255; more / 255], vec![(more % 255) as u8]].concat(),
            None => Vec::new(),
        };
        let token = (literals.min(15) << 4 | (length - 4).min(15)) as u8;
        let values: Vec<u8> = (0..literals).map(|n| n as u8).collect();
        let end = [&[0xf0, (LAST - 15) as u8][..], &[9; LAST]].concat();
        [&[token][..], &counted(literals), &values, &offset.to_le_bytes(), &counted(length - 4), &end].concat()
    }

    const LAST: usize = 60;

    #[test]
    fn every_offset_and_length_repeats_what_was_before() {
        for literals in (1..100).chain([254, 270, 271, 300, 600]) {
            for offset in (0..=literals + 1).filter(|offset| *offset < 70 || *offset + 3 > literals) {
                for length in [4, 5, 18, 19, 20, 31, 32, 33, 64, 65, 273, 274, 600] {
                    let one = block(literals, offset as u16, length);
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
