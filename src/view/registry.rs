//! The list of all views.

use super::View;
use super::{arrays, headers, json, netcdf, picture, segy, tiff, zarr};

/// Returns every view, in the order of their nodes.
pub(crate) fn registry() -> &'static [View] {
    &[
        arrays::RAW,
        arrays::NPY,
        json::JSON,
        headers::NRRD,
        headers::META_IMAGE,
        headers::ENVI,
        arrays::FLOAT32_NPY,
        arrays::BY_AXIS,
        segy::SURVEY,
        segy::ORIGINAL,
        tiff::TIFF,
        picture::SLICES,
        picture::PREVIEW,
        zarr::OME_ZARR,
        zarr::TREE,
        netcdf::NETCDF,
    ]
}

/// The names by which users choose views, each with a line about what the views show.
pub(crate) const VIEW_NAMES: [(&str, &str); 13] = [
    (RAW, "lodN.raw: the samples, without a header"),
    ("npy", "lodN.npy: the samples behind a NumPy header"),
    ("float32", "lodN.float32.npy: the values of integers that stand for others"),
    ("by-axis", "lodN.by-AXIS.npy: permuted axes, for slices in every direction"),
    ("nrrd", "lodN.nhdr: NRRD header of lodN.raw (pynrrd, ITK, 3D Slicer, ParaView)"),
    ("mhd", "lodN.mhd: MetaImage header of lodN.raw (ITK, ParaView)"),
    ("envi", "lodN.hdr: ENVI header of lodN.raw (GDAL, QGIS)"),
    ("segy", "lod0.sgy, original.sgy: surveys as SEG-Y (segyio, ObsPy)"),
    ("tiff", "tiff/lodN.tif: stacks of planes (ImageJ, tifffile, GDAL)"),
    ("slices", "lodN.slices/AXIS/INDEX.png: every slice as a picture"),
    ("preview", "preview.png: the middle slices of a layer as one picture"),
    ("zarr", "LAYER.ome.zarr, LAYER.zarr: all levels as OME-Zarr (napari, dask) and with positions (xarray)"),
    ("netcdf", "lodN.nc: the samples as a netCDF-4 file (ncdump, NCO, CDO, xarray, h5py, R, MATLAB)"),
];

const RAW: &str = "raw";
/// The views whose files name lodN.raw, which is shown with them.
const WITH_RAW: [&str; 3] = ["nrrd", "mhd", "envi"];

/// Returns the views of these names, and those that are always shown, in the order of the registry. Names are as in
/// [`VIEW_NAMES`].
pub(crate) fn views_of(names: &[&str]) -> Vec<View> {
    let names = with_needed(names);
    let is_shown = |view: &&View| view.name.is_none_or(|name| names.contains(&name));
    registry().iter().filter(is_shown).copied().collect()
}

/// Returns names together with those of the views that they need, in the order of [`VIEW_NAMES`], each once.
pub(crate) fn with_needed(names: &[&str]) -> Vec<&'static str> {
    let needs_raw = names.iter().any(|name| WITH_RAW.contains(name));
    let is_chosen = |name: &str| names.contains(&name) || (needs_raw && name == RAW);
    VIEW_NAMES.iter().map(|(name, _)| *name).filter(|name| is_chosen(name)).collect()
}

#[cfg(test)]
mod registry_tests {
    use std::sync::Arc;

    use super::super::LayerRef;
    use super::super::entry::{Entry, files_of_level};
    use super::super::tests::{Zeros, one_layer};
    use super::super::tree::{Item, Tree};
    use super::*;
    use crate::catalog::OpenDataset;
    use crate::format::Layer;
    use crate::source::Blocking;
    use crate::volume::{ArrayInfo, Axis, BrickGrid, Dims, Dtype, NativeJson, Scaling};

    /// Returns the names of all entries that `views` show in the folder of `layer`, in order of the views.
    fn entry_names(views: &[View], layer: LayerRef<'_>) -> Vec<String> {
        let in_layer = views.iter().filter(|view| view.beside_layer.is_none());
        in_layer.flat_map(|view| (view.entries)(layer)).map(|entry| entry.name).collect()
    }

    /// Creates a dataset with one layer of two levels.
    fn scaled(dtype: Dtype, scaling: Option<Scaling>) -> OpenDataset {
        let shape = Dims::from([2, 3]);
        let axis = |name: &str| Axis { name: name.into(), unit: None, first: 0.0, step: 1.0, count: 2, spatial: true };
        let info = ArrayInfo {
            axes: vec![axis("y"), axis("x")],
            scaling,
            ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, shape), shape)
        };
        let level = Arc::new(Zeros(info));
        let layer = Layer { name: "a".into(), levels: vec![level.clone(), level], native: NativeJson::new() };
        one_layer("zgy", layer)
    }

    #[test]
    fn each_name_is_found_by_the_one_view_that_lists_it() {
        let open = scaled(Dtype::Int16, Some(Scaling::of_codes(2.0, 0.0)));
        let layer = LayerRef { open: &open, layer: 0, views: registry() };
        let names = entry_names(registry(), layer);
        let of_lod_0: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("lod0")).collect();
        assert_eq!(
            of_lod_0,
            [".raw", ".npy", ".json", ".nhdr", ".mhd", ".hdr", ".float32.npy", ".by-x.npy", ".slices", ".nc"]
        );
        assert_eq!(names.len(), 2 * of_lod_0.len() + 2);
        assert!(names.contains(&"tiff".to_owned()) && names.contains(&"preview.png".to_owned()));
        let tree = Tree::new(&open, registry());
        let folder = tree.find(&open, Item::DATASET, "a", Blocking::Yes).unwrap().unwrap();
        let found = |name: &str| tree.find(&open, folder, name, Blocking::Yes).unwrap();
        for name in &names {
            assert_eq!(tree.name(found(name).unwrap()), *name);
        }
        assert_eq!(found("lod2.npy"), None);
        assert_eq!(entry_names(&[arrays::RAW], layer), ["lod0.raw", "lod1.raw"]);
    }

    /// A view with files and a folder for each level, and files of the levels in a folder `tiff`.
    const VARIOUS: View = View::new(None, |_| {
        let file = |name: &str| Entry::file(name, |_| unreachable!());
        let in_tiff = vec![file("lod0.tif"), file("lod1.tif"), Entry::dir("lod1.more", Vec::new())];
        let grid = Entry::grid("lod0.slices", [2].into(), ".png", |_, _| unreachable!());
        vec![grid, file("lod1.ext"), file("lod10.ext"), Entry::dir("tiff", in_tiff), Entry::dir("lod", Vec::new())]
    });

    #[test]
    fn a_level_has_the_files_of_the_views_that_are_shown() {
        let open = scaled(Dtype::Int16, Some(Scaling::of_codes(2.0, 0.0)));
        let layer = LayerRef { open: &open, layer: 0, views: &[json::JSON, VARIOUS] };
        assert_eq!(files_of_level(layer, 0), ["lod0.json", "lod0.slices/", "tiff/lod0.tif"]);
        assert_eq!(files_of_level(layer, 1), ["lod1.json", "lod1.ext", "tiff/lod1.tif"]);
        let described = json::level(layer, 1).unwrap();
        assert_eq!(described["files"], serde_json::json!(["lod1.json", "lod1.ext", "tiff/lod1.tif"]));
        let all = files_of_level(LayerRef { views: registry(), ..layer }, 1);
        assert_eq!(all.len(), 11);
        assert!(all.contains(&"tiff/lod1.tif".to_owned()), "{all:?}");
        assert!(all.contains(&"lod1.by-x.npy".to_owned()), "{all:?}");
    }

    #[test]
    fn what_a_layer_does_not_have_is_named_with_a_reason() {
        let hidden = |shape: &[u64], brick: &[u64], dtype| {
            let [shape, brick] = [shape, brick].map(|dims| Dims::from_slice(dims).unwrap());
            let level = Arc::new(Zeros(ArrayInfo::new(dtype, BrickGrid::aligned(shape, brick), brick)));
            let open = one_layer("wkw", Layer { name: "a".into(), levels: vec![level], native: NativeJson::new() });
            let layer = LayerRef { open: &open, layer: 0, views: registry() };
            let all: Vec<_> = registry().iter().filter_map(|view| (view.hidden)(layer)).collect();
            assert!(
                all.iter().all(|(name, reason)| !reason.is_empty() && !entry_names(registry(), layer).contains(name))
            );
            all.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert!(hidden(&[4, 5, 6], &[2; 3], Dtype::UInt8).is_empty());
        assert_eq!(hidden(&[4, 5, 6], &[2; 3], Dtype::Int8), ["lod0.hdr"]);
        assert_eq!(hidden(&[4, 5, 6], &[2; 3], Dtype::Float16), ["lod0.nhdr", "lod0.mhd", "lod0.hdr", "lod0.nc"]);
        assert_eq!(hidden(&[4, 5, 6], &[2; 3], Dtype::Complex64), ["lod0.nhdr", "lod0.mhd", "lod0.nc"]);
        assert_eq!(hidden(&[3; 6], &[2; 6], Dtype::UInt8), ["lod0.hdr", "tiff", "lod0.slices", "preview.png"]);
        assert_eq!(hidden(&[1 << 13, 1 << 14, 1 << 14], &[1; 3], Dtype::UInt8), ["a.ome.zarr", "a.zarr"]);
        assert_eq!(hidden(&[2, 1 << 41], &[64; 2], Dtype::UInt8), ["lod0.hdr", "lod0.slices", "a.ome.zarr"]);
    }

    #[test]
    fn values_are_shown_where_they_say_something_new() {
        let plain = Scaling { is_code: false, ..Scaling::of_codes(1.0, 0.0) };
        for (scaling, shown) in [
            (None, false),
            (Some(plain), false),
            (Some(Scaling::of_codes(1.0, 0.0)), true),
            (Some(Scaling { scale: 0.5, ..plain }), true),
            (Some(Scaling { offset: -1.0, ..plain }), true),
            (Some(Scaling { no_value: Some(0.0), ..plain }), true),
        ] {
            for (dtype, shown) in [(Dtype::Int16, shown), (Dtype::Float16, shown), (Dtype::Float32, false)] {
                let open = scaled(dtype, scaling);
                let names = entry_names(registry(), LayerRef { open: &open, layer: 0, views: registry() });
                assert_eq!(names.iter().any(|name| name.ends_with(".float32.npy")), shown, "{dtype} {scaling:?}");
            }
        }
    }
}

#[cfg(test)]
mod selection_tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_view_but_the_description_has_a_name_that_is_explained() {
        let explained: Vec<&str> = VIEW_NAMES.iter().map(|(name, _)| *name).collect();
        let of_views: Vec<Option<&str>> = registry().iter().map(|view| view.name).collect();
        assert_eq!(of_views.iter().filter(|name| name.is_none()).count(), 1, "{of_views:?}");
        let of_views: HashSet<&str> = of_views.into_iter().flatten().collect();
        assert_eq!(of_views, explained.iter().copied().collect());
        assert!(explained.iter().all(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')));
    }

    #[test]
    fn headers_come_with_what_they_name() {
        assert_eq!(with_needed(&["tiff", "npy"]), ["npy", "tiff"]);
        assert_eq!(with_needed(&["mhd"]), ["raw", "mhd"]);
        assert_eq!(with_needed(&["raw", "raw"]), ["raw"]);
        assert_eq!(with_needed(&[]), [""; 0]);
        let names: Vec<_> = views_of(&["envi"]).iter().map(|view| view.name).collect();
        assert_eq!(names, [Some("raw"), None, Some("envi")]);
        let all: Vec<&str> = VIEW_NAMES.iter().map(|(name, _)| *name).collect();
        assert_eq!(views_of(&all).len(), registry().len());
    }
}
