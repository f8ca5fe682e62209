//! The helpers of tests that need no program of volfs. The library's own tests use them, and those in tests/formats.
#![allow(dead_code, unused_imports, clippy::unwrap_used, clippy::expect_used)]

mod data;
pub mod exchange;
#[cfg(feature = "mount")]
pub mod faulty_folder;
pub mod handmade;
pub mod memory_folder;
#[cfg(feature = "mount")]
pub mod own_fs;
pub mod png;
mod run;
pub mod stress;
pub mod vds;
pub mod vds_dataset;

pub use data::*;
pub use run::*;

use crate::volume::Dtype;

/// All types of samples.
pub const DTYPES: [Dtype; 13] = [
    Dtype::Int8,
    Dtype::UInt8,
    Dtype::Int16,
    Dtype::UInt16,
    Dtype::Int32,
    Dtype::UInt32,
    Dtype::Int64,
    Dtype::UInt64,
    Dtype::Float32,
    Dtype::Float64,
    Dtype::Float16,
    Dtype::Complex64,
    Dtype::Complex128,
];

/// The naive model of the data path, and a check of lookups.
pub mod naive {
    use crate::format::Array;
    pub(crate) use crate::internals::{read_all, read_brick, read_what_can_be};
    use crate::source::Blocking;
    use crate::volume::{Brick, Dims, StoredLength};

    /// Checks that parts of coded bricks decode to the same samples as the whole, for planes of each axis at the start and
    /// at the end of each of the first 200 bricks. `samples` are those of the array. Returns the number of parts.
    pub fn check_parts(array: &dyn Array, samples: &[u8]) -> usize {
        let (info, size) = (array.info(), array.info().dtype.size());
        let (shape, mut parts) = (info.shape(), 0);
        for number in 0..info.grid.total().min(200) {
            let at = info.grid.count().index_of(number);
            let Brick::Coded(coded) = array.brick(&at, Blocking::Yes).unwrap() else { continue };
            let owned = info.grid.region(&at);
            for (axis, is_last) in (0..shape.len()).flat_map(|axis| [(axis, false), (axis, true)]) {
                let mut region = owned;
                region.start[axis] += if is_last { owned.shape[axis] - 1 } else { 0 };
                region.shape[axis] = 1;
                let Some(part) = array.part_around(&coded, &region) else { continue };
                assert!(part.decoded < coded.decoded && part.layout.held.contains(&region));
                let mut stored = vec![0; coded.length.most() as usize];
                array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes).unwrap();
                let mut out = vec![0xa5; part.decoded];
                array.decode(&part, &stored, &mut out).unwrap();
                for n in 0..part.layout.held.samples() {
                    let within = part.layout.held.shape.index_of(n);
                    let index = Dims::from_fn(shape.len(), |a| part.layout.held.start[a] + within[a]);
                    let (from, to) = (shape.linear_of(&index) as usize * size, part.layout.offset_of(&index) as usize);
                    assert!(out[to..][..size] == samples[from..][..size], "{index:?} in {region:?} of brick {at:?}");
                }
                parts += 1;
            }
        }
        parts
    }

    /// Checks that each of the first 200 bricks, once looked up, is found without waiting, unless each lookup has to read
    /// the source; that the tables of a dataset say as much about a brick; and that beyond the last ones there are none.
    pub fn check_lookups(array: &dyn Array) {
        let count = array.info().grid.count();
        for axis in (0..count.len()).filter(|_| array.info().grid.total() > 0) {
            let mut beyond = count;
            (0..count.len()).filter(|other| *other != axis).for_each(|other| beyond[other] = 0);
            assert!(array.brick(&beyond, Blocking::Yes).is_err(), "brick {beyond:?} of {count:?}");
        }
        for number in 0..array.info().grid.total().min(200) {
            let at = array.info().grid.count().index_of(number);
            let with = array.brick(&at, Blocking::Yes);
            match array.brick(&at, Blocking::No) {
                Err(e) if e.would_block() => {}
                without => assert_eq!(without, with),
            }
            if let (Ok(Brick::Coded(coded)), Ok(Some(stored))) = (&with, array.stored_brick(&at))
                && let StoredLength::Bytes(bytes) = coded.length
            {
                assert_eq!((stored.bytes, stored.is_coded), (Some(bytes), true), "brick {at:?}");
            }
        }
    }
}
