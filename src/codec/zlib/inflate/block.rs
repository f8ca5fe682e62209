//! The symbols of a block, in its stored data.

use super::bits::{is_beyond, word};
use super::output::Output;
use super::prefix_code::{NOT_LITERAL, literal_length};
use super::symbol::{Codes, Symbol};

/// Literals that are decoded at a time.
pub(crate) const GROUP: usize = 5;

/// The stored data, and the codes of a block.
pub(crate) struct Block<'a> {
    pub stored: &'a [u8],
    pub codes: &'a Codes,
}

impl Block<'_> {
    /// Decodes literals with short codes to `to`, up to another symbol. Returns their number.
    #[inline]
    pub(crate) fn literals(&self, at: &mut usize, to: &mut [u8; GROUP]) -> usize {
        let Some(mut bits) = word(self.stored, *at) else { return 0 };
        for (n, to) in to.iter_mut().enumerate() {
            let entry = self.codes.literals.entry(bits);
            if entry & NOT_LITERAL != 0 {
                return n;
            }
            *to = (entry >> 8) as u8;
            bits >>= literal_length(entry);
            *at += literal_length(entry) as usize;
        }
        GROUP
    }

    /// Decodes the symbol at a place, and returns it with the place after it. `None` if it is not valid.
    #[inline]
    pub(crate) fn symbol(&self, at: usize) -> Option<(Symbol, usize)> {
        self.codes.symbol(self.stored, at).filter(|(_, next)| !is_beyond(self.stored, *next))
    }

    /// Decodes one symbol and appends it. Returns the place after it, and whether it was the end of the block. `None`
    /// if it is not valid.
    pub(crate) fn append_symbol(&self, at: usize, out: &mut Output<'_>) -> Option<(usize, bool)> {
        let (symbol, next) = self.symbol(at)?;
        match symbol {
            Symbol::Literal(byte) => out.extend(&[byte])?,
            Symbol::Match(what) => out.repeat(what)?,
            Symbol::EndOfBlock => return Some((next, true)),
        }
        Some((next, false))
    }
}
