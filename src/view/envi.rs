//! `lodN.hdr`: an ENVI header for `lodN.raw`, which GDAL finds beside it. Planes are bands.

use std::fmt::Write;

use super::content::Content;
use super::level_file::LevelFile;
use super::stack::Stack;
use super::virtual_file::LayerRef;
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Dtype};

/// The view of one level.
pub(crate) struct Envi;

impl LevelFile for Envi {
    fn name(&self) -> Option<&'static str> {
        Some("envi")
    }

    fn suffix(&self) -> &'static str {
        ".hdr"
    }

    fn applies_to(&self, info: &ArrayInfo) -> bool {
        text(info, "").is_some()
    }

    fn why_hidden(&self, info: &ArrayInfo) -> Option<&'static str> {
        Some(match info.dtype {
            Dtype::Int8 => "ENVI has no signed 8-bit integers",
            _ => "ENVI has one image of channels, or bands of one channel, and of no more than 2^31 rows and columns",
        })
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let info = layer.info(lod);
        let description = format!("{}, layer {}, LOD {lod}", layer.open.name, layer.name());
        text(info, &description).map(Content::from).ok_or_else(|| {
            FormatError::Unsupported(format!(
                "ENVI has no form for an array of {} axes of {}",
                info.shape().len(),
                info.dtype
            ))
        })
    }
}

/// Returns the header. There is none for int8, for volumes of several channels, and for extents of more than 31 bits.
fn text(info: &ArrayInfo, description: &str) -> Option<String> {
    let kind = match info.dtype {
        Dtype::UInt8 => 1,
        Dtype::Int16 => 2,
        Dtype::Int32 => 3,
        Dtype::Float32 => 4,
        Dtype::Float64 => 5,
        Dtype::UInt16 => 12,
        Dtype::UInt32 => 13,
        Dtype::Int64 => 14,
        Dtype::UInt64 => 15,
        Dtype::Int8 => return None,
    };
    let stack = Stack::of(info)?;
    let (bands, interleave) = match (stack.channels, stack.planes()) {
        (1, planes) => (planes, "bsq"),
        (channels, 1) => (channels, "bip"),
        _ => return None,
    };
    if [stack.width, stack.height, bands].into_iter().any(|extent| extent > i32::MAX as u64) {
        return None;
    }
    // a brace ends a text
    let plain = |c: char| if c.is_control() || matches!(c, '{' | '}') { ' ' } else { c };
    let mut text = format!(
        "ENVI\ndescription = {{{}}}\nsamples = {}\nlines = {}\nbands = {bands}\nheader offset = 0\n\
        file type = ENVI Standard\ndata type = {kind}\ninterleave = {interleave}\nbyte order = 0\n",
        description.chars().map(plain).collect::<String>(),
        stack.width,
        stack.height,
    );
    if let Some(no_value) = info.no_value.filter(|value| value.is_finite()) {
        let _ = writeln!(text, "data ignore value = {no_value}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;

    #[test]
    fn planes_are_bands() {
        let mut info = zeros(&[40, 50, 70], Dtype::UInt16).info().clone();
        info.no_value = Some(65535.0);
        let expected = "ENVI\ndescription = {a  b }\nsamples = 70\nlines = 50\nbands = 40\nheader offset = 0\n\
            file type = ENVI Standard\ndata type = 12\ninterleave = bsq\nbyte order = 0\ndata ignore value = 65535\n";
        assert_eq!(text(&info, "a\n}b{").unwrap(), expected);
        let one = text(zeros(&[50, 70], Dtype::Float32).info(), "").unwrap();
        assert!(one.contains("bands = 1\n") && one.contains("data type = 4\n"), "{one}");
    }

    #[test]
    fn arrays_without_a_form_have_no_header() {
        let channels = |shape: &[u64]| {
            let mut info = zeros(shape, Dtype::UInt8).info().clone();
            info.axes.last_mut().unwrap().spatial = false;
            text(&info, "")
        };
        assert!(channels(&[50, 70, 3]).unwrap().contains(
            "bands = 3\nheader offset = 0\nfile type = ENVI Standard\n\
            data type = 1\ninterleave = bip\n"
        ));
        assert_eq!(channels(&[40, 50, 70, 3]), None);
        assert_eq!(text(zeros(&[40, 50, 70], Dtype::Int8).info(), ""), None);
        assert_eq!(text(zeros(&[70], Dtype::UInt8).info(), ""), None);
        assert_eq!(text(zeros(&[1, 1, 1 << 31], Dtype::UInt8).info(), ""), None);
    }
}
