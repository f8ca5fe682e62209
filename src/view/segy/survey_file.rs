//! A survey as a SEG-Y file: headers are computed, samples are requested and turned into big-endian float32.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::headers;
use super::survey::Survey;
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::convert::{Form, to_float32};
use crate::view::file::{ComputedFile, Content, ReadSteps, SampleRequest, Samples, Step};
use crate::view::virtual_file::{Entry, LayerRef, View};

/// Bytes before the first trace.
const HEADERS: u64 = (headers::TEXT_HEADER_BYTES + headers::BINARY_HEADER_BYTES) as u64;

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
        let mut headers = headers::text_header(layer, &survey);
        headers.extend(headers::binary_header(&survey));
        Self { survey, headers }
    }

    /// Returns the bytes of a trace with its header.
    fn trace_bytes(&self) -> u64 {
        headers::TRACE_HEADER_BYTES as u64 + u64::from(self.survey.samples.count) * SAMPLE
    }

    /// Returns how many samples lie wholly before a byte of the file, or how many do so at least partly.
    fn samples_before(&self, byte: u64, partly: bool) -> u64 {
        let (trace_bytes, count) = (self.trace_bytes(), u64::from(self.survey.samples.count));
        let body = byte.saturating_sub(HEADERS);
        let within = (body % trace_bytes).saturating_sub(headers::TRACE_HEADER_BYTES as u64);
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
            if within < headers::TRACE_HEADER_BYTES as u64 {
                let header = headers::trace_header(&self.survey, trace);
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
            let skip = (within - headers::TRACE_HEADER_BYTES as u64) as usize % SAMPLE as usize;
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
            headers::trace_header(&self.survey, trace).hash(&mut hasher);
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

const NAME: &str = "lod0.sgy";

/// The formats of surveys.
const FORMATS: [&str; 2] = ["zgy", "vds"];

/// The view of LOD 0.
pub(crate) struct SurveySegy;

impl View for SurveySegy {
    fn name(&self) -> Option<&'static str> {
        Some("segy")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        let is_shown = FORMATS.contains(&layer.open.format) && Survey::of(layer).is_ok();
        u64::from(is_shown)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() && self.nodes(layer) > 0 {
            add(Entry { node: 0, name: NAME.to_owned(), folder: false });
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let is_there = folder.is_none() && name == NAME && self.nodes(layer) > 0;
        is_there.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let survey = FORMATS.contains(&layer.open.format).then(|| Survey::of(layer))?;
        survey.err().map(|reason| (NAME.to_owned(), reason))
    }

    fn content(&self, layer: LayerRef<'_>, _node: u64) -> Result<Content, FormatError> {
        let survey = Survey::of(layer).map_err(FormatError::Unsupported)?;
        Ok(Content::Computed(Arc::new(SurveyFile::new(layer, survey))))
    }
}

/// The most bytes of a sample.
const MAX: usize = 8;

/// Writes samples that `convert` makes of the stored ones, which have `stored_size` and become `size` bytes each. The
/// first `skip` bytes of the first are left out, and so are those of the last that `out` has no room for. Returns
/// whether `convert` has returned true for all of them.
pub(crate) fn write_samples(
    (stored_size, size): (usize, usize),
    stored: &[u8],
    skip: usize,
    out: &mut [u8],
    convert: impl Fn(&[u8], &mut [u8]) -> bool,
) -> bool {
    let (mut stored, mut out, mut all) = (stored, out, true);
    let mut one = [0; MAX];
    let one = &mut one[..size.min(MAX)];
    if skip > 0 {
        let (first, rest) = stored.split_at(stored_size.min(stored.len()));
        all &= convert(first, one);
        let (to, rest_of_out) = out.split_at_mut((size - skip).min(out.len()));
        to.copy_from_slice(&one[skip..skip + to.len()]);
        (stored, out) = (rest, rest_of_out);
    }
    let (whole, tail) = out.split_at_mut(out.len() / size * size);
    let (samples, last) = stored.split_at((whole.len() / size * stored_size).min(stored.len()));
    all &= convert(samples, whole);
    if !tail.is_empty() {
        all &= convert(last, one);
        tail.copy_from_slice(&one[..tail.len()]);
    }
    all
}
