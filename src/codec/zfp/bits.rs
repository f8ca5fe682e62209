//! Reading bits of a stream. The first bit of a byte is its lowest.

/// Bytes of a window: the longest block with up to 7 bits before it, the 15 bytes that one read may take more, and some.
const WINDOW: usize = 2112;
/// The longest block in bits, of reversible float64 in four dimensions. A header may give blocks more; they are unused.
pub(super) const LONGEST_BLOCK: u64 = 1 + 1 + 11 + 6 + 255 + 256 * 64;

const _: () = assert!(LONGEST_BLOCK / 8 + 1 + 16 < WINDOW as u64);

/// The bytes from the one on in which a block begins.
#[derive(Clone, Copy)]
pub(super) struct Window<'a>(&'a [u8; WINDOW]);

impl Window<'_> {
    /// Returns the bits from bit `at` on: 57 of them at least, zeros above.
    #[inline(always)]
    pub(super) fn some(self, at: usize) -> u64 {
        // no block reaches the end of its window
        let bytes = self.0.get(at >> 3..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes) >> (at & 7))
    }

    /// Returns the 64 bits from bit `at` on.
    #[inline(always)]
    pub(super) fn word(self, at: usize) -> u64 {
        let Some(bytes) = self.0.get(at >> 3..).and_then(<[u8]>::first_chunk::<15>) else { return 0 };
        let (low, high) = (bytes.first_chunk(), bytes.last_chunk());
        // a shift of 128 bits would be a single instruction, which takes longer
        low.map_or(0, |low| u64::from_le_bytes(*low) >> (at & 7))
            | high.map_or(0, |high| u64::from_le_bytes(*high) >> (at & 7) << 56)
    }
}

/// A stream, with zeros behind its end.
pub(super) struct Stream<'a> {
    bytes: &'a [u8],
    /// Where the copy of the end begins.
    tail_at: usize,
    /// The last bytes, fewer than a window, and a window of zeros behind them.
    tail: [u8; 2 * WINDOW],
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let tail_at = bytes.len().saturating_sub(WINDOW - 1);
        let mut tail = [0; 2 * WINDOW];
        tail.iter_mut().zip(bytes.get(tail_at..).unwrap_or_default()).for_each(|(to, byte)| *to = *byte);
        Self { bytes, tail_at, tail }
    }

    /// Returns the window of a block that begins at bit `at`, which is not beyond the end of the stream; its first bit
    /// is bit `at & 7` of the window.
    #[inline(always)]
    pub(super) fn window(&self, at: u64) -> Option<Window<'_>> {
        let byte = usize::try_from(at >> 3).ok()?;
        let whole = self.bytes.get(byte..).and_then(<[u8]>::first_chunk);
        whole.or_else(|| self.tail.get(byte.checked_sub(self.tail_at)?..)?.first_chunk()).map(Window)
    }
}
