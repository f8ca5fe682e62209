//! In place of `wide` on processors of other architectures.

use super::block::Block;
use super::planes::Planes;
use super::scalar::Int;
use super::target::Target;

/// The proof that there are wide instructions, which there never is.
#[derive(Clone, Copy, Debug)]
pub enum Wide {}

impl Wide {
    /// Returns `None`.
    #[must_use]
    pub fn detect() -> Option<Self> {
        None
    }

    pub(super) fn decode<I: Int, const N: usize>(self, _: Block<'_>, _: &mut Planes, _: Target<'_>) -> u64 {
        match self {}
    }
}
