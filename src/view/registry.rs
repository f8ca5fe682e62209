//! The list of all views.

use super::layer_ref::LayerRef;
use super::virtual_file::View;
use super::{float, json, metaimage, npy, nrrd, permuted, raw};

/// Returns every view, in the order of their nodes.
#[must_use]
pub fn registry() -> &'static [&'static dyn View] {
    &[&raw::Raw, &npy::Npy, &json::Json, &nrrd::Nrrd, &metaimage::MetaImage, &float::Float32Npy, &permuted::ByAxis]
}

/// Returns the names of all entries that `views` show in the folder of `layer`, in order of the views.
#[must_use]
pub fn entry_names(views: &[&dyn View], layer: LayerRef<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for view in views {
        view.list(layer, None, &mut |entry| names.push(entry.name));
    }
    names
}
