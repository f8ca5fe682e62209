//! A level as clients of OPeNDAP see it: variables with dimensions and attributes.

use crate::view::{CfArray, CfValue, DATA, LayerRef, Positions, has_type};
use crate::volume::Dtype;

/// netCDF keeps its global attributes under this name.
const NC_GLOBAL: &str = "NC_GLOBAL";

pub(super) struct Model {
    pub(super) name: String,
    pub(super) dimensions: Vec<(String, u64)>,
    /// Positions first: clients want them declared before what has their dimensions.
    pub(super) variables: Vec<Variable>,
    pub(super) global: Vec<(&'static str, CfValue)>,
    /// The type of the samples.
    pub(super) dtype: Dtype,
}

pub(super) struct Variable {
    pub(super) name: String,
    pub(super) dimensions: Vec<usize>,
    pub(super) values: Values,
    pub(super) attributes: Vec<(&'static str, CfValue)>,
}

#[derive(Clone, Copy)]
pub(super) enum Values {
    Positions(Positions),
    Samples,
}

impl Model {
    /// Returns the model of a level. Fails with the reason why there is none.
    pub(super) fn new(layer: LayerRef<'_>, lod: usize) -> Result<Self, String> {
        let level = layer.levels().get(lod).ok_or_else(|| format!("the layer has no level {lod}"))?;
        let (dtype, shape) = (level.info().dtype, level.info().shape());
        if !has_type(dtype) {
            return Err(format!("OPeNDAP has no {dtype} samples"));
        }
        if shape.contains(&0) {
            return Err("the level has no samples".to_owned());
        }
        Ok(Self::of(CfArray::new(layer, lod), &layer.open.name))
    }

    pub(super) fn of(array: CfArray, name: &str) -> Self {
        let mut taken = vec![DATA.to_owned(), NC_GLOBAL.to_owned()];
        let (mut dimensions, mut variables) = (Vec::new(), Vec::new());
        for dimension in array.dimensions {
            let name = unique(&plain(&dimension.name), &mut taken);
            if let Some(positions) = dimension.positions {
                let mut attributes = vec![("long_name", CfValue::Text(dimension.name))];
                attributes.extend(dimension.units.map(|units| ("units", CfValue::Text(units))));
                attributes.extend(dimension.direction.map(|axis| ("axis", CfValue::Text(axis.to_string()))));
                let (dimensions, values) = (vec![dimensions.len()], Values::Positions(positions));
                variables.push(Variable { name: name.clone(), dimensions, values, attributes });
            }
            dimensions.push((name, dimension.count));
        }
        variables.push(Variable {
            name: DATA.to_owned(),
            dimensions: (0..dimensions.len()).collect(),
            values: Values::Samples,
            attributes: array.attributes,
        });
        Self { name: plain(name), dimensions, variables, global: array.global, dtype: array.dtype }
    }

    /// Returns the type of a variable's values as they are stored.
    pub(super) fn stored(&self, variable: &Variable) -> Dtype {
        match variable.values {
            Values::Positions(_) => Dtype::Float64,
            Values::Samples => self.dtype,
        }
    }
}

/// Returns a name of letters, digits and underscores: clients take no others, or show them encoded.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let text: String = name.chars().map(plain).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) || text.is_empty() { format!("_{text}") } else { text }
}

fn unique(name: &str, taken: &mut Vec<String>) -> String {
    let mut candidate = name.to_owned();
    let mut n = 2;
    while taken.contains(&candidate) {
        candidate = format!("{name}_{n}");
        n += 1;
    }
    taken.push(candidate.clone());
    candidate
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::format::Array;

    /// A model of dimensions z, y, x, the second one without positions.
    pub(in super::super) fn model() -> Model {
        Model::of(array(Dtype::Float32, &[("z", 5), ("y", 3), ("x", 7)]), "north.zgy")
    }

    pub(in super::super) fn array(dtype: Dtype, axes: &[(&str, u64)]) -> CfArray {
        use crate::view::tests::{one_layer, zeros};
        let shape: Vec<u64> = axes.iter().map(|(_, count)| *count).collect();
        let mut info = zeros(&shape, dtype).info().clone();
        for (axis, (name, _)) in info.axes.iter_mut().zip(axes) {
            (axis.name, axis.unit) = ((*name).to_owned(), Some("um".to_owned()));
            if *name == "y" {
                (axis.spatial, axis.first, axis.step) = (false, 0.0, 1.0);
            }
        }
        info.no_value = Some(-999.25);
        let level: Arc<dyn Array> = Arc::new(crate::view::tests::Zeros(info));
        let native = crate::volume::NativeJson::new();
        let open = one_layer("zgy", crate::format::Layer { name: "a \"b\"".into(), levels: vec![level], native });
        CfArray::new(LayerRef { open: &open, layer: 0, views: &[] }, 0)
    }

    #[test]
    fn names_are_plain_and_all_different() {
        let model = Model::of(array(Dtype::Int8, &[("höhe", 2), ("h_he", 3), ("data", 4), ("NC_GLOBAL", 2)]), "1");
        let names: Vec<&str> = model.dimensions.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["h_he", "h_he_2", "data_2", "NC_GLOBAL_2"]);
        assert_eq!(model.name, "_1");
        assert_eq!(model.variables[0].attributes[0], ("long_name", CfValue::Text("höhe".into())));
        assert_eq!(model.variables.last().unwrap().name, "data");
    }
}
