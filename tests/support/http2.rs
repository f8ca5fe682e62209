//! A client of HTTP/2 that writes its frames by hand, so that it can break all manners.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Types of frames; RFC 9113, section 6.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// END_STREAM and END_HEADERS.
pub const WHOLE: u8 = 0x5;

/// A connection.
pub struct Http2 {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A frame that the server has sent.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub bytes: Vec<u8>,
}

impl Http2 {
    /// Begins a connection whose streams have a window of so many bytes.
    pub fn new(mut stream: TcpStream, window: u32) -> Self {
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        let mut client = Self { stream, unread: Vec::new() };
        // SETTINGS_INITIAL_WINDOW_SIZE
        let settings = [&[0, 4], &window.to_be_bytes()[..]].concat();
        client.send(SETTINGS, 0, 0, &settings).unwrap();
        client
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.stream.write_all(&[&head, bytes].concat())
    }

    /// Requests a path.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        self.send(HEADERS, WHOLE, stream, &head(path))
    }

    /// Lets the server send so many bytes more.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn allow(&mut self, stream: u32, bytes: u32) -> io::Result<()> {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    /// Returns the next frame; `None` if the server closes the connection, or sends none within the limit.
    pub fn next(&mut self, limit: Duration) -> Option<Frame> {
        let until = Instant::now() + limit;
        loop {
            if let Some(head) = self.unread.first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let (kind, stream) = (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
                if let Some(bytes) = self.unread.get(9..9 + length) {
                    let frame = Frame { kind, stream, bytes: bytes.to_vec() };
                    self.unread.drain(..9 + length);
                    return Some(frame);
                }
            }
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut part = [0; 1 << 16];
            match self.stream.read(&mut part) {
                Ok(n @ 1..) => self.unread.extend_from_slice(&part[..n]),
                _ => return None,
            }
        }
    }

    /// Reads until the server closes the connection, and returns what came before; `None` if it does not in time.
    pub fn read_to_end(&mut self, limit: Duration) -> Option<Vec<Frame>> {
        let until = Instant::now() + limit;
        let mut frames = Vec::new();
        while let Some(frame) = self.next(until.saturating_duration_since(Instant::now())) {
            frames.push(frame);
        }
        (Instant::now() < until).then_some(frames)
    }
}

/// Returns the block of header fields of a request: literals without a table, and lengths in one byte where they fit.
pub fn head(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", path)] {
        block.extend(field(name, value));
    }
    block
}

/// Returns a header field.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let mut left = text.len();
        let mut coded = vec![u8::try_from(left.min(127)).unwrap()];
        if left >= 127 {
            left -= 127;
            while left >= 128 {
                coded.push((left % 128) as u8 | 128);
                left /= 128;
            }
            coded.push(left as u8);
        }
        coded.extend_from_slice(text.as_bytes());
        coded
    };
    [vec![0], text(name), text(value)].concat()
}
