//! The tree of a mount over HTTP: turns each request into calls of [`Volfs`](crate::fs::Volfs), and the results into
//! the response.
//!
//! * [`server`] and [`listener`]: where it listens, which connections it accepts, the end at a signal.
//! * [`peer`] and [`access`]: the client at the other end, and whether it may use the server.
//! * [`connection`]: turns of requests, and clients that take too little.
//! * [`app`]: one request, from its path to its response.
//! * [`file`], [`folder`] and [`page`]: what a file, a folder and the page for browsers answer; [`bundle`]: its script.
//! * [`opendap`]: levels for programs that speak OPeNDAP.
//! * [`tree`]: paths as names of the tree, and the calls of the file system.
//!
//! The threads of the server never wait: what cannot be answered from memory goes to the pool, as in a mount.

mod access;
mod app;
mod body;
mod bundle;
mod connection;
mod file;
mod folder;
mod listener;
mod opendap;
mod page;
mod peer;
mod response;
mod server;
mod tree;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use access::{Access, Token};
pub(crate) use listener::Listen;
pub(crate) use peer::overflow_user;
pub(crate) use server::{ServeError, Server};

/// What a server may do, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct ServeOptions {
    pub(crate) listen: Listen,
    /// The users that may connect, and the token that they need.
    pub(crate) access: Arc<Access>,
    /// Names besides those of this machine that clients may use for it.
    pub(crate) allow_hosts: Vec<String>,
    /// The origins whose pages may read responses; `*` means all.
    pub(crate) allow_origins: Vec<String>,
    /// Connections at a time; others wait until one ends.
    pub(crate) max_connections: usize,
    /// Requests in progress at a time, from their head to the last byte of the response.
    pub(crate) max_requests: usize,
    /// How long a client may take for the head of a request.
    pub(crate) header_timeout: Duration,
    /// How long a connection may be without a request, and a client without taking some of a response.
    pub(crate) idle_timeout: Duration,
    /// The address of a Neuroglancer that the page links to.
    pub(crate) neuroglancer: Option<String>,
}

/// Returns whether a text is an origin as browsers send it, `https://host` or `http://host:8000`, or `*`.
pub(crate) fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b':' | b'[' | b']');
    text == "*" || host.is_some_and(|host| !host.is_empty() && host.bytes().all(is_host))
}

/// Returns the origin of a URL, which is the part before its path.
fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(format!("{scheme}://{host}")).filter(|origin| is_origin(origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path() {
        for origin in ["*", "https://host", "http://127.0.0.1:9000", "http://[::1]:80"] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in ["", "host", "https://", "https://host/", "https://host/path", "https://a b", "null", "ftp://host"]
        {
            assert!(!is_origin(other), "{other}");
        }
        assert_eq!(origin_of("http://127.0.0.1:9999/v/#!").as_deref(), Some("http://127.0.0.1:9999"));
        assert_eq!(origin_of("nothing"), None);
    }
}
