//! Positioned reads of local files.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

use super::Wait;

/// Fills `out` with the bytes from `offset` on; `false` if they are not all at hand and `wait` is [`Wait::No`].
pub fn fill(file: &File, offset: u64, out: &mut [u8], wait: Wait) -> io::Result<bool> {
    match wait {
        Wait::Yes => file.read_exact_at(out, offset).map(|()| true),
        Wait::No => at_once(file, offset, out),
    }
}

/// Reads what the kernel holds in its page cache. Anything less than all is not at hand: also a file system that cannot say.
fn at_once(file: &File, offset: u64, out: &mut [u8]) -> io::Result<bool> {
    let wanted = out.len();
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == wanted),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
