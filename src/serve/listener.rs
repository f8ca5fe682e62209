//! Where a server listens: an address and port, or a Unix socket in a folder that others cannot change.

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;
use thiserror::Error;

use crate::logging::one_line;
use crate::safe_open::is_trusted;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// Bits of a mode that let group and others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In such a folder users cannot rename or remove the files of others.
const STICKY: u32 = 0o1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// At an address. Port 0 is any free one.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listen {
    /// Reads `ADDRESS:PORT` or `unix:PATH`; the error says how to write it.
    pub(crate) fn read(text: &OsStr) -> Result<Self, String> {
        if let Some(path) = text.as_bytes().strip_prefix(b"unix:") {
            let path = Path::new(OsStr::from_bytes(path));
            return match path.file_name() {
                Some(_) => Ok(Self::Unix(path.to_owned())),
                None => Err("name a file after unix:, as in unix:/run/user/1000/volfs.sock".to_owned()),
            };
        }
        let address = text.to_str().and_then(|text| text.parse().ok()).map(Self::Tcp);
        address
            .ok_or_else(|| "write it as ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080, or as unix:PATH".to_owned())
    }

    /// Returns whether other machines may reach it.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().to_canonical().is_loopback())
    }
}

impl Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", one_line(&path.to_string_lossy())),
        }
    }
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    #[error("cannot listen at {0}: {1}; choose another --listen ADDRESS:PORT")]
    Address(SocketAddr, io::Error),
    #[error("cannot listen at {}: {}; choose another --listen unix:PATH", .0, .1)]
    Socket(Listen, io::Error),
    /// Others could put their own socket in the place of this one.
    #[error(
        "cannot put a socket into {0}: others can write to {1}; choose a folder of your own that only you can write to \
         (mode 0700, such as $XDG_RUNTIME_DIR)"
    )]
    Folder(String, String),
    #[error("cannot listen at {0}: what is there is not a socket of yours; choose another --listen unix:PATH")]
    Taken(Listen),
    #[error("cannot listen at {0}: another program listens there; end it, or choose another --listen unix:PATH")]
    InUse(Listen),
}

/// A socket that listens, without blocking.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Begins to listen. `for_all` lets all users connect to a Unix socket, otherwise only the server's user can.
    pub(super) fn bind(at: &Listen, for_all: bool) -> Result<Self, ListenError> {
        let address = match at {
            Listen::Tcp(address) => address,
            Listen::Unix(path) => return bind_unix(path, at, for_all),
        };
        let failed = |error| ListenError::Address(*address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        // a flood of connections by others must not keep the user's own from being queued
        listen(&listener, BACKLOG).map_err(|errno| failed(errno.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self::Tcp(listener))
    }

    /// Returns where it listens, with the port that it got.
    pub(super) fn at(&self, asked: &Listen) -> Listen {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|_| asked.clone(), Listen::Tcp),
            Self::Unix(_, file) => Listen::Unix(file.path.clone()),
        }
    }
}

/// The file of a Unix socket, which is removed at the end.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // another server may have replaced it
        if fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn bind_unix(path: &Path, at: &Listen, for_all: bool) -> Result<Listener, ListenError> {
    let failed = |error: io::Error| ListenError::Socket(at.clone(), error);
    let refused = |errno: Errno| failed(errno.into());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).map_err(failed)?;
    if let Some(writable) = writable_by_others(&folder).map_err(failed)? {
        let shown = |folder: &Path| one_line(&folder.to_string_lossy()).into_owned();
        return Err(ListenError::Folder(shown(&folder), shown(&writable)));
    }
    let path = folder.join(path.file_name().unwrap_or_default());
    let address = SocketAddrUnix::new(&path).map_err(refused)?;
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => {
            let file = file.map_err(failed)?;
            if !file.file_type().is_socket() || file.uid() != geteuid().as_raw() {
                return Err(ListenError::Taken(at.clone()));
            }
            match unix_socket().and_then(|socket| connect(socket, &address)) {
                // it has no listener
                Err(Errno::CONNREFUSED) => fs::remove_file(&path).map_err(failed)?,
                // a full queue has a listener
                Ok(()) | Err(Errno::AGAIN) => return Err(ListenError::InUse(at.clone())),
                Err(errno) => return Err(refused(errno)),
            }
        }
    }
    let socket = unix_socket().map_err(refused)?;
    bind(&socket, &address).map_err(refused)?;
    let made = fs::symlink_metadata(&path).map_err(failed)?;
    let file = SocketFile { path, identity: (made.dev(), made.ino()) };
    // clients can connect only once it listens
    let mode = if for_all { 0o666 } else { 0o600 };
    fs::set_permissions(&file.path, fs::Permissions::from_mode(mode)).map_err(failed)?;
    listen(&socket, BACKLOG).map_err(refused)?;
    Ok(Listener::Unix(socket.into(), file))
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Returns the first folder, from this one upwards, in which another user than root could replace what lies in it.
fn writable_by_others(folder: &Path) -> io::Result<Option<PathBuf>> {
    for (n, above) in folder.ancestors().enumerate() {
        let found = fs::metadata(above)?;
        let is_closed = found.mode() & WRITABLE_BY_OTHERS == 0 || n > 0 && found.mode() & STICKY != 0;
        if !is_trusted(found.uid()) || !is_closed {
            return Ok(Some(above.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_a_path_are_told_apart() {
        let read = |text: &str| Listen::read(OsStr::new(text));
        assert_eq!(read("127.0.0.1:0"), Ok(Listen::Tcp("127.0.0.1:0".parse().unwrap())));
        assert_eq!(read("unix:/run/x.sock"), Ok(Listen::Unix("/run/x.sock".into())));
        assert_eq!(read("unix:x"), Ok(Listen::Unix("x".into())));
        for bad in ["", "unix:", "unix:/", "unix:..", "localhost", "127.0.0.1", "/run/x.sock"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let is_remote = |text: &str| read(text).unwrap().is_remote();
        assert!(["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[::ffff:10.0.0.1]:1"].into_iter().all(is_remote));
        assert!(!["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/x"].into_iter().any(is_remote));
    }

    #[test]
    fn a_socket_is_the_own_users_and_only_a_stale_one_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let at = Listen::Unix(path.clone());
        let mode = || fs::symlink_metadata(&path).unwrap().mode() & 0o777;
        let first = Listener::bind(&at, false).unwrap();
        assert_eq!(mode(), 0o600);
        assert!(matches!(Listener::bind(&at, false), Err(ListenError::InUse(_))));
        drop(first);
        assert!(!path.exists());
        let stale = UnixListener::bind(&path).unwrap();
        drop(stale);
        assert!(path.exists());
        let second = Listener::bind(&at, true).unwrap();
        assert_eq!(mode(), 0o666);
        // what somebody put in its place meanwhile stays
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(second);
        assert!(path.exists());
        assert!(matches!(Listener::bind(&at, false), Err(ListenError::Taken(_))));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(matches!(Listener::bind(&at, false), Err(ListenError::Taken(_))));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let refused = |at: &Path| match Listener::bind(&Listen::Unix(at.join("socket")), false) {
            Err(error @ ListenError::Folder { .. }) => {
                assert!(!error.to_string().contains('\n'));
                true
            }
            other => other.map(|_| false).unwrap(),
        };
        assert!(!refused(&inner));
        for mode in [0o777, 0o775, 0o707, 0o1777] {
            set(&inner, mode);
            assert!(refused(&inner), "{mode:o}");
        }
        set(&inner, 0o755);
        assert!(!refused(&inner));
        set(folder.path(), 0o777);
        assert!(refused(&inner), "the one above");
        set(folder.path(), 0o1777);
        assert!(!refused(&inner));
        assert!(refused(&std::env::temp_dir()));
    }
}
