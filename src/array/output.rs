//! The memory that samples are copied to, and its division among threads that fill it at the same time.
//!
//! Rows of different bricks lie between each other in memory, so that it cannot be split into slices. What is exclusive
//! is a piece: [`Work`] gives each piece to one thread only.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use super::region::Piece;
use crate::memory::Buffer;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex};

/// How often a caller who waits for memory that it has lent is called.
pub(super) const MEANWHILE: Duration = Duration::from_millis(100);

/// Access to memory that one thread fills, row by row.
pub(super) struct Rows<'a> {
    start: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(memory: &'a mut [u8]) -> Self {
        Self { len: memory.len(), start: NonNull::from(memory).cast(), memory: PhantomData }
    }

    /// Returns the same access as a value of the caller's own: a loop that writes through it keeps it in registers.
    #[inline]
    pub(super) fn local(&mut self) -> Rows<'_> {
        Rows { start: self.start, len: self.len, memory: PhantomData }
    }

    /// Returns `len` bytes from `at` on.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    pub(super) fn row(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at <= self.len && len <= self.len - at, "{len} bytes at {at} of {}", self.len);
        // SAFETY: the bytes are within the memory, which is initialised and lives as long as `self`. Nobody else has a
        // reference to them: of this value `&mut self` makes sure, and other threads have values of the same memory
        // only by `Work::claim`, for pieces of other bytes.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) }
    }

    /// Returns `N` bytes from `at` on.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self, at: usize) -> &mut [u8; N] {
        let row = self.row(at, N);
        // SAFETY: the row has N bytes, and an array of bytes needs no alignment.
        unsafe { &mut *row.as_mut_ptr().cast() }
    }
}

/// The memory of a read: a buffer, or borrowed from a caller who waits until it is dropped.
pub(super) enum Memory {
    Owned(Buffer),
    Lent(Loan),
}

/// Memory of a caller of [`lend`]; given back when this is dropped.
pub(super) struct Loan {
    start: NonNull<u8>,
    len: usize,
    given_back: Arc<(Mutex<bool>, Condvar)>,
}

// SAFETY: whoever has the loan has the only access to the memory, as with `&mut [u8]`.
unsafe impl Send for Loan {}

impl Drop for Loan {
    fn drop(&mut self) {
        let (given_back, condition) = &*self.given_back;
        *given_back.lock() = true;
        condition.notify_all();
    }
}

/// What a thread does some times a second while it reads or waits.
pub(super) type Meanwhile<'a> = Option<&'a mut dyn FnMut()>;

/// Calls `start` with memory that may be passed on to other threads, and returns when it was dropped. Calls `meanwhile`
/// some times a second until then.
pub(super) fn lend(memory: &mut [u8], start: impl FnOnce(Memory, Meanwhile<'_>), mut meanwhile: Meanwhile<'_>) {
    /// Waits when it is dropped, also by a panic of `start`.
    struct Waits(Arc<(Mutex<bool>, Condvar)>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let (given_back, condition) = &*self.0;
            let mut given_back = given_back.lock();
            while !*given_back {
                condition.wait(&mut given_back);
            }
        }
    }
    let waits = Waits(Arc::default());
    let (len, given_back) = (memory.len(), Arc::clone(&waits.0));
    let lent = Memory::Lent(Loan { start: NonNull::from(memory).cast(), len, given_back });
    start(lent, meanwhile.as_mut().map(|meanwhile| &mut **meanwhile as &mut dyn FnMut()));
    let Some(meanwhile) = meanwhile else { return };
    let (given_back, condition) = &*waits.0;
    let mut is_back = given_back.lock();
    while !*is_back {
        if condition.wait_for(&mut is_back, MEANWHILE).timed_out() {
            drop(is_back);
            meanwhile();
            is_back = given_back.lock();
        }
    }
}

impl Memory {
    /// Returns the buffer; `None` if the memory is lent.
    pub(super) fn into_buffer(self) -> Option<Buffer> {
        match self {
            Self::Owned(buffer) => Some(buffer),
            Self::Lent(_) => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Owned(buffer) => buffer.len(),
            Self::Lent(loan) => loan.len,
        }
    }

    /// Returns access to all of it.
    pub(super) fn rows(&mut self) -> Rows<'_> {
        match self {
            Self::Owned(buffer) => Rows::new(buffer),
            Self::Lent(Loan { start, len, .. }) => Rows { start: *start, len: *len, memory: PhantomData },
        }
    }
}

/// Pieces that several threads copy to the same memory.
pub(super) struct Work {
    pieces: Vec<Piece>,
    /// Whether two threads may write at the same time: no two pieces overlap in memory.
    is_parallel: bool,
    /// The next piece that nobody has claimed.
    next: AtomicUsize,
    /// Pieces that are not finished.
    unfinished: AtomicUsize,
    start: NonNull<u8>,
    len: usize,
    /// `None` once all pieces are finished. In a box, since `start` must not be reached through a value that moves.
    memory: Mutex<Option<Box<Memory>>>,
}

// SAFETY: the bytes at `start` belong to `memory`, which may be sent. They are accessed only by claims, which have each
// piece once.
unsafe impl Send for Work {}
// SAFETY: as above
unsafe impl Sync for Work {}

impl Work {
    /// Prepares to copy `pieces`, one at least, to `memory`. `is_parallel` tells whether each has bytes of its own.
    pub(super) fn new(pieces: Vec<Piece>, memory: Memory, is_parallel: bool) -> Self {
        let mut memory = Box::new(memory);
        let Rows { start, len, .. } = memory.rows();
        let (next, unfinished) = (AtomicUsize::new(0), AtomicUsize::new(pieces.len()));
        Self { pieces, is_parallel, next, unfinished, start, len, memory: Mutex::new(Some(memory)) }
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Claims the next pieces: the first `count` of those that nobody has claimed. All of them if there are pieces that
    /// overlap in memory.
    pub(super) fn claim(&self, count: impl Fn(&[Piece]) -> usize) -> Option<Claim<'_>> {
        let mut from = self.next.load(Ordering::Relaxed);
        loop {
            let pieces = self.pieces.get(from..).filter(|pieces| !pieces.is_empty())?;
            let to = from + if self.is_parallel { count(pieces).clamp(1, pieces.len()) } else { pieces.len() };
            match self.next.compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Claim { work: self, range: from..to }),
                Err(now) => from = now,
            }
        }
    }
}

/// Pieces that one thread copies.
pub(super) struct Claim<'a> {
    work: &'a Work,
    range: Range<usize>,
}

impl Claim<'_> {
    /// Returns the pieces, and access to the memory: to be used for the bytes of these pieces alone.
    pub(super) fn parts(&mut self) -> (&[Piece], Rows<'_>) {
        let Work { pieces, start, len, .. } = self.work;
        (&pieces[self.range.clone()], Rows { start: *start, len: *len, memory: PhantomData })
    }

    /// Ends the claim. Returns the memory if all pieces are finished.
    pub(super) fn finish(self) -> Option<Memory> {
        let finished = self.range.len();
        // whoever finishes last sees what the others have written
        let is_last = self.work.unfinished.fetch_sub(finished, Ordering::AcqRel) == finished;
        is_last.then(|| self.work.memory.lock().take().map(|memory| *memory)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::volume::{Dims, Region};

    /// A piece of a part of the memory, which begins at `to`.
    fn piece(to: usize) -> Piece {
        let at = Dims::filled(1, 0);
        Piece { selection: 0, brick: at, region: Region { start: at, shape: at }, to }
    }

    #[test]
    fn threads_fill_memory_that_is_lent_row_by_row() {
        let mut memory = vec![0; 8];
        lend(
            &mut memory,
            |lent, _| {
                let work = Arc::new(Work::new((0..4).map(piece).collect(), lent, true));
                for _ in 0..2 {
                    let work = Arc::clone(&work);
                    thread::spawn(move || {
                        while let Some(mut claim) = work.claim(|_| 1) {
                            let (pieces, mut rows) = claim.parts();
                            for piece in pieces {
                                // of two bricks, whose samples lie in turn
                                rows.row(piece.to, 1)[0] += 1 + piece.to as u8;
                                *rows.local().array(piece.to + 4) = [9];
                            }
                            claim.finish();
                        }
                    });
                }
            },
            None,
        );
        assert_eq!(memory, [1, 2, 3, 4, 9, 9, 9, 9]);
    }
}
