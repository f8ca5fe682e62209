//! What a check of a dataset's structure finds.

use crate::volume::Dims;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    /// Something is damaged, missing or contradicts itself.
    Damage,
    /// Something could not be read, so that nothing is known of it.
    Unread,
    /// Nothing is wrong with the data, but their users may want to know.
    Note,
}

/// Something that a check of a dataset's structure found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The layer that it concerns; `None` for the whole dataset.
    pub layer: Option<String>,
    /// The level that it concerns.
    pub lod: Option<usize>,
    /// The brick that it concerns: its index in the grid.
    pub brick: Option<Dims>,
    /// What was found.
    pub reason: String,
}

impl Finding {
    /// Describes damage of the whole dataset.
    pub(crate) fn damage(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Damage, layer: None, lod: None, brick: None, reason: reason.into() }
    }

    /// Describes a failure to read something, of the whole dataset.
    pub(crate) fn unread(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Unread, ..Self::damage(reason) }
    }

    /// Describes what users of the whole dataset may want to know.
    pub(crate) fn note(reason: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::damage(reason) }
    }

    /// Limits the finding to a layer.
    pub(crate) fn of_layer(self, layer: &str) -> Self {
        Self { layer: Some(layer.to_owned()), ..self }
    }

    /// Limits the finding to a level of its layer.
    pub(crate) fn of_lod(self, lod: usize) -> Self {
        Self { lod: Some(lod), ..self }
    }

    /// Limits the finding to a brick of its level.
    pub(crate) fn of_brick(self, brick: Dims) -> Self {
        Self { brick: Some(brick), ..self }
    }
}
