//! `lod0.sgy`: a survey as SEG-Y revision 1.

use std::sync::Arc;

use super::survey::Survey;
use super::survey_file::SurveyFile;
use crate::format::FormatError;
use crate::view::content::Content;
use crate::view::virtual_file::{Entry, LayerRef, View};

const NAME: &str = "lod0.sgy";

/// The formats of surveys.
const FORMATS: [&str; 2] = ["zgy", "vds"];

/// The view of LOD 0.
pub(crate) struct SurveySegy;

impl View for SurveySegy {
    fn name(&self) -> Option<&'static str> {
        Some("segy")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        let is_shown = FORMATS.contains(&layer.open.format) && Survey::of(layer).is_ok();
        u64::from(is_shown)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() && self.nodes(layer) > 0 {
            add(Entry { node: 0, name: NAME.to_owned(), folder: false });
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let is_there = folder.is_none() && name == NAME && self.nodes(layer) > 0;
        is_there.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let survey = FORMATS.contains(&layer.open.format).then(|| Survey::of(layer))?;
        survey.err().map(|reason| (NAME.to_owned(), reason))
    }

    fn content(&self, layer: LayerRef<'_>, _node: u64) -> Result<Content, FormatError> {
        let survey = Survey::of(layer).map_err(FormatError::Unsupported)?;
        Ok(Content::Computed(Arc::new(SurveyFile::new(layer, survey))))
    }
}
