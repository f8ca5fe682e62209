//! The native JSON of a dataset: its description, with the keys of `VolumeDataLayout`.

use serde_json::{Value, json};

use super::super::description::{AxisDescriptor, Channel, Description, LayoutDescriptor};
use super::segy;
use crate::volume::NativeJson;

/// Returns the layout, the axes, the channels, and the headers of the SEG-Y file that the data were imported from.
pub(crate) fn native(description: &Description) -> NativeJson {
    let mut native = NativeJson::new();
    native.insert("layout".into(), layout(&description.layout));
    native.insert("axes".into(), description.axes.iter().map(axis).collect());
    native.insert("channels".into(), description.channels.iter().map(channel).collect());
    if let Some(headers) = segy::headers(description) {
        native.insert("segy".into(), headers.into());
    }
    native
}

fn layout(layout: &LayoutDescriptor) -> Value {
    json!({
        "brickSize": layout.brick,
        "negativeMargin": layout.negative_margin,
        "positiveMargin": layout.positive_margin,
        "brickSize2DMultiplier": layout.multiplier_2d,
        "lodLevels": layout.lods,
        "create2DLODs": layout.lods_2d,
        "fullResolutionDimension": layout.full_resolution,
    })
}

fn axis(axis: &AxisDescriptor) -> Value {
    json!({
        "name": axis.name,
        "unit": axis.unit,
        "numSamples": axis.samples,
        "coordinateMin": axis.min,
        "coordinateMax": axis.max,
    })
}

fn channel(channel: &Channel) -> Value {
    json!({
        "name": channel.name,
        "unit": channel.unit,
        "format": channel.format.name(),
        "components": channel.components,
        "valueRange": channel.value_range,
        "channelMapping": if channel.per_trace.is_some() { "PerTrace" } else { "Direct" },
        "mappedValues": channel.per_trace,
        "discrete": channel.discrete,
        "renderable": channel.renderable,
        "allowLossyCompression": channel.lossy_allowed,
        "useNoValue": channel.no_value.is_some(),
        "noValue": channel.no_value,
        "integerScale": channel.integer_scale,
        "integerOffset": channel.integer_offset,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::description::sound;
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
}
