//! Layers of a described dataset whose mags are arrays of another format, as webKNOSSOS has Zarr, N5 and precomputed: each
//! mag is one array, and the description says what its axes are.

use std::sync::Arc;

use serde_json::{Value, json};

use super::layers::{Fault, NoMag, Opening, mag_name};
use super::properties::{DescribedLayer, DescribedMag, Extent};
use crate::format::{Array, Format, OpenWith, Reoriented, Severity};
use crate::volume::{ArrayInfo, Axis, Dims, Dtype};

/// A mag that was opened: its array, and the places of z, y, x and the channel in it.
struct OpenArray {
    array: Arc<dyn Array>,
    path: String,
    order: Vec<usize>,
}

impl Opening {
    /// Opens the arrays of a layer of another format, as [`Opening::levels`] does those of this one.
    pub(super) fn levels_of(
        &mut self,
        format: &dyn Format,
        described: &DescribedLayer,
        missing: &mut Vec<NoMag>,
        dtype: &mut Option<Dtype>,
    ) -> Result<Vec<Arc<dyn Array>>, String> {
        let mut levels: Vec<Arc<dyn Array>> = Vec::new();
        let other_axes = || (Severity::Damage, "it has another number of axes than the mags before it".into());
        for listed in &described.mags {
            let level = self
                .array_of(format, described, listed)
                .and_then(|found| self.reoriented(described, listed, found, levels.len()));
            match level {
                Ok(level) if levels.first().is_some_and(|first| first.info().axes.len() != level.info().axes.len()) => {
                    missing.push((json!(listed.mag.0), other_axes()));
                }
                Ok(level) => levels.push(level),
                Err(fault) => missing.push((json!(listed.mag.0), fault)),
            }
        }
        *dtype = levels.first().map(|level| level.info().dtype);
        if levels.is_empty() {
            return Err(missing.first().map_or("it lists no mags".into(), |(mag, (_, reason))| {
                format!("none of its mags can be read; {}: {reason}", mag_name(mag))
            }));
        }
        Ok(levels)
    }

    fn array_of(
        &mut self,
        format: &dyn Format,
        described: &DescribedLayer,
        listed: &DescribedMag,
    ) -> Result<OpenArray, Fault> {
        let (folder, path, scale) = self.folder_of(described, listed, format.describes_scales())?;
        let array = format.open_array(Arc::clone(&folder), &scale, &OpenWith::new(Arc::clone(&self.cache)));
        self.volume.folders.push(folder);
        let array = array.map_err(|error| (Severity::Damage, format!("{path}: {error}")))?;
        let axes = array.info().shape().len();
        let mut order = axis_order(&listed.axis_order, axes);
        if format.describes_scales() {
            // the format itself says what the axes are
            order = Some((0..axes).map(|place| (place + axes - 3) % axes).collect());
        } else if format.counts_axes_from_the_fastest() {
            order.iter_mut().flatten().for_each(|place| *place = axes - 1 - *place);
        }
        let order = order.ok_or_else(|| (Severity::Note, format!("{path}: its axisOrder makes no sense")))?;
        Ok(OpenArray { array, path, order })
    }

    /// Shows the part of an array that lies in the box of its layer, as z, y, x and the channel.
    fn reoriented(
        &self,
        described: &DescribedLayer,
        listed: &DescribedMag,
        found: OpenArray,
        lod: usize,
    ) -> Result<Arc<dyn Array>, Fault> {
        let OpenArray { array, path, mut order } = found;
        let (bounds, inner) = (array.info().shape(), array.info().native.clone());
        if order.get(3).is_some_and(|channel| bounds[*channel] == 1) {
            order.truncate(3);
        }
        // x, y, z
        let (all, origin) = ([2, 1, 0].map(|place: usize| bounds[order[place]]), array.origin());
        let at = |a: usize, voxel: u64| voxel.saturating_add_signed(origin[a]);
        let whole = Extent { low: [0, 1, 2].map(|a| at(a, 0)), high: [0, 1, 2].map(|a| at(a, all[a])) };
        let fault = || (Severity::Note, format!("{path}: its box is empty or too large"));
        let extent = described.extent.or_else(|| whole.to_mag_1(listed.mag)).ok_or_else(fault)?;
        let mut in_mag = extent.in_mag(listed.mag);
        let mut warnings = described.warnings.clone();
        if (0..3).any(|a| in_mag.high[a] > whole.high[a] || in_mag.low[a] < whole.low[a]) {
            warnings.push(format!("its boundingBox exceeds the array of {bounds:?}"));
            in_mag.high = [0, 1, 2].map(|a| in_mag.high[a].min(whole.high[a]));
            in_mag.low = [0, 1, 2].map(|a| in_mag.low[a].max(whole.low[a]));
        }
        if in_mag.size().contains(&0) {
            return Err(fault());
        }
        let (mut low, mut shape) = (Dims::filled(bounds.len(), 0), Dims::filled(order.len(), 0));
        for (place, axis) in order.iter().enumerate() {
            let (begin, count) = match place {
                3 => (0, bounds[*axis]),
                _ => {
                    let a = 2 - place;
                    (in_mag.low[a].saturating_add_signed(origin[a].saturating_neg()), in_mag.size()[a])
                }
            };
            (low[*axis], shape[place]) = (begin, count);
        }
        let mut axes: Vec<Axis> =
            [("z", 2), ("y", 1), ("x", 0)].map(|(name, a)| self.axis(name, a, listed.mag, &in_mag)).into();
        if let Some(channel) = order.get(3) {
            let count = bounds[*channel];
            axes.push(Axis { name: "channel".into(), unit: None, first: 0.0, step: 1.0, count, spatial: false });
        }
        let mut native = self.mag_keys(described, (listed.mag, &path), &extent, &in_mag);
        native.insert("channels".into(), order.get(3).map_or(1, |channel| bounds[*channel]).into());
        native.insert(described.format.clone().unwrap_or_default(), inner.into());
        let info = |made| ArrayInfo { lod, axes, mag: Some(listed.mag.0), warnings, native, ..made };
        let made = Reoriented::new(array, order, low, shape, info);
        let made = made.ok_or_else(|| (Severity::Note, format!("{path}: it has axes that are not shown")))?;
        Ok(Arc::new(made))
    }
}

/// Returns the places of z, y, x and, if there is one, the channel among `axes` axes: those that the description has, or
/// else x, y, z behind the channel.
fn axis_order(described: &Value, axes: usize) -> Option<Vec<usize>> {
    let usual: &[(&str, usize)] = match axes {
        3 => &[("x", 0), ("y", 1), ("z", 2)],
        _ => &[("c", 0), ("x", 1), ("y", 2), ("z", 3)],
    };
    let place = |name: &str| match described.as_object() {
        Some(places) => places.get(name)?.as_u64().and_then(|place| usize::try_from(place).ok()),
        None => usual.iter().find(|(known, _)| *known == name).map(|(_, place)| *place),
    };
    let mut order = vec![place("z")?, place("y")?, place("x")?];
    order.extend(place("c"));
    let is_each_once = order.iter().enumerate().all(|(n, axis)| *axis < axes && !order[..n].contains(axis));
    is_each_once.then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_the_places_that_the_description_says() {
        assert_eq!(axis_order(&Value::Null, 4), Some(vec![3, 2, 1, 0]));
        assert_eq!(axis_order(&Value::Null, 3), Some(vec![2, 1, 0]));
        assert_eq!(axis_order(&json!({"x": 2, "y": 1, "z": 0, "c": 3}), 4), Some(vec![0, 1, 2, 3]));
        for wrong in [json!({"x": 0, "y": 1}), json!({"x": 0, "y": 0, "z": 1}), json!({"x": 0, "y": 1, "z": 3})] {
            assert_eq!(axis_order(&wrong, 3), None, "{wrong}");
        }
    }
}
