//! The signs by which a file is a dataset: its first bytes, and its extension.

use std::path::Path;

use crate::format::{Format, Registry};

/// Bytes of a file that may be read to find out its format.
pub(crate) const HEAD: u64 = 16;

/// Returns the format of a file that begins with `head`.
pub(crate) fn format_of_head(formats: Registry, head: &[u8]) -> Option<&'static dyn Format> {
    formats.iter().find(|format| format.is_file(head))
}

/// Returns the format with the extension of a file's name.
pub(crate) fn format_of_extension(formats: Registry, name: &Path) -> Option<&'static dyn Format> {
    let extension = name.extension()?.to_str()?.to_ascii_lowercase();
    formats.iter().find(|format| format.extension() == Some(&*extension))
}
