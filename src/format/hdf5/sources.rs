//! The sources of a virtual dataset: datasets in this file and in files beside it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::array::{Hdf5Array, Storage};
use super::data_type::{How, Sample};
use super::file::{File, Superblock};
use super::groups::{Target, links};
use super::header::{Header, Place, SharedMessages, kind};
use super::mapping::{MAX_MAPPINGS, Mapping, Selection, Steps, has_number, numbered};
use super::settled;
use super::virtual_array::{Part, VirtualDataset};
use crate::format::chunked::{Hidden, short};
use crate::format::{FilesBeside, FormatError};
use crate::source::{Folder, IndexCache, NoFolder, Source, SourceError};
use crate::volume::ObjectName;

/// The most links by paths on the way to a source.
const MAX_LINKS: usize = 32;
/// The most sources that are missing of which that is said.
const MAX_WARNINGS: usize = 10;

/// A file, and what is needed to find its objects.
pub(super) struct OpenedFile {
    pub file: Arc<File>,
    pub superblock: Superblock,
    pub shared: SharedMessages,
    /// Why messages that objects share cannot be read.
    pub fault: Option<String>,
    /// The links of the groups on the way to objects that were looked for.
    groups: RefCell<HashMap<u64, Rc<HashMap<String, Target>>>>,
}

impl OpenedFile {
    pub(super) fn open(object: (Arc<dyn Source>, ObjectName), cache: &Arc<IndexCache>) -> Result<Self, FormatError> {
        let (mut file, superblock) = File::open(object, cache)?;
        let (shared, fault) = match settled(extension(&file, &superblock))? {
            Ok(Extension { has_cache_image: true, .. }) => {
                return Err(FormatError::Unsupported(
                    "its metadata are in an image of HDF5's cache; to have them written, open it for writing and close \
                     it: python3 -c 'import h5py; h5py.File(\"FILE\", \"a\")'"
                        .into(),
                ));
            }
            Ok(Extension { shared, page, .. }) => {
                page.into_iter().for_each(|bytes| file.set_file_page(bytes));
                (shared, None)
            }
            Err(hidden) => (SharedMessages::default(), Some(hidden.reason)),
        };
        Ok(Self { file: Arc::new(file), superblock, shared, fault, groups: RefCell::default() })
    }

    /// Returns the links of a group, by their names.
    fn links(&self, group: u64) -> Result<Rc<HashMap<String, Target>>, FormatError> {
        if let Some(known) = self.groups.borrow().get(&group) {
            return Ok(Rc::clone(known));
        }
        let all = links(&Place::new(&self.file, &self.shared), &Header::read(&self.file, group)?)?;
        let all: Rc<HashMap<_, _>> = Rc::new(all.into_iter().map(|link| (link.name, link.to)).collect());
        self.groups.borrow_mut().insert(group, Rc::clone(&all));
        Ok(all)
    }

    /// Returns the header of the object at a path; `None` if there is none.
    fn find(&self, path: &str) -> Result<Option<Header>, FormatError> {
        let (mut left, mut followed) = (names(path), 0);
        let mut at = self.superblock.root;
        while let Some(name) = left.pop() {
            match self.links(at)?.get(&name) {
                None => return Ok(None),
                Some(Target::Object(address)) => at = *address,
                Some(Target::Path(to)) => {
                    followed += 1;
                    if followed > MAX_LINKS {
                        return Err("links on the way to it lead in a circle".into());
                    }
                    left.extend(names(to));
                    if to.starts_with('/') {
                        at = self.superblock.root;
                    }
                }
                Some(Target::Elsewhere) => {
                    return Err(FormatError::Unsupported("a link leads to it in another file".into()));
                }
            }
        }
        Header::read(&self.file, at).map(Some)
    }
}

/// The names of a path, the last one first.
fn names(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
}

/// What the extension of the superblock says.
#[derive(Default)]
struct Extension {
    /// The messages that objects share.
    shared: SharedMessages,
    /// The bytes of the pages in which metadata are kept together, if they are.
    page: Option<u64>,
    /// Whether metadata are in a copy of the writer's cache, and not, or in an older state, at their own places.
    has_cache_image: bool,
}

fn extension(file: &File, superblock: &Superblock) -> Result<Extension, FormatError> {
    const FILE_SPACE: &str = "file space";
    /// Pages that have either metadata or samples.
    const IN_PAGES: u8 = 1;
    let none = SharedMessages::default();
    let Some(extension) = superblock.extension else { return Ok(Extension::default()) };
    let (header, place) = (Header::read(file, extension)?, Place::new(file, &none));
    let page = |content: &[u8]| {
        let mut fields = file.fields(FILE_SPACE, content);
        let is_in_pages = (fields.u8().ok()?, fields.u8().ok()?) == (1, IN_PAGES);
        fields.take(1).ok()?;
        fields.length().ok()?;
        fields.length().ok().filter(|_| is_in_pages)
    };
    // only how much is read at a time depends on it
    let page = header.content_of(&place, kind::FILE_SPACE).ok().flatten().and_then(|content| page(&content));
    let shared = header.content_of(&place, kind::SHARED_TABLE)?;
    let shared = shared.map_or(Ok(none), |content| SharedMessages::read(file, &content))?;
    Ok(Extension { shared, page, has_cache_image: header.find(kind::CACHE_IMAGE).is_some() })
}

/// Opens the dataset of a header that is not virtual.
type OpenDataset = fn(&Place<'_>, &Arc<File>, &Header) -> Result<Result<Hdf5Array, Hidden>, FormatError>;

/// Where the sources of virtual datasets are looked for.
pub(super) struct Sources<'a> {
    own: &'a Rc<OpenedFile>,
    beside: Option<&'a FilesBeside>,
    cache: &'a Arc<IndexCache>,
    open: OpenDataset,
    /// How many mappings there may be in the rest of the file: the list of one dataset may be that of many others, too.
    left: Cell<u64>,
}

/// What was looked for, by its name: what it is, that there is none, or why it cannot be read.
type Known<K, T> = RefCell<HashMap<K, Result<Option<T>, FormatError>>>;

/// The sources of one virtual dataset.
struct Finder<'a> {
    sources: &'a Sources<'a>,
    /// Where other files are, if there are any.
    others: Option<Others<'a>>,
    files: Known<Rc<str>, Rc<OpenedFile>>,
    datasets: Known<(Rc<str>, Rc<str>), Arc<Hdf5Array>>,
}

/// The folder that all files of a virtual dataset are in.
struct Others<'a> {
    beside: &'a FilesBeside,
    folder: Arc<dyn Folder>,
    path: PathBuf,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        own: &'a Rc<OpenedFile>,
        beside: Option<&'a FilesBeside>,
        cache: &'a Arc<IndexCache>,
        open: OpenDataset,
    ) -> Self {
        Self { own, beside, cache, open, left: Cell::new(MAX_MAPPINGS) }
    }

    /// Counts mappings that were found.
    fn count(&self, mappings: u64) -> Result<(), FormatError> {
        let left = self.left.get().checked_sub(mappings);
        self.left.set(left.unwrap_or(0));
        let too_many = || format!("the virtual datasets of the file have more than {MAX_MAPPINGS} mappings");
        left.map(|_| ()).ok_or_else(|| FormatError::Unsupported(too_many()))
    }

    /// Opens the folder that all files of mappings are in.
    fn finder(&self, mappings: &[Mapping]) -> Result<Finder<'_>, FormatError> {
        let mut names = mappings.iter().map(|mapping| &*mapping.file).filter(|file| *file != ".").peekable();
        let others = if names.peek().is_some() { Some(self.others(names)?) } else { None };
        let (files, datasets) = Default::default();
        Ok(Finder { sources: self, others, files, datasets })
    }

    fn others<'b>(&self, names: impl Iterator<Item = &'b str>) -> Result<Others<'a>, FormatError> {
        let failed = |why: NoFolder| match why {
            NoFolder::Source(error) => error.into(),
            why => FormatError::Unsupported(format!("its samples are in files of another folder: {why}")),
        };
        let elsewhere = || FormatError::Unsupported("its samples are in other files, which are not looked for".into());
        let beside = self.beside.ok_or_else(elsewhere)?;
        let mut path = beside.parent().to_owned();
        for name in names {
            let place = beside.place_of(name);
            while !place.starts_with(&path) && path.pop() {}
        }
        let up = beside.parent().components().count() - path.components().count();
        let mut folder = beside.folder().map_err(failed)?;
        if up > 0 {
            folder = folder.folder(&vec![".."; up].join("/")).map_err(failed)?;
        }
        Ok(Others { beside, folder, path })
    }
}

impl Finder<'_> {
    /// The source of all bricks.
    fn source(&self) -> Arc<dyn Source> {
        match &self.others {
            Some(others) => Arc::clone(&others.folder) as Arc<dyn Source>,
            None => Arc::clone(&self.sources.own.file.source),
        }
    }

    /// Returns the file of a name; `None` if there is none.
    fn file(&self, name: &Rc<str>) -> Result<Option<Rc<OpenedFile>>, FormatError> {
        let Some(others) = &self.others else { return Ok(Some(Rc::clone(self.sources.own))) };
        if let Some(known) = self.files.borrow().get(name) {
            return known.clone();
        }
        let open = || {
            let path = if &**name == "." { others.beside.path.clone() } else { others.beside.place_of(name) };
            let object = path.strip_prefix(&others.path).ok().and_then(Path::to_str);
            let Some(object) = object.filter(|object| !object.is_empty()) else { return Ok(None) };
            if others.folder.len(object)?.is_none() {
                return Ok(None);
            }
            let folder = Arc::clone(&others.folder) as Arc<dyn Source>;
            OpenedFile::open((folder, object.into()), self.sources.cache).map(|file| Some(Rc::new(file)))
        };
        let opened = open().map_err(|error| match error {
            // that one may not be read, or is not below SOURCE, says nothing of the dataset's other layers
            FormatError::Source(error @ SourceError::Io { .. }) if !error.is_failure_of_system() => {
                FormatError::Unsupported(error.to_string())
            }
            error => error,
        });
        self.files.borrow_mut().insert(Rc::clone(name), opened.clone());
        opened
    }

    /// Returns the dataset at a path of a file; `None` if there is none, or no such file.
    fn dataset(&self, name: &Rc<str>, path: &Rc<str>) -> Result<Option<Arc<Hdf5Array>>, FormatError> {
        let key = (Rc::clone(name), Rc::clone(path));
        if let Some(known) = self.datasets.borrow().get(&key) {
            return known.clone();
        }
        let open = || {
            let Some(file) = self.file(name)? else { return Ok(None) };
            let Some(header) = file.find(path)?.filter(|header| header.has(kind::LAYOUT)) else { return Ok(None) };
            let array = (self.sources.open)(&Place::new(&file.file, &file.shared), &file.file, &header)?;
            array.map(|array| Some(Arc::new(array))).map_err(Hidden::error)
        };
        let opened = open().map_err(|error| match error {
            FormatError::Damaged(why) | FormatError::NotThisFormat(why) => {
                FormatError::Damaged(format!("its source {}: {why}", shown(path, name)))
            }
            FormatError::Unsupported(why) => {
                FormatError::Unsupported(format!("its source {}: {why}", shown(path, name)))
            }
            error => error,
        });
        self.datasets.borrow_mut().insert(key, opened.clone());
        opened
    }
}

/// A mapping to one source, without elements that the source does not have yet.
struct Placed {
    /// The names of the file and of the dataset.
    name: (Rc<str>, Rc<str>),
    source: Option<Arc<Hdf5Array>>,
    from: Selection,
    to: Vec<Steps>,
}

impl Finder<'_> {
    fn placed(&self, mapping: &Mapping, block: u64, from: Selection, to: Vec<Steps>) -> Result<Placed, FormatError> {
        let named = |pattern: &Rc<str>| {
            if !pattern.contains('%') {
                return Ok(Rc::clone(pattern));
            }
            let name = numbered(pattern, block);
            self.sources.own.file.count_names(name.len()).map(|()| Rc::from(name))
        };
        let name = (named(&mapping.file)?, named(&mapping.dataset)?);
        let source = self.dataset(&name.0, &name.1)?;
        Ok(Placed { name, source, from, to })
    }

    /// Finds the sources of a mapping to `to`, which has no limit along `axis`: one that grows, or one for each block.
    fn growing(&self, mapping: &Mapping, mut to: Vec<Steps>, axis: usize) -> Result<Vec<Placed>, FormatError> {
        if let Selection::Steps(from) = &mapping.from
            && let Some(grown) = from.iter().position(Steps::is_unlimited)
        {
            let mut placed = self.placed(mapping, 0, Selection::None, Vec::new())?;
            let shape = placed.source.as_ref().map(|source| source.info.shape());
            let extent = shape.and_then(|shape| shape.get(grown).copied()).unwrap_or(0);
            let mut from = from.clone();
            from[grown] = from[grown].within(extent);
            to[axis] = to[axis].of_length(from[grown].length);
            (placed.from, placed.to) = (Selection::Steps(from), to);
            return Ok(vec![placed]);
        }
        if !has_number(&mapping.file) && !has_number(&mapping.dataset) {
            return Err("a mapping has no limit, and its source has one".into());
        }
        let (mut found, blocks) = (Vec::new(), to[axis]);
        for number in 0..MAX_MAPPINGS {
            let Some(block) = blocks.block(number) else { break };
            to[axis] = block;
            let placed = self.placed(mapping, number, mapping.from.clone(), to.clone())?;
            // the first one that is not there is the end
            if placed.source.is_none() {
                break;
            }
            found.push(placed);
        }
        Ok(found)
    }
}

/// Names a dataset in a file for people. Many mappings may have the same names.
fn shown(dataset: &str, file: &str) -> String {
    let file = if file == "." { "this file" } else { file };
    format!("{} in {}", short(dataset), short(file))
}

/// What is found out of a virtual dataset.
pub(super) struct Resolved {
    pub dataset: VirtualDataset,
    /// Its extents, as its sources are now.
    pub shape: Vec<u64>,
    pub warnings: Vec<String>,
}

/// Finds the sources of mappings. `shape` has the extents that the dataset itself says.
pub(super) fn resolve(
    mappings: Vec<Mapping>,
    sources: &Sources<'_>,
    shape: &[u64],
    sample: &Sample,
) -> Result<Resolved, FormatError> {
    sources.count(mappings.len() as u64)?;
    let finder = sources.finder(&mappings)?;
    let (mut placed, mut grows) = (Vec::new(), None);
    for mapping in mappings {
        let to: Vec<Steps> = match &mapping.to {
            Selection::None => continue,
            Selection::All => shape.iter().map(|extent| Steps::run(0, *extent)).collect(),
            Selection::Steps(steps) => steps.clone(),
        };
        if to.len() != shape.len() {
            return Err(format!("a mapping has {} axes, and it has {}", to.len(), shape.len()).into());
        }
        let unlimited: Vec<usize> = (0..to.len()).filter(|axis| to[*axis].is_unlimited()).collect();
        match unlimited[..] {
            [] if mapping.from == Selection::None => {}
            [] => placed.push(finder.placed(&mapping, 0, mapping.from.clone(), to)?),
            [axis] if grows.is_none_or(|grows| grows == axis) => {
                grows = Some(axis);
                let found = finder.growing(&mapping, to, axis)?;
                sources.count(found.len() as u64)?;
                placed.extend(found);
            }
            _ => return Err("several of its axes have no limit".into()),
        }
    }
    let mut shape = shape.to_vec();
    if let Some(axis) = grows {
        shape[axis] = placed.iter().map(|placed| placed.to[axis].end()).max().unwrap_or(0);
    }
    let (mut parts, mut warnings) = (Vec::new(), Vec::new());
    for Placed { name: (file, dataset), source, from, to } in placed {
        let name = shown(&dataset, &file);
        let Some(source) = source else {
            if warnings.len() < MAX_WARNINGS {
                warnings.push(format!("there is no {name}: its samples have the fill value"));
            }
            continue;
        };
        if to.iter().zip(&shape).any(|(steps, extent)| steps.end() > *extent) {
            return Err(format!("a mapping of {name} leads out of it").into());
        }
        if source.info.dtype != sample.dtype || source.sample.inner != sample.inner {
            return Err(FormatError::Unsupported(format!("its samples are of another type than those of {name}")));
        }
        if to.iter().all(|steps| steps.length > 0) {
            let is_plain = matches!(source.storage, Storage::Whole(_)) && source.sample.how == How::Nothing;
            parts.push(Part::new((source, is_plain, sample.inner.len()), name, from, to)?);
        }
    }
    let dataset = VirtualDataset::new(finder.source(), parts, sample.inner.clone());
    Ok(Resolved { dataset, shape, warnings })
}
