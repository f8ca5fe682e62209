//! Computes the content of files when they are opened.

use super::error::FsError;
use super::read_errors::content_error;
use super::resolve::Resolved;
use super::status::{Now, status};
use super::tree::Item;
use super::volfs::Volfs;
use crate::memory::claim;
use crate::source::Wait;
use crate::view::{Content, json, json_text};

/// The most bytes that a description takes while it is written.
const DESCRIPTION: usize = 48 << 20;

impl Volfs {
    /// Returns the current content of a file.
    ///
    /// # Errors
    /// [`FsError::IsAFolder`] if it is a folder, [`FsError::Io`] if its content cannot be computed.
    pub(super) fn content(&self, resolved: &Resolved, wait: Wait) -> Result<Content, FsError> {
        match resolved {
            Resolved::Status => {
                let (uptime, cache_bytes, gauges) =
                    (self.started.elapsed(), self.reader.bytes_held(), self.reader.gauges());
                let store = self.catalog.tree().store_status();
                let now = Now { uptime, cache_bytes, open_files: self.handles.open_files(), gauges, store };
                Ok(status(&self.options, &self.counters, &self.datasets, &now).into())
            }
            Resolved::Log => Ok(self.log.text().into()),
            Resolved::Error(node, error) => Ok(format!("{}: {error}\n", node.name.to_string_lossy()).into()),
            Resolved::Inside(_, _, _, Item::Description) if wait == Wait::No => Err(FsError::WouldBlock),
            Resolved::Inside(_, open, tree, Item::Description) => {
                let _claim =
                    claim(DESCRIPTION).map_err(|error| content_error(self.catalog_and_pool(), open, &error.into()))?;
                let description = json::dataset(open, tree.views())
                    .map_err(|error| content_error(self.catalog_and_pool(), open, &error))?;
                Ok(json_text::format(&description).into())
            }
            Resolved::Inside(_, open, tree, Item::View { layer, view, node }) => {
                let (view, layer) = (tree.view(*view), tree.layer(open, *layer));
                match wait {
                    _ if view.is_folder(layer, *node) => Err(FsError::IsAFolder),
                    Wait::No if view.may_block() => Err(FsError::WouldBlock),
                    _ => {
                        view.content(layer, *node).map_err(|error| content_error(self.catalog_and_pool(), open, &error))
                    }
                }
            }
            _ => Err(FsError::IsAFolder),
        }
    }
}
