//! Files whose bytes are computed from samples: records, chunks and pictures; everything that is not the samples of one
//! array in order behind a header.
//!
//! Such a file reads nothing itself. A read of it is a sequence of steps: it requests samples, is given them, and in
//! the end returns its bytes. So it never waits, and whoever runs the steps decides on which thread, through which
//! cache, and what is prefetched.

use std::ops::Range;
use std::sync::Arc;

use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::volume::Region;

/// A file whose bytes are computed from samples when they are read.
pub(crate) trait ComputedFile: Send + Sync {
    /// Returns the bytes of the file.
    fn len(&self) -> u64;

    /// Returns the array that the file shows; errors that concern no sample in particular name it.
    fn array(&self) -> &Arc<dyn Array>;

    /// Returns what the file's layout depends on, headers included. A client that has read some of a file may read the
    /// rest from another one of the same length and fingerprint.
    fn fingerprint(&self) -> u64;

    /// Returns whether a read of `bytes` may take a worker longer than a few 100 KiB of samples take to be copied.
    /// Then it does not begin on a thread that talks to the kernel.
    fn is_long(&self, _bytes: &Range<u64>) -> bool {
        false
    }

    /// Begins a read of `bytes`, which are not empty and lie within the file.
    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps>;
}

/// A read of a [`ComputedFile`] in progress.
pub(crate) trait ReadSteps: Send {
    /// Takes the samples that were requested last (`None` at first), and returns what is to be done next. The memory of
    /// what is requested at a time is part of the memory of the read: a step should request few MiB.
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory>;
}

/// What a read has to do next.
pub(crate) enum Step {
    /// Read samples, and go on with them.
    Read(SampleRequest),
    /// Nothing: these are the bytes of the read.
    Done(Buffer),
    /// Nothing: the bytes cannot be computed.
    Failed(FormatError),
}

/// Samples that a read needs.
#[derive(Clone)]
pub(crate) struct SampleRequest {
    /// The array.
    pub array: Arc<dyn Array>,
    /// Which of its samples.
    pub samples: Samples,
}

/// Samples of an array. They are given in C order, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Those with these numbers in C order. Sequential readers of such a file are recognised, and bricks are prefetched
    /// for them.
    Range(Range<u64>),
    /// Those of a box that lies within the array.
    Box(Region),
}
