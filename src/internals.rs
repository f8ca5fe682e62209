//! What the tests of the program and the programs in `examples` need of the library. None of it is a public API.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::array::{ReadRequest, Reader, Selection};
use crate::catalog::open_dataset;
#[cfg(feature = "mount")]
use crate::cli::Shell;
#[cfg(feature = "libzfp")]
use crate::codec::zfp;
use crate::counters::Counters;
use crate::format::vds::wavelet;
use crate::format::{Array, FormatError, registry};
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::source::Blocking;
#[cfg(feature = "mount")]
use crate::source::disk_cache::{CacheKey, DiskCache};
use crate::volume::{ArrayInfo, Brick, Dims, Dtype, Layout, Region, StoredLength};

/// A level of a layer of a dataset.
pub struct Level {
    /// The name of the layer.
    pub layer: String,
    /// The number of the level.
    pub lod: usize,
    /// The name of the level within a VDS.
    pub stored: Option<String>,
    array: Arc<dyn Array>,
}

impl Level {
    /// Reads all samples in C order, one brick after the other, without the data path.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read_all(&*self.array).map_err(io::Error::other)
    }

    /// The shape, slowest axis first.
    pub fn shape(&self) -> Vec<u64> {
        self.array.info().shape().to_vec()
    }

    /// The shape of bricks, slowest axis first.
    pub fn brick_shape(&self) -> Vec<u64> {
        self.array.info().brick_shape.to_vec()
    }

    /// The bytes of a sample.
    pub fn sample_size(&self) -> usize {
        self.array.info().dtype.size()
    }

    /// The first sample and the shape of what each brick owns.
    pub fn bricks(&self) -> Vec<(Vec<u64>, Vec<u64>)> {
        let grid = &self.array.info().grid;
        let regions = (0..grid.total()).map(|number| grid.region(&grid.count().index_of(number)));
        regions.map(|region| (region.start.to_vec(), region.shape.to_vec())).collect()
    }

    /// The stored bytes of compressed bricks, until they decode to `most` bytes.
    pub fn coded_bricks(&self, most: usize) -> io::Result<Vec<Vec<u8>>> {
        let (grid, mut bricks, mut decoded) = (&self.array.info().grid, Vec::new(), 0);
        for number in 0..grid.total() {
            let brick = self.array.brick(&grid.count().index_of(number), Blocking::Yes).map_err(io::Error::other)?;
            if let Brick::Coded(coded) = brick {
                let mut bytes = vec![0; coded.length.most() as usize];
                self.array
                    .source()
                    .read_at(&coded.object, coded.offset, &mut bytes, Blocking::Yes)
                    .map_err(io::Error::other)?;
                bricks.push(bytes);
                decoded += coded.decoded;
            }
            if decoded >= most {
                break;
            }
        }
        Ok(bricks)
    }
}

/// Reads boxes of a level by the data path: cache, workers, copying.
pub struct LevelReader {
    array: Arc<dyn Array>,
    reader: Arc<Reader>,
    counters: Arc<Counters>,
}

impl LevelReader {
    /// Reads with this many bytes of cache and decoding threads.
    pub fn new(level: &Level, cache: usize, threads: usize) -> Self {
        let (counters, buffers) = (Arc::<Counters>::default(), BufferPool::for_bricks(64 << 20, 64 << 20));
        let reader = Reader::new(cache, threads, buffers, Pool::new(), Arc::clone(&counters));
        Self { array: Arc::clone(&level.array), reader, counters }
    }

    /// Fills `out` with the samples of a box in C order. Returns the number of bricks that were decoded for it.
    pub fn read(&self, start: &[u64], shape: &[u64], out: &mut [u8]) -> io::Result<u64> {
        let dims = |values| Dims::from_slice(values).ok_or_else(|| io::Error::other("too many axes"));
        let region = Region { start: dims(start)?, shape: dims(shape)? };
        let selections = vec![Selection::new(&region, 0, self.array.info().dtype.size())];
        let (array, bulkhead) = (Arc::clone(&self.array), Bulkhead::new(1));
        let before = self.counters.bricks_decoded.get();
        let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: true };
        self.reader.read_into(request, out).map_err(io::Error::other)?;
        Ok(self.counters.bricks_decoded.get() - before)
    }
}

/// Opens a dataset, and returns the levels of all layers.
pub fn levels(dataset: &Path) -> io::Result<Vec<Level>> {
    let open = open_dataset(registry(), dataset, None).map_err(io::Error::other)?;
    let mut levels = Vec::new();
    for layer in open.dataset.layers() {
        for (lod, array) in layer.levels.iter().enumerate() {
            let stored = layer.native.get("stored").and_then(|names| names[lod].as_str());
            levels.push(Level {
                layer: layer.name.clone(),
                lod,
                stored: stored.map(Into::into),
                array: Arc::clone(array),
            });
        }
    }
    Ok(levels)
}

/// Fills a disk cache with ranges of objects: the address of the store, the path of the dataset, the name of the object
/// and its version, the first byte, and all bytes.
#[cfg(feature = "mount")]
pub fn fill_disk_cache<'a>(folder: &Path, budget: u64, ranges: impl IntoIterator<Item = ([&'a str; 4], u64, Vec<u8>)>) {
    let cache = DiskCache::open(folder, budget).unwrap();
    for ([store, dataset, object, version], offset, bytes) in ranges {
        cache.put(&CacheKey::new(store, dataset, object, version), offset, bytes);
    }
}

/// The definition of the command line.
#[cfg(feature = "mount")]
pub fn command() -> clap::Command {
    crate::cli::command()
}

/// The completion script of a shell.
#[cfg(feature = "mount")]
pub fn completion_script(shell: &str) -> Option<&'static str> {
    let shell = <Shell as clap::ValueEnum>::from_str(shell, false).ok()?;
    Some(crate::cli::completion_script(shell))
}

/// A ZFP stream.
#[cfg(feature = "libzfp")]
pub struct ZfpStream {
    /// The stored bytes.
    pub stored: Vec<u8>,
    shape: [u64; 3],
    padded: zfp::libzfp::Stream,
}

#[cfg(feature = "libzfp")]
impl ZfpStream {
    /// A stream of samples of `shape`, slowest axis first.
    pub fn new(stored: Vec<u8>, shape: [u64; 3]) -> Self {
        Self { padded: zfp::libzfp::Stream::new(&stored, shape), stored, shape }
    }

    /// Compresses samples. `limits` are the fewest and most bits of a block, the most bit planes, and the exponent of
    /// the lowest.
    pub fn compress(samples: &[f32], shape: [u64; 3], limits: (u32, u32, u32, i32)) -> Self {
        Self::new(zfp::libzfp::compress(samples, shape, limits), shape)
    }

    /// The number of samples.
    pub fn samples(&self) -> usize {
        self.shape.iter().product::<u64>() as usize
    }

    /// Decodes all samples with libzfp.
    pub fn decode_by_libzfp(&self, out: &mut [f32]) -> io::Result<()> {
        let used = self.padded.decode(self.shape, out);
        used.map(drop).ok_or_else(|| io::Error::other("libzfp cannot decode it"))
    }

    /// Decodes all samples, with the fastest instructions of this machine or with those of every one.
    pub fn decode(&self, is_fastest: bool, out: &mut [u8]) -> io::Result<()> {
        let instructions = if is_fastest { zfp::Instructions::best() } else { zfp::Instructions::Portable };
        zfp::decode_with(instructions, self.shape, &self.stored, out).map(drop).map_err(io::Error::other)
    }
}

/// The decoder of wavelet chunks.
#[derive(Default)]
pub struct Wavelet(wavelet::Scratch);

impl Wavelet {
    /// Decodes a chunk of `size` samples of 1, 2 or 4 bytes (floating-point), stored by the method of this code.
    pub fn decode(
        &mut self,
        chunk: &[u8],
        size: [usize; 3],
        bytes: usize,
        method: i32,
        out: &mut [u8],
    ) -> io::Result<()> {
        let dtype = match bytes {
            1 => Dtype::UInt8,
            2 => Dtype::UInt16,
            _ => Dtype::Float32,
        };
        let (normalized, lossless) = (method == 4 || method == 6, method == 5 || method == 6);
        let expected = wavelet::Expected { size, dtype, no_value: None, scale: 1.0, offset: 0.0, normalized, lossless };
        wavelet::decode(chunk, &expected, None, &mut self.0, out).map_err(io::Error::other)
    }

    /// The bytes of scratch memory.
    pub fn scratch(&self) -> usize {
        self.0.bytes()
    }
}

// The naive model of the data path: decodes an array, one brick after the other, through nothing but the traits of the
// formats. It has no cache, no threads and no ranges: it is slow, and short enough to be checked by reading. Tests
// compare the output of the fast path with it.

/// Reads all samples of an array in C order.
pub(crate) fn read_all(array: &dyn Array) -> Result<Vec<u8>, FormatError> {
    let (samples, damaged) = read_what_can_be(array);
    damaged.into_iter().next().map_or(Ok(samples), |(_, error)| Err(error))
}

/// Reads all samples of an array in C order. Also returns the bricks that cannot be read; their samples are zeros.
pub(crate) fn read_what_can_be(array: &dyn Array) -> (Vec<u8>, Vec<(Dims, FormatError)>) {
    let info = array.info();
    let mut out = vec![0; info.bytes().try_into().expect("the array fits the memory")];
    let mut damaged = Vec::new();
    for number in 0..info.grid.total() {
        let at = info.grid.count().index_of(number);
        if let Err(error) = read_brick(array, &at, &mut out) {
            damaged.push((at, error));
        }
    }
    (out, damaged)
}

/// Copies the samples that the brick at `at` owns to their place in `out`, which holds the whole array.
pub(crate) fn read_brick(array: &dyn Array, at: &Dims, out: &mut [u8]) -> Result<(), FormatError> {
    let info = array.info();
    let owned = info.grid.region(at);
    match array.brick(at, Blocking::Yes)? {
        Brick::Constant(value) => {
            assert_eq!(value.bytes().len(), info.dtype.size(), "a constant is one sample");
            let repeated = Layout { held: owned, first: 0, strides: Dims::filled(owned.axes(), 0) };
            scatter(info, &owned, value.bytes(), &repeated, out);
        }
        Brick::Plain(plain) => {
            let length = plain.layout.end(info.dtype.size()).expect("a brick's end fits 64 bits");
            let bytes = fetch(array, &plain.object, plain.offset, length)?;
            scatter(info, &owned, &bytes, &plain.layout, out);
        }
        Brick::Coded(coded) => {
            let length = match coded.length {
                StoredLength::Bytes(length) => length,
                StoredLength::Rest { most } => {
                    let whole = array.source().len(&coded.object)?.ok_or_else(|| absent(&coded.object))?;
                    let rest = whole - coded.offset;
                    if rest > most {
                        return Err(FormatError::Damaged(format!(
                            "{} has {rest} bytes: more than {most}",
                            &*coded.object
                        )));
                    }
                    rest
                }
            };
            let stored = fetch(array, &coded.object, coded.offset, length)?;
            let mut samples = vec![0xa5; coded.decoded];
            array.decode(&coded, &stored, &mut samples)?;
            scatter(info, &owned, &samples, &coded.layout, out);
        }
    }
    Ok(())
}

/// Reads bytes of the source.
fn fetch(array: &dyn Array, object: &str, offset: u64, length: u64) -> Result<Vec<u8>, FormatError> {
    let length = usize::try_from(length).expect("a brick fits the memory");
    let mut bytes = vec![0; length];
    match array.source().read_at(object, offset, &mut bytes, Blocking::Yes)? {
        true => Ok(bytes),
        false => Err(absent(object)),
    }
}

fn absent(object: &str) -> FormatError {
    FormatError::Damaged(format!("{object} is not there"))
}

/// Copies the samples of `region` one by one from their place in `bytes`, which `layout` gives.
fn scatter(info: &ArrayInfo, region: &Region, bytes: &[u8], layout: &Layout, out: &mut [u8]) {
    assert!(layout.held.contains(region), "a brick holds all that it owns");
    let size = info.dtype.size();
    let last = region.axes() - 1;
    let strides = info.shape().strides(size as u64);
    let mut rows = region.shape;
    rows[last] = 1;
    for row in 0..rows.product().expect("a brick fits the memory") {
        let mut index = rows.index_of(row);
        (0..=last).for_each(|axis| index[axis] += region.start[axis]);
        let mut from = layout.offset_of(&index) as usize;
        let mut to = (0..=last).map(|axis| index[axis] * strides[axis]).sum::<u64>() as usize;
        for _ in 0..region.shape[last] {
            out[to..to + size].copy_from_slice(&bytes[from..from + size]);
            from += layout.strides[last] as usize;
            to += size;
        }
    }
}
