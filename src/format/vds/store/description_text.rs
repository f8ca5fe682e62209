//! The text of a description. It is read when the dataset is opened, and again for the metadata, so that open datasets
//! need not keep it in memory.

use std::sync::Arc;

use super::super::description::{self, Description, MAX_DESCRIPTION_BYTES};
use crate::format::FormatError;
use crate::memory::try_zeroed;
use crate::source::{Blocking, Source};
use crate::volume::ObjectName;

/// The syntax of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// The JSON of `VolumeDataLayout`.
    Json,
    /// The text of `VDSObject`.
    Object,
}

/// The location of a description.
pub(crate) struct DescriptionText {
    source: Arc<dyn Source>,
    object: ObjectName,
    offset: u64,
    length: u64,
    pub syntax: Syntax,
}

impl DescriptionText {
    /// Describes the text in `length` bytes of an object, from `offset` on.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        object: ObjectName,
        (offset, length): (u64, u64),
        syntax: Syntax,
    ) -> Result<Self, FormatError> {
        if length > MAX_DESCRIPTION_BYTES {
            return Err(FormatError::Damaged(format!("its description claims {length} bytes")));
        }
        Ok(Self { source, object, offset, length, syntax })
    }

    /// Reads and parses the text. May wait.
    pub(crate) fn read(&self) -> Result<Description, FormatError> {
        let mut text = try_zeroed(self.length as usize)?;
        if !self.source.read_at(&self.object, self.offset, &mut text, Blocking::Yes)? {
            return Err(FormatError::Damaged(format!("{} is not there", self.object)));
        }
        self.source.check_unchanged()?;
        let described = match self.syntax {
            Syntax::Json => description::of_json(&text),
            Syntax::Object => description::of_object(&text),
        };
        described.map_err(|why| FormatError::Damaged(format!("bad layout: {why}")))
    }
}
