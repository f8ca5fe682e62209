//! The decoded bytes of a stream.

use super::symbol::Match;

/// The output, and how much of it is filled.
pub(crate) struct Output<'a> {
    bytes: &'a mut [u8],
    filled: usize,
    matches: usize,
}

impl<'a> Output<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, filled: 0, matches: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// The number of matches.
    pub(crate) fn matches(&self) -> usize {
        self.matches
    }

    /// Appends bytes. `None` if there is no room for them.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Option<()> {
        let to = self.bytes.get_mut(self.filled..)?.get_mut(..bytes.len())?;
        to.copy_from_slice(bytes);
        self.filled += bytes.len();
        Some(())
    }

    /// Appends what a match repeats. `None` if that begins before the output, or there is no room for it.
    pub(crate) fn repeat(&mut self, Match { length, distance }: Match) -> Option<()> {
        let (length, distance) = (usize::from(length), usize::from(distance));
        let from = self.filled.checked_sub(distance)?;
        let end = self.filled + length;
        let bytes = self.bytes.get_mut(..end).filter(|_| distance > 0)?;
        let mut at = self.filled;
        while at < end {
            // a match may repeat its own bytes: from each copy on there are more to copy
            let run = (at - from).min(end - at);
            bytes.copy_within(from..from + run, at);
            at += run;
        }
        self.filled = end;
        self.matches += 1;
        Some(())
    }
}
