//! Reads and writes the file of a range.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::{Errno, pread, preadv};

use super::file_format::{are_blocks_good, header, header_length, is_header_of};
use super::object_version::ObjectVersion;
use super::stored_range::{BLOCK, StoredRange, shard_name};

/// Blocks that are read at a time of a part of a range: so few that they are in the processor's cache when their
/// checksums are computed.
const BLOCKS: usize = 4;

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is not there.
    Absent,
    /// It is not what its name says, too short, or damaged.
    Bad,
    /// The process or the system lacks something.
    Failed(Errno),
}

/// Fills `out` with a part of a range, from its byte `from` on, and returns the open file. On failure `out` may be
/// overwritten.
pub(crate) fn read(
    folder: impl AsFd,
    object: &ObjectVersion,
    range: StoredRange,
    from: usize,
    out: &mut [u8],
) -> Result<OwnedFd, Unread> {
    // NONBLOCK: not to wait for what others may have put there, such as a pipe
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = openat(folder, range.path(), flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => Unread::Absent,
        Errno::LOOP | Errno::NXIO => Unread::Bad,
        error => Unread::Failed(error),
    })?;
    let mut header = vec![0; header_length(object, range.length)];
    let is_whole = from == 0 && out.len() == range.length as usize;
    read_fully(&file, &mut header, if is_whole { &mut *out } else { &mut [] })?;
    let is_good = is_header_of(&header, object, range)
        && if is_whole {
            are_blocks_good(&header, object, 0, out)
        } else {
            read_part(&file, &header, object, range, from, out)?
        };
    if is_good { Ok(file) } else { Err(Unread::Bad) }
}

/// Reads a part of a range by the blocks that it lies in; `false` if one has another checksum. Blocks that are wanted
/// whole are read into `out`.
fn read_part(
    file: &OwnedFd,
    header: &[u8],
    object: &ObjectVersion,
    range: StoredRange,
    from: usize,
    out: &mut [u8],
) -> Result<bool, Unread> {
    let length = range.length as usize;
    let Some(end) = from.checked_add(out.len()).filter(|end| *end <= length) else { return Ok(false) };
    // up to here whole blocks are wanted
    let aligned = if end == length { end } else { end / BLOCK * BLOCK };
    let (mut at, mut edge) = (from, Vec::new());
    while at < end {
        let (first, within) = (at / BLOCK, at % BLOCK);
        let offset = (header.len() + at - within) as u64;
        let is_good = if within == 0 && at < aligned {
            let stop = aligned.min(at + BLOCKS * BLOCK);
            let Some(blocks) = out.get_mut(at - from..stop - from) else { return Ok(false) };
            at = stop;
            read_fully_at(file, blocks, offset)?;
            are_blocks_good(header, object, first, blocks)
        } else {
            let stop = length.min((first + 1) * BLOCK);
            edge.resize(stop - first * BLOCK, 0);
            read_fully_at(file, &mut edge, offset)?;
            let wanted = within..end.min(stop) - first * BLOCK;
            let to = out.get_mut(at - from..).and_then(|to| to.get_mut(..wanted.len()));
            let (Some(to), Some(part)) = (to, edge.get(wanted)) else { return Ok(false) };
            to.copy_from_slice(part);
            at = end.min(stop);
            are_blocks_good(header, object, first, &edge)
        };
        if !is_good {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads the header and what follows it, in one call wherever the system allows it.
fn read_fully(file: &OwnedFd, header: &mut [u8], rest: &mut [u8]) -> Result<(), Unread> {
    let read = retrying(|| preadv(file, &mut [IoSliceMut::new(header), IoSliceMut::new(rest)], 0))?;
    if read < header.len() {
        read_fully_at(file, &mut header[read..], read as u64)?;
        return read_fully_at(file, rest, header.len() as u64);
    }
    let done = read - header.len();
    read_fully_at(file, rest.get_mut(done..).unwrap_or_default(), read as u64)
}

fn read_fully_at(file: &OwnedFd, out: &mut [u8], offset: u64) -> Result<(), Unread> {
    let mut done = 0;
    while done < out.len() {
        match retrying(|| pread(file, &mut out[done..], offset + done as u64))? {
            0 => return Err(Unread::Bad),
            read => done += read,
        }
    }
    Ok(())
}

/// Repeats a call that a signal has interrupted. What cannot be read is as good as damaged.
fn retrying<T>(call: impl FnMut() -> rustix::io::Result<T>) -> Result<T, Unread> {
    rustix::io::retry_on_intr(call).map_err(|error| match error {
        Errno::NOMEM | Errno::NOBUFS => Unread::Failed(error),
        _ => Unread::Bad,
    })
}

/// Writes the file of a range: into the folder `temporary`, as `name`, and from there to its place. Nothing is left in
/// `temporary` on failure, if the system allows that.
pub(crate) fn write(
    folder: impl AsFd,
    temporary: impl AsFd,
    name: &str,
    object: &ObjectVersion,
    range: StoredRange,
    bytes: &[u8],
) -> io::Result<()> {
    let header = header(object, range.offset, bytes).ok_or(Errno::FBIG)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(openat(&temporary, name, flags, Mode::RUSR | Mode::WUSR)?);
    let written = write_fully(file, &header, bytes);
    let placed = written.and_then(|()| place(folder, &temporary, name, range));
    if placed.is_err() {
        let _ = unlinkat(temporary, name, AtFlags::empty());
    }
    placed
}

fn write_fully(mut file: File, header: &[u8], bytes: &[u8]) -> io::Result<()> {
    let written = loop {
        match file.write_vectored(&[IoSlice::new(header), IoSlice::new(bytes)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => break written?,
        }
    };
    file.write_all(header.get(written..).unwrap_or_default())?;
    file.write_all(bytes.get(written.saturating_sub(header.len())..).unwrap_or_default())
}

fn place(folder: impl AsFd, temporary: impl AsFd, name: &str, range: StoredRange) -> io::Result<()> {
    let path = range.path();
    let rename = || renameat(&temporary, name, &folder, &path);
    match rename() {
        Err(Errno::NOENT) => {
            match mkdirat(&folder, shard_name(range.shard()), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(rename()?)
        }
        renamed => Ok(renamed?),
    }
}
