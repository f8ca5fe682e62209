//! The sequences of an LZ4 block as far as they can be decoded in whole chunks: all but the last ones.
//!
//! A sequence is a token, literals, and a match: earlier output that is repeated. Most sequences of a volume are shorter
//! than a chunk, and copying a chunk of constant size costs less than copying the exact length; so more is written than
//! the sequence has, and the next one overwrites that. Near the end of the block there is no room for it, and what is
//! not valid is not looked at closely either: both are left to the library that [`super::decode`] calls.

/// Bytes that are copied at a time.
const CHUNK: usize = 32;
/// Bytes that are copied at a time if a match begins less than a chunk before its end.
const HALF: usize = CHUNK / 2;
/// A length in a token that is continued in the next bytes.
const CONTINUED: usize = 15;
/// Matches are stored without their first bytes, which all have.
const SHORTEST_MATCH: usize = 4;

/// How far a block has been decoded: up to the beginning of a sequence.
#[derive(Clone, Copy, Default)]
pub(crate) struct Progress {
    /// Bytes of the block.
    pub read: usize,
    /// Bytes of output.
    pub written: usize,
}

/// Decodes sequences from the beginning of `block` into `out` until one is not valid or ends within a chunk of the end
/// of either.
pub(crate) fn decode(block: &[u8], out: &mut [u8]) -> Progress {
    let mut progress = Progress::default();
    while let Some(further) = sequence(block, out, progress) {
        progress = further;
    }
    progress
}

/// Decodes the sequence that begins at `progress`. The bytes after its output are unspecified.
#[inline(always)]
fn sequence(block: &[u8], out: &mut [u8], progress: Progress) -> Option<Progress> {
    let Progress { read, written } = progress;
    let token = usize::from(*block.get(read)?);
    let (literals, read) = length(block, read + 1, token >> 4)?;
    copy_literals(block.get(read..)?, out.get_mut(written..)?, literals)?;
    let (read, written) = (read + literals, written + literals);
    let offset = usize::from(u16::from_le_bytes(*block.get(read..)?.first_chunk()?));
    let (rest, read) = length(block, read + 2, token & 15)?;
    let end = written.checked_add(rest)?.checked_add(SHORTEST_MATCH)?;
    let from = written.checked_sub(offset)?;
    // room for whole chunks
    let repeated = out.get_mut(from..end.checked_add(CHUNK)?)?;
    match offset {
        0 => return None,
        1..HALF => repeat_short(repeated, offset, end - written)?,
        HALF..CHUNK => repeat::<HALF>(repeated, offset, end - written)?,
        _ => repeat::<CHUNK>(repeated, offset, end - written)?,
    }
    Some(Progress { read, written: end })
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
