//! Object stores of the tests: s3s-fs and Azurite in processes of their own, and one in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use humantime::format_rfc3339_seconds;
use ring::hmac;
use serde_json::json;
use tempfile::TempDir;

use super::http::{Answer, Request, send};
use super::{comes_true, copy_all, crc, replace, skip};

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
        replace(&file, bytes);
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
        copy_all(from, &file);
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

/// The account that every server has.
pub const ACCOUNT: &str = "volfstest";
/// What must not be seen anywhere, before it is encoded.
const AZURE_KEY: &[u8] = b"a key of sixty-four bytes that nobody may see, not even in logs.";
/// A container that only who has a key may read, and one that everybody may list and read.
pub const CONTAINER: &str = "volfs";
pub const PUBLIC: &str = "public";

const VERSION: &str = "2021-12-02";
/// A version whose shared access signatures are made of few parts.
const SAS_VERSION: &str = "2018-11-09";

/// How long the server, which starts a JavaScript engine, may take until it answers.
const START: Duration = Duration::from_secs(60);

/// A server with two containers. It and they are gone when this is dropped.
pub struct Azurite {
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl Azurite {
    /// Starts a server; `None` (after reporting why) if it is not installed.
    pub fn start() -> Option<Self> {
        let Some(program) = installed("azurite/node_modules/.bin/azurite-blob") else {
            skip("Azurite is not installed (scripts/install_stores.sh)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let mut command = Command::new(program);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", &address.port().to_string()]);
        command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location"]).arg(folder.path());
        command.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{}", Self::key())).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = match child {
            Ok(child) => Self { address, child, _folder: folder },
            Err(error) => {
                skip(&format!("Azurite does not start: {error}"));
                return None;
            }
        };
        let answers = || send(address, "GET /", &[], &[]).is_ok();
        assert!(comes_true(START, answers), "Azurite does not answer");
        server.send(&format!("/{CONTAINER}"), &[("restype", "container")], &[], &[]);
        server.send(
            &format!("/{PUBLIC}"),
            &[("restype", "container")],
            &[("x-ms-blob-public-access", "container")],
            &[],
        );
        Some(server)
    }

    /// Returns the key of the account, in base64.
    pub fn key() -> String {
        BASE64_STANDARD.encode(AZURE_KEY)
    }

    /// Returns the URL of the account.
    pub fn endpoint(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.address)
    }

    /// Returns a connection string.
    pub fn connection_string(&self) -> String {
        let (endpoint, key) = (self.endpoint(), Self::key());
        format!("DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={endpoint};")
    }

    /// Returns a signature that lets everybody read and list for an hour: the query of a URL.
    pub fn signature() -> String {
        let end = format_rfc3339_seconds(SystemTime::now() + Duration::from_secs(3600)).to_string();
        let signature = sign(&format!("{ACCOUNT}\nrl\nb\nsco\n\n{end}\n\n\n{SAS_VERSION}\n"));
        let encoded = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("sv={SAS_VERSION}&ss=b&srt=sco&sp=rl&se={end}&sig={encoded}")
    }

    /// Puts an object with metadata.
    pub fn put(&self, container: &str, key: &str, bytes: &[u8], metadata: &[(String, String)]) {
        let metadata: Vec<_> =
            metadata.iter().map(|(name, value)| (format!("x-ms-meta-{name}"), value.as_str())).collect();
        let mut headers = vec![("x-ms-blob-type", "BlockBlob")];
        headers.extend(metadata.iter().map(|(name, value)| (name.as_str(), *value)));
        self.send(&format!("/{container}/{key}"), &[], &headers, bytes);
    }

    /// Puts a file, or all files of a dataset, at and below a key; chunks of a VDS with their metadata.
    pub fn put_all(&self, container: &str, key: &str, from: &Path) {
        let metadata = if from.is_dir() { object_metadata(from) } else { Vec::new() };
        let mut left = vec![(from.to_owned(), String::new())];
        while let Some((path, name)) = left.pop() {
            if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
                let names = entries.map(|entry| entry.into_string().unwrap());
                left.extend(names.map(|entry| (path.join(&entry), format!("{name}/{entry}"))));
            } else if !path.ends_with("ObjectMetadata.json") {
                let of_object = metadata.iter().find(|(object, _)| *object == name.trim_start_matches('/'));
                let of_object = of_object.map_or(&[][..], |(_, entries)| entries);
                self.put(container, &format!("{key}{name}"), &fs::read(path).unwrap(), of_object);
            }
        }
    }

    /// Sends a signed PUT.
    fn send(&self, path: &str, query: &[(&str, &str)], headers: &[(&str, &str)], body: &[u8]) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut headers = headers.to_vec();
        headers.extend([("x-ms-date", date.as_str()), ("x-ms-version", VERSION)]);
        headers.sort_unstable();
        let length = if body.is_empty() { String::new() } else { body.len().to_string() };
        let mut text = format!("PUT\n\n\n{length}\n\n\n\n\n\n\n\n\n");
        text.extend(headers.iter().map(|(name, value)| format!("{name}:{value}\n")));
        text += &format!("/{ACCOUNT}/{ACCOUNT}{path}");
        text.extend(query.iter().map(|(name, value)| format!("\n{name}:{value}")));
        let mut headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        headers.push(("authorization".to_owned(), format!("SharedKey {ACCOUNT}:{}", sign(&text))));
        let asked: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let start = format!("PUT /{ACCOUNT}{path}?{}", asked.join("&"));
        let (status, said) = send(self.address, start.trim_end_matches('?'), &headers, body).unwrap();
        assert_eq!(status, 201, "{path}: {}", String::from_utf8_lossy(&said));
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Returns the signature of a text by the key of the account, in base64.
fn sign(text: &str) -> String {
    BASE64_STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, AZURE_KEY), text.as_bytes()))
}

/// The most names on a page of a listing.
const PAGE: usize = 1000;

/// The time of the last change of all objects.
const LISTED: &str = "2025-01-01T00:00:00.000Z";
const MODIFIED: &str = "Wed, 01 Jan 2025 00:00:00 GMT";

/// One object.
#[derive(Clone, Debug, Default)]
pub struct Object {
    pub bytes: Vec<u8>,
    /// Headers that are given with it.
    pub headers: Vec<(String, String)>,
    etag: String,
}

/// The objects of one bucket, by their keys.
#[derive(Debug, Default)]
pub struct Objects(Mutex<BTreeMap<String, Object>>);

impl Objects {
    /// Puts an object.
    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let bytes = bytes.into();
        let etag = format!("{}-{}", crc(&bytes), bytes.len());
        self.0.lock().unwrap().insert(key.to_owned(), Object { bytes, headers, etag });
    }

    /// Puts a file, or all files of a folder, at and below a key.
    pub fn put_all(&self, key: &str, from: &Path) {
        if from.is_dir() {
            for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
                self.put_all(&format!("{key}/{}", entry.file_name().to_str().unwrap()), &entry.path());
            }
        } else {
            self.put(key, fs::read(from).unwrap(), &[]);
        }
    }

    /// Removes an object.
    pub fn remove(&self, key: &str) {
        assert!(self.0.lock().unwrap().remove(key).is_some());
    }

    /// Answers a request to the bucket that is the first name of the path, by the interface of S3.
    pub fn answer(&self, request: &Request) -> Answer {
        let path = request.path.trim_start_matches('/');
        match path.split_once('/').unwrap_or((path, "")) {
            (_, "") if request.asked("list-type") == Some("2") => self.list(request),
            (_, key) => self.object(request, key),
        }
    }

    /// Answers a request of an object.
    pub fn object(&self, request: &Request, key: &str) -> Answer {
        let objects = self.0.lock().unwrap();
        let Some(object) = objects.get(key) else { return Answer::error(404, "NoSuchKey") };
        let etag = format!("\"{}\"", object.etag);
        if request.header("if-match").is_some_and(|wanted| wanted != etag) {
            return Answer::error(412, "PreconditionFailed");
        }
        let size = object.bytes.len();
        let mut answer = match request.header("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) {
            None => Answer::new(200, object.bytes.clone()),
            Some((from, to)) => {
                let (to, last) = (to.parse::<usize>().unwrap(), size.max(1) - 1);
                let counted_from_the_end = |_| (size.saturating_sub(to), last);
                let (from, to) = from.parse().map_or_else(counted_from_the_end, |from: usize| (from, to.min(last)));
                if from >= size {
                    return Answer::error(416, "InvalidRange");
                }
                let range = format!("bytes {from}-{to}/{size}");
                Answer::new(206, &object.bytes[from..=to]).with("content-range", range)
            }
        };
        answer.headers.extend(object.headers.clone());
        answer.with("etag", etag).with("last-modified", MODIFIED)
    }

    fn list(&self, request: &Request) -> Answer {
        let prefix = request.asked("prefix").unwrap_or("");
        let most = request.asked("max-keys").map_or(PAGE, |most| most.parse().unwrap());
        let mut cursor = request.asked("continuation-token").unwrap_or("").to_owned();
        let (mut files, mut folders) = (Vec::new(), BTreeSet::new());
        let objects = self.0.lock().unwrap();
        let is_last = loop {
            let beyond = cursor.clone().max(prefix.to_owned());
            // the prefix itself may be a key, and a cursor was one
            let bound = if beyond == prefix { Bound::Included(beyond) } else { Bound::Excluded(beyond) };
            let found = objects.range((bound, Bound::Unbounded)).next();
            let Some((key, object)) = found.filter(|(key, _)| key.starts_with(prefix)) else { break true };
            if files.len() + folders.len() == most {
                cursor = files.last().map_or(String::new(), |(key, _, _): &(String, usize, String)| key.clone());
                cursor = cursor.max(folders.last().map_or(String::new(), |folder| format!("{folder}\u{10FFFF}")));
                break false;
            }
            match key[prefix.len()..].split_once('/').filter(|_| request.asked("delimiter") == Some("/")) {
                Some((name, _)) => {
                    let folder = format!("{prefix}{name}/");
                    cursor = format!("{folder}\u{10FFFF}");
                    folders.insert(folder);
                }
                None => {
                    cursor.clone_from(key);
                    files.push((key.clone(), object.bytes.len(), object.etag.clone()));
                }
            }
        };
        page(&files, folders.iter().map(String::as_str), (!is_last).then_some(&cursor))
    }
}

/// Makes a page of a listing: objects with their sizes and etags, folders with their slashes, and where the next page
/// begins.
pub fn page<'a>(
    files: &[(String, usize, String)],
    folders: impl Iterator<Item = &'a str>,
    next: Option<&str>,
) -> Answer {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>".to_owned();
    text += &format!("<IsTruncated>{}</IsTruncated>", next.is_some());
    text.extend(next.map(|next| format!("<NextContinuationToken>{next}</NextContinuationToken>")));
    text.extend(files.iter().map(|(key, size, etag)| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>{LISTED}</LastModified><ETag>&quot;{etag}&quot;</ETag>\
             <Size>{size}</Size></Contents>"
        )
    }));
    text.extend(folders.map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>")));
    Answer::new(200, text + "</ListBucketResult>").with("content-type", "application/xml")
}
