//! `lod0.sgy`: a layer as a SEG-Y file of big-endian float32, if its axes are those of a survey, in integers; and boxes
//! of one.

use std::ops::Range;
use std::sync::Arc;

use super::headers::{self, HEADERS, OfTrace, TRACE_HEADER, samples_in};
use super::survey::Survey;
use crate::format::{Array, FormatError};
use crate::sync::Mutex;
use crate::view::convert::{Form, to_float32};
use crate::view::entry::Entry;
use crate::view::segments::{ComputedFile, Content, NextSegment, Segment};
use crate::view::{LayerRef, View, hash_of};
use crate::volume::Region;

const NAME: &str = "lod0.sgy";

/// The formats of surveys. Datasets of others are surveys if they have lines by name.
const FORMATS: [&str; 2] = ["zgy", "vds"];

pub(crate) const SURVEY: View = View { hidden, ..View::new(Some("segy"), entries) };

fn entries(layer: LayerRef<'_>) -> Vec<Entry> {
    let is_shown = may_be_survey(layer) && Survey::of(layer).is_ok();
    is_shown.then(|| Entry::file(NAME, content)).into_iter().collect()
}

fn hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let survey = may_be_survey(layer).then(|| Survey::of(layer))?;
    survey.err().map(|reason| (NAME.to_owned(), reason))
}

fn may_be_survey(layer: LayerRef<'_>) -> bool {
    let has = |name: &str| layer.info(0).axes.iter().any(|axis| axis.name.eq_ignore_ascii_case(name));
    FORMATS.contains(&layer.open.format) || has("inline") && has("crossline")
}

pub(super) fn content(layer: LayerRef<'_>) -> Result<Content, FormatError> {
    of_box(layer, 0, Region::whole(layer.info(0).shape())).map_err(FormatError::Unsupported)
}

/// Returns a box of a level as a SEG-Y file; fails with the reason why there is none.
pub(crate) fn of_box(layer: LayerRef<'_>, lod: usize, region: Region) -> Result<Content, String> {
    if !may_be_survey(layer) {
        return Err("it is no survey".to_owned());
    }
    let survey = Survey::of_box(layer, lod, region)?;
    let headers = [&headers::text_header(layer, &survey)[..], &headers::binary_header(&survey)].concat();
    let (headers, seen) = (headers.into(), Mutex::new(Seen::default()));
    Ok(Content::Computed(Arc::new(SurveyFile { survey, headers, seen })))
}

/// Bytes of a sample in the file.
const SAMPLE: u64 = size_of::<f32>() as u64;

/// So many traces are looked up together.
const LOOK: u64 = 1024;

struct SurveyFile {
    survey: Survey,
    /// The textual and the binary header.
    headers: Arc<[u8]>,
    /// What was seen last.
    seen: Mutex<Seen>,
}

/// Values of the [arrays](Survey::of_traces) for traces that follow each other, as they are stored.
type Seen = [(Range<u64>, Arc<[u8]>); 2];

impl SurveyFile {
    /// Returns the bytes of a trace with its header.
    fn trace_bytes(&self) -> u64 {
        TRACE_HEADER + u64::from(self.survey.samples.count) * SAMPLE
    }

    /// Returns the segment with the first of some bytes. A read keeps what it has `seen`.
    fn segment(self: &Arc<Self>, bytes: &Range<u64>, seen: &Arc<Mutex<Seen>>) -> Segment {
        let Some(at) = bytes.start.checked_sub(HEADERS) else { return Segment::Bytes(0, Arc::clone(&self.headers)) };
        let (trace, trace_bytes) = (at / self.trace_bytes(), self.trace_bytes());
        let header = HEADERS + trace * trace_bytes;
        let body = header + TRACE_HEADER..header + trace_bytes;
        if bytes.start < body.start {
            if let Some(look) = self.look(trace, bytes.start, seen) {
                return look;
            }
            let seen = seen.lock().clone();
            // all of a long read of `volfs cat` together, which decodes each brick once
            let whole = trace..trace + (bytes.end - header) / trace_bytes;
            let whole = self.arrays().fold(whole, |whole, (which, _)| whole.start..whole.end.min(seen[which].0.end));
            if bytes.start == header && !whole.is_empty() && self.survey.samples.count > 0 {
                return self.whole_traces(whole, header, seen);
            }
            return Segment::Bytes(header, self.trace_header(trace, &seen).into());
        }
        let (bytes, samples) = samples_in(bytes, &body, SAMPLE);
        let before = trace * u64::from(self.survey.samples.count);
        let file = Arc::clone(self);
        let convert = move |stored: &[u8], out: &mut [u8]| file.convert(stored, out);
        let samples = self.survey.samples(&self.survey.array, before + samples.start..before + samples.end);
        Segment::Samples(bytes, samples, Some(Box::new(convert)))
    }

    /// Returns the segment of traces with their headers, which begins at an offset of the file.
    fn whole_traces(self: &Arc<Self>, traces: Range<u64>, begin: u64, seen: Seen) -> Segment {
        let (file, numbers) = (Arc::clone(self), traces.clone());
        let (count, trace_bytes) = (u64::from(self.survey.samples.count), self.trace_bytes());
        let stored_bytes = count as usize * self.survey.array.info().dtype.size();
        let convert = move |stored: &[u8], out: &mut [u8]| {
            let of_traces = stored.chunks_exact(stored_bytes).zip(out.chunks_exact_mut(trace_bytes as usize));
            for (number, (stored, out)) in numbers.zip(of_traces) {
                let (header, values) = out.split_at_mut(TRACE_HEADER as usize);
                header.copy_from_slice(&file.trace_header(number, &seen));
                file.convert(stored, values)?;
            }
            Ok(())
        };
        let bytes = begin..begin + (traces.end - traces.start) * trace_bytes;
        let samples = self.survey.samples(&self.survey.array, traces.start * count..traces.end * count);
        Segment::Samples(bytes, samples, Some(Box::new(convert)))
    }

    /// Returns the arrays with values of traces, with their numbers.
    fn arrays(&self) -> impl Iterator<Item = (usize, &Arc<dyn Array>)> {
        self.survey.of_traces.iter().enumerate().filter_map(|(which, array)| Some((which, array.as_ref()?)))
    }

    /// Returns the segment that looks up what the header of a trace needs, at an offset of the file; `None` if it was
    /// seen already.
    fn look(self: &Arc<Self>, trace: u64, at: u64, seen: &Arc<Mutex<Seen>>) -> Option<Segment> {
        for (which, array) in self.arrays() {
            if seen.lock()[which].0.contains(&trace) {
                continue;
            }
            let last = self.seen.lock()[which].clone();
            if last.0.contains(&trace) {
                seen.lock()[which] = last;
                continue;
            }
            let first = trace - trace % LOOK;
            let traces = first..(first + LOOK).min(self.survey.traces());
            let (file, seen, samples) =
                (Arc::clone(self), Arc::clone(seen), self.survey.samples(array, traces.clone()));
            let look = move |values: &[u8], _: &mut [u8]| {
                let values = (traces, values.into());
                seen.lock()[which] = (values.0.clone(), Arc::clone(&values.1));
                file.seen.lock()[which] = values;
                Ok(())
            };
            return Some(Segment::Samples(at..at, samples, Some(Box::new(look))));
        }
        None
    }

    fn trace_header(&self, trace: u64, seen: &Seen) -> [u8; TRACE_HEADER as usize] {
        let value = |which: usize, size: usize| {
            let (traces, values): &(Range<u64>, Arc<[u8]>) = &seen[which];
            values.chunks_exact(size).nth(trace.checked_sub(traces.start)? as usize)
        };
        let is_live = value(0, 1).is_none_or(|live| live != [0]);
        let offset =
            value(1, 4).filter(|_| is_live).and_then(|offset| Some(f32::from_le_bytes(offset.try_into().ok()?)));
        // a number that does not fit becomes the closest one that does
        let offset = offset.map_or_else(|| self.survey.usual_offset(trace), f64::from).round() as i32;
        headers::trace_header(&self.survey, trace, OfTrace { is_live, offset })
    }

    /// Converts stored samples to those of the file.
    fn convert(&self, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let info = self.survey.array.info();
        let form = Form { no_value: info.no_value, void: 0.0, big_endian: true };
        to_float32(info.dtype, info.scaling, form, stored, out);
        Ok(())
    }
}

impl ComputedFile for SurveyFile {
    fn len(&self) -> u64 {
        self.survey.traces().saturating_mul(self.trace_bytes()).saturating_add(HEADERS)
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.survey.array
    }

    fn fingerprint(&self) -> u64 {
        // lines and positions are in the first and the last trace
        let traces = [0, 1, self.survey.traces() / 2, self.survey.traces() - 1];
        hash_of((&self.headers, traces.map(|trace| self.trace_header(trace, &Seen::default()))))
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        let seen = Arc::new(Mutex::new(Seen::default()));
        Box::new(move |bytes| self.segment(&bytes, &seen))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::survey::*;
    use super::super::tests::{
        AXES, Axes, Known, Layers, dataset, field, geometry, layer, names, open, read, read_known, survey, text_of,
        whole,
    };
    use super::*;
    use crate::catalog::OpenDataset;
    use crate::format::Layer;
    use crate::view::json;
    use crate::view::segments::ArrayFile;
    use crate::volume::{Affine, Axis, DatasetInfo, Dims, Dtype, Geometry, NativeJson, Scaling, half};

    fn sample_axis(count: u64, first: f64, step: f64, kind: &'static str, factor: f64) -> Result<SampleAxis, String> {
        let axis = Axis { name: "sample".into(), unit: None, first, step, count, spatial: true };
        let geometry = Geometry { vertical_kind: kind, vertical_factor: factor, ..Geometry::default() };
        SampleAxis::of(&axis, Some(&geometry))
    }

    #[test]
    fn units_are_those_of_the_standard() {
        let [feet, metres] = [SampleUnit::FEET, SampleUnit::METRES];
        let [milliseconds, unknown] = [SampleUnit::MILLISECONDS, SampleUnit::UNKNOWN];
        for (kind, factor, first, step, (delay, interval, unit)) in [
            ("two-way time", 1e-3, -12.0, 4.0, (-12, 4000, milliseconds)),
            ("time", 1.0, 0.5, 0.002, (500, 2000, milliseconds)),
            ("depth", 1.0, 1500.0, 5.0, (1500, 5000, metres)),
            ("depth", 1000.0, 1.5, 0.005, (1500, 5000, metres)),
            ("depth", 0.3048, 100.0, 12.5, (100, 12500, feet)),
            ("depth", 1200.0 / 3937.0, 100.0, 12.5, (100, 12500, feet)),
            ("unknown", 1.0, 7.0, 2.0, (7, 2000, unknown)),
            ("time", 1e-3, 0.0, f64::from(0.1f32), (0, 100, milliseconds)),
        ] {
            let found = sample_axis(9, first, step, kind, factor).unwrap();
            assert_eq!((found.count, found.delay, found.interval, found.unit), (9, delay, interval, unit), "{kind}");
            assert!(!found.is_rounded(), "{kind} {factor}");
        }
        let axis = Axis { name: "x".into(), unit: Some("ms".into()), first: 0.0, step: 4.0, count: 1, spatial: true };
        assert_eq!(SampleAxis::of(&axis, None).unwrap().unit, milliseconds);
    }

    #[test]
    fn what_integers_cannot_say_is_refused() {
        assert!(sample_axis(32_767, 0.0, 4.0, "time", 1e-3).is_ok());
        let refused = |count, first, step| sample_axis(count, first, step, "time", 1e-3).unwrap_err();
        assert_eq!(
            refused(32_768, 0.0, 4.0),
            "a trace has 32768 samples, and programs read no more than 32767 from SEG-Y"
        );
        let apart = "us apart, and programs read whole numbers from 1 to 32767 from SEG-Y";
        assert!(refused(99, 0.0, 1.25e-2).starts_with(&format!("its samples are 12.5 {apart}")));
        for step in [32.768, 65.536, 4e-4, -4.0, 0.0, f64::NAN, f64::INFINITY] {
            assert!(refused(9, 0.0, step).contains(apart), "{step}");
        }
        for first in [0.5, 40_000.0, -32_769.0, f64::NAN] {
            assert!(refused(9, first, 4.0).contains("whole numbers of 16 bits"), "{first}");
        }
        // 50 m are 50,000 mm
        assert!(sample_axis(9, 0.0, 50.0, "depth", 1.0).unwrap_err().contains("50000 mm apart"));
        // one sample is no distance from another
        assert_eq!(sample_axis(1, 5.0, 0.0, "time", 1e-3).unwrap().interval, 0);
    }

    #[test]
    fn intervals_are_rounded_while_all_samples_stay_closest_to_their_places() {
        for (count, step, interval) in
            [(1000, 10.0 / 3.0, 3333), (5000, 10.0 / 3.0, 3333), (300, 0.4995, 500), (2, 1e-2, 10)]
        {
            let found = sample_axis(count, 0.0, step, "time", 1e-3).unwrap();
            assert_eq!((found.interval, found.is_rounded()), (interval, step != 1e-2), "{count} of {step}");
        }
        // the last sample is 0.333 * 5001 us off, more than half of 3333.3
        for (count, step) in [(5002, 10.0 / 3.0), (502, 0.4995), (99, 1.25e-2)] {
            assert!(sample_axis(count, 0.0, step, "time", 1e-3).is_err(), "{count} of {step}");
        }
        let axes = [AXES[0], AXES[1], ("sample", 0.0, 10.0 / 3.0, 11)];
        let text = text_of(&survey(&axes, Dtype::Int8, None));
        assert!(
            text.contains("11 FROM 0 ms STEP 3333 us ") && text.contains("THE STEP IS 3333.333333 us, AND ROUNDED"),
            "{text}"
        );
    }

    fn world_of(origin: [f64; 2], kind: &'static str, factor: f64) -> Option<World> {
        let map = Affine { origin, steps: [[3.0, 12.25], [-12.25, 3.004]] };
        let geometry = Geometry {
            index_to_world: Some(map),
            horizontal_kind: kind,
            horizontal_factor: factor,
            ..Geometry::default()
        };
        World::of(Some(&geometry), [0.0; 2], 1.0, [101, 201])
    }

    #[test]
    fn centimetres_are_kept_where_they_fit() {
        let world = world_of([431_964.75, 6_348_565.25], "length", 1.0).unwrap();
        assert_eq!((world.scalar, world.unit, world.rounding()), (-100, 1, 0.01));
        assert_eq!(world.position([0, 0]), [43_196_475, 634_856_525]);
        assert_eq!(world.position([2, 3]), [43_193_400, 634_859_876]);
        assert_eq!(world_of([1.0, 2.0], "length", 1.0).unwrap().scalar, -100);
    }

    #[test]
    fn the_extent_chooses_the_scalar() {
        for (y, scalar, shown) in [
            (21_470_000.0, -100, 2_147_000_000),
            (-21_474_900.0, -10, -214_749_000),
            (2e8, -10, 2_000_000_000),
            (2e9, 1, 2_000_000_000),
            (-2.1e10, 10, -2_100_000_000),
            (2.1e13, 10_000, 2_100_000_000),
        ] {
            let world = world_of([0.0, y], "length", 1.0).unwrap();
            assert_eq!((world.scalar, world.position([0, 0])[1]), (scalar, shown), "{y}");
        }
        // the far corner does not fit, although the first does
        assert_eq!(world_of([0.0, 21_474_836.0], "length", 1.0).unwrap().scalar, -10);
        for y in [3e13, f64::NAN, f64::INFINITY] {
            assert_eq!(world_of([0.0, y], "length", 1.0), None, "{y}");
        }
        assert_eq!(World::of(Some(&Geometry::default()), [0.0; 2], 1.0, [2, 2]), None);
    }

    #[test]
    fn angles_are_degrees() {
        let world = world_of([36_000.0, 18_000.36], "angle", 1.0).unwrap();
        assert_eq!((world.scalar, world.unit, world.position([0, 0])), (-10_000, 3, [100_000, 50_001]));
        assert_eq!(world_of([10.0, 5.0], "angle", 3600.0).unwrap().position([0, 0]), [100_000, 50_000]);
    }

    fn file(open: &OpenDataset) -> Content {
        content(layer(open, 0)).unwrap()
    }

    #[test]
    fn what_cannot_be_segy_is_not_listed_and_dataset_json_says_why() {
        let [inlines, crosslines, samples] = AXES;
        let with = |axes: &[(&str, f64, f64, u64)]| open("vds", Some(geometry()), Known::new(Dtype::UInt8, axes));
        for (open, reason) in [
            (with(&[inlines, crosslines, ("sample", 0.0, 4.0, 32768)]), "no more than 32767"),
            (with(&[inlines, crosslines, ("sample", 0.0, 40.0, 9)]), "us apart"),
            (with(&[inlines, crosslines, ("sample", 0.25, 4.0, 9)]), "begin at 0.25 ms"),
            (with(&[("inline", 1.5, 1.0, 2), crosslines, samples]), "inline are not whole: they begin at 1.5"),
            (with(&[inlines, ("crossline", 1.0, 0.5, 2), samples]), "crossline are not whole"),
            (with(&[inlines, ("crossline", 1.0, 0.0, 2), samples]), "the same number"),
            (with(&[inlines, ("crossline", 4e9, 1.0, 2), samples]), "do not fit 32 bits"),
            (with(&[inlines, ("crossline", 2_147_483_000.0, 1.0, 700), samples]), "do not fit 32 bits"),
            (with(&[crosslines, samples]), "its axes are crossline, sample"),
            (with(&[inlines, samples, crosslines]), "no 3D survey"),
            (with(&[inlines, crosslines, ("trace", 1.0, 1.0, 2), samples]), "no 3D survey"),
            (with(&[inlines, ("offset", 100.0, 50.0, 2), crosslines, samples]), "no 3D survey"),
            (with(&[inlines, crosslines, ("Trace (offset)", 1.0, 1.0, 2), samples]), "offsets of its traces are not"),
            (with(&[inlines, crosslines, ("offset", 12.5, 12.5, 2), samples]), "offset are not whole"),
            (with(&[inlines, crosslines, ("value", 0.0, 1.0, 240)]), "no 3D survey"),
            (with(&[inlines, crosslines, ("sample", 0.0, 4.0, 0)]), "no samples"),
        ] {
            assert_eq!(names(&open, &[SURVEY]), [[""; 0]], "{reason}");
            let hidden = &json::layers(&open, &[SURVEY])[0]["hidden_files"];
            assert_eq!((hidden[0]["name"].as_str(), hidden.as_array().unwrap().len()), (Some("lod0.sgy"), 1));
            assert!(hidden[0]["reason"].as_str().unwrap().contains(reason), "{hidden} is not {reason}");
            assert!(content(layer(&open, 0)).is_err());
        }
        let shown = with(&AXES);
        assert_eq!(names(&shown, &[SURVEY]), [["lod0.sgy"]]);
        assert_eq!(json::layers(&shown, &[SURVEY])[0]["hidden_files"], serde_json::json!([]));
        // voxels are no survey, unless they have lines by name
        let voxels = open("zarr", None, Known::new(Dtype::UInt8, &["x", "y", "z"].map(|name| (name, 0.0, 1.0, 3))));
        assert_eq!(names(&voxels, &[SURVEY]), [[""; 0]]);
        assert_eq!((SURVEY.hidden)(layer(&voxels, 0)), None);
        let lines = open("zarr", None, Known::new(Dtype::UInt8, &AXES));
        assert_eq!(names(&lines, &[SURVEY]), [["lod0.sgy"]]);
    }

    #[test]
    fn only_the_samples_in_a_range_are_read() {
        let open = survey(&AXES, Dtype::Float32, None);
        let file = file(&open);
        let samples = |from: u64, to: u64| read_known(&file, from..to).1;
        let trace = |number: u64| 3600 + number * (240 + 11 * 4);
        assert_eq!(samples(0, 3600), 0);
        assert_eq!(samples(3500, trace(0) + 240), 0);
        assert_eq!(samples(trace(0) + 239, trace(0) + 241), 1);
        assert_eq!(samples(trace(3) + 241, trace(3) + 249), 3);
        assert_eq!(samples(trace(3) + 276, trace(5) + 244), 2 + 11 + 1);
        assert_eq!(samples(0, file.len()), 35 * 11);
        // one whose samples are not all read together
        let long = survey(&[AXES[0], AXES[1], ("sample", 0.0, 1.0, 20_000)], Dtype::UInt8, None);
        let file = self::file(&long);
        let (got, read) = read_known(&file, 5..file.len() - 3);
        assert!(got == whole(&long)[5..file.len() as usize - 3], "bytes differ");
        assert_eq!(read, 35 * 20_000);
    }

    #[test]
    fn files_of_other_surveys_have_other_fingerprints() {
        let of = |axes: &Axes, dtype| match file(&survey(axes, dtype, None)) {
            Content::Computed(file) => file.fingerprint(),
            _ => unreachable!(),
        };
        let [inlines, crosslines, samples] = AXES;
        let prints = [
            of(&AXES, Dtype::Int8),
            of(&AXES, Dtype::UInt8),
            of(&[("inline", 101.0, -2.0, 5), crosslines, samples], Dtype::Int8),
            of(&[inlines, ("crossline", 2000.0, 4.0, 7), samples], Dtype::Int8),
            of(&[inlines, crosslines, ("sample", 0.0, 4.0, 11)], Dtype::Int8),
        ];
        assert_eq!(of(&AXES, Dtype::Int8), prints[0]);
        assert!((1..prints.len()).all(|n| !prints[..n].contains(&prints[n])));
    }

    /// Opens a survey of gathers with traces that are missing, and returns its arrays: samples, whether traces are there,
    /// and offsets.
    fn gathers(shape: [u64; 4]) -> (OpenDataset, [Arc<Known>; 3]) {
        let ([inline, crossline, _], gather) = (AXES, ("Trace (offset)", 1.0, 1.0, shape[2]));
        let with = |dtype, last: (&str, f64, f64, u64)| {
            let (first, second) =
                ((inline.0, inline.1, inline.2, shape[0]), (crossline.0, crossline.1, crossline.2, shape[1]));
            Known::new(dtype, &[first, second, gather, last]).in_bricks([2, 3, 2, last.3].into())
        };
        let value = ("value", 0.0, 1.0, 1);
        let samples = with(Dtype::Int8, ("sample", -12.0, 4.0, shape[3]));
        let (mut live, mut offsets) = (with(Dtype::UInt8, value), with(Dtype::Float32, value));
        live.samples.iter_mut().for_each(|live| *live %= 3);
        let values = offsets.samples.chunks_mut(4).zip(0u16..);
        values.for_each(|(bytes, number)| bytes.copy_from_slice(&offset(number.into()).to_le_bytes()));
        // missing traces get an offset by their place between these
        offsets.info.value_range = Some((100.0, 50.0 + 50.0 * shape[2] as f64));
        let arrays = [samples, live, offsets].map(Arc::new);
        let layer = |(name, array): (&str, &Arc<Known>)| -> Layer {
            Layer { name: name.into(), levels: vec![array.clone()], native: NativeJson::new() }
        };
        let layers = ["Amplitude", "Trace", "Offset"].into_iter().zip(&arrays).map(layer).collect();
        let info = DatasetInfo { geometry: Some(geometry()), ..DatasetInfo::default() };
        (dataset("vds", Layers(info, layers, None)), arrays)
    }

    fn offset(number: u64) -> f32 {
        number as f32 * 10.0 - 50.4
    }

    /// Compares the traces of a box with the arrays.
    fn check_box(shape: [u64; 4], region: Region) {
        let (open, arrays) = gathers(shape);
        let known = [0, 1, 2].map(|which: usize| &*arrays[which]);
        let content = of_box(layer(&open, 0), 0, region).unwrap();
        let (file, _) = read(&content, 0..content.len(), &known);
        assert_eq!(
            [3213, 3227, 3221].map(|byte| field(&file, byte, 2) as u64),
            [region.shape[2], region.shape[2], region.shape[3]]
        );
        let (traces, boxed) = (Dims::from_slice(&shape[..3]).unwrap(), Dims::from_slice(&region.shape[..3]).unwrap());
        let mut number = 0;
        for trace in file[3600..].chunks(240 + 4 * region.shape[3] as usize) {
            let within = boxed.index_of(number);
            let at = [0, 1, 2].map(|axis: usize| region.start[axis] + within[axis]);
            let of_trace = traces.linear_of(&at) as usize;
            number += 1;
            let [i, x] = [at[0] as f64, at[1] as f64];
            let live = if arrays[1].samples[of_trace] == 0 { 2 } else { 1 };
            for (byte, length, value) in [
                (1, 4, number as i64),
                (25, 4, within[2] as i64 + 1),
                (29, 2, live),
                (37, 4, if live == 1 { offset(of_trace as u64).round() as i64 } else { 100 + 50 * at[2] as i64 }),
                (109, 2, 4 * region.start[3] as i64 - 12),
                (181, 4, ((431_964.75 + 3.5 * i - 12.25 * x) * 100.0).round() as i64),
                (185, 4, ((6_348_565.25 + 12.125 * i + 3.0 * x) * 100.0).round() as i64),
                (189, 4, 100 - 2 * at[0] as i64),
                (193, 4, 2000 + 3 * at[1] as i64),
            ] {
                assert_eq!(field(trace, byte, length), value, "byte {byte} of {number}");
            }
            let first = of_trace * shape[3] as usize + region.start[3] as usize;
            let stored = &arrays[0].samples[first..][..region.shape[3] as usize];
            let values: Vec<u8> = stored.iter().flat_map(|sample| f32::from(*sample as i8).to_be_bytes()).collect();
            assert!(trace[240..] == values, "samples of {number}");
        }
        assert_eq!(number, boxed.product().unwrap());
        // parts that begin and end anywhere, each a read of its own
        for (part, length) in (0..file.len()).step_by(1 + file.len() / 20).zip([1, 240, 7, 5000].into_iter().cycle()) {
            let end = (part + length).min(file.len());
            assert!(read(&content, part as u64..end as u64, &known).0 == file[part..end], "{part}..{end}");
        }
    }

    #[test]
    fn headers_of_many_traces_are_looked_up_in_parts() {
        check_box([30, 25, 4, 3], Region::whole([30, 25, 4, 3].into()));
        let (open, arrays) = gathers([30, 25, 4, 3]);
        let known = [0, 1, 2].map(|which: usize| &*arrays[which]);
        let file = file(&open);
        let read = |bytes: Range<u64>| read(&file, bytes, &known).1;
        // 2 * 1024 values are looked at, and then they are known
        assert_eq!([read(3600..3600 + 240), read(3600 + 252..3600 + 300), read(3600 + 240..3600 + 244)], [2048, 0, 1]);
        assert_eq!(read(3600 + 252 * 1024..3600 + 252 * 1025), 2048 + 3);
    }

    #[test]
    fn what_other_layers_say_counts_if_they_have_the_same_traces() {
        let (marked, _) = gathers([2, 3, 1, 4]);
        let survey = |open| Survey::of(layer(open, 0));
        assert_eq!(survey(&marked).unwrap().of_traces.map(|array| array.is_some()), [true, true]);
        let [inline, crossline, sample] = AXES;
        let other = self::survey(&[inline, crossline, sample], Dtype::Int8, None);
        assert_eq!(survey(&other).unwrap().of_traces.map(|array| array.is_some()), [false, false]);
        assert!(!text_of(&other).contains("MISSING"));
        // an axis of offsets has them itself
        let axes = [inline, crossline, ("Offset", 250.0, 50.0, 3), sample];
        let open = open("vds", Some(geometry()), Known::new(Dtype::Int8, &axes));
        let whole = whole(&open);
        let offsets = [0, 1, 2, 3].map(|trace| field(&whole[3600 + trace * 284..], 37, 4));
        assert_eq!((offsets, field(&whole, 3213, 2), field(&whole, 3229, 2)), ([250, 300, 350, 250], 3, 2));
        assert!(text_of(&open).contains("GATHERS OF 3 TRACES") && text_of(&open).contains("105 TRACES"));
    }

    fn dtype() -> impl Strategy<Value = Dtype> {
        prop::sample::select(vec![
            Dtype::Int8,
            Dtype::UInt16,
            Dtype::Float16,
            Dtype::Float32,
            Dtype::Float64,
            Dtype::Int32,
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_box_has_the_traces_of_the_whole(
            dims in [(0u64..3, 1u64..4, 0u64..3), (0u64..3, 1u64..4, 0u64..3), (0u64..3, 1u64..4, 0u64..3), (0u64..3, 1u64..4, 0u64..3)],
        ) {
            let (start, shape) = (dims.map(|dim| dim.0).into(), dims.map(|dim| dim.1).into());
            check_box(dims.map(|(before, count, after)| before + count + after), Region { start, shape });
        }

        /// Compares with a file that is put together by hand: header, then the values of `lod0.float32.npy` turned
        /// around.
        #[test]
        fn any_range_of_bytes_is_that_of_the_whole_file(
            shape in [1u64..4, 1u64..4, 1u64..9], dtype in dtype(), is_scaled in any::<bool>(),
            ends in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
        ) {
            let mut axes = AXES;
            (0..3).for_each(|axis| axes[axis].3 = shape[axis]);
            let scaling = (is_scaled && dtype.is_integer()).then(|| Scaling::of_codes(0.125, 1.5));
            let open = survey(&axes, dtype, scaling);
            let file = file(&open);
            let whole = whole(&open);
            prop_assert_eq!(file.len(), whole.len() as u64);
            let mut ends = ends.map(|end| end.index(whole.len() + 1));
            ends.sort_unstable();
            if ends[0] < ends[1] {
                let (got, _) = read_known(&file, ends[0] as u64..ends[1] as u64);
                prop_assert_eq!(&got, &whole[ends[0]..ends[1]]);
            }
            let values = values(&open, dtype, scaling);
            for (number, trace) in whole[3600..].chunks(240 + shape[2] as usize * 4).enumerate() {
                let expected = &values[number * shape[2] as usize..][..shape[2] as usize];
                let got: Vec<u32> = trace[240..].chunks(4).map(|v| u32::from_be_bytes(v.try_into().unwrap())).collect();
                prop_assert_eq!(got, expected);
            }
        }
    }

    /// The bits of the values of all samples.
    fn values(open: &OpenDataset, dtype: Dtype, scaling: Option<Scaling>) -> Vec<u32> {
        let array = &layer(open, 0).levels()[0];
        let mut file = ArrayFile::new(Vec::new(), array);
        if dtype == Dtype::Float16 {
            let (stored, _) = read_known(&Content::Array(file.clone()), 0..file.len());
            return stored.as_chunks().0.iter().map(|value| half(*value).to_bits()).collect();
        }
        if dtype != Dtype::Float32 {
            file = file.float32(scaling.unwrap_or(Scaling { is_code: false, ..Scaling::of_codes(1.0, 0.0) }));
        }
        let content = Content::Array(file);
        let (values, _) = read_known(&content, 0..content.len());
        values.chunks(4).map(|value| u32::from_le_bytes(value.try_into().unwrap())).collect()
    }
}
