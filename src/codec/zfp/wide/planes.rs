//! The bit planes of blocks of 16 and 64 coefficients: the group tests of a plane at once.

use std::arch::x86_64::{
    _bzhi_u64, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi64x, _pdep_u64, _pext_u64,
};

use crate::codec::zfp::bits::Window;
use crate::codec::zfp::planes::{self, Extent, MOST, Place, Planes, Read, Start, WORD};

/// Reads the planes of a block of 64 coefficients, from bit `at` on.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub(super) fn read_words(window: Window<'_>, at: usize, extent: Extent, planes: &mut Planes) -> Read {
    let start = planes::leading(window, at, extent);
    planes::clear::<WORD>(planes, start.plane, extent);
    let (low, place) = read::<WORD>(window, &start, extent.low, |plane, word| planes[0][plane & 63] = word);
    planes::clear_unread(&mut planes[0], low, extent);
    Read { end: place.at, top: start.plane, low, known: place.known }
}

/// Reads the planes of a block of `N` coefficients, 16 or 64, as [`planes::read`] does.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub(super) fn read<const N: usize>(
    window: Window<'_>,
    start: &Start,
    low: usize,
    mut put: impl FnMut(usize, u64),
) -> (usize, Place) {
    let Start { mut plane, place: Place { at, mut known, budget }, bits: mut groups, mut left } = *start;
    // where the group tests of the next plane begin, and the bit behind the last one that may be read
    let (mut tests, limit) = (at + known, at + budget);
    while plane > low && tests - known < limit && known < N {
        plane -= 1;
        let (ones, behind) = ends(groups, 1);
        let end = behind.trailing_zeros();
        // each positive test has its one
        let positive = (_bzhi_u64(ones, end).count_ones() / 2) as usize;
        let behind = tests + end as usize;
        let now = known + end as usize - 1 - positive;
        let stored = window.word(tests - known);
        if end as usize <= left && now < N && behind <= limit {
            let inside = _bzhi_u64(inside(groups), end - 1);
            // the tests are left out, and the bits between them moved together
            put(plane, _bzhi_u64(stored, known as u32) | _pext_u64(groups, inside) << known);
            (tests, known) = (behind + now, now);
        } else if limit <= tests {
            put(plane, _bzhi_u64(stored, (limit + known - tests) as u32));
            return (plane, Place { at: limit, known, budget: 0 });
        } else {
            let (place, found) = long::<N>(window, Place { at: tests, known, budget: limit - tests });
            put(plane, _bzhi_u64(stored, known as u32) | found);
            (tests, known) = (place.at + place.known, place.known);
        }
        (groups, left) = (window.some(tests), MOST);
    }
    let mut at = tests - known;
    while plane > low && at < limit {
        plane -= 1;
        let count = N.min(limit - at);
        put(plane, _bzhi_u64(window.word(at), count as u32));
        at += count;
    }
    (plane, Place { at, known, budget: limit - at })
}

/// Reads the group tests of a plane that are more than a read has, or that come to the last coefficient or to the
/// limit.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn long<const N: usize>(window: Window<'_>, from: Place) -> (Place, u64) {
    let Place { mut at, mut known, mut budget } = from;
    let (mut found, mut is_test) = (0, 1);
    loop {
        let groups = window.some(at);
        let end = (ends(groups, is_test).1.trailing_zeros() - 1).min(MOST as u32);
        let parity = inside(groups) ^ (is_test.wrapping_sub(1));
        let limit = budget.min(end as usize);
        let inside = _bzhi_u64(parity, limit as u32);
        let new = inside.count_ones() as usize;
        if known + new >= N {
            // the bit of the last coefficient is left out
            let last = _pdep_u64(1 << (N - 1 - known), inside).trailing_zeros();
            let bits = _pext_u64(groups, _bzhi_u64(inside, last));
            found |= bits << known | 1 << (N - 1);
            let last = last as usize;
            return (Place { at: at + last, known: N, budget: budget - last }, found);
        }
        found |= _pext_u64(groups, inside) << known;
        known += new;
        (at, budget) = (at + limit, budget - limit);
        if budget == 0 {
            // a run that the limit cuts ends with a one
            let cut = parity >> limit & 1;
            found |= cut << known;
            return (Place { at, known: known + cut as usize, budget }, found);
        }
        if end < MOST as u32 {
            return (Place { at: at + 1, known, budget: budget - 1 }, found);
        }
        is_test = !parity >> MOST & 1;
    }
}

/// Returns the bits of a plane with `first` before them, and a word whose lowest bit is at the test that is negative,
/// which ends the plane, if there is one in the word. `first` is 1 if the bits begin with a test, 0 if not.
///
/// Ones are tests and the ends of runs in turn. So that test is the zero behind the first run of an odd number of ones,
/// if one more one is put before a test.
#[inline]
#[target_feature(enable = "bmi1")]
fn ends(groups: u64, first: u64) -> (u64, u64) {
    const ODD: u64 = u64::MAX / 3 * 2;
    let ones = groups << 1 | first;
    // the difference carries through each run of ones
    let behind = (ones << 1 | ODD).wrapping_sub(ones) ^ ODD;
    (ones, behind & !ones)
}

/// Returns the bits of a plane that are no tests, if the first one is: those behind an odd number of ones.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn inside(groups: u64) -> u64 {
    let parity = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(groups.cast_signed()), _mm_set1_epi64x(-1));
    _mm_cvtsi128_si64(parity).cast_unsigned() << 1
}
