//! The properties of a stored layer: those that all formats share, and the native JSON of VDS.

use serde_json::{Value, json};

use super::chunk_grid::ChunkGrid;
use super::description::{AxisDescriptor, Channel, Description, SampleFormat};
use super::store::StoredLayer;
use super::value;
use crate::volume::{Arithmetic, ArrayId, ArrayInfo, Axis, NativeJson, Scaling};

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
                _ => described(&description.axes[d], grid.spacing(d) as f64, count),
            }
        })
        .collect();
    if grid.components() > 1 {
        axes.push(numbered("component", 1.0, grid.components()));
    }
    let code = value::no_value_code(channel);
    let scaled = matches!(channel.format, SampleFormat::U8 | SampleFormat::U16);
    let scaling = scaled.then(|| Scaling {
        scale: channel.integer_scale.into(),
        offset: channel.integer_offset.into(),
        arithmetic: Arithmetic::Single,
        no_value: code.map(f64::from),
        is_code: false,
    });
    let [low, high] = channel.value_range.map(f64::from);
    ArrayInfo {
        id: ArrayId::next(),
        lod: lod as usize,
        dtype: channel.format.dtype(),
        brick_shape: grid.brick_shape(),
        grid: bricks,
        axes,
        value_range: Some((low, high)),
        no_value: code.map(f64::from).or(channel.no_value.map(f64::from)),
        mag: None,
        scaling,
        codec: stored.map(|stored| stored.method.codec()),
        warnings: lowered.map(|level| format!("decoded with --quality {level}, not at its best")).into_iter().collect(),
        native: native(description, channel, stored),
    }
}

/// Returns an axis of which the layer has every `spacing`-th sample.
fn described(axis: &AxisDescriptor, spacing: f64, count: u64) -> Axis {
    let (unit, first) = (axis.unit().map(str::to_owned), axis.min.into());
    Axis { name: axis.name.clone(), unit, first, step: axis.step() * spacing, count, spatial: true }
}

/// Returns an axis of indices, without annotation.
fn numbered(name: &str, step: f64, count: u64) -> Axis {
    Axis { name: name.into(), unit: None, first: 0.0, step, count, spatial: false }
}

fn native(description: &Description, channel: &Channel, stored: Option<&StoredLayer>) -> NativeJson {
    let layout = &description.layout;
    let native = [
        ("channel", json!(channel.name)),
        ("unit", json!(channel.unit)),
        ("format", json!(channel.format.name())),
        ("components", json!(channel.components)),
        ("channelMapping", json!(if channel.per_trace.is_some() { "PerTrace" } else { "Direct" })),
        ("noValue", json!(channel.no_value)),
        ("integerScale", json!(channel.integer_scale)),
        ("integerOffset", json!(channel.integer_offset)),
        ("brickSize", json!(layout.brick)),
        ("margins", json!([layout.negative_margin, layout.positive_margin])),
        ("compressionMethod", json!(stored.map(|stored| stored.method.name()))),
        ("compressionTolerance", json!(stored.and_then(|stored| stored.tolerance))),
    ];
    native.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect()
}
