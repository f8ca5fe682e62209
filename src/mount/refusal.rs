//! Answers the requests of a mount with an error, in place of a daemon that cannot end and cannot answer.
//!
//! That is what remains where nothing else ends the connection: no file of fusectl, and no right to force it. It speaks
//! the three messages of the FUSE protocol that it needs itself, since the FUSE library serves mounts that it has made.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};

/// Bytes of the longest request: the FUSE library allows writes of 16 MiB, and the kernel refuses a smaller buffer.
/// Only the beginning is ever filled, since nobody writes to a mount that is read-only.
const LONGEST_REQUEST: usize = (16 << 20) + 4096;
/// Bytes of a reply without content: its length, the error, and the number of the request.
const REPLY: usize = 16;
/// The kinds of requests that want no reply: two that forget a name, and one that interrupts a request.
const WITHOUT_REPLY: [u32; 3] = [2, 42, 36];
/// The notification that makes the kernel ask again for all that is in flight (Linux 6.9).
const RESEND: i32 = 7;

/// A FUSE device whose requests are refused.
pub(crate) struct Refusal {
    device: OwnedFd,
    buffer: Vec<u8>,
}

impl Refusal {
    /// Prepares to refuse the requests of a device, which nobody else reads any more.
    pub(crate) fn of(device: OwnedFd) -> Result<Self, Errno> {
        fcntl_setfl(&device, fcntl_getfl(&device)? | OFlags::NONBLOCK)?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(LONGEST_REQUEST).map_err(|_| Errno::NOMEM)?;
        buffer.resize(LONGEST_REQUEST, 0);
        Ok(Self { device, buffer })
    }

    /// Makes the kernel ask again for all that is in flight. Fails with [`Errno::INVAL`] on kernels before 6.9: then
    /// what is in flight stays so.
    pub(crate) fn ask_again(&self) -> Result<(), Errno> {
        write(&self.device, &reply(RESEND, 0)).map(drop)
    }

    /// Refuses all requests that wait. Returns whether there may be more later: not after the connection has ended.
    pub(crate) fn refuse_waiting(&mut self) -> bool {
        loop {
            match read(&self.device, &mut self.buffer) {
                Ok(length) => {
                    let answer = self.buffer.get(..length).and_then(refusal_of);
                    // an error means that the request was interrupted, or the connection has ended
                    let _ = answer.map(|answer| write(&self.device, &answer));
                }
                Err(Errno::AGAIN) => return true,
                // a request was interrupted while it was read
                Err(Errno::INTR | Errno::NOENT) => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Refusal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns the refusal of a request: the error that a mount gives whose daemon has ended. `None` if it wants no reply.
fn refusal_of(request: &[u8]) -> Option<[u8; REPLY]> {
    let kind = u32::from_ne_bytes(request.get(4..8)?.try_into().ok()?);
    let number = u64::from_ne_bytes(request.get(8..16)?.try_into().ok()?);
    (!WITHOUT_REPLY.contains(&kind)).then(|| reply(-Errno::NOTCONN.raw_os_error(), number))
}

fn reply(error: i32, number: u64) -> [u8; REPLY] {
    let mut bytes = [0; REPLY];
    let fields = (REPLY as u32).to_ne_bytes().into_iter().chain(error.to_ne_bytes()).chain(number.to_ne_bytes());
    bytes.iter_mut().zip(fields).for_each(|(to, byte)| *to = byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_want_a_reply_get_an_error() {
        let request = |kind: u32| [&[0; 4][..], &kind.to_ne_bytes(), &7u64.to_ne_bytes(), &[0; 24]].concat();
        let refused = refusal_of(&request(15)).unwrap();
        assert_eq!(refused[..4], 16u32.to_ne_bytes());
        assert_eq!(refused[4..8], (-107i32).to_ne_bytes());
        assert_eq!(refused[8..], 7u64.to_ne_bytes());
        assert!(WITHOUT_REPLY.iter().all(|kind| refusal_of(&request(*kind)).is_none()));
        assert_eq!(refusal_of(&[0; 15]), None);
    }
}
