//! A box of a level as an array with a shifted origin: views show it as they show a whole level, with the positions and the
//! size of voxels of the box.

use std::sync::Arc;

use super::arrays::npy_header;
use super::csv::Rows;
use super::segments::{ArrayFile, Content};
use super::{LayerRef, segy, tiff};
use crate::format::{Array, Census, FormatError};
use crate::source::{Blocking, Source};
use crate::volume::{ArrayId, ArrayInfo, Axis, Brick, BrickGrid, Dims, Dtype, NativeJson, Region, Scaling};

/// The form of a file of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Raw,
    Npy,
    Sgy,
    Tif,
    Csv,
}

impl Form {
    /// The names of all forms, which are also the extensions of their files.
    pub(crate) const NAMES: [&str; 5] = ["raw", "npy", "sgy", "tif", "csv"];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the form of this name, or of files with this extension.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match &*name.to_ascii_lowercase() {
            "raw" => Self::Raw,
            "npy" => Self::Npy,
            "sgy" | "segy" => Self::Sgy,
            "tif" | "tiff" => Self::Tif,
            "csv" => Self::Csv,
            _ => return None,
        })
    }
}

/// Which part of a level a file has, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxOf {
    pub region: Region,
    pub form: Form,
    /// Whether it has the values that the stored samples stand for, where they differ.
    pub scaled: bool,
}

/// A file of a box: its content, or for a table the samples that become its rows.
pub(crate) struct BoxFile {
    pub content: Content,
    pub rows: Option<Rows>,
}

impl BoxFile {
    /// Makes the file of a box of a level. Fails with the reason why there is none of this form.
    pub(crate) fn new(layer: LayerRef<'_>, lod: usize, of: BoxOf) -> Result<Self, String> {
        let none = |why| format!("there is no {} file of this box: {why}", of.form.name());
        Self::made(layer, lod, of).map_err(none)
    }

    fn made(layer: LayerRef<'_>, lod: usize, of: BoxOf) -> Result<Self, String> {
        if of.form == Form::Sgy {
            return Ok(Self { content: segy::of_box(layer, lod, of.region)?, rows: None });
        }
        let whole = layer.levels().get(lod).ok_or("it has no such level")?;
        let array: Arc<dyn Array> = Arc::new(BoxArray::new(whole, &of.region));
        let info = array.info();
        let scaling = of.scaled.then(|| scaling(info)).flatten();
        let dtype = if scaling.is_some() { Dtype::Float32 } else { info.dtype };
        let file = match of.form {
            Form::Npy => ArrayFile::new(npy_header(dtype, &info.shape()), &array),
            Form::Tif => {
                let reason = || (tiff::TIFF.hidden)(layer).map_or_else(String::new, |(_, reason)| reason);
                tiff::file(&array, &ArrayInfo { dtype, ..info.clone() }, layer.name()).ok_or_else(reason)?
            }
            Form::Raw | Form::Csv | Form::Sgy => ArrayFile::new(Vec::new(), &array),
        };
        let geometry = layer.open.dataset.info().geometry.as_ref();
        let rows = (of.form == Form::Csv).then(|| Rows::new(info, dtype, geometry));
        Ok(Self { content: Content::Array(scaling.into_iter().fold(file, ArrayFile::float32)), rows })
    }
}

/// Returns how stored samples become values, if these differ. Those of float64 and complex ones stay as they are.
fn scaling(info: &ArrayInfo) -> Option<Scaling> {
    let no_value = Scaling { no_value: info.no_value, is_code: false, ..Scaling::of_codes(1.0, 0.0) };
    let scaling = match info.dtype {
        Dtype::Float64 | Dtype::Complex64 | Dtype::Complex128 => None,
        Dtype::Float32 | Dtype::Float16 => info.scaling.or(Some(no_value)),
        _ => info.scaling,
    };
    scaling.filter(Scaling::says_something)
}

/// A box of an array. It has no bricks: what is read of it is read from the whole array.
struct BoxArray {
    whole: Arc<dyn Array>,
    start: Dims,
    info: ArrayInfo,
}

impl BoxArray {
    fn new(whole: &Arc<dyn Array>, region: &Region) -> Self {
        let (of_whole, shape) = (whole.info(), region.shape);
        let axis = |(n, axis): (usize, &Axis)| axis.part(region.start[n], shape[n]);
        let info = ArrayInfo {
            id: ArrayId::next(),
            grid: BrickGrid::aligned(shape, of_whole.brick_shape),
            axes: of_whole.axes.iter().take(shape.len()).enumerate().map(axis).collect(),
            native: NativeJson::new(),
            ..of_whole.clone()
        };
        Self { whole: Arc::clone(whole), start: region.start, info }
    }
}

impl Array for BoxArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }
    fn source(&self) -> &dyn Source {
        self.whole.source()
    }
    fn part_of(&self) -> Option<(&Arc<dyn Array>, &Dims)> {
        Some((&self.whole, &self.start))
    }
    fn brick(&self, _: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        Err(FormatError::Internal("a box has no bricks".into()))
    }
    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::registry::registry;
    use super::super::segy::tests::{self, AXES, Known, geometry};
    use super::*;
    use crate::catalog::OpenDataset;
    use crate::volume::{Affine, Geometry};

    fn region() -> Region {
        Region { start: [1, 2, 3].into(), shape: [2, 4, 5].into() }
    }

    fn survey(dtype: Dtype, scaling: Option<Scaling>) -> (OpenDataset, Known) {
        let map = Affine { origin: [1000.5, 2000.0], steps: [[2.0, 0.25], [-0.5, 3.0]] };
        let array = || {
            let mut array = Known::new(dtype, &AXES);
            (array.info.scaling, array.info.axes[2].unit) = (scaling, Some("ms".into()));
            array
        };
        (tests::open("zgy", Some(Geometry { annotation_to_world: Some(map), ..geometry() }), array()), array())
    }

    fn file(open: &OpenDataset, form: Form, scaled: bool) -> Result<BoxFile, String> {
        let layer = LayerRef { open, layer: 0, views: registry() };
        BoxFile::new(layer, 0, BoxOf { region: region(), form, scaled })
    }

    /// Reads a file of a box, from samples of the whole array.
    fn bytes(file: &BoxFile, array: &Known) -> Vec<u8> {
        let sample = |at: &Dims| array.samples_in(&Region { start: *at, shape: Dims::filled(at.len(), 1) });
        crate::view::tests::read(&file.content, 0..file.content.len(), &mut |_, at| sample(at)).unwrap()
    }

    #[test]
    fn files_have_the_samples_of_the_box_behind_their_own_header() {
        let (open, array) = survey(Dtype::Int16, Some(Scaling::of_codes(0.5, 1.0)));
        let stored = array.samples_in(&region());
        let values: Vec<u8> = stored
            .chunks(2)
            .flat_map(|code| (f32::from(i16::from_le_bytes([code[0], code[1]])) * 0.5 + 1.0).to_le_bytes())
            .collect();
        for (scaled, samples, dtype) in [(false, &stored, Dtype::Int16), (true, &values, Dtype::Float32)] {
            let read = |form| bytes(&file(&open, form, scaled).unwrap(), &array);
            assert!(read(Form::Raw) == *samples && read(Form::Csv) == *samples);
            assert!(read(Form::Npy) == [&npy_header(dtype, &region().shape)[..], samples].concat());
            let tiff = read(Form::Tif);
            assert!(tiff[4096..4096 + samples.len()] == samples[..] && &tiff[..4] == b"II\x2a\0");
            // a box of one plane would have no directory behind it
            assert!(tiff.len() > 4096 + samples.len());
        }
    }

    #[test]
    fn float16_becomes_float32_only_where_values_differ() {
        let (mut info, scaling_of) = (Known::new(Dtype::Float16, &AXES).info, super::scaling);
        assert_eq!(scaling_of(&info), None);
        info.no_value = Some(-1.0);
        assert_eq!(scaling_of(&info).unwrap().no_value, Some(-1.0));
        info.scaling = Some(Scaling::of_codes(2.0, 0.0));
        assert_eq!(scaling_of(&info), info.scaling);
        info.dtype = Dtype::Complex64;
        assert_eq!(scaling_of(&info), None);
    }

    #[test]
    fn complex_samples_have_the_files_that_can_hold_them() {
        for dtype in [Dtype::Float16, Dtype::Complex64, Dtype::Complex128] {
            let (open, array) = survey(dtype, None);
            let samples = array.samples_in(&region());
            for scaled in [false, true] {
                let read = |form| bytes(&file(&open, form, scaled).unwrap(), &array);
                assert!(read(Form::Raw) == samples && read(Form::Csv) == samples);
                assert!(read(Form::Npy) == [&npy_header(dtype, &region().shape)[..], &samples].concat());
                assert!(read(Form::Tif)[4096..].starts_with(&samples));
            }
            let mut made = file(&open, Form::Csv, false).unwrap();
            let rows = made.rows.as_mut().unwrap();
            let text = rows.write(&samples);
            assert_eq!(text.lines().count(), 1 + 2 * 4 * 5, "{dtype}");
            let is_complex = text.lines().skip(1).all(|row| row.ends_with('j') || row.ends_with(','));
            assert_eq!(is_complex, dtype.is_complex(), "{text}");
        }
    }

    #[test]
    fn only_surveys_have_segy() {
        let (open, array) = survey(Dtype::UInt8, None);
        assert_eq!(bytes(&file(&open, Form::Sgy, false).unwrap(), &array).len(), 3600 + 8 * (240 + 5 * 4));
        let axes = [("x", 0.0, 1.0, 5), ("y", 0.0, 1.0, 7), ("z", 0.0, 1.0, 11)];
        let voxels = tests::open("wkw", None, Known::new(Dtype::UInt8, &axes));
        let why = file(&voxels, Form::Sgy, false).err().unwrap();
        assert_eq!(why, "there is no sgy file of this box: it is no survey");
        let complex = survey(Dtype::Complex64, None).0;
        let why = file(&complex, Form::Sgy, false).err().unwrap();
        assert!(why.contains("has no complex samples; raw, npy, tif and csv"), "{why}");
        let odd = [AXES[0], ("crossline", 0.5, 1.0, 7), AXES[2]];
        let odd = tests::open("zgy", Some(geometry()), Known::new(Dtype::UInt8, &odd));
        assert!(file(&odd, Form::Sgy, false).err().unwrap().contains("not whole"));
    }

    #[test]
    fn rows_have_positions_coordinates_and_values() {
        let (open, array) = survey(Dtype::Int8, None);
        let mut made = file(&open, Form::Csv, false).unwrap();
        let (samples, rows) = (bytes(&made, &array), made.rows.as_mut().unwrap());
        let estimate = rows.estimated_bytes() as usize;
        let text: String = samples.chunks(7).map(|samples| rows.write(samples)).collect();
        assert!((text.len() / 2..text.len() * 2).contains(&estimate), "{estimate} of {}", text.len());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines.len(), lines[0]),
            (1 + 2 * 4 * 5, "inline,crossline,sample (ms),world_x (m),world_y (m),value")
        );
        let row = |inline: i32, crossline: i32, sample: i32, n: usize| {
            let world = [
                0.5 + 1000.0 + 2.0 * f64::from(inline) - 0.5 * f64::from(crossline),
                2000.0 + 0.25 * f64::from(inline) + 3.0 * f64::from(crossline),
            ];
            format!("{inline},{crossline},{sample},{},{},{}", world[0], world[1], samples[n].cast_signed())
        };
        assert_eq!(
            [lines[1], lines[5], lines[6], lines[40]],
            [row(98, 2006, 0, 0), row(98, 2006, 16, 4), row(98, 2009, 0, 5), row(96, 2015, 16, 39)]
        );
    }
}
