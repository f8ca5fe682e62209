//! `lodN.raw`: the samples in C order, little-endian, without a header.

use std::sync::Arc;

use super::{ArrayFile, Content, LevelFile, Place};
use crate::format::FormatError;

/// The view.
pub struct Raw;

impl LevelFile for Raw {
    fn suffix(&self) -> &'static str {
        ".raw"
    }

    fn shows_array(&self) -> bool {
        true
    }

    fn content(&self, place: Place<'_>, lod: usize) -> Result<Content, FormatError> {
        Ok(Content::Array(ArrayFile::stored(Vec::new(), Arc::clone(&place.layer().levels[lod]))))
    }
}
