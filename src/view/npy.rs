//! `lodN.npy`: the samples behind a NumPy header (format version 1.0, described in NumPy's `numpy.lib.format`).

use std::sync::Arc;

use super::array_file::ArrayFile;
use super::content::{Content, ShownArray};
use super::level_file::LevelFile;
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dims, Dtype};

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
