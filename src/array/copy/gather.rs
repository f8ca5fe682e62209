//! Copies boxes between memory of different layouts: the inner loops of every read.

use super::transpose::Tile2d;
use crate::volume::{Dims, Element};

/// One axis of a copy: its samples, and the bytes between neighbours in the source and in the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Samples along the axis.
    pub count: usize,
    /// Bytes between neighbours in the source.
    pub from: usize,
    /// Bytes between neighbours in the target.
    pub to: usize,
}

/// The loops of a copy, outermost first, for samples of `size` bytes. The source is read in ascending order, for any
/// order of axes in the target.
///
/// Axes of length one are dropped. Axes that are contiguous with each other on both sides are merged where that makes a
/// longer run; scattered rows and samples stay separate loops, so that a reader of a file can fetch them in parts.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    steps: Vec<Step>,
    size: usize,
}

impl Loops {
    /// Creates the loops over a box of `shape` whose neighbours are `from` bytes apart in the source and `to` bytes in
    /// the target.
    pub(crate) fn new(shape: &Dims, from: &Dims, to: &Dims, size: usize) -> Self {
        let axes = (0..shape.len()).filter(|a| shape[*a] != 1);
        let step = |a: usize| Step { count: shape[a] as usize, from: from[a] as usize, to: to[a] as usize };
        let mut all: Vec<Step> = axes.map(step).collect();
        all.sort_by_key(|step| std::cmp::Reverse(step.from));
        let mut steps: Vec<Step> = Vec::with_capacity(all.len());
        for inner in all {
            match steps.last_mut() {
                Some(outer)
                    if inner.from == inner.to
                        && outer.from == inner.from * inner.count
                        && outer.to == inner.to * inner.count =>
                {
                    *outer = Step { count: outer.count * inner.count, ..inner };
                }
                _ => steps.push(inner),
            }
        }
        Self { steps, size }
    }

    /// The loops, outermost first.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the loops without the outermost `outer` ones.
    pub(crate) fn inner(&self, outer: usize) -> Self {
        Self { steps: self.steps[outer..].to_vec(), size: self.size }
    }

    /// Bytes of the source from the first byte of the first sample to the last byte of the last sample.
    pub(crate) fn span(&self) -> usize {
        self.steps.iter().map(|s| (s.count - 1) * s.from).sum::<usize>() + self.size
    }

    /// Bytes of the samples themselves.
    pub(crate) fn useful(&self) -> usize {
        self.steps.iter().map(|s| s.count).product::<usize>() * self.size
    }

    /// Returns the bytes of the innermost run that is contiguous on both sides, and the number of loops around it.
    pub(crate) fn run(&self) -> (usize, usize) {
        match self.steps.last() {
            Some(last) if last.from == self.size && last.to == self.size => {
                (last.count * self.size, self.steps.len() - 1)
            }
            _ => (self.size, self.steps.len()),
        }
    }

    /// Splits the copy into 2-D transpositions and the loops around them, where the fastest axes of source and target
    /// differ.
    fn transposition(&self) -> Option<(Tile2d, Self)> {
        let (row, outer) = self.steps.split_last()?;
        let column = outer.iter().position(|step| step.to == self.size)?;
        let loops = Self { steps: [&outer[..column], &outer[column + 1..]].concat(), size: self.size };
        let Step { count, from, .. } = outer[column];
        (row.from == self.size).then_some((Tile2d { row: row.count, column: count, from, to: row.to }, loops))
    }

    /// Calls `visit` with the source and target offset of every position of the outermost `outer` loops; stops at the
    /// first error.
    pub(crate) fn try_for_each<E>(
        &self,
        outer: usize,
        mut visit: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let steps = &self.steps[..outer];
        let mut at = [0usize; crate::volume::MAX_AXES];
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

    /// Copies the box from `source` to `target`, which both begin at the first sample of the box.
    pub(crate) fn copy(&self, source: &[u8], target: &mut [u8]) {
        if let Some((tile, loops)) = self.transposition() {
            return loops.for_each(loops.steps.len(), |from, to| {
                tile.copy(self.size, &source[from..], &mut target[to..]);
            });
        }
        let (run, outer) = self.run();
        // a copy of constant length is inlined
        match run {
            1 => self.copy_runs::<1>(outer, source, target),
            2 => self.copy_runs::<2>(outer, source, target),
            3 => self.copy_runs::<3>(outer, source, target),
            4 => self.copy_runs::<4>(outer, source, target),
            8 => self.copy_runs::<8>(outer, source, target),
            16 => self.copy_runs::<16>(outer, source, target),
            32 => self.copy_runs::<32>(outer, source, target),
            64 => self.copy_runs::<64>(outer, source, target),
            128 => self.copy_runs::<128>(outer, source, target),
            256 => self.copy_runs::<256>(outer, source, target),
            _ => self.for_each(outer, |from, to| target[to..to + run].copy_from_slice(&source[from..from + run])),
        }
    }

    fn copy_runs<const RUN: usize>(&self, outer: usize, source: &[u8], target: &mut [u8]) {
        self.for_each(outer, |from, to| {
            if let (Some(from), Some(to)) = (source[from..].first_chunk::<RUN>(), target[to..].first_chunk_mut::<RUN>())
            {
                *to = *from;
            }
        });
    }

    /// Writes `value` to every sample of the box in `target`, which begins at the first sample of the box.
    pub(crate) fn fill(&self, value: &Element, target: &mut [u8]) {
        let contiguous = self.steps.last().is_some_and(|last| last.to == self.size);
        let (run, outer) = match self.steps.last() {
            Some(last) if contiguous => (last.count * self.size, self.steps.len() - 1),
            _ => (self.size, self.steps.len()),
        };
        self.for_each(outer, |_, to| value.fill(&mut target[to..to + run]));
    }

    /// Calls `visit` as [`Loops::try_for_each`] does, without errors.
    pub(crate) fn for_each(&self, outer: usize, mut visit: impl FnMut(usize, usize)) {
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

    proptest! {
        #[test]
        fn a_copy_moves_every_sample_to_its_offset(
            shape in prop::collection::vec(1u64..6, 1..5), size in prop::sample::select(vec![1usize, 2, 4, 8]),
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
            let (mut target, mut filled) = (vec![0; bytes], vec![0; bytes]);
            let loops = Loops::new(&shape, &from, &to, size);
            loops.copy(&source, &mut target);
            for n in 0..shape.product().unwrap() {
                let at = shape.index_of(n);
                let place = |strides: &Dims| (0..axes).map(|a| at[a] * strides[a]).sum::<u64>() as usize;
                prop_assert_eq!(&target[place(&to)..place(&to) + size], &source[place(&from)..place(&from) + size]);
            }
            let value = Element::new(&[1, 2, 3, 4, 5, 6, 7, 8][..size]);
            loops.fill(&value, &mut filled);
            prop_assert!(filled.chunks(size).all(|sample| sample == value.bytes()));
        }
    }
}
