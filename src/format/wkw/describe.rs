//! Describes mags and layers: the fields that all formats share, and the keys of this format.

use serde_json::json;

use super::header::Header;
use super::properties::{DescribedLayer, Extent, Mag, Scale};
use crate::format::native;
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

impl Level<'_> {
    /// Returns the description of the mag.
    pub(super) fn info(
        &self,
        lod: usize,
        id: ArrayId,
        grid: BrickGrid,
        brick_shape: Dims,
        warnings: Vec<String>,
    ) -> ArrayInfo {
        let spatial = [("z", 2), ("y", 1), ("x", 0)].map(|(name, a)| self.axis(name, a));
        let count = self.header.channels();
        let channel = Axis { name: "channel".into(), unit: None, first: 0.0, step: 1.0, count, spatial: false };
        ArrayInfo {
            id,
            lod,
            axes: spatial.into_iter().chain((count > 1).then_some(channel)).collect(),
            mag: Some(self.mag.0),
            codec: Some(self.header.blocks.codec()),
            warnings,
            native: self.native(),
            ..ArrayInfo::new(self.header.dtype, grid, brick_shape)
        }
    }

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
        native(json!({
            "mag": mag,
            "offset": self.in_mag.low,
            "voxel_size": each(&|scale, a| scale.factor[a] * mag[a] as f64),
            "unit": self.scale.map(|scale| &scale.unit),
            // relative to the lower corner of voxel 0, as webKNOSSOS counts
            "lower_corner": each(&|scale, a| self.in_mag.low[a] as f64 * mag[a] as f64 * scale.factor[a]),
            "category": described.category,
            "box": {"topLeft": self.extent.low, "width": width, "height": height, "depth": depth},
            "block_len": header.block_len(),
            "file_len": header.file_len(),
            "block_type": header.blocks.name(),
            "channels": header.channels(),
            "elementClass": described.element_class,
            "folder": self.path,
            "largestSegmentId": described.largest_segment_id,
        }))
    }
}

/// Returns the format's own keys of a layer in dataset.json.
pub(super) fn layer_keys(described: &DescribedLayer) -> NativeJson {
    native(json!({
        "category": described.category,
        "dataFormat": described.format,
        "boundingBox": described.bounding_box,
        "mags": described.mags.iter().map(|listed| listed.mag.0).collect::<Vec<_>>(),
    }))
}
