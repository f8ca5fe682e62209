//! The folders `LAYER.ome.zarr` and `LAYER.zarr`: their groups and arrays, and which chunks are there.

use std::sync::Arc;

use super::arrays::{LABELS, METADATA, POSITIONS, array_names, chunk_grid, fill_value, label_name, positions};
use super::chunk::ChunkFile;
use super::metadata;
use crate::format::{Array, FormatError};
use crate::source::Blocking;
use crate::view::entry::{Entry, Grid, Kind, numbered};
use crate::view::segments::Content;
use crate::view::{LayerRef, View, json_text};
use crate::volume::{ArrayInfo, Brick, Dims, Element, Region};

/// What follows the layer's name in that of the folder of the image.
const OME_SUFFIX: &str = ".ome.zarr";
/// The same of the folder of levels with their positions.
const TREE_SUFFIX: &str = ".zarr";
/// The name of the folder of an array's chunks.
const CHUNKS: &str = "c";

/// Arrays at the top have the paths that all programs for OME-NGFF read; xarray wants a group for each level, since
/// dimensions of one name have one size there, and no group above with arrays of other sizes. So it has its own folder.
pub(crate) const OME_ZARR: View = View {
    beside_layer: Some(OME_SUFFIX),
    hidden: |layer| hidden(layer, OME_SUFFIX, image),
    ..View::new(Some("zarr"), |layer| entries(layer, image))
};

pub(crate) const TREE: View = View {
    beside_layer: Some(TREE_SUFFIX),
    hidden: |layer| hidden(layer, TREE_SUFFIX, tree),
    ..View::new(Some("zarr"), |layer| entries(layer, tree))
};

fn entries(layer: LayerRef<'_>, root: fn(LayerRef<'_>) -> Vec<Entry>) -> Vec<Entry> {
    if has_samples(layer) { numbered(root(layer)) } else { Vec::new() }
}

fn hidden(layer: LayerRef<'_>, suffix: &str, root: fn(LayerRef<'_>) -> Vec<Entry>) -> Option<(String, String)> {
    let reason = "it would have more files and folders than a layer can show: its bricks are too many";
    let is_hidden = has_samples(layer) && entries(layer, root).is_empty();
    is_hidden.then(|| (format!("{}{suffix}", layer.name()), reason.to_owned()))
}

fn has_samples(layer: LayerRef<'_>) -> bool {
    layer.levels().iter().all(|level| !level.info().shape().contains(&0))
}

/// Declares what a group or an array has: its metadata, and more.
fn with_metadata(
    metadata: impl Fn(LayerRef<'_>) -> serde_json::Value + Send + Sync + 'static,
    below: impl IntoIterator<Item = Entry>,
) -> Vec<Entry> {
    let file = Entry::file(METADATA, move |layer| Ok(json_text(&metadata(layer)).into()));
    std::iter::once(file).chain(below).collect()
}

/// Declares the image, and its label if it has one. The levels are found here as well as in their own folder.
fn image(layer: LayerRef<'_>) -> Vec<Entry> {
    let labels = label_name(layer).map(|name| {
        let label = Entry::dir(name, with_metadata(metadata::label, arrays(layer)));
        Entry::dir(LABELS, with_metadata(metadata::labels, [label]))
    });
    let levels = levels(layer).into_iter().map(Entry::unlisted);
    with_metadata(metadata::image, arrays(layer).into_iter().chain(labels).chain(levels))
}

fn tree(layer: LayerRef<'_>) -> Vec<Entry> {
    with_metadata(metadata::tree, levels(layer))
}

/// Declares the array of each level's samples, called by its number.
fn arrays(layer: LayerRef<'_>) -> Vec<Entry> {
    let array = |lod: usize| {
        let described = with_metadata(move |layer| metadata::samples(layer, lod), [samples(layer, lod)]);
        Entry::dir(lod.to_string(), described)
    };
    (0..layer.levels().len()).map(array).collect()
}

fn levels(layer: LayerRef<'_>) -> Vec<Entry> {
    let level = |lod: usize| {
        let arrays = array_names(layer.info(lod)).into_iter().enumerate().map(|(array, name)| {
            let chunks = match array.checked_sub(1) {
                None => samples(layer, lod),
                Some(axis) => positions_of(layer, lod, axis),
            };
            Entry::dir(name, with_metadata(move |layer| metadata::array(layer, lod, array), [chunks]))
        });
        Entry::dir(format!("lod{lod}"), with_metadata(move |layer| metadata::level(layer, lod), arrays))
    };
    (0..layer.levels().len()).map(level).collect()
}

/// Declares the chunks of a level's samples. Those with the fill value for all samples are absent.
fn samples(layer: LayerRef<'_>, lod: usize) -> Entry {
    let count = chunk_grid(layer, lod).count();
    let content = Box::new(move |layer: LayerRef<'_>, at: &Dims| {
        let array = &layer.levels()[lod];
        let grid = chunk_grid(layer, lod);
        let chunk = ChunkFile { array: Arc::clone(array), chunk: grid.chunk, held: grid.region(at) };
        Ok(Content::Computed(Arc::new(chunk)))
    });
    let is_absent = Box::new(move |layer: LayerRef<'_>, at: &Dims, blocking| {
        let array = &*layer.levels()[lod];
        let region = chunk_grid(layer, lod).region(at);
        let along = count.last().copied().unwrap_or(1);
        Ok(is_looked_up(array.info(), &region, along) && is_absent(array, &region, &fill_value(array), blocking)?)
    });
    let chunks = Grid { count, suffix: "", content, is_absent: Some(is_absent) };
    Entry::new(CHUNKS, Kind::Grid(chunks))
}

/// Declares the chunks of the positions along an axis of a level.
fn positions_of(layer: LayerRef<'_>, lod: usize, axis: usize) -> Entry {
    let count = layer.info(lod).shape()[axis].div_ceil(POSITIONS);
    Entry::grid(CHUNKS, [count].into(), "", move |layer, at| {
        Ok(Content::Bytes(positions(layer.info(lod), axis, at[0]).into()))
    })
}

/// Bricks are looked up for all chunks of a folder when it is listed, which must end soon.
const MOST_IN_FOLDER: u64 = 1 << 20;

/// Returns whether chunks may be absent from the folders of an array: each has `chunks` of them, of a size such as
/// `region`. Otherwise all chunks are there.
pub(crate) fn is_looked_up(info: &ArrayInfo, region: &Region, chunks: u64) -> bool {
    let bricks = info.grid.touched(region).shape.product().unwrap_or(u64::MAX);
    bricks.saturating_mul(chunks) <= MOST_IN_FOLDER
}

/// Returns whether all bricks of a region are known to have `fill` for all samples. A brick that cannot be found is
/// not: its chunk is there, and reading it says what is wrong. Fails with
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting and
/// `blocking` is [`Blocking::No`].
pub(crate) fn is_absent(
    array: &dyn Array,
    region: &Region,
    fill: &Element,
    blocking: Blocking,
) -> Result<bool, FormatError> {
    let touched = array.info().grid.touched(region);
    for number in 0..touched.shape.product().unwrap_or(0) {
        let mut at = touched.shape.index_of(number);
        at.iter_mut().zip(touched.start.iter()).for_each(|(at, start)| *at += start);
        // where tables tell that there are bytes, the bytes need not be looked at
        if blocking == Blocking::Yes
            && let Ok(Some(stored)) = array.stored_brick(&at)
            && stored.bytes != Some(0)
        {
            return Ok(false);
        }
        match array.brick(&at, blocking) {
            Ok(Brick::Constant(value)) if value == *fill => {}
            Err(error) if error.would_block() => return Err(error),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tree_tests {
    use super::*;
    use crate::format::Layer;
    use crate::view::tests::{one_layer, zeros};
    use crate::view::tree::{Item, Tree};
    use crate::volume::{Dtype, NativeJson};

    /// Declares the folder of a layer with levels of these shapes of uint32, or of a segmentation.
    fn tree(
        shapes: &[[u64; 3]],
        category: Option<&str>,
        views: &'static [View],
    ) -> (crate::catalog::OpenDataset, Tree) {
        let level = |shape: &[u64; 3]| {
            let mut info = zeros(shape, Dtype::UInt32).info().clone();
            info.native = category.iter().map(|category| ("category".to_owned(), (*category).into())).collect();
            std::sync::Arc::new(crate::view::tests::Zeros(info)) as _
        };
        let layer = Layer { name: "a".into(), levels: shapes.iter().map(level).collect(), native: NativeJson::new() };
        let open = one_layer("wkw", layer);
        let tree = Tree::new(&open, views);
        (open, tree)
    }

    #[test]
    fn every_file_is_listed_once_and_found_by_its_name() {
        // the samples' folder, metadata, `c`, folders and chunks, which are of 64 samples along each axis
        let arrays = (3 + 2 + 6 + 24) + (3 + 1 + 2 + 4);
        // and folder, metadata and positions of each level
        let levels = arrays + 2 * (2 + 3 * (3 + 1));
        let labels = 2 + 2 + arrays;
        let shapes = [[65, 130, 200], [64, 65, 100]];
        let image: &[View] = &[OME_ZARR];
        for (views, category, count, unlisted) in [
            (image, None, 2 + arrays, levels),
            (image, Some("segmentation"), 2 + arrays + labels, levels),
            (&[TREE], None, 2 + levels, 0),
        ] {
            let (open, tree) = tree(&shapes, category, views);
            let (mut seen, mut folders) = (Vec::new(), vec![Item::DATASET]);
            while let Some(folder) = folders.pop() {
                let mut entries = Vec::new();
                tree.list(&open, folder, 0, &mut |item, _| {
                    entries.push(item);
                    true
                });
                for item in entries {
                    let name = tree.name(item);
                    // chunks of zeros are absent, and found nevertheless by their numbers
                    assert_eq!(tree.find(&open, folder, &name, Blocking::Yes), Ok(Some(item)), "{name}");
                    assert_eq!(
                        (tree.parent(item), tree.item(&open, tree.number(item))),
                        (folder, Some(item)),
                        "{name}"
                    );
                    assert!(tree.number(item) > tree.number(folder));
                    seen.push(tree.number(item));
                    if tree.is_folder(item) {
                        folders.push(item)
                    } else {
                        assert!(tree.content(&open, item, Blocking::Yes).is_ok())
                    }
                }
            }
            let listed = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), listed);
            // dataset.json, error.txt, outline.geojson and the layer's folder come first
            let last = (0..).take_while(|number| tree.item(&open, *number).is_some()).last().unwrap();
            assert_eq!(last, 4 + count + unlisted, "{category:?}");
        }
    }

    #[test]
    fn too_many_chunks_have_no_numbers() {
        let is_there = |shapes: &[[u64; 3]], category| {
            let (open, tree) = tree(shapes, category, &[OME_ZARR, TREE]);
            ["a.ome.zarr", "a.zarr"].map(|name| tree.find(&open, Item::DATASET, name, Blocking::Yes).unwrap().is_some())
        };
        let many = [64 * 1536, 64 << 11, 64 << 11];
        assert_eq!(is_there(&[many], None), [true; 2]);
        assert_eq!(is_there(&[many, many], None), [false, true]);
        assert_eq!(is_there(&[many], Some("segmentation")), [false, true], "labels count");
        assert_eq!(is_there(&[[1 << 41, 1 << 41, 1 << 41]], None), [false; 2]);
    }
}

#[cfg(test)]
mod absent_tests {
    use super::*;
    use crate::view::tests::zeros;
    use crate::volume::Dtype;

    #[test]
    fn long_folders_have_all_their_chunks() {
        let array = zeros(&[64, 64, 1 << 40], Dtype::UInt8);
        let region = |length| Region { start: [0, 0, 0].into(), shape: [64, 64, length].into() };
        assert!(is_looked_up(array.info(), &region(64), 1 << 20));
        assert!(!is_looked_up(array.info(), &region(64), (1 << 20) + 1));
        assert!(!is_looked_up(array.info(), &region(128), 1 << 20));
        let absent = |fill: &[u8]| is_absent(&*array, &region(128), &Element::new(fill), Blocking::No);
        assert_eq!((absent(&[0]), absent(&[7])), (Ok(true), Ok(false)));
    }
}
