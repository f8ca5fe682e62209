//! The bit planes of a block: the stream has them one after the other, the highest first.
//!
//! A plane begins with one bit for each coefficient that is known to be significant, those before the first `known`.
//! Of the others come, in turn, a bit that says whether there is any one among them, and bits up to and including the
//! next one. The last coefficient's bit is left out: it is 1 if it is reached.

use super::bits::Window;

/// Coefficients that a word has bits of.
pub(super) const WORD: usize = 64;

/// The bits that a read has at least.
pub(super) const MOST: usize = 57;

/// The bit planes of a block, plane 0 that of the units. For each 64 coefficients there is one list of words, one for
/// each plane. Of 64 coefficients and more, planes above those that were read are 0, and those below down to a multiple
/// of eight.
pub(super) type Planes = [[u64; 64]; 4];

/// Which planes a block has.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// The bits that the planes may take.
    pub budget: usize,
    /// The plane above the highest.
    pub top: usize,
    /// The lowest plane that may be stored.
    pub low: usize,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// The bit behind the planes.
    pub end: usize,
    /// The plane above the highest that may have ones.
    pub top: usize,
    /// The lowest plane that was read.
    pub low: usize,
    /// How many coefficients may have ones, the first ones of the stream's order.
    pub known: usize,
}

/// The place in a stream of planes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The bit to read next.
    pub at: usize,
    /// How many coefficients may have ones from here on.
    pub known: usize,
    /// How many bits may still be read.
    pub budget: usize,
}

/// Reads the planes of a block of 64 or 256 coefficients, from bit `at` on.
#[inline(always)]
pub(super) fn read_words<const N: usize>(window: Window<'_>, at: usize, extent: Extent, planes: &mut Planes) -> Read {
    let start = leading(window, at, extent);
    clear::<N>(planes, start.plane, extent);
    let (low, place) = match N {
        WORD => read::<N, 1>(window, &start, extent.low, &mut |plane, [word]| planes[0][plane & 63] = word),
        _ => read::<N, 4>(window, &start, extent.low, &mut |plane, words| {
            planes.iter_mut().zip(words).for_each(|(planes, word)| planes[plane & 63] = word);
        }),
    };
    planes.iter_mut().take(N / WORD).for_each(|planes| clear_unread(planes, low, extent));
    Read { end: place.at, top: start.plane, low, known: place.known }
}

/// Reads the planes of a block of `N` coefficients from `start` on, and hands them to `put` in `W` words. Returns the
/// lowest plane, and the place behind it.
#[inline(always)]
pub(super) fn read<const N: usize, const W: usize>(
    window: Window<'_>,
    start: &Start,
    low: usize,
    put: &mut impl FnMut(usize, [u64; W]),
) -> (usize, Place) {
    let Start { mut plane, mut place, .. } = *start;
    while plane > low && place.budget > 0 {
        plane -= 1;
        let mut words = [0; W];
        place = one::<N, W>(window, place, &mut words);
        put(plane, words);
    }
    (plane, place)
}

/// Where the first plane with ones begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// The plane above it.
    pub plane: usize,
    pub place: Place,
    /// The bits from there on, which need not be read again.
    pub bits: u64,
    /// How many bits these are at least.
    pub left: usize,
}

/// Skips the first planes as long as they have no ones; of those there is one bit each.
#[inline(always)]
pub(super) fn leading(window: Window<'_>, at: usize, extent: Extent) -> Start {
    let Extent { budget, top, low } = extent;
    let bits = window.some(at);
    // no more than a read has; more are rare
    let count = (bits.trailing_zeros() as usize).min(MOST).min(top.saturating_sub(low)).min(budget);
    let place = Place { at: at + count, known: 0, budget: budget - count };
    Start { plane: top - count, place, bits: bits >> count, left: MOST - count }
}

/// Clears the planes from `from` on, above which there are none, and the lowest that a block may have.
#[inline(always)]
pub(super) fn clear<const N: usize>(planes: &mut Planes, from: usize, extent: Extent) {
    // by eights, since these are stores of a fixed size: what is cleared too much is read later, or needs to be clear
    for planes in planes.iter_mut().take(N / WORD) {
        clear_eight(planes, extent.low & !7);
        let mut cleared = extent.top;
        while cleared > from {
            cleared = cleared.saturating_sub(8);
            clear_eight(planes, cleared);
        }
    }
}

/// Clears eight planes.
#[inline(always)]
fn clear_eight(planes: &mut [u64; 64], first: usize) {
    if let Some(planes) = planes.get_mut(first..).and_then(<[u64]>::first_chunk_mut::<8>) {
        *planes = [0; 8];
    }
}

/// Clears the planes below `low` that are transposed with it. Those below the lowest that a block may have are clear.
#[inline(always)]
pub(super) fn clear_unread(planes: &mut [u64; 64], low: usize, extent: Extent) {
    if low > extent.low
        && let Some(unread) = planes.get_mut(low & !7..low)
    {
        unread.fill(0);
    }
}

/// Reads one plane of `N` coefficients into `W` words.
#[inline(always)]
pub(super) fn one<const N: usize, const W: usize>(window: Window<'_>, from: Place, words: &mut [u64; W]) -> Place {
    let Place { mut at, known, budget } = from;
    let stored = known.min(budget);
    for (word, first) in words.iter_mut().zip((0..).step_by(WORD)) {
        let count = stored.saturating_sub(first).min(WORD);
        *word = if count == 0 { 0 } else { window.word(at) << (WORD - count) >> (WORD - count) };
        at += count;
    }
    groups::<N, W>(window, Place { at, known, budget: budget - stored }, words)
}

/// Reads the part of a plane that is about the coefficients from `known` on.
#[inline(always)]
pub(super) fn groups<const N: usize, const W: usize>(window: Window<'_>, from: Place, words: &mut [u64; W]) -> Place {
    let Place { mut at, mut known, mut budget } = from;
    let (mut bits, mut left) = (window.some(at), MOST);
    while known < N && budget > 0 {
        if left == 0 {
            (bits, left) = (window.some(at), MOST);
        }
        budget -= 1;
        at += 1;
        if bits & 1 == 0 {
            break;
        }
        bits >>= 1;
        left -= 1;
        loop {
            let most = (N - 1 - known).min(budget);
            let zeros = (bits | 1 << left).trailing_zeros() as usize;
            if zeros >= most {
                // the last coefficient is reached, or no bit is left for the one
                (at, known, budget) = (at + most, known + most, budget - most);
                (bits, left) = (bits >> most, left - most);
                break;
            }
            let step = zeros + usize::from(zeros < left);
            (at, known, budget) = (at + step, known + zeros, budget - step);
            if zeros < left {
                (bits, left) = (bits >> step, left - step);
                break;
            }
            (bits, left) = (window.some(at), MOST);
        }
        if let Some(word) = words.get_mut(known / WORD) {
            *word |= 1 << (known % WORD);
        }
        known += 1;
    }
    Place { at, known, budget }
}
