//! The two paths of a read one after the other: what is in memory is copied on the calling thread, workers of the pool
//! do the rest.

use super::fast_path::FastPath;
use super::slow_path::SlowPath;
use crate::array::ReadError;
use crate::array::bricks::{BrickAccess, Origins};
use crate::array::request::{Destination, Piece, Pieces, ReplyLayout};
use crate::memory::Buffer;
use crate::source::Blocking;

/// A read whose pieces have been copied as far as they were in memory.
pub(crate) struct Copied {
    layout: ReplyLayout,
    /// Where the pieces that were copied came from.
    origins: Origins,
    /// The pieces that have to be waited for.
    pending: Vec<Piece>,
}

impl Copied {
    /// Copies the pieces that are in memory to `out`. Never waits.
    pub(crate) fn at_once(
        access: &BrickAccess,
        pieces: Pieces<'_>,
        layout: ReplyLayout,
        out: &mut [u8],
    ) -> Result<Self, ReadError> {
        let mut fast_path = FastPath::new(access);
        fast_path.copy(pieces, &mut Destination { bytes: out, layout })?;
        let FastPath { origins, pending, .. } = fast_path;
        Ok(Self { layout, origins, pending })
    }

    /// Returns a read of which nothing has been copied.
    pub(crate) fn nothing(pieces: Vec<Piece>, layout: ReplyLayout) -> Self {
        Self { layout, origins: Origins::default(), pending: pieces }
    }

    /// Whether some of the samples that were copied came from decoded bricks.
    pub(crate) fn has_decoded(&self) -> bool {
        self.origins.has_decoded()
    }

    /// Whether some samples come from decoded bricks, or have to be waited for.
    pub(crate) fn has_coded(&self) -> bool {
        self.has_decoded() || !self.pending.is_empty()
    }

    /// Finishes the read, with workers of the pool if pieces are missing, and passes its bytes to `done`. `first` is
    /// its first piece.
    pub(crate) fn finish(
        self,
        access: BrickAccess,
        first: Option<Piece>,
        out: Buffer,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let Self { layout, origins, pending } = self;
        if !pending.is_empty() {
            return SlowPath::start(access, layout, pending, out, origins, Box::new(done));
        }
        match origins.check(access.array(), first, Blocking::No) {
            // the file was evicted a moment ago, and is opened again by a worker
            Err(e) if e.cause.would_block() => {
                let (pool, bulkhead) = (access.resources.pool.clone(), access.view.bulkhead);
                pool.submit(bulkhead, move || {
                    done(origins.check(access.array(), first, Blocking::Yes).map(|()| out));
                });
            }
            checked => done(checked.map(|()| out)),
        }
    }
}
