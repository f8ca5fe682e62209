//! What a VDS says of itself, however it is written down: axes, channels, how they are cut, and metadata.

mod check;
mod fields;
mod json;
#[cfg(test)]
mod mutations;
mod object;
mod object_fields;
mod object_text;
#[cfg(test)]
pub mod samples;

#[cfg(test)]
pub use check::tests::sound;

pub use check::check_values;
pub use json::parse as of_json;
pub use object::parse as of_object;

use serde_json::Value;

use crate::volume::Dtype;

/// Longer descriptions are not read, whichever kind: the largest things in them are BLOBs of some numbers for each trace of
/// a line.
pub const LONGEST: u64 = 32 << 20;
/// Stored layers of a dataset, and channels: there are tens of them, and each takes some 8 KiB once it is open.
pub const MOST_LAYERS: usize = 1 << 13;
/// Axes that a VDS can have.
pub const MOST_AXES: usize = 6;

/// The whole description. Checked: what is in one is within the bounds of section 1.4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    pub layout: Layout,
    /// Dimension 0, which varies fastest, first; 2 to 6 of them.
    pub axes: Vec<Axis>,
    /// The primary channel first; at least one.
    pub channels: Vec<Channel>,
    pub metadata: Vec<Entry>,
    /// What a reader of the dataset should know.
    pub warnings: Vec<String>,
}

/// How all channels are cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Samples of a chunk along each dimension that it is cut along, with both margins: 32 to 4096, a power of two.
    pub brick: u64,
    /// Samples that a chunk holds of its neighbour before it; less than half a brick.
    pub negative_margin: u64,
    /// Samples that a chunk holds of its neighbour behind it; less than half a brick.
    pub positive_margin: u64,
    /// Chunks that are cut along two dimensions are longer by this factor; brick x multiplier is at most 4096.
    pub multiplier_2d: u64,
    /// The coarsest LOD: 0 to 12.
    pub lods: u32,
    /// Whether chunks that are cut along two dimensions have LODs, too.
    pub lods_2d: bool,
    /// The dimension that no LOD has fewer samples along.
    pub full_resolution: Option<usize>,
}

/// One dimension.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    pub name: String,
    pub unit: String,
    /// Samples at LOD 0: 1 to 2^31 - 1.
    pub samples: u64,
    /// Annotation of the first sample.
    pub min: f32,
    /// Annotation of the last sample.
    pub max: f32,
}

/// The type of the samples of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Single bits, packed along the lowest dimension of a chunk.
    Bit,
    U8,
    U16,
    #[default]
    R32,
    U32,
    R64,
    U64,
}

impl Format {
    /// The number that stands for it in the header of a chunk (section 4.1).
    pub fn code(self) -> i32 {
        match self {
            Self::Bit => 0,
            Self::U8 => 1,
            Self::U16 => 2,
            Self::R32 => 3,
            Self::U32 => 4,
            Self::R64 => 5,
            Self::U64 => 6,
        }
    }

    /// Its name in JSON, behind `Format_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bit => "1Bit",
            Self::U8 => "U8",
            Self::U16 => "U16",
            Self::R32 => "R32",
            Self::U32 => "U32",
            Self::R64 => "R64",
            Self::U64 => "U64",
        }
    }

    /// The format of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Bit, Self::U8, Self::U16, Self::R32, Self::U32, Self::R64, Self::U64]
            .into_iter()
            .find(|f| f.name() == name)
    }

    /// The type that its samples are shown as: bits are a byte each.
    pub fn dtype(self) -> Dtype {
        match self {
            Self::Bit | Self::U8 => Dtype::UInt8,
            Self::U16 => Dtype::UInt16,
            Self::R32 => Dtype::Float32,
            Self::U32 => Dtype::UInt32,
            Self::R64 => Dtype::Float64,
            Self::U64 => Dtype::UInt64,
        }
    }
}

/// One channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    pub name: String,
    pub unit: String,
    pub format: Format,
    /// Values of a sample: 1, 2 or 4.
    pub components: u64,
    /// Least and greatest value.
    pub value_range: [f32; 2],
    /// For channels with values for each trace: how many of them there are in place of dimension 0. At least 1.
    pub per_trace: Option<u64>,
    /// Values are names of things, not amounts.
    pub discrete: bool,
    /// LODs other than 0 may exist.
    pub renderable: bool,
    pub lossy_allowed: bool,
    /// The value of samples that are not there.
    pub no_value: Option<f32>,
    /// U8 and U16: value = stored x scale + offset.
    pub integer_scale: f32,
    pub integer_offset: f32,
}

/// One metadata entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub category: String,
    pub name: String,
    pub value: Datum,
}

/// The value of a metadata entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// `Int`, or a vector of 2 to 4.
    Int(Vec<i32>),
    /// `Float`, or a vector of 2 to 4.
    Float(Vec<f32>),
    /// `Double`, or a vector of 2 to 4.
    Double(Vec<f64>),
    Text(String),
    Blob(Vec<u8>),
    /// Of a type that is not known, as JSON has it.
    Other(String, Value),
}

impl Description {
    /// The metadata entry of a category and a name, whatever its type.
    pub fn entry(&self, category: &str, name: &str) -> Option<&Datum> {
        self.metadata.iter().find(|e| e.category == category && e.name == name).map(|e| &e.value)
    }
}
