//! Tests of `lod0.sgy` as a whole: every field at its byte, every range of bytes, and what is not shown.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;

use super::SurveySegy;
use super::fixture::{Known, geometry, open, read};
use crate::catalog::OpenDataset;
use crate::view::file::{ComputedFile, Content};
use crate::view::virtual_file::{LayerRef, View};
use crate::view::{ArrayFile, json};
use crate::volume::{Dtype, Geometry, Scaling};

/// Names, first positions, steps and counts of three axes.
type Axes = [(&'static str, f64, f64, u64); 3];

const AXES: Axes = [("inline", 100.0, -2.0, 5), ("crossline", 2000.0, 3.0, 7), ("sample", -12.0, 4.0, 11)];
const TRACE: usize = 240 + 11 * 4;

fn survey(axes: &Axes, dtype: Dtype, scaling: Option<Scaling>) -> OpenDataset {
    let mut array = Known::new(dtype, axes);
    array.info.scaling = scaling;
    open("zgy", Some(geometry()), array)
}

fn layer(open: &OpenDataset) -> LayerRef<'_> {
    LayerRef { open, layer: 0, views: &[&SurveySegy] }
}

fn file(open: &OpenDataset) -> Arc<dyn ComputedFile> {
    match SurveySegy.content(layer(open), 0).unwrap() {
        Content::Computed(file) => file,
        _ => unreachable!(),
    }
}

/// Reads bytes of a file whose array has the samples of [`Known::new`].
fn bytes(file: &Arc<dyn ComputedFile>, bytes: Range<u64>) -> (Vec<u8>, u64) {
    read(Arc::clone(file), bytes, &|array| {
        let info = array.info();
        let axes: Vec<_> = info.axes.iter().map(|a| (a.name.as_str(), a.first, a.step, a.count)).collect();
        Known::new(info.dtype, &axes).samples
    })
}

fn whole(open: &OpenDataset) -> Vec<u8> {
    let file = file(open);
    bytes(&file, 0..file.len()).0
}

/// The big-endian number of `length` bytes at a byte that the standard numbers from 1.
fn field(of: &[u8], byte: usize, length: usize) -> i64 {
    let number = of[byte - 1..byte - 1 + length].iter().fold(0i64, |number, byte| number << 8 | i64::from(*byte));
    let bits = 64 - 8 * length as u32;
    number << bits >> bits
}

#[test]
fn fields_are_at_their_bytes() {
    let open = survey(&AXES, Dtype::Float32, None);
    let whole = whole(&open);
    assert_eq!(whole.len(), 3600 + 35 * TRACE);
    // byte, length, value; whatever is not named is 0
    let binary = [
        (3205, 4, 1),
        (3209, 4, 1),
        (3213, 2, 1),
        (3217, 2, 4000),
        (3219, 2, 4000),
        (3221, 2, 11),
        (3223, 2, 11),
        (3225, 2, 5),
        (3227, 2, 1),
        (3229, 2, 4),
        (3255, 2, 1),
        (3501, 2, 0x0100),
        (3503, 2, 1),
        (3505, 2, 0),
    ];
    check(&whole[..3600], 3200, &binary);
    for (number, inline, crossline, x, y) in [
        (0, 100, 2000, 43_196_475, 634_856_525),
        (1, 100, 2003, 43_195_250, 634_856_825),
        (7, 98, 2000, 43_196_825, 634_857_738),
        (34, 92, 2018, 43_190_525, 634_863_175),
    ] {
        let trace = [
            (1, 4, number + 1),
            (5, 4, number + 1),
            (9, 4, inline),
            (21, 4, crossline),
            (29, 2, 1),
            (37, 4, 0),
            (69, 2, 1),
            (71, 2, -100),
            (73, 4, x),
            (77, 4, y),
            (81, 4, x),
            (85, 4, y),
            (89, 2, 1),
            (109, 2, -12),
            (115, 2, 11),
            (117, 2, 4000),
            (181, 4, x),
            (185, 4, y),
            (189, 4, inline),
            (193, 4, crossline),
        ];
        check(&whole[3600 + number as usize * TRACE..][..240], 0, &trace);
    }
}

/// Checks the fields of a header from byte `before` on, and that all other bytes are 0.
fn check(header: &[u8], before: usize, fields: &[(usize, usize, i64)]) {
    let mut others = header.to_vec();
    for &(byte, length, value) in fields {
        assert_eq!(field(header, byte, length), value, "byte {byte}");
        others[byte - 1..byte - 1 + length].fill(0);
    }
    assert!(others[before..].iter().all(|byte| *byte == 0), "there is another field");
}

#[test]
fn the_textual_header_says_where_it_comes_from() {
    let scaling = Scaling { no_value: Some(7.0), ..Scaling::of_codes(0.25, -3.0) };
    let mut array = Known::new(Dtype::Int16, &AXES);
    (array.info.scaling, array.info.no_value, array.info.value_range) = (Some(scaling), Some(7.0), Some((-1.5, 2.0)));
    let system = "PROJCS[".to_owned() + &"λ".repeat(500);
    let open = open("zgy", Some(Geometry { coordinate_system: Some(system), ..geometry() }), array);
    let whole = whole(&open);
    let decoded = decode(&whole[..3200]);
    let lines: Vec<&str> = decoded.as_bytes().chunks(80).map(|line| str::from_utf8(line).unwrap()).collect();
    for (at, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("C{:>2} ", at + 1)), "{line}");
    }
    let text: Vec<&str> = lines.iter().map(|line| line[4..].trim_end()).collect();
    for expected in [
        concat!("VOLFS ", env!("CARGO_PKG_VERSION"), ": LOD 0 OF A VOLUME AS SEG-Y"),
        "DATASET: north.zgy",
        "LAYER: amplitude, FORMAT: ZGY",
        "SAMPLES: IEEE FLOAT, BIG-ENDIAN; STORED AS INT16",
        "VALUE RANGE: -1.5 TO 2",
        "VALUE = STORED * 0.25 + -3",
        "SAMPLES WITHOUT A VALUE (STORED AS 7) ARE 0",
        "INLINES: 5 FROM 100 STEP -2",
        "CROSSLINES: 7 FROM 2000 STEP 3",
        "SAMPLES OF A TRACE (SAMPLE): 11 FROM -12 ms STEP 4000 us",
        "ORDER OF TRACES: CROSSLINES FASTEST, 35 TRACES",
        "CDP X AND Y: m, ROUNDED TO 0.01 (SCALAR -100)",
        "LAST TRACE AT X 431905.25 Y 6348631.75",
        "INLINE 189-192 (AND 9-12), CROSSLINE 193-196 (AND 21-24)",
    ] {
        assert!(text.contains(&expected), "{expected} is not in {text:#?}");
    }
    assert!(text.iter().any(|line| line.starts_with("COORDINATE SYSTEM: PROJCS[???")));
    assert_eq!(text[38..], ["SEG Y REV1", "END TEXTUAL HEADER"]);
}

/// Decodes the letters, digits and marks of EBCDIC that the header has.
fn decode(bytes: &[u8]) -> String {
    let of = |byte: &u8| (' '..='~').find(|character| super::headers::byte(*character) == *byte);
    bytes.iter().map(|byte| of(byte).unwrap()).collect()
}

#[test]
fn names_that_are_long_take_more_lines_and_leave_the_last_ones() {
    let mut open = survey(&AXES, Dtype::Float32, None);
    open.name = "a".repeat(255);
    assert_eq!(decode(&whole(&open)[..3200]).matches("aaaaaa").count(), 41);
    open.name = "a".repeat(9000);
    assert!(decode(&whole(&open)[..3200]).trim_end().ends_with("C40 END TEXTUAL HEADER"));
}

#[test]
fn crosslines_may_come_first() {
    let [inlines, crosslines, samples] = AXES;
    let open = survey(&[crosslines, inlines, samples], Dtype::Float32, None);
    let whole = whole(&open);
    for (number, inline, crossline, x) in
        [(0, 100, 2000, 43_196_475), (1, 98, 2000, 43_196_825), (5, 100, 2003, 43_195_250)]
    {
        let header = &whole[3600 + number * TRACE..][..240];
        assert_eq!([189, 193, 181].map(|byte| field(header, byte, 4)), [inline, crossline, x], "{number}");
    }
    assert!(decode(&whole[..3200]).contains("ORDER OF TRACES: INLINES FASTEST"));
}

#[test]
fn without_positions_there_are_zeros() {
    let array = Known::new(Dtype::Float32, &AXES);
    let whole = whole(&open("vds", None, array));
    assert_eq!([71, 89].map(|byte| field(&whole[3600..], byte, 2)), [1, 1]);
    assert_eq!([181, 185, 73].map(|byte| field(&whole[3600..], byte, 4)), [0; 3]);
    assert!(decode(&whole[..3200]).contains("CDP X AND Y: UNKNOWN"));
}

#[test]
fn what_cannot_be_segy_is_not_listed_and_dataset_json_says_why() {
    let [inlines, crosslines, samples] = AXES;
    let with = |axes: &[(&str, f64, f64, u64)]| open("vds", Some(geometry()), Known::new(Dtype::UInt8, axes));
    for (open, reason) in [
        (with(&[inlines, crosslines, ("sample", 0.0, 4.0, 65536)]), "65535 at most"),
        (with(&[inlines, crosslines, ("sample", 0.0, 3.3333, 9)]), "us apart"),
        (with(&[inlines, crosslines, ("sample", 0.25, 4.0, 9)]), "begin at 0.25 ms"),
        (with(&[("inline", 1.5, 1.0, 2), crosslines, samples]), "inline are not whole: they begin at 1.5"),
        (with(&[inlines, ("crossline", 1.0, 0.5, 2), samples]), "crossline are not whole"),
        (with(&[inlines, ("crossline", 1.0, 0.0, 2), samples]), "the same number"),
        (with(&[inlines, ("crossline", 4e9, 1.0, 2), samples]), "do not fit 32 bits"),
        (with(&[inlines, ("crossline", 2_147_483_000.0, 1.0, 700), samples]), "do not fit 32 bits"),
        (with(&[crosslines, samples]), "its axes are crossline, sample"),
        (with(&[inlines, samples, crosslines]), "no 3D survey"),
        (with(&[inlines, crosslines, ("trace", 1.0, 1.0, 2), samples]), "no 3D survey"),
        (with(&[inlines, crosslines, ("value", 0.0, 1.0, 240)]), "no 3D survey"),
        (with(&[inlines, crosslines, ("sample", 0.0, 4.0, 0)]), "no samples"),
    ] {
        let layer = layer(&open);
        assert_eq!((SurveySegy.nodes(layer), SurveySegy.find(layer, None, "lod0.sgy")), (0, None), "{reason}");
        SurveySegy.list(layer, None, &mut |entry| panic!("{entry:?} is listed"));
        let hidden = &json::layers(&open, &[&SurveySegy])[0]["hidden_files"];
        assert_eq!((hidden[0]["name"].as_str(), hidden.as_array().unwrap().len()), (Some("lod0.sgy"), 1));
        assert!(hidden[0]["reason"].as_str().unwrap().contains(reason), "{hidden} is not {reason}");
        assert!(SurveySegy.content(layer, 0).is_err());
    }
    let shown = with(&AXES);
    assert_eq!(SurveySegy.nodes(layer(&shown)), 1);
    assert_eq!(json::layers(&shown, &[&SurveySegy])[0]["hidden_files"], serde_json::json!([]));
    // voxels are no survey, whatever their axes are called
    let voxels = open("wkw", None, Known::new(Dtype::UInt8, &AXES));
    assert_eq!((SurveySegy.nodes(layer(&voxels)), SurveySegy.hidden(layer(&voxels))), (0, None));
}

#[test]
fn only_the_samples_in_a_range_are_read() {
    let open = survey(&AXES, Dtype::Float32, None);
    let file = file(&open);
    let samples = |from: u64, to: u64| bytes(&file, from..to).1;
    let trace = |number: u64| 3600 + number * TRACE as u64;
    assert_eq!(samples(0, 3600), 0);
    assert_eq!(samples(3500, trace(0) + 240), 0);
    assert_eq!(samples(trace(0) + 239, trace(0) + 241), 1);
    assert_eq!(samples(trace(3) + 241, trace(3) + 249), 3);
    assert_eq!(samples(trace(3) + 276, trace(5) + 244), 2 + 11 + 1);
    assert_eq!(samples(0, file.len()), 35 * 11);
    // one that is longer than a part
    let long = survey(&[AXES[0], AXES[1], ("sample", 0.0, 1.0, 20_000)], Dtype::UInt8, None);
    let file = self::file(&long);
    let (got, read) = bytes(&file, 5..file.len() - 3);
    assert!(got == whole(&long)[5..file.len() as usize - 3], "bytes differ");
    // a sample on the border of two parts is read for both
    assert!((35 * 20_000..35 * 20_000 + 5).contains(&read), "{read}");
}

#[test]
fn files_of_other_surveys_have_other_fingerprints() {
    let of = |axes: &Axes, dtype| file(&survey(axes, dtype, None)).fingerprint();
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

fn dtype() -> impl Strategy<Value = Dtype> {
    prop::sample::select(vec![Dtype::Int8, Dtype::UInt16, Dtype::Float32, Dtype::Float64, Dtype::Int32])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Compares with a file that is put together by hand: header, then the values of `lod0.float32.npy` turned around.
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
            let (got, _) = bytes(&file, ends[0] as u64..ends[1] as u64);
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
    let array = Arc::clone(&layer(open).levels()[0]);
    let axes: Vec<_> = array.info().axes.iter().map(|a| (a.name.as_str(), a.first, a.step, a.count)).collect();
    let samples = Known::new(dtype, &axes).samples;
    let little = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    if dtype == Dtype::Float32 {
        return samples.chunks(4).map(little).collect();
    }
    let scaling = scaling.unwrap_or(Scaling { is_code: false, ..Scaling::of_codes(1.0, 0.0) });
    let file = ArrayFile::float32(Vec::new(), array, scaling);
    let buffers = crate::memory::BufferPool::new(0);
    let mut stored = buffers.take(samples.len());
    stored.copy_from_slice(&samples);
    let slice = file.slice(0, file.len() as u32);
    file.assemble(&slice, stored, &buffers).unwrap().chunks(4).map(little).collect()
}
