//! Reads blocks of WKW cubes with a valid header and a jump table that mostly fits: the input has the type of the
//! voxels, the sides of blocks and cubes, the boundaries of the blocks, and their bytes.

use std::collections::BTreeMap;

use crate::codec::lz4;

use super::bytes::Bytes;
use super::wkw_open;

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let mut input = Bytes(input);
    let (kind, size) = input.one(&[(1, 1), (2, 2), (3, 4), (4, 8), (5, 4), (6, 8), (7, 1), (8, 2), (9, 4), (10, 8)]);
    let channels = input.one(&[1, 1, 3, 2]);
    let (block_log, file_log) = (input.below(5) as u8, input.below(3) as u8);
    let coding = input.one(&[2, 3, 1]);
    let voxel = size * channels;
    let block_bytes = usize::from(voxel) << (3 * block_log);
    let blocks = 1usize << (3 * file_log);
    let header = |offset: u64| {
        let head = [b'W', b'K', b'W', 1, file_log << 4 | block_log, coding, kind, voxel];
        [head, offset.to_le_bytes()].concat()
    };
    let mut cube = header(16);
    if coding == 1 {
        cube.extend(input.0);
    } else {
        let begin = 16 + 8 * blocks as u64;
        cube = header(begin);
        let mut stored = Vec::new();
        let mut boundaries = Vec::new();
        for _ in 0..blocks {
            match input.u8() {
                0 => stored.extend(lz4::zeros(block_bytes as u64).unwrap_or_default()),
                1 => stored.extend(literals(input.take(block_bytes), block_bytes)),
                length => stored.extend(input.take(usize::from(length))),
            }
            boundaries.push(begin + stored.len() as u64);
        }
        // now and then a boundary is elsewhere
        if input.u8() & 1 == 1 {
            boundaries[usize::from(input.u8()) % blocks] = input.u64();
        }
        boundaries.iter().for_each(|end| cube.extend(end.to_le_bytes()));
        cube.extend(stored);
    }
    wkw_open::read(BTreeMap::from([
        ("color/1/header.wkw".to_owned(), header(0)),
        ("color/1/z0/y0/x0.wkw".to_owned(), cube),
    ]))
}

/// Returns a block of `length` literals that begin with `bytes`.
fn literals(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut block = vec![(length.min(15) as u8) << 4];
    if let Some(more) = length.checked_sub(15) {
        block.resize(1 + more / 255, 255);
        block.push((more % 255) as u8);
    }
    let head = block.len();
    block.extend(bytes);
    block.resize(head + length, 3);
    block
}
