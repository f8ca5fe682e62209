//! The residual: what the picture has to be XORed with to be exact, in four planes of bytes.

use super::cursor::Cursor;
use super::error::{Part, WaveletError};
use super::fse::{State, Stream, Table, together};
use super::scratch::room;

/// Bytes that a plane is decoded by.
const BLOCK: usize = 4096;

/// How a plane is stored.
#[derive(Clone, Copy, Debug, Default)]
enum Coding<'a> {
    /// All bytes are the same.
    #[default]
    Same,
    /// As they are.
    Raw(&'a [u8]),
    /// Entropy coded: the bits, and where they stand.
    Fse(&'a [u8], State),
}

/// The decoding tables and blocks of the four planes, which are used again.
#[derive(Debug, Default)]
pub(super) struct Planes {
    tables: [Table; 4],
    blocks: [Vec<u8>; 4],
}

impl Planes {
    /// Bytes that they hold.
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        blocks + self.tables.iter().map(Table::bytes).sum::<usize>()
    }

    /// A table for other uses.
    pub fn table(&mut self) -> &mut Table {
        let [table, ..] = &mut self.tables;
        table
    }
}

/// A residual that is being applied.
pub(super) struct Residual<'a> {
    planes: &'a mut Planes,
    codings: [Coding<'a>; 4],
    /// Samples that are still to come.
    samples: usize,
    /// Bytes of the blocks that are used.
    used: usize,
    /// Bytes that the blocks have.
    filled: usize,
}

impl<'a> Residual<'a> {
    /// Reads the planes' sizes and tables, for a picture of `samples`.
    pub fn new(coded: &'a [u8], samples: usize, planes: &'a mut Planes) -> Result<Self, WaveletError> {
        let mut cursor = Cursor::new(coded);
        let mut next = || cursor.i32(Part::Residual);
        let (_, sizes) = (next()?, [next()?, next()?, next()?, next()?]);
        let mut codings = [Coding::Same; 4];
        for (k, size) in sizes.into_iter().enumerate() {
            let part = Part::Plane(k as u8);
            room(&mut planes.blocks[k], BLOCK);
            codings[k] = match size {
                0 => {
                    planes.blocks[k].fill(0);
                    Coding::Same
                }
                1 => {
                    planes.blocks[k].fill(cursor.take(1, part)?.first().copied().unwrap_or(0));
                    Coding::Same
                }
                -1 => Coding::Raw(cursor.take(samples, part)?),
                ..-1 => return Err(WaveletError::Length(part, size)),
                _ => {
                    let table = &mut planes.tables[k];
                    let bits = table.read(cursor.take(size as usize, part)?, part)?;
                    Coding::Fse(bits, State::new(table, bits, part)?)
                }
            };
        }
        Ok(Self { planes, codings, samples, used: 0, filled: 0 })
    }

    /// Corrects the next samples.
    pub fn apply(&mut self, mut row: &mut [f32]) -> Result<(), WaveletError> {
        while !row.is_empty() {
            if self.used == self.filled {
                self.fill()?;
            }
            let count = row.len().min(self.filled - self.used);
            if count == 0 {
                return Err(WaveletError::PastEnd(Part::Residual));
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
        // how far each plane is: those that are entropy coded go on side by side
        let done = ahead(&mut self.codings, self.planes, count);
        for (k, coding) in self.codings.iter_mut().enumerate() {
            let (block, part) = (&mut self.planes.blocks[k][..count], Part::Plane(k as u8));
            match coding {
                Coding::Same => {}
                Coding::Raw(bytes) => {
                    let (here, rest) = bytes.split_at_checked(count).ok_or(WaveletError::PastEnd(part))?;
                    block.copy_from_slice(here);
                    *bytes = rest;
                }
                Coding::Fse(bits, state) => {
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

/// Decodes the entropy coded planes side by side, if there are two or more, as far as that goes.
fn ahead(codings: &mut [Coding<'_>; 4], planes: &mut Planes, count: usize) -> usize {
    let mut streams: [Option<Stream<'_>>; 4] = [const { None }; 4];
    let mut number = 0;
    let parts = codings.iter_mut().zip(&planes.tables).zip(&mut planes.blocks);
    for ((coding, table), block) in parts {
        if let (Coding::Fse(bits, state), Some(stream)) = (coding, streams.get_mut(number)) {
            *stream = Some(Stream { state, table, bits, out: &mut block[..count] });
            number += 1;
        }
    }
    match streams {
        [Some(a), Some(b), Some(c), Some(d)] => together([a, b, c, d]),
        [Some(a), Some(b), Some(c), None] => together([a, b, c]),
        [Some(a), Some(b), None, None] => together([a, b]),
        _ => 0,
    }
}
