//! Describes a mag: the fields that all formats share, and the keys of this one.

use serde_json::{Value, json};

use super::header::Header;
use super::mag::{Extent, Mag};
use super::properties::{DescribedLayer, Scale};
use crate::volume::{ArrayId, ArrayInfo, Axis, BrickGrid, Dims, NativeJson};

/// A mag of a layer.
pub(super) struct Level<'a> {
    pub described: &'a DescribedLayer,
    pub scale: Option<&'a Scale>,
    pub mag: Mag,
    pub path: &'a str,
    pub header: &'a Header,
    /// The box in voxels of mag 1.
    pub extent: Extent,
    /// The box in voxels of the mag, rounded outwards.
    pub in_mag: Extent,
}

/// Returns the description of a mag.
pub(super) fn of_level(
    level: &Level<'_>,
    lod: usize,
    id: ArrayId,
    grid: BrickGrid,
    brick_shape: Dims,
    warnings: Vec<String>,
) -> ArrayInfo {
    let spatial = [("z", 2), ("y", 1), ("x", 0)].map(|(name, a)| level.axis(name, a));
    let channels = level.header.channels();
    let channel = Axis { name: "channel".into(), unit: None, first: 0.0, step: 1.0, count: channels, spatial: false };
    ArrayInfo {
        id,
        lod,
        dtype: level.header.dtype,
        grid,
        brick_shape,
        axes: spatial.into_iter().chain((channels > 1).then_some(channel)).collect(),
        value_range: None,
        no_value: None,
        mag: Some(level.mag.0),
        scaling: None,
        codec: Some(level.header.blocks.codec()),
        warnings,
        native: level.native(),
    }
}

impl Level<'_> {
    /// Returns an axis. Positions are those of the centres of voxels, relative to the centre of voxel 0 of mag 1, so
    /// that they agree in all mags and with the headers for other programs.
    fn axis(&self, name: &str, a: usize) -> Axis {
        let (factor, scale) = (self.mag.0[a] as f64, self.scale.map_or(1.0, |scale| scale.factor[a]));
        Axis {
            name: name.into(),
            unit: self.scale.map(|scale| scale.unit.clone()),
            first: (self.in_mag.low[a] as f64 * factor + (factor - 1.0) / 2.0) * scale,
            step: factor * scale,
            count: self.in_mag.size()[a],
            spatial: true,
        }
    }

    /// Returns the format's own keys of lodN.json.
    fn native(&self) -> NativeJson {
        let (described, header, mag) = (self.described, self.header, self.mag.0);
        let each = |of: &dyn Fn(&Scale, usize) -> f64| self.scale.map(|scale| [0, 1, 2].map(|a| of(scale, a)));
        let [width, height, depth] = self.extent.size();
        let native = [
            ("mag", json!(mag)),
            ("offset", json!(self.in_mag.low)),
            ("voxel_size", json!(each(&|scale, a| scale.factor[a] * mag[a] as f64))),
            ("unit", json!(self.scale.map(|scale| &scale.unit))),
            // relative to the lower corner of voxel 0, as webKNOSSOS counts
            ("lower_corner", json!(each(&|scale, a| self.in_mag.low[a] as f64 * mag[a] as f64 * scale.factor[a]))),
            ("category", json!(described.category)),
            ("box", json!({"topLeft": self.extent.low, "width": width, "height": height, "depth": depth})),
            ("block_len", json!(header.block_len())),
            ("file_len", json!(header.file_len())),
            ("block_type", json!(header.blocks.name())),
            ("channels", json!(header.channels())),
            ("elementClass", json!(described.element_class)),
            ("folder", json!(self.path)),
            ("largestSegmentId", described.largest_segment_id.clone()),
        ];
        native.into_iter().map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect()
    }
}
