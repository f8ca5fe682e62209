//! What the entries of a folder are.

/// The type of a folder's entry, as the folder itself has it: links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A regular file.
    File,
    /// Anything else: a pipe, a socket, a device.
    Other,
}
