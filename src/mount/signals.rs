//! Signals that end a mount.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use super::daemon::DaemonError;
use super::fork::{FuseDescriptors, failed};
use super::watchdog::{Connection, Watchdog};
use super::{UnmountError, place_of, unmount, volfs_at};

/// The time for requests in flight to finish after the process has unmounted on a signal.
const GRACE: Duration = Duration::from_secs(5);

/// The same if another process keeps the mount busy, for however long.
const GRACE_IF_BUSY: Duration = Duration::from_secs(1);

/// Unmounting a busy mount is tried again this many times, each time after this pause: some processes, such as the
/// read-ahead process, use the mount only for a moment.
const RETRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// The signals that mean "unmount and end", blocked in the whole process.
#[derive(Debug)]
pub(crate) struct Signals(SigSet);

impl Signals {
    /// Blocks the signals. It must be called before there are other threads, which inherit the mask.
    pub(crate) fn block(signals: Vec<Signal>) -> Result<Self, DaemonError> {
        let set: SigSet = signals.into_iter().collect();
        set.thread_block().map_err(failed("signals"))?;
        Ok(Self(set))
    }

    /// Starts a thread that waits for the signals. The first one unmounts what is at `place`, lazily if it is busy, and
    /// ends the process with exit status 0 after a grace time, if the end of the session has not ended it before.
    pub(crate) fn unmount_on_arrival(self, place: PathBuf, watchdog: Option<Watchdog>) -> Result<Stop, DaemonError> {
        let descriptors = Arc::new(FuseDescriptors::new().map_err(failed("no descriptors for the end"))?);
        let watchdog = watchdog.map(Arc::new);
        let stop = Stop { requested: Arc::default(), mount: Arc::default(), descriptors, watchdog };
        let shared = stop.clone();
        let wait = move || {
            let signal = loop {
                if let Ok(signal) = self.0.wait() {
                    break signal;
                }
            };
            log::info!("{}: unmounting", signal.as_str());
            thread::sleep(shared.unmount_now(&place));
            shared.finished();
            exit(0);
        };
        thread::Builder::new().name("volfs-signals".into()).spawn(wait).map_err(failed("no thread for signals"))?;
        Ok(stop)
    }
}

/// Whether the process is to stop, and which mount is its own.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    mount: Arc<OnceLock<(u32, u32)>>,
    descriptors: Arc<FuseDescriptors>,
    watchdog: Option<Arc<Watchdog>>,
}

impl Stop {
    /// Remembers the mount at `mountpoint` as this process's own. A signal then does not unmount another mount that has
    /// been mounted there since ours was unmounted, and finds ours where it is if it was moved.
    pub(crate) fn remember_mount(&self, mountpoint: &Path, connection: &Connection) {
        let _ = self.mount.set(connection.device);
        if let Some(watchdog) = &self.watchdog {
            watchdog.watch(connection, mountpoint);
        }
    }

    /// Whether the process is to stop. The end of the session is no error then.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }

    /// Returns whether the mount still is this process's own, wherever it is.
    pub(crate) fn is_connected(&self) -> bool {
        self.descriptors.is_connected()
    }

    /// Gives up the connection to the kernel, so that no program waits for this process any more. The process must end
    /// right after that: requests in flight get no answer.
    pub(crate) fn finished(&self) {
        if let Err(error) = self.descriptors.give_up() {
            log::warn!("cannot give up the connection to the kernel: {error}");
        }
        // it ends the connection if this process cannot end
        if let Some(watchdog) = &self.watchdog {
            watchdog.finished();
        }
    }

    /// Unmounts, lazily if the mount is busy. Returns how long the session may take to end.
    pub(crate) fn unmount_now(&self, mountpoint: &Path) -> Duration {
        self.requested.store(true, Ordering::SeqCst);
        let place = match self.mount.get() {
            Some(device) => place_of(*device).filter(|_| self.is_connected()),
            // if the mount was not remembered yet, nothing but our own can have been mounted there since the start
            None => volfs_at(mountpoint).map(|_| mountpoint.to_owned()),
        };
        let Some(mountpoint) = place else { return Duration::ZERO };
        match while_busy(|| unmount(&mountpoint, false)) {
            Ok(()) | Err(UnmountError::NotMounted) => GRACE,
            Err(reason) => {
                log::warn!("{reason}: the mount is taken away anyway");
                if let Err(error) = unmount(&mountpoint, true) {
                    log::error!("cannot unmount {}: {error}", mountpoint.display());
                }
                GRACE_IF_BUSY
            }
        }
    }
}

/// Unmounts what may be in use for a moment.
fn while_busy(mut unmount: impl FnMut() -> Result<(), UnmountError>) -> Result<(), UnmountError> {
    let mut outcome = unmount();
    let mut retries = 0..RETRIES;
    while outcome == Err(UnmountError::Busy) && retries.next().is_some() {
        thread::sleep(PAUSE);
        outcome = unmount();
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_mount_is_tried_again_and_no_other() {
        let tried = |busy: u32, then: fn() -> Result<(), UnmountError>| {
            let mut tries = 0;
            let outcome = while_busy(|| {
                tries += 1;
                if tries <= busy { Err(UnmountError::Busy) } else { then() }
            });
            (tries, outcome)
        };
        // again, it would take away what was mounted there before
        assert_eq!(tried(0, || Ok(())), (1, Ok(())));
        assert_eq!(tried(0, || Err(UnmountError::NotMounted)), (1, Err(UnmountError::NotMounted)));
        assert_eq!(tried(3, || Ok(())), (4, Ok(())));
        assert_eq!(tried(u32::MAX, || Ok(())), (1 + RETRIES, Err(UnmountError::Busy)));
    }

    #[test]
    fn a_folder_without_a_mount_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let descriptors = Arc::new(FuseDescriptors::new().unwrap());
        let stop = Stop { requested: Arc::default(), mount: Arc::default(), descriptors, watchdog: None };
        assert_eq!(stop.unmount_now(folder.path()), Duration::ZERO);
        assert!(stop.is_requested());
    }
}
