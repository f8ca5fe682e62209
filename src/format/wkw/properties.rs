//! Parses `datasource-properties.json` in all its dialects: keys were renamed, and forms of the scale and of mags
//! changed, over the years (see "Datasets" in the documentation of webKNOSSOS for the present one).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::mag::{Extent, Mag, whole};
use crate::format::bytes::check_values;
use crate::volume::NativeJson;

/// The name of the file.
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
    /// The whole file.
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
    /// The box as JSON.
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
}

impl Properties {
    /// Parses the file's text; the error tells what is wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        check_values(text, b",[{")?;
        let json: Value = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let Value::Object(json) = json else { return Err("it is no JSON object".into()) };
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
        let number = |value: &Value| value.as_number().and_then(signed);
        let corner = map.get("topLeft").and_then(Value::as_array);
        let corner = corner.and_then(|list| list.iter().map(number).collect::<Option<Vec<_>>>()?.try_into().ok());
        let size = ["width", "height", "depth"].map(|key| map.get(key).and_then(number));
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
                let Some(mag) = entry.get(key).and_then(Mag::of_json) else {
                    self.odd_mags.push(entry.clone());
                    continue;
                };
                let path = entry.get("path").and_then(Value::as_str).map(str::to_owned);
                let number = *known.entry(mag).or_insert(self.mags.len());
                match self.mags.get_mut(number) {
                    Some(listed) => listed.path = listed.path.take().or(path),
                    None => self.mags.push(DescribedMag { mag, path }),
                }
            }
        }
        self.mags.sort_by_key(|listed| listed.mag.order());
    }

    /// Returns whether the layer is of this format, or has no format.
    pub(super) fn may_be_wkw(&self) -> bool {
        self.format.as_ref().is_none_or(|format| format.eq_ignore_ascii_case("wkw"))
    }
}

fn signed(n: &serde_json::Number) -> Option<i128> {
    let below = || n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i128);
    whole(n).map(i128::from).or_else(|| n.as_i64().map(i128::from)).or_else(below)
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
}
