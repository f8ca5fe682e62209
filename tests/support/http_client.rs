//! One HTTP/1.1 request at a time, for tests that fill a server.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::http_head::Head;

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
