//! The filters of chunks as codecs.

use serde_json::{Map, Value, json};

use super::data_type::How;
use super::message::Filter;
use crate::codec::{Codec, Finish, Pipeline, codec};

/// The filters of a dataset, in the order of writing.
#[derive(Default)]
pub(super) struct Filters {
    list: Vec<Filter>,
    /// Bytes of a stored sample.
    sample: usize,
    longest: u64,
    /// A bit for each filter that is not supported.
    unsupported: u32,
}

impl Filters {
    pub(super) fn new(list: Vec<Filter>, sample: usize, chunk: u64) -> Self {
        let mut filters = Self { list, sample, longest: chunk, unsupported: 0 };
        let (mut longest, mut unsupported) = (chunk, 0);
        for (number, filter) in filters.list.iter().enumerate() {
            match filters.codec(filter) {
                // a chunk that was stored without some filters is not longer than this, either
                Ok(codec) => longest = codec.longest(longest).max(longest),
                Err(_) => unsupported |= 1 << number,
            }
        }
        (filters.longest, filters.unsupported) = (longest, unsupported);
        filters
    }

    /// The most bytes of a stored chunk.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns whether a chunk with this mask was stored without filters.
    pub(super) fn are_left_out(&self, mask: u32) -> bool {
        (0..self.list.len()).all(|number| mask >> number & 1 == 1)
    }

    /// Returns the first filter that a mask leaves and that is not supported, as a reason.
    pub(super) fn unsupported(&self, mask: u32) -> Option<String> {
        let left = self.unsupported & !mask;
        self.codec(self.list.get(left.trailing_zeros() as usize)?).err()
    }

    /// Returns the mask of a chunk without any filter that is not supported, where writers may leave those out.
    pub(super) fn optional(&self) -> Option<u32> {
        let optional = |(number, filter): (usize, &Filter)| self.unsupported >> number & 1 == 0 || filter.is_optional;
        self.list.iter().enumerate().all(optional).then_some(self.unsupported)
    }

    /// Makes what undoes the filters that a mask leaves, for chunks of so many bytes; the error is why not.
    pub(super) fn pipeline(&self, mask: u32, bytes: u64, how: How) -> Result<Pipeline, String> {
        let kept = self.list.iter().enumerate().filter(|(number, _)| mask >> number & 1 == 0);
        let codecs = kept.map(|(_, filter)| self.codec(filter)).collect::<Result<Vec<_>, _>>()?;
        let finish = match how {
            How::Nothing | How::Converted => Finish::Nothing,
            How::Swapped(word) => Finish::Swap(word),
            How::Widened { big_endian } => Finish::WidenHalves { big_endian },
        };
        Pipeline::new(codecs, bytes, finish)
    }

    fn codec(&self, filter: &Filter) -> Result<Box<dyn Codec>, String> {
        let parameter = |number: usize| filter.parameters.get(number).copied();
        let numbers = || Map::from_iter([("parameters".to_owned(), json!(filter.parameters))]);
        let (name, configuration) = match filter.id {
            1 => ("zlib", Map::new()),
            2 => {
                let size = parameter(0).map_or(self.sample, |size| size as usize);
                ("shuffle", Map::from_iter([("elementsize".to_owned(), json!(size))]))
            }
            3 => ("fletcher32", Map::new()),
            4 => ("szip", numbers()),
            5 => ("nbit", numbers()),
            6 => ("scaleoffset", numbers()),
            307 => ("bz2", Map::new()),
            32000 => ("lzf", Map::new()),
            32001 => ("blosc", Map::new()),
            32004 => ("lz4-hdf5", Map::new()),
            32008 => {
                let compressor = match parameter(4).unwrap_or(0) {
                    0 => "none",
                    2 => "lz4",
                    3 => "zstd",
                    other => return Err(format!("its filter bitshuffle has the unknown compressor {other}")),
                };
                let size = parameter(2).map_or(self.sample, |size| size as usize);
                let block = parameter(3).unwrap_or(0);
                let known = [("elementsize", json!(size)), ("blocksize", json!(block)), ("cname", json!(compressor))];
                ("bitshuffle", known.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }
            32015 => ("zstd", Map::new()),
            other => {
                let names = [(32013, "zfp"), (32026, "blosc2"), (32017, "sz"), (32024, "sz3")];
                let known = names.iter().find(|(id, _)| *id == other).map(|(_, name)| *name);
                let name = known.unwrap_or(filter.name.as_str());
                let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
                return Err(format!("its samples have the filter {other}{named}, which is not supported"));
            }
        };
        codec(name, &configuration)
    }

    /// Describes the filters.
    pub(super) fn json(&self) -> Value {
        let of = |filter: &Filter| {
            // those of the library have no names in the file
            let known = self.codec(filter).ok().map(|codec| codec.name().to_owned());
            let name = Some(filter.name.clone()).filter(|name| !name.is_empty()).or(known);
            json!({"id": filter.id, "name": name, "parameters": filter.parameters})
        };
        self.list.iter().map(of).collect()
    }
}
