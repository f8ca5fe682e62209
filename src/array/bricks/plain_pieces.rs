//! Pieces of plain bricks: copied from the source to the reply without waiting, only the bytes asked for.
//!
//! Bytes that are in the page cache are copied out of a memory map of the file ([`MappedWindow`]). All others are read:
//! long runs straight into the reply, short ones through a scratch buffer that stays in the processor's cache.

use std::cell::Cell;

use super::plain_read::{MAX_AMPLIFICATION, MAX_READ, bytes_read, first_byte, missing_object, read_loops};
use crate::array::copy::{Batch, Member};
use crate::array::request::Piece;
use crate::format::{Array, FormatError};
use crate::source::{Blocking, CoarseInstant, MappedWindow, OpenFile, SourceError};
use crate::volume::{Dims, ObjectName, Plain};

/// Neighbouring bricks are copied interleaved if their rows have at least this many bytes. Measured on Zen 4: rows of 32
/// to 256 bytes take three quarters of the processor time then. (A Xeon was faster with rows of 32 bytes brick by brick.)
const MIN_INTERLEAVED_ROW: usize = 32;

/// Lists of more pieces than this are not kept for the next request.
const MAX_KEPT: usize = 1024;

/// The pieces of plain bricks that a read asks for: collected first, and copied together in the order of the reply.
#[derive(Default)]
pub(crate) struct PlainPieces {
    /// In the order of the reply. The source of a member is the number of its object.
    batch: Batch<usize>,
    /// The pieces of the members.
    pieces: Vec<Piece>,
    /// The objects; neighbours mostly have the same.
    objects: Vec<ObjectName>,
    /// Bytes that were read from the source for them.
    source_bytes: Cell<usize>,
}

/// Why pieces were not copied.
pub(crate) struct CopyFailure {
    /// The number of the piece that failed; all pieces before it were copied.
    pub number: usize,
    /// The cause.
    pub cause: FormatError,
}

impl PlainPieces {
    /// Whether there are no pieces.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces, in the order in which they were added.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the bytes that were read from the source for the pieces so far.
    pub(crate) fn source_bytes(&self) -> usize {
        self.source_bytes.get()
    }

    /// Adds a piece whose first sample goes to byte `at` of the reply; neighbours along each axis are `to` bytes apart
    /// there.
    pub(crate) fn add(
        &mut self,
        array: &dyn Array,
        piece: &Piece,
        plain: &Plain,
        to: &Dims,
        at: usize,
    ) -> Result<(), FormatError> {
        let from = first_byte(piece, plain)?;
        if self.objects.last() != Some(&plain.object) {
            self.objects.push(plain.object.clone());
        }
        let (object, size) = (self.objects.len() - 1, array.info().dtype.size());
        self.batch.add(object, (from, at), (&piece.region.shape, &plain.layout.strides), to, size);
        self.pieces.push(*piece);
        Ok(())
    }

    /// Removes all pieces; the memory of the lists stays, if there were not very many.
    pub(crate) fn clear(&mut self) {
        if self.pieces.len() > MAX_KEPT {
            *self = Self::default();
        }
        let Self { batch, pieces, objects, source_bytes } = self;
        batch.clear();
        pieces.clear();
        objects.clear();
        source_bytes.set(0);
    }

    /// Copies all pieces to `out` without waiting. [`CopyFailure`] has the first piece that could not be read; its
    /// cause is [`SourceError::WouldBlock`] if it has to wait.
    pub(crate) fn copy(&self, array: &dyn Array, out: &mut [u8]) -> Result<(), CopyFailure> {
        let (source, now) = (array.source(), CoarseInstant::now());
        let mut done = 0;
        for members in self.batch.members().chunk_by(|a, b| a.source == b.source) {
            let failed = |number: usize, cause: FormatError| CopyFailure { number: done + number, cause };
            let object = &self.objects[members[0].source];
            match source.open_object(object, Blocking::No) {
                // only the server knows whether a remote file has changed, and it may not answer
                Ok(Some(file)) if !file.is_local() => return Err(failed(0, SourceError::WouldBlock.into())),
                Ok(Some(file)) => {
                    let outcome = self.copy_from_file(&file, members, now, out);
                    // a changed file is reported before any other outcome: the bytes copied may be of another version
                    file.check_unchanged().map_err(|e| failed(0, e.into()))?;
                    outcome.map_err(|CopyFailure { number, cause }| failed(number, cause))?;
                }
                Ok(None) => {
                    for (n, member) in members.iter().enumerate() {
                        let read = |at, bytes: &mut [u8]| match source.read_at(object, at, bytes, Blocking::No)? {
                            true => Ok(()),
                            false => Err(missing_object()),
                        };
                        self.read(member, out, read).map_err(|cause| failed(n, cause))?;
                    }
                }
                Err(e) => return Err(failed(0, e.into())),
            }
            done += members.len();
        }
        Ok(())
    }

    /// Copies the pieces of one file, out of its memory maps where these cover them.
    fn copy_from_file(
        &self,
        file: &OpenFile,
        members: &[Member<usize>],
        now: CoarseInstant,
        out: &mut [u8],
    ) -> Result<(), CopyFailure> {
        let span = |member: &Member<usize>| self.batch.shape_of(member).span;
        let place = |member: &Member<usize>| file.window_of(member.from, span(member));
        let mut done = 0;
        for members in members.chunk_by(|a, b| place(a).map(|p| p.0) == place(b).map(|p| p.0)) {
            if let Some(window) = place(&members[0]).and_then(|(number, _)| file.window(number)) {
                let start = |member: &Member<usize>| place(member).map_or(0, |p| p.1);
                let resident = |member: &Member<usize>| {
                    let start = start(member);
                    window.is_resident(start..start + span(member), now)
                };
                let there = members.iter().position(|member| !resident(member)).unwrap_or(members.len());
                let copied = self.copy_from_map(&window, &members[..there], start, out);
                let number = done + there;
                file.check_copied(&window, copied).map_err(|e| CopyFailure { number: done, cause: e.into() })?;
                if there < members.len() {
                    return Err(CopyFailure { number, cause: SourceError::WouldBlock.into() });
                }
            } else {
                for (n, member) in members.iter().enumerate() {
                    let read = |at, bytes: &mut [u8]| Ok(file.read_at(at, bytes, Blocking::No)?);
                    self.read(member, out, read).map_err(|cause| CopyFailure { number: done + n, cause })?;
                }
            }
            done += members.len();
        }
        Ok(())
    }

    /// Copies pieces out of a map, in which they begin at `start`; returns the bytes copied.
    fn copy_from_map(
        &self,
        window: &MappedWindow,
        members: &[Member<usize>],
        start: impl Fn(&Member<usize>) -> usize,
        out: &mut [u8],
    ) -> usize {
        let bytes = window.bytes();
        let copied = self.batch.copy(members, MIN_INTERLEAVED_ROW, |member| &bytes[start(member)..], out);
        self.source_bytes.set(self.source_bytes.get() + copied);
        copied
    }

    fn read(
        &self,
        member: &Member<usize>,
        out: &mut [u8],
        read: impl FnMut(u64, &mut [u8]) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let shape = self.batch.shape_of(member);
        // the threads that talk to the kernel do not read many bytes for a few samples
        let bytes = bytes_read(&shape.loops);
        if bytes > MAX_READ.max(MAX_AMPLIFICATION * shape.useful) {
            return Err(SourceError::WouldBlock.into());
        }
        read_loops(&shape.loops, member.from, &mut out[member.to..], read)?;
        self.source_bytes.set(self.source_bytes.get() + bytes);
        Ok(())
    }
}
