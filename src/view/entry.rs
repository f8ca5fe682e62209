//! What a view declares: files, folders, and grids of numbered files.

use super::LayerRef;
use super::segments::Content;
use crate::format::FormatError;
use crate::source::Blocking;
use crate::volume::Dims;

/// The most files and folders of a view in one layer.
const MAX_NODES: u64 = 1 << 34;
/// What a view shows.
pub(crate) enum Entry {
    File(File),
    Dir(Dir),
    Grid(Grid),
}

/// Makes the content of a file.
type MakeContent = Box<dyn Fn(LayerRef<'_>) -> Result<Content, FormatError> + Send + Sync>;

/// A file.
pub(crate) struct File {
    pub(super) name: String,
    pub(super) content: MakeContent,
    pub(super) may_block: bool,
    /// Whether it is there; `None`: always.
    pub(super) is_there: Option<fn(LayerRef<'_>) -> bool>,
}

/// A folder.
pub(crate) struct Dir {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// A folder of numbered files: file `I` of a grid of one axis is named `I` and the suffix; with more axes, folders for
/// the slower ones have the numbers as their names.
pub(crate) struct Grid {
    pub(super) name: String,
    pub(super) count: Dims,
    pub(super) suffix: &'static str,
    pub(super) content: MakeContentAt,
    pub(super) is_absent: Option<IsAbsent>,
}

/// Makes the content of the file at an index of a grid.
type MakeContentAt = Box<dyn Fn(LayerRef<'_>, &Dims) -> Result<Content, FormatError> + Send + Sync>;

/// Returns whether there is no file at an index of a grid. Fails with
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting.
type IsAbsent = Box<dyn Fn(LayerRef<'_>, &Dims, Blocking) -> Result<bool, FormatError> + Send + Sync>;

impl File {
    /// Declares a file. Its content is made when it is opened, and may not wait for the source.
    pub(crate) fn new(
        name: impl Into<String>,
        content: impl Fn(LayerRef<'_>) -> Result<Content, FormatError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), content: Box::new(content), may_block: false, is_there: None }
    }

    /// Lets the content wait for the source.
    pub(crate) fn blocking(self) -> Self {
        Self { may_block: true, ..self }
    }

    /// Shows the file only while this is true. It has a number in any case.
    pub(crate) fn shown_if(self, is_there: fn(LayerRef<'_>) -> bool) -> Self {
        Self { is_there: Some(is_there), ..self }
    }
}

impl Grid {
    /// Declares `count` files along each axis.
    pub(crate) fn new(
        name: impl Into<String>,
        count: Dims,
        suffix: &'static str,
        content: impl Fn(LayerRef<'_>, &Dims) -> Result<Content, FormatError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), count, suffix, content: Box::new(content), is_absent: None }
    }

    /// Leaves out the files of which this is true.
    pub(crate) fn without(
        self,
        is_absent: impl Fn(LayerRef<'_>, &Dims, Blocking) -> Result<bool, FormatError> + Send + Sync + 'static,
    ) -> Self {
        Self { is_absent: Some(Box::new(is_absent)), ..self }
    }

    /// Returns how many folders or files have so many numbers in their paths.
    pub(super) fn at_depth(&self, depth: usize) -> Option<u64> {
        self.count.iter().take(depth).try_fold(1u64, |product, n| product.checked_mul(*n))
    }

    /// Returns how many there are at all smaller depths.
    pub(super) fn before(&self, depth: usize) -> Option<u64> {
        (0..depth).try_fold(0u64, |sum, depth| sum.checked_add(self.at_depth(depth)?))
    }

    pub(super) fn nodes(&self) -> Option<u64> {
        self.before(self.count.len() + 1)
    }
}

impl From<File> for Entry {
    fn from(file: File) -> Self {
        Self::File(file)
    }
}

impl From<Dir> for Entry {
    fn from(dir: Dir) -> Self {
        Self::Dir(dir)
    }
}

impl From<Grid> for Entry {
    fn from(grid: Grid) -> Self {
        Self::Grid(grid)
    }
}

impl Entry {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::File(File { name, .. }) | Self::Dir(Dir { name, .. }) | Self::Grid(Grid { name, .. }) => name,
        }
    }

    fn nodes(&self) -> Option<u64> {
        match self {
            Self::File(_) => Some(1),
            Self::Dir(dir) => nodes(&dir.entries)?.checked_add(1),
            Self::Grid(grid) => grid.nodes(),
        }
    }
}

fn nodes(entries: &[Entry]) -> Option<u64> {
    entries.iter().try_fold(0u64, |sum, entry| sum.checked_add(entry.nodes()?)).filter(|nodes| *nodes <= MAX_NODES)
}

/// Returns whether entries, with all that is in them, are few enough to be numbered.
pub(crate) fn can_be_numbered(entries: &[Entry]) -> bool {
    nodes(entries).is_some()
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
        File::new(format!("lod{lod}{suffix}"), move |layer| content(layer, lod)).into()
    };
    levels.map(file).collect()
}

/// Returns the names of all files of one level in the folder of the layer, in order of the views: those that begin with
/// `lodN.`. A folder of the level ends in `/`; of other folders the files of the level are named, as `FOLDER/FILE`.
pub(crate) fn files_of_level(layer: LayerRef<'_>, lod: usize) -> Vec<String> {
    let beginning = format!("lod{lod}.");
    let mut files = Vec::new();
    for view in layer.views.iter().filter(|view| view.beside_layer().is_none()) {
        for entry in view.entries(layer) {
            let name = entry.name();
            match (name.starts_with(&beginning), &entry) {
                (true, Entry::File(_)) => files.push(name.to_owned()),
                (true, _) => files.push(format!("{name}/")),
                (false, Entry::Dir(dir)) if !is_of_a_level(name) => {
                    let of_level = dir.entries.iter().filter(|entry| matches!(entry, Entry::File(_)));
                    let of_level = of_level.map(Entry::name).filter(|name| name.starts_with(&beginning));
                    files.extend(of_level.map(|file| format!("{name}/{file}")));
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
