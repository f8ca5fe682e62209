//! `lodN.mhd`: a MetaImage header that names `lodN.raw`.

use std::fmt::Write;

use super::content::Content;
use super::level_file::LevelFile;
use super::spatial_transform::{SpatialTransform, number};
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view of one level.
pub(crate) struct MetaImage;

impl LevelFile for MetaImage {
    fn name(&self) -> Option<&'static str> {
        Some("mhd")
    }

    fn suffix(&self) -> &'static str {
        ".mhd"
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let transform = SpatialTransform::of(layer.info(lod), layer.open.dataset.info().geometry.as_ref());
        Ok(text(layer.info(lod), &transform).into())
    }
}

/// Returns the header. Axes are fastest first, the reverse of the array's order. An axis that is not spatial is the
/// channels.
fn text(info: &ArrayInfo, transform: &SpatialTransform) -> String {
    let kind = match info.dtype {
        Dtype::Int8 => "MET_CHAR",
        Dtype::UInt8 => "MET_UCHAR",
        Dtype::Int16 => "MET_SHORT",
        Dtype::UInt16 => "MET_USHORT",
        Dtype::Int32 => "MET_INT",
        Dtype::UInt32 => "MET_UINT",
        // readers take MET_LONG as 32 bits
        Dtype::Int64 => "MET_LONG_LONG",
        Dtype::UInt64 => "MET_ULONG_LONG",
        Dtype::Float32 => "MET_FLOAT",
        Dtype::Float64 => "MET_DOUBLE",
    };
    let axes: Vec<usize> = (0..info.axes.len()).rev().filter(|a| info.axes[*a].spatial).collect();
    let channels: u64 = (0..info.axes.len()).filter(|a| !info.axes[*a].spatial).map(|a| info.shape()[a]).product();
    let directions: Vec<&[f64]> = axes.iter().filter_map(|a| transform.directions[*a].as_deref()).collect();
    let length = |v: &[f64]| v.iter().fold(0.0, |sum: f64, x| sum.hypot(*x));
    let join = |numbers: &mut dyn Iterator<Item = f64>| {
        // adding 0 makes -0 a plain 0
        numbers.map(|n| number(n + 0.0)).collect::<Vec<_>>().join(" ")
    };
    let matrix = join(&mut directions.iter().flat_map(|v| v.iter().map(|x| *x / length(v))));
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("ObjectType", "Image".into());
    line("NDims", axes.len().to_string());
    line("BinaryData", "True".into());
    line("BinaryDataByteOrderMSB", "False".into());
    line("CompressedData", "False".into());
    line("TransformMatrix", matrix);
    line("Offset", join(&mut transform.origin.iter().copied()));
    line("CenterOfRotation", join(&mut axes.iter().map(|_| 0.0)));
    line("ElementSpacing", join(&mut directions.iter().map(|v| length(v))));
    line("DimSize", axes.iter().map(|a| info.shape()[*a].to_string()).collect::<Vec<_>>().join(" "));
    if channels > 1 {
        line("ElementNumberOfChannels", channels.to_string());
    }
    line("ElementType", kind.into());
    line("ElementDataFile", format!("lod{}.raw", info.lod));
    text
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;
    use crate::volume::Geometry;

    #[test]
    fn the_data_file_comes_last() {
        let array = zeros(&[40, 50, 70], Dtype::Int64);
        let got = text(array.info(), &SpatialTransform::of(array.info(), None));
        assert!(got.contains("TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 10 10 10\n"));
        assert!(got.ends_with(
            "ElementSpacing = 4 3 2\nDimSize = 70 50 40\nElementType = MET_LONG_LONG\nElementDataFile = lod0.raw\n"
        ));
        let survey = text(array.info(), &SpatialTransform::of(array.info(), Some(&Geometry::default())));
        assert!(survey.contains("TransformMatrix = 0 0 -1 0 1 0 1 0 0\nOffset = 10 10 -10\n"), "{survey}");
    }
}
