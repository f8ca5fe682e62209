//! The checksums of the blocks of slices: the Adler-32 at the end of a file is that of all of them.

use std::sync::Arc;

use super::plane::Plane;
use super::png_layout::PngLayout;
use super::recent::Recent;
use crate::sync::Mutex;
use crate::volume::ArrayId;

/// The bytes of all checksums that are remembered.
const MAX_SUMS: usize = 1 << 20;

/// The checksums of the slices that were read last: whoever reads a file from its front to its end finds that of the
/// whole already there, and whoever reads only its end again does not read the whole again.
static SUMS: Recent<(ArrayId, Plane), Arc<Checksums>> = Recent::new(MAX_SUMS);

/// The Adler-32 of each block of a slice, as far as they are known.
pub(crate) struct Checksums(Mutex<Vec<Option<u32>>>);

impl Checksums {
    /// Returns what is known of a slice of this layout.
    pub(crate) fn of(slice: (ArrayId, Plane), layout: &PngLayout) -> Arc<Self> {
        SUMS.get(&slice).unwrap_or_else(|| {
            let blocks = layout.blocks() as usize;
            let sums = Arc::new(Self(Mutex::new(vec![None; blocks])));
            SUMS.put(slice, Arc::clone(&sums), blocks * size_of::<Option<u32>>());
            sums
        })
    }

    /// Returns the first block from `from` on whose checksum is not known.
    pub(crate) fn missing(&self, from: u64) -> Option<u64> {
        let sums = self.0.lock();
        let after = sums.iter().skip(from as usize);
        after.zip(from..).find_map(|(sum, number)| sum.is_none().then_some(number))
    }

    /// Sets the checksum of a block.
    pub(crate) fn set(&self, number: u64, sum: u32) {
        if let Some(known) = self.0.lock().get_mut(number as usize) {
            *known = Some(sum);
        }
    }

    /// Returns the Adler-32 of all blocks, which must be known.
    pub(crate) fn of_all(&self, layout: &PngLayout) -> u32 {
        let sums = self.0.lock();
        (0..).zip(sums.iter().flatten()).fold(1, |all, (number, sum)| combined(all, *sum, layout.block(number).length))
    }
}

/// Returns the Adler-32 of two parts from those of each. The second part has `length` bytes.
fn combined(first: u32, second: u32, length: u64) -> u32 {
    const BASE: u64 = 65_521;
    let [a, b] = [first, second].map(|sum| (u64::from(sum & 0xffff), u64::from(sum >> 16)));
    // each sum of the second part began with 1
    let low = (a.0 + b.0 + BASE - 1) % BASE;
    let high = (a.1 + b.1 + length % BASE * (a.0 + BASE - 1)) % BASE;
    (high << 16 | low) as u32
}

#[cfg(test)]
mod tests {
    use libdeflater::adler32;

    use super::*;

    #[test]
    fn sums_of_parts_are_that_of_the_whole() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8 | 0xe0).collect();
        for at in [0, 1, 5552, 65_521, 131_042, 199_999, 200_000] {
            let (first, second) = bytes.split_at(at);
            assert_eq!(combined(adler32(first), adler32(second), second.len() as u64), adler32(&bytes), "{at}");
        }
    }
}
