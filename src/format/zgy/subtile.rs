//! The order of samples in a brick of version 1: tiles of 8 x 8 traces, where a trace is a vertical column of 64
//! samples.
//!
//! OpenZGY's text on the format describes tiles of 8 x 8 x 8; its libraries and their test files have full columns, as
//! here.

/// Traces along either horizontal axis of a brick, and of a tile.
const SIDE: usize = 64;
const TILE: usize = 8;
/// Samples of a trace.
const TRACE: usize = 64;
/// Samples of a brick.
const BRICK: usize = SIDE * SIDE * TRACE;

/// Copies a tiled brick into C order; a sample has `size` bytes. Returns `false` if a slice has the wrong length for a
/// brick.
pub(super) fn untile(stored: &[u8], out: &mut [u8], size: usize) -> bool {
    let run = TILE * TRACE * size;
    if stored.len() != BRICK * size || out.len() != stored.len() || run == 0 {
        return false;
    }
    // eight neighbouring traces stay contiguous: for inline 8 I + p, the run of tile (I, J) is at (I, J, p) in the file
    // and goes to (I, p, J)
    let per = SIDE / TILE;
    for (number, to) in out.chunks_exact_mut(run).enumerate() {
        let (tiles, p, j) = (number / (per * TILE), number / per % TILE, number % per);
        let from = (tiles * per + j) * TILE + p;
        if let Some(run) = stored.chunks_exact(run).nth(from) {
            to.copy_from_slice(run);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_move_to_their_positions_in_c_order() {
        let stored: Vec<u8> = (0..BRICK as u32 * 2).map(|n| (n ^ n >> 7 ^ n >> 13) as u8).collect();
        let mut out = vec![0; stored.len()];
        assert!(untile(&stored, &mut out, 2));
        for (i, j, k) in [(0, 0, 0), (0, 0, 63), (0, 8, 2), (1, 0, 5), (17, 42, 3), (63, 63, 63), (8, 7, 0)] {
            let from = (((i / 8 * 8 + j / 8) * 8 + i % 8) * 8 + j % 8) * 64 + k;
            let to = (i * 64 + j) * 64 + k;
            assert_eq!(out[2 * to..2 * to + 2], stored[2 * from..2 * from + 2], "{i} {j} {k}");
        }
        let mut again = vec![0; stored.len()];
        assert!(untile(&out, &mut again, 2));
        assert!(again == stored);
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(!untile(&[0; 64], &mut [0; 64], 1));
        assert!(!untile(&[], &mut [], 0));
    }
}
