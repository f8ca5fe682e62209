//! The inverse transforms of blocks: along the slowest axis first, in integers that wrap around.

use super::scalar::Int;

/// Turns coefficients of a lossy block to samples.
#[inline(always)]
pub(super) fn lossy<I: Int, const N: usize>(block: &mut [I; N]) {
    along_axes(block, lossy_line);
}

/// Turns four coefficients of a line of a lossy block.
#[inline(always)]
pub(super) fn lossy_line<I: Int>([mut x, mut y, mut z, mut w]: [I; 4]) -> [I; 4] {
    y = y.add(w.half());
    w = w.sub(y.half());
    y = y.add(w);
    w = w.sub(y.sub(w));
    z = z.add(x);
    x = x.sub(z.sub(x));
    y = y.add(z);
    z = z.sub(y.sub(z));
    w = w.add(x);
    x = x.sub(w.sub(x));
    [x, y, z, w]
}

/// Turns coefficients of a reversible block to samples.
#[inline(always)]
pub(super) fn reversible<I: Int, const N: usize>(block: &mut [I; N]) {
    along_axes(block, reversible_line);
}

/// Turns four coefficients of a line of a reversible block.
#[inline(always)]
pub(super) fn reversible_line<I: Int>([x, mut y, mut z, mut w]: [I; 4]) -> [I; 4] {
    w = w.add(z);
    z = z.add(y);
    w = w.add(z);
    y = y.add(x);
    z = z.add(y);
    w = w.add(z);
    [x, y, z, w]
}

/// Transforms each line of four along each axis.
#[inline(always)]
fn along_axes<I: Int, const N: usize>(block: &mut [I; N], lift: impl Fn([I; 4]) -> [I; 4]) {
    if N > 64 {
        along(block, 64, &lift);
    }
    if N > 16 {
        along(block, 16, &lift);
    }
    if N > 4 {
        along(block, 4, &lift);
    }
    for line in block.as_chunks_mut().0 {
        *line = lift(*line);
    }
}

/// Transforms the lines whose samples lie `step` apart.
#[inline(always)]
fn along<I: Int, const N: usize>(block: &mut [I; N], step: usize, lift: &impl Fn([I; 4]) -> [I; 4]) {
    for lines in block.chunks_exact_mut(4 * step) {
        let (first, rest) = lines.split_at_mut(step);
        let (second, rest) = rest.split_at_mut(step);
        let (third, fourth) = rest.split_at_mut(step);
        for (((x, y), z), w) in first.iter_mut().zip(second).zip(third).zip(fourth) {
            [*x, *y, *z, *w] = lift([*x, *y, *z, *w]);
        }
    }
}
