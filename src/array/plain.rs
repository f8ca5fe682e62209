//! Pieces of plain bricks, copied from their source to the memory of the caller: only the bytes asked for.
//!
//! Bytes that are in the page cache are copied out of a memory map of the file ([`MappedWindow`]). All others are read:
//! long runs straight into the caller's memory, short ones along with small gaps through a scratch buffer that stays in
//! the processor's cache.

use std::cell::RefCell;

use super::copy::{Batch, Loops, Member, Step};
use super::output::Rows;
use super::region::{Piece, Selection};
use crate::format::{Array, FormatError};
use crate::memory::{make_room, try_push};
use crate::source::{Blocking, CoarseInstant, MappedWindow, OpenFile, SourceError};
use crate::volume::{Layout, ObjectName, Plain};

/// Gaps up to this many bytes are read along with the rows around them: a second call costs more.
const MAX_GAP: usize = 4 << 10;
/// The greatest number of bytes that one call reads through the scratch buffer.
const MAX_READ: usize = 256 << 10;
/// The read amplification (bytes read for each byte wanted) from which on parts of a plain brick are not worth reading.
pub(super) const MAX_AMPLIFICATION: usize = 4;
/// Neighbouring bricks are copied interleaved if their rows have at least this many bytes. Measured on Zen 4: rows of
/// 32 to 256 bytes take three quarters of the processor time then. (A Xeon was faster with rows of 32 bytes brick by
/// brick.)
const MIN_INTERLEAVED_ROW: usize = 32;
/// Lists of more pieces than this are not kept for the next request.
const MAX_KEPT: usize = 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The error for an object that the format's tables name and that does not exist.
pub(super) fn missing_object() -> FormatError {
    FormatError::Damaged("the object that holds the brick is not there".into())
}

/// The pieces of plain bricks that a read asks for: collected first, and copied together in the order of the reply.
#[derive(Default)]
pub(super) struct PlainPieces {
    /// The source of a member is the number of its object.
    batch: Batch<usize>,
    /// The pieces of the members.
    pub(super) pieces: Vec<Piece>,
    /// The objects; neighbours mostly have the same.
    objects: Vec<ObjectName>,
    /// Bytes that were read from the source.
    pub(super) source_bytes: usize,
}

/// A piece that was not copied, by its number; all pieces before it were.
type Failure = (usize, FormatError);

impl PlainPieces {
    /// Adds a piece of a brick.
    pub(super) fn add(
        &mut self,
        piece: &Piece,
        plain: &Plain,
        selection: &Selection,
        size: usize,
    ) -> Result<(), FormatError> {
        if self.objects.last() != Some(&plain.object) {
            self.objects.push(plain.object.clone());
        }
        let first = plain.layout.first.checked_add(plain.offset).ok_or_else(missing_object)?;
        let layout = Layout { first, ..plain.layout };
        let place = self.batch.place(&layout, piece, selection, size)?;
        try_push(&mut self.pieces, *piece)?;
        self.batch.make_room(1)?;
        self.batch.add(self.objects.len() - 1, place);
        Ok(())
    }

    /// Removes all pieces; the memory of the lists stays, if there were not very many.
    pub(super) fn clear(&mut self) {
        if self.pieces.len() > MAX_KEPT {
            *self = Self::default();
        }
        self.batch.clear();
        self.pieces.clear();
        self.objects.clear();
        self.source_bytes = 0;
    }

    /// Copies all pieces. Fails at the first one that cannot be read; with [`Blocking::No`] also at the first that has
    /// to be waited for, with [`SourceError::WouldBlock`].
    pub(super) fn copy(&mut self, array: &dyn Array, blocking: Blocking, out: &mut Rows<'_>) -> Result<(), Failure> {
        let (source, batch, now) = (array.source(), &self.batch, CoarseInstant::now());
        let mut copying = Copying { batch, blocking, now, out, source_bytes: 0, done: 0 };
        let copied = batch.members().chunk_by(|a, b| a.source == b.source).try_for_each(|members| {
            let object = &self.objects[members[0].source];
            match source.open_object(object, blocking).map_err(|e| (copying.done, e.into()))? {
                // only the server knows whether a remote file has changed, and it may not answer
                Some(file) if blocking == Blocking::No && !file.is_local() => {
                    Err((copying.done, SourceError::WouldBlock.into()))
                }
                Some(file) => {
                    let first = copying.done;
                    let outcome = copying.copy_from_file(&file, members);
                    // a changed file is reported before any other outcome: the bytes copied may be of another version
                    file.check_unchanged().map_err(|e| (first, e.into()))?;
                    outcome
                }
                None => members.iter().try_for_each(|member| {
                    copying.read(member, |at, bytes| match source.read_at(object, at, bytes, blocking)? {
                        true => Ok(()),
                        false => Err(missing_object()),
                    })
                }),
            }
        });
        self.source_bytes = copying.source_bytes;
        copied
    }
}

/// The state of [`PlainPieces::copy`].
struct Copying<'a, 'b> {
    batch: &'a Batch<usize>,
    blocking: Blocking,
    now: CoarseInstant,
    out: &'a mut Rows<'b>,
    source_bytes: usize,
    /// Pieces that were copied.
    done: usize,
}

impl Copying<'_, '_> {
    /// Copies the pieces of one file, out of its memory maps where these cover them.
    fn copy_from_file(&mut self, file: &OpenFile, members: &[Member<usize>]) -> Result<(), Failure> {
        let (batch, blocking, now) = (self.batch, self.blocking, self.now);
        let span = |member: &Member<usize>| batch.shape_of(member).span;
        let place = |member: &Member<usize>| file.window_of(member.place.from, span(member));
        let start = |member: &Member<usize>| place(member).map_or(0, |p| p.1);
        for members in members.chunk_by(|a, b| place(a).map(|p| p.0) == place(b).map(|p| p.0)) {
            let bytes = members.iter().map(span).sum();
            let window = place(&members[0]).and_then(|(number, _)| file.window(number, bytes, now));
            let mut rest = members;
            while let Some((member, others)) = rest.split_first() {
                if let Some(window) = window.as_deref() {
                    let is_absent = |member: &Member<usize>| {
                        let start = start(member);
                        !window.is_resident(start..start + span(member), now)
                    };
                    let there = rest.iter().position(is_absent).unwrap_or(rest.len());
                    if there > 0 {
                        self.copy_from_map(file, window, &rest[..there], start)?;
                        rest = &rest[there..];
                        continue;
                    }
                    if blocking == Blocking::No {
                        return Err((self.done, SourceError::WouldBlock.into()));
                    }
                }
                self.read(member, |at, bytes| Ok(file.read_at(at, bytes, blocking)?))?;
                rest = others;
            }
        }
        Ok(())
    }

    /// Copies pieces out of a map, in which they begin at `start`.
    fn copy_from_map(
        &mut self,
        file: &OpenFile,
        window: &MappedWindow,
        members: &[Member<usize>],
        start: impl Fn(&Member<usize>) -> usize,
    ) -> Result<(), Failure> {
        let bytes_of = |member: &Member<usize>| &window.bytes()[start(member)..];
        let copied = self.batch.copy(members, MIN_INTERLEAVED_ROW, bytes_of, self.out);
        self.source_bytes += copied;
        file.check_copied(window, copied).map_err(|e| (self.done, e.into()))?;
        self.done += members.len();
        Ok(())
    }

    /// Reads a piece with few calls of `read`.
    fn read(
        &mut self,
        member: &Member<usize>,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), FormatError>,
    ) -> Result<(), Failure> {
        let shape = self.batch.shape_of(member);
        let calls = Calls::new(&shape.loops);
        // the threads that talk to the kernel do not read many bytes for a few samples
        if self.blocking == Blocking::No && calls.bytes() > MAX_READ.max(MAX_AMPLIFICATION * shape.useful) {
            return Err((self.done, SourceError::WouldBlock.into()));
        }
        let read_all = SCRATCH.with_borrow_mut(|scratch| {
            calls.try_for_each(|part, from, to| {
                let (from, to, span) = (member.place.from + from as u64, member.place.to + to, part.span());
                if part.is_run() {
                    return read(from, self.out.row(to, span));
                }
                if scratch.len() < span {
                    let more = span - scratch.len();
                    make_room(scratch, more)?;
                    scratch.resize(span, 0);
                }
                read(from, &mut scratch[..span])?;
                part.copy(&[&scratch[..span]], self.out, to);
                Ok(())
            })
        });
        read_all.map_err(|cause| (self.done, cause))?;
        self.source_bytes += calls.bytes();
        self.done += 1;
        Ok(())
    }
}

/// The calls that read a box of samples: one for each position of the outermost loops, and for each group of positions
/// of the next loop. A call reads all that is inside.
pub(super) struct Calls<'a> {
    loops: &'a Loops,
    outer: usize,
    group: usize,
}

impl<'a> Calls<'a> {
    pub(super) fn new(loops: &'a Loops) -> Self {
        let steps = loops.steps();
        // what is contiguous on both sides is read by one call, however long it is
        let (_, mut outer) = loops.run();
        while let Some(next) = outer.checked_sub(1) {
            let step = steps[next];
            if step.from.saturating_sub(loops.inner(outer).span()) > MAX_GAP {
                break;
            }
            if loops.inner(next).span() > MAX_READ {
                return Self { loops, outer: next, group: (MAX_READ / step.from.max(1)).clamp(1, step.count) };
            }
            outer = next;
        }
        Self { loops, outer, group: steps.get(outer).map_or(1, |step| step.count) }
    }

    /// Returns the bytes that are read.
    pub(super) fn bytes(&self) -> usize {
        let Self { loops, outer, group } = *self;
        let positions = loops.steps()[..outer].iter().map(|step| step.count).product::<usize>();
        let count = loops.steps().get(outer).map_or(1, |step| step.count);
        let rest = if count % group == 0 { 0 } else { loops.part(outer, count % group).span() };
        positions * (count / group * loops.part(outer, group).span() + rest)
    }

    /// Calls `call` with what one call reads, and where that begins in the source and in the target.
    fn try_for_each<E>(&self, mut call: impl FnMut(&Loops, usize, usize) -> Result<(), E>) -> Result<(), E> {
        let Self { loops, outer, group } = *self;
        let step = loops.steps().get(outer).copied().unwrap_or(Step { count: 1, from: 0, to: 0 });
        let (whole, rest) = (loops.part(outer, group), loops.part(outer, step.count % group));
        loops.try_for_each(outer, |from, to| {
            (0..step.count).step_by(group).try_for_each(|first| {
                let part = if first + group <= step.count { &whole } else { &rest };
                call(part, from + first * step.from, to + first * step.to)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Dims;

    fn calls(shape: [u64; 3], from: &Dims, to: &Dims) -> (usize, usize, usize) {
        let loops = Loops::new(&shape.into(), from, to, 4);
        let (calls, mut number) = (Calls::new(&loops), 0);
        let mut bytes = 0;
        let each = calls.try_for_each(|part, _, _| {
            number += 1;
            bytes += part.span();
            Ok::<(), ()>(())
        });
        assert_eq!((each, bytes), (Ok(()), calls.bytes()));
        (number, calls.bytes(), loops.useful())
    }

    #[test]
    fn small_gaps_are_read_along_and_large_ones_are_not() {
        let brick = Dims::from([64, 64, 64]).strides(4);
        let array = Dims::from([512, 512, 512]).strides(4);
        // one inline of a 64x64x64 float32 brick: one call for 16 KiB
        assert_eq!(calls([1, 64, 64], &brick, &array), (1, 16 << 10, 16 << 10));
        // one crossline: a call for each inline, since 16 KiB lie between
        assert_eq!(calls([64, 1, 64], &brick, &array), (64, 16 << 10, 16 << 10));
        // a whole brick: one call would exceed the limit, so 16 inlines are read at a time
        assert_eq!(calls([64, 64, 64], &brick, &array), (4, 1 << 20, 1 << 20));
        assert_eq!(calls([63, 64, 64], &brick, &array), (4, 63 << 14, 63 << 14));
        // a whole brick that goes to one run of memory: one call, straight there
        assert_eq!(calls([64, 64, 64], &brick, &brick), (1, 1 << 20, 1 << 20));
        // a depth slice: 256 bytes between samples are read along
        assert_eq!(calls([1, 64, 1], &brick, &array), (1, 63 * 256 + 4, 256));
        // a whole depth slice: 16 inlines at a time
        assert_eq!(calls([64, 64, 1], &brick, &[256, 4, 4].into()), (4, 4 * (15 * 16384 + 63 * 256 + 4), 16384));
        // a long trace that is scattered in memory: as many samples as the limit allows at a time
        assert_eq!(calls([1, 1, 1 << 20], &[4, 4, 4].into(), &[4, 4, 400].into()), (16, 4 << 20, 4 << 20));
    }
}
