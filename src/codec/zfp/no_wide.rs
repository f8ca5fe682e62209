//! In place of `wide` on processors of other architectures.

use super::job::Job;
use super::scalar::Int;

/// The proof that there are wide instructions, which there never is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wide {}

impl Wide {
    /// Returns `None`.
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    pub(super) fn run<I: Int, const N: usize>(self, _: &Job<'_>, _: &mut [u8]) -> u64 {
        match self {}
    }
}
