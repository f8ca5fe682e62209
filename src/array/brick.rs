//! One brick for one reader: from the cache, from the planes that the reader's scan keeps, or loaded now.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::cache::{DecodeResult, DecodedBrick, Keep, Lookup};
use super::copy::Loops;
use super::early_eviction::BrickKey;
use super::plain::{Calls, MAX_AMPLIFICATION, missing_object};
use super::planes::SegmentPlan;
use super::region::Piece;
use super::resources::Resources;
use super::scan::{Retention, Scan};
use crate::counters::{Counter, Counters};
use crate::format::{Array, FormatError};
use crate::memory::claim;
use crate::pool::Bulkhead;
use crate::source::Blocking;
use crate::volume::{ArrayInfo, AxisPermutation, Brick, Coded, Dims, Layout, ObjectName, Plain, Region, StoredLength};

/// The kernel's own read-ahead reads fewer bytes than this beyond the reader's own.
const KERNEL_READ_AHEAD: u64 = 512 << 10;
/// Larger plain bricks are never loaded whole.
const MAX_WHOLE: u64 = 8 << 20;
/// Bricks whose contiguous runs are shorter than this (in bytes) are transposed once, when they are loaded, and not for
/// every plane.
const SHORT_RUN: u64 = 16;
/// Parts of plain bricks that span more than this are not fetched ahead: they may be rows far from each other.
const MAX_SPAN: u64 = 8 << 20;

/// Planes are kept in place of a brick that has this many times as many.
const FEW_PLANES: u64 = 8;
/// Tables through which a brick is found, at most: the index of a shard, and that of a part of it.
const TABLE_DEPTHS: usize = 2;

/// Why a brick is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A reader copies samples from it now.
    Read,
    /// A scan will need it.
    Prefetch,
}

/// One reader's access to the bricks of an array.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) resources: Arc<Resources>,
    pub(super) array: Arc<dyn Array>,
    /// The concurrency limit of the source that the array is read from.
    pub(super) bulkhead: Bulkhead,
    /// The reader's scan, if the reader is sequential.
    pub(super) scan: Option<Arc<Scan>>,
    /// Counters that count the work for this reader, besides those of all readers.
    pub(super) counters: Option<Arc<Counters>>,
    /// Whether bricks of which all samples are read are dropped afterwards. For large reads: new memory for the cache
    /// costs as much as decoding again.
    pub(super) drops_whole_bricks: bool,
    /// Whether bricks are kept when they are decoded the second time.
    pub(super) keeps_when_decoded_again: bool,
    /// What may be loaded in place of a whole brick.
    pub(super) parts: Parts,
}

/// Which parts of coded bricks may be loaded in place of all of them: none for readers that go on to the other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    None,
    /// Those that take less time to decode.
    Faster,
    /// Those, and planes that take less memory.
    FasterOrSmaller,
}

impl Access {
    /// Access without a scan: bricks are loaded whole and kept.
    pub(super) fn new(resources: &Arc<Resources>, array: Arc<dyn Array>, bulkhead: Bulkhead) -> Self {
        Self {
            resources: Arc::clone(resources),
            array,
            bulkhead,
            scan: None,
            counters: None,
            drops_whole_bricks: false,
            keeps_when_decoded_again: false,
            parts: Parts::None,
        }
    }

    pub(super) fn info(&self) -> &ArrayInfo {
        self.array.info()
    }

    /// Bytes of a sample.
    pub(super) fn sample_size(&self) -> usize {
        self.info().dtype.size()
    }

    /// Adds to a counter of all readers, and of this one.
    pub(super) fn count(&self, counter: impl Fn(&Counters) -> &Counter, n: u64) {
        self.resources.counters.add(self.counters.as_deref(), counter, n);
    }

    /// Counts bytes that were read from the source for this reader. Those of all readers are counted by the source.
    pub(super) fn count_source_bytes(&self, n: usize) {
        self.counters.as_ref().inspect(|counters| counters.source_bytes.add(n as u64));
    }

    /// The cache's key of a brick.
    pub(super) fn key(&self, brick: &Dims) -> BrickKey {
        (self.info().id, self.info().grid.count().linear_of(brick))
    }

    /// Looks up the bricks of pieces in the cache, under one lock.
    pub(super) fn look_up(&self, pieces: &[Piece], lookups: &mut Vec<Lookup>) {
        lookups.clear();
        lookups.extend(pieces.iter().map(|piece| (self.key(&piece.brick), None)));
        let mut found = self.resources.cache.get_many(lookups);
        if (self.scan.is_none() || self.parts != Parts::None) && found < lookups.len() {
            let missing = lookups.iter().zip(pieces).enumerate().filter(|(_, ((_, brick), _))| brick.is_none());
            let (places, mut parts): (Vec<usize>, Vec<Lookup>) =
                missing.map(|(n, (_, piece))| (n, (self.part_key(&piece.brick), None))).unzip();
            self.resources.cache.get_many(&mut parts);
            for (n, (_, part)) in places.into_iter().zip(parts) {
                lookups[n].1 = part.filter(|part| part.layout.held.contains(&pieces[n].region));
                found += usize::from(lookups[n].1.is_some());
            }
        }
        self.count(|counters| &counters.cache_hits, found as u64);
    }

    /// The cache's key of a part of a brick: beyond those of bricks.
    fn part_key(&self, brick: &Dims) -> BrickKey {
        let (id, number) = self.key(brick);
        (id, number.wrapping_add(self.info().grid.total()))
    }

    /// Returns the planes that the scan keeps, if they have the samples of a piece that is read now.
    pub(super) fn kept_planes(&self, piece: &Piece) -> Option<Arc<DecodedBrick>> {
        let scan = self.scan.as_ref()?;
        let planes = scan.planes.get(scan.bricks.number(&piece.brick), &piece.region, true)?;
        self.count(|counters| &counters.cache_hits, 1);
        Some(planes)
    }

    /// Whether `region` of a brick is in memory. This does not count as a use.
    pub(super) fn is_in_memory(&self, brick: &Dims, region: &Region) -> bool {
        let cache = &self.resources.cache;
        self.scan.as_ref().is_some_and(|scan| scan.planes.holds(scan.bricks.number(brick), region))
            || cache.contains(self.key(brick))
            || self.parts != Parts::None && cache.contains(self.part_key(brick))
    }

    /// Returns a brick that holds `region`, from memory or loaded now, and keeps it as the reader's scan has decided.
    /// `brick` says where it is stored; it [is loaded whole](Self::is_loaded_whole).
    pub(super) fn get_or_load(&self, at: &Dims, brick: &Brick, region: &Region, purpose: Purpose) -> DecodeResult {
        if self.parts != Parts::None
            && let Some(part) = self.get_or_load_part(at, brick, region)
        {
            return part;
        }
        loop {
            let loaded = match self.scan.as_ref().map(|scan| (scan, scan.now().retention)) {
                Some((scan, Retention::Planes(plan))) => self.get_or_decode(at, Keep::Never, || {
                    // another thread may have loaded it since this one looked
                    if let Some(planes) = scan.planes.get(scan.bricks.number(at), region, purpose == Purpose::Read) {
                        return Ok(planes);
                    }
                    let brick = self.load(brick)?;
                    self.keep_planes(scan, plan, at, &brick, region, purpose);
                    Ok(Arc::new(brick))
                })?,
                scan => {
                    // bricks that are decoded while the scan is only beginning belong to the scan as well
                    let of_scan = scan
                        .filter(|(scan, retention)| *retention == Retention::Bricks || scan.continues_to_next_plane());
                    let keep = match of_scan {
                        Some(_) => Keep::Scan,
                        None if self.drops_whole_bricks && *region == self.info().grid.region(at) => Keep::Never,
                        None if self.keeps_when_decoded_again => Keep::IfDecodedAgain,
                        None => Keep::Shared,
                    };
                    self.get_or_decode(at, keep, || {
                        of_scan.inspect(|(scan, _)| scan.update(|state| state.decoded += 1));
                        Ok(Arc::new(self.load(brick)?))
                    })?
                }
            };
            // a thread that waited for another one may get planes that do not hold its own region
            let held = |layout: &Layout| layout.held.contains(region);
            if held(&loaded.layout) || !brick.layout().is_some_and(held) {
                return Ok(loaded);
            }
        }
    }

    /// Returns a part of a brick that holds `region`, in place of all of it, unless another part is in the cache: readers
    /// that need a second one are likely to need more. The part takes less time to decode, or less memory that the kernel
    /// has to make, which takes as long as fast codecs.
    fn get_or_load_part(&self, at: &Dims, brick: &Brick, region: &Region) -> Option<DecodeResult> {
        let Brick::Coded(coded) = brick else { return None };
        let part = self.array.part_around(coded, region);
        let slab = match part {
            Some(_) => None,
            None if self.parts == Parts::Faster => return None,
            None => Some(self.slab_around(coded, region)?),
        };
        let key = self.part_key(at);
        let decode = || {
            let brick = self.decode(part.as_ref().unwrap_or(coded), false)?;
            let (order, size) = (&AxisPermutation::IDENTITY, self.sample_size());
            Ok(Arc::new(match slab {
                Some(slab) => brick.part(slab, order, size, &self.resources.buffers)?,
                None => brick,
            }))
        };
        let (found, was_cached) = self.resources.cache.get_or_decode(key, Keep::Shared, decode);
        if found.as_ref().is_ok_and(|part| !part.layout.held.contains(region)) {
            self.resources.cache.remove_part(key, self.key(at));
            return None;
        }
        self.count(|counters| if was_cached { &counters.cache_hits } else { &counters.cache_misses }, 1);
        Some(found)
    }

    /// Returns a few planes of a brick, if `region` has much of the first or the second one, and the brick decodes fast or
    /// there is no memory yet for all of it: it is decoded into memory that is used again for the next one. The other
    /// planes are what the kernel reads before and ahead.
    fn slab_around(&self, coded: &Coded, region: &Region) -> Option<Region> {
        let held = coded.layout.held;
        let axis = (0..held.axes()).min_by_key(|axis| region.shape[*axis] * 1024 / held.shape[*axis].max(1))?;
        let planes = held.shape[axis] / FEW_PLANES;
        let mut slab = held;
        slab.shape[axis] = planes;
        let is_slice = 4 * planes * region.samples() >= slab.samples() * region.shape[axis];
        let before = planes.saturating_sub(region.shape[axis]).min(1);
        let start = region.start[axis].saturating_sub(before).max(held.start[axis]);
        slab.start[axis] = start.min(held.end(axis).saturating_sub(planes));
        let is_thin = region.shape[axis] <= planes;
        // two requests for parts of one plane have to decide alike, or the brick is decoded twice
        let has_memory = || !self.array.decodes_fast() && self.resources.buffers.has_ready(coded.decoded);
        (is_thin && is_slice && held.contains(region) && !has_memory()).then_some(slab)
    }

    /// Returns a brick as [`BrickCache::get_or_decode`](super::cache::BrickCache) does, and counts the lookup.
    fn get_or_decode(&self, at: &Dims, keep: Keep, decode: impl FnOnce() -> DecodeResult) -> DecodeResult {
        let (brick, was_cached) = self.resources.cache.get_or_decode(self.key(at), keep, decode);
        self.count(|counters| if was_cached { &counters.cache_hits } else { &counters.cache_misses }, 1);
        brick
    }

    /// Keeps planes of a brick for a scan, from the first plane of `region` on: as many as the plan allows and as fit.
    pub(super) fn keep_planes(
        &self,
        scan: &Scan,
        plan: SegmentPlan,
        at: &Dims,
        brick: &DecodedBrick,
        region: &Region,
        purpose: Purpose,
    ) {
        let (axis, number, read) = (scan.bricks.axes.axis(0), scan.bricks.number(at), purpose == Purpose::Read);
        let planes = if scan.planes.had_segment(number) {
            plan.longest()
        } else {
            plan.first(number % scan.bricks.layer_bricks())
        };
        let mut kept = self.info().grid.region(at);
        let end = kept.end(axis);
        kept.start[axis] = region.start[axis];
        kept.shape[axis] = region.shape[axis];
        // planes that were read in part are about to be read again; planes that were read completely need no room
        let (least, completely_read) = if !read {
            (0, 0)
        } else if region.samples() < kept.samples() {
            (region.shape[axis], 0)
        } else {
            (0, region.shape[axis])
        };
        let room = self.planes_that_fit(scan).saturating_add(completely_read);
        kept.shape[axis] = planes.min(room).max(least).min(end.saturating_sub(kept.start[axis]));
        let read = read.then_some(region);
        scan.planes.put(number, brick, &kept, read, (self.sample_size(), &self.resources.buffers));
    }

    /// Returns how many more planes of a brick fit into a scan's share.
    pub(super) fn planes_that_fit(&self, scan: &Scan) -> u64 {
        scan.now().share.saturating_sub(scan.planes.bytes()) as u64 / scan.bricks.plane_cost.max(1)
    }

    /// Returns whether a brick is loaded whole, for the cache or for the planes that a scan keeps. Of others only the
    /// samples that are asked for are read.
    pub(super) fn is_loaded_whole(&self, brick: &Brick) -> bool {
        match brick {
            Brick::Constant(_) => false,
            Brick::Coded(_) => true,
            // if its source takes long to answer, one request brings all of it
            Brick::Plain(plain) => self.is_scattered(plain) || self.fetches_ahead() && self.is_small(&plain.layout),
        }
    }

    /// Whether the planes of a plain brick are so scattered that a scan would read all of it again for each plane.
    fn is_scattered(&self, plain: &Plain) -> bool {
        let Some(scan) = self.scan.as_ref().filter(|scan| !scan.bricks.axes.is_identity()) else { return false };
        let (layout, size) = (&plain.layout, self.sample_size());
        // a reader of a single plane is faster with parts; the kernel's read-ahead takes it into the next plane
        let plane_samples = scan.bricks.plane_samples();
        let ahead = (KERNEL_READ_AHEAD / size as u64).min(plane_samples.saturating_mul(4));
        if scan.now().progress.length() < plane_samples.saturating_mul(2).saturating_add(ahead) {
            return false;
        }
        let (axis, mut plane) = (scan.bricks.axes.axis(0), layout.held.shape);
        plane[axis] = plane[axis].min(1);
        let loops = Loops::new(&plane, &layout.strides, &scan.bricks.axes.strides(&plane, size as u64), size);
        self.is_small(layout) && loops.useful() > 0 && Calls::new(&loops).bytes() >= MAX_AMPLIFICATION * loops.useful()
    }

    /// Whether a plain brick may be loaded whole.
    fn is_small(&self, layout: &Layout) -> bool {
        layout.end(self.sample_size()).is_some_and(|end| end.saturating_sub(layout.first) <= MAX_WHOLE)
    }

    /// Whether a brick is transposed to the reader's order of axes right after it was decoded.
    fn is_transposed_on_load(&self, layout: &Layout) -> bool {
        self.scan.as_ref().is_some_and(|scan| {
            // a scan that keeps planes copies them anyway
            let keeps_bricks = !matches!(scan.now().retention, Retention::Planes(_));
            let run = || contiguous_run(layout, &scan.bricks.axes, self.sample_size() as u64);
            !scan.bricks.axes.is_identity() && keeps_bricks && run() < SHORT_RUN
        })
    }

    /// Loads a brick from its source: decodes a coded one, reads a plain one. For a scan whose planes are scattered in
    /// the brick, the samples are transposed to the scan's order. May wait.
    pub(super) fn load(&self, brick: &Brick) -> Result<DecodedBrick, FormatError> {
        match brick {
            Brick::Coded(coded) => self.decode(coded, self.is_transposed_on_load(&coded.layout)),
            Brick::Plain(plain) => self.read_whole(plain),
            Brick::Constant(_) => Err(FormatError::Internal("a constant brick was to be loaded".into())),
        }
    }

    /// Reads a plain brick.
    fn read_whole(&self, plain: &Plain) -> Result<DecodedBrick, FormatError> {
        let source = self.array.source();
        let layout = Layout { first: 0, ..plain.layout };
        let span = layout.end(self.sample_size()).and_then(|end| usize::try_from(end).ok());
        let mut bytes = self.resources.buffers.take_brick(span.ok_or_else(missing_object)?)?;
        let offset = plain.offset.checked_add(plain.layout.first).ok_or_else(missing_object)?;
        if !source.read_at(&plain.object, offset, &mut bytes, Blocking::Yes)? {
            return Err(missing_object());
        }
        self.count_source_bytes(bytes.len());
        source.check_unchanged()?;
        let brick = DecodedBrick { bytes, layout };
        if !self.is_scattered(plain) && !self.is_transposed_on_load(&layout) {
            return Ok(brick);
        }
        let needed = 2 * brick.bytes.capacity();
        self.resources.gate.admit(needed, || self.transposed(brick))
    }

    /// Reads the stored bytes of a coded brick and decodes them. `transposes` to the scan's order of axes.
    fn decode(&self, coded: &Coded, transposes: bool) -> Result<DecodedBrick, FormatError> {
        let (resources, array) = (&*self.resources, &*self.array);
        let length = stored_length(array, coded)?;
        let mut stored = resources.buffers.take_scratch(length)?;
        if !array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes)? {
            return Err(missing_object());
        }
        self.count_source_bytes(length);
        array.source().check_unchanged()?;
        let layout = coded.layout;
        let needed = [stored.capacity(), coded.decoded, coded.scratch, coded.decoded * usize::from(transposes)];
        let needed = needed.into_iter().fold(0, usize::saturating_add);
        let brick = resources.gate.admit(needed, || -> Result<_, FormatError> {
            let mut bytes = resources.buffers.take_brick(coded.decoded)?;
            // decoders allocate without asking
            let _claim = if coded.scratch > 0 { Some(claim(coded.scratch)?) } else { None };
            array.decode(coded, &stored, &mut bytes)?;
            if layout.end(self.sample_size()).is_none_or(|end| end > bytes.len() as u64) {
                return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
            }
            let brick = DecodedBrick { bytes, layout };
            if transposes { self.transposed(brick) } else { Ok(brick) }
        })?;
        self.count(|counters| &counters.bricks_decoded, 1);
        self.count(|counters| &counters.bytes_decoded, coded.decoded as u64);
        Ok(brick)
    }

    /// Returns the brick with its samples in C order of the scan's axes.
    fn transposed(&self, brick: DecodedBrick) -> Result<DecodedBrick, FormatError> {
        let Some(scan) = &self.scan else { return Ok(brick) };
        Ok(brick.part(brick.layout.held, &scan.bricks.axes, self.sample_size(), &self.resources.buffers)?)
    }

    /// Returns whether the source takes long to answer, and is told which bytes are about to be read, so that they are
    /// requested together.
    pub(super) fn fetches_ahead(&self) -> bool {
        self.array.source().fetches_ahead()
    }

    /// Has the source begin to fetch what is stored of some bricks, each with the region that is needed of it, unless
    /// they are in memory. May wait for tables. Returns whether the source had room for all of them: if not, this is to
    /// be called again when some were read.
    pub(super) fn fetch_ahead(&self, bricks: impl Iterator<Item = (Dims, Region)>) -> bool {
        self.will_need(bricks, false)
    }

    /// Has the source begin to fetch what is stored of a brick that is loaded next: what is checked about the brick
    /// comes with its bytes, and must not be asked for by itself.
    pub(super) fn fetch_now(&self, at: &Dims, region: &Region) {
        if self.fetches_ahead() {
            self.will_need(std::iter::once((*at, *region)), true);
        }
    }

    /// Has the source begin to fetch the tables that tell where some bricks are stored, all of a depth at once: else
    /// each would be asked for when the one before has come.
    pub(super) fn fetch_tables(&self, bricks: impl Iterator<Item = Dims> + Clone) {
        for depth in 0..TABLE_DEPTHS {
            let tables: HashSet<_> = bricks.clone().filter_map(|at| self.array.table_range(&at, depth)).collect();
            // one that has no room is asked for when it is needed
            if tables.len() > 1 {
                self.request(&Vec::from_iter(tables), false);
            }
        }
    }

    fn will_need(&self, bricks: impl Iterator<Item = (Dims, Region)>, awaited: bool) -> bool {
        let wanted: Vec<_> = bricks.filter_map(|(at, region)| self.stored_range(&at, &region)).collect();
        wanted.is_empty() || self.request(&wanted, awaited)
    }

    fn request(&self, wanted: &[(ObjectName, Range<u64>)], awaited: bool) -> bool {
        let ranges: Vec<_> = wanted.iter().map(|(object, range)| (&**object, range.clone())).collect();
        self.array.source().will_need(&ranges, awaited)
    }

    /// Returns the bytes that are read for a region of a brick; `None` if there are none, or nobody knows. What is
    /// wrong with the brick is told to who reads it.
    fn stored_range(&self, at: &Dims, region: &Region) -> Option<(ObjectName, Range<u64>)> {
        if self.is_in_memory(at, region) {
            return None;
        }
        let known = self.array.brick(at, Blocking::No);
        if !known.as_ref().is_err_and(FormatError::would_block) {
            return self.range_in(known.ok()?, region);
        }
        // what is checked about the brick is read with it
        match self.array.stored_range(at).ok()? {
            Some(range) => Some(range),
            None => self.range_in(self.array.brick(at, Blocking::No).ok()?, region),
        }
    }

    fn range_in(&self, brick: Brick, region: &Region) -> Option<(ObjectName, Range<u64>)> {
        let is_whole = self.is_loaded_whole(&brick);
        match brick {
            Brick::Constant(_) => None,
            Brick::Coded(coded) => {
                let end = coded.offset.checked_add(coded.length.most())?;
                Some((coded.object, coded.offset..end))
            }
            Brick::Plain(plain) => {
                let region = if is_whole { &plain.layout.held } else { region };
                let last = Dims::from_fn(region.shape.len(), |axis| region.end(axis).saturating_sub(1));
                if !plain.layout.held.contains(region) {
                    return None;
                }
                let begin = plain.offset.checked_add(plain.layout.offset_of(&region.start))?;
                let end = plain.offset.checked_add(plain.layout.offset_of(&last))?;
                let end = end.checked_add(self.sample_size() as u64)?;
                (end.saturating_sub(begin) <= MAX_SPAN).then_some((plain.object, begin..end))
            }
        }
    }
}

/// Returns the number of stored bytes of a coded brick.
pub(super) fn stored_length(array: &dyn Array, coded: &Coded) -> Result<usize, FormatError> {
    let claimed = |length: u64| FormatError::Damaged(format!("the brick claims {length} bytes"));
    let length = match coded.length {
        StoredLength::Bytes(length) => length,
        StoredLength::Rest { most } => {
            let object = array.source().len(&coded.object)?.ok_or_else(missing_object)?;
            let length = object.saturating_sub(coded.offset);
            if length > most {
                return Err(claimed(length));
            }
            length
        }
    };
    usize::try_from(length).map_err(|_| claimed(length))
}

/// Returns the bytes of samples that are contiguous in a brick, in C order of permuted axes.
fn contiguous_run(layout: &Layout, order: &AxisPermutation, size: u64) -> u64 {
    let (shape, strides) = (order.permute_dims(&layout.held.shape), order.permute_dims(&layout.strides));
    let mut run = size;
    for axis in (0..shape.len()).rev().filter(|axis| shape[*axis] > 1) {
        if strides[axis] != run {
            break;
        }
        run = run.saturating_mul(shape[axis]);
    }
    run
}
