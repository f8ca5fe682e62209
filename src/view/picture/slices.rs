//! `lodN.slices/AXIS/INDEX.png`: each slice of a level as a picture; `lodN.slices/0.png` where the array has two axes and
//! is a single slice.
//!
//! A folder is not listed if its pictures would be too large.

use std::sync::Arc;

use super::plane::{Plane, Subject, why_no_pictures};
use super::png::PngLayout;
use super::slice_file::{Pixels, SliceFile};
use crate::format::FormatError;
use crate::view::file::Content;
use crate::view::names::axis_names;
use crate::view::virtual_file::{Entry, LayerRef, View};

/// Folders with more pictures than this are streamed.
const MAX_LISTED: u64 = 1000;
/// The most nodes of a layer.
const MAX_NODES: u64 = 1 << 34;
/// What follows the index in the name of a picture.
const SUFFIX: &str = ".png";

/// The view of all levels.
pub(crate) struct Slices;

/// The nodes of one level: the folder `lodN.slices`, then the folders of the axes, then the pictures in the order of
/// the axes.
struct LevelNodes {
    lod: usize,
    subject: Subject,
    /// The folder `lodN.slices`.
    first: u64,
    /// The pictures across each axis, 0 if they would be too large; for an array of two axes its one picture.
    counts: Vec<u64>,
}

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// The folder of a level.
    Level,
    /// The folder of an axis.
    Axis(usize),
    /// A picture; the axis is 0 for an array of two axes.
    Slice(usize, u64),
}

impl LevelNodes {
    /// Returns the nodes of a level, of which `first` is the first; `None` if the level has no pictures.
    fn of(layer: LayerRef<'_>, lod: usize, first: u64) -> Option<Self> {
        let (info, subject) = (layer.info(lod), Subject::of(layer, lod)?);
        let (shape, format) = (info.shape(), Pixels::of(info, &subject).format());
        let has_picture = |across: Option<(usize, u64)>| {
            let plane = Plane::new(shape, &subject, across);
            PngLayout::new(plane.width(), plane.height(), format).is_some()
        };
        let counts: Vec<u64> = match subject.axes {
            2 => vec![u64::from(has_picture(None))],
            axes => (0..axes).map(|axis| if has_picture(Some((axis, 0))) { shape[axis] } else { 0 }).collect(),
        };
        counts.iter().any(|count| *count > 0).then_some(Self { lod, subject, first, counts })
    }

    /// Returns whether the pictures lie in the folder of the level itself.
    fn is_single(&self) -> bool {
        self.subject.axes == 2
    }

    /// Returns the folders of axes.
    fn axis_folders(&self) -> u64 {
        if self.is_single() { 0 } else { self.counts.len() as u64 }
    }

    fn end(&self) -> u64 {
        self.counts.iter().fold(self.first + 1 + self.axis_folders(), |sum, count| sum.saturating_add(*count))
    }

    fn place(&self, node: u64) -> Option<Place> {
        let mut rest = match node.checked_sub(self.first)? {
            0 => return Some(Place::Level),
            number if number <= self.axis_folders() => return Some(Place::Axis(number as usize - 1)),
            number => number - 1 - self.axis_folders(),
        };
        for (axis, count) in self.counts.iter().enumerate() {
            match rest.checked_sub(*count) {
                None => return Some(Place::Slice(axis, rest)),
                Some(after) => rest = after,
            }
        }
        None
    }

    fn node(&self, place: Place) -> u64 {
        match place {
            Place::Level => self.first,
            Place::Axis(axis) => self.first + 1 + axis as u64,
            Place::Slice(axis, index) => {
                self.first + 1 + self.axis_folders() + self.counts[..axis].iter().sum::<u64>() + index
            }
        }
    }

    fn entry(&self, place: Place, name: String) -> Entry {
        Entry { node: self.node(place), name, folder: !matches!(place, Place::Slice(..)) }
    }

    fn slice(&self, axis: usize, index: u64) -> Entry {
        self.entry(Place::Slice(axis, index), format!("{index}{SUFFIX}"))
    }

    /// Returns the axis whose pictures a folder has.
    fn axis_of(&self, folder: Place) -> Option<usize> {
        match folder {
            Place::Axis(axis) => Some(axis),
            Place::Level if self.is_single() => Some(0),
            Place::Level | Place::Slice(..) => None,
        }
    }
}

impl Slices {
    /// Returns the nodes of all levels that have pictures; none if there are too many.
    fn levels(layer: LayerRef<'_>) -> Vec<LevelNodes> {
        let mut levels: Vec<LevelNodes> = Vec::new();
        for lod in 0..layer.levels().len() {
            let first = levels.last().map_or(0, LevelNodes::end);
            levels.extend(LevelNodes::of(layer, lod, first));
        }
        // their numbers are part of inode numbers
        if levels.last().is_some_and(|last| last.end() >= MAX_NODES) { Vec::new() } else { levels }
    }

    fn place(layer: LayerRef<'_>, node: u64) -> Option<(LevelNodes, Place)> {
        let level = Self::levels(layer).into_iter().rev().find(|level| level.first <= node)?;
        let place = level.place(node)?;
        Some((level, place))
    }
}

/// Returns the index that the name of a picture stands for.
fn index_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_exact = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| is_exact)
}

impl View for Slices {
    fn name(&self) -> Option<&'static str> {
        Some("slices")
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let is_hidden = Self::levels(layer).is_empty();
        is_hidden.then(|| {
            ("lod0.slices".to_owned(), why_no_pictures(layer, "its slices are too many or too large").to_owned())
        })
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Self::levels(layer).last().map_or(0, LevelNodes::end)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        let Some(folder) = folder else {
            for level in Self::levels(layer) {
                add(level.entry(Place::Level, format!("lod{}.slices", level.lod)));
            }
            return;
        };
        let Some((level, place)) = Self::place(layer, folder) else { return };
        if let Some(axis) = level.axis_of(place) {
            (0..level.counts[axis]).for_each(|index| add(level.slice(axis, index)));
        } else if place == Place::Level {
            let names = axis_names(layer.info(level.lod)).into_iter().zip(&level.counts).enumerate();
            for (axis, (name, _)) in names.filter(|(_, (_, count))| **count > 0) {
                add(level.entry(Place::Axis(axis), name));
            }
        }
    }

    fn is_streamed(&self, layer: LayerRef<'_>, folder: u64) -> bool {
        Self::place(layer, folder)
            .is_some_and(|(level, place)| level.axis_of(place).is_some_and(|axis| level.counts[axis] > MAX_LISTED))
    }

    fn stream(&self, layer: LayerRef<'_>, folder: u64, from: u64, add: &mut dyn FnMut(Entry, u64) -> bool) {
        let Some((level, place)) = Self::place(layer, folder) else { return };
        let Some(axis) = level.axis_of(place) else { return };
        let _ = (from..level.counts[axis]).all(|index| add(level.slice(axis, index), index + 1));
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let Some(folder) = folder else {
            name.strip_prefix("lod")?.strip_suffix(".slices")?;
            let mut found = None;
            self.list(layer, None, &mut |entry| found = found.take().or((entry.name == name).then_some(entry)));
            return found;
        };
        let (level, place) = Self::place(layer, folder)?;
        if let Some(axis) = level.axis_of(place) {
            let index = index_of(name).filter(|index| *index < level.counts[axis])?;
            return Some(level.slice(axis, index));
        }
        let axis = axis_names(layer.info(level.lod)).iter().position(|axis| axis == name)?;
        let exists = level.counts.get(axis).is_some_and(|count| *count > 0);
        exists.then(|| level.entry(Place::Axis(axis), name.to_owned()))
    }

    fn parent(&self, layer: LayerRef<'_>, node: u64) -> Option<u64> {
        let (level, place) = Self::place(layer, node)?;
        match place {
            Place::Level => None,
            Place::Slice(axis, _) if !level.is_single() => Some(level.node(Place::Axis(axis))),
            Place::Axis(_) | Place::Slice(..) => Some(level.first),
        }
    }

    fn is_folder(&self, layer: LayerRef<'_>, node: u64) -> bool {
        Self::place(layer, node).is_some_and(|(_, place)| !matches!(place, Place::Slice(..)))
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let file = Self::place(layer, node).and_then(|(level, place)| {
            let Place::Slice(axis, index) = place else { return None };
            let (array, subject) = (Arc::clone(&layer.levels()[level.lod]), level.subject);
            let across = (!level.is_single()).then_some((axis, index));
            let (plane, pixels) =
                (Plane::new(array.info().shape(), &subject, across), Pixels::of(array.info(), &subject));
            SliceFile::new(array, plane, pixels)
        });
        let file = file.ok_or_else(|| FormatError::Unsupported(format!("there is no picture number {node}")))?;
        Ok(Content::Computed(Arc::new(file)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalog::OpenDataset;
    use crate::format::Layer;
    use crate::view::file::tests::zeros;
    use crate::view::fixture::one_layer;
    use crate::volume::{Dtype, NativeJson};

    fn dataset(levels: &[&[u64]]) -> OpenDataset {
        let levels = levels.iter().map(|shape| zeros(shape, Dtype::UInt8)).collect();
        let layer = Layer { name: "a".into(), levels, native: NativeJson::new() };
        one_layer("zgy", layer)
    }

    fn layer(open: &OpenDataset) -> LayerRef<'_> {
        LayerRef { open, layer: 0, views: &[] }
    }

    fn entries(layer: LayerRef<'_>, folder: Option<u64>) -> Vec<Entry> {
        let mut found = Vec::new();
        match folder.filter(|folder| Slices.is_streamed(layer, *folder)) {
            Some(folder) => Slices.stream(layer, folder, 0, &mut |entry, _| {
                found.push(entry);
                true
            }),
            None => Slices.list(layer, folder, &mut |entry| found.push(entry)),
        }
        found
    }

    #[test]
    fn every_node_is_listed_once_and_found_by_its_name() {
        let open = dataset(&[&[3, 2000, 5], &[2, 1500, 3], &[1, 1, 1]]);
        let layer = layer(&open);
        let (mut seen, mut folders, mut streamed) = (BTreeSet::new(), vec![None], 0);
        while let Some(folder) = folders.pop() {
            streamed += folder.map_or(0, |folder| u64::from(Slices.is_streamed(layer, folder)));
            for entry in entries(layer, folder) {
                assert!(seen.insert(entry.node), "{entry:?}");
                assert_eq!(Slices.find(layer, folder, &entry.name).as_ref(), Some(&entry));
                assert_eq!(Slices.parent(layer, entry.node), folder);
                assert_eq!(Slices.is_folder(layer, entry.node), entry.folder);
                assert_eq!(Slices.content(layer, entry.node).is_ok(), !entry.folder);
                folders.extend(entry.folder.then_some(Some(entry.node)));
            }
        }
        let all = 3 * 4 + 3 + 2000 + 5 + 2 + 1500 + 3 + 3;
        assert_eq!((Slices.nodes(layer), streamed), (all, 2));
        assert!(seen.into_iter().eq(0..all));
        assert!(Slices.content(layer, all).is_err());
    }

    #[test]
    fn pictures_are_named_by_axis_and_index() {
        let open = dataset(&[&[3, 2000, 5], &[2, 1500, 3]]);
        let layer = layer(&open);
        let names = |folder| entries(layer, folder).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names(None), ["lod0.slices", "lod1.slices"]);
        let level = Slices.find(layer, None, "lod1.slices").unwrap().node;
        assert_eq!(names(Some(level)), ["inline", "crossline", "sample"]);
        let sample = Slices.find(layer, Some(level), "sample").unwrap().node;
        assert_eq!(names(Some(sample)), ["0.png", "1.png", "2.png"]);
        for name in ["3.png", "00.png", "01.png", "+1.png", "-1.png", "1.PNG", "1", "inline", ".png"] {
            assert_eq!(Slices.find(layer, Some(sample), name), None, "{name}");
        }
        for (folder, name) in
            [(None, "lod2.slices"), (None, "lod00.slices"), (Some(level), "z"), (Some(level), "0.png")]
        {
            assert_eq!(Slices.find(layer, folder, name), None, "{name}");
        }
        let crossline = Slices.find(layer, Some(level), "crossline").unwrap().node;
        let mut rest = Vec::new();
        Slices.stream(layer, crossline, 1498, &mut |entry, next| {
            rest.push((entry.name, next));
            true
        });
        assert_eq!(rest, [("1498.png".into(), 1499), ("1499.png".into(), 1500)]);
    }

    #[test]
    fn an_array_of_two_axes_is_one_picture() {
        let open = dataset(&[&[30, 40], &[15, 20]]);
        let layer = layer(&open);
        let level = Slices.find(layer, None, "lod1.slices").unwrap().node;
        let picture = Entry { node: level + 1, name: "0.png".into(), folder: false };
        assert_eq!(entries(layer, Some(level)), [picture]);
        assert_eq!((Slices.nodes(layer), Slices.parent(layer, level + 1)), (4, Some(level)));
        assert!(Slices.content(layer, level + 1).unwrap().len() > 300);
    }

    #[test]
    fn pictures_that_are_too_large_are_not_listed() {
        let open = dataset(&[&[2, 50_000, 60_000], &[1, 25_000, 30_000], &[1, 10_000, 15_000]]);
        let layer = layer(&open);
        let folders = |lod: &str| {
            let level = Slices.find(layer, None, lod).unwrap().node;
            entries(layer, Some(level)).into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(folders("lod0.slices"), ["crossline", "sample"]);
        assert_eq!(folders("lod2.slices"), ["inline", "crossline", "sample"]);
        let level = Slices.find(layer, None, "lod0.slices").unwrap().node;
        assert_eq!(Slices.find(layer, Some(level), "inline"), None);
        let none = dataset(&[&[2, 3, 4, 5]]);
        let layer = super::tests::layer(&none);
        assert_eq!((Slices.nodes(layer), entries(layer, None)), (0, vec![]));
        let many = dataset(&[&[1 << 34, 1, 1]]);
        assert_eq!(Slices.nodes(super::tests::layer(&many)), 0);
    }
}
