//! Checks the tables of a container as a whole: chunks that overlap each other or the tables, and the number of
//! chunks that were written.

use std::sync::Arc;

use super::bricks::VdsArray;
use super::store::Content;
use crate::format::extents::{Extent, Overlap, Owner, Part, find_overlaps};
use crate::format::{Array, Finding, FormatError};
use crate::source::Blocking;

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
        let array = |number: u32| &self.arrays[number as usize];
        let describe = |owner| match owner {
            Owner::Brick(layer, chunk) => {
                let (name, array) = array(layer);
                let brick = (name.as_str(), array.info.lod, array.grid.position_of(chunk));
                (format!("chunk {chunk} of {}", array.name), Some(brick))
            }
            Owner::Page(layer, page) => (format!("index page {page} of {}", array(layer).1.name), None),
            Owner::Part(number) => (parts[number as usize].0.to_string(), None),
        };
        let found = |overlap: Overlap| match (overlap.first.owner, overlap.second.owner) {
            (Owner::Brick(..), Owner::Brick(..)) if overlap.is_shared() => shared += 1,
            _ => report(overlap.finding("chunk", describe)),
        };
        find_overlaps(parts, |visit| self.visit_chunks(visit), found)?;
        if shared > 0 {
            report(Finding::note(format!("{shared} chunks are stored at the place of another one")));
        }
        Ok(())
    }

    /// Visits the places of all chunks and index pages.
    fn visit_chunks(&self, visit: &mut dyn FnMut(Extent)) -> Result<(), FormatError> {
        for (layer, (_, array)) in (0u32..).zip(&self.arrays) {
            let mut number = 0;
            array.stored.table.visit_pages(&mut |offset, length| {
                visit(Extent { offset, length, owner: Owner::Page(layer, number) });
                number += 1;
            })?;
            visit_written(array, |chunk| {
                match array.stored.table.record(chunk, Blocking::Yes) {
                    Ok(record) if record.metadata.content() == Content::Stored => {
                        let length = record.length.unwrap_or(0);
                        visit(Extent { offset: record.offset, length, owner: Owner::Brick(layer, chunk) });
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
}

/// Calls `visit` for each chunk that may have been written.
fn visit_written(array: &VdsArray, mut visit: impl FnMut(u64) -> Result<(), FormatError>) -> Result<(), FormatError> {
    array.visit_runs(|mut run| run.try_for_each(&mut visit).map(|()| true))
}

/// Notes that a level has another number of written chunks than it says. Only of tables that are cheap to read.
fn written_chunks(array: &VdsArray) -> Result<Option<String>, FormatError> {
    let (Some(stated), Some(_)) = (array.stored.valid, array.stored.table.cost()) else { return Ok(None) };
    let mut written = 0;
    let counted = visit_written(array, |chunk| {
        written += u64::from(array.stored.table.record(chunk, Blocking::Yes)?.metadata.content() != Content::Unwritten);
        Ok(())
    });
    match counted {
        Ok(()) if written != stated => Ok(Some(format!("{written} chunks are written, but its table says {stated}"))),
        Ok(()) | Err(FormatError::Damaged(_) | FormatError::DamagedObject(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
