//! `lodN.float32.npy`: the values of a scaled integer layer as float32, behind a NumPy header.

use std::sync::Arc;

use super::{ArrayFile, Content, LayerRef, LevelFile, ShownArray, npy};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view.
pub struct Float32Npy;

impl LevelFile for Float32Npy {
    fn suffix(&self) -> &'static str {
        ".float32.npy"
    }

    fn applies(&self, info: &ArrayInfo) -> bool {
        info.dtype.is_integer() && info.scaling.is_some()
    }

    fn shows(&self, info: &ArrayInfo) -> Option<ShownArray> {
        Some(ShownArray { shape: info.shape(), dtype: Dtype::Float32 })
    }

    fn content(&self, place: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let array = Arc::clone(&place.layer().levels[lod]);
        let header = npy::header(Dtype::Float32, &array.info().shape());
        Ok(Content::Array(match array.info().scaling {
            Some(scaling) => ArrayFile::as_float32(header, array, scaling),
            None => ArrayFile::stored(header, array),
        }))
    }
}
