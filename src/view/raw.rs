//! `lodN.raw`: the samples in C order, little-endian, without a header.

use std::sync::Arc;

use super::array_file::ArrayFile;
use super::content::{Content, ShownArray};
use super::level_file::LevelFile;
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::ArrayInfo;

/// The view of one level.
pub(crate) struct Raw;

impl LevelFile for Raw {
    fn name(&self) -> Option<&'static str> {
        Some("raw")
    }

    fn suffix(&self) -> &'static str {
        ".raw"
    }

    fn shown_array(&self, info: &ArrayInfo) -> Option<ShownArray> {
        Some(ShownArray::stored(info))
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        Ok(Content::Array(ArrayFile::stored(Vec::new(), Arc::clone(&layer.levels()[lod]))))
    }
}
