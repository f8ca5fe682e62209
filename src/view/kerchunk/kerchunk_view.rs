//! The view of one level.

use std::sync::Arc;

use super::super::content::Content;
use super::super::level_file::LevelFile;
use super::super::virtual_file::LayerRef;
use super::chunks::Chunks;
use super::reference_file::ReferenceFile;
use crate::format::FormatError;
use crate::volume::ArrayInfo;

/// The view of one level.
pub(crate) struct Kerchunk;

impl LevelFile for Kerchunk {
    fn name(&self) -> Option<&'static str> {
        Some("kerchunk")
    }

    fn suffix(&self) -> &'static str {
        ".zarr.json"
    }

    fn applies_to(&self, info: &ArrayInfo) -> bool {
        Chunks::of(info).is_some_and(|chunks| chunks.are_useful())
    }

    fn why_hidden(&self, info: &ArrayInfo) -> Option<&'static str> {
        let has_chunks = Chunks::of(info).is_some();
        Some(if has_chunks {
            "its planes are larger than 1 GiB and cannot be divided evenly"
        } else {
            "it has no samples"
        })
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let array = Arc::clone(&layer.levels()[lod]);
        let chunks =
            Chunks::of(array.info()).ok_or_else(|| FormatError::Unsupported(format!("LOD {lod} has no samples")))?;
        Ok(Content::Computed(Arc::new(ReferenceFile::new(array, chunks))))
    }
}
