//! Arrays as they are: `lodN.raw`, `lodN.npy`, the values as `lodN.float32.npy`, and `lodN.by-AXIS.npy` with permuted axes.
//! The header is NumPy's format version 1.0 (`numpy.lib.format`).

use std::sync::Arc;

use super::file::{ArrayFile, Content, ShownArray};
use super::names::axis_names;
use super::virtual_file::{Entry, LayerRef, LevelFile, View};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, AxisPermutation, Dims, Dtype};

/// The header is padded to a multiple of this, so that the samples are aligned in a map of the file.
const ALIGNMENT: usize = 64;

/// The view of one level.
pub(crate) struct Npy;

impl LevelFile for Npy {
    fn name(&self) -> Option<&'static str> {
        Some("npy")
    }

    fn suffix(&self) -> &'static str {
        ".npy"
    }

    fn shown_array(&self, info: &ArrayInfo) -> Option<ShownArray> {
        Some(ShownArray::stored(info))
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let array = Arc::clone(&layer.levels()[lod]);
        let header = header(array.info().dtype, &array.info().shape());
        Ok(Content::Array(ArrayFile::stored(header, array)))
    }
}

/// Returns the header of a C-ordered, little-endian array; `shape` is slowest axis first.
pub(crate) fn header(dtype: Dtype, shape: &Dims) -> Vec<u8> {
    let descr = descr(dtype);
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    // a tuple with one element needs a comma
    let comma = if sizes.len() == 1 { "," } else { "" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let before = b"\x93NUMPY\x01\x00".len() + 2;
    let total = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    let mut header = Vec::with_capacity(total);
    header.extend_from_slice(b"\x93NUMPY\x01\x00");
    // fits 16 bits: the text has at most seven numbers of twenty digits
    header.extend_from_slice(&((total - before) as u16).to_le_bytes());
    header.extend_from_slice(text.as_bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    header
}

/// Returns NumPy's text for the type of little-endian samples.
pub(crate) fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Int8 => "|i1",
        Dtype::UInt8 => "|u1",
        Dtype::Int16 => "<i2",
        Dtype::UInt16 => "<u2",
        Dtype::Int32 => "<i4",
        Dtype::UInt32 => "<u4",
        Dtype::Int64 => "<i8",
        Dtype::UInt64 => "<u8",
        Dtype::Float32 => "<f4",
        Dtype::Float64 => "<f8",
    }
}

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
        let header = header(Dtype::Float32, &array.info().shape());
        Ok(Content::Array(match array.info().scaling {
            Some(scaling) => ArrayFile::float32(header, array, scaling),
            None => ArrayFile::stored(header, array),
        }))
    }
}

/// The view of all levels. An array has one file for each axis except the first, which comes first in `lodN.npy`
/// already.
pub(crate) struct ByAxis;

impl ByAxis {
    /// Returns the number of files of one level.
    fn files_per_level(layer: LayerRef<'_>) -> u64 {
        layer.levels().first().map_or(0, |level| level.info().shape().len() as u64 - 1)
    }

    /// Returns the level of a node, and the axis that comes first in its file.
    fn level_and_axis(layer: LayerRef<'_>, node: u64) -> Option<(usize, usize)> {
        let files_per_level = Self::files_per_level(layer);
        let level = usize::try_from(node.checked_div(files_per_level)?).ok()?;
        let axis = (node % files_per_level) as usize + 1;
        let info = layer.levels().get(level)?.info();
        (axis < info.shape().len()).then_some((level, axis))
    }
}

impl View for ByAxis {
    fn name(&self) -> Option<&'static str> {
        Some("by-axis")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Self::files_per_level(layer).saturating_mul(layer.levels().len() as u64)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_some() {
            return;
        }
        let files_per_level = Self::files_per_level(layer);
        for (lod, level) in layer.levels().iter().enumerate() {
            for (n, name) in (0..files_per_level).zip(axis_names(level.info()).into_iter().skip(1)) {
                let node = lod as u64 * files_per_level + n;
                add(Entry { node, name: format!("lod{lod}.by-{name}.npy"), folder: false });
            }
        }
    }

    fn shown_array(&self, layer: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let (level, axis) = Self::level_and_axis(layer, node)?;
        let info = layer.info(level);
        Some(ShownArray { shape: AxisPermutation::to_front(axis).permute_dims(&info.shape()), dtype: info.dtype })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let Some((level, axis)) = Self::level_and_axis(layer, node) else {
            return Err(FormatError::Unsupported(format!("there is no transposed file number {node}")));
        };
        let (array, permutation) = (Arc::clone(&layer.levels()[level]), AxisPermutation::to_front(axis));
        let header = header(array.info().dtype, &permutation.permute_dims(&array.info().shape()));
        Ok(Content::Array(ArrayFile::permuted(header, array, permutation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_numpy_writes_them() {
        let got = header(Dtype::UInt16, &[40, 50, 70].into());
        assert_eq!(got.len(), 128);
        assert_eq!(&got[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert!(got[10..].starts_with(b"{'descr': '<u2', 'fortran_order': False, 'shape': (40, 50, 70), }  "));
        assert_eq!(got.last(), Some(&b'\n'));
        assert!(
            header(Dtype::Int8, &[5].into())[10..]
                .starts_with(b"{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }")
        );
        assert_eq!(header(Dtype::Int8, &Dims::filled(7, u64::MAX)).len() % 64, 0);
    }
}
