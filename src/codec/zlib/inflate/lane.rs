//! A lane: decodes symbols from a place on that may lie within a symbol, to memory of its own.

use super::block::{Block, GROUP};
use super::output::Output;
use super::symbol::{Match, Symbol};

/// The most groups of a lane.
pub(crate) const GROUPS: usize = 1600;
/// Places that a lane marks at most.
pub(crate) const MARKS: usize = 48;
/// The most matches of a lane.
const MATCHES: usize = 512;

/// What a lane has decoded.
pub(crate) struct Lane {
    /// Where the next symbol begins.
    pub at: usize,
    /// The groups that were decoded.
    pub groups: usize,
    /// The literals, with gaps behind matches.
    pub bytes: Box<[[u8; GROUP]; GROUPS]>,
    events: Events,
    marks: Vec<Mark>,
}

/// A place where a symbol begins, as far as a lane knows.
struct Mark {
    at: usize,
    groups: usize,
}

/// What a lane has come upon besides literals.
pub(crate) struct Events {
    matches: Vec<DeferredMatch>,
    end: Option<End>,
}

/// A match that is repeated when the lane's bytes are appended: what it repeats is not known to the lane.
struct DeferredMatch {
    at: usize,
    /// Where the literals before it end in the lane's bytes, and where those behind it begin.
    gap: (usize, usize),
    what: Match,
}

/// Where a lane has ended.
struct End {
    /// Where its literals end.
    filled: usize,
    /// The last symbol was the end of the block. If not, the next one is not valid, or there is no room for it.
    is_end_of_block: bool,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            groups: 0,
            bytes: Box::new([[0; GROUP]; GROUPS]),
            events: Events { matches: Vec::with_capacity(MATCHES), end: None },
            marks: Vec::with_capacity(MARKS),
        }
    }

    /// Begins anew at a place.
    pub(crate) fn begin(&mut self, at: usize) {
        (self.at, self.groups, self.events.end) = (at, 0, None);
        self.marks.clear();
        self.events.matches.clear();
    }

    /// Decodes the group with this number, which begins at `at`, up to a symbol that is no literal. Returns whether the
    /// lane can go on.
    #[inline(never)]
    pub(crate) fn group(&mut self, block: &Block<'_>, at: &mut usize, number: usize) -> bool {
        let first = GROUP * number;
        let Some(to) = self.bytes.get_mut(number) else { return self.events.end(first, false) };
        let begun = block.literals(at, to);
        for (filled, to) in (first..).zip(to).skip(begun) {
            let Some((symbol, next)) = block.symbol(*at) else { return self.events.end(filled, false) };
            let symbol_at = std::mem::replace(at, next);
            match symbol {
                Symbol::Literal(byte) => *to = byte,
                Symbol::Match(what) => {
                    let behind = first + GROUP;
                    self.events.matches.push(DeferredMatch { at: symbol_at, gap: (filled, behind), what });
                    return self.events.matches.len() < MATCHES || self.events.end(behind, false);
                }
                Symbol::EndOfBlock => return self.events.end(filled, true),
            }
        }
        true
    }

    /// Marks the place where the next symbol begins.
    pub(crate) fn mark(&mut self) {
        self.marks.push(Mark { at: self.at, groups: self.groups });
    }

    /// The first and the last place that are marked.
    pub(crate) fn marked(&self) -> Option<(usize, usize)> {
        Some((self.marks.first()?.at, self.marks.last()?.at))
    }

    /// Whether fewer places are marked than a lane marks at most.
    pub(crate) fn has_room_for_marks(&self) -> bool {
        self.marks.len() < MARKS
    }

    /// Whether the lane cannot go on.
    pub(crate) fn has_ended(&self) -> bool {
        self.events.end.is_some()
    }

    /// Whether the lane has come to the end of the block.
    pub(crate) fn is_at_end_of_block(&self) -> bool {
        self.events.end.as_ref().is_some_and(|end| end.is_end_of_block)
    }

    /// Appends what the lane has decoded from `at` on, if it has a mark there. Returns whether it has, and `None` if
    /// its matches are not valid.
    pub(crate) fn append_from(&self, at: usize, out: &mut Output<'_>) -> Option<bool> {
        let Ok(mark) = self.marks.binary_search_by_key(&at, |mark| mark.at) else { return Some(false) };
        let bytes = self.bytes.as_flattened();
        let mut from = GROUP * self.marks[mark].groups;
        for DeferredMatch { gap, what, .. } in self.events.matches.iter().filter(|deferred| deferred.at >= at) {
            out.extend(bytes.get(from..gap.0)?)?;
            out.repeat(*what)?;
            from = gap.1;
        }
        let filled = self.events.end.as_ref().map_or(GROUP * self.groups, |end| end.filled);
        out.extend(bytes.get(from..filled)?)?;
        Some(true)
    }
}

impl Events {
    /// Ends the lane. `filled` is where its literals end.
    fn end(&mut self, filled: usize, is_end_of_block: bool) -> bool {
        self.end = Some(End { filled, is_end_of_block });
        false
    }
}
