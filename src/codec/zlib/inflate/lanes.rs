//! Decodes a block by several lanes at a time.
//!
//! The first lane begins where the block does, the others at places that divide the block, or as much of it as the
//! lanes have room for, into equal parts. Then symbols are decoded one by one from the end of each lane on, until one
//! begins where the next lane has a mark, a synchronization point: from there on both are the same.

use super::bits::bits_from;
use super::block::{Block, GROUP};
use super::lane::{GROUPS, Lane, MARKS};
use super::lockstep::{self, GROUP_BITS};
use super::output::Output;

/// Lanes that are decoded at a time: the state of more does not fit the processor's registers.
const LANES: usize = 4;
/// The length of a lane, in bits: shorter ones are not worth it, and longer ones have no room if a literal has four
/// bits or less.
const SHORTEST_LANE: usize = 1 << 10;
const LONGEST_LANE: usize = 4 * GROUP * GROUPS;
/// Symbols are decoded one by one over this many bits before the lanes begin anew.
const LONGEST_GAP: usize = 2 << 10;
/// Bytes for each match, once there are that many: with fewer, other decoders are faster.
const BYTES_FOR_MATCH: usize = 64;
const COUNTED_FROM: usize = 512;

/// The lanes.
pub(crate) struct Lanes([Lane; LANES]);

impl Lanes {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Lane::new()))
    }

    /// Decodes the symbols of a block, which begin at `at`, and returns the place after its end. `length` is the length
    /// of the block before, in bits. `None` if the data are not valid, or have many matches.
    pub(crate) fn decode(
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
            .min(bits_from(block.stored, at));
            let span = (rest / LANES).clamp(SHORTEST_LANE, LONGEST_LANE);
            self.decode_ahead(block, at, span);
            let (next, has_ended) = self.append(block, at, out)?;
            if has_ended {
                return Some(next);
            }
            at = next;
            // later on, more has been decoded than another decoder would gain
            let counts = (COUNTED_FROM..out.len() / 4).contains(&out.filled());
            if counts && out.filled() / BYTES_FOR_MATCH < out.matches() {
                return None;
            }
        }
    }

    /// Decodes `span` bits in each lane, one behind the other.
    fn decode_ahead(&mut self, block: &Block<'_>, at: usize, span: usize) {
        for (n, lane) in self.0.iter_mut().enumerate() {
            lane.begin(at + n * span);
        }
        for _ in 0..MARKS {
            if self.0.iter().any(Lane::has_ended) {
                break; // the others go on alone
            }
            self.0.iter_mut().for_each(Lane::mark);
            lockstep::decode(block, &mut self.0, 1);
        }
        if self.0[0].is_at_end_of_block() {
            return;
        }
        let end = |n: usize| at + (n + 1) * span;
        loop {
            let groups = |(n, lane): (usize, &Lane)| match lane.has_ended() {
                true => 0,
                false => end(n).saturating_sub(lane.at) / GROUP_BITS,
            };
            let least = self.0.iter().enumerate().map(groups).min().unwrap_or(0);
            if least == 0 {
                break;
            }
            lockstep::decode(block, &mut self.0, least);
        }
        // the last lane goes on for a while: where the block ends is not known
        for (n, lane) in self.0.iter_mut().enumerate() {
            let end = if n + 1 == LANES { end(n) + span / 2 } else { end(n) };
            while lane.at < end && !lane.has_ended() {
                let mut groups = ((end - lane.at) / GROUP_BITS).max(1);
                if n > 0 && lane.has_room_for_marks() {
                    lane.mark();
                    groups = 1;
                }
                lockstep::decode(block, std::array::from_mut(lane), groups);
            }
        }
    }

    /// Appends what the lanes have decoded from `at` on, as far as one symbol after the other leads to a mark of each.
    /// Returns the place after it, and whether it is that after the end of the block.
    fn append(&self, block: &Block<'_>, mut at: usize, out: &mut Output<'_>) -> Option<(usize, bool)> {
        for lane in &self.0 {
            let Some((first, last)) = lane.marked() else { break };
            if first.saturating_sub(at) > LONGEST_GAP {
                break;
            }
            while !lane.append_from(at, out)? {
                if at > last {
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
