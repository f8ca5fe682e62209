//! `lodN.raw`: the samples in C order, little-endian, without a header.

use std::sync::Arc;

use super::{ArrayFile, Content, LayerRef, LevelFile, ShownArray};
use crate::format::FormatError;
use crate::volume::ArrayInfo;

/// The view.
pub struct Raw;

impl LevelFile for Raw {
    fn suffix(&self) -> &'static str {
        ".raw"
    }

    fn shows(&self, info: &ArrayInfo) -> Option<ShownArray> {
        Some(ShownArray::stored(info))
    }

    fn content(&self, place: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        Ok(Content::Array(ArrayFile::stored(Vec::new(), Arc::clone(&place.layer().levels[lod]))))
    }
}
