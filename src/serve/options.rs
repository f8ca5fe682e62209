//! The options of a server.

use std::sync::Arc;
use std::time::Duration;

use super::access::Access;
use super::listener::Listen;

/// What a server may do, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct ServeOptions {
    /// Where to listen.
    pub listen: Listen,
    /// Who may connect, and with what.
    pub access: Arc<Access>,
    /// Names besides those of this machine that clients may use for it.
    pub allow_hosts: Vec<String>,
    /// The origins whose pages may read responses; `*` means all.
    pub allow_origins: Vec<String>,
    /// Connections at a time; others wait until one ends.
    pub max_connections: usize,
    /// Requests in progress at a time, from their head to the last byte of the response.
    pub max_requests: usize,
    /// How long a client may take for the head of a request.
    pub header_timeout: Duration,
    /// How long a connection may be without a request, and a client without taking a byte of a response.
    pub idle_timeout: Duration,
    /// The address of a Neuroglancer that the page links to.
    pub neuroglancer: Option<String>,
}

/// Returns whether a text is an origin as browsers send it, `https://host` or `http://host:8000`, or `*`.
pub(crate) fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_host = |host: &str| {
        !host.is_empty()
            && host.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b':' | b'[' | b']'))
    };
    text == "*" || host.is_some_and(is_host)
}

/// Returns the origin of a URL, which is what stands before its path; `None` if it has none.
pub(crate) fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let origin = format!("{scheme}://{host}");
    is_origin(&origin).then_some(origin)
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
