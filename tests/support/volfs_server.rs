//! A server under test, and a client of HTTP/1.1 that sends what it is told and believes nothing.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::{SOON, signal, volfs, wait_for};

/// `volfs serve`, which ends with the test.
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
    /// The line that it prints.
    pub printed: String,
    /// What it logs.
    log: Mutex<mpsc::Receiver<String>>,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: HashMap<String, String>,
    /// The body, or why it is not whole.
    pub body: io::Result<Vec<u8>>,
}

impl Server {
    /// Serves a source at a free port, and waits until it answers.
    pub fn start(source: &Path, arguments: &[&str]) -> Self {
        let mut command = volfs();
        command.arg("serve").arg(source).args(["--listen", "127.0.0.1:0", "--cache-size", "32MiB"]).args(arguments);
        Self::run(&mut command)
    }

    /// Runs a command that serves.
    pub fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (send, log) = mpsc::channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || errors.lines().map_while(Result::ok).for_each(|line| drop(send.send(line))));
        let addresses = line.rsplit_once("http://").and_then(|(_, url)| url.split('/').next()?.to_socket_addrs().ok());
        // a machine may know an address of IPv6 for a name, and have no IPv6
        let address = addresses.and_then(|addresses| addresses.max_by_key(SocketAddr::is_ipv4));
        let address = address.unwrap_or_else(|| panic!("{line:?}, {:?}", log.recv_timeout(SOON)));
        Self { child, address, printed: line, log: Mutex::new(log) }
    }

    /// Connects.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    }

    /// Sends the head of a request as it is, and reads the response.
    pub fn send(&self, head: impl AsRef<[u8]>) -> io::Result<Answer> {
        let mut stream = self.connect();
        stream.write_all(head.as_ref())?;
        Answer::read(&mut BufReader::new(stream), head.as_ref().starts_with(b"HEAD"))
    }

    /// Requests a path with some headers.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let host = if headers.iter().any(|(name, _)| *name == "Host") { "" } else { "Host: localhost\r\n" };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}{lines}Connection: close\r\n\r\n");
        self.send(head).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[])
    }

    /// Returns the lines that were logged so far.
    pub fn logged(&self) -> Vec<String> {
        self.log.lock().unwrap().try_iter().collect()
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ends the server with SIGTERM and returns its exit status.
    pub fn stop(&mut self) -> Option<i32> {
        signal(self.pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
        wait_for(&mut self.child).code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// Reads one response.
    pub fn read(from: &mut impl BufRead, is_head: bool) -> io::Result<Self> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let joined = headers.entry(name.to_ascii_lowercase()).or_insert_with(String::new);
            if !joined.is_empty() {
                joined.push_str(", ");
            }
            joined.push_str(value.trim());
        }
        let bodiless = is_head || status == 304;
        let body = if bodiless { Ok(Vec::new()) } else { read_body(from, &headers) };
        Ok(Self { status, headers, body })
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    pub fn bytes(&self) -> &[u8] {
        self.body.as_deref().unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(self.bytes()).unwrap()
    }
}

fn read_body(from: &mut impl BufRead, headers: &HashMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let length = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let before = body.len();
            from.take(length).read_to_end(&mut body)?;
            from.read_line(&mut String::new())?;
            if length == 0 {
                return Ok(body);
            }
            if (body.len() - before) as u64 != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    let length: u64 = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(u64::MAX);
    from.take(length).read_to_end(&mut body)?;
    if length != u64::MAX && body.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

/// Returns whether a connection is closed by the other side within a time.
pub fn is_closed_within(mut stream: &TcpStream, limit: Duration) -> bool {
    stream.set_read_timeout(Some(limit)).unwrap();
    match stream.read(&mut [0; 512]) {
        Ok(n) => n == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}
