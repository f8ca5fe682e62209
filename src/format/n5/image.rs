//! Which arrays of a group are the levels of one image: those that its attributes list, or those called `s0`, `s1`, ...

use serde_json::Value;

use super::metadata::{Position, is_spatial};
use crate::format::chunked::{AxisDescription, Image, Level, Node, Nodes, join};
use crate::volume::NativeJson;

/// The most levels of an image.
const MAX_LEVELS: usize = 256;

/// Returns the image of a group; `None` if its arrays are not levels.
pub(super) fn image(group: &Node, nodes: &Nodes) -> Option<Image> {
    let array = |path: &str| {
        let node = nodes.get(&join(&group.path, path))?;
        node.array.as_ref().map(|array| (&node.attributes, array.as_ref().ok().map(|array| array.shape.len())))
    };
    let listed = listed(&group.attributes);
    let paths: Vec<String> = match listed.is_empty() {
        true => (0..MAX_LEVELS).map(|n| format!("s{n}")).take_while(|path| array(path).is_some()).collect(),
        false => listed.iter().map(|(path, _)| path.clone()).collect(),
    };
    let axes = paths.iter().find_map(|path| array(path)?.1)?;
    let of_group = Position::of(&group.attributes, axes);
    let factors = group.attributes.get("scales").or(group.attributes.get("downsamplingFactors"));
    let level = |(number, path): (usize, &String)| {
        let attributes = array(path).map(|(attributes, _)| attributes);
        // a level that has no transformation of its own takes its step from the group
        let described = listed.get(number).map(|(_, entry)| entry).filter(|entry| entry.contains_key("transform"));
        let own = described.or(attributes).map(|attributes| Position::of(attributes, axes));
        let has_own = |attributes: &NativeJson| {
            ["transform", "pixelResolution", "resolution"].iter().any(|key| attributes.contains_key(*key))
        };
        let position = match own.filter(|_| described.or(attributes).is_some_and(has_own)) {
            Some(own) => own,
            None => {
                let mut position = of_group.clone();
                let own = attributes.and_then(|attributes| attributes.get("downsamplingFactors"));
                position.downsample(&numbers(own.or_else(|| factors?.get(number)), axes));
                position
            }
        };
        Level { path: path.clone(), steps: position.steps, firsts: position.firsts }
    };
    let levels: Vec<Level> = paths.iter().enumerate().map(level).collect();
    let first = array(&levels.first()?.path).map(|(attributes, _)| Position::of(attributes, axes));
    let named = listed.first().map(|(_, entry)| Position::of(entry, axes)).filter(|_| described_axes(&listed));
    let names = named.or(first.filter(|p| p.units.iter().any(Option::is_some))).unwrap_or(of_group);
    let axes = names.names.iter().zip(&names.units).map(|(name, unit)| AxisDescription {
        name: name.clone(),
        unit: unit.clone(),
        spatial: is_spatial(name),
    });
    Some(Image { axes: axes.collect(), levels })
}

fn described_axes(listed: &[(String, NativeJson)]) -> bool {
    listed.first().is_some_and(|(_, entry)| entry.contains_key("transform"))
}

/// Returns the levels that a group lists, as Cellmap writes them.
fn listed(attributes: &NativeJson) -> Vec<(String, NativeJson)> {
    let first = attributes.get("multiscales").and_then(|list| list.get(0)).and_then(|image| image.get("datasets"));
    let entry = |entry: &Value| Some((entry.get("path")?.as_str()?.to_owned(), entry.as_object()?.clone()));
    first.and_then(Value::as_array).into_iter().flatten().take(MAX_LEVELS).filter_map(entry).collect()
}

/// Returns the numbers of a list, the last first; ones if it is none.
fn numbers(value: Option<&Value>, axes: usize) -> Vec<f64> {
    let list = value.and_then(Value::as_array).filter(|list| list.len() == axes);
    let numbers: Option<Vec<f64>> = list.map(|list| list.iter().rev().map(|n| n.as_f64().unwrap_or(1.0)).collect());
    numbers.unwrap_or_else(|| vec![1.0; axes])
}

/// Returns the paths below a group that its attributes name, or that are usual.
pub(super) fn named_paths(group: &Node) -> Vec<String> {
    let listed: Vec<String> = listed(&group.attributes).into_iter().map(|(path, _)| path).collect();
    let levels = group.attributes.get("scales").and_then(Value::as_array).map_or(1, Vec::len).min(MAX_LEVELS);
    if listed.is_empty() { (0..levels.max(8)).map(|n| format!("s{n}")).collect() } else { listed }
}
