//! Decodes a group of symbols in each of several lanes in turn, so that the processor works for all of them while each
//! waits for its table. This loop takes most of the time of decoding.

use std::ops::Range;

use super::bits::{WORD_BITS, word};
use super::block::{Block, GROUP};
use super::lane::Lane;
use super::prefix_code::{NOT_LITERAL, literal_length};

/// The most bits of a group of literals: codes that are longer are not in the table.
pub(crate) const GROUP_BITS: usize = GROUP * 11;

const _: () = assert!(GROUP_BITS <= WORD_BITS);

/// Decodes `groups` groups in each of the lanes. Ends before if one of them has ended.
pub(crate) fn decode<const N: usize>(block: &Block<'_>, lanes: &mut [Lane; N], groups: usize) {
    let mut places = lanes.each_ref().map(|lane| lane.at);
    let before = lanes.each_ref().map(|lane| lane.groups);
    let mut group = 0;
    let ended = loop {
        let mut bytes = lanes.each_mut().map(|lane| lane.bytes.get_mut(lane.groups..).unwrap_or_default());
        let (stopped, first) = literals(block, &mut places, &mut bytes, group..groups);
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

/// Decodes groups of literals in each of the lanes. Returns the first group that is none, and its lane.
#[inline(never)]
fn literals<const N: usize>(
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
