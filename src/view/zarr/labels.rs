//! The labels of an image: samples that are numbers of objects, which viewers show in colours. They expect them in the
//! folder `labels` of an image and nowhere else, so a segmentation is an image that has itself as its label.

use super::arrays::is_image;
use crate::view::names::{NAME_MAX, file_name};
use crate::view::virtual_file::LayerRef;

/// Returns the name of the folder of a layer's label, if its samples are numbers of objects.
pub(crate) fn label_name(layer: LayerRef<'_>) -> Option<String> {
    let info = layer.info(0);
    let says_so = info.native.get("category").is_some_and(|category| category == "segmentation");
    let is_label = says_so && info.dtype.is_integer() && info.axes.len() == 3 && is_image(info);
    is_label.then(|| file_name(layer.name(), NAME_MAX))
}
