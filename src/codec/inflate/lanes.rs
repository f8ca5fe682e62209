//! Decodes blocks of a prefix code that are mostly literals and have few matches.
//!
//! The place of a symbol is known once the one before is decoded, so one decoder waits for one look-up in a table after
//! the other, and the processor has little to do meanwhile. But prefix codes are self-synchronizing: a decoder that
//! begins anywhere soon finds a boundary between symbols, and is right from there on. So several lanes decode a
//! block at a time. The first lane begins where the block does, the others at places that divide the block, or as much
//! of it as the lanes have room for, into equal parts. Then symbols are decoded one by one from the end of each lane
//! on, until one begins where the next lane has a mark, a synchronization point: from there on both are the same.

use std::ops::Range;

use super::{Codes, Match, NOT_LITERAL, Output, Symbol, WORD_BITS, literal_length, word};

/// Lanes that are decoded at a time: the state of more does not fit the processor's registers.
const LANES: usize = 4;
/// Literals that are decoded at a time.
const GROUP: usize = 5;
/// The most bits of a group of literals: codes that are longer are not in the table.
const GROUP_BITS: usize = GROUP * 11;
/// The most groups of a lane.
const GROUPS: usize = 1600;
/// Places that a lane marks at most.
const MARKS: usize = 48;
/// The most matches of a lane.
const MATCHES: usize = 512;
/// The length of a lane, in bits: shorter ones are not worth it, and longer ones have no room if a literal has four
/// bits or less.
const SHORTEST_LANE: usize = 1 << 10;
const LONGEST_LANE: usize = 4 * GROUP * GROUPS;
/// Symbols are decoded one by one over this many bits before the lanes begin anew.
const LONGEST_GAP: usize = 2 << 10;
/// Bytes for each match, once there are that many: with fewer, other decoders are faster.
const BYTES_FOR_MATCH: usize = 64;
const COUNTED_FROM: usize = 512;

const _: () = assert!(GROUP_BITS <= WORD_BITS);

/// The symbols of a block: the stored data, and the block's codes.
pub(super) struct Block<'a> {
    pub stored: &'a [u8],
    pub codes: &'a Codes,
}

impl Block<'_> {
    /// Decodes literals with short codes to `to`, up to another symbol. Returns their number.
    #[inline]
    fn literals(&self, at: &mut usize, to: &mut [u8; GROUP]) -> usize {
        let Some(mut bits) = word(self.stored, *at) else { return 0 };
        for (n, to) in to.iter_mut().enumerate() {
            let entry = self.codes.literals.entry(bits);
            if entry & NOT_LITERAL != 0 {
                return n;
            }
            *to = (entry >> 8) as u8;
            bits >>= literal_length(entry);
            *at += literal_length(entry) as usize;
        }
        GROUP
    }

    /// Decodes the symbol at a place, and returns it with the place after it. `None` if it is not valid.
    #[inline]
    fn symbol(&self, at: usize) -> Option<(Symbol, usize)> {
        self.codes.symbol(self.stored, at).filter(|(_, next)| *next <= 8 * self.stored.len())
    }

    /// Decodes one symbol and appends it. Returns the place after it, and whether it was the end of the block. `None`
    /// if it is not valid.
    fn append_symbol(&self, at: usize, out: &mut Output<'_>) -> Option<(usize, bool)> {
        let (symbol, next) = self.symbol(at)?;
        match symbol {
            Symbol::Literal(byte) => out.extend(&[byte])?,
            Symbol::Match(what) => out.repeat(what)?,
            Symbol::EndOfBlock => return Some((next, true)),
        }
        Some((next, false))
    }
}

/// Decodes symbols to its own memory, from a place on that may lie within a symbol.
struct Lane {
    /// Where the next symbol begins.
    at: usize,
    /// The groups that were decoded.
    groups: usize,
    /// The literals, with gaps after matches.
    bytes: Box<[[u8; GROUP]; GROUPS]>,
    matches: Vec<DeferredMatch>,
    /// Once it has ended: where its literals end, and whether the last symbol was the end of the block. If not, the
    /// next one is not valid, or there is no room for it.
    end: Option<(usize, bool)>,
    /// Places where a symbol begins, as far as the lane knows, and the groups before them.
    marks: Vec<(usize, usize)>,
}

/// A match that is repeated when the lane's bytes are appended: the lane does not know the bytes before its beginning.
struct DeferredMatch {
    at: usize,
    /// Where the literals before it end in the lane's bytes, and where those after it begin.
    gap: (usize, usize),
    what: Match,
}

impl Lane {
    fn new() -> Self {
        Self {
            at: 0,
            groups: 0,
            bytes: Box::new([[0; GROUP]; GROUPS]),
            matches: Vec::with_capacity(MATCHES),
            end: None,
            marks: Vec::with_capacity(MARKS),
        }
    }

    fn begin(&mut self, at: usize) {
        (self.at, self.groups, self.end) = (at, 0, None);
        self.marks.clear();
        self.matches.clear();
    }

    fn mark(&mut self) {
        self.marks.push((self.at, self.groups));
    }

    fn is_at_end_of_block(&self) -> bool {
        self.end.is_some_and(|(_, is_end_of_block)| is_end_of_block)
    }

    /// Decodes the group with this number, which begins at `at`, up to a symbol that is no literal. Returns whether the
    /// lane can go on.
    #[inline(never)]
    fn group(&mut self, block: &Block<'_>, at: &mut usize, number: usize) -> bool {
        let first = GROUP * number;
        let mut end = |filled, is_end_of_block| {
            self.end = Some((filled, is_end_of_block));
            false
        };
        let Some(to) = self.bytes.get_mut(number) else { return end(first, false) };
        let begun = block.literals(at, to);
        for (filled, to) in (first..).zip(to).skip(begun) {
            let Some((symbol, next)) = block.symbol(*at) else { return end(filled, false) };
            let symbol_at = std::mem::replace(at, next);
            match symbol {
                Symbol::Literal(byte) => *to = byte,
                Symbol::Match(what) => {
                    let behind = first + GROUP;
                    self.matches.push(DeferredMatch { at: symbol_at, gap: (filled, behind), what });
                    return self.matches.len() < MATCHES || end(behind, false);
                }
                Symbol::EndOfBlock => return end(filled, true),
            }
        }
        true
    }

    /// Appends the bytes that the lane has decoded from `at` on, if it has a mark there. Returns whether it has, and
    /// `None` if its matches are not valid.
    fn append_from(&self, at: usize, out: &mut Output<'_>) -> Option<bool> {
        let Ok(mark) = self.marks.binary_search_by_key(&at, |mark| mark.0) else { return Some(false) };
        let bytes = self.bytes.as_flattened();
        let mut from = GROUP * self.marks[mark].1;
        for DeferredMatch { gap, what, .. } in self.matches.iter().filter(|deferred| deferred.at >= at) {
            out.extend(bytes.get(from..gap.0)?)?;
            out.repeat(*what)?;
            from = gap.1;
        }
        let filled = self.end.map_or(GROUP * self.groups, |(filled, _)| filled);
        out.extend(bytes.get(from..filled)?)?;
        Some(true)
    }
}

/// Decodes `groups` groups in each of the lanes in turn, so that the processor works for all of them while each waits
/// for its table. Ends before if one of them has ended.
fn decode_groups<const N: usize>(block: &Block<'_>, lanes: &mut [Lane; N], groups: usize) {
    let mut places = lanes.each_ref().map(|lane| lane.at);
    let before = lanes.each_ref().map(|lane| lane.groups);
    let mut group = 0;
    let ended = loop {
        let mut bytes = lanes.each_mut().map(|lane| lane.bytes.get_mut(lane.groups..).unwrap_or_default());
        let (stopped, first) = decode_literals(block, &mut places, &mut bytes, group..groups);
        if stopped == groups {
            break None;
        }
        let mut rest = lanes.iter_mut().zip(&mut places).zip(before).enumerate().skip(first);
        // the others may have literals in this group, or not
        let ended = rest.find_map(|(n, ((lane, at), before))| (!lane.group(block, at, before + stopped)).then_some(n));
        if let Some(n) = ended {
            break Some((stopped, n));
        }
        group = stopped + 1;
    };
    for (n, (lane, at)) in lanes.iter_mut().zip(places).enumerate() {
        lane.at = at;
        lane.groups += match ended {
            Some((group, last)) if n <= last => group + 1,
            Some((group, _)) => group,
            None => groups,
        };
    }
}

/// Decodes groups of literals in each of the lanes: the loop that takes most of the time. Returns the first group that
/// is none, and its lane.
#[inline(never)]
fn decode_literals<const N: usize>(
    block: &Block<'_>,
    lanes: &mut [usize; N],
    bytes: &mut [&mut [[u8; GROUP]]; N],
    groups: Range<usize>,
) -> (usize, usize) {
    let (code, end) = (&block.codes.literals, groups.end);
    let mut places = *lanes;
    let stopped = 'stopped: {
        for group in groups {
            for (n, (at, bytes)) in places.iter_mut().zip(&mut *bytes).enumerate() {
                let Some(mut bits) = word(block.stored, *at) else { break 'stopped (group, n) };
                let Some(to) = bytes.get_mut(group) else { break 'stopped (group, n) };
                let (mut sum, mut flags) = (0, 0);
                for to in to {
                    let entry = code.entry(bits);
                    bits >>= literal_length(entry);
                    sum += u32::from(entry);
                    flags |= entry;
                    *to = (entry >> 8) as u8;
                }
                if flags & NOT_LITERAL != 0 {
                    break 'stopped (group, n);
                }
                // the low bits of the sum are that of the lengths, which is at most 55
                *at += (sum & 63) as usize;
            }
        }
        (end, N)
    };
    *lanes = places;
    stopped
}

pub(super) struct Lanes([Lane; LANES]);

impl Lanes {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Lane::new()))
    }

    /// Decodes the symbols of a block, which begin at `at`, and returns the place after its end. `length` is the length
    /// of the block before, in bits. `None` if the data are not valid, or have many matches.
    pub(super) fn decode(
        &mut self,
        block: &Block<'_>,
        mut at: usize,
        length: Option<usize>,
        out: &mut Output<'_>,
    ) -> Option<usize> {
        let begin = at;
        loop {
            // a block that is longer than the one before, or the first one, is as long again as it is so far
            let rest = match (begin + length.unwrap_or(0)).saturating_sub(at) {
                0 => at - begin,
                rest => rest,
            }
            .min((8 * block.stored.len()).saturating_sub(at));
            let span = (rest / LANES).clamp(SHORTEST_LANE, LONGEST_LANE);
            self.decode_ahead(block, at, span);
            let (next, has_ended) = self.append(block, at, out)?;
            if has_ended {
                return Some(next);
            }
            at = next;
            // later on, more has been decoded than another decoder would gain
            let counts = (COUNTED_FROM..out.bytes.len() / 4).contains(&out.filled);
            if counts && out.filled / BYTES_FOR_MATCH < out.matches {
                return None;
            }
        }
    }

    /// Decodes `span` bits in each lane, one after the other.
    fn decode_ahead(&mut self, block: &Block<'_>, at: usize, span: usize) {
        for (n, lane) in self.0.iter_mut().enumerate() {
            lane.begin(at + n * span);
        }
        for _ in 0..MARKS {
            if self.0.iter().any(|lane| lane.end.is_some()) {
                break; // the others go on alone
            }
            self.0.iter_mut().for_each(Lane::mark);
            decode_groups(block, &mut self.0, 1);
        }
        if self.0[0].is_at_end_of_block() {
            return;
        }
        let end = |n: usize| at + (n + 1) * span;
        loop {
            let groups = |(n, lane): (usize, &Lane)| match lane.end {
                Some(_) => 0,
                None => end(n).saturating_sub(lane.at) / GROUP_BITS,
            };
            let least = self.0.iter().enumerate().map(groups).min().unwrap_or(0);
            if least == 0 {
                break;
            }
            decode_groups(block, &mut self.0, least);
        }
        // the last lane goes on for a while: where the block ends is not known
        for (n, lane) in self.0.iter_mut().enumerate() {
            let end = if n + 1 == LANES { end(n) + span / 2 } else { end(n) };
            while lane.at < end && lane.end.is_none() {
                let mut groups = ((end - lane.at) / GROUP_BITS).max(1);
                if n > 0 && lane.marks.len() < MARKS {
                    lane.mark();
                    groups = 1;
                }
                decode_groups(block, std::array::from_mut(lane), groups);
            }
        }
    }

    /// Appends the bytes that the lanes have decoded from `at` on, as far as symbols lead to a mark of the next lane.
    /// Returns the place after it, and whether it is that after the end of the block.
    fn append(&self, block: &Block<'_>, mut at: usize, out: &mut Output<'_>) -> Option<(usize, bool)> {
        for lane in &self.0 {
            let (Some((first, _)), Some((last, _))) = (lane.marks.first(), lane.marks.last()) else { break };
            if first.saturating_sub(at) > LONGEST_GAP {
                break;
            }
            while !lane.append_from(at, out)? {
                if at > *last {
                    return Some((at, false));
                }
                match block.append_symbol(at, out)? {
                    (next, false) => at = next,
                    end => return Some(end),
                }
            }
            at = lane.at;
            if lane.is_at_end_of_block() {
                return Some((at, true));
            }
        }
        // the lanes may all be stuck
        block.append_symbol(at, out)
    }
}
