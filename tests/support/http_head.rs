//! The first line and the headers of HTTP/1.1 messages.

use std::io::{self, BufRead, Write};

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
