//! Planes of samples as pixels: components with fewer samples get as many as the others, and brightness with two
//! differences becomes red, green and blue.
//!
//! A sample that has to be made lies between two stored ones and is three quarters of the nearer. Numbers and roundings
//! are those of the default methods of libjpeg-turbo.

use super::SIDE;
use crate::memory::{OutOfMemory, try_zeroed};

/// Rows of units that a plane holds: the one that is written, and its neighbours.
const UNITS: usize = 3;

/// Some rows of a component.
pub(super) struct Plane {
    samples: Vec<u8>,
    /// Samples of a row, with those that fill the last block.
    stride: usize,
    /// Rows that are held.
    held: usize,
    /// Samples of the component along x and y.
    extent: [usize; 2],
    /// Samples of the image for one of the component.
    scale: [usize; 2],
}

impl Plane {
    /// Makes the plane of a component with this sampling in an image in which `most` is the greatest.
    pub(super) fn new(extent: [usize; 2], most: [usize; 2], sampling: [usize; 2]) -> Result<Self, OutOfMemory> {
        let units = extent[0].div_ceil(SIDE * most[0]);
        let (stride, held) = (units * SIDE * sampling[0], UNITS * SIDE * sampling[1]);
        Ok(Self {
            samples: try_zeroed(stride * held)?,
            stride,
            held,
            extent: [0, 1].map(|axis| (extent[axis] * sampling[axis]).div_ceil(most[axis])),
            scale: [0, 1].map(|axis| most[axis] / sampling[axis]),
        })
    }

    /// Returns the rows of the blocks with this number from the top, and how many samples a row has.
    pub(super) fn rows(&mut self, number: usize) -> (&mut [u8], usize) {
        let first = number * SIDE % self.held * self.stride;
        (self.samples.get_mut(first..first + SIDE * self.stride).unwrap_or_default(), self.stride)
    }

    /// Returns a row without what fills it. The rows beyond the first and the last are like these.
    fn row(&self, number: usize) -> &[u8] {
        let number = number.min(self.extent[1].saturating_sub(1));
        let first = number % self.held * self.stride;
        self.samples.get(first..first + self.extent[0]).unwrap_or_default()
    }

    /// Writes the samples of row `y` of the image to `out`.
    fn expand(&self, y: usize, out: &mut [u8]) {
        let near = self.row(y / self.scale[1]);
        let far = match (self.scale[1], y % 2) {
            (1, _) => near,
            (_, 0) => self.row((y / 2).saturating_sub(1)),
            _ => self.row(y / 2 + 1),
        };
        let is_lower = y % 2 == 1;
        match self.scale {
            [1, 1] => out.iter_mut().zip(near).for_each(|(to, sample)| *to = *sample),
            [1, _] => {
                let half = if is_lower { 2 } else { 1 };
                for (to, (near, far)) in out.iter_mut().zip(near.iter().zip(far)) {
                    *to = ((3 * u16::from(*near) + u16::from(*far) + half) >> 2) as u8;
                }
            }
            // two columns have no neighbours enough
            _ if near.len() <= 2 => {
                for (to, sample) in out.chunks_mut(2).zip(near) {
                    to.fill(*sample);
                }
            }
            [_, 1] => doubled(out, near.len(), |x| u16::from(near[x]), [1, 2], 2),
            _ => {
                let sum = |x: usize| 3 * u16::from(near[x]) + u16::from(far[x]);
                doubled(out, near.len(), sum, [8, 7], 4);
            }
        }
    }
}

/// Writes two samples for each of `count`: the left and the right one, which are each nearer to it than to the neighbour
/// on their side. `halves` are added before the last `shift` bits are removed.
#[inline]
fn doubled(out: &mut [u8], count: usize, sample: impl Fn(usize) -> u16, halves: [u16; 2], shift: u32) {
    for (x, to) in out.chunks_mut(2).enumerate().take(count) {
        let here = sample(x);
        let neighbours = [sample(x.saturating_sub(1)), sample((x + 1).min(count - 1))];
        for ((to, neighbour), half) in to.iter_mut().zip(neighbours).zip(halves) {
            *to = ((3 * here + neighbour + half) >> shift) as u8;
        }
    }
}

/// The rows of pixels of an image, written one after the other.
pub(super) struct RowsOut<'a> {
    out: &'a mut [u8],
    width: usize,
    is_rgb: bool,
    /// The next row.
    y: usize,
    /// A row of each component.
    rows: [Vec<u8>; 3],
}

impl<'a> RowsOut<'a> {
    pub(super) fn new(width: usize, is_rgb: bool, out: &'a mut [u8]) -> Result<Self, OutOfMemory> {
        let rows = [try_zeroed(width)?, try_zeroed(width)?, try_zeroed(width)?];
        Ok(Self { out, width, is_rgb, y: 0, rows })
    }

    /// Writes the rows before row `until`.
    pub(super) fn write(&mut self, planes: &[Plane], until: usize) {
        let pixels = self.out.chunks_exact_mut(3 * self.width);
        for row in pixels.take(until).skip(self.y) {
            for (plane, to) in planes.iter().zip(&mut self.rows) {
                plane.expand(self.y, to);
            }
            let [first, second, third] = &self.rows;
            let triples = first.iter().zip(second).zip(third);
            for (pixel, ((a, b), c)) in row.as_chunks_mut::<3>().0.iter_mut().zip(triples) {
                *pixel = if self.is_rgb { [*a, *b, *c] } else { red_green_blue(*a, *b, *c) };
            }
            self.y += 1;
        }
    }
}

/// Bits after the point of the factors of colours.
const BITS: u32 = 16;

/// Converts brightness and the differences of blue and red from it.
#[inline]
fn red_green_blue(brightness: u8, blue: u8, red: u8) -> [u8; 3] {
    const HALF: i32 = 1 << (BITS - 1);
    let (y, b, r) = (i32::from(brightness), i32::from(blue) - 128, i32::from(red) - 128);
    // 1.402; 0.34414 and 0.71414; 1.772
    let sums = [91_881 * r, -22_554 * b - 46_802 * r, 116_130 * b];
    sums.map(|sum| (y + ((sum + HALF) >> BITS)).clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gray_and_the_primary_colours() {
        for y in 0..=255 {
            assert_eq!(red_green_blue(y, 128, 128), [y; 3]);
        }
        assert_eq!(red_green_blue(76, 85, 255), [254, 0, 0]);
        assert_eq!(red_green_blue(150, 44, 21), [0, 255, 1]);
        assert_eq!(red_green_blue(29, 255, 107), [0, 0, 254]);
    }

    #[test]
    fn samples_between_two_are_nearer_to_the_nearer() {
        let mut out = [0; 8];
        let row = [0u16, 100, 100, 0];
        doubled(&mut out, 4, |x| row[x], [1, 2], 2);
        assert_eq!(out, [0, 25, 75, 100, 100, 75, 25, 0]);
    }
}
