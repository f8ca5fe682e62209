//! What a scan keeps of bricks when the cache does not hold a layer of them.
//!
//! Every plane of a scan touches all bricks of a layer. If these do not fit, the least recently used ones are dropped just before
//! they are needed again, and each brick is decoded for each of its planes. So a scan keeps of each decoded brick only the next few
//! planes, its *segment*. A segment shrinks as the scan goes on: it is cut into chunks that are dropped one by one. Segments of
//! different bricks end at different planes, so that on average half of their length is held, and decoding goes on evenly.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gather::Loops;
use crate::cache::DecodedBrick;
use crate::memory::Buffers;
use crate::volume::{Dims, Layout, Region};

/// A segment is cut into so many chunks.
pub const CHUNKS: u64 = 16;

/// The segments of one scan by brick number.
#[derive(Default)]
pub struct Segments {
    segments: Mutex<HashMap<u64, Segment>>,
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Segment {
    /// Consecutive planes, the first ones first.
    chunks: VecDeque<Arc<DecodedBrick>>,
    /// Its continuation is being decoded.
    renewing: bool,
}

/// Part of a segment.
pub struct Chunk {
    /// The planes.
    pub brick: Arc<DecodedBrick>,
    /// The segment ends with the plane that was asked for, and nobody is decoding the next.
    pub last: bool,
}

impl Segments {
    /// The chunk of a brick that holds `region`, if there is one. Planes before it are dropped.
    pub fn get(&self, brick: u64, region: &Region) -> Option<Chunk> {
        let mut segments = self.lock();
        let segment = segments.get_mut(&brick)?;
        while segment.chunks.front().is_some_and(|chunk| chunk.layout.held.end(0) <= region.start[0]) {
            if let Some(passed) = segment.chunks.pop_front() {
                self.bytes.fetch_sub(passed.bytes.weight(), Ordering::Relaxed);
            }
        }
        let found = segment.chunks.iter().find(|chunk| chunk.layout.held.contains(region))?;
        let brick = Arc::clone(found);
        let end = segment.chunks.back().map_or(0, |chunk| chunk.layout.held.end(0));
        let last = end <= region.end(0) && !segment.renewing;
        segment.renewing |= last;
        Some(Chunk { brick, last })
    }

    /// Whether `region` of a brick is there. Nothing is dropped: the scan has not come to it yet.
    pub fn holds(&self, brick: u64, region: &Region) -> bool {
        let segments = self.lock();
        let holds = |segment: &Segment| segment.chunks.iter().any(|chunk| chunk.layout.held.contains(region));
        segments.get(&brick).is_some_and(holds)
    }

    /// Whether anything was kept of a brick before.
    pub fn knows(&self, brick: u64) -> bool {
        self.lock().contains_key(&brick)
    }

    /// Keeps the planes `from .. from + planes` of a brick, as far as it holds them, samples of `size` bytes.
    pub fn put(&self, brick: u64, whole: &DecodedBrick, from: u64, planes: u64, size: usize, buffers: &Arc<Buffers>) {
        let held = whole.layout.held;
        let end = held.end(0).min(from.saturating_add(planes));
        let each = planes.div_ceil(CHUNKS).max(1);
        let mut chunks = VecDeque::new();
        let mut at = from.max(held.start[0]);
        while at < end {
            let until = (at + each).min(end);
            chunks.push_back(Arc::new(cut(whole, at, until, size, buffers)));
            at = until;
        }
        let weight = |chunks: &VecDeque<Arc<DecodedBrick>>| chunks.iter().map(|c| c.bytes.weight()).sum::<usize>();
        self.bytes.fetch_add(weight(&chunks), Ordering::Relaxed);
        let mut segments = self.lock();
        let segment = segments.entry(brick).or_default();
        segment.renewing = false;
        // what is left of the old one is still being read
        while segment.chunks.back().is_some_and(|old| old.layout.held.end(0) > from) {
            if let Some(double) = segment.chunks.pop_back() {
                self.bytes.fetch_sub(double.bytes.weight(), Ordering::Relaxed);
            }
        }
        segment.chunks.append(&mut chunks);
    }

    /// Drops all segments of bricks before `brick`: the scan has passed them.
    pub fn drop_before(&self, brick: u64) {
        let mut dropped = Vec::new();
        let mut segments = self.lock();
        segments.retain(|number, segment| {
            let keep = *number >= brick;
            if !keep {
                dropped.extend(segment.chunks.drain(..));
            }
            keep
        });
        drop(segments);
        let bytes: usize = dropped.iter().map(|chunk| chunk.bytes.weight()).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The planes `from .. until` of a brick, by themselves.
pub fn cut(whole: &DecodedBrick, from: u64, until: u64, size: usize, buffers: &Arc<Buffers>) -> DecodedBrick {
    let mut held = whole.layout.held;
    held.start[0] = from;
    held.shape[0] = until - from;
    let strides: Dims = held.shape.strides(size as u64);
    let mut bytes = buffers.take(held.samples() as usize * size);
    let start = whole.layout.offset_of(&held.start) as usize;
    Loops::new(&held.shape, &whole.layout.strides, &strides, size).copy(&whole.bytes[start..], &mut bytes);
    DecodedBrick { bytes: bytes.into(), layout: Layout { held, first: 0, strides } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brick() -> (DecodedBrick, Arc<Buffers>) {
        let buffers = Buffers::new(0);
        let mut bytes = buffers.take(64 * 10);
        bytes.iter_mut().enumerate().for_each(|(n, b)| *b = (n / 10) as u8);
        let layout = Layout::c_order([64, 0].into(), [64, 10].into(), [120, 10].into(), 1);
        (DecodedBrick { bytes: bytes.into(), layout }, buffers)
    }

    fn plane(at: u64) -> Region {
        Region { start: [at, 2].into(), shape: [1, 5].into() }
    }

    #[test]
    fn a_segment_shrinks_and_asks_for_its_continuation_once() {
        let (whole, buffers) = brick();
        let segments = Segments::default();
        assert!(segments.get(7, &plane(70)).is_none());
        segments.put(7, &whole, 70, 16, 1, &buffers);
        assert_eq!(segments.bytes(), 160);
        for at in 70..85 {
            let chunk = segments.get(7, &plane(at)).unwrap();
            assert!(!chunk.last);
            let start = chunk.brick.layout.offset_of(&plane(at).start) as usize;
            assert_eq!(chunk.brick.bytes[start..start + 5], [(at - 64) as u8; 5]);
        }
        assert_eq!(segments.bytes(), 20, "what is passed is dropped");
        assert!(segments.get(7, &plane(85)).unwrap().last);
        assert!(!segments.get(7, &plane(85)).unwrap().last, "only once");
        assert!(segments.get(7, &plane(86)).is_none());
        segments.put(7, &whole, 86, 64, 1, &buffers);
        assert!(segments.get(7, &plane(86)).is_some());
        assert!(segments.get(7, &plane(84)).is_none());
        assert!(segments.get(7, &plane(119)).is_some());
        assert!(segments.get(7, &plane(120)).is_none(), "the array ends there");
        segments.drop_before(8);
        assert_eq!(segments.bytes(), 0);
    }
}
