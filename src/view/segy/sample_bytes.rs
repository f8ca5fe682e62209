//! Samples of a file that a read begins or ends within.

/// The most bytes of a sample.
const MAX: usize = 8;

/// Writes samples that `convert` makes of the stored ones, which have `stored_size` and become `size` bytes each. The
/// first `skip` bytes of the first are left out, and so are those of the last that `out` has no room for. Returns
/// whether `convert` has returned true for all of them.
pub(crate) fn write_samples(
    (stored_size, size): (usize, usize),
    stored: &[u8],
    skip: usize,
    out: &mut [u8],
    convert: impl Fn(&[u8], &mut [u8]) -> bool,
) -> bool {
    let (mut stored, mut out, mut all) = (stored, out, true);
    let mut one = [0; MAX];
    let one = &mut one[..size.min(MAX)];
    if skip > 0 {
        let (first, rest) = stored.split_at(stored_size.min(stored.len()));
        all &= convert(first, one);
        let (to, rest_of_out) = out.split_at_mut((size - skip).min(out.len()));
        to.copy_from_slice(&one[skip..skip + to.len()]);
        (stored, out) = (rest, rest_of_out);
    }
    let (whole, tail) = out.split_at_mut(out.len() / size * size);
    let (samples, last) = stored.split_at((whole.len() / size * stored_size).min(stored.len()));
    all &= convert(samples, whole);
    if !tail.is_empty() {
        all &= convert(last, one);
        tail.copy_from_slice(&one[..tail.len()]);
    }
    all
}
