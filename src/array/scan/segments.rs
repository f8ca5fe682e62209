//! Segments: the planes of decoded bricks that a scan keeps if a layer of bricks does not fit the cache.
//!
//! Every plane of a scan touches all bricks of a layer. If these do not fit, LRU evicts each brick just before it is
//! needed again, and each is decoded for each of its planes. So a scan keeps only the next few planes of each decoded
//! brick, its *segment*. A segment shrinks as the scan goes on: it is stored in chunks, and a chunk is released as soon
//! as all of it was read. Segments of different bricks end at different planes, so on average half of their length is
//! held, and decoding is spread evenly.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::segment_plan::CHUNKS;
use crate::array::copy::extract;
use crate::cache::DecodedBrick;
use crate::memory::{BufferPool, trim_heap};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::volume::Region;

/// Chunks from this size on take whole pages of memory.
const PAGE: u64 = 4096;

/// The segments of one scan, by brick number.
#[derive(Default)]
pub(crate) struct Segments {
    segments: Mutex<HashMap<u64, Segment>>,
    bytes: AtomicUsize,
    /// Planes were kept since the last [`Segments::clear`].
    used: AtomicBool,
}

/// Consecutive planes of a brick. It is empty if all were read or released.
#[derive(Default)]
struct Segment {
    /// In ascending order of planes.
    chunks: VecDeque<Chunk>,
    /// It was cut short together with other segments, so it may end in the same plane as those.
    trimmed: bool,
}

struct Chunk {
    planes: Arc<DecodedBrick>,
    /// Samples that were not read yet.
    unread: u64,
}

/// The planes of a brick that are to be kept.
#[derive(Clone, Copy)]
pub(crate) struct KeptPlanes<'a> {
    /// The planes, of the region that the brick owns.
    pub region: Region,
    /// The part of them that was just read.
    pub read: Option<&'a Region>,
    /// Bytes of a sample.
    pub size: usize,
}

impl Segments {
    /// Returns the planes of a brick that hold `region`, if they are kept. With `read` they count as read, and a chunk
    /// is released once all of it was read.
    pub(crate) fn get(&self, brick: u64, region: &Region, read: bool) -> Option<Arc<DecodedBrick>> {
        let mut segments = self.lock();
        let segment = segments.get_mut(&brick)?;
        let chunks = &mut segment.chunks;
        let at = chunks.iter().position(|chunk| chunk.planes.layout.held.contains(region))?;
        let planes = Arc::clone(&chunks[at].planes);
        if read {
            chunks[at].unread = chunks[at].unread.saturating_sub(region.samples());
            let released = if chunks[at].unread == 0 { chunks.remove(at) } else { None };
            drop(segments);
            self.bytes.fetch_sub(chunk_bytes(&released), Ordering::Relaxed);
        }
        Some(planes)
    }

    /// Whether `region` of a brick is kept.
    pub(crate) fn holds(&self, brick: u64, region: &Region) -> bool {
        self.get(brick, region, false).is_some()
    }

    /// Whether a brick has had a segment that was not trimmed: its end differs from those of its neighbours, so the
    /// next one may have full length.
    pub(crate) fn had_segment(&self, brick: u64) -> bool {
        self.lock().get(&brick).is_some_and(|segment| !segment.trimmed)
    }

    /// Keeps planes of a brick, as far as `whole` holds them.
    pub(crate) fn put(&self, brick: u64, whole: &DecodedBrick, kept: KeptPlanes<'_>, buffers: &Arc<BufferPool>) {
        let Some(region) = whole.layout.held.intersection(&kept.region) else { return };
        let (from, end) = (region.start[0], region.end(0));
        let plane = region.shape[1..].iter().product::<u64>() * kept.size as u64;
        let mut chunk_planes = region.shape[0].div_ceil(CHUNKS).max(1);
        if chunk_planes.saturating_mul(plane) > PAGE {
            chunk_planes = chunk_planes.next_multiple_of((PAGE / plane.max(1)).max(1));
        }
        let mut chunks = VecDeque::new();
        let mut at = from;
        while at < end {
            let until = at.saturating_add(chunk_planes).min(end);
            let mut held = region;
            (held.start[0], held.shape[0]) = (at, until - at);
            // without memory the planes are decoded again
            let Ok(planes) = extract(whole, held, kept.size, buffers) else { break };
            let planes = Arc::new(planes);
            let read = kept.read.and_then(|read| read.intersection(&held)).map_or(0, |read| read.samples());
            if read < held.samples() {
                chunks.push_back(Chunk { planes, unread: held.samples() - read });
            }
            at = until;
        }
        self.used.store(true, Ordering::Relaxed);
        self.bytes.fetch_add(chunk_bytes(&chunks), Ordering::Relaxed);
        let mut segments = self.lock();
        let segment = segments.entry(brick).or_default();
        // the rest of the old segment is still being read
        let keep = segment.chunks.iter().take_while(|old| old.planes.layout.held.end(0) <= from).count();
        let overlap = segment.chunks.split_off(keep);
        segment.chunks.append(&mut chunks);
        segment.trimmed = false;
        drop(segments);
        self.bytes.fetch_sub(chunk_bytes(&overlap), Ordering::Relaxed);
    }

    /// Releases the planes before `plane`, and the segments of bricks before `brick`, which the scan has passed.
    pub(crate) fn release_before(&self, plane: u64, brick: u64) {
        let mut released = Vec::new();
        let mut segments = self.lock();
        segments.retain(|number, segment| {
            let passed = segment.chunks.iter().take_while(|chunk| chunk.planes.layout.held.end(0) <= plane).count();
            released.extend(segment.chunks.drain(..passed));
            *number >= brick || !segment.chunks.is_empty()
        });
        drop(segments);
        self.bytes.fetch_sub(chunk_bytes(&released), Ordering::Relaxed);
    }

    /// Releases everything.
    pub(crate) fn clear(&self) {
        let dropped = std::mem::take(&mut *self.lock());
        self.bytes.fetch_sub(dropped.values().map(|segment| chunk_bytes(&segment.chunks)).sum(), Ordering::Relaxed);
        drop(dropped);
        // the scan keeps whole bricks from now on, which come from other size classes of the allocator
        if self.used.swap(false, Ordering::Relaxed) {
            trim_heap();
        }
    }

    /// Releases the planes that will be read last until no more than `max_bytes` bytes are left.
    pub(crate) fn trim(&self, max_bytes: usize) {
        let excess = self.bytes().saturating_sub(max_bytes);
        if excess == 0 {
            return;
        }
        let mut released = Vec::new();
        let mut segments = self.lock();
        let ends = |(number, segment): (&u64, &Segment)| {
            let numbered = |chunk: &Chunk| (chunk.planes.layout.held.start[0], *number);
            segment.chunks.iter().map(numbered).collect::<Vec<_>>()
        };
        let mut last: Vec<(u64, u64)> = segments.iter().flat_map(ends).collect();
        last.sort_unstable();
        for (_, number) in last.into_iter().rev() {
            if chunk_bytes(&released) >= excess {
                break;
            }
            if let Some(segment) = segments.get_mut(&number) {
                released.extend(segment.chunks.pop_back());
                segment.trimmed = true;
            }
        }
        drop(segments);
        self.bytes.fetch_sub(chunk_bytes(&released), Ordering::Relaxed);
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Segment>> {
        self.segments.lock()
    }
}

fn chunk_bytes<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> usize {
    chunks.into_iter().map(|chunk| chunk.planes.bytes.capacity()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Layout;

    fn brick() -> (DecodedBrick, Arc<BufferPool>) {
        let buffers = BufferPool::new(0);
        let mut bytes = buffers.take(64 * 10);
        bytes.iter_mut().enumerate().for_each(|(n, b)| *b = (n / 10) as u8);
        let layout = Layout::c_order([64, 0].into(), [64, 10].into(), [120, 10].into(), 1);
        (DecodedBrick { bytes: bytes.into(), layout }, buffers)
    }

    fn plane(at: u64) -> Region {
        Region { start: [at, 2].into(), shape: [1, 5].into() }
    }

    fn keep(from: u64, planes: u64) -> KeptPlanes<'static> {
        KeptPlanes { region: Region { start: [from, 0].into(), shape: [planes, 10].into() }, read: None, size: 1 }
    }

    #[test]
    fn a_segment_shrinks_as_it_is_read() {
        let (whole, buffers) = brick();
        let segments = Segments::default();
        assert!(segments.get(7, &plane(70), true).is_none());
        segments.put(7, &whole, keep(70, 16), &buffers);
        assert_eq!(segments.bytes(), 160);
        let half = |at, from| Region { start: [at, from].into(), shape: [1, 5].into() };
        for at in 70..85 {
            for from in [0, 5] {
                let planes = segments.get(7, &half(at, from), true).unwrap();
                let start = planes.layout.offset_of(&half(at, from).start) as usize;
                assert_eq!(planes.bytes[start..start + 5], [(at - 64) as u8; 5]);
            }
        }
        assert_eq!(segments.bytes(), 10, "the last plane is not read");
        assert!(segments.get(7, &half(85, 0), false).is_some());
        assert!(segments.get(7, &half(85, 0), true).is_some());
        assert!(segments.get(7, &half(85, 5), true).is_some());
        assert_eq!(segments.bytes(), 0, "all of it was read");
        assert!(!segments.holds(7, &plane(85)) && segments.had_segment(7));
        segments.put(7, &whole, KeptPlanes { read: Some(&plane(86)), ..keep(86, 64) }, &buffers);
        assert!(segments.holds(7, &plane(86)) && segments.holds(7, &plane(119)));
        assert!(!segments.holds(7, &plane(85)) && !segments.holds(7, &plane(120)), "the array ends there");
        segments.release_before(118, 8);
        assert!(segments.had_segment(7) && !segments.holds(7, &plane(100)) && segments.holds(7, &plane(118)));
        segments.release_before(120, 8);
        assert_eq!((segments.bytes(), segments.had_segment(7)), (0, false));
    }

    #[test]
    fn planes_that_were_just_read_are_not_kept() {
        let (whole, buffers) = brick();
        let segments = Segments::default();
        let read = Region { start: [70, 0].into(), shape: [1, 10].into() };
        segments.put(3, &whole, KeptPlanes { read: Some(&read), ..keep(70, 4) }, &buffers);
        assert_eq!(segments.bytes(), 30);
        segments.trim(10);
        assert_eq!(segments.bytes(), 10);
        assert!(segments.holds(3, &plane(71)) && !segments.holds(3, &plane(72)) && !segments.had_segment(3));
        segments.clear();
        assert_eq!(segments.bytes(), 0);
    }
}
