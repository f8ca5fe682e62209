//! Arrays as they are: `lodN.raw`, `lodN.npy`, the values as `lodN.float32.npy`, and `lodN.by-AXIS.npy` with permuted
//! axes. The header is NumPy's format version 1.0 (`numpy.lib.format`).

use std::sync::Arc;

use super::View;
use super::entry::{Entry, level_files};
use super::names::axis_names;
use super::segments::{ArrayFile, Content};
use crate::format::Array;
use crate::volume::{AxisPermutation, Dims, Dtype, Scaling};

/// The header is padded to a multiple of this, so that the samples are aligned in a map of the file.
const ALIGNMENT: usize = 64;

/// The stored samples without a header.
pub(crate) const RAW: View = View::new(Some("raw"), |layer| {
    level_files(layer, ".raw", |layer, lod| Ok(Content::Array(ArrayFile::new(Vec::new(), &layer.levels()[lod]))))
});

pub(crate) const NPY: View = View::new(Some("npy"), |layer| {
    level_files(layer, ".npy", |layer, lod| Ok(npy(&layer.levels()[lod], AxisPermutation::IDENTITY)))
});

/// The values that codes stand for.
pub(crate) const FLOAT32_NPY: View = View::new(Some("float32"), |layer| {
    let info = layer.info(0);
    if !info.dtype.may_be_codes() || !info.scaling.is_some_and(|scaling| scaling.says_something()) {
        return Vec::new();
    }
    level_files(layer, ".float32.npy", |layer, lod| {
        let array = &layer.levels()[lod];
        let file = ArrayFile::new(npy_header(Dtype::Float32, &array.info().shape()), array);
        let scaling = array.info().scaling.unwrap_or(Scaling::of_codes(1.0, 0.0));
        Ok(Content::Array(file.float32(scaling)))
    })
});

/// One file for each axis except the first, which comes first in `lodN.npy` already.
pub(crate) const BY_AXIS: View = View::new(Some("by-axis"), |layer| {
    let mut files = Vec::new();
    for (lod, level) in layer.levels().iter().enumerate() {
        for (axis, name) in axis_names(level.info()).into_iter().enumerate().skip(1) {
            files.push(Entry::file(format!("lod{lod}.by-{name}.npy"), move |layer| {
                Ok(npy(&layer.levels()[lod], AxisPermutation::to_front(axis)))
            }));
        }
    }
    files
});

fn npy(array: &Arc<dyn Array>, order: AxisPermutation) -> Content {
    let info = array.info();
    let header = npy_header(info.dtype, &order.permute_dims(&info.shape()));
    Content::Array(ArrayFile::new(header, array).permuted(order))
}

/// Returns the header of a C-ordered, little-endian array; `shape` is slowest axis first.
pub(crate) fn npy_header(dtype: Dtype, shape: &Dims) -> Vec<u8> {
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let descr = format!("{order}{}{}", &dtype.name()[..1], dtype.size());
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    // a tuple with one element needs a comma
    let comma = if sizes.len() == 1 { "," } else { "" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let magic = b"\x93NUMPY\x01\x00";
    let before = magic.len() + 2;
    // fits 16 bits: the text has at most seven numbers of twenty digits
    let length = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
    let padded = format!("{text:0$}\n", length - 1);
    [&magic[..], &(length as u16).to_le_bytes(), padded.as_bytes()].concat()
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
        for (dtype, descr) in [(Dtype::Float16, "<f2"), (Dtype::Complex64, "<c8"), (Dtype::Complex128, "<c16")] {
            let header = String::from_utf8_lossy(&npy_header(dtype, &[5].into())[10..]).into_owned();
            assert!(header.starts_with(&format!("{{'descr': '{descr}', ")), "{header}");
        }
        // of every length, also where the text just fits
        for digits in 1..=80u32 {
            let shape: Vec<u64> = (0..7u32).map(|n| 10u64.pow(digits.saturating_sub(12 * n).min(19))).collect();
            let header = npy_header(Dtype::Complex128, &Dims::from_slice(&shape).unwrap());
            let stated = usize::from(header[8]) + 256 * usize::from(header[9]);
            assert_eq!((header.len() % 64, stated + 10), (0, header.len()), "{digits}");
            assert!(header.ends_with(b"\n") && header.contains(&b'}'), "{digits}");
        }
    }
}
