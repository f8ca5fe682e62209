//! The labels of an image: layers whose samples are numbers of objects. Viewers show them in colours, on top of the image
//! in whose folder `labels` they are; they expect them nowhere else.

use std::collections::HashSet;

use super::arrays::is_image;
use super::nodes::METADATA;
use crate::view::file_names::{NAME_MAX, file_name, unique};
use crate::view::virtual_file::LayerRef;

/// The most labels of an image.
const MOST: usize = 8;

/// Returns whether the samples of a layer are numbers of objects.
fn is_segmentation(layer: LayerRef<'_>) -> bool {
    let info = layer.info(0);
    let says_so = info.native.get("category").is_some_and(|category| category == "segmentation");
    says_so && info.dtype.is_integer() && info.axes.len() == 3
}

fn has_levels_of_images(layer: LayerRef<'_>) -> bool {
    layer.levels().iter().all(|level| is_image(level.info()))
}

/// Returns the layers that are the labels of a layer: of an image all segmentations of the dataset, and of a
/// segmentation itself.
#[must_use]
pub fn labels(layer: LayerRef<'_>) -> Vec<usize> {
    if !has_levels_of_images(layer) {
        return Vec::new();
    }
    if is_segmentation(layer) {
        return vec![layer.layer];
    }
    let all = 0..layer.open.dataset.layers().len();
    let is_label = |other: &usize| {
        let other = LayerRef { layer: *other, ..layer };
        is_segmentation(other) && has_levels_of_images(other)
    };
    all.filter(is_label).take(MOST).collect()
}

/// Returns the names of the folders of [`labels`].
#[must_use]
pub fn label_names(layer: LayerRef<'_>) -> Vec<String> {
    let mut taken = HashSet::from([METADATA.to_owned()]);
    let name = |label: usize| LayerRef { layer: label, ..layer }.name();
    labels(layer).into_iter().map(|label| unique(file_name(name(label), NAME_MAX), NAME_MAX, &mut taken)).collect()
}
