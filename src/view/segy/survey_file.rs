//! A survey as a SEG-Y file: headers are computed, samples are requested and turned into big-endian float32.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::sample_bytes::write_samples;
use super::survey::Survey;
use super::{binary_header, text_header, trace_header};
use crate::format::Array;
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::computed_file::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};
use crate::view::float_values::{Form, to_float32};
use crate::view::virtual_file::LayerRef;

/// Bytes before the first trace.
const HEADERS: u64 = (text_header::BYTES + binary_header::BYTES) as u64;

/// Bytes of a sample in the file.
const SAMPLE: u64 = size_of::<f32>() as u64;

/// Bytes of the file that are made at a time.
const PART: u64 = 1 << 20;

/// A survey as a file.
pub(crate) struct SurveyFile {
    survey: Survey,
    /// The textual and the binary header.
    headers: Vec<u8>,
}

impl SurveyFile {
    /// Creates the file of a layer.
    pub(crate) fn new(layer: LayerRef<'_>, survey: Survey) -> Self {
        let mut headers = text_header::header(layer, &survey);
        headers.extend(binary_header::header(&survey));
        Self { survey, headers }
    }

    /// Returns the bytes of a trace with its header.
    fn trace_bytes(&self) -> u64 {
        trace_header::BYTES as u64 + u64::from(self.survey.samples.count) * SAMPLE
    }

    /// Returns how many samples lie wholly before a byte of the file, or how many do so at least partly.
    fn samples_before(&self, byte: u64, partly: bool) -> u64 {
        let (trace_bytes, count) = (self.trace_bytes(), u64::from(self.survey.samples.count));
        let body = byte.saturating_sub(HEADERS);
        let within = (body % trace_bytes).saturating_sub(trace_header::BYTES as u64);
        let samples = if partly { within.div_ceil(SAMPLE) } else { within / SAMPLE };
        body / trace_bytes * count + samples
    }

    /// Returns the samples, as linear indexes in C order, of which `bytes` have at least one byte.
    fn samples_of(&self, bytes: &Range<u64>) -> Range<u64> {
        self.samples_before(bytes.start, false)..self.samples_before(bytes.end, true)
    }

    /// Writes `bytes` of the file to `out`, which is as long. `stored` are the samples that these bytes have.
    fn write(&self, bytes: &Range<u64>, stored: &[u8], out: &mut [u8]) {
        let info = self.survey.array.info();
        let mut stored = stored;
        let (mut at, mut out) = (bytes.start, out);
        if let Some(headers) = self.headers.get(at.min(HEADERS) as usize..) {
            let headers = &headers[..headers.len().min(out.len())];
            let (to, rest) = out.split_at_mut(headers.len());
            to.copy_from_slice(headers);
            (at, out) = (at + headers.len() as u64, rest);
        }
        let form = Form { no_value: info.no_value, void: 0.0, big_endian: true };
        while !out.is_empty() {
            let (trace, within) = ((at - HEADERS) / self.trace_bytes(), (at - HEADERS) % self.trace_bytes());
            if within < trace_header::BYTES as u64 {
                let header = trace_header::header(&self.survey, trace);
                let header = &header[within as usize..];
                let header = &header[..header.len().min(out.len())];
                let (to, rest) = out.split_at_mut(header.len());
                to.copy_from_slice(header);
                (at, out) = (at + header.len() as u64, rest);
                continue;
            }
            let rest_of_trace = (self.trace_bytes() - within) as usize;
            let (to, rest) = out.split_at_mut(rest_of_trace.min(out.len()));
            at += to.len() as u64;
            let skip = (within - trace_header::BYTES as u64) as usize % SAMPLE as usize;
            let samples = (skip + to.len()).div_ceil(SAMPLE as usize);
            let (here, after) = stored.split_at((samples * info.dtype.size()).min(stored.len()));
            write_samples((info.dtype.size(), SAMPLE as usize), here, skip, to, |stored, to| {
                to_float32(info.dtype, info.scaling, form, stored, to);
                true
            });
            (stored, out) = (after, rest);
        }
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
        let mut hasher = DefaultHasher::new();
        self.headers.hash(&mut hasher);
        // lines and positions are in the first and the last trace
        for trace in [0, 1, self.survey.traces() / 2, self.survey.traces() - 1] {
            trace_header::header(&self.survey, trace).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        Box::new(SurveyRead { part: bytes.start..bytes.start, file: self, bytes, out: None })
    }
}

/// A read in progress.
struct SurveyRead {
    file: Arc<SurveyFile>,
    /// All bytes of the read.
    bytes: Range<u64>,
    /// Those whose samples were requested last.
    part: Range<u64>,
    /// The reply, filled up to the beginning of the part.
    out: Option<Buffer>,
}

impl ReadSteps for SurveyRead {
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => buffers.take_reply((self.bytes.end - self.bytes.start) as usize)?,
        };
        let mut stored = samples;
        loop {
            let within = |at: u64| (at - self.bytes.start) as usize;
            let to = &mut out[within(self.part.start)..within(self.part.end)];
            self.file.write(&self.part, stored.as_deref().unwrap_or_default(), to);
            if self.part.end == self.bytes.end {
                return Ok(Step::Done(out));
            }
            self.part = self.part.end..self.bytes.end.min(self.part.end + PART);
            let samples = self.file.samples_of(&self.part);
            if !samples.is_empty() {
                self.out = Some(out);
                let array = Arc::clone(&self.file.survey.array);
                return Ok(Step::Read(SampleRequest { array, samples: Samples::Range(samples) }));
            }
            stored = None;
        }
    }
}
