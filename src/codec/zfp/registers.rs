//! Reads and writes of registers, for samples and words whose length the types tell.
#![allow(unsafe_code)]

use std::arch::x86_64::{__m128i, __m256i, _mm_storeu_si128, _mm256_loadu_si256};

/// Writes the four samples of a row to the first bytes of `to`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(to: Option<&mut [u8]>, samples: __m128i) {
    if let Some(to) = to.and_then(<[u8]>::first_chunk_mut::<16>) {
        // SAFETY: the array has the 16 bytes that are written.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), samples) }
    }
}

/// Returns 32 bytes in a register.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(from: &[u8; 32]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Reads a word.
#[inline(always)]
pub(super) fn word(from: &u64) -> u64 {
    // SAFETY: a reference can be read. It is volatile since the compiler would read several words at once, and such a
    // read of words that were just written waits until they are in memory.
    unsafe { std::ptr::read_volatile(from) }
}
