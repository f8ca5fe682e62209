//! Describes a dataset and its layers: the properties that all formats share, the native JSON with the keys of
//! `VolumeDataLayout`, the metadata entries, and the position of a survey.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::chunk::no_value_number;
use super::chunk_grid::ChunkGrid;
use super::description::{AxisDescriptor, Channel, Description, MetadataEntry, MetadataValue, SampleFormat};
use super::store::StoredLayer;
use crate::format;
use crate::volume::{Affine, Arithmetic, ArrayInfo, Axis, Corner, Geometry, NativeJson, Scaling};

/// Returns the properties of a stored layer; `stored` is `None` for a layer that cannot be read.
pub(super) fn array_info(
    description: &Description,
    channel: &Channel,
    grid: &ChunkGrid,
    lod: u32,
    stored: Option<&StoredLayer>,
    quality: Option<u8>,
) -> ArrayInfo {
    let lowered = quality.filter(|_| stored.is_some_and(|stored| stored.method.is_wavelet()));
    let bricks = grid.brick_grid();
    let shape = bricks.shape();
    let dimensions = description.axes.len();
    let mut axes: Vec<Axis> = (0..dimensions)
        .map(|axis| {
            let (d, count) = (dimensions - 1 - axis, shape[axis]);
            match channel.per_trace {
                Some(_) if d == 0 => numbered("value", grid.spacing(0) as f64, count),
                // the layer has every so many samples of the axis
                _ => {
                    let (axis, spacing) = (&description.axes[d], grid.spacing(d) as f64);
                    let (unit, first) = (axis.unit().map(str::to_owned), axis.min.into());
                    Axis { name: axis.name.clone(), unit, first, step: axis.step() * spacing, count, spatial: true }
                }
            }
        })
        .collect();
    if grid.components > 1 {
        axes.push(numbered("component", 1.0, grid.components));
    }
    let no_value = no_value_number(channel);
    let scaled = matches!(channel.format, SampleFormat::U8 | SampleFormat::U16);
    let scaling = scaled.then(|| Scaling {
        scale: channel.integer_scale.into(),
        offset: channel.integer_offset.into(),
        arithmetic: Arithmetic::Single,
        no_value,
        is_code: false,
    });
    let [low, high] = channel.value_range.map(f64::from);
    ArrayInfo {
        lod: lod as usize,
        axes,
        value_range: Some((low, high)),
        no_value,
        scaling,
        codec: stored.map(|stored| stored.method.codec()),
        warnings: lowered.map(|level| format!("decoded with --quality {level}, not at its best")).into_iter().collect(),
        native: layer_keys(description, channel, stored),
        ..ArrayInfo::new(channel.format.dtype(), bricks, grid.brick_shape())
    }
}

/// Returns an axis of indices, without annotation.
fn numbered(name: &str, step: f64, count: u64) -> Axis {
    Axis { name: name.into(), unit: None, first: 0.0, step, count, spatial: false }
}

fn layer_keys(description: &Description, channel: &Channel, stored: Option<&StoredLayer>) -> NativeJson {
    let layout = &description.layout;
    format::native(json!({
        "channel": channel.name,
        "unit": channel.unit,
        "format": channel.format.name(),
        "components": channel.components,
        "channelMapping": channel.mapping(),
        "noValue": channel.no_value,
        "integerScale": channel.integer_scale,
        "integerOffset": channel.integer_offset,
        "brickSize": layout.brick,
        "margins": [layout.negative_margin, layout.positive_margin],
        "compressionMethod": stored.map(|stored| stored.method.name()),
        "compressionTolerance": stored.and_then(|stored| stored.tolerance),
    }))
}

/// Returns the layout, the axes and the channels.
pub(crate) fn native(description: &Description) -> NativeJson {
    let layout = &description.layout;
    let axis = |axis: &AxisDescriptor| {
        json!({
            "name": axis.name,
            "unit": axis.unit,
            "numSamples": axis.samples,
            "coordinateMin": axis.min,
            "coordinateMax": axis.max,
        })
    };
    let channel = |channel: &Channel| {
        json!({
            "name": channel.name,
            "unit": channel.unit,
            "format": channel.format.name(),
            "components": channel.components,
            "valueRange": channel.value_range,
            "channelMapping": channel.mapping(),
            "mappedValues": channel.per_trace,
            "discrete": channel.discrete,
            "renderable": channel.renderable,
            "allowLossyCompression": channel.lossy_allowed,
            "useNoValue": channel.no_value.is_some(),
            "noValue": channel.no_value,
            "integerScale": channel.integer_scale,
            "integerOffset": channel.integer_offset,
        })
    };
    format::native(json!({
        "layout": {
            "brickSize": layout.brick,
            "negativeMargin": layout.negative_margin,
            "positiveMargin": layout.positive_margin,
            "brickSize2DMultiplier": layout.multiplier_2d,
            "lodLevels": layout.lods,
            "create2DLODs": layout.lods_2d,
            "fullResolutionDimension": layout.full_resolution,
        },
        "axes": description.axes.iter().map(axis).collect::<Value>(),
        "channels": description.channels.iter().map(channel).collect::<Value>(),
    }))
}

/// Returns the list of all entries: category, name, type and value; BLOBs as base64 and with their length.
pub(crate) fn metadata(description: &Description) -> Value {
    let json_of = |entry: &MetadataEntry| {
        let (kind, value) = match &entry.value {
            MetadataValue::Int(values) => (typed("Int", values.len()), one_or_all(values)),
            MetadataValue::Float(values) => (typed("Float", values.len()), one_or_all(values)),
            MetadataValue::Double(values) => (typed("Double", values.len()), one_or_all(values)),
            MetadataValue::Text(text) => ("String".into(), text.as_str().into()),
            MetadataValue::Blob(blob) => ("BLOB".into(), STANDARD.encode(blob).into()),
            MetadataValue::Other(kind, value) => (kind.clone(), value.clone()),
        };
        let mut json = json!({"category": entry.category, "name": entry.name, "type": kind, "value": value});
        if let MetadataValue::Blob(blob) = &entry.value {
            json["length"] = blob.len().into();
        }
        json
    };
    description.metadata.iter().map(json_of).collect()
}

/// Returns the name of a type of this many elements.
fn typed(scalar: &str, length: usize) -> String {
    if length == 1 { scalar.to_owned() } else { format!("{scalar}Vector{length}") }
}

fn one_or_all<T: Copy + Into<Value>>(values: &[T]) -> Value {
    match values {
        [one] => (*one).into(),
        all => all.iter().copied().collect(),
    }
}

const CATEGORY: &str = "SurveyCoordinateSystem";

/// Returns the survey's corners and units; `None` if no two axes are those of a survey.
pub(crate) fn geometry(description: &Description) -> Option<Geometry> {
    let named = |name: &str| description.axes.iter().find(|axis| axis.name == name);
    let two = |first: &str, second: &str| Some((named(first)?, named(second)?));
    let vertical = ["Sample", "Time", "Depth", "K", "Z"].into_iter().find_map(named);
    let ((inline, crossline), map) = if let Some(axes) = two("Inline", "Crossline") {
        let lines = ["Origin", "InlineSpacing", "CrosslineSpacing"].map(|name| vector(description, name));
        let map = match lines {
            [Some(origin), Some(inline), Some(crossline)] => Some(Affine { origin, steps: [inline, crossline] }),
            _ => by_grid_points(description),
        };
        (axes, map)
    } else if let Some(axes) = two("I", "J") {
        (axes, by_steps(description, vertical.filter(|axis| axis.name == "K")))
    } else {
        (two("X", "Y")?, Some(Affine { origin: [0.0; 2], steps: [[1.0, 0.0], [0.0, 1.0]] }))
    };
    let corners = [[false, false], [true, false], [false, true], [true, true]].map(|[last_inline, last_crossline]| {
        let (i, inline) = end(inline, last_inline);
        let (j, crossline) = end(crossline, last_crossline);
        let annotation = [inline, crossline];
        let world = map.as_ref().map(|map| map.map(annotation));
        Corner { index: [i, j], annotation, world: world.filter(|place| place.iter().all(|x| x.is_finite())) }
    });
    // a map that is finite at all corners
    let map = map.filter(|_| corners.iter().all(|corner| corner.world.is_some())).and_then(Affine::finite);
    let lines = [inline, crossline];
    let of_indexes = |map: Affine| map.of_indexes(lines.map(|axis| axis.min.into()), lines.map(AxisDescriptor::step));
    let horizontal = text(description, "Unit");
    let horizontal_factor = horizontal.as_deref().and_then(|unit| factor(unit, &LENGTHS));
    let vertical_unit = vertical.and_then(AxisDescriptor::unit);
    let depth = vertical_unit.and_then(|unit| factor(unit, &LENGTHS));
    let duration = vertical_unit.and_then(|unit| factor(unit, &TIMES));
    Some(Geometry {
        corners,
        annotation_to_world: map,
        index_to_world: map.map(of_indexes).and_then(Affine::finite),
        horizontal_kind: if horizontal_factor.is_some() { "length" } else { "unknown" },
        horizontal_factor: horizontal_factor.unwrap_or(1.0),
        horizontal_unit: horizontal,
        // the format does not tell one-way from two-way time
        vertical_kind: match (vertical.map(|axis| axis.name.as_str()), depth, duration) {
            (Some("Time"), Some(_), _) | (Some("Depth"), _, Some(_)) => "unknown",
            (_, Some(_), _) | (Some("Depth"), ..) => "depth",
            (_, _, Some(_)) | (Some("Time"), ..) => "time",
            _ => "unknown",
        },
        vertical_factor: depth.or(duration).unwrap_or(1.0),
        vertical_unit: vertical_unit.map(str::to_owned),
        coordinate_system: text(description, "CRSWkt"),
    })
}

/// Returns index and annotation of the first or last sample of an axis.
fn end(axis: &AxisDescriptor, last: bool) -> (u64, f64) {
    let index = if last { axis.samples.saturating_sub(1) } else { 0 };
    (index, f64::from(if index == 0 { axis.min } else { axis.max }))
}

/// Metres in a unit of length.
const LENGTHS: [(&str, f64); 3] = [("m", 1.0), ("ft", 0.3048), ("ussft", 1200.0 / 3937.0)];
/// Seconds in a unit of time.
const TIMES: [(&str, f64); 2] = [("s", 1.0), ("ms", 0.001)];

fn factor(unit: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

/// Returns the map of a survey with axes I, J and K, at the first K.
fn by_steps(description: &Description, vertical: Option<&AxisDescriptor>) -> Option<Affine> {
    let vector = |name: &str| vector::<3>(description, name).map(|[x, y, _]| [x, y]);
    let k = vertical.map_or(0.0, |axis| f64::from(axis.min));
    let down = vector("KStepVector").filter(|_| vertical.is_some()).unwrap_or_default();
    let origin = vector("Origin3D")?;
    Some(Affine {
        origin: [0, 1].map(|axis: usize| origin[axis] + k * down[axis]),
        steps: [vector("IStepVector")?, vector("JStepVector")?],
    })
}

/// Returns the map through three of the four grid points, any of which may be missing.
fn by_grid_points(description: &Description) -> Option<Affine> {
    let points: Vec<_> = (0..4).filter_map(|number| grid_point(description, number)).collect();
    (0..points.len()).find_map(|left_out| {
        let mut three = points.clone();
        // of four points, the last is left out first
        if points.len() == 4 {
            three.remove(3 - left_out);
        }
        let three: [[[f64; 2]; 2]; 3] = three.try_into().ok()?;
        Affine::through(three.map(|[annotation, _]| annotation), three.map(|[_, world]| world))
    })
}

/// Returns annotation and world position of a grid point.
fn grid_point(description: &Description, number: usize) -> Option<[[f64; 2]; 2]> {
    let name = format!("GridPoint{number}");
    let annotation = ["Inline", "Crossline"].map(|axis| Some(vector::<1>(description, &format!("{name}{axis}"))?[0]));
    Some([[annotation[0]?, annotation[1]?], vector(description, &name)?])
}

/// Returns a number, or a vector, of the survey's metadata.
fn vector<const N: usize>(description: &Description, name: &str) -> Option<[f64; N]> {
    let values: Vec<f64> = match description.entry(CATEGORY, name)? {
        MetadataValue::Int(values) => values.iter().map(|value| f64::from(*value)).collect(),
        MetadataValue::Float(values) => values.iter().map(|value| f64::from(*value)).collect(),
        MetadataValue::Double(values) => values.clone(),
        _ => return None,
    };
    values.try_into().ok()
}

/// Returns a text of the survey's metadata, unless it is empty.
fn text(description: &Description, name: &str) -> Option<String> {
    match description.entry(CATEGORY, name)? {
        MetadataValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::sound;
    use super::*;

    #[test]
    fn in_the_formats_spelling() {
        let mut description = sound();
        description.layout.full_resolution = Some(1);
        description.axes[2].max = f32::NAN;
        description.channels.push(Channel {
            per_trace: Some(240),
            no_value: Some(-1.5),
            value_range: [f32::NAN, 2.0],
            ..description.channels[0].clone()
        });
        let native = native(&description);
        assert_eq!(native.keys().collect::<Vec<_>>(), ["layout", "axes", "channels"]);
        assert_eq!(native["layout"]["brickSize"], 64);
        assert_eq!(native["layout"]["fullResolutionDimension"], 1);
        let inline =
            json!({"name": "Inline", "unit": "", "numSamples": 20, "coordinateMin": 0.0, "coordinateMax": null});
        assert_eq!(native["axes"][2], inline);
        let [first, second] = [0, 1].map(|n| &native["channels"][n]);
        assert_eq!(
            (&first["channelMapping"], &first["mappedValues"], &first["noValue"]),
            (&json!("Direct"), &json!(null), &json!(null))
        );
        assert_eq!((&second["channelMapping"], &second["mappedValues"]), (&json!("PerTrace"), &json!(240)));
        assert_eq!((&second["valueRange"], &second["noValue"]), (&json!([null, 2.0]), &json!(-1.5)));
    }

    #[test]
    fn entries_of_every_type() {
        let entry = |value| MetadataEntry { category: "c".into(), name: "n".into(), value };
        let description = Description {
            metadata: vec![
                entry(MetadataValue::Int(vec![-3])),
                entry(MetadataValue::Int(vec![1, 2])),
                entry(MetadataValue::Float(vec![0.5, f32::NAN, f32::INFINITY])),
                entry(MetadataValue::Double(vec![0.1])),
                entry(MetadataValue::Text("t".into())),
                entry(MetadataValue::Blob(vec![0, 1, 2, 255])),
                entry(MetadataValue::Other("Matrix".into(), json!([[1]]))),
            ],
            ..Description::default()
        };
        let expected = [
            ("Int", json!(-3)),
            ("IntVector2", json!([1, 2])),
            ("FloatVector3", json!([0.5, null, null])),
            ("Double", json!(0.1)),
            ("String", json!("t")),
            ("BLOB", json!("AAEC/w==")),
            ("Matrix", json!([[1]])),
        ];
        let found = metadata(&description);
        for (number, (kind, value)) in expected.into_iter().enumerate() {
            let mut expected = json!({"category": "c", "name": "n", "type": kind, "value": value});
            if kind == "BLOB" {
                expected["length"] = json!(4);
            }
            assert_eq!(found[number], expected);
        }
        assert_eq!(metadata(&Description::default()), json!([]));
    }

    /// Name, samples, first and last annotation.
    type Line = (&'static str, u64, f32, f32);

    const LINES: [Line; 3] = [("Sample", 10, 0.0, 36.0), ("Crossline", 7, 2184.0, 2196.0), ("Inline", 5, 100.0, 92.0)];

    fn of(axes: &[Line], metadata: &[(&str, MetadataValue)]) -> Option<Geometry> {
        let axis = |(name, samples, min, max): &Line| AxisDescriptor {
            name: (*name).into(),
            unit: String::new(),
            samples: *samples,
            min: *min,
            max: *max,
        };
        let entry = |(name, value): &(&str, MetadataValue)| MetadataEntry {
            category: CATEGORY.into(),
            name: (*name).into(),
            value: value.clone(),
        };
        let description = Description {
            axes: axes.iter().map(axis).collect(),
            metadata: metadata.iter().map(entry).collect(),
            ..sound()
        };
        geometry(&description)
    }

    fn worlds(axes: &[Line], metadata: &[(&str, MetadataValue)]) -> [Option<[f64; 2]>; 4] {
        of(axes, metadata).unwrap().corners.map(|corner| corner.world)
    }

    fn vectors<const N: usize>(name: &'static str, values: [f64; N]) -> (&'static str, MetadataValue) {
        (name, MetadataValue::Double(values.to_vec()))
    }

    fn lines() -> [(&'static str, MetadataValue); 3] {
        [
            vectors("Origin", [431_964.75, 6_348_565.25]),
            vectors("InlineSpacing", [3.5, 12.125]),
            vectors("CrosslineSpacing", [-12.25, 3.0]),
        ]
    }

    /// The corners as an independent reader computes them.
    const CORNERS: [[f64; 2]; 4] = [
        [405_560.75, 6_356_329.75],
        [405_532.75, 6_356_232.75],
        [405_413.75, 6_356_365.75],
        [405_385.75, 6_356_268.75],
    ];

    #[test]
    fn inlines_and_crosslines() {
        let found = of(&LINES, &lines()).unwrap();
        assert_eq!(found.corners.map(|corner| corner.index), [[0, 0], [4, 0], [0, 6], [4, 6]]);
        let annotation = [[100.0, 2184.0], [92.0, 2184.0], [100.0, 2196.0], [92.0, 2196.0]];
        assert_eq!(found.corners.map(|corner| corner.annotation), annotation);
        assert_eq!(found.corners.map(|corner| corner.world), CORNERS.map(Some));
        // inlines go down in steps of 2, crosslines up
        let by_annotation = [[3.5, -12.25, 431_964.75], [12.125, 3.0, 6_348_565.25]];
        assert_eq!(found.annotation_to_world.unwrap().rows(), by_annotation);
        let by_index = [[-7.0, -24.5, CORNERS[0][0]], [-24.25, 6.0, CORNERS[0][1]]];
        assert_eq!(found.index_to_world.unwrap().rows(), by_index);
        let permuted = [LINES[2], LINES[0], ("Trace (offset)", 3, 1.0, 3.0), LINES[1]];
        assert_eq!(worlds(&permuted, &lines()), CORNERS.map(Some));
    }

    #[test]
    fn steps_in_three_dimensions() {
        let axes = [("K", 10, 5.0, 95.0), ("J", 7, 10.0, 22.0), ("I", 5, 100.0, 108.0)];
        let steps = [
            vectors("Origin3D", [1000.0, 2000.0, -50.0]),
            vectors("IStepVector", [10.0, 1.0, 0.5]),
            vectors("JStepVector", [-2.0, 20.0, 0.25]),
            vectors("KStepVector", [0.125, 0.25, -4.0]),
        ];
        let expected = [[1980.625, 2301.25], [2060.625, 2309.25], [1956.625, 2541.25], [2036.625, 2549.25]];
        assert_eq!(worlds(&axes, &steps), expected.map(Some));
        // without K
        assert_eq!(worlds(&[LINES[0], axes[1], axes[2]], &steps)[0], Some([1980.0, 2300.0]));
        assert_eq!(worlds(&axes, &lines()), [None; 4]);
        assert_eq!(worlds(&LINES, &steps), [None; 4]);
    }

    #[test]
    fn grid_points() {
        let points = [("0", 100.0, 2184.0), ("1", 92.0, 2184.0), ("2", 100.0, 2196.0), ("3", 92.0, 2196.0)];
        let mut metadata = Vec::new();
        let names: Vec<_> =
            points.map(|(n, ..)| ["", "Inline", "Crossline"].map(|what| format!("GridPoint{n}{what}"))).to_vec();
        for ((_, inline, crossline), (names, world)) in points.iter().zip(names.iter().zip(CORNERS)) {
            metadata.push((names[0].as_str(), MetadataValue::Double(world.to_vec())));
            metadata.push((names[1].as_str(), MetadataValue::Float(vec![*inline])));
            metadata.push((names[2].as_str(), MetadataValue::Int(vec![*crossline as i32])));
        }
        let close = |metadata: &[(&str, MetadataValue)]| {
            worlds(&LINES, metadata).iter().zip(CORNERS).all(|(found, expected)| {
                found.is_some_and(|found| (0..2).all(|axis| (found[axis] - expected[axis]).abs() < 1e-6))
            })
        };
        assert!(close(&metadata));
        for left_out in 0..4 {
            let mut three = metadata.clone();
            three.drain(left_out * 3..left_out * 3 + 3);
            assert!(close(&three), "{left_out}");
        }
        // points 0 and 1 coincide: the others are enough
        let mut twice = metadata.clone();
        twice.splice(
            3..6,
            [
                (names[1][0].as_str(), metadata[0].1.clone()),
                (names[1][1].as_str(), metadata[1].1.clone()),
                (names[1][2].as_str(), metadata[2].1.clone()),
            ],
        );
        assert!(close(&twice));
        assert_eq!(worlds(&LINES, &metadata[..6]), [None; 4]);
        // the older coordinate system takes precedence
        let both: Vec<_> = lines().into_iter().chain(metadata.iter().take(9).cloned()).collect();
        assert_eq!(worlds(&LINES, &both), CORNERS.map(Some));
    }

    #[test]
    fn axes_in_the_world() {
        let axes = [("Z", 10, 0.0, 9.0), ("Y", 7, 10.0, 22.0), ("X", 5, 100.0, 108.0)];
        assert_eq!(worlds(&axes, &[]), [[100.0, 10.0], [108.0, 10.0], [100.0, 22.0], [108.0, 22.0]].map(Some));
    }

    #[test]
    fn incomplete_metadata_gives_no_coordinates() {
        assert_eq!(of(&[LINES[0], LINES[1]], &lines()), None);
        assert_eq!(of(&[LINES[0], ("inline", 5, 0.0, 4.0), LINES[1]], &lines()), None);
        assert_eq!(worlds(&LINES, &[]), [None; 4]);
        let mut odd = lines();
        odd[1].1 = MetadataValue::Double(vec![f64::NAN, 1.0]);
        assert_eq!(worlds(&LINES, &odd), [None; 4]);
        let found = of(&LINES, &odd).unwrap();
        assert_eq!((found.annotation_to_world, found.index_to_world), (None, None));
        odd[1].1 = MetadataValue::Text("3".into());
        assert_eq!(worlds(&LINES, &odd), [None; 4]);
    }

    #[test]
    fn one_trace_wide() {
        let found = of(&[LINES[0], LINES[1], ("Inline", 1, 100.0, 900.0)], &lines()).unwrap();
        assert_eq!(found.corners[3].index, [0, 6]);
        assert_eq!(found.corners[3].annotation, [100.0, 2196.0]);
        assert_eq!(found.corners[1].world, Some(CORNERS[0]));
        assert_eq!(found.index_to_world.unwrap().map([0.0, 0.0]), CORNERS[0]);
    }

    #[test]
    fn units() {
        let of = |vertical: &'static str, unit: &str, horizontal: &str| {
            let mut description = sound();
            description.axes[0].name = vertical.into();
            description.axes[0].unit = unit.into();
            let value = MetadataValue::Text(horizontal.into());
            description.metadata = vec![MetadataEntry { category: CATEGORY.into(), name: "Unit".into(), value }];
            geometry(&description).unwrap()
        };
        let vertical = |name, unit| {
            let found = of(name, unit, "");
            (found.vertical_unit, found.vertical_factor, found.vertical_kind)
        };
        let some = |unit: &str| Some(unit.to_owned());
        assert_eq!(vertical("Sample", "ms"), (some("ms"), 0.001, "time"));
        assert_eq!(vertical("Time", "s"), (some("s"), 1.0, "time"));
        assert_eq!(vertical("Time", ""), (None, 1.0, "time"));
        assert_eq!(vertical("Depth", ""), (None, 1.0, "depth"));
        assert_eq!(vertical("Depth", "ms"), (some("ms"), 0.001, "unknown"));
        assert_eq!(vertical("Depth", "ft"), (some("ft"), 0.3048, "depth"));
        assert_eq!(vertical("Time", "m"), (some("m"), 1.0, "unknown"));
        assert_eq!(vertical("Sample", "furlong"), (some("furlong"), 1.0, "unknown"));
        assert_eq!(vertical("Sample", "unitless"), (None, 1.0, "unknown"));
        assert_eq!(vertical("Other", "m"), (None, 1.0, "unknown"));
        let horizontal = |unit| {
            let found = of("Sample", "ms", unit);
            (found.horizontal_unit, found.horizontal_factor, found.horizontal_kind)
        };
        assert_eq!(horizontal("ussft"), (some("ussft"), 1200.0 / 3937.0, "length"));
        assert_eq!(horizontal("deg"), (some("deg"), 1.0, "unknown"));
        assert_eq!(horizontal(""), (None, 1.0, "unknown"));
    }
}
