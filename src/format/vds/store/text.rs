//! The text with the description: read when the dataset is opened, and again when all of it is asked for. Keeping it would take
//! memory for every open dataset.

use std::sync::Arc;

use super::super::description::{self, Description, LONGEST};
use crate::format::FormatError;
use crate::source::{Source, Wait};
use crate::volume::ObjectName;

/// How a description is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As `VolumeDataLayout`.
    Json,
    /// As `VDSObject`.
    Object,
}

/// Where a description is.
pub struct Text {
    source: Arc<dyn Source>,
    object: ObjectName,
    offset: u64,
    length: u64,
    /// How it is written down.
    pub spelling: Spelling,
}

impl Text {
    /// The text in `length` bytes of an object, from `offset` on.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if it is too long for a description.
    pub fn new(
        source: Arc<dyn Source>,
        object: ObjectName,
        (offset, length): (u64, u64),
        spelling: Spelling,
    ) -> Result<Self, FormatError> {
        if length > LONGEST {
            return Err(FormatError::Damaged(format!("its description claims {length} bytes")));
        }
        Ok(Self { source, object, offset, length, spelling })
    }

    /// Reads it. May wait.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if it makes no sense, and those of the source.
    pub fn read(&self) -> Result<Description, FormatError> {
        let mut text = vec![0; self.length as usize];
        if !self.source.read_at(&self.object, self.offset, &mut text, Wait::Yes)? {
            return Err(FormatError::Damaged(format!("{} is not there", self.object)));
        }
        self.source.check_unchanged()?;
        let described = match self.spelling {
            Spelling::Json => description::of_json(&text),
            Spelling::Object => description::of_object(&text),
        };
        described.map_err(|why| FormatError::Damaged(format!("bad layout: {why}")))
    }
}
