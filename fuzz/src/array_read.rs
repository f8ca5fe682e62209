//! Reads ranges and boxes of arrays that exist only as arithmetic, through the whole data path (ranges to boxes, boxes to
//! bricks, copying, cache, scans), and compares them with a naive model.
//!
//! The input has the shape, the brick grid, the type and the order of axes, and then the reads. An array of the first
//! kind is small and has bricks of all kinds with margins and odd strides; one of the second kind may have any shape up
//! to 2^63 bytes, and its bricks are constants.

mod array;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, mpsc};
use std::{panic, thread};

use crate::array::{ReadRequest, Reader, Readers, Recorded, Selection};
use crate::format::Array;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::volume::{AxisPermutation, Dims, Region};

use super::bytes::Bytes;
use array::Imagined;

/// The most samples of one read.
const MOST: u64 = 4096;
/// The most reads of one input.
const READS: usize = 16;

/// Panics of workers. The pool catches them, so that one while prefetching would change nothing that a reader sees.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Readers with a cache for nothing, for a few bricks, and for all of them.
static READERS: LazyLock<[Arc<Reader>; 3]> = LazyLock::new(|| {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(thread::current().name().is_some_and(|name| name == "volfs-pool").into(), Ordering::Relaxed);
        before(panic);
    }));
    let pool = Pool::new();
    [0, 3000, 1 << 20].map(|cache_bytes| {
        Reader::new(cache_bytes, 2, BufferPool::for_bricks(1 << 20, 1 << 16), Arc::clone(&pool), Arc::default())
    })
});

/// Reads one input, and returns the number of reads.
///
/// # Panics
/// If a read fails, or its samples are not those of the model.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let mut input = Bytes(input);
    let reader = &READERS[input.below(3)];
    let array = if input.u8() & 3 == 3 { Imagined::huge(&mut input) } else { Imagined::small(&mut input) };
    let Some(array) = array else { return 0 };
    let (axes, total) = (array.shape().len(), array.shape().product().expect("the samples can be counted"));
    let order = AxisPermutation::to_front(input.below(axes + 1).saturating_sub(1));
    let file = Readers::new(array.info(), order);
    let array = Arc::new(array);
    let mut done = 0;
    let mut next = 0;
    while !input.0.is_empty() && done < READS as u64 {
        match input.below(4) {
            0 => check_box(reader, &array, box_of(&mut input, &array.shape())),
            kind => {
                // in order, or anywhere
                let start = if kind == 1 { next } else { input.u64() % total };
                let length = if kind == 3 { u64::from(input.u8()) } else { MOST.min(16 * u64::from(input.u8())) };
                let range = start..start.saturating_add(length).min(total);
                next = if range.end == total { 0 } else { range.end };
                check_range(reader, &array, order, range, &file);
            }
        }
        done += 1;
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "a worker has panicked, for this input or an earlier one");
    done
}

/// Returns a box of at most [`MOST`] samples.
fn box_of(input: &mut Bytes<'_>, shape: &Dims) -> Region {
    let start = Dims::from_fn(shape.len(), |axis| input.u64() % shape[axis]);
    let mut left = MOST;
    let extent = Dims::from_fn(shape.len(), |axis| {
        let samples = u64::from(input.u8()).min(shape[axis] - start[axis]).min(left);
        left /= samples.max(1);
        samples
    });
    Region { start, shape: extent }
}

fn check_range(
    reader: &Arc<Reader>,
    array: &Arc<Imagined>,
    order: AxisPermutation,
    samples: Range<u64>,
    file: &Readers,
) {
    let shape = order.permute_dims(&array.shape());
    let expected: Vec<u8> = samples
        .clone()
        .map(|number| shape.index_of(number))
        .flat_map(|at| array.sample(&order.invert_dims(&at)))
        .collect();
    let (done, answer) = mpsc::channel();
    let (page_cached, ahead) = (samples.start.is_multiple_of(2), samples.start.is_multiple_of(3));
    let selections = Selection::from_range(array.info(), &order, samples.clone(), 0).collect();
    let from_file = Some(file.record(&samples, ahead, page_cached));
    let out = reader.buffers().try_take(expected.len()).expect("there is memory");
    reader.read(request(array, selections, from_file), out, Arc::default(), move |read| {
        done.send(read.map(|bytes| bytes.to_vec())).expect("somebody waits");
    });
    let read = answer.recv().expect("a reply").expect("the samples can be read");
    assert!(read == expected, "samples {samples:?} differ from the model");
}

/// Reads a box, and every few samples of it, together.
fn check_box(reader: &Arc<Reader>, array: &Arc<Imagined>, region: Region) {
    let size = array.info().dtype.size();
    let whole = Selection::new(&region, 0, size);
    let step = Dims::from_fn(region.axes(), |axis| 1 + region.start[axis] % 3);
    let shape = Dims::from_fn(region.axes(), |axis| region.shape[axis].div_ceil(step[axis]));
    let (offset, strides) = (region.samples() as usize * size, shape.strides(size as u64));
    let selections = vec![whole, Selection { shape, step, offset, strides, ..whole }];
    let expected: Vec<u8> = selections
        .iter()
        .flat_map(|selection| (0..selection.samples()).map(|number| (*selection, selection.shape.index_of(number))))
        .flat_map(|(Selection { start, step, .. }, within)| {
            array.sample(&Dims::from_fn(within.len(), |axis| start[axis] + within[axis] * step[axis]))
        })
        .collect();
    let mut read = vec![0xee; expected.len()];
    reader.read_into(request(array, selections, None), &mut read).expect("the samples can be read");
    assert!(read == expected, "the box {region:?} differs from the model");
}

fn request(array: &Arc<Imagined>, selections: Vec<Selection>, from_file: Option<Recorded>) -> ReadRequest {
    let array = Arc::clone(array) as Arc<dyn Array>;
    ReadRequest { array, selections, bulkhead: Bulkhead::new(0), counters: None, from_file, is_entire: true }
}
