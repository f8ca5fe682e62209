//! The codecs of an array: from its metadata to a pipeline, the order of samples in a chunk, and the shards around it.

use serde_json::{Map, Value};

use super::data_type::DataType;
use crate::codec::{Codec, Finish, Pipeline, SwapBytes, codec};
use crate::format::bytes::whole;
use crate::format::chunked::{Chain, Shards};
use crate::volume::Dims;

/// The most levels of shards in shards.
const MAX_SHARD_LEVELS: usize = 4;

/// Codecs while they are read, in the order of encoding.
struct Compiling<'a> {
    data_type: &'a mut DataType,
    shards: Vec<Shards>,
    chunk: Dims,
    order: Vec<usize>,
    codecs: Vec<Box<dyn Codec>>,
    finish: Finish,
}

/// Returns the chain of version 2: filters, then a compressor.
pub(super) fn of_version_2(
    metadata: &Map<String, Value>,
    data_type: &mut DataType,
    chunk: Dims,
) -> Result<Chain, String> {
    let mut order: Vec<usize> = (0..chunk.len()).collect();
    match metadata.get("order").and_then(Value::as_str) {
        Some("F") => order.reverse(),
        Some("C") | None => {}
        Some(other) => return Err(format!("its order is {other:?}, which is not known")),
    }
    let finish = finish(data_type);
    let mut compiling = Compiling { data_type, shards: Vec::new(), chunk, order, codecs: Vec::new(), finish };
    let filters = metadata.get("filters").and_then(Value::as_array).into_iter().flatten();
    for configuration in filters.chain(metadata.get("compressor").filter(|codec| !codec.is_null())) {
        let mut known = configuration.as_object().cloned().unwrap_or_default();
        let name = known.remove("id").and_then(|id| id.as_str().map(str::to_owned));
        compiling.codecs.push(codec(&name.ok_or_else(|| format!("{configuration} is no codec"))?, &known)?);
    }
    compiling.finish()
}

/// Returns the chain of version 3. Without a list of codecs, which only old versions of the format allow, samples are
/// stored as they are.
pub(super) fn of_version_3(codecs: Option<&Value>, data_type: &mut DataType, chunk: Dims) -> Result<Chain, String> {
    let order = (0..chunk.len()).collect();
    let finish = finish(data_type);
    let mut compiling = Compiling { data_type, shards: Vec::new(), chunk, order, codecs: Vec::new(), finish };
    match codecs {
        None => {}
        Some(Value::Array(list)) => compiling.list(list)?,
        Some(other) => return Err(format!("{other} is no list of codecs")),
    }
    compiling.finish()
}

fn finish(data_type: &DataType) -> Finish {
    match (data_type.is_bfloat16(), data_type.big_endian && data_type.word() > 1) {
        (true, big_endian) => Finish::WidenHalves { big_endian },
        (false, true) => Finish::Swap(data_type.word()),
        (false, false) => Finish::Nothing,
    }
}

/// Returns the name and the configuration of an entry of version 3; `None` if it is neither.
fn named(entry: &Value) -> Option<(&str, Map<String, Value>)> {
    if let Some(name) = entry.as_str() {
        return Some((name, Map::new()));
    }
    let configuration = entry.get("configuration").and_then(Value::as_object);
    Some((entry.get("name")?.as_str()?, configuration.cloned().unwrap_or_default()))
}

/// Returns a shape in JSON: whole numbers of at least 1 for each of `axes` axes.
pub(super) fn shape(value: Option<&Value>, axes: usize) -> Option<Dims> {
    let numbers: Option<Vec<u64>> =
        value?.as_array()?.iter().map(|n| u64::try_from(whole(n)?).ok().filter(|n| *n > 0)).collect();
    Dims::from_slice(&numbers?).filter(|shape| shape.len() == axes)
}

impl Compiling<'_> {
    fn list(&mut self, list: &[Value]) -> Result<(), String> {
        for (number, entry) in list.iter().enumerate() {
            let (name, configuration) = named(entry).ok_or_else(|| format!("{entry} is no codec"))?;
            match name {
                "transpose" => self.transpose(configuration.get("order"))?,
                // `endian` before the format was settled
                "bytes" | "endian" => self.bytes(configuration.get("endian"))?,
                "sharding_indexed" => {
                    if number + 1 != list.len() || !self.codecs.is_empty() {
                        return Err("codecs around its shards are not supported".into());
                    }
                    return self.sharding(&configuration);
                }
                _ => self.codecs.push(codec(name, &configuration)?),
            }
        }
        Ok(())
    }

    fn transpose(&mut self, order: Option<&Value>) -> Result<(), String> {
        let axes = self.order.len();
        // the samples of a filter stand in the order before the transposition, and those in memory in the order after it
        if !self.codecs.iter().all(|codec| codec.is_elementwise()) {
            return Err("a transposition behind other codecs is not supported".into());
        }
        let permutation: Option<Vec<usize>> = match order {
            Some(Value::String(name)) if name == "C" => Some((0..axes).collect()),
            Some(Value::String(name)) if name == "F" => Some((0..axes).rev().collect()),
            Some(Value::Array(list)) => list.iter().map(|axis| usize::try_from(whole(axis)?).ok()).collect(),
            _ => None,
        };
        let is_permutation = |list: &Vec<usize>| list.len() == axes && (0..axes).all(|axis| list.contains(&axis));
        let permutation = permutation.filter(is_permutation).ok_or("the order of its transposition makes no sense")?;
        self.order = permutation.iter().map(|axis| self.order[*axis]).collect();
        Ok(())
    }

    fn bytes(&mut self, endian: Option<&Value>) -> Result<(), String> {
        let big_endian = match endian.and_then(Value::as_str) {
            Some("big") => true,
            Some("little") | None => false,
            Some(other) => return Err(format!("the byte order {other:?} is not known")),
        };
        // filters may have changed the size of samples: it is told by the bytes of eight of them
        let eight = 8 * self.data_type.size as u64;
        let word = match self.codecs.iter().fold(eight, |bytes, codec| codec.longest(bytes)) {
            filtered if filtered == eight => self.data_type.word(),
            filtered => usize::try_from(filtered / 8).map_err(|e| e.to_string())?,
        };
        if big_endian && !self.codecs.is_empty() && word > 1 {
            self.codecs.push(Box::new(SwapBytes(word)));
        } else {
            self.data_type.big_endian = big_endian && self.codecs.is_empty();
            self.finish = finish(self.data_type);
        }
        Ok(())
    }

    fn sharding(&mut self, configuration: &Map<String, Value>) -> Result<(), String> {
        if self.shards.len() == MAX_SHARD_LEVELS {
            return Err(format!("it has more than {MAX_SHARD_LEVELS} levels of shards"));
        }
        let axes = self.chunk.len();
        let stored =
            shape(configuration.get("chunk_shape"), axes).ok_or("the chunk_shape of its shards makes no sense")?;
        let mut inner = stored;
        for (place, axis) in self.order.iter().enumerate() {
            inner[*axis] = stored[place];
        }
        if (0..axes).any(|axis| !self.chunk[axis].is_multiple_of(inner[axis])) {
            return Err(format!("its shards of {:?} are not whole chunks of {inner:?}", self.chunk));
        }
        let mut shards = Shards {
            order: self.order.clone(),
            count: Dims::from_fn(axes, |axis| self.chunk[axis] / inner[axis]),
            index_at_start: false,
            index_big_endian: false,
            index_has_checksum: false,
        };
        shards.index_at_start = match configuration.get("index_location").and_then(Value::as_str) {
            Some("start") => true,
            Some("end") | None => false,
            Some(other) => return Err(format!("the index_location {other:?} is not known")),
        };
        for entry in configuration.get("index_codecs").and_then(Value::as_array).into_iter().flatten() {
            match named(entry) {
                Some(("bytes" | "endian", bytes)) => {
                    shards.index_big_endian = bytes.get("endian").and_then(Value::as_str) == Some("big");
                }
                Some(("crc32c", _)) if !shards.index_has_checksum => shards.index_has_checksum = true,
                _ => return Err(format!("the index of its shards has the codec {entry}, which is not supported")),
            }
        }
        if shards.index_bytes().is_none_or(|bytes| bytes > MAX_INDEX_BYTES) {
            return Err(format!("its shards have {:?} chunks, which are too many", shards.count));
        }
        self.shards.push(shards);
        self.chunk = inner;
        match configuration.get("codecs") {
            None => Ok(()),
            Some(Value::Array(list)) => self.list(list),
            Some(other) => Err(format!("{other} is no list of codecs")),
        }
    }

    fn finish(self) -> Result<Chain, String> {
        let samples = self.chunk.product();
        let bytes =
            samples.and_then(|n| n.checked_mul(self.data_type.size as u64)).filter(|n| i64::try_from(*n).is_ok());
        let bytes = bytes.ok_or_else(|| format!("chunks of {:?} are too large", self.chunk))?;
        let pipeline = Pipeline::new(self.codecs, bytes, self.finish)?;
        Ok(Chain { shards: self.shards, brick: self.chunk, order: self.order, pipeline })
    }
}

/// Bytes of the longest index of a shard: four million chunks.
const MAX_INDEX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain(codecs: Value, data_type: &str, chunk: &[u64]) -> Result<Chain, String> {
        let mut data_type = DataType::of_version_3(&json!(data_type)).unwrap();
        of_version_3(Some(&codecs), &mut data_type, Dims::from_slice(chunk).unwrap())
    }

    #[test]
    fn transpositions_follow_each_other() {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let by = |order: Value| json!({"name": "transpose", "configuration": {"order": order}});
        let order = |codecs: Value| chain(codecs, "uint16", &[2, 3, 4]).map(|chain| chain.order);
        assert_eq!(order(json!([by(json!([2, 0, 1])), bytes])), Ok(vec![2, 0, 1]));
        assert_eq!(order(json!([by(json!([2, 0, 1])), by(json!([1, 0, 2])), bytes])), Ok(vec![0, 2, 1]));
        assert_eq!(order(json!([by(json!("F")), "bytes"])), Ok(vec![2, 1, 0]));
        for wrong in [json!([0, 1]), json!([0, 0, 1]), json!([0, 1, 3]), json!([0, 1, -1]), json!(null), json!("A")] {
            assert!(order(json!([by(wrong.clone()), bytes])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shards_hold_whole_chunks_in_their_own_order() {
        let inner = json!([{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"]);
        let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]);
        let shards = |shape: Value| {
            json!({"name": "sharding_indexed", "configuration":
            {"chunk_shape": shape, "codecs": inner, "index_codecs": index}})
        };
        let turned = json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, shards(json!([5, 2]))]);
        let found = chain(turned, "uint16", &[4, 20]).unwrap();
        assert_eq!((found.brick, found.order), (Dims::from([2, 5]), vec![1, 0]));
        let level = &found.shards[0];
        assert_eq!((level.count, level.index_bytes()), (Dims::from([2, 4]), Some(8 * 16 + 4)));
        assert_eq!([[0, 0], [1, 0], [0, 1], [1, 3]].map(|at| level.entry(&at.into())), [0, 1, 2, 7]);
        assert!(chain(json!([shards(json!([3, 5]))]), "uint16", &[4, 20]).is_err());
        assert!(chain(json!([shards(json!([2, 5])), "crc32c"]), "uint16", &[4, 20]).is_err());
        let nested = json!({"name": "sharding_indexed", "configuration":
            {"chunk_shape": [4, 10], "codecs": [shards(json!([2, 5]))], "index_codecs": index}});
        assert_eq!(chain(json!([nested]), "uint16", &[4, 20]).unwrap().shards.len(), 2);
    }

    #[test]
    fn bytes_are_swapped_as_filters_have_left_them() {
        let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
        for (stored_type, stored) in [
            ("|u1", &[1u8, 2][..]),
            ("<i2", &[0, 1, 0, 2]),
            ("<f8", &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let scaled = json!({"name": "numcodecs.fixedscaleoffset", "configuration":
                {"offset": 0, "scale": 1, "dtype": "<f8", "astype": stored_type}});
            let mut out = [0; 16];
            chain(json!([scaled, big]), "float64", &[2]).unwrap().pipeline.decode(stored, &mut out).unwrap();
            assert_eq!(out, [1f64.to_le_bytes(), 2f64.to_le_bytes()].concat()[..], "{stored_type}");
        }
    }

    #[test]
    fn samples_without_codecs_are_plain() {
        assert!(chain(json!(["bytes"]), "float32", &[4]).unwrap().pipeline.is_plain());
        assert!(
            chain(json!([{"name": "bytes", "configuration": {"endian": "big"}}]), "uint8", &[4])
                .unwrap()
                .pipeline
                .is_plain()
        );
        assert!(
            !chain(json!([{"name": "bytes", "configuration": {"endian": "big"}}]), "int16", &[4])
                .unwrap()
                .pipeline
                .is_plain()
        );
        assert!(!chain(json!(["bytes"]), "bfloat16", &[4]).unwrap().pipeline.is_plain());
        assert!(chain(json!(["bytes", "no such codec"]), "uint8", &[4]).is_err());
        assert!(chain(json!([7]), "uint8", &[4]).is_err() && chain(json!({}), "uint8", &[4]).is_err());
    }
}
