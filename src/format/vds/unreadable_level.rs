//! A stored level that cannot be opened: each of its bricks gives the error.

use std::sync::Arc;

use crate::format::{Array, Census, FormatError};
use crate::source::{Blocking, Source};
use crate::volume::{ArrayInfo, Brick, BrickSet, Dims};

/// A level that exists by its name, but whose tables are damaged or unknown.
pub(super) struct UnreadableLevel {
    pub info: ArrayInfo,
    pub source: Arc<dyn Source>,
    pub why: FormatError,
}

impl Array for UnreadableLevel {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, _at: &Dims, _wait: Blocking) -> Result<Brick, FormatError> {
        Err(self.why.clone())
    }

    fn visit_stored(&self, _visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        Err(self.why.clone())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}
