//! A proxy between a client and an HTTP/1.1 server that fails as networks and servers do, and counts what goes through.
//!
//! It speaks plain HTTP. Requests go to the server over a connection each; those of the client are kept open.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::Noise;
use super::http::{Head, Listener};

/// How often a thread that waits looks whether the proxy is to end.
const GLANCE: Duration = Duration::from_millis(20);

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed without an answer.
    Drop,
    /// The connection is closed after so many bytes of the body.
    Truncate(u64),
    /// The request waits so long before the server gets it.
    Delay(Duration),
    /// The answer is this status, and the server gets nothing.
    Status(u16),
    /// The answer has another etag.
    WrongEtag,
    /// There is no answer as long as the proxy is there, or until [`FaultProxy::drop_hanging`].
    Hang,
}

/// A request, as a rule sees it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its number, from 0 on.
    pub number: u64,
    pub method: String,
    /// The path and the query, percent-encoded.
    pub target: String,
    /// The header `Range`.
    pub range: Option<String>,
}

/// What went through a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub requests: u64,
    /// Of these, those that a fault was chosen for.
    pub faults: u64,
    /// Bytes of bodies that clients got.
    pub bytes: u64,
    /// The most requests that were under way at a time.
    pub most_in_flight: u64,
    /// The requests: method and target.
    pub log: Vec<String>,
}

type Rule = dyn Fn(&Request) -> Option<Fault> + Send + Sync;

/// A proxy, which ends when it is dropped.
pub struct FaultProxy {
    listener: Listener,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    rule: Mutex<Arc<Rule>>,
    passed: Mutex<Passed>,
    in_flight: AtomicU64,
    /// How often all that hung was dropped.
    dropped: AtomicU64,
    ends: Arc<AtomicBool>,
}

impl FaultProxy {
    /// Starts a proxy before a server. It passes everything on.
    pub fn before(server: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            server,
            rule: Mutex::new(Arc::new(|_| None)),
            passed: Mutex::default(),
            in_flight: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            ends: Arc::default(),
        });
        let accepting = Arc::clone(&shared);
        let listener = Listener::start(&shared.ends, move |client| accepting.serve(client));
        Self { listener, shared }
    }

    /// Returns where the proxy listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Chooses faults by a rule from now on.
    pub fn set(&self, rule: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) {
        *self.shared.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Chooses one of these faults for every `one_in`th request, at random but in each run alike.
    pub fn set_random(&self, seed: u64, one_in: usize, faults: Vec<Fault>) {
        self.set(move |request| {
            let mut noise = Noise::seeded(seed.wrapping_add(request.number.wrapping_mul(0x5851_F42D_4C95_7F2D)));
            // neighbours begin with like states, and the lowest bits follow from each other
            noise.bytes(8);
            let mut below = |limit: usize| (noise.number() >> 33) as usize % limit;
            (below(one_in) == 0).then(|| faults[below(faults.len())])
        });
    }

    /// Passes everything on from now on.
    pub fn clear(&self) {
        self.set(|_| None);
    }

    /// Returns what went through so far.
    pub fn passed(&self) -> Passed {
        self.shared.passed.lock().unwrap().clone()
    }

    /// Closes the connections of all requests that hang now.
    pub fn drop_hanging(&self) {
        self.shared.dropped.fetch_add(1, Relaxed);
    }

    /// Begins to count anew.
    pub fn forget(&self) {
        *self.shared.passed.lock().unwrap() = Passed::default();
    }
}

/// Counts a request as under way until it is dropped.
struct InFlight<'a>(&'a Shared);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

impl Shared {
    /// Answers the requests of a connection, until one of both sides closes it.
    fn serve(&self, client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut reader = BufReader::new(client.try_clone()?);
        while let Some(head) = Head::read(&mut reader)? {
            let (request, _under_way) = self.begin(&head);
            let rule = Arc::clone(&self.rule.lock().unwrap());
            let fault = rule(&request);
            self.passed.lock().unwrap().faults += u64::from(fault.is_some());
            let mut body = Vec::new();
            reader.by_ref().take(head.length().unwrap_or(0)).read_to_end(&mut body)?;
            if !self.answer(head, &body, fault, &client)? {
                return client.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }

    fn begin(&self, head: &Head) -> (Request, InFlight<'_>) {
        let in_flight = self.in_flight.fetch_add(1, Relaxed) + 1;
        let mut passed = self.passed.lock().unwrap();
        let request = Request {
            number: passed.requests,
            method: head.word(0).to_owned(),
            target: head.word(1).to_owned(),
            range: head.get("range").map(str::to_owned),
        };
        passed.requests += 1;
        passed.most_in_flight = passed.most_in_flight.max(in_flight);
        passed.log.push(format!("{} {}", request.method, request.target));
        (request, InFlight(self))
    }

    /// Answers a request, and returns whether the connection goes on.
    fn answer(&self, mut head: Head, body: &[u8], fault: Option<Fault>, mut client: &TcpStream) -> io::Result<bool> {
        match fault {
            Some(Fault::Drop) => return Ok(false),
            Some(Fault::Hang) => {
                let before = self.dropped.load(Relaxed);
                while !self.ends.load(Relaxed) && self.dropped.load(Relaxed) == before && !has_closed(client) {
                    thread::sleep(GLANCE);
                }
                return Ok(false);
            }
            Some(Fault::Status(status)) => {
                let text = "<Error><Code>Injected</Code><Message>by the proxy</Message></Error>";
                let length = if head.word(0) == "HEAD" { 0 } else { text.len() };
                let answer = format!(
                    "HTTP/1.1 {status} Injected\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\n\r\n{}",
                    &text[..length]
                );
                client.write_all(answer.as_bytes())?;
                return Ok(true);
            }
            Some(Fault::Delay(time)) => self.wait(time),
            _ => {}
        }
        let has_body = head.word(0) != "HEAD";
        head.set("connection", "close");
        let mut server = TcpStream::connect(self.server)?;
        server.set_nodelay(true)?;
        head.write(&mut server)?;
        server.write_all(body)?;
        let mut from = BufReader::new(server);
        let Some(mut answer) = Head::read(&mut from)? else { return Ok(false) };
        let is_empty = !has_body || matches!(answer.word(1), "204" | "304");
        let length = if is_empty { Some(0) } else { answer.length() };
        answer.set("connection", if length.is_some() { "keep-alive" } else { "close" });
        if fault == Some(Fault::WrongEtag) {
            answer.set("etag", "\"of-another-version\"");
        }
        answer.write(&mut client)?;
        let limit = match fault {
            Some(Fault::Truncate(limit)) => limit,
            _ => u64::MAX,
        };
        let wanted = length.unwrap_or(u64::MAX);
        let copied = io::copy(&mut from.take(wanted.min(limit)), &mut client);
        self.passed.lock().unwrap().bytes += copied.as_ref().copied().unwrap_or(0);
        Ok(copied? == wanted)
    }

    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|_| !self.ends.load(Relaxed)) {
            thread::sleep(left.min(GLANCE));
        }
    }
}

/// Returns whether the other side has closed a connection.
fn has_closed(connection: &TcpStream) -> bool {
    let glanced = connection.set_nonblocking(true).and_then(|()| connection.peek(&mut [0]));
    let _ = connection.set_nonblocking(false);
    matches!(glanced, Ok(0))
}
