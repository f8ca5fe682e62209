//! Compares the data path with a plain model: an array of mixed bricks in memory, read in random ranges, boxes and lists
//! of selections, by one reader or many at once.

mod mixed_array;
mod scans;
#[cfg(feature = "shuttle")]
mod schedules;

use std::io::Write;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use self::mixed_array::{MixedArray, SIZE};
use super::{ReadError, ReadRequest, Reader, Readers, Recorded, Selection};
use crate::counters::Counters;
use crate::format::{Array, Census, FormatError};
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::source::{Blocking, CoarseInstant, FileSource, LocalTree, Source, SourceError, WHOLE};
use crate::sync::atomic::AtomicBool;
use crate::volume::{ArrayInfo, AxisPermutation, Brick, BrickGrid, Dims, Dtype, Layout, Plain, Region};

fn reader(cache: usize) -> Arc<Reader> {
    reader_with(cache, &Arc::default())
}

fn reader_with(cache: usize, counters: &Arc<Counters>) -> Arc<Reader> {
    Reader::new(cache, 2, BufferPool::new(1 << 20), Pool::new(), Arc::clone(counters))
}

/// Reads selections to a buffer of `bytes` bytes, as all other threads do.
fn read_selections(
    reader: &Arc<Reader>,
    array: Arc<dyn Array>,
    selections: Vec<Selection>,
    from_file: Option<Recorded>,
    bytes: usize,
) -> Result<Vec<u8>, ReadError> {
    let (done, answer) = mpsc::channel();
    let (bulkhead, is_entire) = (Bulkhead::new(0), from_file.is_none());
    let request = ReadRequest { array, selections, bulkhead, counters: None, from_file, is_entire };
    reader.read(request, reader.buffers().take(bytes), Arc::default(), move |read| {
        done.send(read.map(|bytes| bytes.to_vec())).unwrap()
    });
    answer.recv().unwrap()
}

/// Reads a range of a file that shows the array in an order of axes.
fn read_permuted(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    order: AxisPermutation,
    samples: Range<u64>,
    file: Option<&Readers>,
) -> Result<Vec<u8>, ReadError> {
    let selections = Selection::from_range(array.info(), &order, samples.clone(), 0).collect();
    let bytes = (samples.end - samples.start) as usize * array.size();
    let from_file = file.map(|file| file.record(&samples, false, array.page_cached));
    read_selections(reader, Arc::clone(array) as _, selections, from_file, bytes)
}

/// The readers of an open file that shows the array in its own order.
fn open(array: &Arc<MixedArray>) -> Arc<Readers> {
    Arc::new(Readers::new(array.info(), AxisPermutation::IDENTITY))
}

fn read_with(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    samples: Range<u64>,
    file: Option<&Readers>,
) -> Result<Vec<u8>, ReadError> {
    read_permuted(reader, array, AxisPermutation::IDENTITY, samples, file)
}

fn read(reader: &Arc<Reader>, array: &Arc<MixedArray>, samples: Range<u64>) -> Result<Vec<u8>, ReadError> {
    read_with(reader, array, samples, None)
}

fn read_box(reader: &Arc<Reader>, array: &Arc<MixedArray>, region: Region) -> Result<Vec<u8>, ReadError> {
    let bytes = region.samples() as usize * array.size();
    read_selections(reader, Arc::clone(array) as _, vec![Selection::new(&region, 0, array.size())], None, bytes)
}

/// Types of short and of the longest samples.
fn dtypes() -> impl Strategy<Value = Dtype> {
    prop::sample::select(vec![Dtype::UInt16, Dtype::Complex64, Dtype::Complex128])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_range_equals_the_model(
        dtype in dtypes(),
        dims in prop::collection::vec((1u64..14, 1u64..7), 1..5), origin in -5i64..6, margin in 0u64..3,
        slow in any::<bool>(), parts in any::<bool>(), cache in prop::sample::select(vec![0usize, 700, 1 << 20]),
        ranges in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 1..8),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let (mut array, size) = (MixedArray::of(dtype, &shape, origin, &step, margin), dtype.size());
        (array.slow, array.has_parts) = (slow, parts);
        let (whole, reader, array) = (array.whole(), reader(cache), Arc::new(array));
        let n = (whole.len() / size) as f64;
        for (a, b) in ranges {
            let range = (n * a.min(b)) as u64..(n * a.max(b)).ceil() as u64;
            let expected = &whole[range.start as usize * size..range.end as usize * size];
            prop_assert_eq!(read(&reader, &array, range).unwrap(), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_box_equals_the_model(
        dtype in dtypes(),
        dims in prop::collection::vec((1u64..14, 1u64..7, 0.0f64..1.0, 0.0f64..1.0), 1..5), origin in -5i64..6,
        margin in 0u64..3, has_parts in any::<bool>(), cache in prop::sample::select(vec![0usize, 700]),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let array = MixedArray { has_parts, ..MixedArray::of(dtype, &shape, origin, &step, margin) };
        let edge = |a: usize, part: f64| (shape[a] as f64 * part) as u64;
        let start = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.min(dims[a].3)));
        let extent = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.max(dims[a].3)) - start[a]);
        let region = Region { start, shape: extent };
        let expected: Vec<u8> = (0..region.samples())
            .map(|n| extent.index_of(n))
            .flat_map(|at| array.sample(&Dims::from_fn(at.len(), |a| start[a] + at[a])).bytes().to_vec())
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
    let selections = vec![Selection::new(&region, 0, SIZE)];
    let (array, bulkhead) = (Arc::clone(&array) as _, Bulkhead::new(0));
    let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: true };
    let out = reader.buffers().take(first.len());
    reader.read(request, out, Arc::default(), move |read| {
        done.send((thread::current().id(), read.unwrap().to_vec())).unwrap()
    });
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

/// Reads selections into borrowed memory that is filled with `0xee`.
fn read_into(reader: &Arc<Reader>, array: &Arc<MixedArray>, selections: Vec<Selection>, bytes: usize) -> Vec<u8> {
    let (array, bulkhead) = (Arc::clone(array) as _, Bulkhead::new(0));
    let mut out = vec![0xee; bytes];
    let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: true };
    reader.read_into(request, &mut out).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_list_of_selections_equals_the_model(
        dtype in dtypes(),
        dims in prop::collection::vec((1u64..20, 1u64..9), 1..5), origin in -5i64..6, margin in 0u64..3,
        slow in any::<bool>(), all_coded in any::<bool>(), cache in prop::sample::select(vec![0usize, 700, 1 << 20]),
        lists in prop::collection::vec(
            prop::collection::vec(
                (prop::collection::vec((0.0f64..1.0, 0.0f64..1.0, 1u64..6, 0u64..3), 4), any::<bool>(), 0usize..9), 0..6,
            ),
            1..4,
        ),
        overlap in any::<bool>(), lent in any::<bool>(),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let (axes, size) = (shape.len(), dtype.size());
        let mut array = MixedArray::of(dtype, &shape, origin, &step, margin);
        array.slow = slow;
        let array = Arc::new(if all_coded { array.all_coded() } else { array });
        let reader = reader(cache);
        for list in lists {
            let (mut selections, mut at) = (Vec::new(), 0);
            for (parts, reversed, gap) in list {
                let start = Dims::from_fn(axes, |a| (shape[a] as f64 * parts[a].0) as u64);
                let step = Dims::from_fn(axes, |a| parts[a].2);
                let count = Dims::from_fn(axes, |a| ((shape[a] - start[a]).div_ceil(step[a]) as f64 * parts[a].1).ceil() as u64);
                // with gaps between rows, and maybe in the reverse order of axes
                let room = Dims::from_fn(axes, |a| count[a] + parts[a].3);
                let back = Dims::from_fn(axes, |a| room[axes - 1 - a]).strides(size as u64);
                let strides = if reversed { Dims::from_fn(axes, |a| back[axes - 1 - a]) } else { room.strides(size as u64) };
                selections.push(Selection { start, shape: count, step, offset: at + gap, strides });
                // all begin at the same place, or one after the other
                at += if overlap { 0 } else { gap + room.product().unwrap() as usize * size };
            }
            let end = |s: &Selection| s.offset + (0..axes).map(|a| (s.shape[a] - 1) * s.strides[a]).sum::<u64>() as usize + size;
            let bytes = selections.iter().map(end).max().unwrap_or(0);
            let mut possible: Vec<Vec<u8>> = vec![Vec::new(); bytes];
            for s in &selections {
                for n in 0..s.samples() {
                    let within = s.shape.index_of(n);
                    let sample = array.sample(&Dims::from_fn(axes, |a| s.start[a] + within[a] * s.step[a]));
                    let to = s.offset + (0..axes).map(|a| within[a] * s.strides[a]).sum::<u64>() as usize;
                    sample.bytes().iter().enumerate().for_each(|(n, byte)| possible[to + n].push(*byte));
                }
            }
            let got = if lent {
                read_into(&reader, &array, selections, bytes)
            } else {
                read_selections(&reader, Arc::clone(&array) as _, selections, None, bytes).unwrap()
            };
            for (at, (byte, possible)) in got.iter().zip(&possible).enumerate() {
                // where selections overlap, it is a byte of any of them
                let untouched = possible.is_empty() && (!lent || *byte == 0xee);
                prop_assert!(untouched || possible.contains(byte), "{byte} at {at}, not one of {possible:?}");
            }
        }
    }
}

#[test]
fn a_brick_is_decoded_once_for_all_selections_of_a_read() {
    let counters: Arc<Counters> = Arc::default();
    let array = Arc::new(MixedArray::new(&[16, 16, 16], 0, &[8, 8, 8], 0).all_coded());
    let reader = reader_with(0, &counters);
    // a list of traces, those of all bricks in turn
    let traces: Vec<Selection> = (0..256)
        .map(|n| {
            let region = Region { start: [n % 16, n / 16, 0].into(), shape: [1, 1, 16].into() };
            Selection::new(&region, n as usize * 16 * SIZE, SIZE)
        })
        .collect();
    let expected: Vec<u8> = (0..256)
        .flat_map(|n| (0..16).map(move |x| Dims::from([n % 16, n / 16, x])))
        .flat_map(|at| array.sample(&at).bytes().to_vec())
        .collect();
    assert_eq!(read_into(&reader, &array, traces, 16 * 16 * 16 * SIZE), expected);
    assert_eq!(counters.bricks_decoded.get(), 8);
}

#[test]
fn the_second_part_of_a_brick_that_is_needed_has_all_of_it_decoded() {
    // a plane that is decoded by itself has an eighth of the brick; others are kept of a brick that was decoded
    for (has_parts, plane) in [(true, 1), (false, 8)] {
        let counters: Arc<Counters> = Arc::default();
        let array = MixedArray { has_parts, ..MixedArray::new(&[16, 16], 0, &[8, 16], 0).all_coded() };
        let (array, reader) = (Arc::new(array), reader_with(1 << 20, &counters));
        for (row, planes) in
            [(1, plane), (1, plane), (2, plane + 8), (1, plane + 8), (7, plane + 8), (9, 2 * plane + 8)]
        {
            let region = Region { start: [row, 0].into(), shape: [1, 16].into() };
            let expected = &array.whole()[row as usize * 16 * SIZE..][..16 * SIZE];
            assert_eq!(read_box(&reader, &array, region).unwrap(), expected);
            assert_eq!(counters.bytes_decoded.get(), planes * 16 * SIZE as u64, "{row}");
        }
    }
}

#[test]
fn the_requests_for_the_parts_of_a_file_have_a_brick_decoded_once() {
    let counters: Arc<Counters> = Arc::default();
    let array = MixedArray { has_parts: true, ..MixedArray::new(&[16, 16], 0, &[8, 16], 0).all_coded() };
    let (array, reader) = (Arc::new(array), reader_with(1 << 20, &counters));
    for row in 8..16 {
        let region = Region { start: [row, 0].into(), shape: [1, 16].into() };
        let selections = vec![Selection::new(&region, 0, SIZE)];
        let (array, bulkhead) = (Arc::clone(&array) as _, Bulkhead::new(0));
        let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: false };
        reader.read_into(request, &mut [0; 16 * SIZE]).unwrap();
    }
    assert_eq!((counters.bricks_decoded.get(), counters.bytes_decoded.get()), (1, 8 * 16 * SIZE as u64));
}

#[test]
fn nothing_is_decoded_for_a_client_that_has_gone_away() {
    let counters: Arc<Counters> = Arc::default();
    let array = Arc::new(MixedArray::new(&[64, 16], 0, &[8, 16], 0).all_coded());
    let (reader, whole) = (reader_with(1 << 20, &counters), Region::whole([64, 16].into()));
    for (is_gone, bricks) in [(true, 0), (false, 8)] {
        let (done, answer) = mpsc::channel();
        let (selections, out) = (vec![Selection::new(&whole, 0, SIZE)], reader.buffers().take(64 * 16 * SIZE));
        let (array, bulkhead) = (Arc::clone(&array) as _, Bulkhead::new(0));
        let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: false };
        let is_ended = Arc::new(AtomicBool::new(is_gone));
        reader.read(request, out, is_ended, move |read| done.send(read.is_ok()).unwrap());
        assert!(answer.recv().unwrap());
        assert_eq!(counters.bricks_decoded.get(), bricks);
    }
}

#[test]
fn a_request_beyond_the_array_or_the_memory_is_refused() {
    let (array, reader) = (Arc::new(MixedArray::new(&[8, 8], 0, &[4, 4], 0)), reader(1 << 20));
    let read = |region: Region, bytes: usize| {
        let selections = vec![Selection::new(&region, 0, SIZE)];
        read_selections(&reader, Arc::clone(&array) as _, selections, None, bytes)
    };
    let region = |rows| Region { start: [4, 0].into(), shape: [rows, 8].into() };
    assert_eq!(read(region(4), 64).unwrap().len(), 64);
    for (rows, bytes) in [(5, 80), (4, 63)] {
        let error = read(region(rows), bytes).unwrap_err();
        assert!(error.cause.to_string().starts_with("internal error: "), "{error}");
    }
}

#[test]
fn a_panic_of_a_decoder_is_an_internal_error() {
    let mut array = MixedArray::new(&[40, 8], 0, &[8, 8], 0).all_coded();
    array.panics = Some(3);
    let (whole, reader, array) = (array.whole(), reader(1 << 20), Arc::new(array));
    for _ in 0..2 {
        let error = read(&reader, &array, 0..320).unwrap_err();
        assert_eq!(error.to_string(), "brick [3, 0]: internal error: the decoder panicked");
        assert_eq!(read(&reader, &array, 0..192).unwrap(), whole[..192 * SIZE]);
    }
    assert_eq!(reader.gauges().bricks_in_flight, 0);
}

fn by(axis: usize) -> AxisPermutation {
    AxisPermutation::to_front(axis)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_range_of_every_permutation_equals_the_model(
        dtype in dtypes(),
        dims in prop::collection::vec((1u64..14, 1u64..7), 1..5), origin in -5i64..6, margin in 0u64..3,
        slow in any::<bool>(), all_coded in any::<bool>(), scanned in any::<bool>(), page_cached in any::<bool>(),
        cache in prop::sample::select(vec![0usize, 700, 1 << 20]),
        ranges in prop::collection::vec((0usize..4, 0.0f64..1.0, 0.0f64..1.0), 1..10),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let (mut array, size) = (MixedArray::of(dtype, &shape, origin, &step, margin), dtype.size());
        if all_coded {
            array = array.all_coded();
        }
        if slow {
            array = array.slow();
        }
        array.page_cached = page_cached;
        let (reader, array) = (reader_with(cache, &Arc::default()), Arc::new(array));
        let wholes: Vec<Vec<u8>> = (0..shape.len()).map(|axis| array.whole_by(axis)).collect();
        let files: Vec<Readers> = (0..shape.len()).map(|axis| Readers::new(array.info(), by(axis))).collect();
        // all permutations share the cache
        for (axis, a, b) in ranges {
            let axis = axis % shape.len();
            let n = (wholes[axis].len() / size) as f64;
            let range = (n * a.min(b)) as u64..(n * a.max(b)).ceil() as u64;
            let expected = &wholes[axis][range.start as usize * size..range.end as usize * size];
            let got = read_permuted(&reader, &array, by(axis), range, scanned.then_some(&files[axis])).unwrap();
            prop_assert_eq!(got, expected);
        }
    }
}

#[test]
fn a_bad_brick_is_named_by_its_index_in_the_array() {
    // there are 3 x 2 x 2 bricks, so number 5 is at [1, 0, 1]
    let array = Arc::new(MixedArray::new(&[24, 16, 10], 0, &[8, 8, 5], 0).broken(5));
    let reader = reader_with(1 << 20, &Arc::default());
    let error = read_permuted(&reader, &array, by(2), 0..24 * 16 * 10, None).unwrap_err();
    assert_eq!(error.brick, [1, 0, 1].into());
    let whole = array.whole_by(2);
    // the first five slices do not touch it
    assert_eq!(read_permuted(&reader, &array, by(2), 0..24 * 16 * 5, None).unwrap(), whole[..24 * 16 * 5 * 2]);
}

const NUMBERS: [u64; 3] = [7, 11, 300];

/// An array whose samples are their own numbers, repeated in each 4 bytes, in bricks that lie in the file in reverse order.
struct Numbers {
    info: ArrayInfo,
    brick: Dims,
    file: Arc<dyn FileSource>,
    path: tempfile::TempPath,
}

impl Numbers {
    fn new(dtype: Dtype, brick: [u64; 3]) -> Self {
        let (shape, brick) = (Dims::from(NUMBERS), Dims::from(brick));
        let info = ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for number in (0..info.grid.total()).rev() {
            let at = info.grid.count().index_of(number);
            for n in 0..brick.product().unwrap() {
                let within = brick.index_of(n);
                let index = Dims::from_fn(3, |a| at[a] * brick[a] + within[a]);
                let inside = (0..3).all(|a| index[a] < shape[a]);
                let sample = if inside { shape.linear_of(&index) as u32 } else { u32::MAX };
                file.write_all(&sample.to_le_bytes().repeat(dtype.size() / 4)).unwrap();
            }
        }
        file.flush().unwrap();
        let path = file.into_temp_path();
        Self { info, brick, file: LocalTree::file(&path).unwrap(), path }
    }
}

impl Array for Numbers {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.file
    }

    fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        let before = self.info.grid.total() - 1 - self.info.grid.count().linear_of(at);
        let start = Dims::from_fn(3, |a| at[a] * self.brick[a]);
        let size = self.info.dtype.size();
        let layout = Layout::c_order(start, self.brick, self.info.shape(), size);
        let offset = before * self.brick.product().unwrap() * size as u64;
        Ok(Brick::Plain(Plain { object: WHOLE.into(), offset, layout }))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

fn read_numbers(reader: &Arc<Reader>, array: &Arc<Numbers>, samples: Range<u64>) -> Option<Vec<u8>> {
    let selections = Selection::from_range(array.info(), &AxisPermutation::IDENTITY, samples.clone(), 0).collect();
    let bytes = (samples.end - samples.start) as usize * array.info.dtype.size();
    read_selections(reader, Arc::clone(array) as _, selections, None, bytes).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn all_read_paths_from_a_file_return_the_same_samples(
        dtype in prop::sample::select(vec![Dtype::UInt32, Dtype::Complex128]),
        // rows of 256 bytes, of 200, of 32, and of 1200, or of four times as many
        brick in prop::sample::select(vec![[4u64, 4, 64], [2, 3, 50], [3, 5, 8], [1, 1, 300]]),
        cuts in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 12),
    ) {
        let (reader, array, all) = (reader(0), Arc::new(Numbers::new(dtype, brick)), NUMBERS.iter().product::<u64>());
        for (a, b) in cuts {
            let range = (a.min(b) * all as f64) as u64..(a.max(b) * all as f64) as u64;
            let expected: Vec<u8> = range.clone().flat_map(|n| (n as u32).to_le_bytes().repeat(dtype.size() / 4)).collect();
            prop_assert_eq!(read_numbers(&reader, &array, range), Some(expected));
            // the file is mapped once it was read at different times
            thread::sleep(Duration::from_millis(2));
        }
        let file = array.file.open_object(WHOLE, Blocking::No).unwrap().unwrap();
        if file.window_of(0, 1).is_some() {
            prop_assert!(file.window(0, 1, CoarseInstant::now()).is_some(), "it was read often enough to be mapped");
        }
        std::fs::File::options().write(true).open(&array.path).unwrap().set_len(4096).unwrap();
        prop_assert_eq!(read_numbers(&reader, &array, 0..all), None, "a truncated file is not read");
        prop_assert_eq!(read_numbers(&reader, &array, 0..all), None);
    }
}

/// The order in which a reader goes through an array.
#[derive(Clone, Copy, Debug)]
enum Order {
    Forwards,
    Backwards,
    EverySecondPlane,
    Random,
}

/// The requests of a reader: `window` samples at a time, from fraction `from` of the array on.
fn requests(order: Order, samples: u64, plane: u64, window: u64, from: f64) -> Vec<Range<u64>> {
    let first = (samples as f64 * from) as u64;
    let windows = |range: Range<u64>| {
        let end = range.end.min(samples);
        range.step_by(window as usize).map(move |start| start..(start + window).min(end)).filter(|r| r.start < r.end)
    };
    let planes = first / plane..samples.div_ceil(plane);
    let of_plane = |n: u64| windows(n * plane..(n + 1) * plane);
    match order {
        Order::Forwards => windows(first..samples).collect(),
        Order::Backwards => planes.rev().flat_map(of_plane).collect(),
        Order::EverySecondPlane => planes.step_by(2).flat_map(of_plane).collect(),
        Order::Random => {
            let hash = |n: u64| (n + first).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            (0..60).map(|n| hash(n) % samples).map(|start| start..(start + window).min(samples)).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn readers_at_once_get_the_right_bytes_however_small_the_cache(
        dtype in dtypes(),
        dims in prop::collection::vec((1u64..40, 1u64..16), 1..5), origin in -5i64..6, margin in 0u64..3,
        all_coded in any::<bool>(), slow in any::<bool>(), page_cached in any::<bool>(),
        cache in prop::sample::select(vec![0usize, 500, 2000, 8000, 40_000]),
        readers in prop::collection::vec(
            (
                prop::sample::select(vec![
                    Order::Forwards, Order::Forwards, Order::Backwards, Order::EverySecondPlane, Order::Random,
                ]),
                1u64..3000, 0.0f64..0.9, any::<bool>(),
            ),
            2..6,
        ),
    ) {
        // no more than some ten thousand samples
        let mut room = 30_000;
        let shape: Vec<u64> = dims
            .iter()
            .map(|(n, _)| {
                let n = (*n).min(room);
                room = (room / n).max(1);
                n
            })
            .collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let (mut array, size) = (MixedArray::of(dtype, &shape, origin, &step, margin), dtype.size());
        (array.slow, array.page_cached) = (slow, page_cached);
        let array = Arc::new(if all_coded { array.all_coded() } else { array });
        let (whole, reader) = (array.whole(), reader_with(cache, &Arc::default()));
        let (samples, plane) = (shape.iter().product::<u64>(), shape[1..].iter().product::<u64>());
        let one_file = open(&array);
        thread::scope(|scope| {
            for (order, window, from, own) in readers {
                let file = if own { open(&array) } else { Arc::clone(&one_file) };
                let (array, whole, reader) = (&array, &whole, &reader);
                scope.spawn(move || {
                    // at most a hundred requests for each pass
                    let window = window.max(samples / 100);
                    for range in requests(order, samples, plane, window, from) {
                        let expected = &whole[size * range.start as usize..size * range.end as usize];
                        let got = read_with(reader, array, range.clone(), Some(&file)).unwrap();
                        assert!(got == expected, "{range:?}");
                    }
                });
            }
        });
    }
}
