//! What a view declares: files, folders, and grids of numbered files.

use super::LayerRef;
use super::segments::Content;
use crate::format::FormatError;
use crate::source::Blocking;
use crate::volume::Dims;

/// The most files and folders of a view in one layer.
const MAX_NODES: u64 = 1 << 34;

/// A file or folder that a view shows.
pub(crate) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether it is found by its name alone, and in no listing: a copy of the folder does without it.
    pub(super) is_unlisted: bool,
}

pub(crate) enum Kind {
    File(File),
    Dir(Vec<Entry>),
    Grid(Grid),
}

type MakeContent = Box<dyn Fn(LayerRef<'_>) -> Result<Content, FormatError> + Send + Sync>;

/// A file. Its content is made when it is opened.
pub(crate) struct File {
    pub content: MakeContent,
    /// Whether the content may wait for the source.
    pub may_block: bool,
    /// Whether it is there now. It has a number in any case.
    pub is_there: fn(LayerRef<'_>) -> bool,
}

/// A folder of numbered files: file `I` of a grid of one axis is named `I` and the suffix; with more axes, folders for
/// the slower ones have the numbers as their names.
pub(crate) struct Grid {
    /// The files along each axis.
    pub count: Dims,
    pub suffix: &'static str,
    pub content: MakeContentAt,
    /// Which files are left out; `None`: no file.
    pub is_absent: Option<IsAbsent>,
}

type MakeContentAt = Box<dyn Fn(LayerRef<'_>, &Dims) -> Result<Content, FormatError> + Send + Sync>;

/// Returns whether there is no file at an index of a grid. Fails with
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting.
type IsAbsent = Box<dyn Fn(LayerRef<'_>, &Dims, Blocking) -> Result<bool, FormatError> + Send + Sync>;

impl File {
    /// Declares a file that is always there, and whose content does not wait for the source.
    pub(crate) fn new(content: impl Fn(LayerRef<'_>) -> Result<Content, FormatError> + Send + Sync + 'static) -> Self {
        Self { content: Box::new(content), may_block: false, is_there: |_| true }
    }
}

impl Grid {
    /// Returns how many folders or files have so many numbers in their paths.
    pub(super) fn at_depth(&self, depth: usize) -> Option<u64> {
        self.count.iter().take(depth).try_fold(1u64, |product, n| product.checked_mul(*n))
    }

    /// Returns how many there are at all smaller depths.
    pub(super) fn before(&self, depth: usize) -> Option<u64> {
        (0..depth).try_fold(0u64, |sum, depth| sum.checked_add(self.at_depth(depth)?))
    }
}

impl Entry {
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, is_unlisted: false }
    }

    pub(crate) fn file(
        name: impl Into<String>,
        content: impl Fn(LayerRef<'_>) -> Result<Content, FormatError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Kind::File(File::new(content)))
    }

    pub(crate) fn dir(name: impl Into<String>, entries: Vec<Self>) -> Self {
        Self::new(name, Kind::Dir(entries))
    }

    /// Leaves the entry out of listings.
    pub(super) fn unlisted(self) -> Self {
        Self { is_unlisted: true, ..self }
    }

    /// Declares `count` files along each axis.
    pub(crate) fn grid(
        name: impl Into<String>,
        count: Dims,
        suffix: &'static str,
        content: impl Fn(LayerRef<'_>, &Dims) -> Result<Content, FormatError> + Send + Sync + 'static,
    ) -> Self {
        let content = Box::new(content);
        Self::new(name, Kind::Grid(Grid { count, suffix, content, is_absent: None }))
    }
}

impl Kind {
    /// Returns how many files and folders there are; `None` if they are too many to be numbered.
    pub(super) fn nodes(&self) -> Option<u64> {
        match self {
            Self::File(_) => Some(1),
            Self::Dir(entries) => nodes(entries)?.checked_add(1),
            Self::Grid(grid) => grid.before(grid.count.len() + 1),
        }
    }
}

fn nodes(entries: &[Entry]) -> Option<u64> {
    entries.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.kind.nodes()?)).filter(|nodes| *nodes <= MAX_NODES)
}

/// Returns entries if they, with all that is in them, are few enough to be numbered; otherwise none.
pub(crate) fn numbered(entries: Vec<Entry>) -> Vec<Entry> {
    if nodes(&entries).is_some() { entries } else { Vec::new() }
}

/// Declares a file for each level: `lodN` and a suffix.
pub(crate) fn level_files(
    layer: LayerRef<'_>,
    suffix: &str,
    content: impl Fn(LayerRef<'_>, usize) -> Result<Content, FormatError> + Clone + Send + Sync + 'static,
) -> Vec<Entry> {
    let levels = 0..layer.levels().len();
    let file = |lod| {
        let content = content.clone();
        Entry::file(format!("lod{lod}{suffix}"), move |layer| content(layer, lod))
    };
    levels.map(file).collect()
}

/// Returns the names of all files of one level in the folder of the layer, in order of the views: those that begin with
/// `lodN.`. A folder of the level ends in `/`; of other folders the files of the level are named, as `FOLDER/FILE`.
pub(crate) fn files_of_level(layer: LayerRef<'_>, lod: usize) -> Vec<String> {
    let beginning = format!("lod{lod}.");
    let mut files = Vec::new();
    for view in layer.views.iter().filter(|view| view.beside_layer.is_none()) {
        for Entry { name, kind, .. } in (view.entries)(layer) {
            match (name.starts_with(&beginning), kind) {
                (true, Kind::File(_)) => files.push(name),
                (true, _) => files.push(name + "/"),
                (false, Kind::Dir(entries)) if !is_of_a_level(&name) => {
                    let is_of_level =
                        |entry: &&Entry| matches!(entry.kind, Kind::File(_)) && entry.name.starts_with(&beginning);
                    files.extend(entries.iter().filter(is_of_level).map(|file| format!("{name}/{}", file.name)));
                }
                _ => {}
            }
        }
    }
    files
}

/// Whether a name begins with `lodN.`, whatever the number.
fn is_of_a_level(name: &str) -> bool {
    let number = name.strip_prefix("lod").and_then(|rest| rest.split_once('.'));
    number.is_some_and(|(digits, _)| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}
