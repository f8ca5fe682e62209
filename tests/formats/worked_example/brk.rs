//! BRK: bricks of samples behind a header of 16 bytes.

use std::sync::Arc;

use crate::format::{Array, Census, Dataset, Format, FormatError, Layer, OpenWith};
use crate::source::{Blocking, Source, WHOLE};
use crate::volume::{
    ArrayInfo, Axis, Brick, BrickCounts, BrickGrid, DatasetInfo, Dims, Dtype, Layout, NativeJson, Plain,
};

const MAGIC: [u8; 4] = *b"BRK1";
/// Magic, extent along z, y and x, edge of a brick, bytes of a sample (1 or 2, unsigned); all numbers little-endian.
const HEADER: usize = 16;

/// The format.
pub struct Brk;

impl Format for Brk {
    fn name(&self) -> &'static str {
        "brk"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["brk"]
    }

    fn is_file(&self, head: &[u8]) -> bool {
        head.starts_with(&MAGIC)
    }

    fn open(&self, source: Arc<dyn Source>, _: &OpenWith) -> Result<Box<dyn Dataset>, FormatError> {
        let array: Arc<dyn Array> = Arc::new(BrkArray::open(source)?);
        let layers = vec![Layer { name: "data".into(), levels: vec![array], native: NativeJson::new() }];
        Ok(Box::new(BrkDataset { info: DatasetInfo { version: "1".into(), ..DatasetInfo::default() }, layers }))
    }
}

struct BrkDataset {
    info: DatasetInfo,
    layers: Vec<Layer>,
}

impl Dataset for BrkDataset {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

/// The samples: bricks in C order behind the header, each stored whole, samples of a brick in C order.
struct BrkArray {
    source: Arc<dyn Source>,
    info: ArrayInfo,
}

impl BrkArray {
    fn open(source: Arc<dyn Source>) -> Result<Self, FormatError> {
        let damaged = |what: &str| FormatError::Damaged(what.into());
        let length = source.len(WHOLE)?.ok_or_else(|| damaged("there is no file"))?;
        if length < HEADER as u64 {
            return Err(damaged("the file is shorter than its header"));
        }
        let mut header = [0; HEADER];
        source.read_at(WHOLE, 0, &mut header, Blocking::Yes)?;
        let number = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (shape, edge) = (Dims::from([number(4), number(6), number(8)]), number(10));
        let dtype = match number(12) {
            1 => Dtype::UInt8,
            2 => Dtype::UInt16,
            other => return Err(FormatError::Unsupported(format!("samples of {other} bytes"))),
        };
        if edge == 0 || shape.contains(&0) {
            return Err(damaged("the volume has no samples"));
        }
        // every number is checked against the file's length before anything rests on it
        let brick = Dims::filled(3, edge);
        let mut info = ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick);
        let stored =
            edge.pow(3).checked_mul(dtype.size() as u64).and_then(|bytes| bytes.checked_mul(info.grid.total()));
        if stored.is_none_or(|stored| stored > length - HEADER as u64) {
            return Err(damaged("the file is shorter than its bricks"));
        }
        info.axes = ["z", "y", "x"].iter().zip(shape.iter()).map(|(name, count)| axis(name, *count)).collect();
        info.codec = Some("raw");
        Ok(Self { source, info })
    }
}

fn axis(name: &str, count: u64) -> Axis {
    Axis { name: name.into(), unit: None, first: 0.0, step: 1.0, count, spatial: true }
}

impl Array for BrkArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        let (grid, shape) = (&self.info.grid, self.info.brick_shape);
        let bytes = shape.iter().product::<u64>() * self.info.dtype.size() as u64;
        // bricks at the edge are stored whole: the layout says which of their samples belong to the array
        let start = Dims::from_fn(3, |a| at[a] * shape[a]);
        let layout = Layout::c_order(start, shape, self.info.shape(), self.info.dtype.size());
        let offset = HEADER as u64 + grid.count().linear_of(at) * bytes;
        Ok(Brick::Plain(Plain { object: WHOLE.into(), offset, layout }))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        let total = self.info.grid.total();
        let counts = BrickCounts { total, stored: total, ..BrickCounts::default() };
        Ok(Some(Census { counts, codec: "raw", native: NativeJson::new() }))
    }
}
