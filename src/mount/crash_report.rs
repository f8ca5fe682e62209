//! The report that a daemon sends to its watchdog before a signal ends it: which signal, and whether memory ran out.
//! The watchdog logs it, since a process that crashes can do no more than send a few bytes.
#![allow(unsafe_code)]

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{Pid, getpid};

use crate::memory;

/// The first byte of the message.
const KIND: u8 = b'l';
/// Bytes of the message: its kind, the process, the signal, and the bytes for which no memory was left.
const MESSAGE: usize = 1 + 4 + 4 + 8;

/// Signals of faults, which repeat when the handler returns.
const FAULTS: [Signal; 4] = [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE];
/// Other signals that end a process by default, and have no handler.
const OTHERS: [Signal; 5] = [Signal::SIGABRT, Signal::SIGQUIT, Signal::SIGSYS, Signal::SIGTRAP, Signal::SIGXCPU];

/// The socket of the watchdog.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// The actions before ours for the signals of faults.
static FORMER: OnceLock<[Option<SigAction>; FAULTS.len()]> = OnceLock::new();

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
        match (Signal::try_from(self.signal), self.wanted) {
            (Ok(Signal::SIGABRT), bytes @ 1..) => {
                write!(f, "no memory was left for {bytes} bytes; allow it more (ulimit -v), or a smaller --cache-size")
            }
            (Ok(signal), _) if FAULTS.contains(&signal) || signal == Signal::SIGABRT => {
                write!(f, "it crashed ({signal}), which is a bug in volfs")
            }
            (signal, _) => write!(f, "it was ended by {}", signal.map_or("a signal", Signal::as_str)),
        }
    }
}

/// Reports the end of this process to a socket, which stays open as long as the process lives. Also makes a log file
/// that reaches the limit of the system (`ulimit -f`) an error, and not the end of the process.
pub(super) fn send_to(socket: &OwnedFd) {
    SOCKET.store(socket.as_raw_fd(), Ordering::Release);
    let flags = SaFlags::SA_ONSTACK | SaFlags::SA_RESETHAND;
    let report = SigAction::new(SigHandler::SigAction(on_end), flags, SigSet::empty());
    // SAFETY: the handler uses only what is async-signal-safe. SA_ONSTACK: the stack may have overflowed.
    let report_of = |signal| unsafe { sigaction(signal, &report) }.ok();
    FORMER.get_or_init(|| FAULTS.map(report_of));
    let _ = OTHERS.map(report_of);
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: there is no handler.
    let _ = unsafe { sigaction(Signal::SIGXFSZ, &ignored) };
}

/// Sends the report, and lets the signal end the process.
extern "C" fn on_end(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let (errno, process, wanted) = (Errno::last_raw(), getpid().as_raw(), memory::bytes_refused() as u64);
    let message = CrashReport { process, signal, wanted }.bytes();
    let former =
        FAULTS.into_iter().zip(FORMER.get().into_iter().flatten()).find(|(fault, _)| *fault as c_int == signal);
    // SAFETY: all calls are async-signal-safe; the kernel passes a valid siginfo, and the message is read to its
    // length.
    unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        libc::send(SOCKET.load(Ordering::Acquire), message.as_ptr().cast(), message.len(), flags);
        match former {
            // the fault repeats, and the action before ours gets it, which knows of stacks that overflow
            Some((fault, Some(former))) if (*info).si_code > 0 => _ = sigaction(fault, former),
            // the default action is in place again (SA_RESETHAND)
            _ => _ = libc::raise(signal),
        }
    }
    Errno::set_raw(errno);
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
