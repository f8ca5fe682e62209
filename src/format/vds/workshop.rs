//! The memory that decoding wavelet chunks takes, kept from chunk to chunk while chunks keep coming.

use crate::sync::{Mutex, MutexGuard};

use super::wavelet::Scratch;

/// So many bytes may wait for the next chunk while none is being decoded.
const KEPT: usize = 16 << 20;

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { in_use: 0, spare: Vec::new(), bytes: 0 });

/// What nobody uses right now. Decoders that are at work share it, so that there are never more than were ever at work at a time.
struct Shelf {
    in_use: usize,
    spare: Vec<(Scratch, usize)>,
    bytes: usize,
}

fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock()
}

/// Lends memory to `decode`, which makes it at most `bytes` large.
pub(super) fn with<T>(bytes: usize, decode: impl FnOnce(&mut Scratch) -> T) -> T {
    let (scratch, had) = {
        let mut shelf = shelf();
        shelf.in_use += 1;
        let (scratch, had) = shelf.spare.pop().unwrap_or_default();
        shelf.bytes -= had;
        (scratch, had)
    };
    let mut lent = Lent { scratch, bytes: bytes.max(had) };
    decode(&mut lent.scratch)
}

/// Memory in use: it goes back however the decoder is left.
struct Lent {
    scratch: Scratch,
    bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (scratch, mut dropped) = (std::mem::take(&mut self.scratch), Vec::new());
        let mut shelf = shelf();
        shelf.in_use -= 1;
        shelf.bytes += self.bytes;
        shelf.spare.push((scratch, self.bytes));
        if shelf.in_use == 0 {
            while shelf.bytes > KEPT
                && let Some((scratch, bytes)) = shelf.spare.pop()
            {
                shelf.bytes -= bytes;
                dropped.push(scratch);
            }
        }
        // memory is given back when no lock is held
        drop(shelf);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_goes_when_nobody_is_at_work() {
        with(KEPT, |_| with(KEPT, |_| assert!(shelf().in_use >= 2)));
        let shelf = shelf();
        assert!(shelf.in_use > 0 || shelf.bytes <= KEPT);
        assert_eq!(shelf.bytes, shelf.spare.iter().map(|(_, bytes)| bytes).sum::<usize>());
    }
}
