//! The names of the types of metadata entries.

/// Returns the element type of a type, and the number of its elements: `IntVector3` is three of `Int`.
pub(crate) fn element_type(kind: &str) -> (&str, usize) {
    for (suffix, length) in [("Vector2", 2), ("Vector3", 3), ("Vector4", 4)] {
        if let Some(scalar) = kind.strip_suffix(suffix) {
            return (scalar, length);
        }
    }
    (kind, 1)
}
