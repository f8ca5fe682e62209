//! Computes the content of files when they are opened.

use std::sync::Arc;

use super::error::FsError;
use super::ino::Ino;
use super::read_errors::content_error;
use super::resolve::Resolved;
use super::status::{Now, status};
use super::tree::{Item, Tree};
use super::volfs::Volfs;
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::memory::claim;
use crate::source::Blocking;
use crate::view::{Content, json, json_text};

/// The most bytes that a description takes while it is written.
const DESCRIPTION: usize = 48 << 20;

impl Volfs {
    /// Returns the current content of a file.
    pub(super) fn content(&self, resolved: &Resolved, blocking: Blocking) -> Result<Content, FsError> {
        match resolved {
            Resolved::Status | Resolved::PublicStatus => {
                let (uptime, cache_bytes, gauges) =
                    (self.started.elapsed(), self.reader.bytes_held(), self.reader.gauges());
                let store = self.catalog.tree().store_status();
                let names = matches!(resolved, Resolved::Status);
                let (open_files, source_stall) = (self.handles.open_files(), self.stall_status(names));
                let now = Now { uptime, cache_bytes, open_files, gauges, store, source_stall };
                Ok(status(&self.options, &self.counters, (&self.datasets, names), &now).into())
            }
            Resolved::Log => Ok(self.log.text().into()),
            Resolved::Error(node, error) => Ok(format!("{}: {error}\n", node.name.to_string_lossy()).into()),
            Resolved::Inside(node, open, tree, item) => {
                let ino = Ino::new(node.id, tree.index(*item));
                if let Some(text) = self.computed_contents.text(ino, open) {
                    return Ok(Content::Bytes(text));
                }
                let content = self.content_inside((open, tree, *item), blocking)?;
                // the description names files that turn out to be missing when they are opened
                self.computed_contents.put(ino, open, &content, *item != Item::Description);
                Ok(content)
            }
            _ => Err(FsError::IsAFolder),
        }
    }
    /// Returns the content of a file of an open dataset.
    fn content_inside(
        &self,
        (open, tree, item): (&Arc<OpenDataset>, &Tree, Item),
        blocking: Blocking,
    ) -> Result<Content, FsError> {
        let failed = |error: &FormatError| content_error(self.catalog_and_pool(), open, error);
        match item {
            Item::Description if blocking == Blocking::No => Err(FsError::WouldBlock),
            Item::Description => {
                let _claim = claim(DESCRIPTION).map_err(|error| failed(&error.into()))?;
                let description = json::dataset(open, tree.views()).map_err(|error| failed(&error))?;
                Ok(json_text(&description).into())
            }
            Item::View { layer, view, node } => {
                let (view, layer) = (tree.view(view), tree.layer(open, layer));
                match blocking {
                    _ if view.is_folder(layer, node) => Err(FsError::IsAFolder),
                    Blocking::No if view.may_block() => Err(FsError::WouldBlock),
                    _ => view.content(layer, node).map_err(|error| failed(&error)),
                }
            }
            Item::Dataset | Item::Layer(_) | Item::Error => Err(FsError::IsAFolder),
        }
    }
}
