//! The residual of the lossless methods: the reconstructed samples XORed with it are exact. It has four planes, one for
//! each byte of a sample.

use super::error::{ChunkPart, WaveletError};
use super::fse::{FseStream, State, Table, decode_interleaved};
use super::grow::grow_to;
use crate::format::bytes::ByteReader;

/// Bytes of a plane that are decoded at a time.
const BLOCK: usize = 4096;

/// How a plane is stored.
#[derive(Clone, Copy, Debug, Default)]
enum PlaneCoding<'a> {
    /// All bytes are the same.
    #[default]
    Same,
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// FSE: the coded bits, and the decoder's state.
    Fse(&'a [u8], State),
}

/// The decoding tables and decoded blocks of the four planes, used again for the next chunk.
#[derive(Debug, Default)]
pub(super) struct Planes {
    tables: [Table; 4],
    blocks: [Vec<u8>; 4],
}

impl Planes {
    /// Returns the bytes of allocated memory.
    pub(crate) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        blocks + self.tables.iter().map(Table::bytes).sum::<usize>()
    }

    /// Returns a table, for entropy coded data that are decoded before the residual.
    pub(crate) fn table(&mut self) -> &mut Table {
        let [table, ..] = &mut self.tables;
        table
    }
}

/// A residual that is being applied.
pub(super) struct Residual<'a> {
    planes: &'a mut Planes,
    codings: [PlaneCoding<'a>; 4],
    /// Samples that are not yet in a block.
    samples: usize,
    /// Bytes of each block that were applied.
    used: usize,
    /// Bytes of each block that were decoded.
    filled: usize,
}

impl<'a> Residual<'a> {
    /// Reads the planes' sizes and tables, for a chunk of `samples` samples.
    pub(crate) fn new(coded: &'a [u8], samples: usize, planes: &'a mut Planes) -> Result<Self, WaveletError> {
        let mut reader = ByteReader::new(ChunkPart::Residual, coded);
        reader.skip(4)?;
        let sizes = reader.i32s::<4>()?;
        let mut codings = [PlaneCoding::Same; 4];
        for (k, size) in sizes.into_iter().enumerate() {
            let part = ChunkPart::Plane(k as u8);
            reader.enter(part);
            grow_to(&mut planes.blocks[k], BLOCK);
            codings[k] = match size {
                0 => {
                    planes.blocks[k].fill(0);
                    PlaneCoding::Same
                }
                1 => {
                    planes.blocks[k].fill(reader.u8()?);
                    PlaneCoding::Same
                }
                -1 => PlaneCoding::Raw(reader.take(samples)?),
                ..-1 => return Err(WaveletError::Length(part, size)),
                _ => {
                    let table = &mut planes.tables[k];
                    let bits = table.read(reader.take(size as usize)?, part)?;
                    PlaneCoding::Fse(bits, State::new(table, bits, part)?)
                }
            };
        }
        Ok(Self { planes, codings, samples, used: 0, filled: 0 })
    }

    /// Corrects the next row.
    pub(crate) fn apply(&mut self, mut row: &mut [f32]) -> Result<(), WaveletError> {
        while !row.is_empty() {
            if self.used == self.filled {
                self.fill()?;
            }
            let count = row.len().min(self.filled - self.used);
            if count == 0 {
                return Err(WaveletError::PastEnd(ChunkPart::Residual));
            }
            let (here, rest) = row.split_at_mut(count);
            let [a, b, c, d] = self.planes.blocks.each_ref().map(|block| &block[self.used..][..count]);
            for (k, sample) in here.iter_mut().enumerate() {
                *sample = f32::from_bits(sample.to_bits() ^ u32::from_le_bytes([a[k], b[k], c[k], d[k]]));
            }
            self.used += count;
            row = rest;
        }
        Ok(())
    }

    /// Decodes the next block of each plane.
    fn fill(&mut self) -> Result<(), WaveletError> {
        let count = BLOCK.min(self.samples);
        self.samples -= count;
        (self.used, self.filled) = (0, count);
        // the entropy coded planes are decoded interleaved as far as that goes, then each to the end of its block
        let done = decode_planes_interleaved(&mut self.codings, self.planes, count);
        for (k, coding) in self.codings.iter_mut().enumerate() {
            let (block, part) = (&mut self.planes.blocks[k][..count], ChunkPart::Plane(k as u8));
            match coding {
                PlaneCoding::Same => {}
                PlaneCoding::Raw(bytes) => {
                    let (here, rest) = bytes.split_at_checked(count).ok_or(WaveletError::PastEnd(part))?;
                    block.copy_from_slice(here);
                    *bytes = rest;
                }
                PlaneCoding::Fse(bits, state) => {
                    state.fill(&self.planes.tables[k], bits, &mut block[done..], part)?;
                    if self.samples == 0 {
                        state.finish(part)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Decodes the entropy coded planes interleaved, if there are two or more; returns how many bytes of each.
fn decode_planes_interleaved(codings: &mut [PlaneCoding<'_>; 4], planes: &mut Planes, count: usize) -> usize {
    let mut streams: [Option<FseStream<'_>>; 4] = [const { None }; 4];
    let mut number = 0;
    let parts = codings.iter_mut().zip(&planes.tables).zip(&mut planes.blocks);
    for ((coding, table), block) in parts {
        if let (PlaneCoding::Fse(bits, state), Some(stream)) = (coding, streams.get_mut(number)) {
            *stream = Some(FseStream { state, table, bits, out: &mut block[..count] });
            number += 1;
        }
    }
    match streams {
        [Some(a), Some(b), Some(c), Some(d)] => decode_interleaved([a, b, c, d]),
        [Some(a), Some(b), Some(c), None] => decode_interleaved([a, b, c]),
        [Some(a), Some(b), None, None] => decode_interleaved([a, b]),
        _ => 0,
    }
}
