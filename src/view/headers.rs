//! `lodN.nhdr`, `lodN.mhd`, `lodN.hdr`: NRRD, MetaImage and ENVI headers that name `lodN.raw`, and where an array lies
//! in space.

use std::fmt::Write;
use std::ops::Range;

use super::entry::{Entry, level_files};
use super::{LayerRef, View};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, Axis, Dtype, Geometry};

/// The affine map from indexes to positions in a space that has one dimension for each spatial axis.
///
/// The dimensions of the space are in reverse order of the array's axes: x is the fastest axis of a volume `(z, y, x)`.
/// A survey `(inline, crossline, sample)` is shown without its rotation, in world units: x increases with the inline
/// index, y with the crossline index, and z points up, so that it decreases with the sample index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpatialTransform {
    /// Centre of the first sample.
    pub origin: Vec<f64>,
    /// Unit of each dimension of the space; empty if unknown.
    pub units: Vec<String>,
    /// The step along each axis of the array, slowest first; none for an axis that is not spatial.
    pub directions: Vec<Option<Vec<f64>>>,
}

impl SpatialTransform {
    fn of_level(layer: LayerRef<'_>, lod: usize) -> Self {
        Self::of(layer.info(lod), layer.open.dataset.info().geometry.as_ref())
    }

    /// Returns the transform of an array in a dataset with or without a survey.
    pub(crate) fn of(info: &ArrayInfo, geometry: Option<&Geometry>) -> Self {
        match geometry {
            Some(geometry) if info.axes.len() == 3 && info.axes.iter().all(|a| a.spatial) => {
                Self::survey(info, geometry)
            }
            _ => Self::plain(info),
        }
    }

    fn plain(info: &ArrayInfo) -> Self {
        let spatial: Vec<usize> = (0..info.axes.len()).rev().filter(|a| info.axes[*a].spatial).collect();
        let unit = |a: &usize| info.axes[*a].unit.clone().unwrap_or_default();
        let direction = |axis: usize| {
            let dimension = spatial.iter().position(|a| *a == axis)?;
            let mut vector = vec![0.0; spatial.len()];
            vector[dimension] = step(info.axes[axis].step);
            Some(vector)
        };
        Self {
            origin: spatial.iter().map(|a| finite(info.axes[*a].first)).collect(),
            units: spatial.iter().map(unit).collect(),
            directions: (0..info.axes.len()).map(direction).collect(),
        }
    }

    fn survey(info: &ArrayInfo, geometry: &Geometry) -> Self {
        let down = &info.axes[2];
        let (origin, steps, unit) = horizontal(info, geometry);
        Self {
            origin: vec![origin[0], origin[1], 0.0 - finite(down.first)],
            units: vec![unit.clone(), unit, down.unit.clone().unwrap_or_default()],
            directions: vec![
                Some(vec![steps[0], 0.0, 0.0]),
                Some(vec![0.0, steps[1], 0.0]),
                Some(vec![0.0, 0.0, -step(down.step)]),
            ],
        }
    }
}

/// Returns the position of the first sample, the distances between inlines and between crosslines, and their unit: in
/// world coordinates if they are known, else in line numbers.
fn horizontal(info: &ArrayInfo, geometry: &Geometry) -> ([f64; 2], [f64; 2], String) {
    let [first, last_inline, last_crossline, _] = geometry.corners;
    let (Some(first_at), Some(inline_at), Some(crossline_at)) = (first.world, last_inline.world, last_crossline.world)
    else {
        let axis = |a: usize| (finite(info.axes[a].first), step(info.axes[a].step));
        let ((inline, inlines), (crossline, crosslines)) = (axis(0), axis(1));
        return ([inline, crossline], [inlines, crosslines], String::new());
    };
    let factor = (1u64 << info.lod.min(62)) as f64;
    let spacing = |to: [f64; 2], lines: u64| {
        let length = (to[0] - first_at[0]).hypot(to[1] - first_at[1]);
        // a single line has no neighbour to measure a distance to
        if lines > 0 { step(rounded(length / lines as f64) * factor) } else { factor }
    };
    let steps = [spacing(inline_at, last_inline.index[0]), spacing(crossline_at, last_crossline.index[1])];
    (first_at, steps, geometry.horizontal_unit.clone().unwrap_or_default())
}

/// Rounds off the last digits of a length, in which the rotation of a survey leaves rounding errors.
pub(crate) fn rounded(length: f64) -> f64 {
    format!("{length:.10e}").parse().unwrap_or(length)
}

/// Replaces a step that readers cannot divide by.
pub(crate) fn step(step: f64) -> f64 {
    if step.is_finite() && step != 0.0 { step } else { 1.0 }
}

/// Replaces a position that is not a number by 0.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Formats a number for a text header: short, exact, and in exponent form if it would be very long otherwise.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-5..1e16).contains(&value.abs()) { format!("{value:e}") } else { format!("{value}") }
}

/// Returns the position of the first sample along an axis, and the distance of neighbours: finite numbers, the distance
/// not 0.
pub(crate) fn first_and_step(axis: Option<&Axis>) -> (f64, f64) {
    axis.map_or((0.0, 1.0), |axis| (finite(axis.first), step(axis.step)))
}

/// Returns the positions of `samples` along an axis, with zeros beyond its end: float64, little-endian.
pub(crate) fn positions(info: &ArrayInfo, axis: usize, samples: Range<u64>) -> Vec<u8> {
    let (count, (first, step)) = (info.shape()[axis], first_and_step(info.axes.get(axis)));
    let position = |n: u64| if n < count { first + step * n as f64 } else { 0.0 };
    samples.flat_map(|n| position(n).to_le_bytes()).collect()
}

/// A last axis that is not spatial is the channels of a pixel if it is no longer than this.
const MAX_CHANNELS: u64 = 64;

/// An array as a stack of planes of equal size, one directly behind the other. The last spatial axis is the width, the
/// one before it the height.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stack {
    pub width: u64,
    pub height: u64,
    /// The axes across the planes, slowest first: none to three.
    pub across: Vec<u64>,
    pub channels: u64,
    pub dtype: Dtype,
}

impl Stack {
    /// Returns the stack of an array; `None` for an array of fewer than two or more than five axes besides the
    /// channels.
    pub(crate) fn of(info: &ArrayInfo) -> Option<Self> {
        let shape: Vec<u64> = info.shape().iter().copied().collect();
        let (last, before) = shape.split_last()?;
        let last_is_spatial = info.axes.get(before.len()).is_none_or(|axis| axis.spatial);
        let (channels, extents) =
            if last_is_spatial || !(2..=MAX_CHANNELS).contains(last) { (1, &shape[..]) } else { (*last, before) };
        let [across @ .., height, width] = extents else { return None };
        // nothing of a size of zero is an image
        let is_image = across.len() <= 3 && !shape.contains(&0);
        is_image.then(|| Self { width: *width, height: *height, across: across.to_vec(), channels, dtype: info.dtype })
    }

    pub(crate) fn planes(&self) -> u64 {
        self.across.iter().product()
    }

    /// Returns the bytes of a plane. The product of all extents and the size of a sample fits 63 bits.
    pub(crate) fn plane_bytes(&self) -> u64 {
        self.width * self.height * self.channels * self.dtype.size() as u64
    }

    pub(crate) fn is_rgb(&self) -> bool {
        self.channels == 3 && matches!(self.dtype, Dtype::UInt8 | Dtype::UInt16)
    }
}

/// `lodN.nhdr`
pub(crate) const NRRD: View = View {
    hidden: |layer| type_hidden(layer, nrrd_type, ("lod0.nhdr", "NRRD")),
    ..View::new(Some("nrrd"), |layer| {
        if nrrd_type(layer.info(0).dtype).is_none() {
            return Vec::new();
        }
        level_files(layer, ".nhdr", |layer, lod| {
            let kind = type_of_level(layer, lod, nrrd_type, "NRRD")?;
            let key_values = [("dataset", layer.open.name.as_str()), ("layer", layer.name())];
            Ok(nrrd_text(layer.info(lod), kind, &SpatialTransform::of_level(layer, lod), &key_values).into())
        })
    })
};

/// Returns the name that NRRD has for a type of samples.
fn nrrd_type(dtype: Dtype) -> Option<&'static str> {
    match dtype {
        Dtype::Float32 => Some("float"),
        Dtype::Float64 => Some("double"),
        other => other.is_integer().then_some(other.name()),
    }
}

/// Returns the file that a layer does not have because its header has no name for the type of the samples.
fn type_hidden(
    layer: LayerRef<'_>,
    name_of: fn(Dtype) -> Option<&'static str>,
    (file, header): (&str, &str),
) -> Option<(String, String)> {
    let dtype = layer.info(0).dtype;
    name_of(dtype).is_none().then(|| (file.to_owned(), format!("{header} has no {dtype} samples")))
}

/// Returns the header. Axes are fastest first, the reverse of the array's order.
fn nrrd_text(info: &ArrayInfo, kind: &str, transform: &SpatialTransform, key_values: &[(&str, &str)]) -> String {
    let vector = |v: &[f64]| format!("({})", v.iter().copied().map(number).collect::<Vec<_>>().join(","));
    let fastest_first = |of: &dyn Fn(usize) -> String| (0..info.axes.len()).rev().map(of).collect::<Vec<_>>().join(" ");
    let directions = fastest_first(&|a| transform.directions[a].as_deref().map_or_else(|| "none".into(), vector));
    let kinds = fastest_first(&|a| match (info.axes[a].spatial, info.dtype, info.shape()[a]) {
        (true, ..) => "domain".into(),
        (false, Dtype::UInt8, 3) => "RGB-color".into(),
        (false, ..) => "vector".into(),
    });
    let units: Vec<String> =
        transform.units.iter().map(|u| format!("\"{}\"", nrrd_plain(u).replace('"', "'"))).collect();
    let endian = if info.dtype.size() > 1 { "endian: little\n" } else { "" };
    let mut text = format!(
        "NRRD0005\n# made by volfs\ntype: {kind}\ndimension: {}\nsizes: {}\nspace dimension: {}\nspace units: {}\n\
        space directions: {directions}\nspace origin: {}\nkinds: {kinds}\n{endian}encoding: raw\ndata file: lod{}.raw\n",
        info.axes.len(),
        fastest_first(&|a| info.shape()[a].to_string()),
        transform.origin.len(),
        units.join(" "),
        vector(&transform.origin),
        info.lod,
    );
    for (key, value) in key_values {
        let _ = writeln!(text, "{key}:={}", nrrd_plain(value));
    }
    let _ = writeln!(text, "lod:={}\n", info.lod);
    text
}

/// Replaces control characters and backslashes, so that the text stays on one line.
fn nrrd_plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\\' { ' ' } else { c }).collect()
}

/// Returns what a header calls the samples of a level, which may be of another type than those of level 0.
fn type_of_level(
    layer: LayerRef<'_>,
    lod: usize,
    name_of: fn(Dtype) -> Option<&'static str>,
    header: &str,
) -> Result<&'static str, FormatError> {
    let dtype = layer.info(lod).dtype;
    name_of(dtype).ok_or_else(|| FormatError::Unsupported(format!("{header} has no {dtype} samples")))
}

/// `lodN.mhd`
pub(crate) const META_IMAGE: View = View {
    hidden: mhd_hidden,
    ..View::new(Some("mhd"), |layer| {
        if mhd_hidden(layer).is_some() {
            return Vec::new();
        }
        level_files(layer, ".mhd", |layer, lod| {
            let kind = type_of_level(layer, lod, mhd_type, "MetaImage")?;
            Ok(mhd_text(layer.info(lod), kind, &SpatialTransform::of_level(layer, lod)).into())
        })
    })
};

fn mhd_hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let reason = || ("lod0.mhd".into(), "MetaImage has channels only as the last axes".into());
    type_hidden(layer, mhd_type, ("lod0.mhd", "MetaImage")).or_else(|| has_channels_first(layer.info(0)).then(reason))
}

/// Returns whether an axis that is not spatial comes before one that is; axes of one sample do not count.
fn has_channels_first(info: &ArrayInfo) -> bool {
    let mut axes = info.axes.iter().filter(|axis| axis.count != 1).skip_while(|axis| axis.spatial);
    axes.any(|axis| axis.spatial)
}

/// Returns the name that MetaImage has for a type of samples.
fn mhd_type(dtype: Dtype) -> Option<&'static str> {
    Some(match dtype {
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
        Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => return None,
    })
}

/// Returns the header. Axes are fastest first, the reverse of the array's order. An axis that is not spatial is the
/// channels.
fn mhd_text(info: &ArrayInfo, kind: &str, transform: &SpatialTransform) -> String {
    let axes: Vec<usize> = (0..info.axes.len()).rev().filter(|a| info.axes[*a].spatial).collect();
    let channels: u64 = (0..info.axes.len()).filter(|a| !info.axes[*a].spatial).map(|a| info.shape()[a]).product();
    let directions: Vec<&[f64]> = axes.iter().filter_map(|a| transform.directions[*a].as_deref()).collect();
    let length = |v: &[f64]| v.iter().fold(0.0, |sum: f64, x| sum.hypot(*x));
    let join = |numbers: &mut dyn Iterator<Item = f64>| {
        // adding 0 makes -0 a plain 0
        numbers.map(|n| number(n + 0.0)).collect::<Vec<_>>().join(" ")
    };
    let matrix = join(&mut directions.iter().flat_map(|v| v.iter().map(|x| *x / length(v))));
    let channels = if channels > 1 { format!("ElementNumberOfChannels = {channels}\n") } else { String::new() };
    format!(
        "ObjectType = Image\nNDims = {}\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n\
        TransformMatrix = {matrix}\nOffset = {}\nCenterOfRotation = {}\nElementSpacing = {}\nDimSize = {}\n{channels}\
        ElementType = {kind}\nElementDataFile = lod{}.raw\n",
        axes.len(),
        join(&mut transform.origin.iter().copied()),
        join(&mut axes.iter().map(|_| 0.0)),
        join(&mut directions.iter().map(|v| length(v))),
        axes.iter().map(|a| info.shape()[*a].to_string()).collect::<Vec<_>>().join(" "),
        info.lod,
    )
}

/// `lodN.hdr`
pub(crate) const ENVI: View = View { hidden: envi_hidden, ..View::new(Some("envi"), envi_entries) };

fn envi_entries(layer: LayerRef<'_>) -> Vec<Entry> {
    if envi_text(layer.info(0), "").is_none() {
        return Vec::new();
    }
    level_files(layer, ".hdr", |layer, lod| {
        let info = layer.info(lod);
        let description = format!("{}, layer {}, LOD {lod}", layer.open.name, layer.name());
        let none = || format!("ENVI has no form for an array of {} axes of {}", info.shape().len(), info.dtype);
        Ok(envi_text(info, &description).ok_or_else(|| FormatError::Unsupported(none()))?.into())
    })
}

fn envi_hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let info = layer.info(0);
    let reason = match info.dtype {
        Dtype::Int8 => "ENVI has no signed 8-bit integers",
        Dtype::Float16 => "ENVI has no 16-bit floating-point numbers",
        _ => "ENVI has one image of channels, or bands of one channel, and of no more than 2^31 rows and columns",
    };
    envi_text(info, "").is_none().then(|| ("lod0.hdr".to_owned(), reason.to_owned()))
}

/// Returns the header. There is none for int8 and float16, for volumes of several channels, and for extents of more than 31 bits.
fn envi_text(info: &ArrayInfo, description: &str) -> Option<String> {
    let kind = match info.dtype {
        Dtype::UInt8 => 1,
        Dtype::Int16 => 2,
        Dtype::Int32 => 3,
        Dtype::Float32 => 4,
        Dtype::Float64 => 5,
        Dtype::Complex64 => 6,
        Dtype::Complex128 => 9,
        Dtype::UInt16 => 12,
        Dtype::UInt32 => 13,
        Dtype::Int64 => 14,
        Dtype::UInt64 => 15,
        Dtype::Int8 | Dtype::Float16 => return None,
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
mod spatial_transform_tests {
    use super::super::tests::zeros;
    use super::*;
    use crate::volume::Corner;
    use crate::volume::Dtype;

    fn corner(index: [u64; 2], world: [f64; 2]) -> Corner {
        Corner { index, annotation: [0.0, 0.0], world: Some(world) }
    }

    #[test]
    fn a_survey_is_unrotated_and_samples_go_down() {
        let array = zeros(&[11, 21, 30], Dtype::Int8);
        let corners = [
            corner([0, 0], [100.0, 200.0]),
            corner([10, 0], [400.0, 600.0]),
            corner([0, 20], [20.0, 260.0]),
            corner([10, 20], [320.0, 660.0]),
        ];
        let geometry = Geometry { corners, horizontal_unit: Some("m".into()), ..Geometry::default() };
        let got = SpatialTransform::of(array.info(), Some(&geometry));
        assert_eq!(got.origin, [100.0, 200.0, -10.0]);
        assert_eq!(got.units, ["m", "m", ""]);
        let directions: Vec<Vec<f64>> = got.directions.into_iter().flatten().collect();
        assert_eq!(directions, [[50.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, -4.0]]);
    }

    #[test]
    fn line_numbers_replace_unknown_world_coordinates() {
        let array = zeros(&[11, 21, 30], Dtype::Int8);
        let got = SpatialTransform::of(array.info(), Some(&Geometry::default()));
        assert_eq!(got.origin, [10.0, 10.0, -10.0]);
        assert_eq!(got.directions[1], Some(vec![0.0, 3.0, 0.0]));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(12.5), "12.5");
        assert_eq!(number(-3.0), "-3");
        assert_eq!(number(1e300), "1e300");
        assert_eq!(number(0.0), "0");
    }
}

#[cfg(test)]
mod axis_positions_tests {
    use super::super::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    #[test]
    fn positions_are_finite_and_end_in_zeros() {
        let read = |info: &ArrayInfo, samples| -> Vec<f64> {
            positions(info, 1, samples).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
        };
        let mut info = zeros(&[2, 5], Dtype::UInt8).info().clone();
        assert_eq!(read(&info, 0..5), [10.0, 13.0, 16.0, 19.0, 22.0]);
        assert_eq!(read(&info, 3..7), [19.0, 22.0, 0.0, 0.0]);
        (info.axes[1].first, info.axes[1].step) = (f64::NAN, f64::INFINITY);
        assert!(read(&info, 0..5).iter().all(|position| position.is_finite()));
    }
}

#[cfg(test)]
mod stack_tests {
    use super::super::tests::zeros;
    use super::*;

    fn stack(shape: &[u64], channels: bool) -> Option<Stack> {
        let mut info = zeros(shape, Dtype::UInt8).info().clone();
        info.axes.last_mut().unwrap().spatial = !channels;
        Stack::of(&info)
    }

    #[test]
    fn the_last_two_spatial_axes_are_the_plane() {
        let got = stack(&[4, 5, 7], false).unwrap();
        assert_eq!((got.width, got.height, got.planes(), got.channels, got.plane_bytes()), (7, 5, 4, 1, 35));
        let got = stack(&[4, 5, 7, 3], true).unwrap();
        assert_eq!((got.width, got.height, got.planes(), got.channels, got.plane_bytes()), (7, 5, 4, 3, 105));
        assert!(got.is_rgb());
        assert_eq!(stack(&[5, 7], false).unwrap().planes(), 1);
        assert_eq!(stack(&[2, 3, 4, 5, 7], false).unwrap().across, [2, 3, 4]);
    }

    #[test]
    fn long_axes_are_no_channels_and_lines_no_images() {
        let headers = stack(&[33, 6, 240], true).unwrap();
        assert_eq!((headers.width, headers.height, headers.planes(), headers.channels), (240, 6, 33, 1));
        assert_eq!(stack(&[33, 6, 1], true).unwrap().width, 1);
        assert_eq!(stack(&[9], false), None);
        assert_eq!(stack(&[9, 3], true), None);
        assert_eq!(stack(&[2, 2, 2, 2, 5, 7], false), None);
    }
}

#[cfg(test)]
mod nrrd_tests {
    use super::super::tests::zeros;
    use super::*;
    use crate::test_support::DTYPES;

    #[test]
    fn sizes_are_fastest_axis_first() {
        let array = zeros(&[40, 50, 70], Dtype::UInt16);
        let got = nrrd_text(array.info(), "uint16", &SpatialTransform::of(array.info(), None), &[("layer", "a\nb")]);
        let expected = "NRRD0005\n# made by volfs\ntype: uint16\ndimension: 3\nsizes: 70 50 40\nspace dimension: 3\n\
            space units: \"\" \"\" \"\"\nspace directions: (4,0,0) (0,3,0) (0,0,2)\nspace origin: (10,10,10)\n\
            kinds: domain domain domain\nendian: little\nencoding: raw\ndata file: lod0.raw\nlayer:=a b\nlod:=0\n\n";
        assert_eq!(got, expected);
    }

    #[test]
    fn only_the_fastest_axes_are_channels_of_meta_image() {
        for (shape, spatial, first) in [
            ([2, 3, 4, 5], [false, true, true, true], true),
            ([2, 3, 4, 5], [true, true, true, false], false),
            ([2, 3, 4, 5], [true, true, false, false], false),
            ([1, 3, 4, 5], [false, true, true, true], false),
            ([3, 4, 5, 1], [true, true, false, true], false),
        ] {
            let mut info = zeros(&shape, Dtype::UInt8).info().clone();
            info.axes.iter_mut().zip(spatial).for_each(|(axis, spatial)| axis.spatial = spatial);
            assert_eq!(has_channels_first(&info), first, "{shape:?} {spatial:?}");
        }
    }

    #[test]
    fn types_have_the_names_that_readers_know() {
        for dtype in DTYPES {
            let names = [nrrd_type(dtype), mhd_type(dtype)];
            let is_known = dtype.is_integer() || matches!(dtype, Dtype::Float32 | Dtype::Float64);
            assert_eq!(names.map(|name| name.is_some()), [is_known; 2], "{dtype}");
        }
        assert_eq!((nrrd_type(Dtype::Int8), nrrd_type(Dtype::Float64)), (Some("int8"), Some("double")));
    }
}

#[cfg(test)]
mod metaimage_tests {
    use super::super::tests::zeros;
    use super::*;
    use crate::volume::Geometry;

    #[test]
    fn the_data_file_comes_last() {
        let array = zeros(&[40, 50, 70], Dtype::Int64);
        let got = mhd_text(array.info(), "MET_LONG_LONG", &SpatialTransform::of(array.info(), None));
        assert!(got.contains("TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = 10 10 10\n"));
        assert!(got.ends_with(
            "ElementSpacing = 4 3 2\nDimSize = 70 50 40\nElementType = MET_LONG_LONG\nElementDataFile = lod0.raw\n"
        ));
        let transform = SpatialTransform::of(array.info(), Some(&Geometry::default()));
        let survey = mhd_text(array.info(), "MET_LONG_LONG", &transform);
        assert!(survey.contains("TransformMatrix = 0 0 -1 0 1 0 1 0 0\nOffset = 10 10 -10\n"), "{survey}");
    }
}

#[cfg(test)]
mod envi_tests {
    use super::super::tests::zeros;
    use super::*;

    #[test]
    fn planes_are_bands() {
        let mut info = zeros(&[40, 50, 70], Dtype::UInt16).info().clone();
        info.no_value = Some(65535.0);
        let expected = "ENVI\ndescription = {a  b }\nsamples = 70\nlines = 50\nbands = 40\nheader offset = 0\n\
            file type = ENVI Standard\ndata type = 12\ninterleave = bsq\nbyte order = 0\ndata ignore value = 65535\n";
        assert_eq!(envi_text(&info, "a\n}b{").unwrap(), expected);
        let one = envi_text(zeros(&[50, 70], Dtype::Float32).info(), "").unwrap();
        assert!(one.contains("bands = 1\n") && one.contains("data type = 4\n"), "{one}");
        for (dtype, kind) in [(Dtype::Complex64, 6), (Dtype::Complex128, 9)] {
            let complex = envi_text(zeros(&[50, 70], dtype).info(), "").unwrap();
            assert!(complex.contains(&format!("data type = {kind}\n")), "{complex}");
        }
    }

    #[test]
    fn arrays_without_a_form_have_no_header() {
        let channels = |shape: &[u64]| {
            let mut info = zeros(shape, Dtype::UInt8).info().clone();
            info.axes.last_mut().unwrap().spatial = false;
            envi_text(&info, "")
        };
        assert!(channels(&[50, 70, 3]).unwrap().contains(
            "bands = 3\nheader offset = 0\nfile type = ENVI Standard\n\
            data type = 1\ninterleave = bip\n"
        ));
        assert_eq!(channels(&[40, 50, 70, 3]), None);
        assert_eq!(envi_text(zeros(&[40, 50, 70], Dtype::Int8).info(), ""), None);
        assert_eq!(envi_text(zeros(&[40, 50, 70], Dtype::Float16).info(), ""), None);
        assert_eq!(envi_text(zeros(&[70], Dtype::UInt8).info(), ""), None);
        assert_eq!(envi_text(zeros(&[1, 1, 1 << 31], Dtype::UInt8).info(), ""), None);
    }
}
