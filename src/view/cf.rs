//! An array as the CF conventions describe it, for netCDF files and for OPeNDAP: names and positions of dimensions, and
//! attributes.

use std::collections::HashSet;

use super::LayerRef;
use super::names::{NAME_MAX, axis_names, unique};
use crate::volume::{ArrayInfo, Axis, Dtype, Unit};

/// The name of the variable that has the samples.
pub(crate) const DATA: &str = "data";
/// The version of the conventions.
const CONVENTIONS: &str = "CF-1.8";
/// The positions along a longer axis are left out.
const MOST_POSITIONS: u64 = 1 << 20;

/// A level as a variable with its dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CfArray {
    pub(crate) dimensions: Vec<CfDimension>,
    pub(crate) dtype: Dtype,
    /// The attributes of the samples.
    pub(crate) attributes: Vec<(&'static str, CfValue)>,
    /// Those of the whole.
    pub(crate) global: Vec<(&'static str, CfValue)>,
}

/// A dimension, and its positions if it has some.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CfDimension {
    /// A name that no other dimension has, nor the variable.
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) positions: Option<Positions>,
    pub(crate) units: Option<String>,
    /// The direction in space: `Z`, `Y` or `X`.
    pub(crate) direction: Option<char>,
}

/// Equally spaced positions, which are float64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Positions {
    pub(crate) first: f64,
    pub(crate) step: f64,
    pub(crate) count: u64,
}

impl Positions {
    pub(crate) fn at(&self, n: u64) -> f64 {
        self.first + self.step * n as f64
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CfValue {
    Text(String),
    Number(f64),
    /// A number of the type of the samples, which holds it exactly.
    Sample(f64),
}

impl CfArray {
    pub(crate) fn new(layer: LayerRef<'_>, lod: usize) -> Self {
        let info = layer.info(lod);
        let mut taken = HashSet::from([DATA.to_owned()]);
        let names = axis_names(info).into_iter().map(|name| unique(name, NAME_MAX, &mut taken));
        let title = format!("{}, layer {}, LOD {lod}", layer.open.name, layer.name());
        let text = |text: &str| CfValue::Text(text.to_owned());
        Self {
            dimensions: names.enumerate().map(|(axis, name)| dimension(info, axis, name)).collect(),
            dtype: info.dtype,
            attributes: attributes(info, layer.name()),
            global: vec![("Conventions", text(CONVENTIONS)), ("title", CfValue::Text(title))],
        }
    }
}

fn attributes(info: &ArrayInfo, name: &str) -> Vec<(&'static str, CfValue)> {
    let mut attributes = vec![("long_name", CfValue::Text(name.to_owned()))];
    if let Some(scaling) = info.scaling.filter(|scaling| scaling.scale != 1.0 || scaling.offset != 0.0) {
        attributes.push(("scale_factor", CfValue::Number(scaling.scale)));
        attributes.push(("add_offset", CfValue::Number(scaling.offset)));
    }
    let no_value = info.no_value.filter(|value| is_sample(info.dtype, *value));
    attributes.extend(no_value.map(|value| ("_FillValue", CfValue::Sample(value))));
    attributes
}

fn dimension(info: &ArrayInfo, axis: usize, name: String) -> CfDimension {
    let (count, of) = (info.shape()[axis], info.axes.get(axis));
    let direction = match &*name {
        "z" | "Z" => Some('Z'),
        "y" | "Y" => Some('Y'),
        "x" | "X" => Some('X'),
        _ => None,
    };
    let positions = of.and_then(|of| positions(of, count));
    let units = of.and_then(|of| of.unit.as_deref()).map(units).filter(|unit| !unit.is_empty());
    CfDimension { name, count, positions, units, direction: direction.filter(|_| positions.is_some()) }
}

/// Returns the positions along an axis, if they say more than indexes would: channels have none.
fn positions(axis: &Axis, count: u64) -> Option<Positions> {
    let Axis { first, step, spatial, .. } = *axis;
    let are_numbers = first.is_finite() && step.is_finite() && (step != 0.0 || count <= 1);
    let say_something = spatial || (first, step) != (0.0, 1.0);
    (are_numbers && say_something && count <= MOST_POSITIONS).then_some(Positions { first, step, count })
}

/// Returns a unit as it is stored. Words for times become short: xarray would make differences of times of such
/// positions.
fn units(unit: &str) -> String {
    match Unit::named(unit) {
        Some(Unit { base: "second", short, .. }) => short,
        _ => unit.trim().to_owned(),
    }
}

/// Returns whether a sample of this type can have exactly this value.
pub(crate) fn is_sample(dtype: Dtype, value: f64) -> bool {
    let integer = |min: f64, end: f64| value.fract() == 0.0 && value >= min && value < end;
    let signed = |bits: i32| integer(-2f64.powi(bits - 1), 2f64.powi(bits - 1));
    match dtype {
        Dtype::Float64 => true,
        Dtype::Float32 => value.is_nan() || f64::from(value as f32) == value,
        Dtype::Int8 => signed(8),
        Dtype::Int16 => signed(16),
        Dtype::Int32 => signed(32),
        Dtype::Int64 => signed(64),
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => {
            integer(0.0, 2f64.powi(8 * dtype.size() as i32))
        }
        Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => false,
    }
}

/// Returns whether netCDF has a type for such samples.
pub(crate) fn has_type(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{one_layer, zeros};
    use super::*;
    use crate::format::{Array, Layer};
    use crate::view::tests::Zeros;
    use crate::volume::{NativeJson, Scaling};
    use std::sync::Arc;

    fn described(change: impl FnOnce(&mut ArrayInfo)) -> CfArray {
        let mut info = zeros(&[4, 5, 7], Dtype::Int16).info().clone();
        change(&mut info);
        let level: Arc<dyn Array> = Arc::new(Zeros(info));
        let open = one_layer("zgy", Layer { name: "höhe".into(), levels: vec![level], native: NativeJson::new() });
        CfArray::new(LayerRef { open: &open, layer: 0, views: &[] }, 0)
    }

    #[test]
    fn dimensions_have_positions_where_these_are_known() {
        let got = described(|info| {
            info.axes[0].name = DATA.into();
            (info.axes[1].name, info.axes[1].unit) = ("Y".into(), Some("milliseconds".into()));
            (info.axes[2].first, info.axes[2].step, info.axes[2].spatial) = (0.0, 1.0, false);
        });
        let names: Vec<&str> = got.dimensions.iter().map(|dimension| &*dimension.name).collect();
        assert_eq!(names, ["data~2", "Y", "sample"]);
        assert_eq!(got.dimensions[0].positions, Some(Positions { first: 10.0, step: 2.0, count: 4 }));
        assert_eq!((got.dimensions[1].direction, got.dimensions[1].units.as_deref()), (Some('Y'), Some("ms")));
        assert_eq!(got.dimensions[2].positions, None);
        let flat = described(|info| info.axes[0].step = 0.0);
        assert_eq!(flat.dimensions[0].positions, None);
    }

    #[test]
    fn only_what_samples_can_be_is_a_fill_value() {
        for (dtype, value, is) in [
            (Dtype::Int8, -128.0, true),
            (Dtype::Int8, 128.0, false),
            (Dtype::UInt16, -1.0, false),
            (Dtype::UInt16, 0.5, false),
            (Dtype::UInt64, 18_446_744_073_709_551_616.0, false),
            (Dtype::Int64, -9_223_372_036_854_775_808.0, true),
            (Dtype::Float32, -999.25, true),
            (Dtype::Float32, 0.1, false),
            (Dtype::Float32, f64::NAN, true),
            (Dtype::Int32, f64::NAN, false),
            (Dtype::Float64, 0.1, true),
        ] {
            assert_eq!(is_sample(dtype, value), is, "{dtype} {value}");
        }
        let got = described(|info| {
            (info.no_value, info.scaling) = (Some(-1.0), Some(Scaling::of_codes(0.5, 3.0)));
        });
        let keys: Vec<&str> = got.attributes.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["long_name", "scale_factor", "add_offset", "_FillValue"]);
        assert_eq!(described(|_| {}).attributes.len(), 1);
    }
}
