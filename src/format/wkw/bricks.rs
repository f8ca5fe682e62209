//! One mag of a layer as an array: maps each brick to a block of a data file ("cube"), and decodes it.

use std::sync::Arc;

use super::cubes::{BlockLocation, Cube, Cubes, morton};
use super::files::visit_cubes;
use super::header::BlockType;
use super::properties::Extent;
use crate::codec::lz4;
use crate::format::{Array, Census, FormatError};
use crate::source::{Blocking, IndexCache, Source};
use crate::volume::{
    ArrayInfo, Brick, BrickGrid, BrickSet, Coded, Dims, Element, Layout, MAX_AXES, Plain, Region, StoredLength,
};

/// A box of one mag. Its axes are z, y, x, and the channel where there are several.
pub(super) struct WkwArray {
    info: ArrayInfo,
    pub(super) cubes: Arc<Cubes>,
    /// The box in voxels of the mag, x, y, z.
    pub(super) extent: Extent,
    /// The first number of keys of the index cache. Each array has another, since boxes number their cubes differently.
    table_id: u64,
    /// The layout of a block at the beginning of the box, if all of it lies in the box.
    whole: Layout,
}

/// Returns the brick grid and the brick shape of the box `extent` of a mag; `None` if the box is empty or has 2^63
/// bytes or more.
pub(super) fn grid(cubes: &Cubes, extent: &Extent) -> Option<(BrickGrid, Dims)> {
    let (header, [x, y, z]) = (&cubes.header, extent.size());
    let (block, channels) = (header.block_len(), header.channels());
    let axes = if channels > 1 { 4 } else { 3 };
    let first_axes = |all: [u64; 4]| Dims::from_slice(&all[..axes]);
    let (shape, brick) = (first_axes([z, y, x, channels])?, first_axes([block, block, block, channels])?);
    let bytes = shape.product()?.checked_mul(header.dtype.size() as u64)?;
    if bytes == 0 || bytes > i64::MAX as u64 {
        return None;
    }
    // blocks begin at multiples of their side in the mag, not in the box
    let mut origin = [0; MAX_AXES];
    for (axis, at) in [2, 1, 0].into_iter().enumerate() {
        origin[axis] = -i64::try_from(extent.low[at] % block).ok()?;
    }
    Some((BrickGrid::new(shape, origin, brick), brick))
}

impl WkwArray {
    pub(super) fn new(info: ArrayInfo, cubes: Arc<Cubes>, extent: Extent) -> Self {
        let (header, axes) = (&cubes.header, info.axes.len());
        let side = header.block_len();
        let block = [side, side, side, header.channels()];
        // in the file x comes before y before z, and the channels of a voxel stand together
        let voxel = u64::from(header.voxel);
        let strides = [voxel * side * side, voxel * side, voxel, header.dtype.size() as u64];
        let whole = Layout {
            held: Region::whole(Dims::from_fn(axes, |axis| block[axis])),
            first: 0,
            strides: Dims::from_fn(axes, |axis| strides[axis]),
        };
        Self { info, cubes, extent, table_id: IndexCache::new_id(), whole }
    }

    /// Returns the first and the last cube that have voxels of the box, along x, y, z.
    pub(super) fn cubes_of_box(&self) -> [[u64; 3]; 2] {
        let side = self.cubes.header.cube_len();
        [self.extent.low.map(|low| low / side), self.extent.high.map(|high| high.saturating_sub(1) / side)]
    }

    /// Returns whether a block, given by its x, y, z among all blocks of the mag, has voxels of the box.
    pub(super) fn has_block(&self, block: [u64; 3]) -> bool {
        let log = self.cubes.header.block_log;
        (0..3).all(|a| {
            let last = self.extent.high[a].saturating_sub(1) >> log;
            (self.extent.low[a] >> log..=last).contains(&block[a])
        })
    }

    /// Returns the bricks of the box that lie in a cube.
    fn bricks_of(&self, cube: [u64; 3]) -> BrickSet {
        let (header, count) = (&self.cubes.header, self.info.grid.count());
        let mut region = Region::whole(count);
        for (axis, a) in [(2, 0), (1, 1), (0, 2)] {
            let first = self.extent.low[a] >> header.block_log;
            let begin = cube[a] << header.file_log;
            let low = begin.max(first) - first;
            region.start[axis] = low;
            region.shape[axis] = (begin + header.file_len()).saturating_sub(first).min(count[axis]).saturating_sub(low);
        }
        BrickSet::Box(region)
    }

    /// Returns the block of a brick: its x, y, z among all blocks of the mag.
    fn block(&self, at: &Dims) -> Option<[u64; 3]> {
        let count = self.info.grid.count();
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return None;
        }
        let first = self.extent.low.map(|low| low >> self.cubes.header.block_log);
        Some([first[0] + at[2], first[1] + at[1], first[2] + at[0]])
    }

    /// Returns the cube that a block is in, and the block's number in it.
    fn cube(&self, block: [u64; 3]) -> (Cube, u64) {
        let header = &self.cubes.header;
        let at = block.map(|n| n >> header.file_log);
        let within = block.map(|n| n & (header.file_len() - 1));
        let [first, last] = self.cubes_of_box();
        // the number of bricks fits, and there are fewer cubes
        let number = [2, 1, 0]
            .into_iter()
            .fold(0u64, |number, a| number.wrapping_mul(last[a] - first[a] + 1).wrapping_add(at[a] - first[a]));
        (Cube { at, table_id: self.table_id, number }, morton(within))
    }

    /// Returns the layout of the part of a block that lies in the box.
    fn layout(&self, block: [u64; 3]) -> Layout {
        let (header, extent, mut layout) = (&self.cubes.header, &self.extent, self.whole);
        for (axis, a) in [(2, 0), (1, 1), (0, 2)] {
            let begin = block[a] << header.block_log;
            let low = begin.max(extent.low[a]);
            layout.held.start[axis] = low - extent.low[a];
            layout.held.shape[axis] = begin.saturating_add(header.block_len()).min(extent.high[a]) - low;
            layout.first += (low - begin) * layout.strides[axis];
        }
        layout
    }
}

impl Array for WkwArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.cubes.folder
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let block = self.block(at).ok_or_else(|| format!("there is no brick {at:?}"))?;
        let (cube, number) = self.cube(block);
        let (location, object) = self.cubes.block(cube, number, blocking)?;
        Ok(match location {
            BlockLocation::Zero => Brick::Constant(Element::zero(self.info.dtype.size())),
            BlockLocation::Raw(offset) => Brick::Plain(Plain { object, offset, layout: self.layout(block) }),
            BlockLocation::Lz4(offset, length) => Brick::Coded(Coded {
                object,
                offset,
                length: StoredLength::Bytes(length),
                decoded: self.cubes.header.block_bytes() as usize, // below 2^31
                scratch: 0,
                layout: self.layout(block),
                codec: number,
            }),
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let damaged = |e| FormatError::Damaged(format!("block {} of {}: {e}", coded.codec, &*coded.object));
        lz4::decode(stored, out).map_err(damaged)
    }

    fn decodes_fast(&self) -> bool {
        true
    }

    fn decoded_shape(&self, _at: &Dims) -> Option<Dims> {
        let header = &self.cubes.header;
        (header.blocks != BlockType::Raw).then_some(self.info.brick_shape)
    }

    fn visit_stored(&self, visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        // a large box may have few cubes: the names of files tell which exist
        let folder = &self.cubes.folder;
        if !folder.list("", &mut |_, _| false)? {
            // no names are told, as by a web server
            visit(BrickSet::Run(0..self.info.grid.total()));
            return Ok(());
        }
        let [low, high] = self.cubes_of_box();
        Ok(visit_cubes(&**folder, low, high, &mut |at, _| Ok(visit(self.bricks_of(at))))?)
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        // counting the bricks would need to open all files
        Ok(None)
    }
}
