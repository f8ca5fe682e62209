//! Copies boxes of several bricks whose rows follow one another in the reply, interleaved.
//!
//! Rows of bricks are short, and each brick lies in memory of its own, which the processor's cache rarely holds.
//! Copying one row of each brick before the next row of any lets the cache misses overlap, and writes the reply in
//! order.

use super::gather::Loops;

/// The greatest number of bricks that are interleaved: hardware prefetchers follow no more streams.
pub(crate) const MAX_INTERLEAVED: usize = 16;

/// Copies boxes that all have these loops. Each source begins at the first sample of its box, and `out` at the first
/// sample of the first box; each row goes right behind the same row of the box before it.
pub(crate) fn copy(loops: &Loops, sources: &[&[u8]], out: &mut [u8]) {
    if let [source] = sources {
        return loops.copy(source, out);
    }
    // a copy of constant length is inlined
    match loops.run().0 {
        16 => copy_rows::<16>(loops, sources, out),
        32 => copy_rows::<32>(loops, sources, out),
        64 => copy_rows::<64>(loops, sources, out),
        128 => copy_rows::<128>(loops, sources, out),
        256 => copy_rows::<256>(loops, sources, out),
        row => loops.for_each(loops.run().1, |from, to| {
            for (source, to) in sources.iter().zip(out[to..].chunks_exact_mut(row)) {
                to.copy_from_slice(&source[from..from + row]);
            }
        }),
    }
}

fn copy_rows<const ROW: usize>(loops: &Loops, sources: &[&[u8]], out: &mut [u8]) {
    loops.for_each(loops.run().1, |from, to| {
        let (rows, _) = out[to..].as_chunks_mut::<ROW>();
        for (source, to) in sources.iter().zip(rows) {
            if let Some(row) = source[from..].first_chunk() {
                *to = *row;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Dims;

    #[test]
    fn rows_of_all_lengths_are_copied_to_their_offsets() {
        for row in [1, 2, 16, 24, 32, 64, 100, 128, 256] {
            let (shape, strides) = (Dims::from([3, 4, row]), Dims::from([5, 4, row]).strides(1));
            for count in [1, 2, 5, 16] {
                let bytes: Vec<Vec<u8>> =
                    (0..count).map(|n| (0..20 * row).map(|at| (at * 7 + n * 31) as u8).collect()).collect();
                let sources: Vec<&[u8]> = bytes.iter().map(|bytes| &bytes[..]).collect();
                let to = Dims::from([3, 4, count * row + 3]).strides(1);
                let loops = Loops::new(&shape, &strides, &to, 1);
                let (mut got, mut expected) =
                    (vec![0; 12 * (count * row + 3) as usize], vec![0; 12 * (count * row + 3) as usize]);
                copy(&loops, &sources, &mut got);
                for (n, source) in sources.iter().enumerate() {
                    loops.copy(source, &mut expected[n * row as usize..]);
                }
                assert!(got == expected, "{count} rows of {row}");
            }
        }
    }
}
