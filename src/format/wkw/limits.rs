//! The limits of a description. A few MiB of JSON could ask for any amount of memory: every level repeats the texts of
//! its layer, and any number of mags may share one folder.

use super::properties::Properties;

/// The most layers: as many as are looked for where there is no description.
const MAX_LAYERS: usize = 1024;
/// The most mags of all layers.
const MAX_MAGS: usize = 8192;
/// Bytes of the longest text that levels repeat: a name, a class, a unit.
const MAX_TEXT: usize = 1024;
/// Bytes of the longest path.
const MAX_PATH: usize = 4096;

/// Checks that a description is within the limits.
pub(super) fn check(properties: &Properties) -> Result<(), String> {
    at_most(MAX_LAYERS, properties.layers.len(), "layers in dataLayers")?;
    at_most(MAX_MAGS, properties.layers.iter().map(|layer| layer.mags.len()).sum(), "mags")?;
    let unit = properties.scale.as_ref().map(|scale| scale.unit.as_str());
    at_most(MAX_TEXT, unit.map_or(0, str::len), "bytes in the unit of scale")?;
    for layer in &properties.layers {
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
    Ok(())
}

fn at_most(limit: usize, found: usize, what: &str) -> Result<(), String> {
    if found <= limit { Ok(()) } else { Err(format!("it has {found} {what}: there must be at most {limit}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(layers: Value, unit: &str) -> Result<Properties, String> {
        let scale = json!({"factor": [1, 1, 1], "unit": unit});
        let properties = Properties::parse(json!({"scale": scale, "dataLayers": layers}).to_string().as_bytes())?;
        check(&properties).map(|()| properties)
    }

    #[test]
    fn descriptions_at_the_limits_are_read_and_those_beyond_refused() {
        let fault = |layers: Value| parse(layers, "m").map_or_else(|why| why, |_| "none".into());
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
        assert!(parse(json!([]), &"m".repeat(MAX_TEXT + 1)).is_err_and(|why| why.contains("the unit of scale")));
    }
}
