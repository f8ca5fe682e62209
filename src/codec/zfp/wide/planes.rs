//! The bit planes of blocks of 16 and 64 coefficients: the group tests of a plane at once.

use std::arch::x86_64::{
    _bzhi_u64, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi64x, _pdep_u64, _pext_u64,
};

use crate::codec::zfp::bits::Window;
use crate::codec::zfp::planes::{self, Extent, Place, Planes, Read};

/// Reads the planes of a block of up to 64 coefficients.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
pub(super) fn read<const N: usize>(window: Window<'_>, at: usize, extent: Extent, planes: &mut Planes) -> Read {
    let (mut plane, Place { at, mut known, mut budget }) = planes::zeros::<N>(window, at, extent, planes);
    let (top, low, [planes, ..]) = (plane, extent.low, planes);
    // where the group tests of the next plane begin
    let mut tests = at;
    while plane > low && budget > 0 && known < N {
        plane -= 1;
        let at = tests - known;
        let groups = window.some(tests);
        let (ones, behind) = ends(groups, 1);
        let end = behind.trailing_zeros();
        // each positive test has its one
        let positive = (_bzhi_u64(ones, end).count_ones() / 2) as usize;
        let end = end as usize - 1;
        let now = known + end - positive;
        let taken = known + end + 1;
        if end < 57 && now < N && taken <= budget {
            let inside = _bzhi_u64(inside(groups), end as u32);
            // the tests are left out, and the bits between them moved together
            planes[plane] = _bzhi_u64(window.word(at), known as u32) | _pext_u64(groups, inside) << known;
            tests = tests + end + 1 + now;
            known = now;
            budget -= taken;
            continue;
        }
        let place = match long::<N>(window, Place { at: tests, known, budget: 0 }) {
            (place, found) if place.at - at <= budget => {
                planes[plane] = _bzhi_u64(window.word(at), known as u32) | found;
                Place { budget: budget - (place.at - at), ..place }
            }
            _ => {
                let mut word = [0];
                let place = planes::one::<N, 1>(window, Place { at, known, budget }, &mut word);
                planes[plane] = word[0];
                place
            }
        };
        (known, budget) = (place.known, place.budget);
        tests = place.at + known;
    }
    let mut at = tests - known;
    while plane > low && budget > 0 {
        plane -= 1;
        let count = N.min(budget);
        planes[plane] = _bzhi_u64(window.word(at), count as u32);
        at += count;
        budget -= count;
    }
    planes::clear_unread(planes, plane, extent);
    Read { end: at, top, low: plane, known }
}

/// Reads the group tests of a plane that are more than a read has, or that come to the last coefficient, without a
/// limit.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn long<const N: usize>(window: Window<'_>, mut place: Place) -> (Place, u64) {
    const MOST: u32 = 57;
    let (mut found, mut is_test) = (0, 1);
    loop {
        let groups = window.some(place.at);
        let end = (ends(groups, is_test).1.trailing_zeros() - 1).min(MOST);
        let parity = inside(groups) ^ (is_test.wrapping_sub(1));
        let inside = _bzhi_u64(parity, end);
        let new = inside.count_ones() as usize;
        if place.known + new >= N {
            // the bit of the last coefficient is left out
            let last = _pdep_u64(1 << (N - 1 - place.known), inside).trailing_zeros();
            let bits = _pext_u64(groups, _bzhi_u64(inside, last));
            found |= bits << place.known | 1 << (N - 1);
            return (Place { at: place.at + last as usize, known: N, ..place }, found);
        }
        found |= _pext_u64(groups, inside) << place.known;
        place.known += new;
        if end < MOST {
            return (Place { at: place.at + end as usize + 1, ..place }, found);
        }
        place.at += MOST as usize;
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
