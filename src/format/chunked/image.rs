//! Images of several levels: several arrays of one group that are one layer.

use crate::volume::Axis;

/// An image: its axes, and the arrays that are its levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct Image {
    /// Empty if the arrays describe their axes themselves.
    pub axes: Vec<AxisDescription>,
    /// The finest first.
    pub levels: Vec<Level>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct AxisDescription {
    pub name: String,
    pub unit: Option<String>,
    /// Whether it is a direction in space or time.
    pub spatial: bool,
}

/// One level: the path of its array below the group, and the position of its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct Level {
    pub path: String,
    /// The step and the position of sample 0 along each axis, if they are known.
    pub steps: Vec<f64>,
    pub firsts: Vec<f64>,
}

impl Image {
    /// Describes the axes of a level with this shape.
    pub(in crate::format) fn axes_of(&self, level: &Level, shape: &[u64], usual: &[Axis]) -> Vec<Axis> {
        let described = |axis: usize| {
            let named = self.axes.get(axis).filter(|_| self.axes.len() == shape.len())?;
            Some(Axis {
                name: named.name.clone(),
                unit: named.unit.clone(),
                first: level.firsts.get(axis).copied().unwrap_or(0.0),
                step: level.steps.get(axis).copied().unwrap_or(1.0),
                count: shape[axis],
                spatial: named.spatial,
            })
        };
        (0..shape.len()).filter_map(|axis| described(axis).or_else(|| usual.get(axis).cloned())).collect()
    }
}
