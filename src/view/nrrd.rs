//! `lodN.nhdr`: a detached NRRD header that names `lodN.raw`.

use std::fmt::Write;

use super::placement::{Placement, number};
use super::{Content, LayerRef, LevelFile};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view.
pub struct Nrrd;

impl LevelFile for Nrrd {
    fn suffix(&self) -> &'static str {
        ".nhdr"
    }

    fn content(&self, place: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let placement = Placement::of(place.info(lod), place.open.dataset.info().geometry.as_ref());
        let facts = [("dataset", place.open.name.as_str()), ("layer", &place.layer().name)];
        Ok(text(place.info(lod), &placement, &facts).into())
    }
}

/// The header. Axes are fastest first here: the reverse of the array's.
fn text(info: &ArrayInfo, placement: &Placement, facts: &[(&str, &str)]) -> String {
    let kind = match info.dtype {
        Dtype::Float32 => "float",
        Dtype::Float64 => "double",
        integer => integer.name(),
    };
    let vector = |v: &[f64]| format!("({})", v.iter().copied().map(number).collect::<Vec<_>>().join(","));
    let backwards = |of: &dyn Fn(usize) -> String| (0..info.axes.len()).rev().map(of).collect::<Vec<_>>().join(" ");
    let directions = backwards(&|a| placement.directions[a].as_deref().map_or_else(|| "none".into(), vector));
    let kinds = backwards(&|a| match (info.axes[a].spatial, info.dtype, info.shape()[a]) {
        (true, ..) => "domain".into(),
        (false, Dtype::UInt8, 3) => "RGB-color".into(),
        (false, ..) => "vector".into(),
    });
    let units: Vec<String> = placement.units.iter().map(|u| format!("\"{}\"", plain(u).replace('"', "'"))).collect();
    let mut text = String::from("NRRD0005\n# made by volfs\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key}: {value}");
    };
    line("type", kind.into());
    line("dimension", info.axes.len().to_string());
    line("sizes", backwards(&|a| info.shape()[a].to_string()));
    line("space dimension", placement.origin.len().to_string());
    line("space units", units.join(" "));
    line("space directions", directions);
    line("space origin", vector(&placement.origin));
    line("kinds", kinds);
    if info.dtype.size() > 1 {
        line("endian", "little".into());
    }
    line("encoding", "raw".into());
    line("data file", format!("lod{}.raw", info.lod));
    for (key, value) in facts {
        let _ = writeln!(text, "{key}:={}", plain(value));
    }
    let _ = writeln!(text, "lod:={}\n", info.lod);
    text
}

/// Text that stays on its line.
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
        let got = text(array.info(), &Placement::of(array.info(), None), &[("layer", "a\nb")]);
        let expected = "NRRD0005\n# made by volfs\ntype: uint16\ndimension: 3\nsizes: 70 50 40\nspace dimension: 3\n\
            space units: \"\" \"\" \"\"\nspace directions: (4,0,0) (0,3,0) (0,0,2)\nspace origin: (10,10,10)\n\
            kinds: domain domain domain\nendian: little\nencoding: raw\ndata file: lod0.raw\nlayer:=a b\nlod:=0\n\n";
        assert_eq!(got, expected);
    }
}
