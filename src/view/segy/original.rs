//! `original.sgy`: the SEG-Y file that a dataset was imported from, byte for byte.

use std::ops::Range;
use std::sync::Arc;

use super::headers::{HEADERS, TRACE_HEADER, samples_in};
use super::traces::{LiveTraces, MAX_POSITIONS, Place, TraceCounts};
use crate::format::{Array, FormatError, Layer, SegyImport, SegySample};
use crate::sync::Mutex;
use crate::view::entry::{Entry, File, Kind};
use crate::view::segments::{ComputedFile, Content, NextSegment, Segment};
use crate::view::{LayerRef, View, hash_of};

const NAME: &str = "original.sgy";

/// The view of the layer with the samples of the file.
pub(crate) const ORIGINAL: View = View { hidden, ..View::new(Some("segy"), entries) };

fn entries(layer: LayerRef<'_>) -> Vec<Entry> {
    let is_there = |layer: LayerRef<'_>| matches!(known(layer), Some(Ok(())));
    let file = || File { may_block: true, is_there, ..File::new(content) };
    let entry = || Entry::new(NAME, Kind::File(file()));
    matches!(Original::of(layer), Some(Ok(_))).then(entry).into_iter().collect()
}

fn hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    known(layer)?.err().map(|reason| (NAME.to_owned(), reason))
}

/// Counts the traces, at the first time.
fn content(layer: LayerRef<'_>) -> Result<Content, FormatError> {
    let absent = || FormatError::Unsupported("it does not come from a SEG-Y file".into());
    let original = Original::of(layer).ok_or_else(absent)?.map_err(FormatError::Unsupported)?;
    let counts = TraceCounts::of(&original.import, &*original.traces, &*original.headers)?;
    original.check_length(&counts).map_err(FormatError::Unsupported)?;
    Ok(Content::Computed(Arc::new(OriginalFile { original, counts })))
}

/// Returns whether the file is shown, or why it is not, by all that is known so far: once its traces have been counted,
/// it may turn out that some were lost.
fn known(layer: LayerRef<'_>) -> Option<Result<(), String>> {
    let known = |original: Original| match TraceCounts::known(&*original.traces) {
        Some(counts) => original.check_length(&counts),
        None => Ok(()),
    };
    Some(Original::of(layer)?.and_then(known))
}

struct Original {
    import: SegyImport,
    /// The arrays at LOD 0: the samples, whether there is a trace, and the headers of the traces.
    samples: Arc<dyn Array>,
    traces: Arc<dyn Array>,
    headers: Arc<dyn Array>,
    /// The bytes of a trace with its header.
    trace_bytes: u64,
}

impl Original {
    /// Returns what the file of a layer is made of, or why it cannot be made; `None` if the layer is not the one with
    /// the samples of a SEG-Y file.
    fn of(layer: LayerRef<'_>) -> Option<Result<Self, String>> {
        match layer.open.dataset.segy_import()? {
            Ok(import) if import.samples == layer.layer => Some(Self::new(import, layer.open.dataset.layers())),
            // the samples are in the first layer
            Err(reason) if layer.layer == 0 => Some(Err(reason.to_owned())),
            _ => None,
        }
    }

    fn new(import: &SegyImport, layers: &[Layer]) -> Result<Self, String> {
        let finest = |number: usize| layers.get(number).and_then(|layer| layer.levels.first()).map(Arc::clone);
        let arrays = [import.samples, import.traces, import.trace_headers].map(finest);
        let [Some(samples), Some(traces), Some(headers)] = arrays else { return Err("a layer is not there".into()) };
        let positions = traces.info().shape().product().unwrap_or(u64::MAX);
        if positions > MAX_POSITIONS {
            return Err(format!("it has room for {positions} traces, which are too many"));
        }
        let count = samples.info().shape().last().copied().unwrap_or(0);
        let trace_bytes = TRACE_HEADER.saturating_add(count.saturating_mul(import.sample.size() as u64));
        if let Some(bytes) = import.file_bytes {
            let of_traces = bytes.checked_sub(HEADERS).filter(|bytes| bytes % trace_bytes == 0);
            let count = of_traces.map(|bytes| bytes / trace_bytes).ok_or_else(|| {
                format!("the file had {bytes} bytes, which are no whole number of traces of {trace_bytes} bytes")
            })?;
            if count > positions {
                return Err(format!("the file had {count} traces, and there is room for {positions}"));
            }
        }
        Ok(Self { import: import.clone(), samples, traces, headers, trace_bytes })
    }

    fn length(&self, counts: &TraceCounts) -> u64 {
        counts.traces().saturating_mul(self.trace_bytes).saturating_add(HEADERS)
    }

    /// Checks that the file has as many bytes as the import says.
    fn check_length(&self, counts: &TraceCounts) -> Result<(), String> {
        let bytes = self.length(counts);
        match self.import.file_bytes {
            Some(had) if had != bytes => {
                Err(format!("original.sgy: the file had {had} bytes, but the traces that the import kept have {bytes}"))
            }
            _ => Ok(()),
        }
    }
}

struct OriginalFile {
    original: Original,
    counts: Arc<TraceCounts>,
}

impl OriginalFile {
    /// Returns the segment with the first of some bytes: the headers of the file, the header of a trace, or its
    /// samples.
    fn segment(&self, bytes: &Range<u64>, traces: &Arc<Mutex<LiveTraces>>) -> Segment {
        let Original { import, trace_bytes, .. } = &self.original;
        let Some(at) = bytes.start.checked_sub(HEADERS) else { return Segment::Bytes(0, Arc::clone(&import.headers)) };
        let (trace, order) = (at / trace_bytes, &self.counts.order);
        let place = traces.lock().find(trace);
        let position = match place {
            Place::At(position) => position,
            Place::Unknown(positions) => {
                let (values, traces) = (order.samples(&self.original.traces, &positions, &(0..1)), Arc::clone(traces));
                let look = move |values: &[u8], _: &mut [u8]| {
                    traces.lock().saw(positions, values);
                    Ok(())
                };
                return Segment::Samples(bytes.start..bytes.start, values, Some(Box::new(look)));
            }
            Place::Nowhere => {
                return Segment::Failed(FormatError::Damaged("there are fewer traces than there were".into()));
            }
        };
        let header = HEADERS + trace * trace_bytes;
        let body = header + TRACE_HEADER;
        let (array, area, sample) = match bytes.start < body {
            true => (&self.original.headers, header..body, SegySample::UInt8),
            false => (&self.original.samples, body..header + trace_bytes, import.sample),
        };
        let (bytes, values) = samples_in(bytes, &area, sample.size() as u64);
        let little = import.little_samples;
        let convert = move |stored: &[u8], out: &mut [u8]| match convert(sample, little, stored, out) {
            true => Ok(()),
            false => Err(FormatError::Unsupported(format!(
                "original.sgy: of a sample in trace {} it is not known which number of the file it was, since float32 \
                 does not hold all",
                trace + 1
            ))),
        };
        let samples = order.samples(array, &(position..position + 1), &values);
        Segment::Samples(bytes, samples, Some(Box::new(convert)))
    }
}

impl ComputedFile for OriginalFile {
    fn len(&self) -> u64 {
        self.original.length(&self.counts)
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.original.samples
    }

    fn fingerprint(&self) -> u64 {
        let import = &self.original.import;
        hash_of((&import.headers, import.sample.size(), import.little_samples, self.counts.traces()))
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        let traces = Arc::new(Mutex::new(LiveTraces::new(&self.counts)));
        Box::new(move |bytes| self.segment(&bytes, &traces))
    }
}

/// Integers up to this one are the same as float32; greater ones may have been rounded.
const EXACT: f32 = 16_777_216.0;

/// Writes the samples of the file that were stored as these. Returns false if one of them cannot be told: its value
/// does not occur in the type, or stands for several values of it.
fn convert(sample: SegySample, little: bool, stored: &[u8], out: &mut [u8]) -> bool {
    match sample {
        SegySample::Ibm => each(stored, out, |v| ibm(u32::from_le_bytes(v)).map(u32::to_be_bytes)),
        SegySample::Float => each(stored, out, |[a, b, c, d]| Some(if little { [a, b, c, d] } else { [d, c, b, a] })),
        SegySample::Int32 => each(stored, out, |v| {
            let whole = integer(f32::from_le_bytes(v))?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        SegySample::UInt32 => each(stored, out, |v| {
            let whole = u32::try_from(integer(f32::from_le_bytes(v))?).ok()?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        // two's complement and excess 32768 differ in the first bit
        SegySample::Int16 => each(stored, out, |[low, high]: [u8; 2]| {
            let high = high ^ 0x80;
            Some(if little { [low, high] } else { [high, low] })
        }),
        SegySample::UInt16 => each(stored, out, |[low, high]| Some(if little { [low, high] } else { [high, low] })),
        SegySample::Int8 => each(stored, out, |[v]: [u8; 1]| Some([v ^ 0x80])),
        SegySample::UInt8 => each(stored, out, |v: [u8; 1]| Some(v)),
    }
}

/// Converts each sample of `N` bytes; returns false if one cannot be told.
fn each<const N: usize>(stored: &[u8], out: &mut [u8], of: impl Fn([u8; N]) -> Option<[u8; N]>) -> bool {
    let ((from, _), (to, _)) = (stored.as_chunks::<N>(), out.as_chunks_mut::<N>());
    let mut all = true;
    for (from, to) in from.iter().zip(to) {
        match of(*from) {
            Some(sample) => *to = sample,
            None => all = false,
        }
    }
    all
}

/// Returns the integer that was rounded to a value; `None` if there may have been several.
fn integer(value: f32) -> Option<i32> {
    (value.abs() < EXACT && value.fract() == 0.0 && value.to_bits() != (-0.0f32).to_bits()).then_some(value as i32)
}

/// Returns the normalised number of IBM with the value of a float32, from bits to bits: a sign, an exponent of 16 of 7
/// bits and excess 64, and a fraction of 24 bits. `None` if there is no such number.
fn ibm(bits: u32) -> Option<u32> {
    let (sign, magnitude) = (bits & 1 << 31, bits & !(1 << 31));
    let (exponent, fraction) = ((magnitude >> 23) as i32, magnitude & 0x7f_ffff);
    let (exponent, fraction) = match exponent {
        _ if magnitude == 0 => return Some(sign),
        255 => return None,
        // without the hidden bit: brought to the same form
        0 => {
            let shift = fraction.leading_zeros() as i32 - 8;
            (1 - shift, fraction << shift)
        }
        _ => (exponent, fraction | 0x80_0000),
    };
    // the value is fraction / 2^24 * 2^(exponent - 126), and becomes ... * 16^(of_16 - 64)
    let of_16 = (exponent + 133) >> 2;
    let shift = 4 * (of_16 - 64) - (exponent - 126);
    let is_exact = fraction.trailing_zeros() as i32 >= shift && (0..128).contains(&of_16);
    is_exact.then_some(sign | (of_16 as u32) << 24 | fraction >> shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{Known, Layers, dataset, layer, names, read, try_read};
    use super::super::traces::{TraceOrder, count};
    use super::*;
    use crate::catalog::OpenDataset;
    use crate::view::entry::files_of_level;
    use crate::volume::{DatasetInfo, Dims, Dtype, NativeJson};

    /// The value of a number of IBM.
    fn value(number: u32) -> f64 {
        let fraction = f64::from(number & 0xff_ffff) / f64::from(1 << 24);
        let value = fraction * 16f64.powi((number >> 24 & 0x7f) as i32 - 64);
        if number >> 31 == 1 { -value } else { value }
    }

    #[test]
    fn numbers_of_ibm() {
        for (float, number) in [
            (1.0f32, 0x4110_0000u32),
            (-1.0, 0xc110_0000),
            (0.0, 0),
            (-0.0, 0x8000_0000),
            (-118.625, 0xc276_a000),
            (f32::from_bits(0x0020_0000), 0x2110_0000),
            (f32::MAX, 0x60ff_ffff),
        ] {
            assert_eq!(ibm(float.to_bits()), Some(number), "{float}");
        }
        // a number with more digits than fit, and none at all
        for float in [f32::from_bits(0x3f80_0001), f32::INFINITY, f32::NAN] {
            assert_eq!(ibm(float.to_bits()), None, "{float}");
        }
    }

    #[test]
    fn integers_beyond_the_exact_ones_cannot_be_told() {
        let told = |sample, value: f32| {
            let mut out = [0; 4];
            convert(sample, false, &value.to_le_bytes(), &mut out).then_some(u32::from_be_bytes(out))
        };
        assert_eq!(told(SegySample::Int32, -16_777_215.0), Some(-16_777_215i32 as u32));
        assert_eq!(told(SegySample::UInt32, 16_777_215.0), Some(16_777_215));
        for value in [16_777_216.0, -16_777_216.0, 0.5, f32::NAN, f32::INFINITY, -0.0] {
            assert_eq!(told(SegySample::Int32, value), None, "{value}");
        }
        assert_eq!(told(SegySample::UInt32, -1.0), None);
    }

    #[test]
    fn bytes_of_the_other_types() {
        let of = |sample, little, stored: &[u8]| {
            let mut out = vec![0; stored.len()];
            assert!(convert(sample, little, stored, &mut out));
            out
        };
        // 1 and -2, stored greater by 32768
        let int16 = [1, 0x80, 0xfe, 0x7f];
        assert_eq!(of(SegySample::Int16, false, &int16), [0, 1, 0xff, 0xfe]);
        assert_eq!(of(SegySample::Int16, true, &int16), [1, 0, 0xfe, 0xff]);
        assert_eq!(of(SegySample::UInt16, false, &int16), [0x80, 1, 0x7f, 0xfe]);
        assert_eq!(of(SegySample::UInt16, true, &int16), int16);
        assert_eq!(of(SegySample::Int8, false, &[0x81, 0x7e]), [1, 0xfe]);
        assert_eq!(of(SegySample::UInt8, true, &[0x81, 0x7e]), [0x81, 0x7e]);
        assert_eq!(of(SegySample::Float, false, &[1, 2, 3, 4]), [4, 3, 2, 1]);
        assert_eq!(of(SegySample::Float, true, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn every_normalised_number_comes_back(
            sign in 0u32..2, exponent in 28u32..96, fraction in 0x10_0000u32..0x100_0000,
        ) {
            let number = sign << 31 | exponent << 24 | fraction;
            let float = value(number) as f32;
            prop_assume!(f64::from(float) == value(number) && float.is_finite());
            prop_assert_eq!(ibm(float.to_bits()), Some(number));
        }

        #[test]
        fn what_comes_out_has_the_value(bits in any::<u32>()) {
            if let Some(number) = ibm(bits) {
                prop_assert_eq!(value(number), f64::from(f32::from_bits(bits)));
            }
        }
    }

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
        fn arrays(&self) -> [&Known; 3] {
            [&self.samples, &self.traces, &self.headers]
        }

        fn layers(&self) -> Vec<Layer> {
            let arrays = [&self.samples, &self.traces, &self.headers].map(|array| -> Arc<dyn Array> { array.clone() });
            let layer = |array| Layer { name: "a".into(), levels: vec![array], native: NativeJson::new() };
            arrays.map(layer).into()
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

        fn file(&self, counts: TraceCounts) -> Content {
            let original = Original::new(&self.import, &self.layers()).unwrap();
            Content::Computed(Arc::new(OriginalFile { original, counts: Arc::new(counts) }))
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
                let (got, _) = read(&file, bytes, &survey.arrays());
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
            let counts = count(&survey.import, &*survey.traces, &*survey.headers).unwrap();
            // two orders may be the same for what there is
            prop_assert!(survey.made(grid, &counts.order) == survey.made(grid, &order), "{:?}", counts.order);
        }
    }

    #[test]
    fn without_numbers_the_import_tells_the_order() {
        let grid = Dims::from([3, 4]);
        let mut survey = survey(grid, 2, SegySample::Int8, |_| true);
        Arc::get_mut(&mut survey.headers).unwrap().samples.fill(7);
        let order = |import: &SegyImport| count(import, &*survey.traces, &*survey.headers).unwrap().order;
        assert_eq!(order(&survey.import), TraceOrder::sorted_by(grid, 0));
        for (axis, sorted) in [
            (0, TraceOrder::sorted_by(grid, 0)),
            (1, TraceOrder::sorted_by(grid, 1)),
            (9, TraceOrder::sorted_by(grid, 0)),
        ] {
            assert_eq!(order(&SegyImport { sorted_by: Some(axis), ..survey.import.clone() }), sorted);
        }
    }

    #[test]
    fn a_file_without_traces_has_its_headers() {
        let survey = survey([3, 4].into(), 2, SegySample::Float, |_| false);
        let counts = count(&survey.import, &*survey.traces, &*survey.headers).unwrap();
        let file = survey.file(counts);
        assert_eq!(file.len(), 3600);
        assert_eq!(read(&file, 10..3600, &[]).0, survey.import.headers[10..]);
    }

    #[test]
    fn samples_are_read_only_where_they_are_needed() {
        let survey = survey([30, 40].into(), 500, SegySample::Int16, |at| at % 7 != 3);
        let counts = TraceCounts::count(&*survey.traces, TraceOrder::sorted_by([30, 40].into(), 0)).unwrap();
        let file = survey.file(counts);
        let read = |from, to| read(&file, from..to, &survey.arrays()).1;
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
        let file = survey.file(TraceCounts::count(&*survey.traces, TraceOrder::sorted_by([2, 3].into(), 0)).unwrap());
        let read = |from, to| try_read(&file, from..to, &survey.arrays());
        let bad = 3600 + 5 * 256 + 240 + 4;
        assert!(read(0, bad).is_ok() && read(bad + 4, file.len()).is_ok());
        assert_eq!(read(bad - 4, bad).unwrap().0, 100i32.to_be_bytes());
        for range in [(bad, bad + 1), (bad + 3, bad + 4), (0, file.len())] {
            let error = read(range.0, range.1).unwrap_err().to_string();
            assert!(error.contains("float32 does not hold all"), "{error}");
        }
    }

    /// Opens a dataset of three layers.
    fn open(survey: &Survey, import: Result<SegyImport, String>) -> OpenDataset {
        dataset("vds", Layers(DatasetInfo::default(), survey.layers(), Some(import)))
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
            assert_eq!(names(&open, &[ORIGINAL]), [[""; 0]; 3]);
            let (name, why) = (ORIGINAL.hidden)(layer(&open, 0)).unwrap();
            assert!(name == "original.sgy" && why.contains(reason), "{why}");
            assert_eq!((ORIGINAL.hidden)(layer(&open, 1)), None);
            assert!(content(layer(&open, 0)).is_err());
        }
        for bytes in [None, Some(traces(5))] {
            let open = open(&survey, with(bytes));
            assert_eq!(names(&open, &[ORIGINAL]), [&["original.sgy"][..], &[], &[]]);
            assert_eq!(content(layer(&open, 0)).unwrap().len(), traces(5));
            let shown = LayerRef { views: &[ORIGINAL], ..layer(&open, 0) };
            assert_eq!(((ORIGINAL.hidden)(shown), files_of_level(shown, 0)), (None, vec![]));
        }
    }

    #[test]
    fn a_file_that_has_lost_traces_is_shown_until_they_are_counted() {
        let survey = survey([2, 3].into(), 4, SegySample::Int8, |at| at != 4);
        let open = open(&survey, Ok(SegyImport { file_bytes: Some(3600 + 6 * 244), ..survey.import.clone() }));
        let layer = layer(&open, 0);
        assert_eq!(names(&open, &[ORIGINAL])[0], ["original.sgy"]);
        let Err(error) = content(layer) else { panic!("it is made") };
        assert!(error.to_string().contains("the file had 5064 bytes, but the traces that the import kept have 4820"));
        assert_eq!(names(&open, &[ORIGINAL])[0], [""; 0]);
        assert!((ORIGINAL.hidden)(layer).unwrap().1.contains("4820"));
        // inode numbers do not depend on what is known
        assert_eq!((ORIGINAL.entries)(layer).len(), 1);
    }
}
