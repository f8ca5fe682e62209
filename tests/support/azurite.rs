//! Azurite, the emulator of Azure Blob Storage, as a server of a test's own. scripts/install_stores.sh installs it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use humantime::format_rfc3339_seconds;
use ring::hmac;
use tempfile::TempDir;

use super::store_server::{free_address, installed, object_metadata};
use super::{comes_true, http_client, skip};

/// The account that every server has.
pub const ACCOUNT: &str = "volfstest";
/// What must not be seen anywhere, before it is encoded.
const KEY: &[u8] = b"a key of sixty-four bytes that nobody may see, not even in logs.";
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
        let answers = || http_client::send(address, "GET /", &[], &[]).is_ok();
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
        BASE64_STANDARD.encode(KEY)
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
        let (status, said) = http_client::send(self.address, start.trim_end_matches('?'), &headers, body).unwrap();
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
    BASE64_STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, KEY), text.as_bytes()))
}
