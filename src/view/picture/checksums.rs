//! The checksums of the blocks of slices: the Adler-32 at the end of a file is that of all of them.

use std::sync::Arc;

use zlib_rs::adler32::adler32_combine;

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
        (0..)
            .zip(sums.iter().flatten())
            .fold(1, |all, (number, sum)| adler32_combine(all, *sum, layout.block(number).length))
    }
}
