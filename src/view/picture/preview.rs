//! `preview.png`: the middle slice across each axis of a layer, side by side, small enough to be computed as a whole.

use std::sync::Arc;

use super::preview_file::PreviewFile;
use super::preview_plan::Plan;
use super::subject::why_no_pictures;
use crate::format::FormatError;
use crate::view::content::Content;
use crate::view::virtual_file::{Entry, LayerRef, View};

const NAME: &str = "preview.png";

/// The view of a layer.
pub(crate) struct Preview;

impl View for Preview {
    fn name(&self) -> Option<&'static str> {
        Some("preview")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Plan::of(layer).is_some().into()
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let is_hidden = Plan::of(layer).is_none();
        is_hidden.then(|| (NAME.to_owned(), why_no_pictures(layer, "it is too long and thin").to_owned()))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if let Some(entry) = self.find(layer, folder, NAME) {
            add(entry);
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let exists = folder.is_none() && name == NAME && self.nodes(layer) > 0;
        exists.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, _: u64) -> Result<Content, FormatError> {
        let plan = Plan::of(layer).ok_or_else(|| FormatError::Unsupported("the layer has no preview".into()))?;
        let array = Arc::clone(&layer.levels()[plan.lod]);
        Ok(Content::Computed(Arc::new(PreviewFile::new(array, plan))))
    }
}
