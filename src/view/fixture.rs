//! Datasets for the tests of views, and reads of computed files without a reader.

use std::ops::Range;
use std::sync::Arc;

use super::file::{ComputedFile, SampleRequest, Step};
use crate::catalog::OpenDataset;
use crate::format::{Dataset, FormatError, Layer, SegyImport};
use crate::memory::BufferPool;
use crate::source::ObjectVersion;
use crate::volume::DatasetInfo;

/// A dataset with these layers, which may come from a SEG-Y file.
pub(crate) struct Layers(pub DatasetInfo, pub Vec<Layer>, pub Option<Result<SegyImport, String>>);

impl Dataset for Layers {
    fn info(&self) -> &DatasetInfo {
        &self.0
    }
    fn layers(&self) -> &[Layer] {
        &self.1
    }
    fn segy_import(&self) -> Option<Result<&SegyImport, &str>> {
        self.2.as_ref().map(|import| import.as_ref().map_err(String::as_str))
    }
}

/// Opens a dataset.
pub(crate) fn dataset(format: &'static str, layers: Layers) -> OpenDataset {
    OpenDataset {
        name: "north.zgy".into(),
        path: "north.zgy".into(),
        stamp: ObjectVersion { size: 0, mtime: (0, 0), inode: (0, 0), etag: None },
        size: None,
        format,
        dataset: Box::new(layers),
        file: None,
    }
}

/// Opens a dataset with one layer.
pub(crate) fn one_layer(format: &'static str, layer: Layer) -> OpenDataset {
    dataset(format, Layers(DatasetInfo::default(), vec![layer], None))
}

/// Reads bytes of a file. `samples_of` has the samples of a request.
pub(crate) fn read(
    file: Arc<dyn ComputedFile>,
    bytes: Range<u64>,
    samples_of: &mut dyn FnMut(&SampleRequest) -> Vec<u8>,
) -> Result<Vec<u8>, FormatError> {
    let buffers = BufferPool::new(1 << 20);
    let (mut steps, mut given) = (file.read(bytes), None);
    loop {
        match steps.step(given.take(), &buffers).unwrap() {
            Step::Done(out) => return Ok(out.to_vec()),
            Step::Failed(error) => return Err(error),
            Step::Read(request) => {
                let samples = samples_of(&request);
                let mut buffer = buffers.take(samples.len());
                buffer.copy_from_slice(&samples);
                given = Some(buffer);
            }
        }
    }
}
