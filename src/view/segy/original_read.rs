//! A read of `original.sgy`: looks up which traces there are, then requests headers and samples of traces side by side.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::live_traces::{LiveTraces, Next};
use super::original_file::{HEADERS, OriginalFile, TRACE_HEADER};
use super::original_samples::convert;
use super::sample_bytes::write_samples;
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::computed_file::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};

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
