//! Compares the data path with a plain model: an array of mixed bricks in memory, read in random ranges.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use proptest::prelude::*;

use crate::array::decode_gate::DecodeGate;
use crate::array::{BoxRequest, ReadError, ReadRequest, Reader, ScanDetector};
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::format::{Array, Census, FormatError};
use crate::memory::{Buffer, BufferPool};
use crate::pool::{Bulkhead, Pool};
use crate::source::{Blocking, Source, SourceError};
use crate::sync::Mutex;
use crate::volume::{
    ArrayInfo, AxisPermutation, Brick, BrickGrid, Coded, Dims, Dtype, Element, Layout, MAX_AXES, Plain, Region,
    StoredLength,
};

/// Brick `k` is constant, plain or coded (each byte inverted) by `k % 3`, and is stored at `k` times
/// [`MixedArray::stored_brick_bytes`].
pub(crate) struct MixedArray {
    info: ArrayInfo,
    /// Every brick is coded.
    all_coded: bool,
    object: Vec<u8>,
    margin: u64,
    broken: Option<u64>,
    /// Every second 512 bytes of the object cannot be read without waiting.
    pub slow: bool,
    /// Its readers keep what they read, as the kernel does in its page cache.
    pub page_cached: bool,
    changed: Mutex<bool>,
    bytes_read: AtomicU64,
}

const SIZE: usize = 2;

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
        most.max().unwrap_or(0) as usize * SIZE
    }

    /// The sample at an index: a hash of the index, or the brick's number in a constant brick.
    fn sample(&self, index: &Dims) -> u16 {
        let grid = &self.info.grid;
        let brick = Dims::from_fn(index.len(), |a| grid.brick_of(a, index[a]));
        let k = grid.count().linear_of(&brick);
        if !self.all_coded && k.is_multiple_of(3) {
            k as u16
        } else {
            (self.info.shape().linear_of(index) as u16).wrapping_mul(40503)
        }
    }

    pub(crate) fn all_coded(mut self) -> Self {
        self.all_coded = true;
        self.store();
        self
    }

    pub(crate) fn new(shape: &[u64], origin: i64, step: &[u64], margin: u64) -> Self {
        let (shape, step) = (Dims::from_slice(shape).unwrap(), Dims::from_slice(step).unwrap());
        let info = ArrayInfo::new(Dtype::UInt16, BrickGrid::new(shape, [origin; MAX_AXES], step), step);
        let mut mixed = Self {
            info,
            all_coded: false,
            object: Vec::new(),
            margin,
            broken: None,
            slow: false,
            page_cached: false,
            changed: Mutex::new(false),
            bytes_read: AtomicU64::new(0),
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
                    let bytes = self.sample(&index).to_le_bytes();
                    if self.all_coded || k % 3 == 2 { bytes.map(|b| !b) } else { bytes }
                })
                .collect();
            brick.resize(room, 0);
            self.object.extend(brick);
        }
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        let shape = self.info.shape();
        (0..shape.product().unwrap()).flat_map(|n| self.sample(&shape.index_of(n)).to_le_bytes()).collect()
    }

    /// All samples with `axis` first, the others in their order.
    pub(crate) fn whole_by(&self, axis: usize) -> Vec<u8> {
        let (whole, shape) = (self.whole(), self.info.shape());
        let (count, inner) = (shape[axis] as usize, shape.strides(SIZE as u64)[axis] as usize);
        let outer = whole.len() / (count * inner);
        let slices = (0..count).flat_map(|n| (0..outer).map(move |o| (o * count + n) * inner));
        slices.flat_map(|at| &whole[at..at + inner]).copied().collect()
    }

    /// Makes half of the bytes unreadable without waiting.
    pub(crate) fn page_cached(mut self) -> Self {
        self.page_cached = true;
        self
    }

    pub(crate) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Returns the bytes that were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Makes one brick unreadable.
    pub(crate) fn broken(mut self, brick: u64) -> Self {
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
        let layout = Layout { held, first: 0, strides: held.shape.strides(SIZE as u64) };
        let (object, room) = ("object".into(), self.stored_brick_bytes());
        let offset = k * room as u64;
        Ok(match if self.all_coded { 2 } else { k % 3 } {
            0 => Brick::Constant(Element::new(&(k as u16).to_le_bytes())),
            1 => Brick::Plain(Plain { object, offset, layout }),
            _ => Brick::Coded(Coded {
                object,
                offset,
                length: StoredLength::Bytes(room as u64),
                decoded: room,
                scratch: 0,
                layout,
                codec: 7,
            }),
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        assert_eq!((coded.codec, stored.len()), (7, out.len()));
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

    fn check_unchanged(&self) -> Result<(), SourceError> {
        if *self.changed.lock() { Err(SourceError::Changed) } else { Ok(()) }
    }
}

fn reader(cache: usize) -> Arc<Reader> {
    reader_with(cache, &Arc::default())
}

pub(crate) fn reader_with(cache: usize, counters: &Arc<Counters>) -> Arc<Reader> {
    let cache = BrickCache::new(cache);
    Reader::new(cache, DecodeGate::new(2, 1 << 20), Pool::new(), BufferPool::new(1 << 20), Arc::clone(counters))
}

fn read(reader: &Arc<Reader>, array: &Arc<MixedArray>, samples: Range<u64>) -> Result<Vec<u8>, ReadError> {
    read_with(reader, array, samples, None)
}

pub(crate) fn read_with(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    samples: Range<u64>,
    scans: Option<&Arc<ScanDetector>>,
) -> Result<Vec<u8>, ReadError> {
    read_permuted(reader, array, None, samples, scans)
}

pub(crate) fn read_permuted(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    permutation: Option<AxisPermutation>,
    samples: Range<u64>,
    scans: Option<&Arc<ScanDetector>>,
) -> Result<Vec<u8>, ReadError> {
    let (done, answer) = mpsc::channel();
    let page_cached = array.page_cached;
    let array: Arc<dyn Array> = Arc::clone(array) as _;
    let (bulkhead, scans) = (Bulkhead::new(0), scans.cloned());
    let request =
        ReadRequest { array, permutation, samples, bulkhead, scans, page_cached, ahead: false, counters: None };
    reader.read(request, move |read: Result<Buffer, ReadError>| {
        done.send(read.map(|bytes| bytes.to_vec())).unwrap();
    });
    answer.recv().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_range_equals_the_model(
        dims in prop::collection::vec((1u64..14, 1u64..7), 1..5), origin in -5i64..6, margin in 0u64..3,
        slow in any::<bool>(), cache in prop::sample::select(vec![0usize, 700, 1 << 20]),
        ranges in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 1..8),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let mut array = MixedArray::new(&shape, origin, &step, margin);
        array.slow = slow;
        let (whole, reader, array) = (array.whole(), reader(cache), Arc::new(array));
        let n = (whole.len() / SIZE) as f64;
        for (a, b) in ranges {
            let range = (n * a.min(b)) as u64..(n * a.max(b)).ceil() as u64;
            let expected = &whole[range.start as usize * SIZE..range.end as usize * SIZE];
            prop_assert_eq!(read(&reader, &array, range).unwrap(), expected);
        }
    }
}

fn read_box(reader: &Arc<Reader>, array: &Arc<MixedArray>, region: Region) -> Result<Vec<u8>, ReadError> {
    let (done, answer) = mpsc::channel();
    let array: Arc<dyn Array> = Arc::clone(array) as _;
    reader.read_box(
        BoxRequest { array, region, bulkhead: Bulkhead::new(0), counters: None },
        move |read: Result<Buffer, ReadError>| {
            done.send(read.map(|bytes| bytes.to_vec())).unwrap();
        },
    );
    answer.recv().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_box_equals_the_model(
        dims in prop::collection::vec((1u64..14, 1u64..7, 0.0f64..1.0, 0.0f64..1.0), 1..5), origin in -5i64..6,
        margin in 0u64..3, cache in prop::sample::select(vec![0usize, 700]),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let array = MixedArray::new(&shape, origin, &step, margin);
        let edge = |a: usize, part: f64| (shape[a] as f64 * part) as u64;
        let start = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.min(dims[a].3)));
        let extent = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.max(dims[a].3)) - start[a]);
        let region = Region { start, shape: extent };
        let expected: Vec<u8> = (0..region.samples())
            .map(|n| extent.index_of(n))
            .flat_map(|at| array.sample(&Dims::from_fn(at.len(), |a| start[a] + at[a])).to_le_bytes())
            .collect();
        let (reader, array) = (reader(cache), Arc::new(array));
        for _ in 0..2 {
            prop_assert_eq!(&read_box(&reader, &array, region).unwrap(), &expected);
        }
    }
}

#[test]
fn a_small_box_in_memory_is_answered_within_the_call() {
    let (array, reader) = (Arc::new(MixedArray::new(&[12, 12], 0, &[4, 4], 0).all_coded()), reader(1 << 20));
    let region = Region { start: [3, 2].into(), shape: [8, 7].into() };
    let first = read_box(&reader, &array, region).unwrap();
    let (done, answer) = mpsc::channel();
    let request = BoxRequest { array: Arc::clone(&array) as _, region, bulkhead: Bulkhead::new(0), counters: None };
    reader.read_box(request, move |read| done.send((thread::current().id(), read.unwrap().to_vec())).unwrap());
    assert_eq!(answer.try_recv(), Ok((thread::current().id(), first)));
}

#[test]
fn a_bad_brick_fails_the_boxes_that_touch_it_and_no_other() {
    let mut array = MixedArray::new(&[40, 8], 0, &[8, 8], 0);
    array.broken = Some(2);
    let (whole, reader, array) = (array.whole(), reader(1 << 20), Arc::new(array));
    let rows = |from: u64, to: u64| Region { start: [from, 0].into(), shape: [to - from, 8].into() };
    for _ in 0..2 {
        assert_eq!(read_box(&reader, &array, rows(0, 16)).unwrap(), whole[..16 * 8 * SIZE]);
        let error = read_box(&reader, &array, rows(0, 40)).unwrap_err();
        assert_eq!((error.brick, error.cause.to_string()), ([2, 0].into(), "on purpose".to_owned()));
    }
    assert_eq!(read_box(&reader, &array, rows(24, 40)).unwrap(), whole[24 * 8 * SIZE..]);
}

#[test]
fn many_readers_of_a_tiny_cache_get_the_right_bytes() {
    let mut array = MixedArray::new(&[40, 30, 20], 0, &[8, 8, 8], 1);
    array.slow = true;
    let (whole, reader, array) = (array.whole(), reader(5000), Arc::new(array));
    thread::scope(|scope| {
        for thread in 0..8u64 {
            let (whole, reader, array) = (&whole, &reader, &array);
            scope.spawn(move || {
                for n in 0..200u64 {
                    let start = (n * 7919 + thread * 104_729) % 23_000;
                    let range = start..start + (n * 31) % 1000;
                    let expected = &whole[range.start as usize * SIZE..range.end as usize * SIZE];
                    assert_eq!(read(reader, array, range).unwrap(), expected);
                }
            });
        }
    });
}

#[test]
fn a_bad_brick_fails_the_reads_that_touch_it_and_no_other() {
    let mut array = MixedArray::new(&[40, 8], 0, &[8, 8], 0);
    array.broken = Some(2);
    let (whole, reader, array) = (array.whole(), reader(1 << 20), Arc::new(array));
    assert_eq!(read(&reader, &array, 0..16 * 8).unwrap(), whole[..16 * 8 * SIZE]);
    assert_eq!(read(&reader, &array, 24 * 8..320).unwrap(), whole[24 * 8 * SIZE..]);
    let error = read(&reader, &array, 0..320).unwrap_err();
    assert_eq!((error.brick, error.cause.to_string()), ([2, 0].into(), "on purpose".to_owned()));
}

#[test]
fn nothing_read_from_a_changed_source_is_delivered_or_kept() {
    let array = Arc::new(MixedArray::new(&[48, 8], 0, &[8, 8], 0));
    let reader = reader(1 << 20);
    *array.changed.lock() = true;
    for brick in [1, 2] {
        let error = read(&reader, &array, brick * 64..brick * 64 + 64).unwrap_err();
        assert_eq!(error.cause, SourceError::Changed.into());
    }
    assert_eq!(reader.bytes_held(), 0);
    assert!(read(&reader, &array, 0..64).is_ok());
}
