//! The body of a file's response: pieces that are read when the client has taken those before.
//!
//! Long pieces are fast, but a client that takes nothing holds those that wait for it. So they come out of a budget
//! that all responses share; when it is used up pieces are short, and none is read ahead of its client.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::iter::once;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::Semaphore;

use super::response::{Body, Problem};
use super::tree::{Open, PieceInFlight, Share, await_answer};
use crate::logging::warn_seldom;
use crate::view::Rows;

/// The length of a long piece in bytes.
const LONG: usize = 1 << 20;
/// The length of a short piece in bytes, which each response may have in memory whatever the others do, less what it
/// keeps besides.
pub(super) const SHORT: usize = 48 << 10;
/// Bytes of long pieces in memory, all responses together.
const TOTAL: usize = 16 << 20;
/// The unit in which the budget is counted: a semaphore has 32 bits.
const UNIT: usize = 1 << 10;
/// Pieces that are read ahead of one client.
const MOST_AHEAD: usize = 3;
/// The bytes of a body that is kept in memory as a whole, while it is checked and sent.
const KEPT: usize = 4 << 20;
/// Smaller pieces of a body with several ranges are copied together.
const GATHERED: usize = 8 << 10;
/// Bytes of samples that become rows of a table at a time.
const OF_ROWS: usize = 2 << 10;

#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOTAL / UNIT)))
    }
}

impl Budget {
    /// Returns the length of a piece that may be read now, at most `wanted` bytes. The response keeps `kept` bytes
    /// besides.
    fn piece(&self, wanted: u64, kept: usize) -> (usize, Share) {
        let short = || (usize::try_from(wanted).unwrap_or(SHORT).min(SHORT.saturating_sub(kept).max(UNIT)), None);
        self.long_piece(wanted).unwrap_or_else(short)
    }

    /// Returns the memory for a whole body, if it is short and the budget allows it.
    fn kept(&self, size: u64) -> Option<(usize, Share)> {
        let length = usize::try_from(size).ok().filter(|length| *length <= KEPT)?;
        if length <= SHORT {
            return Some((length, None));
        }
        let units = u32::try_from(length.div_ceil(UNIT)).ok()?;
        let share = Arc::clone(&self.0).try_acquire_many_owned(units).ok()?;
        Some((length, Some(share)))
    }

    /// Returns a piece that may be read ahead of the client, if the budget allows one.
    fn long_piece(&self, wanted: u64) -> Option<(usize, Share)> {
        let length = usize::try_from(wanted).unwrap_or(LONG).min(LONG);
        let units = u32::try_from(length.div_ceil(UNIT)).ok()?;
        let share = Arc::clone(&self.0).try_acquire_many_owned(units).ok()?;
        Some((length, Some(share)))
    }
}

/// A part of a body.
pub(super) enum Part {
    Text(Bytes),
    Range(Range<u64>),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Range(range) => range.end.saturating_sub(range.start),
        }
    }
}

/// What a body has, from its beginning to its end.
pub(super) struct Parts {
    pub(super) len: u64,
    /// What is left of the first part.
    front: Option<Part>,
    rest: Box<dyn Iterator<Item = Part> + Send>,
    /// The bytes of memory that the ranges take, if they are several.
    weight: usize,
}

impl Parts {
    pub(super) fn one(part: Part) -> Self {
        Self { len: part.len(), front: Some(part), rest: Box::new(std::iter::empty()), weight: 0 }
    }

    /// Several ranges of a file of `size` bytes and this media type; RFC 9110, section 14.6. A client may ask for many,
    /// so the text between them is made when it is sent.
    pub(super) fn multipart(ranges: Vec<Range<u64>>, size: u64, kind: &'static str, boundary: String) -> Self {
        let tail = format!("\r\n--{boundary}--\r\n");
        let weight = ranges.len() * size_of::<Range<u64>>();
        let head = move |n: usize, range: &Range<u64>| {
            let (line_break, range) = (if n == 0 { "" } else { "\r\n" }, content_range(range, size));
            format!("{line_break}--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {range}\r\n\r\n")
        };
        let lens = ranges.iter().enumerate().map(|(n, range)| head(n, range).len() as u64 + range.end - range.start);
        let len = lens.sum::<u64>() + tail.len() as u64;
        let parts = ranges.into_iter().enumerate();
        let parts = parts.flat_map(move |(n, range)| [Part::Text(head(n, &range).into()), Part::Range(range)]);
        Self { len, front: None, rest: Box::new(parts.chain(once(Part::Text(tail.into())))), weight }
    }

    /// Returns what comes next, less what was taken of it.
    fn front(&mut self) -> Option<&mut Part> {
        if self.front.as_ref().is_none_or(|part| part.len() == 0) {
            self.front = self.rest.next();
        }
        self.front.as_mut().filter(|part| part.len() > 0)
    }
}

enum Piece {
    Here(Bytes),
    /// It is being read, and has to have this many bytes.
    InFlight(PieceInFlight, u64),
}

/// What is left of a body.
pub(super) struct FileBody {
    open: Open,
    /// The epoch that the headers name; `None` if the file may change meanwhile.
    epoch: Option<u32>,
    budget: Budget,
    parts: Parts,
    /// Pieces that are read already or are being read, in order.
    pieces: VecDeque<Piece>,
    /// How many the client has taken.
    taken: usize,
}

impl FileBody {
    /// Begins a body of these parts of a file. The first piece is read before the response begins, so that a failure
    /// gets its status.
    pub(super) async fn begin(open: Open, epoch: Option<u32>, budget: Budget, parts: Parts) -> Result<Body, Problem> {
        Self { open, epoch, budget, parts, pieces: VecDeque::new(), taken: 0 }.start_sending().await
    }

    /// Begins a body of a whole file of `size` bytes, all of which are read before the response begins: some clients do
    /// not notice when it breaks off. Few bytes are kept, and more are read again while they are sent.
    pub(super) async fn begin_checked(
        open: Open,
        epoch: Option<u32>,
        budget: Budget,
        size: u64,
    ) -> Result<Body, Problem> {
        let whole = || Parts::one(Part::Range(0..size));
        let mut body = Self { open, epoch, budget, parts: whole(), pieces: VecDeque::new(), taken: 0 };
        if let Some((length, share)) = body.budget.kept(size) {
            let read = body.open.read(0, length, share, false);
            body.pieces.push_back(Piece::InFlight(read, size));
            body.parts = Parts::one(Part::Range(size..size));
        } else {
            while let Some(piece) = body.next().await {
                piece?;
                body.read_ahead();
            }
            (body.parts, body.taken) = (whole(), 0);
        }
        body.start_sending().await
    }

    async fn start_sending(self) -> Result<Body, Problem> {
        let mut body = self;
        let Some(first) = body.next().await else { return Ok(Body::default()) };
        body.pieces.push_front(Piece::Here(first?));
        Ok(Body::stream(body, |mut body| async move {
            match body.next().await? {
                Ok(piece) => {
                    body.read_ahead();
                    Some((Ok(piece), Some(body)))
                }
                Err(problem) => {
                    warn_seldom(&format!("a response was broken off: {problem}"));
                    Some((Err(problem.into()), None))
                }
            }
        }))
    }

    /// Returns the next bytes for the client; `None` at the end. Short pieces of several ranges are copied together: a
    /// thousand ranges of a byte must not be as many pieces.
    async fn next(&mut self) -> Option<Result<Bytes, Problem>> {
        let first = match self.piece().await? {
            Ok(first) if self.parts.weight > 0 && first.len() < GATHERED => first,
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

    /// Starts to read the pieces after the one that is sent now, if the budget allows it: more for a client that has
    /// taken some.
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
        let part = self.parts.front()?;
        if let Part::Text(text) = part {
            return Some(Piece::Here(take(text)));
        }
        let wanted = part.len();
        let (length, share) = match ahead {
            true => self.budget.long_piece(wanted)?,
            false => self.budget.piece(wanted, self.parts.weight),
        };
        match self.parts.front()? {
            Part::Text(_) => None,
            Part::Range(range) => {
                let read = self.open.read(range.start, length, share, ahead);
                range.start += length as u64;
                Some(Piece::InFlight(read, length as u64))
            }
        }
    }
}

/// Returns the rows of a body of samples.
pub(super) fn table(samples: Body, rows: Rows) -> Body {
    Body::stream((samples, Bytes::new(), rows), |(mut samples, mut piece, mut rows)| async move {
        while piece.is_empty() {
            piece = match poll_fn(|context| samples.poll_next(context)).await? {
                Ok(piece) => piece,
                error => return Some((error, None)),
            };
        }
        let text = rows.write(&piece.split_to(piece.len().min(OF_ROWS)));
        Some((Ok(text.into()), Some((samples, piece, rows))))
    })
}

/// Returns the header that says which part of a file a response has.
pub(super) fn content_range(range: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_when_the_budget_is_used_up() {
        let budget = Budget::default();
        assert_eq!(budget.piece(10, 0).0, 10);
        let mut held: Vec<(usize, Share)> = (0..TOTAL / LONG).map(|_| budget.piece(u64::MAX, 0)).collect();
        assert!(held.iter().all(|(length, share)| *length == LONG && share.is_some()));
        let (length, share) = budget.piece(u64::MAX, 0);
        assert!(length == SHORT && share.is_none() && budget.long_piece(LONG as u64).is_none());
        assert_eq!(budget.piece(u64::MAX, 16 << 10).0, SHORT - (16 << 10));
        held.pop();
        assert_eq!(budget.piece(u64::MAX, 0).0, LONG);
    }
}
