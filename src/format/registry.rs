//! The formats that a catalog knows.

use super::{Format, vds, wkw, zgy};

/// A list of formats, in the order in which they are asked whether a path is theirs. Tests may add formats of their
/// own.
#[derive(Clone, Copy)]
pub(crate) struct Registry(&'static [&'static dyn Format]);

impl Registry {
    /// Creates a registry of these formats.
    #[cfg(test)]
    pub(crate) const fn new(formats: &'static [&'static dyn Format]) -> Self {
        Self(formats)
    }

    /// Returns the formats in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static dyn Format> {
        self.0.iter().copied()
    }

    /// Returns the names of all formats in upper case, separated by commas, for messages.
    pub(crate) fn names(self) -> String {
        let names: Vec<String> = self.iter().map(|format| format.name().to_uppercase()).collect();
        names.join(", ")
    }
}

/// Returns the formats of this version.
pub(crate) const fn registry() -> Registry {
    Registry(&[&zgy::Zgy, &wkw::Wkw, &vds::Vds])
}
