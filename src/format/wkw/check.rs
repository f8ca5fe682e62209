//! Checks the data files of a mag for faults that reading the blocks of the box does not notice: blocks outside of the box,
//! bytes after the last block, files that have the name of a folder.

use super::bricks::WkwArray;
use super::cubes::{Cube, position};
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
            let checked = CubeCheck::new(array, folder, at).and_then(|cube| match cube {
                Some(cube) => cube.check(report),
                None => Ok(()),
            });
            match checked {
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

/// A data file whose header is right.
struct CubeCheck<'a> {
    array: &'a WkwArray,
    folder: &'a dyn Folder,
    at: [u64; 3],
    object: String,
    header: Header,
    size: u64,
}

impl<'a> CubeCheck<'a> {
    /// Reads the header; `None` if it is wrong, which each block of the file reports.
    fn new(array: &'a WkwArray, folder: &'a dyn Folder, at: [u64; 3]) -> Result<Option<Self>, SourceError> {
        let object = Cube { at, table_id: 0, number: 0 }.object();
        match array.cubes.header_of(&object, Blocking::Yes) {
            Ok(Some((header, size))) => Ok(Some(Self { array, folder, at, object, header, size })),
            Err(FormatError::Source(error)) => Err(error),
            Ok(None) | Err(_) => Ok(None),
        }
    }

    fn check(&self, report: &mut dyn FnMut(Finding)) -> Result<(), SourceError> {
        let (end, faults) = match self.header.blocks {
            BlockType::Raw => self.check_raw(),
            _ => self.check_table()?,
        };
        let object = &self.object;
        if let Some((first, count)) = faults.outside {
            let text = format!("{count} of its blocks outside of the box are not within the file (the first: {first})");
            report(Finding::damage(format!("{object}: {text}")));
        } else if self.size > end && !faults.inside {
            report(Finding::note(format!("{object}: {} bytes follow its last block", self.size - end)));
        }
        Ok(())
    }

    /// Returns where the last block ends, and the faulty blocks.
    fn check_raw(&self) -> (u64, Faults) {
        let (blocks, bytes) = (self.header.blocks_of_file(), self.header.block_bytes());
        let end = self.header.data_offset.saturating_add(blocks.saturating_mul(bytes));
        let there = self.size.saturating_sub(self.header.data_offset) / bytes.max(1);
        let mut faults = Faults::default();
        (there..blocks).for_each(|number| self.count(number, &mut faults));
        (end, faults)
    }

    /// Like [`Self::check_raw`], for compressed blocks. The table is read in parts.
    fn check_table(&self) -> Result<(u64, Faults), SourceError> {
        let (header, bytes) = (&self.header, self.header.block_bytes());
        let (mut begin, mut furthest, mut number) = (header.data_offset, header.data_offset, 0);
        let mut faults = Faults::default();
        let (mut at, end) = (BYTES as u64, header.end());
        let mut part = Vec::new();
        while at < end {
            part.resize((end - at).min(PART) as usize, 0);
            if !self.folder.read_at(&self.object, at, &mut part, Blocking::Yes)? {
                return Err(SourceError::Changed);
            }
            at += part.len() as u64;
            for end in part.as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes) {
                let right = header.data_offset <= begin && begin < end && end <= self.size;
                if !right || end - begin > lz4::longest(bytes) {
                    self.count(number, &mut faults);
                }
                (begin, furthest, number) = (end, furthest.max(end), number + 1);
            }
        }
        Ok((furthest, faults))
    }

    fn count(&self, number: u64, faults: &mut Faults) {
        let within = position(number);
        let block = [0, 1, 2].map(|a| (self.at[a] << self.header.file_log) + within[a]);
        if self.array.has_block(block) {
            faults.inside = true;
            return;
        }
        let (_, count) = faults.outside.get_or_insert((number, 0));
        *count += 1;
    }
}

/// The faulty blocks of a data file.
#[derive(Default)]
struct Faults {
    /// Outside of the box: the first one, and the number of all.
    outside: Option<(u64, u64)>,
    /// Whether there are any in the box. They are reported when they are read.
    inside: bool,
}
