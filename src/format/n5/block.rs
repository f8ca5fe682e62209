//! A block: a header with the extent of the block, and its samples, which may be compressed. All numbers are
//! big-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0, 1 | mode: 0 samples, 1 samples with their number, 2 objects |
//! | 2, 3 | number of axes |
//! | 4 ... | extent along each axis, the fastest first, 32 bits each |
//! | then | in mode 1 the number of samples, 32 bits |

use crate::codec::Codec;
use crate::memory::try_zeroed;
use crate::volume::Dims;

pub(super) struct Block {
    /// The codec of the samples; `None` if they are stored as they are.
    pub payload: Option<Box<dyn Codec>>,
    /// The codec of samples that do not begin as those of gzip: some writers store zlib streams under that name.
    pub in_place_of_gzip: Option<Box<dyn Codec>>,
    /// The extent of a whole block, the slowest axis first. Those at the end of an array may have less.
    pub block: Dims,
    /// Bytes of a sample.
    pub sample: usize,
}

impl Block {
    /// Parses the header. Returns the extent of the block, and where its samples begin.
    fn header(&self, stored: &[u8]) -> Result<(Dims, usize), String> {
        let cut = || format!("it has {} bytes, and no whole header", stored.len());
        let number = |at: usize, bytes: usize| -> Option<u64> {
            Some(stored.get(at..at + bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let (mode, axes) = number(0, 2).zip(number(2, 2)).ok_or_else(cut)?;
        if mode > 1 {
            return Err(format!("blocks of mode {mode} are not supported"));
        }
        if axes != self.block.len() as u64 {
            return Err(format!("it has {axes} axes, not {}", self.block.len()));
        }
        let mut extent = self.block;
        for (axis, to) in extent.iter_mut().rev().enumerate() {
            *to = number(4 + 4 * axis, 4).ok_or_else(cut)?;
        }
        if extent.iter().zip(self.block.iter()).any(|(found, most)| *found == 0 || found > most) {
            return Err(format!("it says that it is of {extent:?}, and blocks are of {:?}", self.block));
        }
        let end = 4 + 4 * self.block.len();
        if mode == 0 {
            return Ok((extent, end));
        }
        let samples = number(end, 4).ok_or_else(cut)?;
        if Some(samples) != extent.product() {
            return Err(format!("it has {samples} samples, not those of {extent:?}"));
        }
        Ok((extent, end + 4))
    }

    fn samples(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let is_gzip = stored.starts_with(&[0x1f, 0x8b]);
        match self.in_place_of_gzip.as_ref().filter(|_| !is_gzip).or(self.payload.as_ref()) {
            Some(codec) => codec.decode(stored, out).map_err(|why| format!("{}: {why}", codec.name())),
            None => {
                let samples = stored.get(..out.len());
                out.copy_from_slice(
                    samples.ok_or_else(|| format!("it has {} bytes, not {}", stored.len(), out.len()))?,
                );
                Ok(())
            }
        }
    }
}

impl Codec for Block {
    fn name(&self) -> &'static str {
        self.payload.as_ref().map_or("raw", |codec| codec.name())
    }

    fn longest(&self, decoded: u64) -> u64 {
        let samples = self.payload.as_ref().map_or(decoded, |codec| codec.longest(decoded));
        // some writers store a whole block where the array has less
        samples.saturating_add(8 + 4 * self.block.len() as u64)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (extent, begin) = self.header(stored)?;
        let stored = stored.get(begin..).unwrap_or_default();
        if extent == self.block {
            return self.samples(stored, out);
        }
        let bytes = extent.iter().product::<u64>() as usize * self.sample; // fewer than `out` has
        let mut samples = try_zeroed(bytes).map_err(|e| e.to_string())?;
        self.samples(stored, &mut samples)?;
        out.fill(0);
        let axes = extent.len();
        let row = extent[axes - 1] as usize * self.sample;
        let (mut rows, strides) = (extent, self.block.strides(self.sample as u64));
        rows[axes - 1] = 1;
        for (number, from) in (0..).zip(samples.chunks_exact(row)) {
            let at = rows.index_of(number);
            let to = at.iter().zip(strides.iter()).map(|(at, stride)| at * stride).sum::<u64>() as usize;
            out.get_mut(to..to + row).ok_or("it is larger than a block")?.copy_from_slice(from);
        }
        Ok(())
    }

    fn decode_unsized(&self, _stored: &[u8], _most: usize) -> Result<Vec<u8>, String> {
        Err("a block is never decoded by another codec".into())
    }

    fn scratch(&self, decoded: usize) -> usize {
        self.payload.as_ref().map_or(0, |codec| codec.scratch(decoded)).saturating_add(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(mode: u16, extent: &[u32], samples: &[u8]) -> Vec<u8> {
        let numbers = [mode, extent.len() as u16].map(u16::to_be_bytes).concat();
        [numbers, extent.iter().flat_map(|n| n.to_be_bytes()).collect(), samples.to_vec()].concat()
    }

    fn decode(stored: &[u8]) -> Result<Vec<u8>, String> {
        let codec = Block { payload: None, in_place_of_gzip: None, block: Dims::from([2, 3]), sample: 2 };
        let mut out = vec![9; 12];
        codec.decode(stored, &mut out).map(|()| out)
    }

    #[test]
    fn short_blocks_stand_at_the_beginning() {
        let samples: Vec<u8> = (1..=12).collect();
        assert_eq!(decode(&block(0, &[3, 2], &samples)), Ok(samples.clone()));
        assert_eq!(decode(&block(0, &[2, 2], &samples[..8])), Ok(vec![1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0]));
        assert_eq!(decode(&block(0, &[3, 1], &samples[..6])), Ok(vec![1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0]));
        let counted = [&block(1, &[3, 1], &3u32.to_be_bytes())[..], &samples[..6]].concat();
        assert_eq!(decode(&counted).map(|out| out[5]), Ok(6));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let samples = [0; 40];
        for wrong in [
            block(2, &[3, 2], &samples),
            block(0, &[3, 2, 1], &samples),
            block(0, &[4, 2], &samples),
            block(0, &[0, 2], &samples),
            block(0, &[u32::MAX, u32::MAX], &samples),
            block(0, &[3, 2], &samples[..11]),
            block(1, &[3, 2], &7u32.to_be_bytes()),
            block(1, &[3, 2], &[0]),
            vec![0, 0, 0],
            Vec::new(),
        ] {
            assert!(decode(&wrong).is_err(), "{wrong:?}");
        }
    }
}
