//! The body of a file's response: pieces that are read when the client has taken those before.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{StreamExt, unfold};

use super::box_query::next_box;
use super::budget::Budget;
use super::calls::await_answer;
use super::open_file::{OpenFile, PieceInFlight};
use super::problem::Problem;
use crate::log_limit::warn_seldom;
use crate::volume::Region;

/// Pieces that are read ahead of one client.
const MOST_AHEAD: usize = 3;
/// Smaller pieces of a body with several ranges are copied together.
const GATHERED: usize = 8 << 10;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These bytes.
    Text(Bytes),
    /// A range of the file.
    Range(Range<u64>),
    /// A box of samples, each of this many bytes, from this sample on.
    Box(Region, u64, u64),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::Box(region, size, from) => region.samples().saturating_sub(*from).saturating_mul(*size),
        }
    }
}

/// What a body has, from its beginning to its end.
pub(crate) struct Parts {
    next: Option<Part>,
    several: Option<Multipart>,
}

/// Several ranges as one body; RFC 9110, section 14.6. A client may ask for many, so what lies between them is made when it
/// is sent.
struct Multipart {
    ranges: std::vec::IntoIter<Range<u64>>,
    size: u64,
    kind: &'static str,
    boundary: String,
    /// The range whose head was sent.
    current: Option<Range<u64>>,
    is_begun: bool,
    is_over: bool,
}

impl Parts {
    /// A range of the file.
    pub(crate) fn range(range: Range<u64>) -> Self {
        Self { next: Some(Part::Range(range)), several: None }
    }

    /// A box of samples of this many bytes.
    pub(crate) fn region(region: Region, size: u64) -> Self {
        Self { next: Some(Part::Box(region, size, 0)), several: None }
    }

    /// Several ranges of a file of `size` bytes and this media type.
    pub(crate) fn multipart(ranges: Vec<Range<u64>>, size: u64, kind: &'static str, boundary: String) -> Self {
        let ranges = ranges.into_iter();
        let several = Multipart { ranges, size, kind, boundary, current: None, is_begun: false, is_over: false };
        Self { next: None, several: Some(several) }
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.next.as_ref().map_or(0, Part::len) + self.several.as_ref().map_or(0, Multipart::len)
    }

    /// Returns the bytes of memory that the ranges take.
    fn weight(&self) -> usize {
        self.several.as_ref().map_or(0, |several| several.ranges.len() * size_of::<Range<u64>>())
    }

    /// Returns what comes next, less what was taken of it.
    fn front(&mut self) -> Option<&mut Part> {
        if self.next.as_ref().is_none_or(|part| part.len() == 0) {
            self.next = self.several.as_mut().and_then(Multipart::next);
        }
        self.next.as_mut().filter(|part| part.len() > 0)
    }
}

impl Multipart {
    fn len(&self) -> u64 {
        let digits = |number: u64| u64::from(number.checked_ilog10().unwrap_or(0)) + 1;
        // but for the two numbers of the range
        let head = self.head(&(0..1), false).len() as u64 - 2;
        let parts = self.ranges.as_slice().iter();
        let parts = parts.map(|range| head + digits(range.start) + digits(range.end - 1) + (range.end - range.start));
        // the first one has no line break before it
        parts.sum::<u64>() - 2 + self.tail().len() as u64
    }

    fn head(&self, range: &Range<u64>, is_first: bool) -> String {
        let (line_break, boundary, kind) = (if is_first { "" } else { "\r\n" }, &self.boundary, self.kind);
        let range = content_range(range, self.size);
        format!("{line_break}--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {range}\r\n\r\n")
    }

    fn tail(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }

    fn next(&mut self) -> Option<Part> {
        if let Some(range) = self.current.take() {
            return Some(Part::Range(range));
        }
        let text = match self.ranges.next() {
            Some(range) => {
                let head = self.head(&range, !self.is_begun);
                self.is_begun = true;
                self.current = Some(range);
                head
            }
            None if std::mem::replace(&mut self.is_over, true) => return None,
            None => self.tail(),
        };
        Some(Part::Text(text.into()))
    }
}
/// A piece of a body.
enum Piece {
    /// It is here.
    Here(Bytes),
    /// It is being read, and has to have this many bytes.
    InFlight(PieceInFlight, u64),
}

/// What is left of a body.
pub(crate) struct FileBody {
    open: Arc<OpenFile>,
    /// The epoch that the entity tag names; `None` if there is no tag.
    epoch: Option<u32>,
    budget: Budget,
    parts: Parts,
    /// The bytes of memory that the parts take.
    weight: usize,
    /// Those that are read already, in order.
    pieces: VecDeque<Piece>,
    /// How many the client has taken.
    taken: usize,
}

impl FileBody {
    /// Creates a body of these parts of a file.
    pub(crate) fn new(open: OpenFile, epoch: Option<u32>, budget: Budget, parts: Parts) -> Self {
        let (open, weight) = (Arc::new(open), parts.weight());
        Self { open, epoch, budget, parts, weight, pieces: VecDeque::new(), taken: 0 }
    }

    /// Reads the first piece, so that what fails at once gets a status of its own.
    pub(crate) async fn begin(&mut self) -> Result<(), Problem> {
        if let Some(piece) = self.next().await {
            self.pieces.push_front(Piece::Here(piece?));
        }
        Ok(())
    }

    /// Returns the body. An error in the middle of it breaks the connection off, so that the client knows.
    pub(crate) fn into_body(self) -> Body {
        let pieces = unfold(Some(self), |state| async {
            let mut state = state?;
            match state.next().await? {
                Ok(piece) => {
                    state.read_ahead();
                    Some((Ok(piece), Some(state)))
                }
                Err(problem) => {
                    warn_seldom(&format!("a response was broken off: {problem}"));
                    Some((Err(io::Error::other(problem.to_string())), None))
                }
            }
        });
        // whoever compresses a body asks again after its end
        Body::from_stream(pieces.fuse())
    }

    /// Returns the next bytes for the client; `None` at the end. What is smaller than a piece is worth is copied together: a
    /// thousand ranges of a byte must not be as many pieces.
    async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        let first = match self.piece().await? {
            Ok(first) if self.parts.several.is_some() && first.len() < GATHERED => first,
            other => return Some(other),
        };
        let mut gathered = BytesMut::with_capacity(2 * GATHERED);
        gathered.extend_from_slice(&first);
        drop(first);
        while gathered.len() < GATHERED {
            self.read_ahead();
            match self.piece().await {
                Some(Ok(bytes)) if bytes.len() <= GATHERED => gathered.extend_from_slice(&bytes),
                Some(Ok(bytes)) => {
                    self.pieces.push_front(Piece::Here(bytes));
                    break;
                }
                Some(failed) => return Some(failed),
                None => break,
            }
        }
        Some(Ok(gathered.freeze()))
    }

    /// Returns the next piece; `None` at the end.
    async fn piece(&mut self) -> Option<Result<Bytes, Problem>> {
        if self.pieces.is_empty() {
            let piece = self.start(false);
            self.pieces.extend(piece);
        }
        match self.pieces.pop_front()? {
            Piece::Here(bytes) => Some(Ok(bytes)),
            Piece::InFlight(read, length) => Some(match await_answer(read).await {
                // the file was cut short, or is another one by now
                Ok(bytes) if bytes.len() as u64 != length => Err(Problem::Unreadable),
                Ok(_) if self.epoch.is_some_and(|epoch| !self.open.is_of_epoch(epoch)) => Err(Problem::Changing),
                answer => answer,
            }),
        }
    }

    /// Starts to read pieces after the one that is sent now, if the budget allows it: more for a client that has taken
    /// some.
    fn read_ahead(&mut self) {
        self.taken += 1;
        while self.pieces.len() < self.taken.min(MOST_AHEAD) {
            match self.start(true) {
                Some(piece) => self.pieces.push_back(piece),
                None => return,
            }
        }
    }

    /// Starts to read the next piece. One that is read `ahead` must fit the budget.
    fn start(&mut self, ahead: bool) -> Option<Piece> {
        let wanted = match self.parts.front()? {
            Part::Text(text) => return Some(Piece::Here(std::mem::take(text))),
            part => part.len(),
        };
        let (length, share) = match ahead {
            true => self.budget.long_piece(wanted).map(|(length, share)| (length, Some(share)))?,
            false => self.budget.piece(wanted, self.weight),
        };
        match self.parts.front()? {
            Part::Text(_) => None,
            Part::Range(range) => {
                let read = match ahead {
                    true => self.open.read_ahead(range.start, length, share),
                    false => self.open.read(range.start, length, share),
                };
                range.start += length as u64;
                Some(Piece::InFlight(read, length as u64))
            }
            Part::Box(region, size, from) => {
                let next = next_box(region, *from, length as u64 / *size);
                *from += next.samples();
                Some(Piece::InFlight(self.open.read_box(next, share), next.samples() * *size))
            }
        }
    }
}

/// Returns the header that says which part of a file a response has.
pub(crate) fn content_range(range: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1))
}
