//! An HTTP/1.1 server whose answers a function of the test makes: stores that nobody can install, servers of
//! credentials, and servers that refuse.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::http_head::Head;
use super::listener::Listener;
use super::tls::Certificate;

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
