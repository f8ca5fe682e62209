//! Parses `datasource-properties.json` in all its dialects: keys were renamed, and forms of the scale and of mags
//! (magnifications) changed, over the years (see "Datasets" in the documentation of webKNOSSOS for the present one).
//! Has the arithmetic of mags and boxes, too.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::format::bytes::{decimal, json_text, whole};
use crate::format::{Format, registry};
use crate::volume::NativeJson;

pub(super) const FILE: &str = "datasource-properties.json";
/// Bytes of the longest file that is read. One of a dataset with hundreds of layers has some hundred KiB.
pub(super) const MAX_BYTES: u64 = 8 << 20;

/// The size of a voxel of mag 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// Along x, y, z.
    pub factor: [f64; 3],
    pub unit: String,
}

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Properties {
    pub json: NativeJson,
    pub scale: Option<Scale>,
    pub layers: Vec<DescribedLayer>,
    pub warnings: Vec<String>,
    /// Why the file cannot be read, if the layers were found without it.
    pub fault: Option<String>,
}

/// A layer as the file, or else the names of folders, describe it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DescribedLayer {
    pub name: String,
    /// `color` or `segmentation`, which old files call `mask`.
    pub category: Option<String>,
    /// `wkw`, `zarr`, ...; old files have none.
    pub format: Option<String>,
    /// Type of a whole voxel: `uint8`, `uint24`, `float`, ...
    pub element_class: Option<String>,
    pub largest_segment_id: Value,
    pub bounding_box: Value,
    /// The box in voxels of mag 1.
    pub extent: Option<Extent>,
    pub mags: Vec<DescribedMag>,
    /// Entries of the list of mags that cannot be parsed.
    pub odd_mags: Vec<Value>,
    /// Whether there are axes beyond x, y and z, which WKW files cannot store.
    pub more_axes: bool,
    pub warnings: Vec<String>,
}

/// A mag in the list of a layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DescribedMag {
    pub mag: Mag,
    /// Its path, if it is not the default one.
    pub path: Option<String>,
    /// The axes of an array of another format: the places of `c`, `x`, `y` and `z`.
    pub axis_order: Value,
}

impl Properties {
    /// Returns the description if it is within the limits; the error is the limit that it exceeds. A few MiB of JSON
    /// could ask for any amount of memory: every level repeats the texts of its layer, and any number of mags may share
    /// one folder.
    pub(super) fn within_limits(self) -> Result<Self, String> {
        at_most(MAX_LAYERS, self.layers.len(), "layers in dataLayers")?;
        at_most(MAX_MAGS, self.layers.iter().map(|layer| layer.mags.len()).sum(), "mags")?;
        let unit = self.scale.as_ref().map(|scale| scale.unit.as_str());
        at_most(MAX_TEXT, unit.map_or(0, str::len), "bytes in the unit of scale")?;
        for layer in &self.layers {
            let texts = [
                ("name", Some(&layer.name)),
                ("category", layer.category.as_ref()),
                ("dataFormat", layer.format.as_ref()),
                ("elementClass", layer.element_class.as_ref()),
            ];
            for (key, text) in texts {
                at_most(MAX_TEXT, text.map_or(0, String::len), &format!("bytes in the {key} of a layer"))?;
            }
            for mag in &layer.mags {
                at_most(MAX_PATH, mag.path.as_ref().map_or(0, String::len), "bytes in the path of a mag")?;
            }
        }
        Ok(self)
    }

    /// Parses the file's text; the error tells what is wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let json: NativeJson = serde_json::from_slice(json_text(text)?).map_err(|e| e.to_string())?;
        let Some(Value::Array(list)) = json.get("dataLayers") else {
            return Err("it has no list dataLayers".into());
        };
        let mut warnings = Vec::new();
        if let Some(version) = json.get("version").filter(|version| version.as_f64() != Some(1.0) && !version.is_null())
        {
            warnings.push(format!("{FILE} is of version {version}, which is not known"));
        }
        let scale = json.get("scale").and_then(scale);
        if scale.is_none() {
            warnings.push(format!("{FILE} has no usable scale: positions are in voxels of mag 1"));
        }
        let layers: Vec<_> = list.iter().enumerate().map(|(n, layer)| DescribedLayer::parse(n, layer)).collect();
        if layers.is_empty() {
            warnings.push(format!("{FILE} lists no layers"));
        }
        Ok(Self { scale, layers, warnings, json, fault: None })
    }
}

/// Parses `{"factor": [x, y, z], "unit": ".."}`, or in older files the factors alone, in nanometers.
fn scale(value: &Value) -> Option<Scale> {
    let (factor, unit) = match value {
        Value::Object(map) => (map.get("factor")?, map.get("unit").and_then(Value::as_str)),
        list => (list, None),
    };
    let factor: Option<Vec<f64>> = factor.as_array()?.iter().map(Value::as_f64).collect();
    let factor: [f64; 3] = factor?.try_into().ok()?;
    let usable = factor.iter().all(|f| f.is_finite() && *f > 0.0);
    usable.then(|| Scale { factor, unit: unit.unwrap_or("nanometer").to_owned() })
}

impl DescribedLayer {
    fn parse(number: usize, value: &Value) -> Self {
        let nothing = Map::new();
        let map = value.as_object().unwrap_or(&nothing);
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut layer = Self {
            name: text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| format!("layer{number}")),
            category: text("category")
                .map(|category| if category == "mask" { "segmentation".into() } else { category }),
            format: text("dataFormat"),
            element_class: text("elementClass"),
            largest_segment_id: map.get("largestSegmentId").filter(|id| id.is_number()).cloned().unwrap_or_default(),
            bounding_box: map.get("boundingBox").cloned().unwrap_or_default(),
            more_axes: map.get("additionalAxes").and_then(Value::as_array).is_some_and(|axes| !axes.is_empty()),
            ..Self::default()
        };
        layer.read_box();
        layer.read_mags(map);
        layer
    }

    fn read_box(&mut self) {
        let Value::Object(map) = &self.bounding_box else { return };
        let corner = map.get("topLeft").and_then(Value::as_array);
        let corner = corner.and_then(|list| list.iter().map(whole).collect::<Option<Vec<_>>>()?.try_into().ok());
        let size = ["width", "height", "depth"].map(|key| map.get(key).and_then(whole));
        let (Some(corner), [Some(width), Some(height), Some(depth)]) = (corner, size) else {
            self.warnings.push("its boundingBox makes no sense".into());
            return;
        };
        let (corner, size): ([i128; 3], _) = (corner, [width, height, depth]);
        if corner.iter().any(|at| *at < 0) {
            self.warnings.push("its boundingBox begins at negative voxels, which are not shown".into());
        }
        let clamped = |at: i128| u64::try_from(at.max(0)).unwrap_or(u64::MAX);
        let low = corner.map(clamped);
        let high = [0, 1, 2].map(|a| clamped(corner[a] + size[a].max(0)));
        self.extent = Some(Extent { low, high });
    }

    /// Reads the list of mags, and the one of older files under another name.
    fn read_mags(&mut self, map: &Map<String, Value>) {
        let mut known = HashMap::new();
        for (list, key) in [("mags", "mag"), ("wkwResolutions", "resolution")] {
            for entry in map.get(list).and_then(Value::as_array).into_iter().flatten() {
                let Some(mag) = entry.get(key).and_then(Mag::from_json) else {
                    self.odd_mags.push(entry.clone());
                    continue;
                };
                let path = entry.get("path").and_then(Value::as_str).map(str::to_owned);
                let number = *known.entry(mag).or_insert(self.mags.len());
                match self.mags.get_mut(number) {
                    Some(listed) => listed.path = listed.path.take().or(path),
                    None => {
                        let axis_order = entry.get("axisOrder").or(map.get("axisOrder")).cloned().unwrap_or_default();
                        self.mags.push(DescribedMag { mag, path, axis_order });
                    }
                }
            }
        }
        self.mags.sort_by_key(|listed| listed.mag.order());
    }

    /// Returns whether the layer is of this format, or has no format.
    pub(super) fn may_be_wkw(&self) -> bool {
        self.format.as_ref().is_none_or(|format| format.eq_ignore_ascii_case("wkw"))
    }

    /// Returns the other format that the arrays of the layer are of, if it is one that is read.
    pub(super) fn other_format(&self) -> Option<&'static dyn Format> {
        registry().of_arrays(self.format.as_ref()?)
    }
}

/// The most layers. Without a description the same number is looked for.
const MAX_LAYERS: usize = 1024;
/// The most mags of all layers.
const MAX_MAGS: usize = 8192;
/// Bytes of the longest text that levels repeat: a name, a class, a unit.
const MAX_TEXT: usize = 1024;
/// Bytes of the longest path.
const MAX_PATH: usize = 4096;

fn at_most(limit: usize, found: usize, what: &str) -> Result<(), String> {
    if found <= limit { Ok(()) } else { Err(format!("it has {found} {what}: there must be at most {limit}")) }
}

/// The number of voxels of mag 1 along x, y and z in one voxel; no factor is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mag(pub [u64; 3]);

impl Mag {
    /// Makes a mag of these factors; `None` if one is 0.
    pub(super) fn new(factors: [u64; 3]) -> Option<Self> {
        (!factors.contains(&0)).then_some(Self(factors))
    }

    /// Parses the name of a mag's folder: `2` or `2-2-1`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let parts: Option<Vec<u64>> = name.split('-').take(4).map(decimal).collect();
        match parts?[..] {
            [n] => Self::new([n; 3]),
            [x, y, z] => Self::new([x, y, z]),
            _ => None,
        }
    }

    /// Parses a mag in JSON: three numbers, one for all three, or a name as some tools write it.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let factor = |value: &Value| u64::try_from(whole(value)?).ok();
        match value {
            Value::Number(_) => Self::new([factor(value)?; 3]),
            Value::String(name) => Self::from_name(name),
            Value::Array(list) => {
                let factors: Option<Vec<u64>> = list.iter().map(factor).collect();
                Self::new(factors?.try_into().ok()?)
            }
            _ => None,
        }
    }

    /// Returns the names that its folder may have, the usual one first.
    pub(super) fn names(&self) -> Vec<String> {
        let [x, y, z] = self.0;
        let long = format!("{x}-{y}-{z}");
        if x == y && y == z { vec![x.to_string(), long] } else { vec![long] }
    }

    /// Returns the key by which mags are sorted, the finest first.
    pub(super) fn order(&self) -> (u64, u128, [u64; 3]) {
        let product = self.0.iter().fold(1u128, |product, n| product.saturating_mul(u128::from(*n)));
        (self.0.iter().copied().max().unwrap_or(0), product, self.0)
    }
}

/// A box of voxels, x, y, z: from `low` to before `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    pub low: [u64; 3],
    pub high: [u64; 3],
}

impl Extent {
    /// Converts a box in voxels of mag 1 to voxels of `mag`, rounded outwards.
    pub(super) fn in_mag(&self, mag: Mag) -> Self {
        let [x, y, z] = [0, 1, 2].map(|a| (self.low[a] / mag.0[a], self.high[a].div_ceil(mag.0[a])));
        Self { low: [x.0, y.0, z.0], high: [x.1, y.1, z.1] }
    }

    /// Converts a box in voxels of `mag` to voxels of mag 1; `None` beyond 64 bits.
    pub(super) fn to_mag_1(self, mag: Mag) -> Option<Self> {
        let mut extent = self;
        for a in 0..3 {
            extent.low[a] = extent.low[a].checked_mul(mag.0[a])?;
            extent.high[a] = extent.high[a].checked_mul(mag.0[a])?;
        }
        Some(extent)
    }

    pub(super) fn size(&self) -> [u64; 3] {
        [0, 1, 2].map(|a| self.high[a].saturating_sub(self.low[a]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Properties {
        Properties::parse(value.to_string().as_bytes()).unwrap()
    }

    fn layer(value: &Value) -> DescribedLayer {
        parse(&json!({"scale": [1, 1, 1], "dataLayers": [value]})).layers.remove(0)
    }

    #[test]
    fn scales_of_every_dialect() {
        let of = |scale: Value| parse(&json!({"scale": scale, "dataLayers": []})).scale;
        let nanometers = |factor| Some(Scale { factor, unit: "nanometer".into() });
        assert_eq!(of(json!([11.24, 11.24, 28])), nanometers([11.24, 11.24, 28.0]));
        assert_eq!(of(json!({"factor": [1, 2, 3]})), nanometers([1.0, 2.0, 3.0]));
        let micrometers = Scale { factor: [0.5, 0.5, 2.0], unit: "µm".into() };
        assert_eq!(of(json!({"factor": [0.5, 0.5, 2], "unit": "µm"})), Some(micrometers));
        for scale in [json!(null), json!([1, 1]), json!([0, 1, 1]), json!([-1, 1, 1]), json!("1"), json!({"unit": "m"})]
        {
            assert_eq!(of(scale.clone()), None, "{scale}");
        }
    }

    #[test]
    fn versions_other_than_1_give_a_warning() {
        let warnings =
            |version: Value| parse(&json!({"version": version, "scale": [1, 1, 1], "dataLayers": [{}]})).warnings.len();
        assert_eq!([json!(1), json!(null), json!(9), json!("1")].map(warnings), [0, 0, 1, 1]);
    }

    #[test]
    fn invalid_descriptions_are_refused() {
        for text in ["", "{", "[]", "{}", "{\"dataLayers\": {}}", "\u{feff}"] {
            assert!(Properties::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Properties::parse("\u{feff}{\"dataLayers\": []}".as_bytes()).is_ok());
    }

    #[test]
    fn mags_come_from_both_lists() {
        let found = layer(&json!({
            "mags": [{"mag": [4, 4, 2], "path": "./c/4-4-2"}, {"mag": 1, "path": null}, {"mag": [0, 1, 1]}, 7],
            "wkwResolutions": [{"resolution": 2, "cubeLength": 1024}, {"resolution": [1, 1, 1]}],
        }));
        let mags: Vec<_> = found.mags.iter().map(|listed| (listed.mag.0, listed.path.as_deref())).collect();
        assert_eq!(mags, [([1; 3], None), ([2; 3], None), ([4, 4, 2], Some("./c/4-4-2"))]);
        assert_eq!(found.odd_mags, [json!({"mag": [0, 1, 1]}), json!(7)]);
    }

    #[test]
    fn boxes_are_clamped_and_may_be_missing() {
        let of = |corner: Value, width: Value| {
            let found = layer(&json!({"boundingBox": {"topLeft": corner, "width": width, "height": 2, "depth": 3}}));
            (found.extent.map(|extent| (extent.low, extent.high)), found.warnings.len())
        };
        assert_eq!(of(json!([5, 6, 7]), json!(10)), (Some(([5, 6, 7], [15, 8, 10])), 0));
        assert_eq!(of(json!([-4, 0, 0]), json!(15)), (Some(([0; 3], [11, 2, 3])), 1));
        assert_eq!(of(json!([5.0, 0, 0]), json!(-1)), (Some(([5, 0, 0], [5, 2, 3])), 0));
        assert_eq!(of(json!([1, 2]), json!(1)), (None, 1));
        assert_eq!(of(json!([u64::MAX, 0, 0]), json!(u64::MAX)), (Some(([u64::MAX, 0, 0], [u64::MAX, 2, 3])), 0));
        assert_eq!(layer(&json!({})).extent, None);
    }

    #[test]
    fn names_and_formats() {
        assert_eq!(layer(&json!({})).name, "layer0");
        assert_eq!(layer(&json!(5)).name, "layer0");
        assert!(layer(&json!({"dataFormat": "wkw"})).may_be_wkw() && layer(&json!({})).may_be_wkw());
        assert!(!layer(&json!({"dataFormat": "zarr3"})).may_be_wkw());
        assert_eq!(layer(&json!({"category": "mask"})).category.as_deref(), Some("segmentation"));
        assert!(layer(&json!({"additionalAxes": [{"name": "t"}]})).more_axes);
        let id = layer(&json!({"largestSegmentId": 18_446_744_073_709_551_615u64})).largest_segment_id;
        assert_eq!(id.as_u64(), Some(u64::MAX));
    }

    fn limited(layers: Value, unit: &str) -> Result<Properties, String> {
        let scale = json!({"factor": [1, 1, 1], "unit": unit});
        let properties = Properties::parse(json!({"scale": scale, "dataLayers": layers}).to_string().as_bytes())?;
        properties.within_limits()
    }

    #[test]
    fn descriptions_at_the_limits_are_read_and_those_beyond_refused() {
        let fault = |layers: Value| limited(layers, "m").map_or_else(|why| why, |_| "none".into());
        assert_eq!(fault(vec![json!({}); MAX_LAYERS].into()), "none");
        assert!(fault(vec![json!({}); MAX_LAYERS + 1].into()).contains("1025 layers"));
        let mags = |count: usize| -> Value { (1..=count).map(|mag| json!({"mag": mag})).collect() };
        let two = |more: usize| json!([{"mags": mags(MAX_MAGS / 2)}, {"mags": mags(MAX_MAGS / 2 + more)}]);
        assert_eq!((fault(two(0)), fault(two(1)).contains("8193 mags")), ("none".into(), true));
        for key in ["name", "category", "dataFormat", "elementClass"] {
            let layer = |length: usize| json!([{key: "x".repeat(length)}]);
            assert_eq!(fault(layer(MAX_TEXT)), "none");
            assert!(fault(layer(MAX_TEXT + 1)).contains(&format!("1025 bytes in the {key}")));
        }
        let path = |length: usize| json!([{"mags": [{"mag": 1, "path": "x".repeat(length)}]}]);
        assert_eq!(fault(path(MAX_PATH)), "none");
        assert!(fault(path(MAX_PATH + 1)).contains("4097 bytes in the path"));
        assert!(limited(json!([]), &"m".repeat(MAX_TEXT + 1)).is_err_and(|why| why.contains("the unit of scale")));
    }

    #[test]
    fn names_and_numbers_are_mags() {
        let mag = |name| Mag::from_name(name).map(|mag| mag.0);
        assert_eq!(mag("16"), Some([16; 3]));
        assert_eq!(mag("2-2-1"), Some([2, 2, 1]));
        for name in ["", "0", "01", "1-1", "1-1-1-1", "2-2-", "-1", "+1", "1 ", "a", "1-0-1", "99999999999999999999"] {
            assert_eq!(mag(name), None, "{name}");
        }
        let mag = |value| Mag::from_json(&value).map(|mag| mag.0);
        assert_eq!(mag(json!([4, 4, 2])), Some([4, 4, 2]));
        assert_eq!(mag(json!(2)), Some([2; 3]));
        assert_eq!(mag(json!([2.0, 2, 1])), Some([2, 2, 1]));
        assert_eq!(mag(json!("4-4-1")), Some([4, 4, 1]));
        for value in [json!(null), json!(0), json!([1, 1]), json!([1, 1, 0]), json!([1, 1, -1]), json!(1.5), json!({})]
        {
            assert_eq!(mag(value.clone()), None, "{value}");
        }
        assert_eq!(Mag([2; 3]).names(), ["2", "2-2-2"]);
        assert_eq!(Mag([2, 2, 1]).names(), ["2-2-1"]);
    }

    #[test]
    fn mags_are_ordered_by_greatest_factor_product_and_number() {
        let mut mags = ["8-8-4", "2", "4-4-1", "1", "4", "4-1-4", "2-2-1"].map(|name| Mag::from_name(name).unwrap());
        mags.sort_by_key(Mag::order);
        let names = mags.map(|mag| mag.names()[0].clone());
        assert_eq!(names, ["1", "2-2-1", "2", "4-1-4", "4-4-1", "4", "8-8-4"]);
    }

    #[test]
    fn boxes_are_rounded_outwards() {
        let extent = Extent { low: [5, 7, 3], high: [46, 40, 24] };
        let in_mag = |mag| {
            let found = extent.in_mag(Mag(mag));
            (found.low, found.size())
        };
        assert_eq!(in_mag([1, 1, 1]), ([5, 7, 3], [41, 33, 21]));
        assert_eq!(in_mag([2, 2, 1]), ([2, 3, 3], [21, 17, 21]));
        assert_eq!(in_mag([4, 4, 2]), ([1, 1, 1], [11, 9, 11]));
        assert_eq!(in_mag([8, 8, 4]), ([0, 0, 0], [6, 5, 6]));
        let cubes = Extent { low: [1, 0, 0], high: [3, 1, 1] };
        assert_eq!(cubes.to_mag_1(Mag([2, 2, 1])), Some(Extent { low: [2, 0, 0], high: [6, 2, 1] }));
        assert_eq!(cubes.to_mag_1(Mag([u64::MAX; 3])), None);
        assert!(!extent.size().contains(&0) && Extent { low: [1; 3], high: [1, 2, 2] }.size().contains(&0));
    }
}
