//! `volfs umount`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::cli::args::UmountArgs;
use crate::cli::error::CliError;
use crate::cli::mounts::status::{self, Answer};
use crate::cli::mounts::{holders, mountpoint};
use crate::cli::timeout;
use crate::fs::mountinfo::{self, Mount};
use crate::fs::unmount::{UnmountError, unmount};

/// How long the mount may take to say which process serves it.
const ANSWER: Duration = Duration::from_secs(2);

/// How long something that uses the mount only for a moment is waited for.
const MOMENT: Duration = Duration::from_millis(500);

/// How long the mount may take to go, and its daemon to end.
const END: Duration = Duration::from_secs(20);

/// How long a daemon is waited for that may have readers yet.
const LAZY_END: Duration = Duration::from_millis(500);

/// Takes a mount away and waits until it is gone.
///
/// # Errors
/// [`CliError`]: there is none, it is not ours, it is in use.
pub fn run(args: &UmountArgs) -> Result<(), CliError> {
    let (place, mount) = mountpoint::ours(&args.mountpoint, CliError::NotOurs)?;
    let daemon = match status::ask(&place, ANSWER) {
        Answer::Alive(pid) => pid.and_then(Process::find),
        Answer::Dead => {
            mountpoint::clear_dead(&place)?;
            None
        }
        // our own question, which still waits for its answer, would keep it busy
        Answer::Silent if !args.lazy => return Err(CliError::Unresponsive(place)),
        Answer::Silent | Answer::Error(_) => None,
    };
    take_away(&place, &mount, args.lazy)?;
    if !timeout::poll_until(END, || !is_there(&mount)) {
        return Err(CliError::StillMounted(place, END));
    }
    let limit = if args.lazy { LAZY_END } else { END };
    match daemon {
        Some(process) if !timeout::poll_until(limit, || process.ended()) && !args.lazy => {
            Err(CliError::DaemonStays(place, process.pid, END))
        }
        _ => Ok(()),
    }
}

fn take_away(place: &Path, mount: &Mount, lazy: bool) -> Result<(), CliError> {
    let mut outcome = Ok(());
    // once is enough for a lazy one, which is never busy
    timeout::poll_until(MOMENT, || {
        outcome = if is_there(mount) { unmount(place, lazy) } else { Ok(()) };
        outcome != Err(UnmountError::Busy)
    });
    match outcome {
        Ok(()) | Err(UnmountError::NotMounted) => Ok(()),
        Err(UnmountError::Busy) => Err(CliError::Busy(place.to_owned(), holders::of(mount, &mountpoint::mounts()?))),
        Err(error) => Err(CliError::Unmount { mountpoint: place.to_owned(), error }),
    }
}

/// Whether this very mount is listed; ids are used again, devices too, but not both and for the same place.
fn is_there(mount: &Mount) -> bool {
    mountinfo::read().is_ok_and(|all| all.iter().any(|m| m == mount))
}

/// A process, told apart from a later one of the same id.
#[derive(Debug)]
struct Process {
    pid: u32,
    began: String,
}

impl Process {
    /// The process, if it is one of ours: the daemon may live in a container, where its id means another process.
    fn find(pid: u32) -> Option<Self> {
        let name = |who: &str| fs::read_to_string(format!("/proc/{who}/comm")).ok();
        let same_program = name(&pid.to_string())? == name("self")?;
        same_program.then_some(())?;
        Some(Self { pid, began: began(&stat(pid)?)? })
    }

    fn ended(&self) -> bool {
        stat(self.pid).and_then(|stat| began(&stat)).is_none_or(|began| began != self.began)
    }
}

fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// When a process began, from the text of /proc/PID/stat; `None` for one that has ended and was not asked after yet. The name,
/// in brackets, may hold anything.
fn began(stat: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ended = matches!(*fields.first()?, "Z" | "X");
    // the 22nd field of the line, the state being the third
    if ended { None } else { Some((*fields.get(19)?).to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_beginning() {
        let rest = (4..=22).map(|i| i.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(began(&format!("12 (a ) b) S {rest} 23")), Some("22".to_owned()));
        assert_eq!(began(&format!("12 (a) Z {rest}")), None);
        assert_eq!(began("nonsense"), None);
        let own = Process::find(std::process::id()).unwrap();
        assert!(!own.ended());
        assert!(Process { pid: own.pid, began: "0".to_owned() }.ended());
    }

    #[test]
    fn only_our_own_mounts_are_taken_away() {
        let run = |path: &Path| run(&UmountArgs { mountpoint: path.to_owned(), lazy: true }).unwrap_err();
        assert!(matches!(run(Path::new("/proc")), CliError::NotOurs(..)));
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(run(folder.path()), CliError::NotMounted(_, None)));
        assert!(matches!(run(&folder.path().join("none")), CliError::NoFolder(..)));
    }
}
