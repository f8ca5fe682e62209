//! The body of a file's response: pieces that are read when the client has taken those before.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
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

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Text(Bytes),
    /// A range of the file.
    Range(Range<u64>),
    /// A box of samples, each of this many bytes, from this sample on.
    Box(Region, u64, u64),
}

impl Part {
    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Range(range) => range.end.saturating_sub(range.start),
            Self::Box(region, size, from) => region.samples().saturating_sub(*from).saturating_mul(*size),
        }
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
pub struct FileBody {
    open: Arc<OpenFile>,
    /// The epoch that the entity tag names; `None` if there is no tag.
    epoch: Option<u32>,
    budget: Budget,
    parts: VecDeque<Part>,
    /// Those that are read already, in order.
    pieces: VecDeque<Piece>,
    /// How many the client has taken.
    taken: usize,
}

impl FileBody {
    /// Creates a body of these parts of a file.
    #[must_use]
    pub fn new(open: OpenFile, epoch: Option<u32>, budget: Budget, parts: Vec<Part>) -> Self {
        let parts = parts.into_iter().filter(|part| part.len() > 0).collect();
        Self { open: Arc::new(open), epoch, budget, parts, pieces: VecDeque::new(), taken: 0 }
    }

    /// Reads the first piece, so that what fails at once gets a status of its own.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn begin(&mut self) -> Result<(), Problem> {
        if let Some(piece) = self.piece().await {
            self.pieces.push_front(Piece::Here(piece?));
        }
        Ok(())
    }

    /// Returns the body. An error in the middle of it breaks the connection off, so that the client knows.
    pub fn into_body(self) -> Body {
        let pieces = unfold(Some(self), |state| async {
            let mut state = state?;
            match state.piece().await? {
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
        let wanted = self.parts.front()?.len();
        if let Part::Text(_) = self.parts.front()? {
            let Part::Text(text) = self.parts.pop_front()? else { return None };
            return Some(Piece::Here(text));
        }
        let (length, share) = match ahead {
            true => self.budget.long_piece(wanted).map(|(length, share)| (length, Some(share)))?,
            false => self.budget.piece(wanted),
        };
        let (piece, is_last) = match self.parts.front_mut()? {
            Part::Text(_) => return None,
            Part::Range(range) => {
                let read = match ahead {
                    true => self.open.read_ahead(range.start, length, share),
                    false => self.open.read(range.start, length, share),
                };
                let piece = Piece::InFlight(read, length as u64);
                range.start += length as u64;
                (piece, range.is_empty())
            }
            Part::Box(region, size, from) => {
                let next = next_box(region, *from, length as u64 / *size);
                *from += next.samples();
                let is_last = *from >= region.samples();
                (Piece::InFlight(self.open.read_box(next, share), next.samples() * *size), is_last)
            }
        };
        if is_last {
            self.parts.pop_front();
        }
        Some(piece)
    }
}
