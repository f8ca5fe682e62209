//! ZGY: seismic surveys in bricks, versions 1 to 4, with several levels of detail.
//!
//! [`header`] finds the parts of the header and has them checked in a fixed order, [`levels`] knows where the entry of a
//! brick stands, [`table`] what it says, and [`array`] makes a brick of it. Nothing is allocated by the word of the file
//! alone: every number is compared with the file's length first.
//!
//! The sections that comments name are those of the description of the format.

mod array;
mod describe;
mod geometry;
#[cfg(test)]
mod handmade;
mod header;
mod info;
mod levels;
mod sample_type;
mod subtile;
mod swapped;
mod table;
#[cfg(test)]
mod tests;
mod units;

use std::sync::Arc;

use super::{Array, Dataset, Format, FormatError, Layer, OpenWith};
use crate::source::{IndexCache, Source};
use crate::volume::{DatasetInfo, NativeJson};
use array::{Bricks, ZgyArray};
use describe::Facts;
use header::Header;
use sample_type::CodingRange;
use table::Table;

/// The format.
pub struct Zgy;

impl Format for Zgy {
    fn name(&self) -> &'static str {
        "zgy"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("zgy")
    }

    fn is_file(&self, head: &[u8]) -> bool {
        // the old one, too: so that it is refused with a word on what it is
        head.starts_with(&header::MAGIC) || head.starts_with(&header::OLD_MAGIC)
    }

    fn open(&self, source: Arc<dyn Source>, with: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        Ok(Box::new(Survey::open(source, Arc::clone(&with.index))?))
    }
}

/// An open file.
struct Survey {
    info: DatasetInfo,
    layers: Vec<Layer>,
}

impl Survey {
    fn open(source: Arc<dyn Source>, cache: Arc<IndexCache>) -> Result<Self, FormatError> {
        let header = Header::read(&*source)?;
        let info = &header.info;
        let place = (header.table, header.levels.entries);
        let table = Table::new(Arc::clone(&source), cache, place, header.version, header.file);
        let usable = table.usable(&header.levels.all)?;

        let range = CodingRange::new(info.dtype, info.coding_range);
        let default = range.map_or(0, |range| range.default(info.dtype));
        let facts = Facts { header: &header, range, default, usable };
        let bytes = info.brick.iter().product::<u64>() as usize * info.dtype.size(); // 2 GiB at most
        let bricks = Arc::new(Bricks {
            source,
            table,
            shape: info.brick,
            bytes,
            dtype: info.dtype,
            default,
            subtiled: header.version == 1,
        });
        let levels = header.levels.all.iter().enumerate().take(usable).map(|(lod, level)| {
            let array = ZgyArray::new(facts.array(lod, level), *level, Arc::clone(&bricks));
            Arc::new(array) as Arc<dyn Array>
        });
        let layers = vec![Layer { name: "data".into(), levels: levels.collect(), native: NativeJson::new() }];
        Ok(Self { info: facts.dataset(), layers })
    }
}

impl Dataset for Survey {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }
}
