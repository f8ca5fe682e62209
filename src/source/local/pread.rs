//! Positioned reads of local files.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

use crate::source::Blocking;

/// Fills `out` with the bytes from `offset` on; `false` if `blocking` is [`Blocking::No`] and the page cache does not have all
/// of them.
pub(crate) fn fill(file: &File, offset: u64, out: &mut [u8], blocking: Blocking) -> io::Result<bool> {
    match blocking {
        Blocking::Yes => file.read_exact_at(out, offset).map(|()| true),
        Blocking::No => fill_from_page_cache(file, offset, out),
    }
}

/// Reads from the kernel's page cache only; `false` if it does not have all bytes, or the file system cannot read so.
fn fill_from_page_cache(file: &File, offset: u64, out: &mut [u8]) -> io::Result<bool> {
    let wanted = out.len();
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == wanted),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
