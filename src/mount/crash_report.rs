//! The report that a daemon sends to its watchdog before a signal ends it: which signal, and whether memory ran out. The
//! watchdog logs it, since a process that crashes can do no more than send a few bytes.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid};

use crate::memory;

/// The first byte of the message.
const KIND: u8 = b'l';
/// Bytes of the message: its kind, the process, the signal, and the bytes for which no memory was left.
const MESSAGE: usize = 1 + 4 + 4 + 8;

/// Signals of faults, which repeat when the handler returns.
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
/// Other signals that end a process by default, and have no handler.
const OTHERS: [c_int; 5] = [libc::SIGABRT, libc::SIGQUIT, libc::SIGSYS, libc::SIGTRAP, libc::SIGXCPU];

/// The socket of the watchdog.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// The actions before ours for the signals of faults.
static FORMER: OnceLock<[libc::sigaction; FAULTS.len()]> = OnceLock::new();

/// Why the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CrashReport {
    process: i32,
    signal: i32,
    /// The bytes for which its last thread got no memory; 0 if it got all.
    wanted: u64,
}

impl CrashReport {
    /// Parses a message; `None` if it is another one.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let fields = message.strip_prefix(&[KIND]).filter(|fields| fields.len() == MESSAGE - 1)?;
        let process = i32::from_ne_bytes(fields.get(..4)?.try_into().ok()?);
        let signal = i32::from_ne_bytes(fields.get(4..8)?.try_into().ok()?);
        Some(Self { process, signal, wanted: u64::from_ne_bytes(fields.get(8..)?.try_into().ok()?) })
    }

    /// Returns whether it is that of this process. A child that the daemon forks has its handlers and its socket.
    pub(super) fn is_of(self, process: Pid) -> bool {
        self.process == process.as_raw()
    }

    fn bytes(self) -> [u8; MESSAGE] {
        let mut bytes = [KIND; MESSAGE];
        let fields = self.process.to_ne_bytes().into_iter().chain(self.signal.to_ne_bytes());
        bytes.iter_mut().skip(1).zip(fields.chain(self.wanted.to_ne_bytes())).for_each(|(to, byte)| *to = byte);
        bytes
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Signal::try_from(self.signal).map_or("a signal", Signal::as_str);
        match self {
            Self { wanted: bytes @ 1.., signal: libc::SIGABRT, .. } => {
                write!(f, "no memory was left for {bytes} bytes; allow it more (ulimit -v), or a smaller --cache-size")
            }
            Self { signal, .. } if FAULTS.contains(signal) || *signal == libc::SIGABRT => {
                write!(f, "it crashed ({name}), which is a bug in volfs")
            }
            Self { .. } => write!(f, "it was ended by {name}"),
        }
    }
}

/// Reports the end of this process to a socket, which stays open as long as the process lives. Also makes a log file that
/// reaches the limit of the system (`ulimit -f`) an error, and not the end of the process.
pub(super) fn send_to(socket: &OwnedFd) {
    SOCKET.store(socket.as_raw_fd(), Ordering::Release);
    // SAFETY: an action of zeros is the default one, has no flags and blocks no signals. The handlers have the signature
    // that SA_SIGINFO requires, and use only what is async-signal-safe. SA_ONSTACK: the stack may have overflowed.
    unsafe {
        FORMER.get_or_init(|| {
            FAULTS.map(|signal| {
                let mut former = MaybeUninit::zeroed();
                libc::sigaction(signal, ptr::null(), former.as_mut_ptr());
                former.assume_init()
            })
        });
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = on_end as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        for signal in FAULTS.into_iter().chain(OTHERS) {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
        let mut ignored: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ignored.sa_sigaction = libc::SIG_IGN;
        libc::sigaction(libc::SIGXFSZ, &raw const ignored, ptr::null_mut());
    }
}

/// Sends the report, and lets the signal end the process.
extern "C" fn on_end(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let (process, wanted) = (getpid().as_raw(), memory::bytes_refused() as u64);
    let message = CrashReport { process, signal, wanted }.bytes();
    // SAFETY: all calls are async-signal-safe; the kernel passes a valid siginfo, the message is read to its length, and
    // errno belongs to this thread.
    unsafe {
        let errno = *libc::__errno_location();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::send(SOCKET.load(Ordering::Acquire), message.as_ptr().cast(), message.len(), flags);
        let former = FAULTS.iter().position(|&fault| fault == signal).zip(FORMER.get());
        match former.and_then(|(n, former)| former.get(n)) {
            // the fault repeats, and the action before ours gets it, which knows of stacks that overflow
            Some(former) if (*info).si_code > 0 => {
                libc::sigaction(signal, former, ptr::null_mut());
            }
            // the default action is in place again (SA_RESETHAND)
            _ => {
                libc::raise(signal);
            }
        }
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_sent_and_understood() {
        let words = |signal: Signal, wanted| CrashReport { process: 7, signal: signal as i32, wanted };
        let out_of_memory = words(Signal::SIGABRT, 70_000);
        assert_eq!(CrashReport::parse(&out_of_memory.bytes()), Some(out_of_memory));
        assert_eq!(CrashReport::parse(&out_of_memory.bytes()[1..]), None);
        assert_eq!(CrashReport::parse(b"l"), None);
        assert!(out_of_memory.is_of(Pid::from_raw(7)) && !out_of_memory.is_of(Pid::from_raw(8)));
        assert!(out_of_memory.to_string().starts_with("no memory was left for 70000 bytes"));
        assert_eq!(words(Signal::SIGSEGV, 7).to_string(), "it crashed (SIGSEGV), which is a bug in volfs");
        assert_eq!(words(Signal::SIGABRT, 0).to_string(), "it crashed (SIGABRT), which is a bug in volfs");
        assert_eq!(words(Signal::SIGXCPU, 0).to_string(), "it was ended by SIGXCPU");
    }
}
