//! Reads some bricks of every array of a dataset, and checks what a format promises of them.

use crate::format::{Array, Dataset, FormatError};
use crate::source::Blocking;
use crate::volume::{Brick, Coded, Dims, StoredLength};

use super::bounded;

/// Larger bricks are not decoded: they may be valid, and are slow.
const DECODED: usize = 1 << 20;
/// At most this many bricks of an array are read.
const BRICKS: u64 = 24;
/// At most this many arrays are read.
const ARRAYS: usize = 24;
/// Datasets of more bricks do not have their structure checked: it may be valid, and slow.
const CHECKED: u64 = 1 << 12;
/// Bytes that decoding may take besides what the brick says it needs: tables of decoders, and texts of errors.
const FOR_ANY_BRICK: u64 = 256 << 10;

/// Where the bytes of a dataset are, so far as its checks depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In one file: whatever a brick names lies within it.
    InOneFile,
    /// In objects, whose lengths may not be what the tables say.
    InObjects,
}

/// Reads some bricks of every array, and returns how many could be read.
pub fn read_some(dataset: &dyn Dataset, kept: Kept) -> u64 {
    let levels = dataset.layers().iter().flat_map(|layer| &layer.levels);
    let bricks = levels.clone().fold(0u64, |sum, array| sum.saturating_add(array.info().grid.total()));
    if bricks <= CHECKED {
        let mut findings = 0u64;
        let checked = dataset.check_structure(&mut |_| findings += 1);
        assert!(!matches!(checked, Err(FormatError::Source(_))) || kept == Kept::InObjects, "the system is blamed");
    }
    levels.take(ARRAYS).map(|array| read_some_of(&**array, kept)).sum()
}

fn read_some_of(array: &dyn Array, kept: Kept) -> u64 {
    let info = array.info();
    assert!(i64::try_from(info.bytes()).is_ok(), "an array of {} bytes", info.bytes());
    let grid = &info.grid;
    assert!(grid.total() > 0 || info.shape().contains(&0));
    let step = (grid.total() / BRICKS).max(1);
    let numbers = (0..BRICKS).map(|n| n * step).take_while(|number| *number < grid.total());
    let mut read = 0;
    for at in numbers.map(|number| grid.count().index_of(number)) {
        match read_brick(array, &at, kept) {
            Ok(()) => read += 1,
            Err(FormatError::Source(error)) if kept == Kept::InOneFile => panic!("brick {at:?}: {error}"),
            Err(_) => {}
        }
    }
    read
}

fn read_brick(array: &dyn Array, at: &Dims, kept: Kept) -> Result<(), FormatError> {
    let (info, owned) = (array.info(), array.info().grid.region(at));
    let size = info.dtype.size();
    let brick = array.brick(at, Blocking::Yes)?;
    // what needs no waiting is the same again
    match array.brick(at, Blocking::No) {
        Err(error) if error.would_block() => {}
        again => assert_eq!(again.as_ref(), Ok(&brick)),
    }
    match brick {
        Brick::Constant(value) => assert_eq!(value.bytes().len(), size),
        Brick::Plain(plain) => {
            assert!(plain.layout.held.contains(&owned), "a brick does not hold what it owns");
            let end = plain.layout.end(size).and_then(|end| end.checked_add(plain.offset));
            let length = array.source().len(&plain.object)?;
            assert!(end.is_some_and(|end| length.is_some_and(|length| end <= length)), "a plain brick beyond the end");
        }
        Brick::Coded(coded) => {
            assert!(coded.layout.held.contains(&owned), "a brick does not hold what it owns");
            assert!(coded.layout.end(size).is_some_and(|end| end <= coded.decoded as u64), "a layout beyond the brick");
            if coded.decoded <= DECODED {
                decode(array, &coded, kept)?;
            }
        }
    }
    Ok(())
}

/// Decodes a brick into memory of two different contents.
fn decode(array: &dyn Array, coded: &Coded, kept: Kept) -> Result<(), FormatError> {
    let Some(whole) = array.source().len(&coded.object)? else { return Ok(()) };
    let length = match coded.length {
        StoredLength::Bytes(length) => {
            let within = coded.offset.checked_add(length).is_some_and(|end| end <= whole);
            assert!(within || kept == Kept::InObjects, "a coded brick beyond the end");
            length.min(whole)
        }
        StoredLength::Rest { most } => whole.min(most),
    };
    let mut stored = vec![0; length as usize];
    array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes)?;
    let most = FOR_ANY_BRICK + coded.scratch as u64 + coded.decoded as u64;
    let decoded = |fill| {
        let mut samples = vec![fill; coded.decoded];
        bounded::at_most(most, "decoding", || array.decode(coded, &stored, &mut samples)).map(|()| samples)
    };
    let (one, other) = (decoded(0)?, decoded(0xa5));
    // a brick must not show what the memory held before: that may be another dataset's
    assert!(other.is_ok_and(|other| other == one), "the samples depend on what the buffer held");
    Ok(())
}
