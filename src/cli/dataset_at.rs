//! Opens the dataset that a path means: one of its own, or one inside a mount, whose source is opened then.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::{self, OpenDataset};
use crate::cli::chosen_source::resolved_source;
use crate::cli::error::CliError;
use crate::cli::mounts::source_behind::{Shown, shown_at};
use crate::codec::zfp::Decoder;
use crate::format::registry;
use crate::fs::layer_folders;
use crate::source::{Origin, StoreOption, is_url};

/// An open dataset, and what the path says besides.
pub(crate) struct DatasetAt {
    /// Where the dataset is: the path that was typed, or its source.
    pub path: PathBuf,
    /// The dataset.
    pub open: OpenDataset,
    /// The layer in whose folder of the mount the path lies, by number.
    pub layer: Option<usize>,
    /// The level whose file the path is.
    pub lod: Option<usize>,
    /// The name of the file that the path is.
    pub file: Option<String>,
}

impl DatasetAt {
    /// Opens the dataset at `typed`, which may be a URL, read with `store_options`; `quality` and `zfp` are those of
    /// [`catalog::open_source`].
    pub(crate) fn open(
        typed: &Path,
        store_options: &[StoreOption],
        quality: Option<u8>,
        zfp: Decoder,
    ) -> Result<Self, CliError> {
        let outside = || Shown { path: typed.to_owned(), inside: Vec::new() };
        let Shown { path, inside } = shown_at(typed, store_options)?.unwrap_or_else(outside);
        let path = if is_url(&path) { resolved_source(&path)? } else { path };
        let failed = |error| CliError::Dataset { dataset: path.clone(), error };
        let origin = Origin { path: path.clone(), store_options: store_options.to_owned(), ..Origin::default() };
        let tree =
            origin.tree(true, Arc::default()).map_err(|error| CliError::Store(path.clone(), error.to_string()))?;
        let open = catalog::open_source(registry(), tree, quality, zfp).map_err(failed)?;
        let mut found = Self { path, open, layer: None, lod: None, file: None };
        found.go_inside(&inside).ok_or_else(|| {
            let (shown, dataset) = (typed.to_owned(), found.path.clone());
            CliError::NotInDataset { shown, dataset, layers: layer_folders(&found.open).join(", ") }
        })?;
        Ok(found)
    }

    /// Follows the names below the dataset's folder; `None` if there can be no such file or folder.
    fn go_inside(&mut self, names: &[OsString]) -> Option<()> {
        let names: Option<Vec<&str>> = names.iter().map(|name| name.to_str()).collect();
        let (first, rest) = match names?.as_slice() {
            [] => return Some(()),
            [first, rest @ ..] => ((*first).to_owned(), rest.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
        };
        self.layer = layer_folders(&self.open).into_iter().position(|folder| folder == first);
        if self.layer.is_none() {
            // a file about the dataset, such as dataset.json, or a folder with all levels of a layer
            self.file = Some(first.clone());
            return (rest.is_empty() && first.contains('.')).then_some(());
        }
        if let Some(file) = rest.last() {
            self.lod = lod_of(file);
            self.file = Some(file.clone());
        }
        Some(())
    }
}

/// Returns the level that a file such as `lod2.by-sample.npy` shows.
fn lod_of(file: &str) -> Option<usize> {
    let (number, _) = file.strip_prefix("lod")?.split_once('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_in_the_name() {
        for (file, lod) in [
            ("lod0.raw", Some(0)),
            ("lod12.by-sample.npy", Some(12)),
            ("lod1.float32.npy", Some(1)),
            ("lod0", None),
            ("lodx.raw", None),
            ("preview.png", None),
        ] {
            assert_eq!(lod_of(file), lod, "{file}");
        }
    }
}
