//! All groups and datasets of a file, and the layers that they are: those of Imaris and BigDataViewer are levels of one,
//! by their paths.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};

use super::array::Hdf5Array;
use super::attributes::Attributes;
use super::dataset;
use super::file::{File, uint};
use super::groups::{Target, is_group, links};
use super::header::{Header, Place, kind};
use super::settled;
use super::sources::{OpenedFile, Sources};
use crate::format::bytes::{decimal, read_bytes};
use crate::format::chunked::{Hidden, Layers, Line, MAX_READ, Values, join, short, value_range};
use crate::format::{Array, FormatError, HiddenLayer, Layer, OpenWith, native};
use crate::source::{Blocking, Source, WHOLE};
use crate::volume::{ArrayInfo, Axis, Brick, DatasetInfo, Dims, Dtype, NativeJson};

/// The most objects of a file: each takes 6 KiB of memory.
const MAX_OBJECTS: usize = 1 << 13;
/// Bytes of all paths and attributes of a file: each takes several times as much memory.
const MAX_TEXT: u64 = 16 << 20;
/// The most levels of which BigDataViewer's factors are read.
const MAX_LEVELS: u64 = 256;
/// What is said of links to other files, and of how many.
const ELSEWHERE: &str = "leads to another file, which is not followed";
const MAX_ELSEWHERE: usize = 16;
/// Groups deeper than this are not looked into.
const MAX_DEPTH: usize = 256;

/// A dataset of the file.
struct Node {
    path: String,
    /// The address of its header.
    address: u64,
    attributes: Attributes,
    /// On the heap from the beginning: there may be many.
    array: Result<Arc<Hdf5Array>, Hidden>,
    /// Other paths that lead to it.
    aliases: Vec<String>,
}

/// The objects of a file while they are looked for.
struct Walk<'a> {
    place: Place<'a>,
    file: &'a Arc<File>,
    sources: Sources<'a>,
    /// The addresses of the headers that were found.
    known: HashSet<u64>,
    datasets: Vec<Node>,
    /// The attributes of groups by their paths.
    groups: BTreeMap<String, Attributes>,
    /// Further links to headers, and links by paths: where they are, and where they lead.
    hard: Vec<(String, u64)>,
    soft: Vec<(String, String)>,
    text: u64,
    warnings: Vec<String>,
}

/// Opens a file, and makes its layers.
pub(super) fn open(source: Arc<dyn Source>, with: &OpenWith) -> Result<(DatasetInfo, Layers), FormatError> {
    let opened = Rc::new(OpenedFile::open((source, WHOLE.into()), &with.index)?);
    let (file, superblock) = (&opened.file, opened.superblock);
    let mut walk = Walk {
        place: Place::new(file, &opened.shared),
        file,
        sources: Sources::new(&opened, with.beside.as_ref(), &with.index, |at, file, header| {
            dataset::open(at, file, header, None)
        }),
        known: HashSet::new(),
        datasets: Vec::new(),
        groups: BTreeMap::new(),
        hard: Vec::new(),
        soft: Vec::new(),
        text: 0,
        warnings: opened.fault.iter().cloned().collect(),
    };
    if superblock.is_open_for_writing {
        let warning = "it is marked as open for writing: a program writes to it, or has not closed it";
        walk.warnings.push(warning.into());
    }
    walk.all(superblock.root)?;
    walk.note_aliases();
    let Walk { mut datasets, groups, warnings, .. } = walk;
    describe_axes(&mut datasets);
    let made = Layers { warnings, ..layers(datasets, &groups) };
    let described = groups.into_iter().filter(|(_, attributes)| !attributes.values.is_empty());
    let attributes: NativeJson =
        described.map(|(path, attributes)| (format!("/{path}"), Value::Object(attributes.values))).collect();
    let keys = json!({"superblock": superblock.version, "user_block": superblock.user_block, "groups": attributes});
    let version = superblock.version.to_string();
    Ok((DatasetInfo { version, native: native(keys), ..DatasetInfo::default() }, made))
}

impl Walk<'_> {
    /// Reads all objects that hard links lead to, groups before what is in the groups in them.
    fn all(&mut self, root: u64) -> Result<(), FormatError> {
        let mut left = VecDeque::from([(root, String::new(), 0)]);
        self.known.insert(root);
        while let Some((address, path, depth)) = left.pop_front() {
            let header = settled(Header::read(self.file, address))?;
            let header = match header {
                Ok(header) => header,
                Err(hidden) if depth == 0 => return Err(FormatError::Damaged(hidden.reason)),
                Err(hidden) => {
                    self.add(path, address, Attributes::default(), Err(hidden));
                    continue;
                }
            };
            let attributes = if self.is_over(self.text > MAX_TEXT) {
                Attributes::default()
            } else {
                Attributes::read(&self.place, &header)?
            };
            self.text += attributes.bytes;
            if let Some(fault) = &attributes.fault {
                self.warn(format!("/{path}: an attribute is not shown: {fault}"));
            }
            if header.has(kind::LAYOUT) {
                let array = dataset::open(&self.place, self.file, &header, Some(&self.sources))?;
                self.add(path, address, attributes, array);
                continue;
            }
            if !is_group(&header) {
                continue;
            }
            match settled(links(&self.place, &header))? {
                Err(hidden) if depth == 0 => return Err(FormatError::Damaged(hidden.reason)),
                Err(hidden) => self.add(path.clone(), address, Attributes::default(), Err(hidden)),
                Ok(links) => {
                    for link in links {
                        let below = join(&path, &link.name);
                        self.text += below.len() as u64;
                        let has_many = self.text > MAX_TEXT || self.known.len() >= MAX_OBJECTS;
                        if self.is_over(has_many || depth >= MAX_DEPTH) {
                            break;
                        }
                        match link.to {
                            Target::Object(address) => {
                                if self.known.insert(address) {
                                    left.push_back((address, below, depth + 1));
                                } else {
                                    self.hard.push((below, address));
                                }
                            }
                            Target::Path(to) => self.soft.push((below, absolute(&path, &to))),
                            Target::Elsewhere => {
                                let is_such = |warning: &&String| warning.ends_with(ELSEWHERE);
                                if self.warnings.iter().filter(is_such).count() < MAX_ELSEWHERE {
                                    self.warn(format!("/{} {ELSEWHERE}", short(&below)));
                                }
                            }
                        }
                    }
                }
            }
            self.groups.insert(path, attributes);
        }
        Ok(())
    }

    fn add(&mut self, path: String, address: u64, attributes: Attributes, array: Result<Hdf5Array, Hidden>) {
        let array = array.map(Arc::new);
        self.datasets.push(Node { path, address, attributes, array, aliases: Vec::new() });
    }

    /// Returns whether a bound was passed, and says so.
    fn is_over(&mut self, is_over: bool) -> bool {
        if is_over {
            self.warn(format!(
                "it has more than {MAX_OBJECTS} objects, or {MAX_TEXT} bytes of paths and attributes, or is deeper \
                 than {MAX_DEPTH} groups: not all of it is shown"
            ));
        }
        is_over
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) && self.warnings.len() < 100 {
            self.warnings.push(warning);
        }
    }

    /// Notes further paths that lead to a dataset. Those through other links are left out.
    fn note_aliases(&mut self) {
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        let mut by_path: HashMap<String, usize> = HashMap::new();
        for (number, node) in self.datasets.iter().enumerate() {
            numbers.insert(node.address, number);
            by_path.insert(node.path.clone(), number);
        }
        for (path, address) in std::mem::take(&mut self.hard) {
            if let Some(number) = numbers.get(&address) {
                self.datasets[*number].aliases.push(path.clone());
                by_path.insert(path, *number);
            }
        }
        for (path, to) in std::mem::take(&mut self.soft) {
            if let Some(number) = by_path.get(&to) {
                self.datasets[*number].aliases.push(path);
            }
        }
    }
}

/// Returns a path in the file without the first `/`, of one that may be relative to a group.
fn absolute(group: &str, path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let below = parts.collect::<Vec<_>>().join("/");
    if path.starts_with('/') { below } else { join(group, &below) }
}

/// Gives all axes the names and positions of their dimension scales, and samples their values.
fn describe_axes(datasets: &mut [Node]) {
    let numbers: HashMap<u64, usize> = datasets.iter().enumerate().map(|(n, node)| (node.address, n)).collect();
    let mut lines: HashMap<usize, Option<Line>> = HashMap::new();
    for number in 0..datasets.len() {
        let node = &datasets[number];
        let Ok(array) = &node.array else { continue };
        let (mut axes, mut units) = (array.info.axes.clone(), Vec::new());
        let labels = node.attributes.values.get("DIMENSION_LABELS").and_then(Value::as_array);
        for (place, axis) in axes.iter_mut().enumerate() {
            let scale = node.attributes.scales.get(place).copied().flatten().and_then(|at| numbers.get(&at).copied());
            // an array of one axis may be the scale of itself
            let scale = scale.or_else(|| (is_scale(node) && array.info.axes.len() == 1).then_some(number));
            if let Some(scale) = scale {
                axis.name = short(datasets[scale].path.rsplit('/').next().unwrap_or_default());
                if lines.contains_key(&scale) || lines.len() < MAX_READ {
                    units.push((place, scale));
                }
            } else if let Some(label) = labels.and_then(|labels| labels.get(place)?.as_str()).filter(|l| !l.is_empty())
            {
                axis.name = short(label);
            }
        }
        for (place, scale) in units {
            let line = lines.entry(scale).or_insert_with(|| line(&datasets[scale]));
            if let Some(line) = line {
                line.describe(&mut axes[place]);
            }
        }
        let attributes = &node.attributes.values;
        let Values { scaling, no_value } = Values::of(attributes, array.info.dtype);
        let range = value_range(attributes, scaling.as_ref());
        if let Some(info) = info_of(&mut datasets[number].array) {
            (info.axes, info.scaling, info.no_value, info.value_range) = (axes, scaling, no_value, range);
        }
    }
}

fn is_scale(node: &Node) -> bool {
    node.attributes.text("CLASS").as_deref() == Some("DIMENSION_SCALE")
}

/// Returns what is said of an array that nothing else refers to yet.
fn info_of(array: &mut Result<Arc<Hdf5Array>, Hidden>) -> Option<&mut ArrayInfo> {
    Arc::get_mut(array.as_mut().ok()?).map(|array| &mut array.info)
}

/// Returns the positions that a scale gives, unless it is one of netCDF without values.
fn line(scale: &Node) -> Option<Line> {
    let array = scale.array.as_ref().ok()?;
    let Values { scaling, .. } = Values::of(&scale.attributes.values, array.info.dtype);
    Line::through(&**array, scaling, scale.attributes.text("units")).filter(|_| !is_bare_dimension(scale))
}

/// Returns whether a dataset only says how long a dimension of netCDF is.
fn is_bare_dimension(node: &Node) -> bool {
    node.attributes.text("NAME").is_some_and(|name| name.starts_with("This is a netCDF dimension but not a netCDF var"))
}

fn layers(mut datasets: Vec<Node>, groups: &BTreeMap<String, Attributes>) -> Layers {
    let mut made = Layers::default();
    // the first layer is what most readers want
    datasets.sort_by_key(is_scale);
    let levels = levels_of_images(&datasets, groups);
    // a layer stands where its first level does
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for node in datasets {
        let is_bare = is_bare_dimension(&node);
        let mut keys = NativeJson::new();
        keys.insert("path".into(), Value::from(format!("/{}", node.path)));
        keys.insert("attributes".into(), Value::Object(node.attributes.values));
        match node.array {
            Err(hidden) => {
                let (name, Hidden { reason, damaged, shape }) = (node.path, hidden);
                made.hidden.push(HiddenLayer { name, dtype: None, shape, reason, damaged, native: keys });
            }
            Ok(mut array) => {
                let level = levels.get(&node.path);
                if let Some(info) = Arc::get_mut(&mut array).map(|array| &mut array.info) {
                    if is_bare {
                        info.warnings.push("it only says how long a dimension of netCDF is".into());
                    }
                    info.native.insert("path".into(), Value::from(format!("/{}", node.path)));
                    if !node.aliases.is_empty() {
                        let aliases = node.aliases.iter().map(|path| format!("/{path}")).collect();
                        info.native.insert("aliases".into(), aliases);
                    }
                    if let Some(level) = level {
                        (info.lod, info.axes) = (level.lod, level.axes(&info.shape()));
                        info.native.extend(level.native.clone());
                    }
                }
                let name = level.map_or(node.path, |level| level.layer.clone());
                match level.and_then(|level| numbers.get(level.layer.as_str())) {
                    Some(number) => made.layers[*number].levels.push(array),
                    None => {
                        if let Some(level) = level {
                            numbers.insert(&level.layer, made.layers.len());
                        }
                        made.layers.push(Layer { name, levels: vec![array], native: keys });
                    }
                }
            }
        }
    }
    for layer in &mut made.layers {
        layer.levels.sort_by_key(|level| level.info().lod);
    }
    made
}

/// The level of an image that a dataset is.
struct Level {
    /// The name of the layer.
    layer: String,
    lod: usize,
    /// For each axis the position of the first sample, and the step.
    positions: [(f64, f64); 3],
    unit: Option<String>,
    native: NativeJson,
}

impl Level {
    fn axes(&self, shape: &Dims) -> Vec<Axis> {
        let axes = ["z", "y", "x"].into_iter().zip(self.positions).zip(shape.iter());
        axes.map(|((name, position), count)| spatial(name, self.unit.clone(), position, *count)).collect()
    }
}

/// The layer and the level that a path means.
fn level_of(path: &str) -> Option<(String, usize)> {
    let parts: Vec<&str> = path.split('/').collect();
    let numbered = |part: &str, name: &str| part.strip_prefix(name).and_then(decimal);
    match parts[..] {
        ["DataSet", level, time, channel, "Data"] => {
            numbered(time, "TimePoint ").and(numbered(channel, "Channel "))?;
            Some((format!("DataSet/{time}/{channel}"), numbered(level, "ResolutionLevel ")? as usize))
        }
        [time, setup, level, "cells"] => {
            let is_number = |part: &str, name: char| {
                part.strip_prefix(name).is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let is_image = is_number(time, 't') && is_number(setup, 's');
            Some((format!("{time}/{setup}"), decimal(level).filter(|_| is_image)? as usize))
        }
        _ => None,
    }
}

/// Reads the factors of levels as BigDataViewer keeps them: a row for each level, along x, y and z.
fn factors(datasets: &[Node], path: &str) -> Option<Vec<f64>> {
    let array = datasets.iter().find(|node| node.path == path)?.array.as_ref().ok()?;
    let info = array.info();
    let [1..=MAX_LEVELS, 3] = info.shape()[..] else { return None };
    if info.dtype != Dtype::Float64 || info.grid.total() != 1 {
        return None;
    }
    let Brick::Plain(plain) = array.brick(&Dims::filled(2, 0), Blocking::Yes).ok()? else { return None };
    let length = plain.layout.end(8).filter(|_| plain.layout.strides[0] == 24)?;
    let bytes = read_bytes(array.source(), &plain.object, plain.offset, length).ok()??;
    let factors: Vec<f64> = bytes.chunks_exact(8).map(|number| f64::from_bits(uint(number))).collect();
    factors.iter().all(|factor| factor.is_finite() && *factor > 0.0).then_some(factors)
}

/// Returns the levels by the paths of their datasets. Levels are numbered without holes.
fn levels_of_images(datasets: &[Node], groups: &BTreeMap<String, Attributes>) -> HashMap<String, Level> {
    let mut images: BTreeMap<String, BTreeMap<usize, (&str, Dims)>> = BTreeMap::new();
    for node in datasets {
        if let (Some((layer, number)), Ok(array)) = (level_of(&node.path), &node.array)
            && array.info().shape().len() == 3
        {
            images.entry(layer).or_default().insert(number, (&node.path, array.info().shape()));
        }
    }
    let mut found = HashMap::new();
    let mut by_setup: HashMap<String, Option<Vec<f64>>> = HashMap::new();
    for (layer, levels) in images {
        let Some((_, (_, finest))) = levels.first_key_value() else { continue };
        let (_, setup) = layer.split_once('/').unwrap_or_default();
        let stated = by_setup.entry(format!("{setup}/resolutions")).or_insert_with_key(|path| factors(datasets, path));
        let stated = stated.as_ref().filter(|factors| factors.len() == 3 * levels.len());
        let image = groups.get("DataSetInfo/Image").filter(|_| layer.starts_with("DataSet/"));
        let number = |attributes: &Attributes, name: String| attributes.text(&name)?.trim().parse::<f64>().ok();
        for (lod, (path, shape)) in levels.values().enumerate() {
            let channel = groups.get(path.strip_suffix("/Data").unwrap_or(path));
            let sizes: Vec<Option<f64>> =
                ["Z", "Y", "X"].iter().map(|axis| number(channel?, format!("ImageSize{axis}"))).collect();
            let position = |axis: usize| {
                let extent = image.and_then(|image| {
                    let end = |name: &str| number(image, format!("{name}{}", 2 - axis));
                    Some((end("ExtMin")?, end("ExtMax")?))
                });
                match (extent, sizes.get(axis).copied().flatten()) {
                    (Some((least, most)), Some(size)) if size >= 1.0 && most > least => {
                        let step = (most - least) / size;
                        (least + step / 2.0, step)
                    }
                    _ => {
                        // positions are those of centres
                        let guess = (finest[axis] as f64 / shape[axis].max(1) as f64).round().max(1.0);
                        let factor = stated.map_or(guess, |factors| factors[3 * lod + 2 - axis]);
                        ((factor - 1.0) / 2.0, factor)
                    }
                }
            };
            let unit = image.and_then(|image| image.text("Unit")).filter(|unit| !unit.is_empty());
            let native = if sizes.iter().all(Option::is_some) {
                native(json!({"image_size": sizes}))
            } else {
                NativeJson::new()
            };
            let level = Level { layer: layer.clone(), lod, positions: [0, 1, 2].map(position), unit, native };
            found.insert((*path).to_owned(), level);
        }
    }
    found
}

/// Describes an axis in space.
fn spatial(name: &str, unit: Option<String>, (first, step): (f64, f64), count: u64) -> Axis {
    Axis { name: name.into(), unit, first, step, count, spatial: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_levels() {
        let of = |path: &str| level_of(path);
        assert_eq!(
            of("DataSet/ResolutionLevel 2/TimePoint 0/Channel 1/Data"),
            Some(("DataSet/TimePoint 0/Channel 1".into(), 2))
        );
        assert_eq!(of("t00000/s01/3/cells"), Some(("t00000/s01".into(), 3)));
        for path in [
            "cells",
            "t00000/s01/x/cells",
            "tx/s01/3/cells",
            "DataSet/ResolutionLevel 0/TimePoint 0/Channel 0/Histogram",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
