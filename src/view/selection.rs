//! The names of views, and which views a mount shows.

use super::registry::registry;
use super::virtual_file::View;

/// A name of one or more views, by which users choose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewName {
    /// The name.
    pub name: &'static str,
    /// What the views show, in one line.
    pub about: &'static str,
    /// Whether they name the file lodN.raw, which is shown with them.
    pub names_raw: bool,
}

const NAMES: [ViewName; 12] = [
    view(RAW, "lodN.raw: the samples, without a header"),
    view("npy", "lodN.npy: the samples behind a NumPy header"),
    view("float32", "lodN.float32.npy: the values of integers that stand for others"),
    view("by-axis", "lodN.by-AXIS.npy: permuted axes, for slices in every direction"),
    header("nrrd", "lodN.nhdr: NRRD header of lodN.raw (pynrrd, ITK, 3D Slicer, ParaView)"),
    header("mhd", "lodN.mhd: MetaImage header of lodN.raw (ITK, ParaView)"),
    header("envi", "lodN.hdr: ENVI header of lodN.raw (GDAL, QGIS)"),
    view("segy", "lod0.sgy, original.sgy: surveys as SEG-Y (segyio, ObsPy)"),
    view("tiff", "tiff/lodN.tif: stacks of planes (ImageJ, tifffile, GDAL)"),
    view("slices", "lodN.slices/AXIS/INDEX.png: every slice as a picture"),
    view("preview", "preview.png: the middle slices of a layer as one picture"),
    view("zarr", "LAYER.ome.zarr: all levels as OME-Zarr (xarray, dask, napari)"),
];

const fn view(name: &'static str, about: &'static str) -> ViewName {
    ViewName { name, about, names_raw: false }
}

const fn header(name: &'static str, about: &'static str) -> ViewName {
    ViewName { name, about, names_raw: true }
}

/// Returns all names. Views without a name are always shown.
pub(crate) fn view_names() -> &'static [ViewName] {
    &NAMES
}

const RAW: &str = "raw";

/// Returns the views of these names, and those that are always shown, in the order of the registry. Names are as in
/// [`view_names`].
pub(crate) fn views_of(names: &[&str]) -> Vec<&'static dyn View> {
    let names = with_needed(names);
    let is_shown = |view: &&&'static dyn View| view.name().is_none_or(|name| names.contains(&name));
    registry().iter().filter(is_shown).copied().collect()
}

/// Returns names together with those of the views that they need, in the order of [`view_names`], each once.
pub(crate) fn with_needed(names: &[&str]) -> Vec<&'static str> {
    let needs_raw = view_names().iter().any(|view| view.names_raw && names.contains(&view.name));
    let is_chosen = |name: &str| names.contains(&name) || (needs_raw && name == RAW);
    view_names().iter().map(|view| view.name).filter(|name| is_chosen(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_view_but_the_description_has_a_name_that_is_explained() {
        let explained: Vec<&str> = view_names().iter().map(|view| view.name).collect();
        let of_views: Vec<Option<&str>> = registry().iter().map(|view| view.name()).collect();
        assert_eq!(of_views.iter().filter(|name| name.is_none()).count(), 1, "{of_views:?}");
        let of_views: HashSet<&str> = of_views.into_iter().flatten().collect();
        assert_eq!(of_views, explained.iter().copied().collect());
        assert!(view_names().iter().all(|view| view.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }

    #[test]
    fn headers_come_with_what_they_name() {
        assert_eq!(with_needed(&["tiff", "npy"]), ["npy", "tiff"]);
        assert_eq!(with_needed(&["mhd"]), ["raw", "mhd"]);
        assert_eq!(with_needed(&["raw", "raw"]), ["raw"]);
        assert_eq!(with_needed(&[]), [""; 0]);
        let names: Vec<_> = views_of(&["envi"]).iter().map(|view| view.name()).collect();
        assert_eq!(names, [Some("raw"), None, Some("envi")]);
        let all: Vec<&str> = view_names().iter().map(|view| view.name).collect();
        assert_eq!(views_of(&all).len(), registry().len());
    }
}
