//! Whether a call may wait.

/// Whether a call may wait for a disk or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// It may not: it answers from memory or fails with [`SourceError::WouldBlock`](super::SourceError::WouldBlock).
    No,
    /// It may wait.
    Yes,
}
