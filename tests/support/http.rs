//! HTTP/1.1 for tests: heads of messages, one request at a time, servers, and their certificates.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::skip;

/// The first line and the headers of a message.
pub struct Head {
    pub start: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; `None` at the end of the connection.
    pub fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = || {
            let mut line = String::new();
            from.read_line(&mut line)?;
            io::Result::Ok(line.trim_end().to_owned())
        };
        let start = line()?;
        if start.is_empty() {
            return Ok(None);
        }
        let mut headers = Vec::new();
        loop {
            let line = line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(Some(Self { start, headers })) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Returns the value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Sets a header.
    pub fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(found, _)| found != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Returns the bytes of the body, if the headers tell.
    pub fn length(&self) -> Option<u64> {
        self.get("content-length")?.parse().ok()
    }

    /// Returns a word of the first line.
    pub fn word(&self, n: usize) -> &str {
        self.start.split(' ').nth(n).unwrap_or_default()
    }

    /// Writes the head.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut text = format!("{}\r\n", self.start);
        self.headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        to.write_all(format!("{text}\r\n").as_bytes())
    }
}

/// Sends a request and returns the status and the body of the answer.
///
/// # Errors
/// Those of the connection.
pub fn send(address: SocketAddr, start: &str, headers: &[(String, String)], body: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut head = Head { start: format!("{start} HTTP/1.1"), headers: headers.to_vec() };
    head.set("host", &address.to_string());
    head.set("content-length", &body.len().to_string());
    head.set("connection", "close");
    let mut bytes = Vec::new();
    head.write(&mut bytes)?;
    bytes.extend(body);
    connection.write_all(&bytes)?;
    let mut answer = BufReader::new(connection);
    let head = Head::read(&mut answer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut body = Vec::new();
    answer.read_to_end(&mut body)?;
    Ok((head.word(1).parse().map_err(|_| io::ErrorKind::InvalidData)?, body))
}

/// A listener on a free port.
pub struct Listener {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Listener {
    /// Listens, and calls `serve` with each connection on a thread of its own. Sets `ends` when it is dropped.
    pub fn start(ends: &Arc<AtomicBool>, serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (serve, ended) = (Arc::new(serve), Arc::clone(ends));
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Relaxed) {
                    break;
                }
                let serve = Arc::clone(&serve);
                // a connection that breaks is one of the client's troubles
                thread::spawn(move || client.and_then(|client| serve(client)));
            }
        });
        Self { address, ends: Arc::clone(ends) }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // wakes the thread that accepts
        let _ = TcpStream::connect(self.address);
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The path, decoded.
    pub path: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    fn new(head: &Head, body: Vec<u8>) -> Self {
        let (path, query) = head.word(1).split_once('?').unwrap_or((head.word(1), ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            method: head.word(0).to_owned(),
            path: decoded(path),
            query: pairs.map(|(name, value)| (decoded(name), decoded(&value.replace('+', "%20")))).collect(),
            headers: head.headers.clone(),
            body,
        }
    }

    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns a part of the query.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }
}

/// Decodes `%20` and the like.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Makes an answer without headers.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// Makes an error, as object stores give it.
    pub fn error(status: u16, code: &str) -> Self {
        Self::new(status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>"))
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// A server, which ends when it is dropped.
pub struct HttpServer {
    listener: Listener,
    shared: Arc<Shared>,
}

struct Shared {
    handler: Box<Handler>,
    certificate: Option<Certificate>,
    log: Mutex<Vec<String>>,
    ends: Arc<AtomicBool>,
}

impl HttpServer {
    /// Starts a server.
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(None, handler)
    }

    /// Starts a server that speaks TLS.
    pub fn with_tls(certificate: Certificate, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Some(certificate), handler)
    }

    fn listen(certificate: Option<Certificate>, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let (log, ends) = (Mutex::default(), Arc::default());
        let shared = Arc::new(Shared { handler: Box::new(handler), certificate, log, ends });
        let accepting = Arc::clone(&shared);
        let listener = Listener::start(&shared.ends, move |client| accepting.accept(client));
        Self { listener, shared }
    }

    /// Returns where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the requests so far: method, path and query.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }

    /// Begins to log anew.
    pub fn forget(&self) {
        self.shared.log.lock().unwrap().clear();
    }
}

impl Shared {
    fn accept(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        match &self.certificate {
            Some(certificate) => self.serve(certificate.accept(client)),
            None => self.serve(client),
        }
    }

    /// Answers the requests of a connection, until the client closes it.
    fn serve(&self, client: impl Read + Write) -> io::Result<()> {
        let mut connection = BufReader::new(client);
        while let Some(head) = Head::read(&mut connection)? {
            if self.ends.load(Relaxed) {
                break;
            }
            let mut body = Vec::new();
            connection.by_ref().take(head.length().unwrap_or(0)).read_to_end(&mut body)?;
            let request = Request::new(&head, body);
            self.log.lock().unwrap().push(format!("{} {}", request.method, head.word(1)));
            let answer = (self.handler)(&request);
            let headers = [("content-length".to_owned(), answer.body.len().to_string())];
            let headers = answer.headers.into_iter().chain(headers).collect();
            let start = format!("HTTP/1.1 {} Answer", answer.status);
            let mut bytes = Vec::new();
            Head { start, headers }.write(&mut bytes)?;
            if request.method != "HEAD" {
                bytes.extend(answer.body);
            }
            connection.get_mut().write_all(&bytes)?;
            connection.get_mut().flush()?;
        }
        Ok(())
    }
}

const REQUEST: &str = "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = extensions\n\
    [name]\nCN = localhost\n[extensions]\nbasicConstraints = critical,CA:FALSE\nsubjectAltName = IP:127.0.0.1\n";

/// A certificate for 127.0.0.1 that nobody has signed but its own key.
pub struct Certificate {
    config: Arc<ServerConfig>,
    folder: TempDir,
}

impl Certificate {
    /// Makes a certificate; `None` (after reporting why) if openssl is not there.
    pub fn make() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("request"), REQUEST).unwrap();
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -config request \
            -keyout key.pem -out certificate.pem";
        openssl(folder.path(), words)?;
        let certificate = CertificateDer::from_pem_file(folder.path().join("certificate.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(builder.with_single_cert(vec![certificate], key).unwrap());
        Some(Self { config, folder })
    }

    /// Returns the file of the certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Speaks TLS with a client.
    pub fn accept(&self, client: TcpStream) -> impl Read + Write + use<> {
        StreamOwned::new(ServerConnection::new(Arc::clone(&self.config)).unwrap(), client)
    }
}

/// Runs openssl in a folder; `None` (after reporting it) if it is not there.
pub fn openssl(folder: &Path, words: &str) -> Option<()> {
    let mut command = Command::new("openssl");
    let ran = command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    let Ok(output) = ran else {
        skip("the program openssl is not there");
        return None;
    };
    assert!(output.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}
