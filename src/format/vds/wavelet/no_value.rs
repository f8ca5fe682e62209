//! The samples that are NoValue: a run-length coded bit mask.

use super::error::{ChunkPart, WaveletError};

/// Rows of the mask are padded to a multiple of this many bits.
const PADDED: usize = 32;

/// The decoder of the mask.
#[derive(Clone, Copy)]
pub(super) struct NoValueRuns<'a> {
    codes: &'a [u8],
    /// Bits that are left of the current run.
    left: usize,
    /// Whether the bits of the current run are set.
    set: bool,
    /// The value of samples whose bit is set.
    value: f32,
}

impl<'a> NoValueRuns<'a> {
    /// Creates a decoder of the coded mask; samples whose bit is set become `value`.
    pub(crate) fn new(codes: &'a [u8], value: f32) -> Self {
        Self { codes, left: 0, set: false, value }
    }

    /// Writes NoValue into the next row.
    pub(crate) fn apply(&mut self, row: &mut [f32]) -> Result<(), WaveletError> {
        let bits = row.len().next_multiple_of(PADDED);
        let mut at = 0;
        while at < bits {
            if self.left == 0 {
                self.next_run()?;
            }
            let end = at + self.left.min(bits - at);
            if self.set {
                let end = end.min(row.len());
                row[at.min(end)..end].fill(self.value);
            }
            self.left -= end - at;
            at = end;
        }
        Ok(())
    }

    /// Reads a run. Its first byte has the bit, the number of further bytes (2 bits) and the low 5 bits of the length;
    /// each further byte has 8 more bits of the length.
    fn next_run(&mut self) -> Result<(), WaveletError> {
        let past = WaveletError::PastEnd(ChunkPart::NoValue);
        let (first, rest) = self.codes.split_first().ok_or(past.clone())?;
        let (more, rest) = rest.split_at_checked(usize::from(first >> 1 & 3)).ok_or(past)?;
        self.set = first & 1 != 0;
        self.left =
            more.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)) << 5 | usize::from(first >> 3);
        self.codes = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_over_rows_and_padding() {
        // 3 clear, 31 set (over the padding), 100000 clear, in one, two and four bytes
        let run = |set: u32, more: u32, length: u32| ((length & 31) << 3 | more << 1 | set, length >> 5);
        let mut codes = Vec::new();
        for (first, rest) in [run(0, 0, 3), run(1, 1, 31), run(0, 3, 100_000)] {
            codes.push(first as u8);
            codes.extend(&rest.to_le_bytes()[..(first >> 1 & 3) as usize]);
        }
        assert_eq!(codes.len(), 1 + 2 + 4);
        let mut runs = NoValueRuns::new(&codes, 9.0);
        let mut row = [1.0; 5];
        runs.apply(&mut row).unwrap();
        assert_eq!(row, [1.0, 1.0, 1.0, 9.0, 9.0]);
        let mut row = [1.0; 5];
        runs.apply(&mut row).unwrap();
        assert_eq!(row, [9.0, 9.0, 1.0, 1.0, 1.0]);
        // 100034 bits are 3126 rows of 32, and a bit more
        for _ in 2..3126 {
            runs.apply(&mut row).unwrap();
        }
        assert_eq!(runs.apply(&mut row), Err(WaveletError::PastEnd(ChunkPart::NoValue)));
    }
}
