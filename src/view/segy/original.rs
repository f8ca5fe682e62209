//! `original.sgy`: the SEG-Y file that a dataset was imported from.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::headers;
use super::survey_file::write_samples;
use super::traces::{
    BrickValues, LiveTraces, MAX_POSITIONS, Next, TraceCounts, TraceOrder, ranks, spread, spread_of_full,
};
use crate::format::{Array, FormatError, SegyImport, SegySample};
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::file::{ComputedFile, Content, ReadSteps, SampleRequest, Samples, Step};
use crate::view::virtual_file::{Entry, LayerRef, View};
use crate::volume::Dims;

const NAME: &str = "original.sgy";

/// The view of the layer with the samples of the file.
pub(crate) struct OriginalSegy;

impl View for OriginalSegy {
    fn name(&self) -> Option<&'static str> {
        Some("segy")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        u64::from(matches!(original(layer), Some(Ok(_))))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() && is_shown(layer) {
            add(Entry { node: 0, name: NAME.to_owned(), folder: false });
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let is_there = folder.is_none() && name == NAME && is_shown(layer);
        is_there.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        known(layer)?.err().map(|reason| (NAME.to_owned(), reason))
    }

    /// Counts the traces, at the first time.
    fn content(&self, layer: LayerRef<'_>, _node: u64) -> Result<Content, FormatError> {
        let absent = || FormatError::Unsupported("it does not come from a SEG-Y file".into());
        let (import, arrays) = original(layer).ok_or_else(absent)?.map_err(FormatError::Unsupported)?;
        let count = || count(import, &*arrays.traces, &*arrays.headers);
        let counts = TraceCounts::known_or(&*arrays.traces, count)?;
        Ok(Content::Computed(Arc::new(OriginalFile::new(import.clone(), arrays, counts)?)))
    }
}

fn is_shown(layer: LayerRef<'_>) -> bool {
    matches!(known(layer), Some(Ok(())))
}

/// Returns whether the file is shown, or why it is not, by all that is known so far: once its traces have been counted,
/// it may turn out that some were lost.
fn known(layer: LayerRef<'_>) -> Option<Result<(), String>> {
    let original = original(layer)?;
    Some(original.and_then(|(import, arrays)| match TraceCounts::known(&*arrays.traces) {
        Some(counts) => check_length(import, &arrays, &counts),
        None => Ok(()),
    }))
}

/// Returns what the file of a layer is made of, or why it cannot be made; `None` if the layer is not the one with the
/// samples of a SEG-Y file.
fn original(layer: LayerRef<'_>) -> Option<Result<(&SegyImport, Arrays), String>> {
    let import = match layer.open.dataset.segy_import()? {
        Ok(import) if import.samples == layer.layer => import,
        // the samples are in the first layer
        Err(reason) if layer.layer == 0 => return Some(Err(reason.to_owned())),
        _ => return None,
    };
    Some(arrays(layer, import).map(|arrays| (import, arrays)))
}

fn arrays(layer: LayerRef<'_>, import: &SegyImport) -> Result<Arrays, String> {
    let layers = layer.open.dataset.layers();
    let finest = |number: usize| layers.get(number).and_then(|layer| layer.levels.first()).map(Arc::clone);
    let arrays = [import.samples, import.traces, import.trace_headers].map(finest);
    let [Some(samples), Some(traces), Some(headers)] = arrays else { return Err("a layer is not there".into()) };
    let positions = traces.info().shape().product().unwrap_or(u64::MAX);
    if positions > MAX_POSITIONS {
        return Err(format!("it has room for {positions} traces, which are too many"));
    }
    check_size(import, &*samples, positions)?;
    Ok(Arrays { samples, traces, headers })
}

/// Checks whether the file can have had as many bytes as the import says.
fn check_size(import: &SegyImport, samples: &dyn Array, positions: u64) -> Result<(), String> {
    let Some(bytes) = import.file_bytes else { return Ok(()) };
    let trace = trace_bytes(import, samples);
    match bytes.checked_sub(HEADERS) {
        Some(traces) if traces % trace == 0 && traces / trace <= positions => Ok(()),
        Some(traces) if traces % trace == 0 => {
            Err(format!("the file had {} traces, and there is room for {positions}", traces / trace))
        }
        _ => Err(format!("the file had {bytes} bytes, which are no whole number of traces of {trace} bytes")),
    }
}

/// Bytes before the first trace.
pub(crate) const HEADERS: u64 = (headers::TEXT_HEADER_BYTES + headers::BINARY_HEADER_BYTES) as u64;

/// Bytes of a trace header.
pub(crate) const TRACE_HEADER: u64 = headers::TRACE_HEADER_BYTES as u64;

/// The arrays that a file is made of, at LOD 0.
#[derive(Clone)]
pub(crate) struct Arrays {
    /// The samples.
    pub samples: Arc<dyn Array>,
    /// Whether there is a trace.
    pub traces: Arc<dyn Array>,
    /// The headers of the traces.
    pub headers: Arc<dyn Array>,
}

/// The file.
pub(crate) struct OriginalFile {
    pub(super) import: SegyImport,
    pub(super) arrays: Arrays,
    pub(super) counts: Arc<TraceCounts>,
}

impl OriginalFile {
    /// Creates the file.
    pub(crate) fn new(import: SegyImport, arrays: Arrays, counts: Arc<TraceCounts>) -> Result<Self, FormatError> {
        check_length(&import, &arrays, &counts).map_err(FormatError::Unsupported)?;
        Ok(Self { import, arrays, counts })
    }

    /// Returns the bytes of the file.
    pub(super) fn length(&self) -> u64 {
        length(&self.import, &*self.arrays.samples, &self.counts)
    }

    /// Returns the samples of a trace.
    pub(super) fn samples(&self) -> u64 {
        self.arrays.samples.info().shape().last().copied().unwrap_or(0)
    }

    /// Returns the bytes of a trace with its header.
    pub(super) fn trace_bytes(&self) -> u64 {
        trace_bytes(&self.import, &*self.arrays.samples)
    }
}

/// Checks that a file has as many bytes as the import says.
pub(crate) fn check_length(import: &SegyImport, arrays: &Arrays, counts: &TraceCounts) -> Result<(), String> {
    let bytes = length(import, &*arrays.samples, counts);
    match import.file_bytes {
        Some(had) if had != bytes => {
            Err(format!("original.sgy: the file had {had} bytes, but the traces that the import kept have {bytes}"))
        }
        _ => Ok(()),
    }
}

fn length(import: &SegyImport, samples: &dyn Array, counts: &TraceCounts) -> u64 {
    counts.traces().saturating_mul(trace_bytes(import, samples)).saturating_add(HEADERS)
}

/// Returns the bytes of a trace with its header.
pub(crate) fn trace_bytes(import: &SegyImport, samples: &dyn Array) -> u64 {
    let count = samples.info().shape().last().copied().unwrap_or(0);
    TRACE_HEADER.saturating_add(count.saturating_mul(import.sample.size() as u64))
}

/// Where trace headers have the number of the trace, in the line or in the file.
const NUMBERS: [u64; 2] = [0, 4];

/// How many parts of the survey have a trace that is looked at: with few traces, and holes between them, a wrong order
/// may have the same numbers by chance.
const PARTS: u64 = 24;

/// Counts the traces of a file in its order: that in which the traces are numbered, if they are; else the one that the
/// import names; else that of the arrays. May wait.
pub(crate) fn count(import: &SegyImport, traces: &dyn Array, headers: &dyn Array) -> Result<TraceCounts, FormatError> {
    let all = traces.info().shape();
    let shape = Dims::from_fn(all.len().saturating_sub(1), |axis| all[axis]);
    let otherwise = match import.sorted_by.filter(|axis| *axis < shape.len()) {
        Some(axis) => TraceOrder::sorted_by(shape, axis),
        None => TraceOrder::of_arrays(shape),
    };
    let stored = TraceCounts::count(traces, TraceOrder::of_arrays(shape))?;
    let is_full = stored.is_full();
    let probes = if is_full { spread_of_full(shape, PARTS) } else { spread(traces, shape, PARTS)? };
    let numbers = probes.iter().map(|index| numbers(headers, index, import.little_headers));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let probes = Probes { traces, is_full, probes, numbers };
    let orders = TraceOrder::all(shape);
    // the order of the arrays is the usual one: the others are not counted if it fits
    let (first, others) = orders.split_at(1);
    let found = match probes.find(first)? {
        None => probes.find(others)?,
        found => found,
    };
    let order = found.unwrap_or(otherwise);
    if order.is_of_arrays() || is_full { Ok(stored.in_order(order)) } else { TraceCounts::count(traces, order) }
}

/// Traces that are looked at.
struct Probes<'a> {
    traces: &'a dyn Array,
    /// Whether there is a trace at every position.
    is_full: bool,
    /// Their indexes, and the numbers in their headers.
    probes: Vec<Dims>,
    numbers: Vec<[i64; 2]>,
}

impl Probes<'_> {
    /// Returns the first of some orders in which the traces have these numbers.
    fn find(&self, orders: &[TraceOrder]) -> Result<Option<TraceOrder>, FormatError> {
        let numbers = &self.numbers;
        // traces without numbers fit none, and one trace fits all
        let is_numbered = |field: &usize| numbers.windows(2).any(|pair| pair[0][*field] != pair[1][*field]);
        let fields: Vec<usize> = (0..NUMBERS.len()).filter(is_numbered).collect();
        if fields.is_empty() {
            return Ok(None);
        }
        let fits = |ranks: &[u64], field: usize| {
            let first = numbers[0][field] - ranks[0] as i64;
            ranks.iter().zip(numbers).all(|(rank, number)| number[field] - *rank as i64 == first)
        };
        let ranks = match self.is_full {
            true => orders.iter().map(|order| self.probes.iter().map(|at| order.number_of(at)).collect()).collect(),
            false => ranks(self.traces, orders, &self.probes)?,
        };
        let fitting = orders.iter().zip(&ranks).find(|(_, ranks)| fields.iter().any(|field| fits(ranks, *field)));
        Ok(fitting.map(|(order, _)| *order))
    }
}

/// Returns the numbers in the header of a trace.
fn numbers(headers: &dyn Array, index: &Dims, little: bool) -> Result<[i64; 2], FormatError> {
    let grid = &headers.info().grid;
    let first = Dims::from_fn(index.len() + 1, |axis| index.get(axis).copied().unwrap_or(0));
    let brick = BrickValues::read(headers, &Dims::from_fn(first.len(), |axis| grid.brick_of(axis, first[axis])))?;
    if brick.owned.end(index.len()) < NUMBERS[1] + 4 {
        return Err(FormatError::Unsupported("its bricks of trace headers are parts of headers".into()));
    }
    let values = brick.row(&first, index.len());
    Ok(NUMBERS.map(|field| {
        let bytes = [0, 1, 2, 3].map(|byte| values.value(field + byte));
        i64::from(if little { i32::from_le_bytes(bytes) } else { i32::from_be_bytes(bytes) })
    }))
}

/// Bytes of traces that are read in a step, if they are more than one.
const PART: u64 = 1 << 20;

/// A read in progress.
pub(crate) struct OriginalRead {
    file: Arc<OriginalFile>,
    /// The bytes of the read.
    bytes: Range<u64>,
    /// The reply, filled up to byte `at` of the file.
    out: Option<Buffer>,
    at: u64,
    traces: LiveTraces,
    /// What was requested last.
    requested: Requested,
}

/// What a read has requested.
enum Requested {
    Nothing,
    /// Which of these positions have traces.
    Look {
        positions: Range<u64>,
        is_backwards: bool,
    },
    /// The headers of traces.
    Headers(Traces),
    /// Their samples.
    Samples(Traces),
}

/// Traces side by side, and the bytes of the file that are read of them.
#[derive(Clone)]
struct Traces {
    positions: Range<u64>,
    /// The number of the first in the file.
    first: u64,
    bytes: Range<u64>,
    /// Whether the values that come are those of the last trace first.
    is_backwards: bool,
}

impl OriginalRead {
    /// Begins a read.
    pub(crate) fn new(file: Arc<OriginalFile>, bytes: Range<u64>) -> Self {
        let first = bytes.start.saturating_sub(HEADERS) / file.trace_bytes();
        let traces = LiveTraces::new(&file.counts, first);
        Self { at: bytes.start, file, bytes, out: None, traces, requested: Requested::Nothing }
    }

    /// Returns a request for values of positions side by side, and whether they come backwards.
    fn request(&self, array: &Arc<dyn Array>, positions: &Range<u64>, values: (u64, u64)) -> (Step, bool) {
        let order = self.file.counts.order();
        let count = positions.end - positions.start;
        let all = array.info().shape().last().copied().unwrap_or(1);
        let (samples, is_backwards) = if order.is_of_arrays() {
            (Samples::Range(positions.start * all + values.0..(positions.end - 1) * all + values.1), false)
        } else {
            // a box has the same values of all of its traces
            let values = if count > 1 { (0, all) } else { values };
            let (region, is_backwards) = order.region(positions.start, count, values);
            (Samples::Box(region), is_backwards)
        };
        (Step::Read(SampleRequest { array: Arc::clone(array), samples }), is_backwards)
    }

    /// Goes on after what was requested: `None` if all bytes are there.
    fn next(&mut self, out: &mut [u8]) -> Option<Step> {
        if self.at < HEADERS {
            let headers = &self.file.import.headers[self.at as usize..];
            let headers = &headers[..headers.len().min(out.len())];
            out[..headers.len()].copy_from_slice(headers);
            self.at += headers.len() as u64;
        }
        if self.at >= self.bytes.end {
            return None;
        }
        let trace_bytes = self.file.trace_bytes();
        let first = (self.at - HEADERS) / trace_bytes;
        let last = (self.bytes.end - HEADERS).div_ceil(trace_bytes);
        let most = (last - first).min((PART / trace_bytes).max(1));
        Some(match self.traces.find(&self.file.counts, first, most) {
            Next::Traces(positions) => {
                let begin = HEADERS + first * trace_bytes;
                let end = begin + (positions.end - positions.start) * trace_bytes;
                let bytes = self.at..end.min(self.bytes.end);
                self.request_traces(Traces { positions, first, bytes, is_backwards: false })
            }
            Next::Look(positions) => {
                let (step, is_backwards) = self.request(&self.file.arrays.traces, &positions, (0, 1));
                self.requested = Requested::Look { positions, is_backwards };
                step
            }
            Next::End => Step::Failed(FormatError::Damaged("there are fewer traces than there were".into())),
        })
    }

    /// Requests headers, or samples if no header is read.
    fn request_traces(&mut self, traces: Traces) -> Step {
        let within = |byte: u64| (byte - HEADERS) % self.file.trace_bytes();
        let count = traces.positions.end - traces.positions.start;
        if count == 1 && within(traces.bytes.start) >= TRACE_HEADER {
            return self.request_samples(traces);
        }
        let (step, is_backwards) = self.request(&self.file.arrays.headers, &traces.positions, (0, TRACE_HEADER));
        self.requested = Requested::Headers(Traces { is_backwards, ..traces });
        step
    }

    /// Requests the samples of traces.
    fn request_samples(&mut self, traces: Traces) -> Step {
        let values = self.values(&traces);
        let (step, is_backwards) = self.request(&self.file.arrays.samples, &traces.positions, values);
        self.requested = Requested::Samples(Traces { is_backwards, ..traces });
        step
    }

    /// Returns the first sample that is read of the first trace, and the end of those that are read of the last.
    fn values(&self, traces: &Traces) -> (u64, u64) {
        let (trace_bytes, size) = (self.file.trace_bytes(), self.file.import.sample.size() as u64);
        let within = |byte: u64, trace: u64| (byte - HEADERS - trace * trace_bytes).saturating_sub(TRACE_HEADER);
        let last = traces.first + (traces.positions.end - traces.positions.start) - 1;
        (within(traces.bytes.start, traces.first) / size, within(traces.bytes.end, last).div_ceil(size))
    }

    /// Writes what came of traces: their headers, or their samples. Returns false if a sample cannot be told.
    fn write(&self, traces: &Traces, came: &[u8], out: &mut [u8], is_header: bool) -> bool {
        let (file, trace_bytes) = (&self.file, self.file.trace_bytes());
        let count = traces.positions.end - traces.positions.start;
        let array = if is_header { &file.arrays.headers } else { &file.arrays.samples };
        let stored_size = array.info().dtype.size();
        let (size, all) = if is_header { (1, TRACE_HEADER) } else { (file.import.sample.size(), file.samples()) };
        let values = if is_header { (0, TRACE_HEADER) } else { self.values(traces) };
        // of boxes of several traces all values came, of others those that are needed
        let skipped = if file.counts.order().is_of_arrays() || count == 1 { values.0 } else { 0 };
        let mut is_told = true;
        for at in 0..count {
            let begin = HEADERS + (traces.first + at) * trace_bytes;
            let area = if is_header { begin..begin + TRACE_HEADER } else { begin + TRACE_HEADER..begin + trace_bytes };
            let here = area.start.max(traces.bytes.start)..area.end.min(traces.bytes.end);
            if here.is_empty() {
                continue;
            }
            let to = &mut out[(here.start - self.bytes.start) as usize..(here.end - self.bytes.start) as usize];
            let (from, skip) = ((here.start - area.start) / size as u64, (here.start - area.start) as usize % size);
            let place = if traces.is_backwards { count - 1 - at } else { at };
            let number = (place * all + from - skipped) as usize;
            let samples = (skip + to.len()).div_ceil(size);
            let Some(stored) = came.get(number * stored_size..(number + samples) * stored_size) else { return false };
            is_told &= write_samples((stored_size, size), stored, skip, to, |stored, to| {
                if is_header {
                    to.copy_from_slice(stored);
                    return true;
                }
                convert(file.import.sample, file.import.little_samples, stored, to)
            });
        }
        is_told
    }
}

impl ComputedFile for OriginalFile {
    fn len(&self) -> u64 {
        self.length()
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.arrays.samples
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.import.headers.hash(&mut hasher);
        (self.import.sample.size(), self.import.little_samples, self.counts.traces()).hash(&mut hasher);
        hasher.finish()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        Box::new(OriginalRead::new(self, bytes))
    }
}

impl ReadSteps for OriginalRead {
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => buffers.take_reply((self.bytes.end - self.bytes.start) as usize)?,
        };
        let came = samples.as_deref().unwrap_or_default();
        let step = match std::mem::replace(&mut self.requested, Requested::Nothing) {
            Requested::Headers(traces) => {
                self.write(&traces, came, &mut out, true);
                let (first, last) = self.values(&traces);
                let count = traces.positions.end - traces.positions.start;
                if count == 1 && first >= last {
                    self.at = traces.bytes.end;
                    None
                } else {
                    Some(self.request_samples(traces))
                }
            }
            Requested::Samples(traces) => {
                if !self.write(&traces, came, &mut out, false) {
                    let (first, count) = (traces.first + 1, traces.positions.end - traces.positions.start);
                    let last = first + count - 1;
                    let why = format!(
                        "original.sgy: of a sample in traces {first} to {last} it is not known which number of the \
                         file it was, since float32 does not hold all"
                    );
                    return Ok(Step::Failed(FormatError::Unsupported(why)));
                }
                self.at = traces.bytes.end;
                None
            }
            Requested::Look { positions, is_backwards } => {
                let mut live = came.to_vec();
                if is_backwards {
                    live.reverse();
                }
                self.traces.saw(positions, live);
                None
            }
            Requested::Nothing => None,
        };
        let done = (self.at - self.bytes.start) as usize;
        match step.or_else(|| self.next(&mut out[done..])) {
            Some(step) => {
                self.out = Some(out);
                Ok(step)
            }
            None => Ok(Step::Done(out)),
        }
    }
}

/// Integers up to this one are the same as float32; greater ones may have been rounded.
const EXACT: f32 = 16_777_216.0;

/// Writes the samples of the file that were stored as these. Returns false if one of them cannot be told: its value
/// does not occur in the type, or stands for several values of it.
pub(crate) fn convert(sample: SegySample, little: bool, stored: &[u8], out: &mut [u8]) -> bool {
    match sample {
        SegySample::Ibm => each(stored, out, |v| ibm(u32::from_le_bytes(v)).map(u32::to_be_bytes)),
        SegySample::Float => always(stored, out, |v: [u8; 4]| if little { v } else { swapped(v) }),
        SegySample::Int32 => each(stored, out, |v| {
            let whole = integer(f32::from_le_bytes(v))?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        SegySample::UInt32 => each(stored, out, |v| {
            let whole = u32::try_from(integer(f32::from_le_bytes(v))?).ok()?;
            Some(if little { whole.to_le_bytes() } else { whole.to_be_bytes() })
        }),
        // two's complement and excess 32768 differ in the first bit
        SegySample::Int16 => always(stored, out, |[low, high]: [u8; 2]| {
            let high = high ^ 0x80;
            if little { [low, high] } else { [high, low] }
        }),
        SegySample::UInt16 => always(stored, out, |v: [u8; 2]| if little { v } else { swapped(v) }),
        SegySample::Int8 => always(stored, out, |[v]: [u8; 1]| [v ^ 0x80]),
        SegySample::UInt8 => always(stored, out, |v: [u8; 1]| v),
    }
}

fn swapped<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

fn always<const N: usize>(stored: &[u8], out: &mut [u8], of: impl Fn([u8; N]) -> [u8; N]) -> bool {
    let ((from, _), (to, _)) = (stored.as_chunks::<N>(), out.as_chunks_mut::<N>());
    from.iter().zip(to).for_each(|(from, to)| *to = of(*from));
    true
}

fn each(stored: &[u8], out: &mut [u8], of: impl Fn([u8; 4]) -> Option<[u8; 4]>) -> bool {
    let ((from, _), (to, _)) = (stored.as_chunks::<4>(), out.as_chunks_mut::<4>());
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

    use super::*;

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
}
