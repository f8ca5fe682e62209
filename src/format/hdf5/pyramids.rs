//! Datasets that are levels of one image: those of Imaris and BigDataViewer, by their paths.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::attributes::Attributes;
use super::tree::{Node, spatial};
use crate::format::bytes::decimal;
use crate::format::{Array, native};
use crate::volume::{Axis, Dims, NativeJson};

/// The level of an image that a dataset is.
pub(super) struct Level {
    /// The name of the layer.
    pub layer: String,
    pub lod: usize,
    /// For each axis the position of the first sample, and the step.
    positions: [(f64, f64); 3],
    unit: Option<String>,
    pub native: NativeJson,
}

impl Level {
    pub(super) fn axes(&self, shape: &Dims) -> Vec<Axis> {
        let axes = ["z", "y", "x"].into_iter().zip(self.positions).zip(shape.iter());
        axes.map(|((name, position), count)| spatial(name, self.unit.clone(), position, *count)).collect()
    }
}

/// The layer and the level that a path means.
fn level_of(path: &str) -> Option<(String, usize)> {
    let parts: Vec<&str> = path.split('/').collect();
    let numbered = |part: &str, name: &str| part.strip_prefix(name).and_then(decimal);
    match parts[..] {
        ["DataSet", level, time, channel, "Data"] => {
            numbered(time, "TimePoint ").and(numbered(channel, "Channel "))?;
            Some((format!("DataSet/{time}/{channel}"), numbered(level, "ResolutionLevel ")? as usize))
        }
        [time, setup, level, "cells"] => {
            let is_number = |part: &str, name: char| {
                part.strip_prefix(name).is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let is_image = is_number(time, 't') && is_number(setup, 's');
            Some((format!("{time}/{setup}"), decimal(level).filter(|_| is_image)? as usize))
        }
        _ => None,
    }
}

/// Returns the levels by the paths of their datasets. Levels are numbered without holes.
pub(super) fn find(datasets: &[Node], groups: &BTreeMap<String, Attributes>) -> HashMap<String, Level> {
    let mut images: BTreeMap<String, BTreeMap<usize, (&str, Dims)>> = BTreeMap::new();
    for node in datasets {
        if let (Some((layer, number)), Ok(array)) = (level_of(&node.path), &node.array)
            && array.info().shape().len() == 3
        {
            images.entry(layer).or_default().insert(number, (&node.path, array.info().shape()));
        }
    }
    let mut found = HashMap::new();
    for (layer, levels) in images {
        let Some((_, (_, finest))) = levels.first_key_value() else { continue };
        let image = groups.get("DataSetInfo/Image").filter(|_| layer.starts_with("DataSet/"));
        let number = |attributes: &Attributes, name: String| attributes.text(&name)?.trim().parse::<f64>().ok();
        for (lod, (path, shape)) in levels.values().enumerate() {
            let channel = groups.get(path.strip_suffix("/Data").unwrap_or(path));
            let sizes: Vec<Option<f64>> =
                ["Z", "Y", "X"].iter().map(|axis| number(channel?, format!("ImageSize{axis}"))).collect();
            let position = |axis: usize| {
                let extent = image.and_then(|image| {
                    let end = |name: &str| number(image, format!("{name}{}", 2 - axis));
                    Some((end("ExtMin")?, end("ExtMax")?))
                });
                match (extent, sizes.get(axis).copied().flatten()) {
                    (Some((least, most)), Some(size)) if size >= 1.0 && most > least => {
                        let step = (most - least) / size;
                        (least + step / 2.0, step)
                    }
                    _ => {
                        // positions are those of centres
                        let factor = (finest[axis] as f64 / shape[axis].max(1) as f64).round().max(1.0);
                        ((factor - 1.0) / 2.0, factor)
                    }
                }
            };
            let unit = image.and_then(|image| image.text("Unit")).filter(|unit| !unit.is_empty());
            let native = if sizes.iter().all(Option::is_some) {
                native(json!({"image_size": sizes}))
            } else {
                NativeJson::new()
            };
            let level = Level { layer: layer.clone(), lod, positions: [0, 1, 2].map(position), unit, native };
            found.insert((*path).to_owned(), level);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_levels() {
        let of = |path: &str| level_of(path);
        assert_eq!(
            of("DataSet/ResolutionLevel 2/TimePoint 0/Channel 1/Data"),
            Some(("DataSet/TimePoint 0/Channel 1".into(), 2))
        );
        assert_eq!(of("t00000/s01/3/cells"), Some(("t00000/s01".into(), 3)));
        for path in [
            "cells",
            "t00000/s01/x/cells",
            "tx/s01/3/cells",
            "DataSet/ResolutionLevel 0/TimePoint 0/Channel 0/Histogram",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
