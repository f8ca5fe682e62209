//! ZGY: bricked seismic surveys with several levels of detail, versions 1 to 4.
//!
//! The format is documented by its open-source implementation, OpenZGY (`open-zgy` of the OSDU Forum). Where its C++
//! and Python libraries and its text on the format differ, comments name the one that is followed.
//!
//! [`header`] finds and checks the parts of the header, [`table`] reads the entry of a brick, and [`bricks`] makes a
//! brick of it. [`check`] looks for faults of the whole table. Every size that a file announces is compared with the
//! file's length before memory is allocated for it.

mod bricks;
mod check;
mod describe;
mod header;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use bricks::{Bricks, ZgyArray};
use header::Header;
use table::Table;

use super::{Array, Dataset, Finding, Format, FormatError, Layer, OpenWith};
use crate::source::Source;
use crate::volume::{DatasetInfo, NativeJson};

pub(crate) struct Zgy;

impl Format for Zgy {
    fn name(&self) -> &'static str {
        "zgy"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zgy"]
    }

    fn is_file(&self, head: &[u8]) -> bool {
        // also the predecessor, so that opening it fails with an error that names it
        head.starts_with(&header::MAGIC) || head.starts_with(&header::OLD_MAGIC)
    }

    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let header = Header::read(&*source)?;
        let info = &header.info;
        let position = (header.table, header.levels.entries);
        let new_table = |position| {
            Table::new(Arc::clone(&source), Arc::clone(&with.index), position, header.version, header.file_bytes)
        };
        let (table, alpha) = (new_table(position), new_table((header.alpha, header.levels.alpha_entries)));
        let usable = table.usable(&header.levels.all)?;

        let bytes = info.brick.iter().product::<u64>() as usize * info.dtype.size(); // 2 GiB at most
        let bricks = Arc::new(Bricks {
            source: Arc::clone(&source),
            table,
            shape: info.brick,
            bytes,
            dtype: info.dtype,
            default: header.default(),
            subtiled: header.version == 1,
        });
        let levels = header.levels.all.iter().enumerate().take(usable).map(|(lod, level)| {
            let (info, census) = (header.array(lod, level), OnceLock::new());
            Arc::new(ZgyArray { info, level: *level, bricks: Arc::clone(&bricks), census }) as Arc<dyn Array>
        });
        let layers = vec![Layer { name: check::LAYER.into(), levels: levels.collect(), native: NativeJson::new() }];
        let info = header.dataset(usable);
        let levels = header.levels.all.into_iter().take(usable).collect();
        let checked = check::Checked { bricks, levels, alpha, parts: header.parts };
        Ok(Box::new(Survey { info, layers, checked }))
    }
}

struct Survey {
    info: DatasetInfo,
    layers: Vec<Layer>,
    checked: check::Checked,
}

impl Dataset for Survey {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn check_structure(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        self.checked.check(report)
    }
}
