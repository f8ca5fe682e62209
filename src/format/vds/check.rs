//! Checks the tables of a container as a whole: chunks that overlap each other or the tables, and the number of
//! chunks that were written.

use std::sync::Arc;

use super::bricks::VdsArray;
use super::store::Content;
use crate::format::extents::{Extent, find_overlaps};
use crate::format::{Array, Finding, FormatError};
use crate::source::Blocking;
use crate::volume::Dims;

/// The owner of a part of the container, in place of a layer.
const PART: u32 = u32::MAX;
/// The owners of index pages: this plus the layer.
const PAGES: u32 = 1 << 31;

/// A part of the container other than the chunks of layers: its name, offset and length.
pub(super) type Part = (String, u64, u64);

/// The tables of an open dataset.
#[derive(Default)]
pub(super) struct Checked {
    /// The name of the shown layer, and the array of each of its levels that can be read.
    pub arrays: Vec<(String, Arc<VdsArray>)>,
    /// What was found wrong when the dataset was opened.
    pub findings: Vec<Finding>,
    /// The parts of the container; `None` if each chunk is an object.
    pub parts: Option<Vec<Part>>,
}

impl Checked {
    /// Reports the faults of the tables as a whole.
    pub(super) fn check(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        self.findings.iter().cloned().for_each(&mut *report);
        for (layer, array) in &self.arrays {
            if let Some(note) = written_chunks(array)? {
                report(Finding::note(note).of_layer(layer).of_lod(array.info().lod));
            }
        }
        let Some(parts) = &self.parts else { return Ok(()) };
        let mut shared = 0u64;
        find_overlaps(
            |visit| self.visit_extents(parts, visit),
            |overlap| match overlap.is_shared() && [overlap.first, overlap.second].iter().all(|e| e.owner.0 < PAGES) {
                true => shared += 1,
                false => report(overlap.finding("chunk", |one| self.brick_of(one), |one| self.name_of(parts, one))),
            },
        )?;
        if shared > 0 {
            report(Finding::note(format!("{shared} chunks are stored at the place of another one")));
        }
        Ok(())
    }

    fn visit_extents(&self, parts: &[Part], visit: &mut dyn FnMut(Extent)) -> Result<(), FormatError> {
        for (number, (_, offset, length)) in (0..).zip(parts) {
            visit(Extent { offset: *offset, length: *length, owner: (PART, number) });
        }
        for (layer, (_, array)) in (0u32..).zip(&self.arrays) {
            let mut number = 0;
            array.table.visit_pages(&mut |offset, length| {
                visit(Extent { offset, length, owner: (PAGES + layer, number) });
                number += 1;
            })?;
            visit_written(array, |chunk| {
                match array.table.record(chunk, Blocking::Yes) {
                    Ok(record) if record.metadata.content() == Content::Stored => {
                        let length = record.length.unwrap_or(0);
                        visit(Extent { offset: record.offset, length, owner: (layer, chunk) });
                    }
                    // reading the chunk reports it
                    Ok(_) | Err(FormatError::Damaged(_) | FormatError::DamagedObject(_)) => {}
                    Err(error) => return Err(error),
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the layer, the level and the brick that an extent belongs to; `None` for a part or an index page.
    fn brick_of(&self, extent: &Extent) -> Option<(&str, usize, Dims)> {
        let (layer, array) = self.arrays.get(extent.owner.0 as usize)?;
        Some((layer, array.info.lod, array.grid.position_of(extent.owner.1)))
    }

    fn name_of(&self, parts: &[Part], extent: &Extent) -> String {
        let (owner, number) = extent.owner;
        let array = self.arrays.get((owner % PAGES) as usize).map(|(_, array)| &array.name);
        match array {
            _ if owner == PART => parts.get(number as usize).map_or_else(String::new, |(name, ..)| name.clone()),
            Some(name) if owner >= PAGES => format!("index page {number} of {name}"),
            Some(name) => format!("chunk {number} of {name}"),
            None => String::new(),
        }
    }
}

/// Calls `visit` for each chunk that may have been written.
fn visit_written(array: &VdsArray, mut visit: impl FnMut(u64) -> Result<(), FormatError>) -> Result<(), FormatError> {
    array.visit_runs(|mut run| run.try_for_each(&mut visit).map(|()| true))
}

/// Notes that a level has another number of written chunks than it says. Only of tables that are cheap to read.
fn written_chunks(array: &VdsArray) -> Result<Option<String>, FormatError> {
    let (Some(stated), Some(_)) = (array.valid, array.table.cost()) else { return Ok(None) };
    let mut written = 0;
    let counted = visit_written(array, |chunk| {
        written += u64::from(array.table.record(chunk, Blocking::Yes)?.metadata.content() != Content::Unwritten);
        Ok(())
    });
    match counted {
        Ok(()) if written != stated => Ok(Some(format!("{written} chunks are written, but its table says {stated}"))),
        Ok(()) | Err(FormatError::Damaged(_) | FormatError::DamagedObject(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
