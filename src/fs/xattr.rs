//! The extended attributes of files that show an array.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::view::ShownArray;

/// The name of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Samples along each axis, slowest first: `512,512,1024`.
    Shape,
    /// NumPy's name of the sample type.
    Dtype,
    /// Always `C`.
    Order,
    /// The dataset's format.
    Format,
}

const ALL: [(&str, Name); 4] = [
    ("user.volfs.shape", Name::Shape),
    ("user.volfs.dtype", Name::Dtype),
    ("user.volfs.order", Name::Order),
    ("user.volfs.format", Name::Format),
];

/// Returns whether a name is that of a user attribute, the only kind that files here have: access lists (`system.`) and
/// security labels (`security.`) are other kinds.
pub(crate) fn is_user_attribute(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"user.")
}

/// Returns the attribute with a name.
pub(crate) fn parse(name: &OsStr) -> Option<Name> {
    ALL.iter().find(|(text, _)| name == *text).map(|(_, name)| *name)
}

/// Returns all names, each followed by a zero byte.
pub(crate) fn names() -> Vec<u8> {
    ALL.iter().flat_map(|(text, _)| text.bytes().chain([0])).collect()
}

/// Returns the value of an attribute of a file that shows the array `shown`, in a dataset of `format`.
pub(crate) fn value(shown: &ShownArray, format: &str, name: Name) -> Vec<u8> {
    match name {
        Name::Shape => shown.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
        Name::Dtype => shown.dtype.name().to_owned(),
        Name::Order => "C".to_owned(),
        Name::Format => format.to_owned(),
    }
    .into_bytes()
}
