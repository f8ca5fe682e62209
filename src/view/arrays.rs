//! Arrays as they are: `lodN.raw`, `lodN.npy`, the values as `lodN.float32.npy`, and `lodN.by-AXIS.npy` with permuted axes.
//! The header is NumPy's format version 1.0 (`numpy.lib.format`).

use std::sync::Arc;

use super::entry::{Entry, File, level_files};
use super::names::axis_names;
use super::segments::{ArrayFile, Content};
use super::{LayerRef, View};
use crate::format::Array;
use crate::volume::{AxisPermutation, Dims, Dtype};

/// The header is padded to a multiple of this, so that the samples are aligned in a map of the file.
const ALIGNMENT: usize = 64;

/// The stored samples without a header.
pub(crate) struct Raw;

impl View for Raw {
    fn name(&self) -> Option<&'static str> {
        Some("raw")
    }

    fn entries(&self, layer: LayerRef<'_>) -> Vec<Entry> {
        level_files(layer, ".raw", |layer, lod| Ok(Content::Array(ArrayFile::new(Vec::new(), &layer.levels()[lod]))))
    }
}

/// The stored samples.
pub(crate) struct Npy;

impl View for Npy {
    fn name(&self) -> Option<&'static str> {
        Some("npy")
    }

    fn entries(&self, layer: LayerRef<'_>) -> Vec<Entry> {
        level_files(layer, ".npy", |layer, lod| {
            Ok(Content::Array(npy(&layer.levels()[lod], AxisPermutation::IDENTITY)))
        })
    }
}

/// The values that integers stand for.
pub(crate) struct Float32Npy;

impl View for Float32Npy {
    fn name(&self) -> Option<&'static str> {
        Some("float32")
    }

    fn entries(&self, layer: LayerRef<'_>) -> Vec<Entry> {
        let info = layer.info(0);
        if !info.dtype.is_integer() || !info.scaling.is_some_and(|scaling| scaling.says_something()) {
            return Vec::new();
        }
        level_files(layer, ".float32.npy", |layer, lod| {
            let array = &layer.levels()[lod];
            let file = ArrayFile::new(npy_header(Dtype::Float32, &array.info().shape()), array);
            Ok(Content::Array(match array.info().scaling {
                Some(scaling) => file.float32(scaling),
                None => file,
            }))
        })
    }
}

/// One file for each axis except the first, which comes first in `lodN.npy` already.
pub(crate) struct ByAxis;

impl View for ByAxis {
    fn name(&self) -> Option<&'static str> {
        Some("by-axis")
    }

    fn entries(&self, layer: LayerRef<'_>) -> Vec<Entry> {
        let mut files = Vec::new();
        for (lod, level) in layer.levels().iter().enumerate() {
            for (axis, name) in axis_names(level.info()).into_iter().enumerate().skip(1) {
                files.push(Entry::from(File::new(format!("lod{lod}.by-{name}.npy"), move |layer| {
                    Ok(Content::Array(npy(&layer.levels()[lod], AxisPermutation::to_front(axis))))
                })));
            }
        }
        files
    }
}

fn npy(array: &Arc<dyn Array>, order: AxisPermutation) -> ArrayFile {
    let info = array.info();
    ArrayFile::new(npy_header(info.dtype, &order.permute_dims(&info.shape())), array).permuted(order)
}

/// Returns the header of a C-ordered, little-endian array; `shape` is slowest axis first.
pub(crate) fn npy_header(dtype: Dtype, shape: &Dims) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_numpy_writes_them() {
        let got = npy_header(Dtype::UInt16, &[40, 50, 70].into());
        assert_eq!(got.len(), 128);
        assert_eq!(&got[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert!(got[10..].starts_with(b"{'descr': '<u2', 'fortran_order': False, 'shape': (40, 50, 70), }  "));
        assert_eq!(got.last(), Some(&b'\n'));
        assert!(
            npy_header(Dtype::Int8, &[5].into())[10..]
                .starts_with(b"{'descr': '|i1', 'fortran_order': False, 'shape': (5,), }")
        );
        assert_eq!(npy_header(Dtype::Int8, &Dims::filled(7, u64::MAX)).len() % 64, 0);
    }
}
