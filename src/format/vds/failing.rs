//! A level that is there by its name but cannot be read: every brick says why.

use std::sync::Arc;

use crate::format::{Array, Census, FormatError};
use crate::source::{Source, Wait};
use crate::volume::{ArrayInfo, Brick, Dims};

/// The level.
pub(super) struct Failing {
    pub info: ArrayInfo,
    pub source: Arc<dyn Source>,
    pub why: FormatError,
}

impl Array for Failing {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, _at: &Dims, _wait: Wait) -> Result<Brick, FormatError> {
        Err(self.why.clone())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}
