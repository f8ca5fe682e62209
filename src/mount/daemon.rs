//! A process that goes on behind the command: it forks before there are threads, tells the command when it is ready, and
//! unmounts on a signal.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid};
use thiserror::Error;

use super::fork::{self, ProcessError, failed};
use super::mountinfo;
use super::unmount::{UnmountError, unmount};

/// What the daemon says when the mount is there; anything else is the reason why it is not.
const READY: &str = "ready\n";

/// The longest reason that is listened to.
const LONGEST_REASON: u64 = 64 * 1024;

/// How long a process that was told to stop waits for what is in flight after the mount went.
const GRACE: Duration = Duration::from_secs(5);

/// The same where somebody holds the mount: nobody can say for how long.
const GRACE_IF_HELD: Duration = Duration::from_secs(1);

/// Whoever holds the mount for a moment only, such as the process that reads ahead, is waited for: so often, and so long.
const MOMENTS: u32 = 10;
const MOMENT: Duration = Duration::from_millis(10);

/// Why there is no daemon.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The system refuses.
    #[error("cannot start in the background: {0}; --foreground does without")]
    System(#[from] ProcessError),
    /// The daemon says why it ended.
    #[error("{0}")]
    Refused(String),
    /// The daemon ended and said nothing.
    #[error("the daemon ended before the mount was ready ({0}); --foreground shows more")]
    Died(String),
    /// The daemon neither ended nor became ready.
    #[error("the mount did not answer within {} s and was given up; is the source reachable?", .0.as_secs())]
    TimedOut(Duration),
}

/// Which of the two processes this one is after [`detach`].
#[derive(Debug)]
pub enum Role {
    /// The one that was called, and answers the caller.
    Starter(Starter),
    /// The one that stays.
    Daemon(Ready),
}

/// Makes a second process that has a session of its own, `/` as its folder, and none of the descriptors of the first.
///
/// # Errors
/// [`DaemonError::System`]: if the system refuses, or if there are threads already, which a fork would lose.
pub fn detach() -> Result<Role, DaemonError> {
    let (reader, writer) = io::pipe().map_err(failed("no pipe"))?;
    match fork::fork()? {
        ForkResult::Parent { child } => Ok(Role::Starter(Starter { child, reader })),
        ForkResult::Child => {
            drop(reader);
            let mut ready = Ready { writer };
            match fork::leave_everything(ready.writer.as_raw_fd()) {
                Ok(()) => Ok(Role::Daemon(ready)),
                Err(error) => {
                    ready.say(&error.to_string());
                    exit(1);
                }
            }
        }
    }
}

/// The process that was called.
#[derive(Debug)]
pub struct Starter {
    child: Pid,
    reader: PipeReader,
}

impl Starter {
    /// Waits until the daemon is ready. When it is not in time it is killed, and its mount cleared.
    ///
    /// # Errors
    /// What the daemon says, or that it says nothing.
    pub fn wait(self, limit: Duration, mountpoint: &Path) -> Result<Started, DaemonError> {
        let Self { child, reader } = self;
        let started = Started { child };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut words = String::new();
            // what cannot be read counts as nothing said; the receiver is gone if this took too long
            let _ = reader.take(LONGEST_REASON).read_to_string(&mut words);
            let _ = sender.send(words);
        });
        match receiver.recv_timeout(limit) {
            Ok(words) if words == READY => Ok(started),
            Ok(words) if words.trim().is_empty() => Err(DaemonError::Died(ending(child))),
            Ok(words) => Err(DaemonError::Refused(words.trim_end().to_owned())),
            Err(_) => {
                started.give_up(mountpoint);
                Err(DaemonError::TimedOut(limit))
            }
        }
    }
}

/// A daemon that said that it is ready.
#[derive(Debug)]
pub struct Started {
    child: Pid,
}

impl Started {
    /// Kills the daemon and clears its mount, if it has one.
    pub fn give_up(&self, mountpoint: &Path) {
        // a process that is gone needs no signal
        let _ = kill(self.child, Signal::SIGKILL);
        // nothing was mounted there before the daemon began; an error that is about to be reported matters more
        if mountinfo::volfs_at(mountpoint).is_some() {
            let _ = unmount(mountpoint, true);
        }
        let _ = waitpid(self.child, Some(WaitPidFlag::WNOHANG));
    }
}

fn ending(child: Pid) -> String {
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, status)) => format!("exit status {status}"),
        Ok(WaitStatus::Signaled(_, signal, _)) => signal.as_str().to_owned(),
        _ => "no status".to_owned(),
    }
}

/// The daemon's way to tell that it is ready, or why it is not.
#[derive(Debug)]
pub struct Ready {
    writer: PipeWriter,
}

impl Ready {
    /// The mount is there. `false` if nobody waits for it any more: the caller was interrupted, and wants no mount.
    #[must_use]
    pub fn succeeded(mut self) -> bool {
        self.say(READY)
    }

    /// There will be no mount; `reason` is one line for the caller.
    pub fn failed(mut self, reason: &str) {
        self.say(reason);
    }

    fn say(&mut self, words: &str) -> bool {
        self.writer.write_all(words.as_bytes()).is_ok()
    }
}

/// The signals that mean "unmount and end", held back from the whole process.
#[derive(Debug)]
pub struct Signals(SigSet);

impl Signals {
    /// Holds the signals back. To be called before there are threads, which inherit it.
    ///
    /// # Errors
    /// [`DaemonError::System`] if the system refuses.
    pub fn hold() -> Result<Self, DaemonError> {
        let set: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
        set.thread_block().map_err(failed("signals"))?;
        Ok(Self(set))
    }

    /// From now on the first of the signals unmounts `mountpoint` and, however busy that is, ends the process with exit
    /// status 0: by itself if the session ends in time.
    #[must_use]
    pub fn unmount_on_arrival(self, mountpoint: PathBuf) -> Stop {
        let stop = Stop { told: Arc::default(), mount: Arc::default() };
        let shared = stop.clone();
        thread::spawn(move || {
            let signal = loop {
                if let Ok(signal) = self.0.wait() {
                    break signal;
                }
            };
            log::info!("{}: unmounting", signal.as_str());
            thread::sleep(shared.unmount_now(&mountpoint));
            exit(0);
        });
        stop
    }
}

/// Whether the process was told to stop, and which mount is its own.
#[derive(Clone, Debug)]
pub struct Stop {
    told: Arc<AtomicBool>,
    mount: Arc<OnceLock<(u32, u32)>>,
}

impl Stop {
    /// Remembers what is mounted at `mountpoint` as the process' own. Something else that is there when the signal comes,
    /// because ours was unmounted, is then left alone.
    pub fn remember_mount(&self, mountpoint: &Path) {
        if let Some(device) = mountinfo::volfs_at(mountpoint) {
            let _ = self.mount.set(device);
        }
    }

    /// Whether a signal came: an end of the session is no error then.
    #[must_use]
    pub fn told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    /// Unmounts, lazily if somebody holds the mount, and says how long the session may take to end.
    pub fn unmount_now(&self, mountpoint: &Path) -> Duration {
        self.told.store(true, Ordering::SeqCst);
        // not remembered yet: nothing but our own can have been mounted there since the start
        let seen = mountinfo::volfs_at(mountpoint);
        if seen.is_none() || self.mount.get().is_some_and(|own| seen != Some(*own)) {
            return Duration::ZERO;
        }
        let mut outcome = unmount(mountpoint, false);
        for _ in 0..MOMENTS {
            if outcome != Err(UnmountError::Busy) {
                break;
            }
            thread::sleep(MOMENT);
            outcome = unmount(mountpoint, false);
        }
        match outcome {
            Ok(()) | Err(UnmountError::NotMounted) => GRACE,
            Err(reason) => {
                log::warn!("{reason}: the mount is taken away all the same");
                if let Err(error) = unmount(mountpoint, true) {
                    log::error!("cannot unmount {}: {error}", mountpoint.display());
                }
                GRACE_IF_HELD
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_told_through_the_pipe() {
        let (mut reader, writer) = io::pipe().unwrap();
        assert!(Ready { writer }.succeeded());
        let mut words = String::new();
        reader.read_to_string(&mut words).unwrap();
        assert_eq!(words, READY);

        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert!(!Ready { writer }.succeeded());
    }

    #[test]
    fn a_folder_without_a_mount_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop { told: Arc::default(), mount: Arc::default() };
        stop.remember_mount(folder.path());
        assert_eq!(stop.unmount_now(folder.path()), Duration::ZERO);
        assert!(stop.told());
    }
}
