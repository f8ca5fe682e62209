//! Reads `info`.

use serde_json::{Value, json};

use super::encoding::{Chunk, Encoding};
use super::sharding::Sharding;
use crate::format::bytes::{json_text, whole};
use crate::format::chunked::Hidden;
use crate::format::{FormatError, native};
use crate::volume::{ArrayInfo, Axis, BrickGrid, Dims, Dtype, NativeJson};

pub(super) const FILE: &str = "info";
/// Bytes of a file of this name that are read to find out whether it describes a volume: many files have it.
pub(super) const MAX_HEAD: u64 = 64 << 10;
/// What a description says that it is, if it says so.
const KIND: &str = "neuroglancer_multiscale_volume";
/// The most resolutions that are looked at.
const MAX_SCALES: usize = 256;
/// The most bytes of the samples of a chunk that has to be decoded.
const MAX_DECODED: u64 = if usize::BITS > 32 { 1 << 32 } else { 1 << 30 };

/// Returns whether a file that begins with `head` describes a volume. One that is damaged or too long to be parsed here
/// counts if it names scales: opening the dataset then gives the reason.
pub(super) fn is_description(head: &[u8]) -> bool {
    let Ok(text) = json_text(head) else { return false };
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return false;
    }
    match serde_json::from_slice::<NativeJson>(text) {
        Ok(keys) => keys.contains_key("scales") && is_volume(&keys),
        Err(_) => text.windows(8).any(|part| part == b"\"scales\""),
    }
}

fn is_volume(keys: &NativeJson) -> bool {
    keys.get("@type").is_none_or(|kind| kind == KIND)
}

/// A volume at several resolutions.
pub(super) struct Volume {
    pub dtype: Dtype,
    /// The keys of the resolutions, the finest first, with those that cannot be shown.
    pub scales: Vec<(String, Result<Scale, Hidden>)>,
    pub warnings: Vec<String>,
}

/// A volume at one resolution. Triples are x, y, z.
#[derive(Debug)]
pub(super) struct Scale {
    pub key: String,
    pub size: [u64; 3],
    /// The position of the first voxel.
    pub offset: [i64; 3],
    /// Nanometers of a voxel; `None` if they make no sense.
    pub resolution: Option<[f64; 3]>,
    /// Voxels of a chunk. Chunks begin with the first voxel.
    pub chunk: [u64; 3],
    pub channels: u64,
    pub encoding: Encoding,
    pub sharding: Option<Sharding>,
    native: NativeJson,
}

impl Volume {
    pub(super) fn parse(keys: &NativeJson) -> Result<Self, FormatError> {
        let scales = keys.get("scales").and_then(Value::as_array).filter(|_| is_volume(keys));
        let scales = scales.ok_or_else(|| FormatError::NotThisFormat(format!("{FILE} does not describe a volume")))?;
        let name = keys.get("data_type").and_then(Value::as_str).unwrap_or_default();
        let dtype = dtype(name)
            .ok_or_else(|| FormatError::Unsupported(format!("its samples are of type {name:?}, which is not shown")))?;
        let channels = keys.get("num_channels").map_or(Some(1), |n| u64::try_from(whole(n)?).ok().filter(|n| *n > 0));
        let channels = channels.ok_or("its num_channels makes no sense")?;
        let mut warnings = Vec::new();
        if scales.len() > MAX_SCALES {
            warnings.push(format!("it has {} scales, of which {MAX_SCALES} are shown", scales.len()));
        }
        let mut parsed: Vec<_> = scales
            .iter()
            .take(MAX_SCALES)
            .enumerate()
            .map(|(number, scale)| {
                let key = scale.get("key").and_then(Value::as_str);
                let shown = key.map_or_else(|| number.to_string(), str::to_owned);
                (shown, resolution(scale), Scale::parse(scale, key, dtype, channels))
            })
            .collect();
        let is_finer = |one: &Option<[f64; 3]>, other: &Option<[f64; 3]>| {
            one.zip(*other).is_none_or(|(one, other)| one.iter().zip(other).all(|(one, other)| *one <= other))
        };
        if !parsed.is_sorted_by(|(_, one, _), (_, other, _)| is_finer(one, other)) {
            let voxel = |resolution: &Option<[f64; 3]>| resolution.map_or(f64::INFINITY, |r| r.iter().product());
            parsed.sort_by(|(_, one, _), (_, other, _)| voxel(one).total_cmp(&voxel(other)));
        }
        let scales = parsed.into_iter().map(|(key, _, scale)| (key, scale)).collect();
        Ok(Self { dtype, scales, warnings })
    }
}

fn dtype(name: &str) -> Option<Dtype> {
    use Dtype::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let all = [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Float32, Float64];
    all.into_iter().find(|dtype| dtype.name().eq_ignore_ascii_case(name))
}

/// Returns the three numbers of a list.
fn triple<T>(value: Option<&Value>, number: impl Fn(&Value) -> Option<T>) -> Option<[T; 3]> {
    let numbers: Option<Vec<T>> = value?.as_array()?.iter().map(number).collect();
    numbers?.try_into().ok()
}

fn resolution(scale: &Value) -> Option<[f64; 3]> {
    triple(scale.get("resolution"), |n| n.as_f64().filter(|n| n.is_finite() && *n > 0.0))
}

impl Scale {
    fn parse(scale: &Value, key: Option<&str>, dtype: Dtype, channels: u64) -> Result<Self, Hidden> {
        let damaged = |what: &str| Hidden::damaged(format!("its {what} makes no sense"));
        let key = key.ok_or_else(|| damaged("key"))?;
        let natural = |value: &Value| u64::try_from(whole(value)?).ok();
        let size = triple(scale.get("size"), natural).ok_or_else(|| damaged("size"))?;
        let shape = shape(size, channels);
        let refused = |hidden: Hidden| Hidden { shape: Some(shape), ..hidden };
        let damaged = |what: &str| refused(damaged(what));
        let unsupported = |reason: String| refused(Hidden::unsupported(reason));
        Hidden::unless_readable(&shape, dtype)?;
        if size.contains(&0) {
            return Err(unsupported("it has no samples".into()));
        }
        let chunk = scale.get("chunk_sizes").and_then(|sizes| triple(sizes.get(0), natural));
        let chunk = chunk.filter(|chunk| !chunk.contains(&0)).ok_or_else(|| damaged("chunk_sizes"))?;
        let offset = match scale.get("voxel_offset") {
            None | Some(Value::Null) => Some([0; 3]),
            offset => triple(offset, |n| i64::try_from(whole(n)?).ok()),
        };
        let ends = |offset: &[i64; 3]| (0..3).all(|a| offset[a].checked_add_unsigned(size[a]).is_some());
        let offset = offset.filter(ends).ok_or_else(|| damaged("voxel_offset"))?;
        let encoding = Encoding::parse(scale, dtype, channels).map_err(unsupported)?;
        let sharding = match scale.get("sharding") {
            None | Some(Value::Null) => None,
            Some(described) => {
                let chunks = [0, 1, 2].map(|a| size[a].div_ceil(chunk[a]));
                Some(Sharding::parse(described, chunks).map_err(unsupported)?)
            }
        };
        let parsed = Self {
            key: key.to_owned(),
            size,
            offset,
            resolution: resolution(scale),
            chunk,
            channels,
            encoding,
            sharding,
            native: native(json!({
                "path": key,
                "key": key,
                "encoding": encoding.name(),
                "stored_as": format!("{}{}", encoding.name(), sharding.as_ref().map_or("", Sharding::text)),
                "compressed_segmentation_block_size": scale.get("compressed_segmentation_block_size"),
                "sharding": scale.get("sharding"),
                "voxel_offset": offset,
                "resolution": scale.get("resolution"),
                "chunk_size": chunk,
            })),
        };
        // plain chunks are never decoded
        let bytes = parsed.largest(dtype.size()).bytes();
        if bytes > MAX_DECODED && (encoding != Encoding::Raw || parsed.is_in_gzip()) {
            return Err(unsupported(format!("chunks of {bytes} bytes are too large")));
        }
        Ok(parsed)
    }

    /// Returns whether all chunks are members of gzip.
    pub(super) fn is_in_gzip(&self) -> bool {
        self.sharding.as_ref().is_some_and(|sharding| sharding.data_is_gzip)
    }

    /// Returns a chunk that is not cut off by the end of the volume, or only because there is but one.
    fn largest(&self, size: usize) -> Chunk {
        Chunk { extent: [0, 1, 2].map(|a| self.chunk[a].min(self.size[a])), channels: self.channels, size }
    }

    /// Describes the array. `finest` is the finest resolution.
    pub(super) fn info(&self, dtype: Dtype, lod: usize, finest: Option<[f64; 3]>) -> ArrayInfo {
        let [x, y, z] = self.largest(dtype.size()).extent;
        let brick = shape([x, y, z], self.channels);
        let spatial = [("z", 2), ("y", 1), ("x", 0)].map(|(name, a)| self.axis(name, a, finest));
        let count = self.channels;
        let channel = Axis { name: "channel".into(), unit: None, first: 0.0, step: 1.0, count, spatial: false };
        let mut warnings = Vec::new();
        if self.resolution.is_none() {
            warnings.push("its resolution makes no sense: positions are in voxels".into());
        }
        ArrayInfo {
            lod,
            axes: (count > 1).then_some(channel).into_iter().chain(spatial).collect(),
            mag: self.mag(finest),
            codec: Some(self.encoding.name()),
            warnings,
            native: self.native.clone(),
            ..ArrayInfo::new(dtype, BrickGrid::aligned(shape(self.size, count), brick), brick)
        }
    }

    /// Returns an axis. Positions are those of the centres of voxels, relative to the centre of voxel 0 at the finest
    /// resolution, so that they agree in all levels and with the headers for other programs.
    fn axis(&self, name: &str, a: usize, finest: Option<[f64; 3]>) -> Axis {
        let (step, unit) = self.resolution.map_or((1.0, None), |r| (r[a], Some("nanometer".to_owned())));
        let half = finest.filter(|_| unit.is_some()).map_or(0.0, |finest| (step - finest[a]) / 2.0);
        let first = self.offset[a] as f64 * step + half;
        Axis { name: name.into(), unit, first, step, count: self.size[a], spatial: true }
    }

    /// Returns how many voxels of the finest resolution one voxel stands for along each axis, if that are whole numbers.
    fn mag(&self, finest: Option<[f64; 3]>) -> Option<[u64; 3]> {
        let (own, finest) = self.resolution.zip(finest)?;
        let mut mag = [0; 3];
        for (mag, (own, finest)) in mag.iter_mut().zip(own.into_iter().zip(finest)) {
            let factor = own / finest;
            let is_whole = (1.0..=1e9).contains(&factor) && (factor - factor.round()).abs() < 1e-6 * factor;
            *mag = is_whole.then_some(factor.round() as u64)?;
        }
        Some(mag)
    }
}

/// Returns the shape of an array of these voxels: z, y, x, and before them the channel if there are several.
pub(super) fn shape([x, y, z]: [u64; 3], channels: u64) -> Dims {
    if channels > 1 { Dims::from([channels, z, y, x]) } else { Dims::from([z, y, x]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(keys: Value) -> Result<Volume, FormatError> {
        Volume::parse(&native(keys))
    }

    fn scale(change: Value) -> Result<Scale, String> {
        let mut scale = json!({
            "key": "8_8_40", "size": [100, 50, 20], "voxel_offset": [-3, 0, 7], "resolution": [8, 8, 40.5],
            "chunk_sizes": [[64, 64, 16], [1, 2, 3]], "encoding": "raw",
        });
        for (key, value) in native(change) {
            scale[&key] = value;
        }
        let volume = volume(json!({"data_type": "uint16", "num_channels": 1, "scales": [scale]})).unwrap();
        volume.scales.into_iter().next().unwrap().1.map_err(|hidden| hidden.reason)
    }

    #[test]
    fn only_descriptions_of_volumes_are_recognised() {
        for text in [
            r#"{"scales": []}"#,
            "\u{feff} {\"@type\": \"neuroglancer_multiscale_volume\", \"scales\": [",
            r#"{"scales": [{}], "data_type": "uint8""#,
        ] {
            assert!(is_description(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "{}",
            "[\"scales\"]",
            "notes on \"scales\"",
            r#"{"@type": "neuroglancer_skeletons", "scales": []}"#,
            r#"{"scale": 1"#,
            "\0\u{1}{\"scales\"",
        ] {
            assert!(!is_description(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_finest_scale_is_the_first_and_equal_ones_keep_their_order() {
        let order = |resolutions: &[[u32; 3]]| -> Vec<String> {
            let scale = |(n, resolution): (usize, &[u32; 3])| json!({"key": n.to_string(), "resolution": resolution});
            let scales: Vec<_> = resolutions.iter().enumerate().map(scale).collect();
            let volume = volume(json!({"data_type": "uint8", "num_channels": 1, "scales": scales})).unwrap();
            volume.scales.into_iter().map(|(key, _)| key).collect()
        };
        assert_eq!(order(&[[8, 8, 40], [16, 16, 40]]), ["0", "1"]);
        assert_eq!(order(&[[16, 16, 80], [8, 8, 40], [4, 4, 20]]), ["2", "1", "0"], "all coarser than the next");
        assert_eq!(order(&[[16, 16, 40], [8, 8, 40], [8, 8, 40]]), ["1", "2", "0"]);
    }

    #[test]
    fn colours_have_an_axis() {
        let description = json!({"data_type": "uint8", "num_channels": 3, "scales": [{
            "key": "s", "size": [6, 2, 1], "chunk_sizes": [[4, 2, 1]], "resolution": [1, 1, 1], "encoding": "raw"}]});
        let scale = volume(description).unwrap().scales.remove(0).1.ok().unwrap();
        let info = scale.info(Dtype::UInt8, 0, None);
        let axes: Vec<_> = info.axes.iter().map(|axis| (&*axis.name, axis.count, axis.spatial)).collect();
        assert_eq!(axes, [("channel", 3, false), ("z", 1, true), ("y", 2, true), ("x", 6, true)]);
    }

    #[test]
    fn positions_are_those_of_centres_of_voxels() {
        let scale = scale(json!({})).unwrap();
        let info = scale.info(Dtype::UInt16, 0, Some([4.0, 8.0, 40.5]));
        assert_eq!(info.shape(), Dims::from([20, 50, 100]));
        assert_eq!(info.brick_shape, Dims::from([16, 50, 64]));
        let found: Vec<_> = info.axes.iter().map(|axis| (axis.name.as_str(), axis.first, axis.step)).collect();
        // voxel -3 of 8 nm begins at -24; voxel 0 of 4 nm has its centre at 2
        assert_eq!(found, [("z", 7.0 * 40.5, 40.5), ("y", 0.0, 8.0), ("x", -22.0, 8.0)]);
        assert_eq!(info.mag, Some([2, 1, 1]));
        assert_eq!((&info.native["path"], &info.native["chunk_size"]), (&json!("8_8_40"), &json!([64, 64, 16])));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_by_name() {
        for (change, what) in [
            (json!({"size": [1, 2]}), "size"),
            (json!({"size": [1, 2, -1]}), "size"),
            (json!({"size": [1, 2, 0]}), "no samples"),
            (json!({"size": [1u64 << 62, 4, 4]}), "2^63"),
            (json!({"chunk_sizes": [[0, 1, 1]]}), "chunk_sizes"),
            (json!({"chunk_sizes": [64, 64, 64]}), "chunk_sizes"),
            (json!({"chunk_sizes": []}), "chunk_sizes"),
            (json!({"voxel_offset": [0, 0.5, 0]}), "voxel_offset"),
            (json!({"voxel_offset": [i64::MAX, 0, 0]}), "voxel_offset"),
            (json!({"key": 7}), "key"),
            (json!({"encoding": "zfpc"}), "zfpc"),
            (
                json!({"encoding": "png", "size": [1048576, 1048576, 1048576], "chunk_sizes": [[1048576, 1048576, 1048576]]}),
                "too large",
            ),
        ] {
            let why = scale(change.clone()).unwrap_err();
            assert!(why.contains(what), "{change}: {why}");
        }
        assert!(
            scale(json!({"size": [1048576, 1048576, 1048576], "chunk_sizes": [[1048576, 1048576, 1048576]]})).is_ok(),
            "never decoded"
        );
        assert_eq!(scale(json!({"resolution": [0, 1, 1]})).unwrap().resolution, None);
        for keys in [
            json!({"data_type": "string", "scales": []}),
            json!({"data_type": "uint8", "num_channels": 0, "scales": []}),
            json!({"data_type": "uint8", "scales": {}}),
        ] {
            assert!(volume(keys.clone()).is_err(), "{keys}");
        }
    }

    #[test]
    fn scales_are_in_the_order_of_their_resolutions() {
        let keys = |resolutions: Value| {
            let scales: Vec<_> = resolutions
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
                .map(|(n, resolution)| json!({"key": n.to_string(), "resolution": resolution}))
                .collect();
            let volume = volume(json!({"data_type": "UINT8", "scales": scales})).unwrap();
            volume.scales.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(json!([[8, 8, 40], [8, 8, 40], [16, 16, 40]])), ["0", "1", "2"]);
        assert_eq!(keys(json!([[16, 16, 40], [8, 8, 40], [32, 32, 40]])), ["1", "0", "2"]);
        let many = volume(json!({"data_type": "uint8", "scales": vec![json!({}); 1000]})).unwrap();
        assert_eq!((many.scales.len(), many.warnings.len()), (MAX_SCALES, 1));
    }
}
