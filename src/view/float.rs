//! `lodN.float32.npy`: the values of a layer of scaled integers as float32, behind a NumPy header. There is none where
//! the values are the stored numbers.

use std::sync::Arc;

use super::array_file::ArrayFile;
use super::content::{Content, ShownArray};
use super::level_file::LevelFile;
use super::npy;
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view of one level.
pub(crate) struct Float32Npy;

impl LevelFile for Float32Npy {
    fn name(&self) -> Option<&'static str> {
        Some("float32")
    }

    fn suffix(&self) -> &'static str {
        ".float32.npy"
    }

    fn applies_to(&self, info: &ArrayInfo) -> bool {
        info.dtype.is_integer() && info.scaling.is_some_and(|scaling| scaling.says_something())
    }

    fn shown_array(&self, info: &ArrayInfo) -> Option<ShownArray> {
        Some(ShownArray { shape: info.shape(), dtype: Dtype::Float32 })
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let array = Arc::clone(&layer.levels()[lod]);
        let header = npy::header(Dtype::Float32, &array.info().shape());
        Ok(Content::Array(match array.info().scaling {
            Some(scaling) => ArrayFile::float32(header, array, scaling),
            None => ArrayFile::stored(header, array),
        }))
    }
}
