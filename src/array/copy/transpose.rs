//! Transposes samples in tiles, so that each cache line that is fetched is used completely.

/// A 2-D block of samples to transpose: those of a row are neighbours in the source, those of a column in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile2d {
    /// Samples in a row.
    pub row: usize,
    /// Samples in a column.
    pub column: usize,
    /// Bytes from one row to the next in the source.
    pub from: usize,
    /// Bytes from one column to the next in the target.
    pub to: usize,
}

impl Tile2d {
    /// Transposes the block. Source and target begin at its first sample; a sample has `size` bytes.
    pub(crate) fn copy(&self, size: usize, source: &[u8], target: &mut [u8]) {
        // a row of a tile fills a vector register
        match size {
            1 => self.tiles::<1, 16>(source, target),
            2 => self.tiles::<2, 8>(source, target),
            4 => self.tiles::<4, 4>(source, target),
            8 => self.tiles::<8, 2>(source, target),
            _ => self.samples(size, 0..self.column, 0..self.row, source, target),
        }
    }

    fn tiles<const SIZE: usize, const TILE: usize>(&self, source: &[u8], target: &mut [u8])
    where
        [u8; SIZE]: Default,
    {
        let (rows, columns) = (self.column - self.column % TILE, self.row - self.row % TILE);
        // down a column of tiles: each of the tile's columns is one sequential stream of writes
        for column in (0..columns).step_by(TILE) {
            for row in (0..rows).step_by(TILE) {
                let from = &source[row * self.from + column * SIZE..];
                let to = &mut target[column * self.to + row * SIZE..];
                tile::<SIZE, TILE>(from, self.from, to, self.to);
            }
        }
        self.samples(SIZE, rows..self.column, 0..columns, source, target);
        self.samples(SIZE, 0..self.column, columns..self.row, source, target);
    }

    /// Copies the samples at the edges that do not fill a tile.
    fn samples(
        &self,
        size: usize,
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
        source: &[u8],
        target: &mut [u8],
    ) {
        for row in rows {
            for column in columns.clone() {
                let (from, to) = (row * self.from + column * size, column * self.to + row * size);
                target[to..to + size].copy_from_slice(&source[from..from + size]);
            }
        }
    }
}

#[inline(always)]
fn tile<const SIZE: usize, const TILE: usize>(source: &[u8], from: usize, target: &mut [u8], to: usize)
where
    [u8; SIZE]: Default,
{
    let mut rows = [[<[u8; SIZE]>::default(); TILE]; TILE];
    for (n, row) in rows.iter_mut().enumerate() {
        row.copy_from_slice(&source[n * from..n * from + TILE * SIZE].as_chunks().0[..TILE]);
    }
    // each round interleaves the rows of the upper half with those of the lower half, like shuffled cards
    for _ in 0..TILE.ilog2() {
        let old = rows;
        for n in 0..TILE / 2 {
            for k in 0..TILE / 2 {
                rows[2 * n][2 * k] = old[n][k];
                rows[2 * n][2 * k + 1] = old[n + TILE / 2][k];
                rows[2 * n + 1][2 * k] = old[n][k + TILE / 2];
                rows[2 * n + 1][2 * k + 1] = old[n + TILE / 2][k + TILE / 2];
            }
        }
    }
    for (n, row) in rows.iter().enumerate() {
        target[n * to..n * to + TILE * SIZE].as_chunks_mut().0[..TILE].copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_become_columns(
            row in 1usize..40, column in 1usize..40, more in (0usize..5, 0usize..5),
            size in prop::sample::select(vec![1usize, 2, 3, 4, 8]),
        ) {
            let tile = Tile2d { row, column, from: (row + more.0) * size, to: (column + more.1) * size };
            let source: Vec<u8> = (0..column * tile.from).map(|n| (n % 251) as u8).collect();
            let mut target = vec![255; row * tile.to];
            tile.copy(size, &source, &mut target);
            for (x, line) in target.chunks(tile.to).enumerate() {
                for y in 0..column {
                    let from = y * tile.from + x * size;
                    prop_assert_eq!(&line[y * size..][..size], &source[from..from + size]);
                }
                prop_assert!(line[column * size..].iter().all(|b| *b == 255), "nothing else is written");
            }
        }
    }
}
