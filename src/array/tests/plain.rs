//! Compares plain bricks of a real file with the samples that were written; the file is read until a memory map
//! answers.

use std::io::Write;
use std::sync::{Arc, mpsc};

use proptest::prelude::*;

use crate::array::{ReadRequest, Reader, ReaderConfig};
use crate::format::{Array, Census, FormatError};
use crate::pool::{Bulkhead, Pool};
use crate::source::{Blocking, FileSource, LocalTree, Source, WHOLE};
use crate::volume::{ArrayInfo, Brick, BrickGrid, Dims, Dtype, Layout, Plain};

const SHAPE: [u64; 3] = [7, 11, 300];

/// An array whose samples are their own numbers, in bricks that lie in the file in reverse order.
struct Numbers {
    info: ArrayInfo,
    brick: Dims,
    file: Arc<dyn FileSource>,
    path: tempfile::TempPath,
}

impl Numbers {
    fn new(brick: [u64; 3]) -> Self {
        let (shape, brick) = (Dims::from(SHAPE), Dims::from(brick));
        let info = ArrayInfo::new(Dtype::UInt32, BrickGrid::aligned(shape, brick), brick);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for number in (0..info.grid.total()).rev() {
            let at = info.grid.count().index_of(number);
            for n in 0..brick.product().unwrap() {
                let within = brick.index_of(n);
                let index = Dims::from_fn(3, |a| at[a] * brick[a] + within[a]);
                let inside = (0..3).all(|a| index[a] < shape[a]);
                let sample = if inside { shape.linear_of(&index) as u32 } else { u32::MAX };
                file.write_all(&sample.to_le_bytes()).unwrap();
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
        let layout = Layout::c_order(start, self.brick, self.info.shape(), 4);
        Ok(Brick::Plain(Plain { object: WHOLE.into(), offset: before * self.brick.product().unwrap() * 4, layout }))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

fn reader() -> Arc<Reader> {
    ReaderConfig { cache_bytes: 0, idle_buffer_bytes: 1 << 20, prefaulted_bytes: 0, threads: 2 }
        .reader(Pool::new(), Arc::default())
}

fn read(reader: &Arc<Reader>, array: &Arc<Numbers>, samples: std::ops::Range<u64>) -> Option<Vec<u8>> {
    let (done, answer) = mpsc::channel();
    let array: Arc<dyn Array> = Arc::clone(array) as _;
    let (permutation, bulkhead) = (None, Bulkhead::new(1));
    let request = ReadRequest {
        array,
        samples,
        bulkhead,
        scans: None,
        permutation,
        page_cached: false,
        ahead: false,
        counters: None,
    };
    reader.read(request, move |read| done.send(read.ok().map(|bytes| bytes.to_vec())).unwrap());
    answer.recv().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn all_read_paths_from_a_file_return_the_same_samples(
        // rows of 256 bytes, of 200, of 32, and of 1200
        brick in prop::sample::select(vec![[4u64, 4, 64], [2, 3, 50], [3, 5, 8], [1, 1, 300]]),
        cuts in prop::collection::vec((0.0f64..1.0, 0.0f64..1.0), 12),
    ) {
        let (reader, array, all) = (reader(), Arc::new(Numbers::new(brick)), SHAPE.iter().product::<u64>());
        for (a, b) in cuts {
            let range = (a.min(b) * all as f64) as u64..(a.max(b) * all as f64) as u64;
            let expected: Vec<u8> = range.clone().flat_map(|n| (n as u32).to_le_bytes()).collect();
            prop_assert_eq!(read(&reader, &array, range), Some(expected));
        }
        let file = array.file.open_object(WHOLE, Blocking::No).unwrap().unwrap();
        if file.window_of(0, 1).is_some() {
            prop_assert!(file.window(0).is_some(), "it was read often enough to be mapped");
        }
        std::fs::File::options().write(true).open(&array.path).unwrap().set_len(4096).unwrap();
        prop_assert_eq!(read(&reader, &array, 0..all), None, "a truncated file is not read");
        prop_assert_eq!(read(&reader, &array, 0..all), None);
    }
}
