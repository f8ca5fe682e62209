//! Plain bricks: from the source to the reply, only the bytes asked for.
//!
//! What the kernel holds in memory is copied from where it lies (`source::MappedWindow`). Everything else is read: long pieces straight
//! into the reply, short ones through a buffer that stays in the processor's cache.

use std::cell::RefCell;

use super::beside::{self, SIDE_BY_SIDE};
use super::fetch::Piece;
use super::gather::Loops;
use super::whole::WASTE;
use crate::format::{Array, FormatError};
use crate::source::{CoarseInstant, MappedWindow, OpenFile, SourceError, Wait};
use crate::volume::{Dims, ObjectName, Plain};

/// A gap between two pieces of a plain brick is read along with them if it is no longer than this: a second call costs more.
const GAP: usize = 4 << 10;
/// At most so many bytes of a plain brick are read at once.
const AT_ONCE: usize = 256 << 10;
/// Bricks whose rows are at least so long are copied side by side, row by row, so that the reply is written in order. Measured
/// with rows of 256 bytes it takes three quarters of the time; rows of 32 bytes are copied faster brick by brick.
const LONG_ROW: usize = 128;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The pieces of plain bricks that a read asks for: collected first and copied together, in the order of the reply.
#[derive(Default)]
pub struct PlainPieces {
    parts: Vec<Part>,
    /// The loops of the parts; most have the same.
    loops: Vec<Shape>,
}

/// A piece of a plain brick.
struct Part {
    piece: Piece,
    object: ObjectName,
    /// Its first byte in the object.
    from: u64,
    /// Its first byte in the reply.
    to: usize,
    /// Which loops it has.
    loops: usize,
}

struct Shape {
    shape: Dims,
    from: Dims,
    loops: Loops,
    span: usize,
    useful: usize,
}

/// Why pieces were not copied.
pub struct Failed {
    /// The number of the piece; all before it were copied.
    pub number: usize,
    /// What is wrong with it.
    pub cause: FormatError,
}

impl PlainPieces {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The piece with a number.
    pub fn piece(&self, number: usize) -> Option<Piece> {
        self.parts.get(number).map(|part| part.piece)
    }

    /// Those from a piece on.
    pub fn pieces_from(&self, number: usize) -> impl Iterator<Item = Piece> + '_ {
        self.parts.iter().skip(number).map(|part| part.piece)
    }

    /// Adds a piece whose first sample belongs to byte `at` of the reply, and whose neighbours belong `to` bytes apart.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the brick does not hold it.
    pub fn add(
        &mut self,
        array: &dyn Array,
        piece: Piece,
        plain: Plain,
        to: &Dims,
        at: usize,
    ) -> Result<(), FormatError> {
        let from = first_byte(&piece, &plain)?;
        let (shape, strides) = (piece.region.shape, plain.layout.strides);
        if self.loops.last().is_none_or(|last| last.shape != shape || last.from != strides) {
            let loops = Loops::new(&shape, &strides, to, array.info().dtype.size());
            let (span, useful) = (loops.span(), loops.useful());
            self.loops.push(Shape { shape, from: strides, loops, span, useful });
        }
        self.parts.push(Part { piece, object: plain.object, from, to: at, loops: self.loops.len() - 1 });
        Ok(())
    }

    /// Copies all of them to `out` without waiting.
    ///
    /// # Errors
    /// [`Failed`]: the first piece that could not be had, and [`SourceError::WouldBlock`] if it takes waiting.
    pub fn copy(&self, array: &dyn Array, out: &mut [u8]) -> Result<(), Failed> {
        let (source, now) = (array.source(), CoarseInstant::now());
        let mut done = 0;
        for parts in self.parts.chunk_by(|a, b| a.object == b.object) {
            let failed = |number: usize, cause: FormatError| Failed { number: done + number, cause };
            let object = &parts[0].object;
            match source.open_object(object, Wait::No) {
                // whether it has changed a server knows, which may not answer
                Ok(Some(file)) if !file.is_local() => return Err(failed(0, SourceError::WouldBlock.into())),
                Ok(Some(file)) => {
                    let outcome = self.copy_from(&file, parts, now, out);
                    // before anything is said of what was copied: it need not be of the version that is shown
                    file.check_unchanged().map_err(|e| failed(0, e.into()))?;
                    outcome.map_err(|Failed { number, cause }| failed(number, cause))?;
                }
                Ok(None) => {
                    for (n, part) in parts.iter().enumerate() {
                        let read = |at, bytes: &mut [u8]| match source.read_at(object, at, bytes, Wait::No)? {
                            true => Ok(()),
                            false => Err(absent()),
                        };
                        self.read(part, out, read).map_err(|cause| failed(n, cause))?;
                    }
                }
                Err(e) => return Err(failed(0, e.into())),
            }
            done += parts.len();
        }
        Ok(())
    }

    /// Copies the parts of one file.
    fn copy_from(&self, file: &OpenFile, parts: &[Part], now: CoarseInstant, out: &mut [u8]) -> Result<(), Failed> {
        let place = |part: &Part| file.window_of(part.from, self.loops[part.loops].span);
        let mut done = 0;
        for parts in parts.chunk_by(|a, b| place(a).map(|p| p.0) == place(b).map(|p| p.0)) {
            if let Some(window) = place(&parts[0]).and_then(|(number, _)| file.window(number)) {
                let starts = |part: &Part| place(part).map_or(0, |p| p.1);
                let at_hand = |part: &Part| {
                    let start = starts(part);
                    window.is_resident(start..start + self.loops[part.loops].span, now)
                };
                let there = parts.iter().position(|part| !at_hand(part)).unwrap_or(parts.len());
                let copied = self.copy_mapped(&window, &parts[..there], starts, out);
                let number = done + there;
                file.check_copied(&window, copied).map_err(|e| Failed { number: done, cause: e.into() })?;
                if there < parts.len() {
                    return Err(Failed { number, cause: SourceError::WouldBlock.into() });
                }
            } else {
                for (n, part) in parts.iter().enumerate() {
                    let read = |at, bytes: &mut [u8]| Ok(file.read_at(at, bytes, Wait::No)?);
                    self.read(part, out, read).map_err(|cause| Failed { number: done + n, cause })?;
                }
            }
            done += parts.len();
        }
        Ok(())
    }

    /// Copies parts from a window where they begin at `starts`; gives the bytes copied.
    fn copy_mapped(
        &self,
        window: &MappedWindow,
        parts: &[Part],
        starts: impl Fn(&Part) -> usize,
        out: &mut [u8],
    ) -> usize {
        let bytes = window.bytes();
        let mut copied = 0;
        for alike in parts.chunk_by(|a, b| a.loops == b.loops) {
            let Shape { loops, useful, .. } = &self.loops[alike[0].loops];
            copied += useful * alike.len();
            let (row, _) = loops.run();
            for parts in alike.chunk_by(|a, b| row >= LONG_ROW && a.to + row == b.to) {
                for parts in parts.chunks(SIDE_BY_SIDE) {
                    let mut sources = [&[][..]; SIDE_BY_SIDE];
                    sources.iter_mut().zip(parts).for_each(|(source, part)| *source = &bytes[starts(part)..]);
                    beside::copy(loops, &sources[..parts.len()], &mut out[parts[0].to..]);
                }
            }
        }
        copied
    }

    fn read(
        &self,
        part: &Part,
        out: &mut [u8],
        read: impl FnMut(u64, &mut [u8]) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let Shape { loops, useful, .. } = &self.loops[part.loops];
        // much reading for little is nothing for the threads that talk to the kernel
        if bytes_read(loops) > AT_ONCE.max(WASTE * useful) {
            return Err(SourceError::WouldBlock.into());
        }
        read_loops(loops, part.from, &mut out[part.to..], read)
    }
}

/// The place in the object of a piece's first byte.
fn first_byte(piece: &Piece, plain: &Plain) -> Result<u64, FormatError> {
    if !plain.layout.held.contains(&piece.region) {
        return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
    }
    Ok(plain.offset + plain.layout.offset_of(&piece.region.start))
}

/// Reads a piece, waiting for it if need be. `out` begins at its first sample and has neighbours `to` bytes apart.
///
/// # Errors
/// Those of the format and the source.
pub fn read_piece(
    array: &dyn Array,
    piece: &Piece,
    plain: &Plain,
    to: &Dims,
    out: &mut [u8],
) -> Result<(), FormatError> {
    let from = first_byte(piece, plain)?;
    let loops = Loops::new(&piece.region.shape, &plain.layout.strides, to, array.info().dtype.size());
    read_loops(&loops, from, out, |at, bytes| match array.source().read_at(&plain.object, at, bytes, Wait::Yes)? {
        true => Ok(()),
        false => Err(absent()),
    })
}

/// Reads only what is asked for, in as few calls of `read` as make sense, straight to `out` where the bytes are contiguous.
fn read_loops(
    loops: &Loops,
    from: u64,
    out: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let outer = outer_loops(loops);
    let inner = loops.inner(outer);
    let contiguous = inner.steps().iter().all(|s| s.from == s.to) && inner.span() == inner.useful();
    let span = inner.span();
    SCRATCH.with_borrow_mut(|scratch| {
        if !contiguous && scratch.len() < span {
            scratch.resize(span, 0);
        }
        loops.each(outer, |piece_from, piece_to| {
            let out = &mut out[piece_to..];
            let bytes = if contiguous { &mut out[..span] } else { &mut scratch[..span] };
            read(from + piece_from as u64, bytes)?;
            if !contiguous {
                inner.copy(&scratch[..span], out);
            }
            Ok(())
        })
    })
}

/// An object that the format speaks of is not there.
pub fn absent() -> FormatError {
    FormatError::Damaged("the object that holds the brick is not there".into())
}

/// How many of the outer loops of a plain brick get a read call for each of their positions; the rest is read at once.
fn outer_loops(loops: &Loops) -> usize {
    let steps = loops.steps();
    let mut outer = steps.len();
    while let Some(next) = outer.checked_sub(1) {
        let within = loops.inner(outer).span();
        let gap = steps[next].from.saturating_sub(within);
        if gap > GAP || loops.inner(next).span() > AT_ONCE {
            break;
        }
        outer = next;
    }
    outer
}

/// Bytes that are read of a plain brick for a box of it.
pub fn bytes_read(loops: &Loops) -> usize {
    let outer = outer_loops(loops);
    loops.steps()[..outer].iter().map(|step| step.count).product::<usize>() * loops.inner(outer).span()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_read_along_and_large_ones_are_not() {
        // one inline of a 64x64x64 float32 brick: one call for 16 KiB
        let brick = Dims::from([64, 64, 64]).strides(4);
        let array = Dims::from([512, 512, 512]).strides(4);
        assert_eq!(outer_loops(&Loops::new(&[1, 64, 64].into(), &brick, &array, 4)), 0);
        // one crossline: a call for each inline, since 16 KiB lie between
        assert_eq!(outer_loops(&Loops::new(&[64, 1, 64].into(), &brick, &array, 4)), 1);
        // a whole brick: four calls of 256 KiB would do, so the inlines are walked
        assert_eq!(outer_loops(&Loops::new(&[64, 64, 64].into(), &brick, &array, 4)), 1);
        // a depth slice: 256 bytes between samples are read along
        assert_eq!(outer_loops(&Loops::new(&[1, 64, 1].into(), &brick, &array, 4)), 0);
        // a whole depth slice, in an array that is as large as the brick: an inline at a time
        let slice = Loops::new(&[64, 64, 1].into(), &brick, &[256, 4, 4].into(), 4);
        assert_eq!((outer_loops(&slice), bytes_read(&slice)), (1, 64 * (63 * 256 + 4)));
    }
}
