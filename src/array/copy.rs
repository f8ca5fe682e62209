//! Copies boxes of samples between memory of different layouts: the inner loops of every read. No sources, no cache.

use super::output::Rows;
use super::region::{Piece, Selection};
use crate::format::FormatError;
use crate::memory::{OutOfMemory, make_room};
use crate::volume::{Dims, Element, Layout, MAX_AXES};

/// The greatest number of bricks whose rows are copied interleaved: hardware prefetchers follow no more streams.
const MAX_INTERLEAVED: usize = 16;

/// One axis of a copy: its samples, and the bytes between neighbours in the source and in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) count: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The loops of a copy, outermost first, for samples of `size` bytes. The source is read in ascending order, for any
/// order of axes in the target.
///
/// Axes of length one are dropped. Axes that are contiguous with each other on both sides are merged where that makes a
/// longer run; scattered rows and samples stay separate loops, so that a reader of a file can fetch them in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    steps: [Step; MAX_AXES],
    len: usize,
    size: usize,
}

impl Loops {
    /// Creates the loops over a box of `shape` whose neighbours are `from` bytes apart in the source and `to` bytes in
    /// the target.
    pub(super) fn new(shape: &Dims, from: &Dims, to: &Dims, size: usize) -> Self {
        let mut loops = Self { steps: Default::default(), len: 0, size };
        for a in (0..shape.len()).filter(|a| shape[*a] != 1) {
            loops.push(Step { count: shape[a] as usize, from: from[a] as usize, to: to[a] as usize });
        }
        loops.steps[..loops.len].sort_by_key(|step| std::cmp::Reverse(step.from));
        let sorted = loops;
        loops.len = 0;
        for inner in sorted.steps().iter().copied() {
            match loops.steps[..loops.len].last_mut() {
                Some(outer)
                    if inner.from == inner.to
                        && outer.from == inner.from * inner.count
                        && outer.to == inner.to * inner.count =>
                {
                    *outer = Step { count: outer.count * inner.count, ..inner };
                }
                _ => loops.push(inner),
            }
        }
        loops
    }

    fn push(&mut self, step: Step) {
        self.steps[self.len] = step;
        self.len += 1;
    }

    /// The loops, outermost first.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Returns the loops without the outermost `outer` ones.
    pub(super) fn inner(&self, outer: usize) -> Self {
        let mut inner = Self { len: 0, ..*self };
        self.steps()[outer..].iter().for_each(|step| inner.push(*step));
        inner
    }

    /// Returns the loops without the outermost `outer` ones, with `count` positions of the one that is outermost then.
    pub(super) fn part(&self, outer: usize, count: usize) -> Self {
        let mut part = self.inner(outer);
        if part.len > 0 {
            part.steps[0].count = count;
        }
        part
    }

    /// Whether all samples are contiguous on both sides.
    pub(super) fn is_run(&self) -> bool {
        self.run().1 == 0
    }

    /// Bytes of the source from the first byte of the first sample to the last byte of the last sample.
    pub(super) fn span(&self) -> usize {
        self.steps().iter().map(|s| (s.count - 1) * s.from).sum::<usize>() + self.size
    }

    /// Bytes of the samples themselves.
    pub(super) fn useful(&self) -> usize {
        self.steps().iter().map(|s| s.count).product::<usize>() * self.size
    }

    /// Returns the bytes of the innermost run that is contiguous on both sides, and the number of loops around it.
    pub(super) fn run(&self) -> (usize, usize) {
        match self.steps().last() {
            Some(last) if last.from == self.size && last.to == self.size => (last.count * self.size, self.len - 1),
            _ => (self.size, self.len),
        }
    }

    /// Splits the copy into 2-D transpositions and the loops around them, where the fastest axes of source and target
    /// differ.
    fn transposition(&self) -> Option<(Tile2d, Self)> {
        let (row, outer) = self.steps().split_last()?;
        let column = outer.iter().position(|step| step.to == self.size)?;
        let mut loops = Self { len: 0, ..*self };
        outer.iter().enumerate().filter(|(n, _)| *n != column).for_each(|(_, step)| loops.push(*step));
        let Step { count, from, .. } = outer[column];
        (row.from == self.size).then_some((Tile2d { row: row.count, column: count, from, to: row.to }, loops))
    }

    /// Calls `visit` with the source and target offset of every position of the outermost `outer` loops; stops at the
    /// first error.
    pub(super) fn try_for_each<E>(
        &self,
        outer: usize,
        mut visit: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let steps = &self.steps[..outer];
        let mut at = [0usize; MAX_AXES];
        let (mut from, mut to) = (0, 0);
        'positions: loop {
            visit(from, to)?;
            for (step, at) in steps.iter().zip(&mut at).rev() {
                *at += 1;
                from += step.from;
                to += step.to;
                if *at < step.count {
                    continue 'positions;
                }
                from -= step.from * step.count;
                to -= step.to * step.count;
                *at = 0;
            }
            return Ok(());
        }
    }

    /// Calls `visit` as [`Loops::try_for_each`] does, without errors.
    fn for_each(&self, outer: usize, mut visit: impl FnMut(usize, usize)) {
        // the innermost of the outer loops is a plain counter; only the others need the odometer of `try_for_each`
        let Some((inner, rest)) = self.steps[..outer].split_last() else { return visit(0, 0) };
        let walked = self.try_for_each::<()>(rest.len(), |from, to| {
            for n in 0..inner.count {
                visit(from + n * inner.from, to + n * inner.to);
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
    }

    /// Copies a box from each source, which begins at the first sample of the box. The first box goes to `at`, and each
    /// row of another one right behind the same row of the box before it: several boxes must have contiguous rows.
    ///
    /// Rows of bricks are short, and each brick lies in memory of its own, which the processor's cache rarely holds. To
    /// copy one row of each brick before the next row of any lets the cache misses overlap, and writes in order.
    pub(super) fn copy(&self, sources: &[&[u8]], out: &mut Rows<'_>, at: usize) {
        if let (&[source], Some((tile, loops))) = (sources, self.transposition()) {
            return loops.for_each(loops.len, |from, to| tile.copy(self.size, &source[from..], out, at + to));
        }
        // a copy of constant length is inlined
        match self.run().0 {
            1 => self.copy_runs::<1>(sources, out, at),
            2 => self.copy_runs::<2>(sources, out, at),
            3 => self.copy_runs::<3>(sources, out, at),
            4 => self.copy_runs::<4>(sources, out, at),
            8 => self.copy_runs::<8>(sources, out, at),
            16 => self.copy_runs::<16>(sources, out, at),
            32 => self.copy_runs::<32>(sources, out, at),
            64 => self.copy_runs::<64>(sources, out, at),
            128 => self.copy_runs::<128>(sources, out, at),
            256 => self.copy_runs::<256>(sources, out, at),
            run => self.for_each(self.run().1, |from, to| {
                for (n, source) in sources.iter().enumerate() {
                    out.row(at + to + n * run, run).copy_from_slice(&source[from..from + run]);
                }
            }),
        }
    }

    fn copy_runs<const RUN: usize>(&self, sources: &[&[u8]], out: &mut Rows<'_>, at: usize) {
        let (outer, mut out) = (self.run().1, out.local());
        match sources {
            &[source] => self.for_each(outer, |from, to| {
                if let Some(run) = source[from..].first_chunk::<RUN>() {
                    *out.array(at + to) = *run;
                }
            }),
            // the bounds of the target are checked once for all boxes: with a check for each, copies of 32 bytes took a
            // quarter longer
            _ => self.for_each(outer, |from, to| {
                let (rows, _) = out.row(at + to, sources.len() * RUN).as_chunks_mut::<RUN>();
                for (source, to) in sources.iter().zip(rows) {
                    if let Some(run) = source[from..].first_chunk() {
                        *to = *run;
                    }
                }
            }),
        }
    }

    /// Writes `value` to every sample of a box whose first sample is at `at`.
    pub(super) fn fill(&self, value: &Element, out: &mut Rows<'_>, at: usize) {
        let (run, outer) = match self.steps().last() {
            Some(last) if last.to == self.size => (last.count * self.size, self.len - 1),
            _ => (self.size, self.len),
        };
        self.for_each(outer, |_, to| value.fill(out.row(at + to, run)));
    }
}

/// A 2-D block of samples to transpose: those of a row are neighbours in the source, those of a column in the target.
struct Tile2d {
    /// Samples in a row.
    row: usize,
    /// Samples in a column.
    column: usize,
    /// Bytes from one row to the next in the source.
    from: usize,
    /// Bytes from one column to the next in the target.
    to: usize,
}

impl Tile2d {
    /// Transposes the block in tiles, so that each cache line that is fetched is used completely.
    fn copy(&self, size: usize, source: &[u8], out: &mut Rows<'_>, at: usize) {
        // a row of a tile fills a vector register
        match size {
            1 => self.tiles::<u8, 16>(source, out, at),
            2 => self.tiles::<u16, 8>(source, out, at),
            4 => self.tiles::<u32, 4>(source, out, at),
            8 => self.tiles::<u64, 2>(source, out, at),
            // as many as fill a cache line
            16 => self.tiles::<u128, 4>(source, out, at),
            _ => self.samples(size, 0..self.column, 0..self.row, source, out, at),
        }
    }

    fn tiles<T: Lane, const TILE: usize>(&self, source: &[u8], out: &mut Rows<'_>, at: usize) {
        let (rows, columns) = (self.column - self.column % TILE, self.row - self.row % TILE);
        let (size, mut out) = (size_of::<T>(), out.local());
        // down a column of tiles: each of the tile's columns is one sequential stream of writes
        for column in (0..columns).step_by(TILE) {
            for row in (0..rows).step_by(TILE) {
                let tile = tile::<T, TILE>(&source[row * self.from + column * size..], self.from);
                for (n, transposed) in tile.iter().enumerate() {
                    let to = out.row(at + (column + n) * self.to + row * size, TILE * size);
                    to.chunks_exact_mut(size).zip(transposed).for_each(|(to, lane)| lane.write(to));
                }
            }
        }
        self.samples(size, rows..self.column, 0..columns, source, &mut out, at);
        self.samples(size, 0..self.column, columns..self.row, source, &mut out, at);
    }

    /// Copies the samples at the edges that do not fill a tile.
    fn samples(
        &self,
        size: usize,
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
        source: &[u8],
        out: &mut Rows<'_>,
        at: usize,
    ) {
        for row in rows {
            for column in columns.clone() {
                let from = row * self.from + column * size;
                out.row(at + column * self.to + row * size, size).copy_from_slice(&source[from..from + size]);
            }
        }
    }
}

/// A sample as a number: the compiler keeps rows of numbers in vector registers, and rows of byte arrays in memory.
trait Lane: Copy + Default {
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
}

macro_rules! lanes {
    ($($number:ty),*) => {$(impl Lane for $number {
        #[inline(always)]
        fn read(bytes: &[u8]) -> Self {
            bytes.first_chunk().map_or(0, |bytes| Self::from_ne_bytes(*bytes))
        }
        #[inline(always)]
        fn write(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_ne_bytes());
        }
    })*};
}
lanes!(u8, u16, u32, u64, u128);

/// Returns the transposed square at the beginning of `source`, whose rows are `from` bytes apart.
#[inline(always)]
fn tile<T: Lane, const TILE: usize>(source: &[u8], from: usize) -> [[T; TILE]; TILE] {
    let mut rows = [[T::default(); TILE]; TILE];
    for (n, row) in rows.iter_mut().enumerate() {
        let stored = &source[n * from..n * from + TILE * size_of::<T>()];
        row.iter_mut().zip(stored.chunks_exact(size_of::<T>())).for_each(|(lane, bytes)| *lane = T::read(bytes));
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
    rows
}

/// Pieces to copy, each from a source `S`: collected first and copied together.
///
/// Most pieces of a request have the same shape, and their bricks the same layout, so the loops of a copy are computed
/// once for many of them; and neighbours in memory are copied interleaved.
pub(super) struct Batch<S> {
    members: Vec<Member<S>>,
    shapes: Vec<Shape>,
}

/// One piece of a batch, and where its bytes come from.
pub(super) struct Member<S> {
    pub(super) source: S,
    pub(super) place: Place,
}

/// The place of a piece in its source and in the memory of the caller.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The offset of its first sample in the source, in bytes.
    pub(super) from: u64,
    /// The offset of its first sample in the memory of the caller, in bytes.
    pub(super) to: usize,
    shape: usize,
}

/// The loops that some members of a batch share.
pub(super) struct Shape {
    extent: Dims,
    strides: Dims,
    to_strides: Dims,
    pub(super) loops: Loops,
    /// [`Loops::span`].
    pub(super) span: usize,
    /// [`Loops::useful`].
    pub(super) useful: usize,
}

impl<S> Default for Batch<S> {
    fn default() -> Self {
        Self { members: Vec::new(), shapes: Vec::new() }
    }
}

impl<S> Batch<S> {
    /// Finds the place of a piece in a brick with this layout; samples have `size` bytes. Fails if the brick does not
    /// hold the piece.
    pub(super) fn place(
        &mut self,
        layout: &Layout,
        piece: &Piece,
        selection: &Selection,
        size: usize,
    ) -> Result<Place, FormatError> {
        if !layout.held.contains(&piece.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        let (mut extent, mut strides) = (piece.region.shape, layout.strides);
        if !selection.is_dense() {
            for (a, step) in selection.step.iter().enumerate() {
                (extent[a], strides[a]) = ((extent[a] - 1) / step + 1, strides[a].saturating_mul(*step));
            }
        }
        // compared axis by axis: to compare whole `Dims` is a call
        let alike = |a: &Dims, b: &Dims| a.iter().eq(b.iter());
        let is_of = |shape: &Shape| {
            alike(&shape.extent, &extent)
                && alike(&shape.strides, &strides)
                && alike(&shape.to_strides, &selection.strides)
        };
        if !self.shapes.last().is_some_and(is_of) {
            let loops = Loops::new(&extent, &strides, &selection.strides, size);
            let (span, useful, to_strides) = (loops.span(), loops.useful(), selection.strides);
            self.shapes.push(Shape { extent, strides, to_strides, loops, span, useful });
        }
        Ok(Place { from: layout.offset_of(&piece.region.start), to: piece.to, shape: self.shapes.len() - 1 })
    }

    /// Makes room for more pieces, of which there may be many.
    pub(super) fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        make_room(&mut self.members, more)
    }

    /// Adds a piece.
    pub(super) fn add(&mut self, source: S, place: Place) {
        self.members.push(Member { source, place });
    }

    /// The pieces, in the order in which they were added.
    pub(super) fn members(&self) -> &[Member<S>] {
        &self.members
    }

    /// The loops of a member.
    pub(super) fn shape_of(&self, member: &Member<S>) -> &Shape {
        &self.shapes[member.place.shape]
    }

    /// Copies `members` of this batch; `bytes_of` returns the bytes of a member's source from its first sample on.
    /// Interleaves neighbours whose rows have at least `min_row` bytes. Returns the bytes copied.
    pub(super) fn copy<'s>(
        &self,
        members: &'s [Member<S>],
        min_row: usize,
        bytes_of: impl Fn(&'s Member<S>) -> &'s [u8],
        out: &mut Rows<'_>,
    ) -> usize {
        let mut copied = 0;
        for alike in members.chunk_by(|a, b| a.place.shape == b.place.shape) {
            let Shape { loops, useful, .. } = self.shape_of(&alike[0]);
            copied += useful * alike.len();
            let (row, _) = loops.run();
            for neighbours in alike.chunk_by(|a, b| row >= min_row && a.place.to + row == b.place.to) {
                for group in neighbours.chunks(MAX_INTERLEAVED) {
                    let mut sources = [&[][..]; MAX_INTERLEAVED];
                    sources.iter_mut().zip(group).for_each(|(source, member)| *source = bytes_of(member));
                    loops.copy(&sources[..group.len()], out, group[0].place.to);
                }
            }
        }
        copied
    }

    /// Removes all members; their loops stay, since the next members may have the same.
    pub(super) fn clear_members(&mut self) {
        self.members.clear();
    }

    /// Removes all members and their loops; the memory of the lists stays.
    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.shapes.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn contiguous_axes_are_merged() {
        let shape = Dims::from([4, 1, 8, 16]);
        let c = shape.strides(2);
        assert_eq!(Loops::new(&shape, &c, &c, 2).steps(), [Step { count: 512, from: 2, to: 2 }]);
        let wide = Dims::from([4, 1, 8, 32]).strides(2);
        let loops = Loops::new(&shape, &c, &wide, 2);
        let rows = [Step { count: 4, from: 256, to: 512 }, Step { count: 8, from: 32, to: 64 }];
        assert_eq!(loops.steps(), [&rows[..], &[Step { count: 16, from: 2, to: 2 }]].concat());
        assert_eq!((loops.span(), loops.useful()), (1024, 1024));
    }

    #[test]
    fn rows_of_all_lengths_are_copied_interleaved() {
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
                loops.copy(&sources, &mut Rows::new(&mut got), 0);
                for (n, source) in sources.iter().enumerate() {
                    loops.copy(&[source], &mut Rows::new(&mut expected), n * row as usize);
                }
                assert!(got == expected, "{count} rows of {row}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_copy_moves_every_sample_to_its_offset(
            shape in prop::collection::vec(1u64..6, 1..5), size in prop::sample::select(vec![1usize, 2, 4, 8, 16]),
            extra in prop::collection::vec(0u64..3, 4), reversed in any::<bool>(),
        ) {
            let shape = Dims::from_slice(&shape).unwrap();
            let axes = shape.len();
            let stored = Dims::from_fn(axes, |a| shape[a] + extra[a]);
            let from = stored.strides(size as u64);
            let to = if reversed {
                // the target has the axes in reverse order
                let back = Dims::from_fn(axes, |a| shape[axes - 1 - a]).strides(size as u64);
                Dims::from_fn(axes, |a| back[axes - 1 - a])
            } else {
                shape.strides(size as u64)
            };
            let source: Vec<u8> = (0..stored.product().unwrap() * size as u64).map(|n| (n % 251) as u8).collect();
            let bytes = (shape.product().unwrap() as usize) * size;
            let (mut target, mut filled) = (vec![0; bytes + 1], vec![0; bytes]);
            let loops = Loops::new(&shape, &from, &to, size);
            loops.copy(&[&source], &mut Rows::new(&mut target), 1);
            for n in 0..shape.product().unwrap() {
                let at = shape.index_of(n);
                let place = |strides: &Dims| (0..axes).map(|a| at[a] * strides[a]).sum::<u64>() as usize;
                prop_assert_eq!(&target[1 + place(&to)..][..size], &source[place(&from)..place(&from) + size]);
            }
            let value = Element::new(&source[..size]);
            loops.fill(&value, &mut Rows::new(&mut filled), 0);
            prop_assert!(filled.chunks(size).all(|sample| sample == value.bytes()));
        }

        #[test]
        fn rows_become_columns(
            row in 1usize..40, column in 1usize..40, more in (0usize..5, 0usize..5),
            size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16]),
        ) {
            let tile = Tile2d { row, column, from: (row + more.0) * size, to: (column + more.1) * size };
            let source: Vec<u8> = (0..column * tile.from).map(|n| (n % 251) as u8).collect();
            let mut target = vec![255; row * tile.to];
            tile.copy(size, &source, &mut Rows::new(&mut target), 0);
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
