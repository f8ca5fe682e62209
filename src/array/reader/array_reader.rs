//! Reads ranges of samples: the entry point of all reads of a file.

use std::ops::Range;
use std::sync::Arc;

use super::copied::Copied;
use crate::array::ReadError;
use crate::array::array_view::ArrayView;
use crate::array::bricks::BrickAccess;
use crate::array::decode_gate::DecodeGate;
use crate::array::permuted::PermutedArray;
use crate::array::prefetch::Prefetcher;
use crate::array::request::{Piece, ReplyLayout, pieces};
use crate::array::resources::Resources;
use crate::array::scan::ScanDetector;
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::format::Array;
use crate::memory::{Buffer, BufferPool};
use crate::pool::{Bulkhead, Pool};
use crate::sync::atomic::AtomicBool;
use crate::volume::{AxisPermutation, Dims};

/// Reads arrays. All reads of a process share one reader and its cache.
pub(crate) struct Reader {
    pub(super) resources: Arc<Resources>,
    pub(super) prefetcher: Prefetcher,
}

/// A range of samples of an array, in C order.
pub(crate) struct ReadRequest {
    /// The array.
    pub array: Arc<dyn Array>,
    /// The order of axes in which the samples are wanted, if it is not the array's own.
    pub permutation: Option<AxisPermutation>,
    /// The numbers of the samples in that order, within the array.
    pub samples: Range<u64>,
    /// The concurrency limit of the source that the array is read from.
    pub bulkhead: Bulkhead,
    /// The readers of the open file that the request comes from: bricks are prefetched for those that are sequential.
    pub scans: Option<Arc<ScanDetector>>,
    /// Whether the kernel keeps the samples in its page cache, so that nobody asks for them again in this order.
    pub page_cached: bool,
    /// Whether it is read ahead of the client that will want it.
    pub ahead: bool,
    /// Counters that count the work for this read, besides those of all reads.
    pub counters: Option<Arc<Counters>>,
}

impl Reader {
    /// Creates a reader that keeps decoded bricks in `cache` and decodes behind `gate` on workers of `pool`.
    pub(crate) fn new(
        cache: BrickCache,
        gate: DecodeGate,
        pool: Arc<Pool>,
        buffers: Arc<BufferPool>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let resources =
            Arc::new(Resources { cache, gate, pool, buffers, counters, prefaulting: AtomicBool::new(false) });
        Arc::new(Self { resources, prefetcher: Prefetcher::default() })
    }

    /// Reads samples. `done` gets them in C order, little-endian: from within this call if nothing has to be waited
    /// for, otherwise from a worker of the pool.
    pub(crate) fn read(
        self: &Arc<Self>,
        request: ReadRequest,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let ReadRequest { array, permutation, samples, bulkhead, scans, page_cached, ahead, counters } = request;
        let array = match permutation {
            Some(permutation) => PermutedArray::shared(array, permutation),
            None => array,
        };
        let done = move |read: Result<Buffer, ReadError>| {
            let in_own_order = |brick| permutation.map_or(brick, |order| order.invert_dims(&brick));
            done(read.map_err(|e| ReadError { brick: in_own_order(e.brick), ..e }));
        };
        let scan = scans.as_ref().and_then(|scans| scans.record(array.info(), &samples, ahead));
        scan.iter().for_each(|scan| scan.set_page_cached(page_cached));
        let is_other = scan.is_none() && scans.as_ref().is_none_or(|scans| !scans.has_scans());
        let view = ArrayView { array, permutation, bulkhead };
        let access = BrickAccess { resources: Arc::clone(&self.resources), view, scan, counters };
        let array = access.array();
        let bytes = (samples.end - samples.start) as usize * access.sample_size();
        let mut out = match self.resources.buffers.take_reply(bytes) {
            Ok(out) => out,
            Err(e) => return done(Err(ReadError { brick: first_brick(pieces(array, samples)), cause: e.into() })),
        };
        let layout = ReplyLayout::of_range(array.info(), samples.start);
        let copied = match Copied::at_once(&access, pieces(array, samples.clone()), layout, &mut out) {
            Ok(copied) => copied,
            Err(e) => return done(Err(e)),
        };
        let (has_decoded, has_coded) = (copied.has_decoded(), copied.has_coded());
        self.prefetcher.record_request(&self.resources, is_other && has_coded);
        let prefetches = (access.scan.is_some() && has_coded).then(|| access.clone());
        let first = pieces(array, samples).next();
        copied.finish(access, first, out, done);
        // after the request itself, whose bricks come first
        if let Some(access) = prefetches {
            self.prefetcher.prefetch(&access);
            if let (true, Some(scans)) = (has_decoded, scans) {
                scans.set_cache_is_tight(Prefetcher::is_cache_tight(&access));
            }
        }
    }

    /// Returns the pool that replies take their buffers from.
    pub(crate) fn buffers(&self) -> &Arc<BufferPool> {
        &self.resources.buffers
    }

    /// Returns the bytes of decoded samples in memory: bricks in the cache, and segments of scans.
    pub(crate) fn bytes_held(&self) -> usize {
        self.resources.cache.bytes() + self.prefetcher.segment_bytes()
    }
}

/// Returns the brick that an error names which concerns no piece in particular.
pub(super) fn first_brick(mut pieces: impl Iterator<Item = Piece>) -> Dims {
    pieces.next().map_or_else(|| Dims::filled(1, 0), |piece| piece.brick)
}
