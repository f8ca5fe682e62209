//! `lodN.nhdr`: a detached NRRD header that names `lodN.raw`.

use std::fmt::Write;

use super::content::Content;
use super::level_file::LevelFile;
use super::spatial_transform::{SpatialTransform, number};
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view of one level.
pub(crate) struct Nrrd;

impl LevelFile for Nrrd {
    fn name(&self) -> Option<&'static str> {
        Some("nrrd")
    }

    fn suffix(&self) -> &'static str {
        ".nhdr"
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let transform = SpatialTransform::of(layer.info(lod), layer.open.dataset.info().geometry.as_ref());
        let key_values = [("dataset", layer.open.name.as_str()), ("layer", layer.name())];
        Ok(text(layer.info(lod), &transform, &key_values).into())
    }
}

/// Returns the header. Axes are fastest first, the reverse of the array's order.
fn text(info: &ArrayInfo, transform: &SpatialTransform, key_values: &[(&str, &str)]) -> String {
    let kind = match info.dtype {
        Dtype::Float32 => "float",
        Dtype::Float64 => "double",
        integer => integer.name(),
    };
    let vector = |v: &[f64]| format!("({})", v.iter().copied().map(number).collect::<Vec<_>>().join(","));
    let fastest_first = |of: &dyn Fn(usize) -> String| (0..info.axes.len()).rev().map(of).collect::<Vec<_>>().join(" ");
    let directions = fastest_first(&|a| transform.directions[a].as_deref().map_or_else(|| "none".into(), vector));
    let kinds = fastest_first(&|a| match (info.axes[a].spatial, info.dtype, info.shape()[a]) {
        (true, ..) => "domain".into(),
        (false, Dtype::UInt8, 3) => "RGB-color".into(),
        (false, ..) => "vector".into(),
    });
    let units: Vec<String> = transform.units.iter().map(|u| format!("\"{}\"", plain(u).replace('"', "'"))).collect();
    let mut text = String::from("NRRD0005\n# made by volfs\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key}: {value}");
    };
    line("type", kind.into());
    line("dimension", info.axes.len().to_string());
    line("sizes", fastest_first(&|a| info.shape()[a].to_string()));
    line("space dimension", transform.origin.len().to_string());
    line("space units", units.join(" "));
    line("space directions", directions);
    line("space origin", vector(&transform.origin));
    line("kinds", kinds);
    if info.dtype.size() > 1 {
        line("endian", "little".into());
    }
    line("encoding", "raw".into());
    line("data file", format!("lod{}.raw", info.lod));
    for (key, value) in key_values {
        let _ = writeln!(text, "{key}:={}", plain(value));
    }
    let _ = writeln!(text, "lod:={}\n", info.lod);
    text
}

/// Replaces control characters and backslashes, so that the text stays on one line.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;

    #[test]
    fn sizes_are_fastest_axis_first() {
        let array = zeros(&[40, 50, 70], Dtype::UInt16);
        let got = text(array.info(), &SpatialTransform::of(array.info(), None), &[("layer", "a\nb")]);
        let expected = "NRRD0005\n# made by volfs\ntype: uint16\ndimension: 3\nsizes: 70 50 40\nspace dimension: 3\n\
            space units: \"\" \"\" \"\"\nspace directions: (4,0,0) (0,3,0) (0,0,2)\nspace origin: (10,10,10)\n\
            kinds: domain domain domain\nendian: little\nencoding: raw\ndata file: lod0.raw\nlayer:=a b\nlod:=0\n\n";
        assert_eq!(got, expected);
    }
}
