//! The bit planes of a block: the stream has them one after the other, the highest first.
//!
//! A plane begins with one bit for each coefficient that is known to be significant, those before the first `known`.
//! Of the others come, in turn, a bit that says whether there is any one among them, and bits up to and including the
//! next one. The last coefficient's bit is left out: it is 1 if it is reached.

use super::bits::Window;

/// Coefficients that a word has bits of.
pub(super) const WORD: usize = 64;

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

/// Reads the planes of a block of `N` coefficients, from bit `at` on.
#[inline(always)]
pub(super) fn read<const N: usize>(window: Window<'_>, at: usize, extent: Extent, planes: &mut Planes) -> Read {
    let (mut plane, mut place) = zeros::<N>(window, at, extent, planes);
    let top = plane;
    if N == 4 {
        (plane, place) = short(window, place, (plane, extent.low), &mut planes[0]);
    }
    while plane > extent.low && place.budget > 0 {
        plane -= 1;
        match N {
            ..=WORD => {
                let mut word = [0];
                place = one::<N, 1>(window, place, &mut word);
                planes[0][plane] = word[0];
            }
            _ => {
                let mut words = [0; 4];
                place = one::<N, 4>(window, place, &mut words);
                planes.iter_mut().zip(words).for_each(|(planes, word)| planes[plane] = word);
            }
        }
    }
    if N >= WORD {
        planes.iter_mut().take(N / WORD).for_each(|planes| clear_unread(planes, plane, extent));
    }
    Read { end: place.at, top, low: plane, known: place.known }
}

/// Reads the first planes as long as they have no ones; of those there is one bit each. Returns the plane above the
/// next.
#[inline(always)]
pub(super) fn zeros<const N: usize>(
    window: Window<'_>,
    at: usize,
    extent: Extent,
    planes: &mut Planes,
) -> (usize, Place) {
    let Extent { budget, top, low } = extent;
    let top = top.min(64);
    // no more than a read has; more are rare
    let count = window.some(at).trailing_zeros().min(57) as usize;
    let count = count.min(top.saturating_sub(low)).min(budget);
    // by eights, since these are stores of a fixed size: what is cleared too much is read later, or needs to be clear
    for planes in planes.iter_mut().take(N / WORD) {
        clear(planes, low & !7);
        let mut cleared = top;
        while cleared + count > top {
            cleared = cleared.saturating_sub(8);
            clear(planes, cleared);
        }
    }
    (top - count, Place { at: at + count, known: 0, budget: budget - count })
}

/// Clears eight planes.
#[inline(always)]
fn clear(planes: &mut [u64; 64], first: usize) {
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

/// Reads planes of blocks of four coefficients, as long as the limit cuts none.
#[inline(always)]
fn short(window: Window<'_>, from: Place, (mut plane, low): (usize, usize), planes: &mut [u64; 64]) -> (usize, Place) {
    let mut place = from;
    while plane > low {
        let mut bits = window.some(place.at);
        // as many as a read has at least
        for _ in 0..57 / LONGEST_SHORT {
            let [word, length, known] = SHORT[place.known & 7][bits as usize & 127];
            let taken = usize::from(length);
            if plane == low || place.budget < taken {
                return (plane, place);
            }
            plane -= 1;
            planes[plane & 63] = u64::from(word);
            bits >>= length & 63;
            place = Place { at: place.at + taken, known: usize::from(known), budget: place.budget - taken };
        }
    }
    (plane, place)
}

/// The longest plane of four coefficients in bits.
const LONGEST_SHORT: usize = 7;

/// The planes of four coefficients, by the number of known ones and the next seven bits: the plane, its length in bits,
/// and the number of known ones behind it.
static SHORT: [[[u8; 3]; 128]; 8] = {
    let mut table = [[[0, 1, 0]; 128]; 8];
    let mut known = 0;
    while known <= 4 {
        let mut bits = 0;
        while bits < 128 {
            table[known][bits] = short_plane(known as u8, bits as u8);
            bits += 1;
        }
        known += 1;
    }
    table
};

const fn short_plane(mut known: u8, bits: u8) -> [u8; 3] {
    let (mut word, mut at) = (bits & ((1 << known) - 1), known);
    while known < 4 {
        at += 1;
        if bits >> (at - 1) & 1 == 0 {
            break;
        }
        while known < 3 {
            at += 1;
            if bits >> (at - 1) & 1 == 1 {
                break;
            }
            known += 1;
        }
        word |= 1 << known;
        known += 1;
    }
    [word, at, known]
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
    /// The bits that a read has at least.
    const MOST: usize = 57;
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
