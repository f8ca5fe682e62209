//! An object store of a test's own: s3s-fs, which keeps objects as plain files in a folder. scripts/install_stores.sh
//! installs it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use tempfile::TempDir;

use super::{comes_true, skip};

/// The bucket that every server has.
pub const BUCKET: &str = "volfs";
const REGION: &str = "us-east-1";
const KEY: &str = "VOLFSTESTKEY";
/// What must not be seen anywhere.
pub const SECRET: &str = "a-secret-that-nobody-may-see";

/// How often a server is started on another port.
const TRIES: usize = 5;

/// A server and its objects. Both are gone when this is dropped.
pub struct StoreServer {
    folder: TempDir,
    program: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl StoreServer {
    /// Starts a server with an empty bucket; `None` (after reporting why) if it is not installed.
    pub fn start() -> Option<Self> {
        let Some(program) = installed("bin/s3s-fs") else {
            skip("s3s-fs is not installed (scripts/install_stores.sh)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut server = Self { folder, program, address, child: None };
        for _ in 0..TRIES {
            // somebody else may take the port before the server does
            server.address = free_address();
            if server.resume() {
                return Some(server);
            }
        }
        panic!("{} does not start", server.program.display());
    }

    /// Starts the server again that [`StoreServer::stop`] has ended; `false` if it does not answer.
    pub fn resume(&mut self) -> bool {
        let mut command = Command::new(&self.program);
        command.args(["--host", "127.0.0.1", "--port", &self.address.port().to_string()]);
        command.args(["--access-key", KEY, "--secret-key", SECRET]).arg(self.folder.path());
        command.env("RUST_LOG", "error").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let answers = comes_true(Duration::from_secs(20), || {
            TcpStream::connect(self.address).is_ok() || child.try_wait().unwrap().is_some()
        });
        let lives = child.try_wait().unwrap().is_none();
        self.child = Some(child);
        answers && lives
    }

    /// Ends the server; the objects stay.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Returns where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a key.
    pub fn url(key: &str) -> String {
        format!("s3://{BUCKET}/{key}")
    }

    /// Returns the environment of a client that asks `address`: the server's, or that of a proxy before it.
    pub fn environment(address: SocketAddr) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://{address}")),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    /// Returns the file of an object. Its etag follows from its bytes.
    pub fn file(&self, key: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(key)
    }

    /// Puts an object, at once as a whole.
    pub fn put(&self, key: &str, bytes: impl AsRef<[u8]>) {
        let file = self.file(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        super::replace(&file, bytes);
    }

    /// Puts the user metadata of an object: `x-amz-meta-NAME: VALUE`.
    pub fn put_metadata(&self, key: &str, metadata: &[(&str, &str)]) {
        let base64 = |name: &str| BASE64_URL_SAFE_NO_PAD.encode(name);
        let name = format!(".bucket-{}.object-{}.metadata.json", base64(BUCKET), base64(key));
        let pairs: serde_json::Map<_, _> =
            metadata.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        fs::write(self.folder.path().join(name), json!({"user_metadata": pairs}).to_string()).unwrap();
    }

    /// Puts a file, or all files of a folder, at and below a key. They were last changed long ago.
    pub fn put_all(&self, key: &str, from: &Path) {
        let file = self.file(key);
        super::copy_all(from, &file);
        set_old(&file);
    }

    /// Removes an object, or all whose keys begin with `key` and a slash.
    pub fn remove(&self, key: &str) {
        let file = self.file(key);
        let removed = if file.is_dir() { fs::remove_dir_all(file) } else { fs::remove_file(file) };
        removed.unwrap();
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns what is written with each object of a VDS, which a copy in a folder keeps in one file: the object, and names
/// with their values.
pub fn object_metadata(folder: &Path) -> Vec<(String, Vec<(String, String)>)> {
    let Ok(text) = fs::read_to_string(folder.join("ObjectMetadata.json")) else { return Vec::new() };
    let listed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pair = |(name, value): (&String, &serde_json::Value)| (name.clone(), value.as_str().unwrap().to_owned());
    let entries = |value: &serde_json::Value| value.as_object().unwrap().iter().map(pair).collect();
    listed.as_object().unwrap().iter().map(|(object, value)| (object.clone(), entries(value))).collect()
}

/// Sets the time of the last change of all files to an hour ago: the server's listings have no etags.
fn set_old(path: &Path) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| set_old(&entry.unwrap().path()));
    } else {
        let time = SystemTime::now() - Duration::from_secs(3600);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }
}

/// Returns a program of scripts/install_stores.sh: in the folder VOLFS_STORES, or else in the target folder.
pub fn installed(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("VOLFS_STORES").map(PathBuf::from);
    let folder = folder.or_else(|| Some(Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("stores")))?;
    Some(folder.join(name)).filter(|program| program.exists())
}

/// Returns an address that nobody uses now.
pub fn free_address() -> SocketAddr {
    let free = || -> io::Result<_> { TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr() };
    free().unwrap()
}
