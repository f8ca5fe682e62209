//! Where a server listens: the addresses of a host and a port, or a Unix socket in a folder that others cannot change.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;
use thiserror::Error;

use crate::logging::one_line;
use crate::safe_open::is_trusted;
use crate::sync::thread;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 4096;
/// Bits of a mode that let group and others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// In such a folder users cannot rename or remove the files of others.
const STICKY: u32 = 0o1000;
/// How long the system may take to find the addresses of a name.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often a free port is looked for that is free at all addresses.
const ATTEMPTS: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// At an address, or at all addresses of a name: where one were left out, another user could listen at it, and
    /// would get what is meant for this server. They have one port; 0 is any free one.
    Tcp {
        name: Option<String>,
        addresses: Vec<SocketAddr>,
    },
    Unix(PathBuf),
}

impl Listen {
    /// Reads `ADDRESS:PORT`, `NAME:PORT` or `unix:PATH`, and finds the addresses of a name; the error says how to write
    /// it.
    pub(crate) fn read(text: &OsStr) -> Result<Self, String> {
        if let Some(path) = text.as_bytes().strip_prefix(b"unix:") {
            let path = Path::new(OsStr::from_bytes(path));
            return match path.file_name() {
                Some(_) => Ok(Self::Unix(path.to_owned())),
                None => Err("name a file after unix:, as in unix:/run/user/1000/volfs.sock".to_owned()),
            };
        }
        let text = text.to_str().unwrap_or_default();
        if let Ok(address) = text.parse() {
            return Ok(Self::Tcp { name: None, addresses: vec![address] });
        }
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c));
        let named = text.rsplit_once(':').filter(|(name, _)| is_name(name));
        let Some((name, port)) = named.and_then(|(name, port)| Some((name, port.parse().ok()?))) else {
            return Err(
                "write it as ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080, as NAME:PORT, or as unix:PATH"
                    .to_owned(),
            );
        };
        Ok(Self::Tcp { name: Some(name.to_owned()), addresses: addresses(name, port)? })
    }

    /// Returns an address that other machines may reach, if there is one.
    pub(crate) fn remote(&self) -> Option<&SocketAddr> {
        self.addresses().iter().find(|address| !address.ip().to_canonical().is_loopback())
    }

    pub(super) fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Tcp { addresses, .. } => addresses,
            Self::Unix(_) => &[],
        }
    }
}

/// Asks the system for the addresses of a name. Each is there once, and there is one.
fn addresses(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let failed =
        |why: &dyn Display| format!("cannot find the address of {name}: {why}; write its number, as in 127.0.0.1:8080");
    let ((send, receive), asked) = (mpsc::channel(), (name.to_owned(), port));
    // servers of names may be silent for longer, and the question cannot be withdrawn
    let asking = thread::Builder::new().spawn(move || send.send(asked.to_socket_addrs().map(Vec::from_iter)));
    let asking = asking.map_err(|error| failed(&error))?;
    let found = receive.recv_timeout(DEADLINE).map_err(|_| failed(&"no answer within 10 s"))?;
    // side processes are forked only where there is one thread
    let _ = asking.join();
    let mut addresses = found.map_err(|error| failed(&error))?;
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    if addresses.is_empty() { Err(failed(&"it has none")) } else { Ok(addresses) }
}

impl Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name: Some(name), addresses } => {
                write!(f, "{name}:{}", addresses.first().map_or(0, SocketAddr::port))
            }
            Self::Tcp { name: None, addresses } => addresses.iter().try_for_each(|address| address.fmt(f)),
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

/// Sockets that listen, without blocking.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(Vec<TcpListener>),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Begins to listen. `for_all` lets all users connect to a Unix socket, otherwise only the server's user can.
    pub(super) fn bind(at: &Listen, for_all: bool) -> Result<Self, ListenError> {
        let addresses = match at {
            Listen::Tcp { addresses, .. } => addresses,
            Listen::Unix(path) => return bind_unix(path, at, for_all),
        };
        let is_any_port = addresses.iter().all(|address| address.port() == 0);
        let mut attempts = if is_any_port && addresses.len() > 1 { ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            match bind_all(addresses) {
                Err(ListenError::Address(_, error)) if attempts > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound.map(Self::Tcp),
            }
        }
    }

    /// Returns where it listens, with the port that it got.
    pub(super) fn at(&self, asked: &Listen) -> Listen {
        let name = if let Listen::Tcp { name, .. } = asked { name.clone() } else { None };
        let addresses = |of: &[TcpListener]| of.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        match self {
            Self::Tcp(listeners) => Listen::Tcp { name, addresses: addresses(listeners) },
            Self::Unix(_, file) => Listen::Unix(file.path.clone()),
        }
    }
}

/// Listens at all of these addresses, with the port of the first one where others have none. Addresses that the machine
/// has not, such as those of IPv6 where that is off, are left out if there are others: nobody can listen there.
fn bind_all(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, ListenError> {
    let (mut listeners, mut port, mut missing) = (Vec::new(), 0, None);
    for address in addresses {
        let mut address = *address;
        if address.port() == 0 {
            address.set_port(port);
        }
        match bind_tcp(address) {
            Ok(listener) => {
                port = listener.local_addr().map_or(0, |address| address.port());
                listeners.push(listener);
            }
            Err(error) => {
                let is_absent = error.kind() == io::ErrorKind::AddrNotAvailable
                    || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error());
                let error = ListenError::Address(address, error);
                if !is_absent {
                    return Err(error);
                }
                missing = Some(error);
            }
        }
    }
    missing.filter(|_| listeners.is_empty()).map_or(Ok(listeners), Err)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // a flood of connections by others must not keep the user's own from being queued
    listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
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
        let one = |address: &str| Listen::Tcp { name: None, addresses: vec![address.parse().unwrap()] };
        assert_eq!(read("127.0.0.1:0"), Ok(one("127.0.0.1:0")));
        assert_eq!(read("unix:/run/x.sock"), Ok(Listen::Unix("/run/x.sock".into())));
        assert_eq!(read("unix:x"), Ok(Listen::Unix("x".into())));
        for bad in [
            "",
            "unix:",
            "unix:/",
            "unix:..",
            "localhost",
            "localhost:",
            "localhost:http",
            "localhost:65536",
            ":80",
            "a b:80",
            "::1:80",
            "http://localhost:80",
            "127.0.0.1",
            "/run/x.sock",
        ] {
            assert!(
                read(bad).is_err_and(|error| error.starts_with("write it as ") || error.starts_with("name a file ")),
                "{bad}"
            );
        }
        let is_remote = |text: &str| read(text).unwrap().remote().is_some();
        assert!(["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[::ffff:10.0.0.1]:1"].into_iter().all(is_remote));
        assert!(!["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/x"].into_iter().any(is_remote));
    }

    #[test]
    fn a_name_means_all_of_its_addresses_at_one_port() {
        let at = Listen::read("localhost:0".as_ref()).unwrap();
        assert_eq!((at.remote(), at.to_string()), (None, "localhost:0".to_owned()));
        let listener = Listener::bind(&at, false).unwrap();
        let bound = listener.at(&at);
        let port = bound.addresses()[0].port();
        assert!(port != 0 && bound.addresses().iter().all(|address| address.port() == port));
        assert_eq!(bound.to_string(), format!("localhost:{port}"));
        // whoever listens at one of them already would get a part of the connections
        let taken = Listen::Tcp {
            name: Some("two".to_owned()),
            addresses: vec!["127.9.9.9:0".parse().unwrap(), bound.addresses()[0]],
        };
        assert!(matches!(Listener::bind(&taken, false), Err(ListenError::Address(..))));
        // this machine has no such address, of a network for examples
        let absent = |others: &[&str]| {
            let all = [&["192.0.2.1:0"][..], others].concat();
            let addresses = all.into_iter().map(|address| address.parse().unwrap()).collect();
            Listener::bind(&Listen::Tcp { name: None, addresses }, false)
        };
        assert!(matches!(absent(&["127.0.0.1:0"]), Ok(Listener::Tcp(listeners)) if listeners.len() == 1));
        assert!(matches!(absent(&[]), Err(ListenError::Address(..))));
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
