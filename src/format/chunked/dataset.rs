//! A dataset of groups and arrays.

use std::sync::Arc;

use super::node::Node;
use super::tree::{Convention, Layers, layers};
use crate::format::{Dataset, Finding, FormatError, HiddenLayer, Layer};
use crate::source::{Folder, IndexCache};
use crate::volume::DatasetInfo;

/// Opens the dataset whose top is `top`.
pub(in crate::format) fn open(
    convention: &dyn Convention,
    (folder, cache): (Arc<dyn Folder>, &Arc<IndexCache>),
    top: Node,
    info: DatasetInfo,
) -> Result<Box<dyn Dataset>, FormatError> {
    let made = layers(convention, &folder, cache, top)?;
    of_layers(made, info, Some(folder))
}

/// Makes a dataset of layers. If all that it has is one array that cannot be shown, it does not open.
pub(in crate::format) fn of_layers(
    Layers { layers, hidden, warnings }: Layers,
    info: DatasetInfo,
    folder: Option<Arc<dyn Folder>>,
) -> Result<Box<dyn Dataset>, FormatError> {
    if let ([], [hidden]) = (&layers[..], &hidden[..]) {
        let kind = if hidden.damaged { FormatError::Damaged } else { FormatError::Unsupported };
        return Err(kind(format!("{}: {}", hidden.name, hidden.reason)));
    }
    Ok(Box::new(Hierarchy { info: DatasetInfo { warnings, ..info }, layers, hidden, folder }))
}

struct Hierarchy {
    info: DatasetInfo,
    layers: Vec<Layer>,
    hidden: Vec<HiddenLayer>,
    /// The folder that it is in; `None` if it is one file.
    folder: Option<Arc<dyn Folder>>,
}

impl Dataset for Hierarchy {
    fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn layers(&self) -> &[Layer] {
        &self.layers
    }

    fn hidden(&self) -> &[HiddenLayer] {
        &self.hidden
    }

    fn check_structure(&self, report: &mut dyn FnMut(Finding)) -> Result<(), FormatError> {
        let damaged = self.hidden.iter().filter(|layer| layer.damaged);
        damaged.for_each(|layer| report(Finding::damage(layer.reason.clone()).of_layer(&layer.name)));
        Ok(())
    }

    fn is_changed(&self) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.is_changed())
    }
}
