//! Tests of `original.sgy` as a whole, against files that are put together trace by trace.

use std::sync::Arc;

use proptest::prelude::*;

use super::fixture::{Known, Layers, dataset, read, try_read};
use super::original::{Arrays, OriginalFile};
use super::traces::{TraceCounts, TraceOrder};
use super::{OriginalSegy, original};
use crate::format::{Array, Layer, SegyImport, SegySample};
use crate::view::file::ComputedFile;
use crate::view::virtual_file::{LayerRef, View};
use crate::volume::{DatasetInfo, Dims, Dtype, NativeJson};

/// A survey that comes from a SEG-Y file.
struct Survey {
    import: SegyImport,
    samples: Arc<Known>,
    traces: Arc<Known>,
    headers: Arc<Known>,
}

/// Creates a grid of traces of `count` samples, of which those are there for which `is_live` holds.
fn survey(grid: Dims, count: u64, sample: SegySample, is_live: impl Fn(u64) -> bool) -> Survey {
    let with = |dtype, last: u64| {
        let mut axes: Vec<_> = grid.iter().map(|count| ("line", 1.0, 1.0, *count)).collect();
        axes.push(("last", 0.0, 1.0, last));
        // bricks that do not fit, and that hold whole traces
        let step = Dims::from_fn(axes.len(), |axis| if axis == grid.len() { last } else { 2 });
        Known::new(dtype, &axes).in_bricks(step)
    };
    let dtype = match sample.size() {
        1 => Dtype::UInt8,
        2 => Dtype::UInt16,
        _ => Dtype::Float32,
    };
    let mut traces = with(Dtype::UInt8, 1);
    (0..).zip(&mut traces.samples).for_each(|(number, live)| *live = u8::from(is_live(number)) * 3);
    let import = SegyImport {
        headers: (0..3600u32).map(|n| (n % 251) as u8).collect(),
        sample,
        little_headers: false,
        little_samples: false,
        samples: 0,
        traces: 1,
        trace_headers: 2,
        sorted_by: None,
        file_bytes: None,
    };
    let headers = Arc::new(with(Dtype::UInt8, 240));
    Survey { import, samples: Arc::new(with(dtype, count)), traces: Arc::new(traces), headers }
}

impl Survey {
    fn arrays(&self) -> Arrays {
        Arrays { samples: self.samples.clone(), traces: self.traces.clone(), headers: self.headers.clone() }
    }

    /// Returns the whole file with the traces in an order, made trace by trace.
    fn made(&self, grid: Dims, order: &TraceOrder) -> Vec<u8> {
        let mut made = self.import.headers.to_vec();
        let mut positions: Vec<(u64, u64)> =
            (0..order.positions()).map(|at| (order.number_of(&grid.index_of(at)), at)).collect();
        positions.sort_unstable();
        for (_, at) in positions.into_iter().filter(|(_, at)| self.traces.samples[*at as usize] != 0) {
            made.extend(&self.headers.samples[at as usize * 240..][..240]);
            let bytes = self.samples.samples.len() / self.traces.samples.len();
            let stored = &self.samples.samples[at as usize * bytes..][..bytes];
            match self.import.sample {
                SegySample::Float => made.extend(stored.chunks(4).flat_map(|v| v.iter().rev())),
                SegySample::Int16 => made.extend(stored.chunks(2).flat_map(|v| [v[1] ^ 0x80, v[0]])),
                _ => made.extend(stored.iter().map(|v| v ^ 0x80)),
            }
        }
        made
    }

    fn samples_of(&self, array: &dyn Array) -> Vec<u8> {
        let all = [&self.samples, &self.traces, &self.headers];
        all.into_iter().find(|known| known.info.id == array.info().id).unwrap().samples.clone()
    }

    fn file(&self, counts: TraceCounts) -> Arc<dyn ComputedFile> {
        Arc::new(OriginalFile::new(self.import.clone(), self.arrays(), Arc::new(counts)).unwrap())
    }
}

fn sample() -> impl Strategy<Value = SegySample> {
    prop::sample::select(vec![SegySample::Float, SegySample::Int16, SegySample::Int8])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_range_of_bytes_is_that_of_the_whole_file(
        grid in prop::collection::vec(1u64..6, 1..4), count in 1u64..9, sample in sample(), seed in any::<u64>(),
        holes in 0u64..4, block in 1u64..9, order in any::<prop::sample::Index>(),
        ends in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
    ) {
        let grid = Dims::from_slice(&grid).unwrap();
        // from none to three quarters of all
        let is_live = |at: u64| (at + 1).wrapping_mul(seed | 1) >> 33 & 3 >= holes;
        let survey = survey(grid, count, sample, is_live);
        let orders = TraceOrder::all(grid);
        let order = orders[order.index(orders.len())];
        let whole = survey.made(grid, &order);
        let file = survey.file(TraceCounts::count_in_blocks(&*survey.traces, order, block).unwrap());
        prop_assert_eq!(file.len(), whole.len() as u64);
        let mut ends = ends.map(|end| end.index(whole.len() + 1));
        ends.sort_unstable();
        for range in [ends[0]..ends[1], 0..whole.len()].into_iter().filter(|range| !range.is_empty()) {
            let bytes = range.start as u64..range.end as u64;
            let (got, _) = read(file.clone(), bytes, &|array| survey.samples_of(array));
            prop_assert!(got == whole[range.clone()], "{range:?} of {order:?}");
        }
    }

    #[test]
    fn the_order_is_found_by_the_numbers_of_traces(
        grid in prop::collection::vec(1u64..7, 1..4), seed in any::<u64>(), first in -3i64..1000,
        order in any::<prop::sample::Index>(), field in prop::sample::select(vec![0usize, 4]), little in any::<bool>(),
        is_full in any::<bool>(),
    ) {
        let grid = Dims::from_slice(&grid).unwrap();
        let is_live = |at: u64| is_full || (at + 1).wrapping_mul(seed | 1) >> 33 & 3 > 0;
        let mut survey = survey(grid, 1, SegySample::Int8, is_live);
        let orders = TraceOrder::all(grid);
        let order = orders[order.index(orders.len())];
        let headers = Arc::get_mut(&mut survey.headers).unwrap();
        let mut positions: Vec<(u64, usize)> =
            (0..order.positions()).map(|at| (order.number_of(&grid.index_of(at)), at as usize)).collect();
        positions.sort_unstable();
        let live = positions.iter().filter(|(_, at)| survey.traces.samples[*at] != 0);
        for (number, (_, at)) in (first..).zip(live) {
            let number = number as i32;
            let bytes = if little { number.to_le_bytes() } else { number.to_be_bytes() };
            headers.samples[at * 240 + field..][..4].copy_from_slice(&bytes);
        }
        survey.import.little_headers = little;
        let counts = original::count(&survey.import, &*survey.traces, &*survey.headers).unwrap();
        // two orders may be the same for what there is
        prop_assert!(survey.made(grid, counts.order()) == survey.made(grid, &order), "{:?}", counts.order());
    }
}

#[test]
fn without_numbers_the_import_tells_the_order() {
    let grid = Dims::from([3, 4]);
    let mut survey = survey(grid, 2, SegySample::Int8, |_| true);
    Arc::get_mut(&mut survey.headers).unwrap().samples.fill(7);
    let order = |import: &SegyImport| *original::count(import, &*survey.traces, &*survey.headers).unwrap().order();
    assert_eq!(order(&survey.import), TraceOrder::of_arrays(grid));
    for (axis, sorted) in
        [(0, TraceOrder::of_arrays(grid)), (1, TraceOrder::sorted_by(grid, 1)), (9, TraceOrder::of_arrays(grid))]
    {
        assert_eq!(order(&SegyImport { sorted_by: Some(axis), ..survey.import.clone() }), sorted);
    }
}

#[test]
fn a_file_without_traces_has_its_headers() {
    let survey = survey([3, 4].into(), 2, SegySample::Float, |_| false);
    let counts = original::count(&survey.import, &*survey.traces, &*survey.headers).unwrap();
    let file = survey.file(counts);
    assert_eq!(file.len(), 3600);
    assert_eq!(read(file, 10..3600, &|_| unreachable!()).0, survey.import.headers[10..]);
}

#[test]
fn samples_are_read_only_where_they_are_needed() {
    let survey = survey([30, 40].into(), 500, SegySample::Int16, |at| at % 7 != 3);
    let counts = TraceCounts::count(&*survey.traces, TraceOrder::of_arrays([30, 40].into())).unwrap();
    let file = survey.file(counts);
    let read = |from, to| read(file.clone(), from..to, &|array| survey.samples_of(array)).1;
    let trace = |number: u64| 3600 + number * 1240;
    assert_eq!(read(0, 3600), 0);
    // which traces there are is looked up in the rest of a block
    let positions = 1024 + 176;
    assert!(read(trace(5), trace(5) + 240) <= 240 + positions);
    assert!(read(trace(5) + 240, trace(5) + 242) <= 1 + positions);
    assert!(read(trace(5) + 1240, trace(7) + 250) <= 240 + 500 + 240 + 5 + positions);
}

#[test]
fn a_sample_that_may_have_been_several_fails_the_read_that_touches_it() {
    let mut survey = survey([2, 3].into(), 4, SegySample::Int32, |_| true);
    let samples = &mut Arc::get_mut(&mut survey.samples).unwrap().samples;
    samples.chunks_mut(4).for_each(|sample| sample.copy_from_slice(&100f32.to_le_bytes()));
    samples[5 * 16 + 4..][..4].copy_from_slice(&16_777_216f32.to_le_bytes());
    let file = survey.file(TraceCounts::count(&*survey.traces, TraceOrder::of_arrays([2, 3].into())).unwrap());
    let read = |from, to| try_read(file.clone(), from..to, &|array| survey.samples_of(array));
    let bad = 3600 + 5 * 256 + 240 + 4;
    assert!(read(0, bad).is_ok() && read(bad + 4, file.len()).is_ok());
    assert_eq!(read(bad - 4, bad).unwrap().0, 100i32.to_be_bytes());
    for range in [(bad, bad + 1), (bad + 3, bad + 4), (0, file.len())] {
        let error = read(range.0, range.1).unwrap_err().to_string();
        assert!(error.contains("float32 does not hold all"), "{error}");
    }
}

/// Opens a dataset of three layers.
fn open(survey: &Survey, import: Result<SegyImport, String>) -> crate::catalog::OpenDataset {
    let arrays = [&survey.samples, &survey.traces, &survey.headers];
    let layer = |array: &Arc<Known>| Layer {
        name: "a".into(),
        levels: vec![array.clone() as Arc<dyn Array>],
        native: NativeJson::new(),
    };
    dataset("vds", Layers(DatasetInfo::default(), arrays.map(layer).into(), Some(import)))
}

#[test]
fn a_file_that_cannot_be_made_is_not_shown() {
    let survey = survey([2, 3].into(), 4, SegySample::Int8, |at| at != 4);
    let traces = |count: u64| 3600 + count * 244;
    let with = |bytes| Ok(SegyImport { file_bytes: bytes, ..survey.import.clone() });
    for (import, reason) in [
        (Err("it was lossy".to_owned()), "it was lossy"),
        (with(Some(traces(5) + 1)), "no whole number of traces"),
        (with(Some(100)), "no whole number of traces"),
        (with(Some(traces(7))), "the file had 7 traces, and there is room for 6"),
        (Ok(SegyImport { traces: 5, ..survey.import.clone() }), "a layer is not there"),
    ] {
        let open = open(&survey, import);
        let layer = |layer| LayerRef { open: &open, layer, views: &[&OriginalSegy] };
        assert_eq!((OriginalSegy.nodes(layer(0)), OriginalSegy.find(layer(0), None, "original.sgy")), (0, None));
        let (name, why) = OriginalSegy.hidden(layer(0)).unwrap();
        assert!(name == "original.sgy" && why.contains(reason), "{why}");
        assert_eq!(OriginalSegy.hidden(layer(1)), None);
        assert!(OriginalSegy.content(layer(0), 0).is_err());
    }
    for bytes in [None, Some(traces(5))] {
        let open = open(&survey, with(bytes));
        let layer = |layer| LayerRef { open: &open, layer, views: &[&OriginalSegy] };
        assert_eq!([0, 1, 2].map(|number| OriginalSegy.nodes(layer(number))), [1, 0, 0]);
        assert_eq!(OriginalSegy.content(layer(0), 0).unwrap().len(), traces(5));
        assert_eq!((OriginalSegy.hidden(layer(0)), layer(0).files_of(0)), (None, vec![]));
    }
}

#[test]
fn a_file_that_has_lost_traces_is_shown_until_they_are_counted() {
    let survey = survey([2, 3].into(), 4, SegySample::Int8, |at| at != 4);
    let open = open(&survey, Ok(SegyImport { file_bytes: Some(3600 + 6 * 244), ..survey.import.clone() }));
    let layer = LayerRef { open: &open, layer: 0, views: &[&OriginalSegy] };
    assert!(OriginalSegy.find(layer, None, "original.sgy").is_some());
    let Err(error) = OriginalSegy.content(layer, 0) else { panic!("it is made") };
    assert!(error.to_string().contains("the file had 5064 bytes, but the traces that the import kept have 4820"));
    assert_eq!(OriginalSegy.find(layer, None, "original.sgy"), None);
    assert!(OriginalSegy.hidden(layer).unwrap().1.contains("4820"));
    // inode numbers do not depend on what is known
    assert_eq!(OriginalSegy.nodes(layer), 1);
}
