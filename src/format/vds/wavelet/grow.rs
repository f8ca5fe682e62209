//! Buffers that are used again from chunk to chunk.

/// Makes `items` at least `count` long, with arbitrary content, in no more memory than the largest count so far needs.
pub(super) fn grow_to<T: Copy + Default>(items: &mut Vec<T>, count: usize) {
    if items.len() < count {
        // frees the old memory before it allocates the new
        *items = Vec::new();
        items.reserve_exact(count);
        items.resize(count, T::default());
    }
}
