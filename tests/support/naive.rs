//! The naive model of the data path: decodes an array, one brick after the other, through nothing but the traits of
//! `volfs::format`. It has no cache, no threads and no ranges: it is slow, and short enough to be checked by reading.
//! Tests compare the output of the fast path with it.

use volfs::format::{Array, FormatError};
use volfs::source::Wait;
use volfs::volume::{ArrayInfo, Brick, Dims, Layout, Region, StoredLength};

/// Reads all samples of an array in C order.
pub fn read_all(array: &dyn Array) -> Result<Vec<u8>, FormatError> {
    let (samples, damaged) = read_what_can_be(array);
    damaged.into_iter().next().map_or(Ok(samples), |(_, error)| Err(error))
}

/// Reads all samples of an array in C order. Also returns the bricks that cannot be read; their samples are zeros.
pub fn read_what_can_be(array: &dyn Array) -> (Vec<u8>, Vec<(Dims, FormatError)>) {
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
pub fn read_brick(array: &dyn Array, at: &Dims, out: &mut [u8]) -> Result<(), FormatError> {
    let info = array.info();
    let owned = info.grid.region(at);
    match array.brick(at, Wait::Yes)? {
        Brick::Constant(value) => {
            assert_eq!(value.bytes().len(), info.dtype.size(), "a constant is one sample");
            let repeated = Layout { held: owned, first: 0, strides: Dims::filled(owned.axes(), 0) };
            scatter(info, &owned, value.bytes(), &repeated, out);
        }
        Brick::Plain(plain) => {
            let length = plain.layout.end(info.dtype.size()).expect("a brick's end fits 64 bits");
            let bytes = fetch(array, &plain.object, plain.offset, length, 0)?;
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
                            coded.object
                        )));
                    }
                    rest
                }
            };
            let stored = fetch(array, &coded.object, coded.offset, length, coded.padding)?;
            let mut samples = vec![0xa5; coded.decoded];
            array.decode(&coded, &stored, &mut samples)?;
            scatter(info, &owned, &samples, &coded.layout, out);
        }
    }
    Ok(())
}

/// Reads bytes of the source and appends `padding` zeros.
fn fetch(array: &dyn Array, object: &str, offset: u64, length: u64, padding: usize) -> Result<Vec<u8>, FormatError> {
    let length = usize::try_from(length).expect("a brick fits the memory");
    let mut bytes = vec![0; length + padding];
    match array.source().read_at(object, offset, &mut bytes[..length], Wait::Yes)? {
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

/// Checks that each of the first 200 bricks, once looked up, is found without waiting, unless each lookup has to read
/// the source.
pub fn check_without_waiting(array: &dyn Array) {
    for number in 0..array.info().grid.total().min(200) {
        let at = array.info().grid.count().index_of(number);
        let with = array.brick(&at, Wait::Yes);
        match array.brick(&at, Wait::No) {
            Err(e) if e.would_block() => {}
            without => assert_eq!(without, with),
        }
    }
}
