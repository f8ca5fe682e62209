//! How long the pieces of bodies may be.
//!
//! Long pieces are fast, but a client that takes nothing holds those that wait for it. So long ones come out of a budget
//! that all responses share; when it is used up pieces are short, and none is read ahead of its client.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The length of a long piece in bytes.
pub(crate) const LONG: usize = 1 << 20;
/// The length of a short piece in bytes, which each response may have in memory whatever the others do. What it keeps
/// besides is taken from that.
pub(crate) const SHORT: usize = 48 << 10;
/// Bytes of long pieces in memory, all responses together.
const TOTAL: usize = 16 << 20;
/// The unit in which the budget is counted: a semaphore has 32 bits.
const UNIT: usize = 1 << 10;

/// The budget of long pieces.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// A part of the budget, which comes back when it is dropped; `None` is a short piece.
pub(crate) type Share = Option<OwnedSemaphorePermit>;

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOTAL / UNIT)))
    }
}

impl Budget {
    /// Returns the longest piece that may be read now, at most `wanted` bytes. The response keeps `kept` bytes besides.
    pub(crate) fn piece(&self, wanted: u64, kept: usize) -> (usize, Share) {
        match self.long_piece(wanted) {
            Some((length, share)) => (length, Some(share)),
            None => (usize::try_from(wanted).unwrap_or(SHORT).min(SHORT.saturating_sub(kept).max(UNIT)), None),
        }
    }

    /// Returns a piece that may be read ahead of the client, if the budget allows one.
    pub(crate) fn long_piece(&self, wanted: u64) -> Option<(usize, OwnedSemaphorePermit)> {
        let length = usize::try_from(wanted).unwrap_or(LONG).min(LONG);
        let units = u32::try_from(length.div_ceil(UNIT)).ok()?;
        let share = Arc::clone(&self.0).try_acquire_many_owned(units).ok()?;
        Some((length, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_when_the_budget_is_used_up() {
        let budget = Budget::default();
        assert_eq!(budget.piece(10, 0).0, 10);
        let mut held: Vec<(usize, Share)> = (0..TOTAL / LONG).map(|_| budget.piece(u64::MAX, 0)).collect();
        assert!(held.iter().all(|(length, share)| *length == LONG && share.is_some()));
        let (length, share) = budget.piece(u64::MAX, 0);
        assert!(length == SHORT && share.is_none() && budget.long_piece(LONG as u64).is_none());
        assert_eq!(budget.piece(u64::MAX, 16 << 10).0, SHORT - (16 << 10));
        held.pop();
        assert_eq!(budget.piece(u64::MAX, 0).0, LONG);
    }
}
