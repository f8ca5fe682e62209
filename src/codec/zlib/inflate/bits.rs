//! Bits of deflate data: the first one is the lowest of the first byte (RFC 1951, 3.1.1). Places are counted in bits.

/// Bits that a word has at least.
pub(crate) const WORD_BITS: usize = 57;

/// Returns the bits from `at` on, the first one lowest. `None` near the end of the data.
#[inline(always)]
pub(crate) fn word(stored: &[u8], at: usize) -> Option<u64> {
    let bytes = stored.get(at / 8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes) >> (at % 8))
}

/// Like [`word`], with zeros behind the end of the data.
#[inline]
pub(crate) fn word_or_zeros(stored: &[u8], at: usize) -> u64 {
    word(stored, at).unwrap_or_else(|| {
        let mut bytes = [0; 8];
        let rest = stored.get(at / 8..).unwrap_or_default();
        bytes[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(bytes) >> (at % 8)
    })
}

/// Returns the place where the next whole byte begins.
pub(crate) fn align(at: usize) -> usize {
    at.next_multiple_of(8)
}

/// Returns bytes from a place on that is that of a whole byte.
pub(crate) fn bytes_at(stored: &[u8], at: usize, bytes: usize) -> Option<&[u8]> {
    stored.get(at / 8..)?.get(..bytes)
}

/// Returns how many bits there are from a place on.
pub(crate) fn bits_from(stored: &[u8], at: usize) -> usize {
    (8 * stored.len()).saturating_sub(at)
}

/// Whether a place lies behind the end of the data.
pub(crate) fn is_beyond(stored: &[u8], at: usize) -> bool {
    at > 8 * stored.len()
}
