//! An array of constant, plain and coded bricks in memory, the model of what a reader should get, and its source.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::{Array, Census, FormatError};
use crate::source::{Blocking, Source, SourceError};
use crate::sync::Mutex;
use crate::volume::{
    ArrayInfo, Brick, BrickGrid, Coded, Dims, Dtype, Element, Layout, MAX_AXES, Plain, Region, StoredLength,
};

/// Brick `k` is constant, plain or coded (each byte inverted) by `k % 3`, and is stored at `k` times
/// [`MixedArray::stored_brick_bytes`].
pub(super) struct MixedArray {
    pub(super) info: ArrayInfo,
    /// Every brick is coded.
    pub(super) all_coded: bool,
    /// Planes of coded bricks can be decoded by themselves.
    pub(super) has_parts: bool,
    pub(super) is_fast: bool,
    pub(super) object: Vec<u8>,
    pub(super) margin: u64,
    pub(super) broken: Option<u64>,
    /// The decoder of this brick panics.
    pub(super) panics: Option<u64>,
    /// Every second 512 bytes of the object cannot be read without waiting.
    pub(super) slow: bool,
    /// Its readers keep what they read, as the kernel does in its page cache.
    pub(super) page_cached: bool,
    pub(super) changed: Mutex<bool>,
    pub(super) bytes_read: AtomicU64,
    /// What its source was told to fetch for later, if fetching takes long.
    pub(super) fetched: Option<Mutex<Vec<Range<u64>>>>,
}

/// The bytes of a sample where a test says nothing else.
pub(super) const SIZE: usize = 2;

impl MixedArray {
    /// The box that a brick holds: what it owns, and a margin.
    fn held(&self, at: &Dims) -> Region {
        let (owned, shape) = (self.info.grid.region(at), self.info.shape());
        let start = Dims::from_fn(shape.len(), |a| owned.start[a].saturating_sub(self.margin));
        let extent = Dims::from_fn(shape.len(), |a| (owned.end(a) + self.margin).min(shape[a]) - start[a]);
        Region { start, shape: extent }
    }

    fn stored_brick_bytes(&self) -> usize {
        let most = (0..self.info.grid.total()).map(|k| self.held(&self.info.grid.count().index_of(k)).samples());
        most.max().unwrap_or(0) as usize * self.size()
    }

    pub(super) fn size(&self) -> usize {
        self.info.dtype.size()
    }

    /// The sample at an index: a hash of the index, or the brick's number in a constant brick.
    pub(super) fn sample(&self, index: &Dims) -> Element {
        let grid = &self.info.grid;
        let brick = Dims::from_fn(index.len(), |a| grid.brick_of(a, index[a]));
        let k = grid.count().linear_of(&brick);
        self.element(if !self.all_coded && k.is_multiple_of(3) {
            k as u16
        } else {
            (self.info.shape().linear_of(index) as u16).wrapping_mul(40503)
        })
    }

    /// A sample of which all bytes tell it from others.
    fn element(&self, number: u16) -> Element {
        let bytes = (0..8).flat_map(|n| number.wrapping_add(0x3107u16.wrapping_mul(n)).to_le_bytes());
        Element::new(&bytes.take(self.size()).collect::<Vec<u8>>())
    }

    pub(super) fn all_coded(mut self) -> Self {
        self.all_coded = true;
        self.store();
        self
    }

    pub(super) fn new(shape: &[u64], origin: i64, step: &[u64], margin: u64) -> Self {
        Self::of(Dtype::UInt16, shape, origin, step, margin)
    }

    pub(super) fn of(dtype: Dtype, shape: &[u64], origin: i64, step: &[u64], margin: u64) -> Self {
        let (shape, step) = (Dims::from_slice(shape).unwrap(), Dims::from_slice(step).unwrap());
        let info = ArrayInfo::new(dtype, BrickGrid::new(shape, [origin; MAX_AXES], step), step);
        let mut mixed = Self {
            info,
            all_coded: false,
            has_parts: false,
            is_fast: false,
            object: Vec::new(),
            margin,
            broken: None,
            panics: None,
            slow: false,
            page_cached: false,
            changed: Mutex::new(false),
            bytes_read: AtomicU64::new(0),
            fetched: None,
        };
        mixed.store();
        mixed
    }

    /// Writes all bricks again.
    fn store(&mut self) {
        let room = self.stored_brick_bytes();
        self.object.clear();
        for k in 0..self.info.grid.total() {
            let held = self.held(&self.info.grid.count().index_of(k));
            let mut brick: Vec<u8> = (0..held.samples())
                .flat_map(|n| {
                    let within = held.shape.index_of(n);
                    let index = Dims::from_fn(within.len(), |a| held.start[a] + within[a]);
                    let flipped = if self.all_coded || k % 3 == 2 { 0xff } else { 0 };
                    self.sample(&index).bytes().iter().map(|byte| byte ^ flipped).collect::<Vec<u8>>()
                })
                .collect();
            brick.resize(room, 0);
            self.object.extend(brick);
        }
    }

    pub(super) fn whole(&self) -> Vec<u8> {
        let shape = self.info.shape();
        (0..shape.product().unwrap()).flat_map(|n| self.sample(&shape.index_of(n)).bytes().to_vec()).collect()
    }

    /// All samples with `axis` first, the others in their order.
    pub(super) fn whole_by(&self, axis: usize) -> Vec<u8> {
        let (whole, shape) = (self.whole(), self.info.shape());
        let (count, inner) = (shape[axis] as usize, shape.strides(self.size() as u64)[axis] as usize);
        let outer = whole.len() / (count * inner);
        let slices = (0..count).flat_map(|n| (0..outer).map(move |o| (o * count + n) * inner));
        slices.flat_map(|at| &whole[at..at + inner]).copied().collect()
    }

    /// Has its readers keep what they read.
    pub(super) fn page_cached(mut self) -> Self {
        self.page_cached = true;
        self
    }

    /// Makes half of the bytes unreadable without waiting.
    pub(super) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Returns the bytes that were read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Makes one brick unreadable.
    pub(super) fn broken(mut self, brick: u64) -> Self {
        self.broken = Some(brick);
        self
    }
}

impl Array for MixedArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        self
    }

    fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        let k = self.info.grid.count().linear_of(at);
        if self.broken == Some(k) {
            return Err(FormatError::Damaged("on purpose".into()));
        }
        let held = self.held(at);
        let layout = Layout { held, first: 0, strides: held.shape.strides(self.size() as u64) };
        let (object, room) = ("object".into(), self.stored_brick_bytes());
        let offset = k * room as u64;
        Ok(match if self.all_coded { 2 } else { k % 3 } {
            0 => Brick::Constant(self.element(k as u16)),
            1 => Brick::Plain(Plain { object, offset, layout }),
            _ => Brick::Coded(Coded {
                object,
                offset,
                length: StoredLength::Bytes(room as u64),
                decoded: room,
                scratch: 0,
                layout,
                codec: k,
            }),
        })
    }

    fn part_around(&self, coded: &Coded, region: &Region) -> Option<Coded> {
        let mut layout = coded.layout;
        (layout.held.start[0], layout.held.shape[0]) = (region.start[0], region.shape[0]);
        let decoded = (layout.strides[0] * region.shape[0]) as usize;
        (self.has_parts && region.shape[0] < coded.layout.held.shape[0]).then(|| Coded {
            layout,
            decoded,
            ..coded.clone()
        })
    }

    fn decodes_fast(&self) -> bool {
        self.is_fast
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        assert_ne!(self.panics, Some(coded.codec), "on purpose");
        let whole = self.held(&self.info.grid.count().index_of(coded.codec));
        let first = (coded.layout.held.start[0] - whole.start[0]) * coded.layout.strides[0];
        let stored = &stored[first as usize..][..out.len()];
        out.iter_mut().zip(stored).for_each(|(to, from)| *to = !from);
        Ok(())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

impl Source for MixedArray {
    fn len(&self, _: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.object.len() as u64))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        assert_eq!(object, "object");
        if blocking == Blocking::No && self.slow && (offset / 512) % 2 == 1 {
            return Err(SourceError::WouldBlock);
        }
        self.bytes_read.fetch_add(out.len() as u64, Ordering::Relaxed);
        let start = offset as usize;
        out.copy_from_slice(&self.object[start..start + out.len()]);
        Ok(true)
    }

    fn fetches_ahead(&self) -> bool {
        self.fetched.is_some()
    }

    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let fetched = self.fetched.iter().filter(|_| !awaited);
        fetched.for_each(|all| all.lock().extend(ranges.iter().map(|(_, range)| range.clone())));
        true
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if *self.changed.lock() { Err(SourceError::Changed) } else { Ok(()) }
    }
}
