//! Checks the data files of a mag for faults that reading the blocks of the box does not notice: blocks outside of the
//! box, bytes after the last block, files that have the name of a folder.

use super::bricks::WkwArray;
use super::cubes::{cube_name, position};
use super::files::{no_folders, visit_cubes};
use super::header::{BYTES, BlockType, Header};
use crate::codec::lz4;
use crate::format::{Finding, FormatError};
use crate::source::{Blocking, Folder, SourceError};

/// Bytes of the jump table that are read at a time.
const PART: u64 = 256 << 10;

/// Reports the faults of the data files of one mag. Errors of single files are left to the reader of their blocks.
pub(super) fn check_mag(array: &WkwArray, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
    let folder = &*array.cubes.folder;
    let ([low, high], mut outside) = (array.cubes_of_box(), 0u64);
    for name in no_folders(folder, low, high)? {
        report(Finding::damage(format!("{name} is not the folder of data files that it should be")));
    }
    visit_cubes(folder, [0; 3], [u64::MAX; 3], &mut |at, _| {
        if (0..3).all(|a| (low[a]..=high[a]).contains(&at[a])) {
            match check_cube(array, at, report) {
                // reading its blocks tries that again, and a block outside of the box may be the only one that matters
                Err(error) if error.is_failure_of_system() => report(Finding::unread(error.to_string())),
                Ok(()) | Err(SourceError::Io { .. } | SourceError::TooShort { .. }) => {}
                Err(error) => return Err(error),
            }
        } else {
            outside += 1;
        }
        Ok(true)
    })?;
    if outside > 0 {
        report(Finding::note(format!("{outside} data files lie outside of the layer's box and are not checked")));
    }
    Ok(())
}

/// Reports the faults of a data file. A wrong header is left to the reader of its blocks, and so are faulty blocks in
/// the box.
fn check_cube(array: &WkwArray, at: [u64; 3], report: &mut dyn FnMut(Finding)) -> Result<(), SourceError> {
    let object = cube_name(at);
    let (header, size) = match array.cubes.header_of(&object, Blocking::Yes) {
        Ok(Some(found)) => found,
        Err(FormatError::Source(error)) => return Err(error),
        Ok(None) | Err(_) => return Ok(()),
    };
    let (mut is_faulty_inside, mut first_outside, mut outside) = (false, None, 0u64);
    let mut count = |number: u64| {
        let within = position(number);
        if array.has_block([0, 1, 2].map(|a| (at[a] << header.file_log) + within[a])) {
            is_faulty_inside = true;
        } else {
            first_outside.get_or_insert(number);
            outside += 1;
        }
    };
    let end = if header.blocks == BlockType::Raw {
        let (begin, blocks, bytes) = (header.data_offset, header.blocks_of_file(), header.block_bytes());
        (size.saturating_sub(begin) / bytes.max(1)..blocks).for_each(&mut count);
        begin.saturating_add(blocks.saturating_mul(bytes))
    } else {
        check_table(&*array.cubes.folder, &object, &header, size, count)?
    };
    if let Some(first) = first_outside {
        let text = format!("{outside} of its blocks outside of the box are not within the file (the first: {first})");
        report(Finding::damage(format!("{object}: {text}")));
    } else if size > end && !is_faulty_inside {
        report(Finding::note(format!("{object}: {} bytes follow its last block", size - end)));
    }
    Ok(())
}

/// Calls `faulty` for each block of a jump table that is not within the file of `size` bytes. Returns where the last
/// block ends. The table is read in parts.
fn check_table(
    folder: &dyn Folder,
    object: &str,
    header: &Header,
    size: u64,
    mut faulty: impl FnMut(u64),
) -> Result<u64, SourceError> {
    let longest = lz4::longest(header.block_bytes());
    let (mut begin, mut furthest, mut number) = (header.data_offset, header.data_offset, 0);
    let (mut at, end) = (BYTES as u64, header.end());
    let mut part = Vec::new();
    while at < end {
        part.resize((end - at).min(PART) as usize, 0);
        if !folder.read_at(object, at, &mut part, Blocking::Yes)? {
            return Err(SourceError::Changed);
        }
        at += part.len() as u64;
        for end in part.as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes) {
            let right = header.data_offset <= begin && begin < end && end <= size;
            if !right || end - begin > longest {
                faulty(number);
            }
            (begin, furthest, number) = (end, furthest.max(end), number + 1);
        }
    }
    Ok(furthest)
}
