//! A brick in memory, and the key under which the cache holds it.

use std::sync::Arc;

use crate::format::FormatError;
use crate::memory::Buffer;
use crate::volume::{ArrayId, Layout};

/// The samples of one brick, decoded.
pub(crate) struct DecodedBrick {
    /// The bytes, little-endian.
    pub bytes: Arc<Buffer>,
    /// The region and the strides of the samples.
    pub layout: Layout,
}

impl DecodedBrick {
    /// Returns the same bytes under another layout.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Self { bytes: Arc::clone(&self.bytes), layout }
    }
}

/// An array, and the number of a brick in its grid (C order of the array's own axes).
pub(crate) type BrickKey = (ArrayId, u64);

/// A decoded brick, or the reason why there is none: the same for all readers that waited for it.
pub(crate) type DecodeResult = Result<Arc<DecodedBrick>, FormatError>;
