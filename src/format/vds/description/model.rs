//! The description of a VDS, independent of its syntax: axes, channels, how they are divided into chunks, and metadata.

use serde_json::Value;

use crate::volume::Dtype;

/// The longest description that is read, in bytes. The largest values are BLOBs with a few numbers for each trace of
/// a line.
pub(crate) const MAX_DESCRIPTION_BYTES: u64 = 32 << 20;
/// The most stored layers and channels of a dataset. Real ones have tens; each takes some 8 KiB of memory once it is
/// open.
pub(crate) const MAX_LAYERS: usize = 1 << 13;
/// The most axes of a VDS.
pub(crate) const MAX_DIMENSIONS: usize = 6;

/// The description of a dataset. All values are within the bounds that are given here, and that
/// [`Description::checked`] has checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Description {
    pub layout: LayoutDescriptor,
    /// 2 to 6 axes, dimension 0 (the fastest) first.
    pub axes: Vec<AxisDescriptor>,
    /// At least one channel, the primary one first.
    pub channels: Vec<Channel>,
    pub metadata: Vec<MetadataEntry>,
    /// Problems that users of the data should know of.
    pub warnings: Vec<String>,
}

/// How channels are divided into chunks (`layoutDescriptor` in JSON).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutDescriptor {
    /// Samples of a chunk along each of its dimensions, both margins included: 32 to 4096, a power of two.
    pub brick: u64,
    /// Samples that a chunk repeats of the chunk before it; less than half a brick.
    pub negative_margin: u64,
    /// Samples that a chunk repeats of the chunk after it; less than half a brick.
    pub positive_margin: u64,
    /// Chunks of two dimensions are longer by this factor; brick * multiplier is at most 4096.
    pub multiplier_2d: u64,
    /// The coarsest LOD: 0 to 12.
    pub lods: u32,
    /// Whether chunks of two dimensions have LODs, too.
    pub lods_2d: bool,
    /// The dimension that keeps all samples at every LOD.
    pub full_resolution: Option<usize>,
}

/// One dimension.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AxisDescriptor {
    pub name: String,
    pub unit: String,
    /// Samples at LOD 0: 1 to 2^31 - 1.
    pub samples: u64,
    /// Annotation of the first sample.
    pub min: f32,
    /// Annotation of the last sample.
    pub max: f32,
}

impl AxisDescriptor {
    /// Returns the difference of the annotation between neighbouring samples of LOD 0; 1 if there is a single sample.
    pub(crate) fn step(&self) -> f64 {
        match self.samples {
            0 | 1 => 1.0,
            n => (f64::from(self.max) - f64::from(self.min)) / (n - 1) as f64,
        }
    }

    /// Returns the unit; `None` if there is none.
    pub(crate) fn unit(&self) -> Option<&str> {
        Some(self.unit.as_str()).filter(|unit| !unit.is_empty() && *unit != "unitless")
    }
}

/// The type of the samples of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SampleFormat {
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

impl SampleFormat {
    /// Returns the code of the format in the header of a chunk.
    pub(crate) fn code(self) -> i32 {
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

    /// Returns the name in JSON, without `Format_`.
    pub(crate) fn name(self) -> &'static str {
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

    /// Returns the format with a name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Bit, Self::U8, Self::U16, Self::R32, Self::U32, Self::R64, Self::U64]
            .into_iter()
            .find(|f| f.name() == name)
    }

    /// Returns the type of the samples in the array: single bits become a byte each.
    pub(crate) fn dtype(self) -> Dtype {
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
pub(crate) struct Channel {
    pub name: String,
    pub unit: String,
    pub format: SampleFormat,
    /// Components of a sample: 1, 2 or 4.
    pub components: u64,
    /// Least and greatest value.
    pub value_range: [f32; 2],
    /// For a channel with values for each trace: their number, which replaces the samples of dimension 0. At least 1.
    pub per_trace: Option<u64>,
    /// Values are identifiers and cannot be interpolated.
    pub discrete: bool,
    /// LODs other than 0 may exist.
    pub renderable: bool,
    pub lossy_allowed: bool,
    /// The value of missing samples.
    pub no_value: Option<f32>,
    /// U8 and U16: value = stored * scale + offset.
    pub integer_scale: f32,
    pub integer_offset: f32,
}

/// One metadata entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetadataEntry {
    pub category: String,
    pub name: String,
    pub value: MetadataValue,
}

/// The value of a metadata entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataValue {
    /// `Int`, or a vector of 2 to 4.
    Int(Vec<i32>),
    /// `Float`, or a vector of 2 to 4.
    Float(Vec<f32>),
    /// `Double`, or a vector of 2 to 4.
    Double(Vec<f64>),
    Text(String),
    Blob(Vec<u8>),
    /// An unknown type: its name, and the value as JSON.
    Other(String, Value),
}

impl Description {
    /// Returns the value of the metadata entry with this category and name.
    pub(crate) fn entry(&self, category: &str, name: &str) -> Option<&MetadataValue> {
        self.metadata.iter().find(|e| e.category == category && e.name == name).map(|e| &e.value)
    }
}
