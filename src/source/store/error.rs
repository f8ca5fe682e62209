//! What failed in a store, in words for people.

use std::env;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use thiserror::Error as ThisError;

use super::super::SourceError;

/// Why a store did not give what was asked for.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
#[error("{text}")]
pub struct StoreError {
    /// What failed, and what to do.
    pub text: String,
    /// The kind of failure.
    pub kind: io::ErrorKind,
    /// Whether the object is not of the version that was asked for.
    pub is_other_version: bool,
    /// Whether the range that was asked for lies beyond the end of the object, as every range of an empty one does.
    pub is_beyond_end: bool,
}

impl StoreError {
    /// Makes an error with a text of its own.
    pub fn new(kind: io::ErrorKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind, is_other_version: false, is_beyond_end: false }
    }

    /// Explains an error of a request. `None`: there is no such object.
    pub fn of(error: &Error) -> Option<Self> {
        let text = full_text(error);
        match error {
            Error::NotFound { .. } if !text.contains("NoSuchBucket") && !text.contains("ContainerNotFound") => {
                return None;
            }
            Error::Precondition { .. } => {
                let mut other = Self::new(io::ErrorKind::InvalidData, "the object was replaced");
                other.is_other_version = true;
                return Some(other);
            }
            _ => {}
        }
        let (kind, explained) = explain(error, &text);
        let mut explained = Self::new(kind, explained);
        explained.is_beyond_end =
            ["InvalidRange", "Range Not Satisfiable", "object was only"].iter().any(|sign| text.contains(sign));
        Some(explained)
    }

    /// Returns the error as one of a source, which occurred while `doing` something.
    pub fn to_source_error(&self, doing: impl Into<String>) -> SourceError {
        if self.is_other_version {
            return SourceError::Changed;
        }
        SourceError::io(doing, &self.to_io_error())
    }

    /// Returns the error as one of the system.
    pub fn to_io_error(&self) -> io::Error {
        io::Error::new(self.kind, self.text.clone())
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// A sign in the text of an error, the kind that it stands for, and what to say.
type Known = (&'static [&'static str], io::ErrorKind, &'static str);

/// The kind of failures that say nothing of what is there. That somebody may not list or read something is an answer.
const NO_ANSWER: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// What is said where no credentials were found.
pub const NO_CREDENTIALS: &str = "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), \
    AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or GOOGLE_APPLICATION_CREDENTIALS; for public data \
    give --store-option anonymous=true";

/// The signs are codes that stores give, and texts of the libraries. The first that is found counts. A number alone is no
/// sign: ports and keys have numbers, too.
const KNOWN: &[Known] = &[
    (
        &["RequestTimeTooSkewed", "RequestExpired"],
        NO_ANSWER,
        "the clock of this machine and that of the store differ by more than some minutes; set the clock of this machine",
    ),
    (
        &[
            "169.254.169.254",
            "169.254.170.2",
            "metadata.google.internal",
            "missing field `AccessKeyId`",
            "missing field `access_token`",
            "/latest/api/token",
            "/latest/meta-data/iam/",
            "/computeMetadata/v1/",
            "MissingAccessKeyId",
            "MissingSecretAccessKey",
        ],
        NO_ANSWER,
        NO_CREDENTIALS,
    ),
    (
        &[
            "AuthorizationHeaderMalformed",
            "PermanentRedirect",
            "IllegalLocationConstraint",
            "IncorrectEndpoint",
            "redirect without LOCATION",
            "307 Temporary Redirect",
            "301 Moved Permanently",
        ],
        NO_ANSWER,
        "the bucket is in another region; set AWS_REGION to that of the bucket",
    ),
    (
        &["InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "InvalidAuthenticationInfo"],
        NO_ANSWER,
        "the store does not accept the credentials; check the key and the secret in the environment",
    ),
    (
        &["ExpiredToken", "TokenRefreshRequired"],
        NO_ANSWER,
        "the credentials have expired; get new ones and mount again",
    ),
    (
        &["NoSuchBucket", "ContainerNotFound"],
        io::ErrorKind::NotFound,
        "there is no such bucket or container; check its name, and that the endpoint is the right one",
    ),
    (
        &[
            "status 403",
            "status code: 403",
            "403 Forbidden",
            "AccessDenied",
            "AuthorizationPermissionMismatch",
            "PublicAccessNotPermitted",
        ],
        io::ErrorKind::PermissionDenied,
        "the store denies it (403); use credentials that may read it, or for public data --store-option anonymous=true",
    ),
    (
        &["status 401", "status code: 401", "401 Unauthorized", "NoAuthenticationInformation"],
        io::ErrorKind::PermissionDenied,
        "the store asks for credentials (401); set them in the environment",
    ),
    (
        &["invalid peer certificate", "certificate", "InvalidCertificate", "UnknownIssuer"],
        io::ErrorKind::ConnectionAborted,
        "the certificate of the store is not accepted (TLS); add its authority to those of this machine, or name it in \
         SSL_CERT_FILE",
    ),
    (
        &["InvalidContentType", "corrupt message", "wrong version number", "tls handshake eof"],
        io::ErrorKind::ConnectionAborted,
        "the store does not speak TLS there; give its endpoint with http:// and AWS_ALLOW_HTTP=true",
    ),
    (
        &["URL scheme is not allowed", "BadScheme"],
        io::ErrorKind::InvalidInput,
        "the endpoint is plain http://, which must be allowed: set AWS_ALLOW_HTTP=true, or give \
         --store-option allow_http=true",
    ),
    (
        &["dns error", "failed to lookup address", "Name or service not known", "Temporary failure in name resolution"],
        io::ErrorKind::HostUnreachable,
        "its host is not known; check the endpoint, and the network of this machine",
    ),
    (
        &["Connection refused"],
        io::ErrorKind::ConnectionRefused,
        "nothing answers at its endpoint (connection refused); check the address and the port",
    ),
    (
        &["Network is unreachable", "No route to host"],
        io::ErrorKind::NetworkUnreachable,
        "its host cannot be reached; check the network of this machine",
    ),
    (
        &["status 429", "status code: 429", "SlowDown", "429 Too Many Requests"],
        io::ErrorKind::ResourceBusy,
        "the store says that it gets too many requests; try again later",
    ),
    (
        &["Received non-partial response"],
        io::ErrorKind::Unsupported,
        "the server does not give parts of files (HTTP ranges), which volfs needs",
    ),
];

/// Returns whether a text is of a failure to get credentials from the service of a container, which can be anywhere.
fn is_of_container(text: &str) -> bool {
    let service = env::var("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    service.is_ok_and(|service| !service.is_empty() && text.contains(&service))
}

fn explain(error: &Error, text: &str) -> (io::ErrorKind, String) {
    if is_of_container(text) {
        return (NO_ANSWER, NO_CREDENTIALS.to_owned());
    }
    if let Some((_, kind, said)) = KNOWN.iter().find(|(signs, ..)| signs.iter().any(|sign| text.contains(sign))) {
        return (*kind, (*said).to_owned());
    }
    match http_kind(error) {
        Some(HttpErrorKind::Timeout) => {
            (io::ErrorKind::TimedOut, "it did not answer in time; is it overloaded, or the network slow?".to_owned())
        }
        Some(HttpErrorKind::Connect) => {
            (io::ErrorKind::ConnectionRefused, "no connection to it; check the endpoint and the network".to_owned())
        }
        Some(HttpErrorKind::Interrupted | HttpErrorKind::Request) => {
            (io::ErrorKind::ConnectionReset, "it broke off the connection".to_owned())
        }
        _ => match status_of(text) {
            Some(status) => (io::ErrorKind::ConnectionAborted, format!("it answers with an error ({status})")),
            None => (io::ErrorKind::ConnectionAborted, format!("it failed: {}", in_one_line(text))),
        },
    }
}

/// Returns the texts of an error and of what has caused it.
fn full_text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

fn http_kind(error: &Error) -> Option<HttpErrorKind> {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = cause {
        if let Some(http) = inner.downcast_ref::<HttpError>() {
            return Some(http.kind());
        }
        cause = inner.source();
    }
    None
}

/// Returns the status that an answer had, as in `500 Internal Server Error`.
fn status_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("status ")?;
    let status = rest.strip_prefix("code: ").unwrap_or(rest).split([':', '\n']).next()?;
    (status.len() < 64).then_some(status)
}

/// Returns a text in one line, without what may be a signature, and not longer than a line should be.
fn in_one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.split_once('?').map_or(word, |(before, _)| before));
    let mut line = words.collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(300) {
        line.truncate(at);
    }
    line
}

/// How long a store is asked again after failures that may pass.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Attempts after the first.
    pub retries: usize,
    /// No further attempt begins after this time.
    pub time: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> StoreError {
        StoreError::of(&Error::Generic { store: "S3", source: text.into() }).unwrap()
    }

    #[test]
    fn failures_are_explained_in_one_line_without_signatures() {
        for (text, says) in [
            ("<Code>RequestTimeTooSkewed</Code> 403", "clock"),
            ("error sending request: dns error: failed to lookup address", "host is not known"),
            ("Client error with status 400: <Code>AuthorizationHeaderMalformed</Code>", "AWS_REGION"),
            ("<Code>SignatureDoesNotMatch</Code> 403", "does not accept the credentials"),
            ("Server returned non-2xx status code: 403 Forbidden:", "403"),
            ("invalid peer certificate: UnknownIssuer", "TLS"),
            ("http://127.0.0.1:40123/b/survey-403.vds: Connection refused", "connection refused"),
            ("https://127.0.0.1:42901/b/429: corrupt message of type InvalidContentType", "does not speak TLS"),
            (
                "Error after 2 retries: Server returned non-2xx status code: 429 Too Many Requests: x",
                "too many requests",
            ),
            ("Server returned non-2xx status code: 418 I'm a teapot: <x/>", "(418 I'm a teapot)"),
            ("Server error with status 500 Internal Server Error: x", "(500 Internal Server Error)"),
            ("odd\nthings at https://host/x?sig=hunter2&se=1", "odd things at https://host/x"),
        ] {
            let said = generic(text).text;
            assert!(said.contains(says) && !said.contains('\n') && !said.contains("hunter2"), "{text}: {said}");
        }
    }

    #[test]
    fn an_absent_object_is_an_answer_and_an_absent_bucket_an_error() {
        let not_found = |text: &str| StoreError::of(&Error::NotFound { path: "k".into(), source: text.into() });
        assert_eq!(not_found("<Code>NoSuchKey</Code>"), None);
        assert_eq!(not_found("<Code>NoSuchBucket</Code>").unwrap().kind, io::ErrorKind::NotFound);
        for (text, is_answer) in [("<Code>ExpiredToken</Code> 403", false), ("403: <Code>AccessDenied</Code>", true)] {
            let failure = generic(text).to_source_error("cannot read it");
            assert_eq!(failure.is_failure_of_system(), !is_answer, "{text}");
        }
        assert!(generic("status 416 Range Not Satisfiable").is_beyond_end);
        // chunks of VDS have numbers for names
        for number in [401, 403, 416, 429] {
            let failed =
                generic(&format!("GET http://h/b/Dimensions_012LOD0/{number}: Server error with status 500: x"));
            assert!(!failed.is_beyond_end && failed.text.contains("500"), "{number}: {}", failed.text);
            assert!(failed.to_source_error("read").is_failure_of_system(), "{number}");
        }
        let other = StoreError::of(&Error::Precondition { path: "k".into(), source: "412".into() }).unwrap();
        assert_eq!(other.to_source_error("read"), SourceError::Changed);
    }
}
