//! The free list of the buffer pool: unused blocks by size class.

use std::collections::HashMap;

use super::block::Block;

/// Unused blocks, by size.
#[derive(Default)]
pub(super) struct FreeList {
    classes: HashMap<usize, SizeClass>,
    bytes: usize,
    clock: u64,
}

/// Unused blocks of one size, at least one.
#[derive(Default)]
struct SizeClass {
    /// The time on the list's clock at which the last of them was added.
    last_added: u64,
    blocks: Vec<Block>,
}

impl FreeList {
    /// Returns the bytes of all blocks in the list.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of the largest block.
    pub(crate) fn largest(&self) -> usize {
        self.classes.keys().copied().max().unwrap_or(0)
    }

    /// Returns the bytes of the blocks of exactly `size` bytes.
    pub(crate) fn bytes_of(&self, size: usize) -> usize {
        self.classes.get(&size).map_or(0, |class| class.blocks.len() * size)
    }

    /// Takes the block of exactly `size` bytes that was added last.
    pub(crate) fn pop(&mut self, size: usize) -> Option<Block> {
        let class = self.classes.get_mut(&size)?;
        let block = class.blocks.pop();
        if class.blocks.is_empty() {
            self.classes.remove(&size);
        }
        self.bytes -= if block.is_some() { size } else { 0 };
        block
    }

    /// Removes a block: first one of another size than `size`, of the size class to which no block was added for the
    /// longest time.
    pub(crate) fn evict(&mut self, size: usize) -> Option<Block> {
        let age = |(other, class): &(&usize, &mut SizeClass)| (**other == size, class.last_added);
        let (&other, class) = self.classes.iter_mut().min_by_key(age)?;
        let block = class.blocks.remove(0);
        if class.blocks.is_empty() {
            self.classes.remove(&other);
        }
        self.bytes -= other;
        Some(block)
    }

    /// Adds `block`, and returns the blocks that exceed `capacity` bytes: first those of other sizes, from the size
    /// class to which no block was added for the longest time.
    pub(crate) fn push(&mut self, block: Block, capacity: usize) -> Vec<Block> {
        let size = block.len();
        let mut evicted = Vec::new();
        while self.bytes + size > capacity {
            let Some(other) = self.evict(size) else {
                evicted.push(block);
                return evicted;
            };
            evicted.push(other);
        }
        self.clock += 1;
        let class = self.classes.entry(size).or_default();
        class.last_added = self.clock;
        class.blocks.push(block);
        self.bytes += size;
        evicted
    }
}
