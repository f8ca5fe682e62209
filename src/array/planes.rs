//! The planes of decoded bricks that a scan keeps if a layer of bricks does not fit the cache.
//!
//! Every plane of a scan touches all bricks of a layer. If these do not fit, LRU evicts each brick just before it is
//! needed again, and each is decoded for each of its planes. So a scan keeps only the next few planes of each decoded
//! brick, its *segment*. A segment shrinks as the scan goes on: it is stored in chunks, and a chunk is released as soon
//! as all of it was read. Segments of different bricks end at different planes, so on average half of their length is
//! held, and decoding is spread evenly.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::cache::DecodedBrick;
use crate::memory::{BufferPool, entry_weight, trim_heap};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::volume::{AxisPermutation, Region};

/// The greatest number of chunks in a segment.
const CHUNKS: u64 = 16;

/// Bytes of a chunk besides its samples.
const CHUNK_OVERHEAD: u64 = 350;

/// Chunks from this size on take whole pages of memory.
const PAGE: u64 = 4096;

/// The planes that one scan keeps, by the number of their brick in the order of the scan.
pub(super) struct KeptPlanes {
    order: AxisPermutation,
    segments: Mutex<HashMap<u64, Segment>>,
    bytes: AtomicUsize,
    /// Planes were kept since the last [`KeptPlanes::clear`].
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

impl KeptPlanes {
    /// For a scan of an array with permuted axes: planes are those across the first of them.
    pub(super) fn new(order: AxisPermutation) -> Self {
        Self { order, segments: Mutex::default(), bytes: AtomicUsize::new(0), used: AtomicBool::new(false) }
    }

    /// Returns the planes of a brick that hold `region`, if they are kept. With `read` they count as read, and a chunk
    /// is released once all of it was read.
    pub(super) fn get(&self, brick: u64, region: &Region, read: bool) -> Option<Arc<DecodedBrick>> {
        let mut segments = self.segments.lock();
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
    pub(super) fn holds(&self, brick: u64, region: &Region) -> bool {
        self.get(brick, region, false).is_some()
    }

    /// Whether a brick has had a segment that was not trimmed: its end differs from those of its neighbours, so the
    /// next one may have full length.
    pub(super) fn had_segment(&self, brick: u64) -> bool {
        self.segments.lock().get(&brick).is_some_and(|segment| !segment.trimmed)
    }

    /// Keeps the planes `kept` of a brick, as far as `whole` holds them; `read` is the part of them that was just read.
    /// A sample has `size` bytes.
    pub(super) fn put(
        &self,
        brick: u64,
        whole: &DecodedBrick,
        kept: &Region,
        read: Option<&Region>,
        (size, buffers): (usize, &Arc<BufferPool>),
    ) {
        let Some(region) = whole.layout.held.intersection(kept) else { return };
        let axis = self.order.axis(0);
        let (from, end) = (region.start[axis], region.end(axis));
        let plane = region.samples() / region.shape[axis] * size as u64;
        let chunk_planes = chunk_planes(region.shape[axis], plane);
        let mut chunks = VecDeque::new();
        let mut at = from;
        while at < end {
            let until = at.saturating_add(chunk_planes).min(end);
            let mut held = region;
            (held.start[axis], held.shape[axis]) = (at, until - at);
            // without memory the planes are decoded again
            let Ok(planes) = whole.part(held, &self.order, size, buffers) else { break };
            let planes = Arc::new(planes);
            let read = read.and_then(|read| read.intersection(&held)).map_or(0, |read| read.samples());
            if read < held.samples() {
                chunks.push_back(Chunk { planes, unread: held.samples() - read });
            }
            at = until;
        }
        self.used.store(true, Ordering::Relaxed);
        self.bytes.fetch_add(chunk_bytes(&chunks), Ordering::Relaxed);
        let mut segments = self.segments.lock();
        let segment = segments.entry(brick).or_default();
        // the rest of the old segment is still being read
        let keep = segment.chunks.iter().take_while(|old| old.planes.layout.held.end(axis) <= from).count();
        let overlap = segment.chunks.split_off(keep);
        segment.chunks.append(&mut chunks);
        segment.trimmed = false;
        drop(segments);
        self.bytes.fetch_sub(chunk_bytes(&overlap), Ordering::Relaxed);
    }

    /// Releases the planes before `plane`, and the segments of bricks before `brick`, which the scan has passed.
    pub(super) fn release_before(&self, plane: u64, brick: u64) {
        let (axis, mut released) = (self.order.axis(0), Vec::new());
        let mut segments = self.segments.lock();
        segments.retain(|number, segment| {
            let passed = segment.chunks.iter().take_while(|chunk| chunk.planes.layout.held.end(axis) <= plane).count();
            released.extend(segment.chunks.drain(..passed));
            *number >= brick || !segment.chunks.is_empty()
        });
        drop(segments);
        self.bytes.fetch_sub(chunk_bytes(&released), Ordering::Relaxed);
    }

    /// Releases everything.
    pub(super) fn clear(&self) {
        let dropped = std::mem::take(&mut *self.segments.lock());
        self.bytes.fetch_sub(dropped.values().map(|segment| chunk_bytes(&segment.chunks)).sum(), Ordering::Relaxed);
        drop(dropped);
        // the scan keeps whole bricks from now on, which come from other size classes of the allocator
        if self.used.swap(false, Ordering::Relaxed) {
            trim_heap();
        }
    }

    /// Releases the planes that will be read last until no more than `max_bytes` bytes are left.
    pub(super) fn trim(&self, max_bytes: usize) {
        let excess = self.bytes().saturating_sub(max_bytes);
        if excess == 0 {
            return;
        }
        let (axis, mut released) = (self.order.axis(0), Vec::new());
        let mut segments = self.segments.lock();
        let ends = |(number, segment): (&u64, &Segment)| {
            let numbered = |chunk: &Chunk| (chunk.planes.layout.held.start[axis], *number);
            segment.chunks.iter().map(numbered).collect::<Vec<_>>()
        };
        let mut last: Vec<(u64, u64)> = segments.iter().flat_map(ends).collect();
        last.sort_unstable();
        let mut bytes = 0;
        for (_, number) in last.into_iter().rev() {
            if bytes >= excess {
                break;
            }
            if let Some(segment) = segments.get_mut(&number) {
                let chunk = segment.chunks.pop_back();
                bytes += chunk_bytes(&chunk);
                released.extend(chunk);
                segment.trimmed = true;
            }
        }
        drop(segments);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn chunk_bytes<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> usize {
    chunks.into_iter().map(|chunk| entry_weight(chunk.planes.bytes.capacity())).sum()
}

/// Returns the planes of a chunk, for `planes` planes of a brick with `plane` bytes each. Longer chunks have less overhead,
/// but half of a chunk is held although it was read: the sum of both is least at this square root.
fn chunk_planes(planes: u64, plane: u64) -> u64 {
    let in_page = (PAGE / plane.max(1)).max(1);
    let shared = ((2 * CHUNK_OVERHEAD).saturating_mul(planes) / plane.max(1)).isqrt();
    let chunk = planes.div_ceil(CHUNKS).max(shared).clamp(1, planes.max(1));
    if chunk.saturating_mul(plane) > PAGE { chunk.next_multiple_of(in_page) } else { chunk }
}

/// Returns the bytes that a plane takes in a segment that is half of a brick with `planes` planes of `plane` bytes each.
pub(super) fn plane_cost(planes: u64, plane: u64) -> u64 {
    let chunk = chunk_planes(planes.div_ceil(2), plane);
    let bytes = usize::try_from(chunk.saturating_mul(plane)).unwrap_or(usize::MAX);
    (entry_weight(bytes) as u64).div_ceil(chunk)
}

/// The percentage of the memory that a plan uses: segments do not end quite evenly, so that more is held at times.
const PLANNED: u64 = 97;

/// The lengths of the segments of one layer, in planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentPlan {
    /// Bricks of the layer.
    bricks: u64,
    /// The number of bricks that are kept whole from the first plane on.
    whole: u64,
    /// The shortest and the longest first segment of the other bricks.
    first: (u64, u64),
    /// The length of all later segments.
    longest: u64,
}

impl SegmentPlan {
    /// Plans for a layer of `bricks` bricks, each `depth` planes deep, in `share` bytes of memory. One plane of all
    /// bricks takes `plane` bytes, and the samples of one brick in it `of_brick`.
    ///
    /// With memory for half of the layer or more, some bricks are kept whole, and the others get a first segment after
    /// which the rest of all bricks fits. With less, segments are twice as long as there is room for, since on average
    /// half of each was released; and the first segments have all lengths up to that, so that they do not all end in
    /// the same plane.
    pub(super) fn new(share: usize, bricks: u64, depth: u64, (plane, of_brick): (u64, u64)) -> Self {
        let (plane, depth, wide) = (u128::from(plane.max(1)), u128::from(depth.max(1)), u128::from(bricks));
        let memory = (share as u128 * u128::from(PLANNED) / 100).min(plane * depth);
        let narrow = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        if 2 * memory >= plane * depth {
            let whole = wide * (2 * memory - plane * depth) / memory.max(1);
            let first = depth - (memory / plane).min(depth - 1);
            let first = (narrow(first), narrow(first));
            return Self { bricks, whole: narrow(whole), first, longest: narrow(depth) };
        }
        // a plane is released when it was read, so a segment of two planes holds one at most; of a segment in larger
        // chunks, one chunk is held although it was read in part
        let twice = 2 * memory / plane;
        let chunk = chunk_planes(narrow(twice), of_brick);
        let longest = (twice + 2).saturating_sub(chunk.into()).clamp(1, depth);
        Self { bricks, whole: 0, first: (1, narrow(longest)), longest: narrow(longest) }
    }

    /// Returns the planes of the longest segment.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the planes of the first segment of the layer's brick number `n`.
    pub(super) fn first(&self, n: u64) -> u64 {
        // neighbours get different lengths, so that the segments that end in one plane are spread over the plane
        let whole_before = |n: u64| u128::from(n) * u128::from(self.whole) / u128::from(self.bricks.max(1));
        if whole_before(n + 1) > whole_before(n) {
            return self.longest;
        }
        let (least, most) = self.first;
        let golden = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        least + ((u128::from(golden) * u128::from(most - least + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Layout;

    /// Bytes of a plane: so large that each is a chunk.
    const WIDE: u64 = 1 << 16;

    fn brick() -> (DecodedBrick, Arc<BufferPool>) {
        let buffers = BufferPool::new(0);
        let mut bytes = buffers.take(64 * WIDE as usize);
        bytes.iter_mut().enumerate().for_each(|(n, b)| *b = (n / WIDE as usize) as u8);
        let layout = Layout::c_order([64, 0].into(), [64, WIDE].into(), [120, WIDE].into(), 1);
        (DecodedBrick { bytes, layout }, buffers)
    }

    fn plane(at: u64) -> Region {
        Region { start: [at, 2].into(), shape: [1, 5].into() }
    }

    fn planes(from: u64, planes: u64) -> Region {
        Region { start: [from, 0].into(), shape: [planes, WIDE].into() }
    }

    fn weight(planes: usize) -> usize {
        planes * entry_weight(WIDE as usize)
    }

    #[test]
    fn small_planes_share_the_overhead_of_a_chunk() {
        let (whole, buffers) = brick();
        let segments = KeptPlanes::new(AxisPermutation::to_front(0));
        for (number, width) in (0..).zip([16, 64, 256, 1000, WIDE]) {
            let kept = Region { start: [64, 0].into(), shape: [56, width].into() };
            let before = segments.bytes();
            segments.put(number, &whole, &kept, None, (1, &buffers));
            let taken = (segments.bytes() - before) as u64;
            let planned = 56 * plane_cost(56, width);
            assert!(taken <= planned * 5 / 4 + 400 && planned <= taken * 5 / 4, "{width}: {taken}, {planned}");
            assert!(taken >= 56 * width && taken <= 56 * width * 2 + 400, "{width}: {taken}");
        }
        segments.clear();
        assert_eq!(segments.bytes(), 0);
    }

    #[test]
    fn a_segment_shrinks_as_it_is_read() {
        let (whole, buffers) = brick();
        let segments = KeptPlanes::new(AxisPermutation::to_front(0));
        assert!(segments.get(7, &plane(70), true).is_none());
        segments.put(7, &whole, &planes(70, 16), None, (1, &buffers));
        assert_eq!(segments.bytes(), weight(16));
        let half = |at, from| Region { start: [at, from].into(), shape: [1, WIDE / 2].into() };
        for at in 70..85 {
            for from in [0, WIDE / 2] {
                let planes = segments.get(7, &half(at, from), true).unwrap();
                let start = planes.layout.offset_of(&half(at, from).start) as usize;
                assert_eq!(planes.bytes[start..start + 5], [(at - 64) as u8; 5]);
            }
        }
        assert_eq!(segments.bytes(), weight(1), "the last plane is not read");
        assert!(segments.get(7, &half(85, 0), false).is_some());
        assert!(segments.get(7, &half(85, 0), true).is_some());
        assert!(segments.get(7, &half(85, WIDE / 2), true).is_some());
        assert_eq!(segments.bytes(), 0, "all of it was read");
        assert!(!segments.holds(7, &plane(85)) && segments.had_segment(7));
        segments.put(7, &whole, &planes(86, 64), Some(&plane(86)), (1, &buffers));
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
        let segments = KeptPlanes::new(AxisPermutation::to_front(0));
        let read = Region { start: [70, 0].into(), shape: [1, WIDE].into() };
        segments.put(3, &whole, &planes(70, 4), Some(&read), (1, &buffers));
        assert_eq!(segments.bytes(), weight(3));
        segments.trim(weight(1));
        assert_eq!(segments.bytes(), weight(1));
        assert!(segments.holds(3, &plane(71)) && !segments.holds(3, &plane(72)) && !segments.had_segment(3));
        segments.clear();
        assert_eq!(segments.bytes(), 0);
    }

    /// Returns how often a pass decodes each brick, and the most that was held as a fraction of `share`.
    fn pass(share: usize, bricks: u64, depth: u64, plane: u64) -> (f64, f64) {
        let plan = SegmentPlan::new(share, bricks, depth, (plane, PAGE));
        let each = plane / bricks;
        let mut left: Vec<Option<u64>> = vec![None; bricks as usize];
        let (mut decodes, mut most) = (0, 0);
        for at in 0..depth {
            for n in 0..bricks {
                let held: u64 = left.iter().flatten().sum::<u64>() * each;
                most = most.max(held);
                let this = &mut left[n as usize];
                if matches!(this, None | Some(0)) {
                    decodes += 1;
                    let planes = if this.is_none() { plan.first(n) } else { plan.longest() };
                    let room = share as u64 - held;
                    *this = Some(planes.min(depth - at).min(room / each).max(1));
                }
                *this = this.map(|planes| planes - 1);
            }
        }
        (f64::from(decodes) / bricks as f64, most as f64 / share as f64)
    }

    #[test]
    fn a_pass_decodes_little_more_than_need_be() {
        for (part, best) in
            [(0.98, 1.1), (0.75, 1.33), (0.5, 2.0), (0.375, 2.3), (0.25, 3.0), (0.125, 4.9), (0.0625, 8.9)]
        {
            for bricks in [64, 128, 1000] {
                let layer = bricks * 64 * 100;
                let (decodes, most) = pass((layer as f64 * part) as usize, bricks, 64, bricks * 100);
                assert!(decodes <= best * 1.13, "{part} of {bricks}: {decodes}");
                assert!(most <= 1.0, "{part} of {bricks}: {most}");
            }
        }
    }

    #[test]
    fn whatever_the_numbers_segments_have_a_length() {
        for share in [0, 1, 1000, usize::MAX] {
            for (bricks, depth, plane) in [(0, 0, 0), (1, 1, 1), (7, 64, 1), (1 << 40, 64, u64::MAX), (3, u64::MAX, 7)]
            {
                let plan = SegmentPlan::new(share, bricks, depth, (plane, PAGE));
                for n in [0, 1, bricks.saturating_sub(1)] {
                    assert!((1..=depth.max(1)).contains(&plan.first(n)), "{plan:?}");
                }
                assert!((1..=depth.max(1)).contains(&plan.longest()), "{plan:?}");
            }
        }
    }
}
