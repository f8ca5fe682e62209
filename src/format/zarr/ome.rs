//! OME-NGFF: the attributes that make the arrays of a group the levels of one image (versions 0.1 to 0.5).

use serde_json::Value;

use crate::format::chunked::{AxisDescription, Image, Level, short};
use crate::volume::NativeJson;

/// The most images of a group, and levels of an image.
const MAX_IMAGES: usize = 256;
const MAX_LEVELS: usize = 256;

/// Returns the keys of OME-NGFF in the attributes of a group: below `ome` since version 0.5.
pub(super) fn keys(attributes: &NativeJson) -> &NativeJson {
    attributes.get("ome").and_then(Value::as_object).unwrap_or(attributes)
}

/// Returns the images of a group.
pub(super) fn images(attributes: &NativeJson) -> Vec<Image> {
    let list = keys(attributes).get("multiscales").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(image).take(MAX_IMAGES).collect()
}

/// Returns the paths below a group that its attributes name: what is there where a store does not list its objects.
pub(super) fn named_paths(attributes: &NativeJson) -> Vec<String> {
    let keys = keys(attributes);
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let path = |entry: &Value| entry.get("path").unwrap_or(entry).as_str().map(str::to_owned);
    let mut paths: Vec<String> = images(attributes).into_iter().flat_map(|m| m.levels).map(|l| l.path).collect();
    for (outer, inner) in [("plate", "wells"), ("well", "images")] {
        paths.extend(list(keys.get(outer).and_then(|outer| outer.get(inner))).iter().filter_map(path));
    }
    for name in ["labels", "series"] {
        paths.extend(list(keys.get(name)).iter().filter_map(path));
    }
    // an image has its labels in a group of this name, without saying so
    if keys.contains_key("multiscales") {
        paths.push("labels".into());
    }
    paths.truncate(1 << 12);
    paths
}

/// Returns the least and the greatest value of the windows in which the channels of an image are to be shown.
pub(super) fn value_range(attributes: &NativeJson) -> Option<(f64, f64)> {
    let channels = keys(attributes).get("omero")?.get("channels")?.as_array()?;
    let windows = channels.iter().filter_map(|channel| {
        let window = channel.get("window")?;
        let bound = |name: &str| window.get(name).and_then(Value::as_f64);
        Some((bound("start").or(bound("min"))?, bound("end").or(bound("max"))?))
    });
    let range = windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    (range.0 < range.1).then_some(range)
}

/// Reads an image; `None` if it has no levels.
fn image(value: &Value) -> Option<Image> {
    let axes: Vec<AxisDescription> =
        value.get("axes").and_then(Value::as_array).into_iter().flatten().map(axis).collect();
    let levels = value.get("datasets")?.as_array()?.iter().take(MAX_LEVELS);
    let whole = transformation(value.get("coordinateTransformations"), axes.len());
    let level = |dataset: &Value| {
        let path = dataset.get("path")?.as_str()?.to_owned();
        let (mut steps, mut firsts) = transformation(dataset.get("coordinateTransformations"), axes.len());
        // the transformation of the image comes after that of the level
        for (axis, (step, first)) in steps.iter_mut().zip(&mut firsts).enumerate() {
            *step *= whole.0[axis];
            *first = *first * whole.0[axis] + whole.1[axis];
        }
        Some(Level { path, steps, firsts })
    };
    let levels: Vec<Level> = levels.filter_map(level).collect();
    (!levels.is_empty()).then_some(Image { axes, levels })
}

/// Reads an axis: an object since version 0.4, a name before.
fn axis(value: &Value) -> AxisDescription {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(short);
    let name = value.as_str().map(short).or_else(|| text("name")).unwrap_or_default();
    let is_channel = text("type").map_or(name == "c", |kind| kind != "space" && kind != "time");
    AxisDescription { name, unit: text("unit"), spatial: !is_channel }
}

/// Returns the scale and the translation along each axis of a list of transformations, one after another.
fn transformation(list: Option<&Value>, axes: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut steps, mut firsts) = (vec![1.0; axes], vec![0.0; axes]);
    for entry in list.and_then(Value::as_array).into_iter().flatten() {
        let numbers = |key: &str| -> Option<Vec<f64>> {
            let list: Option<Vec<f64>> = entry.get(key)?.as_array()?.iter().map(Value::as_f64).collect();
            list.filter(|list| list.len() == axes && list.iter().all(|number| number.is_finite()))
        };
        if let Some(scale) = numbers("scale") {
            for axis in 0..axes {
                steps[axis] *= scale[axis];
                firsts[axis] *= scale[axis];
            }
        }
        if let Some(translation) = numbers("translation") {
            (0..axes).for_each(|axis| firsts[axis] += translation[axis]);
        }
    }
    (steps, firsts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::native;
    use crate::volume::Axis;

    #[test]
    fn transformations_of_the_level_and_of_the_image_follow_each_other() {
        let image = json!({
            "axes": [{"name": "c", "type": "channel"}, {"name": "x", "type": "space", "unit": "micrometer"}],
            "datasets": [{"path": "0", "coordinateTransformations":
                [{"type": "scale", "scale": [1, 0.5]}, {"type": "translation", "translation": [0, 3]}]}],
            "coordinateTransformations": [{"type": "scale", "scale": [1, 2]}],
        });
        for attributes in [json!({"multiscales": [image]}), json!({"ome": {"version": "0.5", "multiscales": [image]}})]
        {
            let found = images(&native(attributes));
            let axes = found[0].axes_of(&found[0].levels[0], &[2, 10], &[]);
            let x = Axis {
                name: "x".into(),
                unit: Some("micrometer".into()),
                first: 6.0,
                step: 1.0,
                count: 10,
                spatial: true,
            };
            assert_eq!((axes[0].spatial, &axes[1]), (false, &x));
        }
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let count = |value: Value| images(&native(json!({"multiscales": value}))).len();
        assert_eq!(
            [json!([]), json!({}), json!([{}]), json!([{"datasets": []}]), json!([{"datasets": [{}]}])].map(count),
            [0; 5]
        );
        let names_only = json!([{"axes": ["t", "c", "y"], "datasets": [{"path": "s0"}]}]);
        let found = images(&native(json!({"multiscales": names_only})));
        let axes = found[0].axes_of(&found[0].levels[0], &[1, 2, 3], &[]);
        assert_eq!(
            axes.iter().map(|axis| (&*axis.name, axis.spatial)).collect::<Vec<_>>(),
            [("t", true), ("c", false), ("y", true)]
        );
        assert_eq!(found[0].axes_of(&found[0].levels[0], &[3], &axes[2..]), axes[2..], "another number of axes");
    }

    #[test]
    fn windows_give_the_range_of_all_channels() {
        let range = |channels: Value| value_range(&native(json!({"omero": {"channels": channels}})));
        let window = |start: i32, end: i32| json!({"window": {"min": 0, "max": 65535, "start": start, "end": end}});
        assert_eq!(range(json!([window(5, 90), window(-1, 20), {}])), Some((-1.0, 90.0)));
        assert_eq!([json!([]), json!([{}]), json!([window(3, 3)])].map(range), [None; 3]);
    }
}
