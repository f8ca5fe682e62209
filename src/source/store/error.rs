//! What failed in a store, in words for people.
//!
//! Failures are told apart by the library's kinds, the status and the code of the answer, and the types of the errors
//! below; never by a text that a name of an object may be part of.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use rustls::Error as TlsError;
use thiserror::Error as ThisError;

use crate::source::SourceError;

#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
#[error("{text}")]
pub(super) struct StoreError {
    pub(super) text: String,
    pub(super) kind: ErrorKind,
    /// Whether the object is not of the version that was asked for.
    pub(super) is_other_version: bool,
    /// Whether the range that was asked for lies beyond the end of the object, as every range of an empty one does.
    pub(super) is_beyond_end: bool,
}

impl StoreError {
    pub(super) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind, is_other_version: false, is_beyond_end: false }
    }

    pub(super) fn replaced() -> Self {
        Self { is_other_version: true, ..Self::new(ErrorKind::InvalidData, "the object was replaced") }
    }

    /// Explains an error of a request. `None`: there is no such object.
    pub(super) fn from_library(error: &Error) -> Option<Self> {
        let refusal = causes(error).find_map(Refusal::parse);
        match error {
            Error::NotFound { .. } if refusal.as_ref().is_none_or(|refusal| !refusal.is_of_bucket()) => None,
            Error::Precondition { .. } => Some(Self::replaced()),
            _ => {
                let is_beyond_end = match &refusal {
                    Some(refusal) => refusal.status == 416 || refusal.code == "InvalidRange",
                    None => causes(error).any(|cause| cause.to_string().starts_with(BEYOND_END)),
                };
                let explained = refusal.map_or_else(|| explain(error), |refusal| refusal.explain());
                Some(Self { is_beyond_end, ..explained })
            }
        }
    }

    /// Returns the error as one of a source, which occurred while `doing` something.
    pub(super) fn to_source_error(&self, doing: impl Into<String>) -> SourceError {
        if self.is_other_version { SourceError::Changed } else { SourceError::io(doing, &self.clone().into()) }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        Self::new(error.kind, error.text)
    }
}

/// The kind of failures that say nothing of what is there. A refusal to list or read something is an answer.
const NO_ANSWER: ErrorKind = ErrorKind::ConnectionAborted;

pub(super) const NO_CREDENTIALS: &str = "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), \
    AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or GOOGLE_APPLICATION_CREDENTIALS; for public data \
    give --store-option anonymous=true";
const NO_TLS: &str = "the store does not speak TLS there; give its endpoint with http:// and AWS_ALLOW_HTTP=true";

/// The code that our HTTP client gives to the answer of a service of credentials that gives none.
pub(super) const NO_CREDENTIALS_CODE: &str = "volfs.NoCredentials";

/// How the library begins the texts of two of its errors whose types it keeps for itself: an answer with an error
/// status, and a range beyond the end of an object.
const REFUSED: &str = "Server returned non-2xx status code: ";
const BEYOND_END: &str = "Wanted range starting at ";

/// What fails in our HTTP client below the library.
#[derive(Clone, Debug, ThisError, PartialEq, Eq)]
pub(super) enum Failure {
    /// A service of credentials does not answer.
    #[error("{NO_CREDENTIALS}")]
    NoCredentials,
    /// The address is `http://`, which is not allowed.
    #[error(
        "the endpoint is plain http://, which must be allowed: set AWS_ALLOW_HTTP=true, or give \
         --store-option allow_http=true"
    )]
    PlainHttp,
    #[error("its host is not known; check the endpoint, and the network of this machine")]
    UnknownHost,
    /// A server sends all where a part was asked for.
    #[error("the server does not give parts of files (HTTP ranges), which volfs needs")]
    NoRanges,
    /// S3 names another region.
    #[error("the bucket is in another region; set AWS_REGION{}", match .0 {
        Some(region) => format!("={region}"),
        None => " to that of the bucket".to_owned(),
    })]
    OtherRegion(Option<String>),
    /// A redirect to another origin, of a request that may have a secret.
    #[error(
        "it redirects to {0}, and what may be secret is sent nowhere else than to the endpoint; if the store is there, \
         give that address as its endpoint"
    )]
    SecretRedirect(String),
    /// A redirect from `https://` to something else.
    #[error("it redirects from https:// to {0}, where everybody on the way could read and change what is sent")]
    InsecureRedirect(String),
    #[error("it redirects, and does not say where to")]
    RedirectToNowhere,
    #[error("it redirects again and again")]
    TooManyRedirects,
    #[error("its answer is longer than any list of names; is its endpoint that of an object store?")]
    EndlessText,
}

#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    status: u16,
    reason: String,
    /// The code in the body or the headers; empty if there is none. See [`super::http`].
    code: String,
}

impl Refusal {
    fn parse(error: &(dyn StdError + 'static)) -> Option<Self> {
        let text = error.to_string();
        let (status, code) = text.strip_prefix(REFUSED)?.split_once(':')?;
        let (number, reason) = status.split_once(' ').unwrap_or((status, ""));
        Some(Self { status: number.parse().ok()?, reason: reason.to_owned(), code: code.trim().to_owned() })
    }

    /// Returns whether it is the bucket or container that is not there.
    fn is_of_bucket(&self) -> bool {
        matches!(self.code.as_str(), "NoSuchBucket" | "ContainerNotFound")
    }

    fn explain(&self) -> StoreError {
        let (kind, text) = match (self.code.as_str(), self.status) {
            (NO_CREDENTIALS_CODE, _) => (NO_ANSWER, NO_CREDENTIALS),
            ("RequestTimeTooSkewed" | "RequestExpired", _) => (
                NO_ANSWER,
                "the clock of this machine and that of the store differ by more than some minutes; set the clock of this \
                 machine",
            ),
            (
                "AuthorizationHeaderMalformed"
                | "PermanentRedirect"
                | "IllegalLocationConstraintException"
                | "IncorrectEndpoint",
                _,
            ) => (NO_ANSWER, "the bucket is in another region; set AWS_REGION to that of the bucket"),
            (
                "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AuthenticationFailed" | "InvalidAuthenticationInfo",
                _,
            ) => (
                NO_ANSWER,
                "the store does not accept the credentials; check the key and the secret in the environment",
            ),
            ("ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired", _) => {
                (NO_ANSWER, "the credentials have expired; get new ones and mount again")
            }
            _ if self.is_of_bucket() => (
                ErrorKind::NotFound,
                "there is no such bucket or container; check its name, and that the endpoint is the right one",
            ),
            ("NoAuthenticationInformation", _) | (_, 401) => {
                (ErrorKind::PermissionDenied, "the store asks for credentials (401); set them in the environment")
            }
            ("AccessDenied" | "AuthorizationPermissionMismatch" | "PublicAccessNotPermitted", _) | (_, 403) => (
                ErrorKind::PermissionDenied,
                "the store denies it (403); use credentials that may read it, or for public data --store-option \
                 anonymous=true",
            ),
            ("SlowDown" | "ServerBusy", _) | (_, 429) => {
                (ErrorKind::ResourceBusy, "the store says that it gets too many requests; try again later")
            }
            _ => {
                let status = format!("{} {}", self.status, self.reason);
                return StoreError::new(NO_ANSWER, format!("it answers with an error ({})", status.trim()));
            }
        };
        StoreError::new(kind, text)
    }
}

/// Explains an error that is not an answer: what is below tells more than what is above.
fn explain(error: &Error) -> StoreError {
    let explained = causes(error).filter_map(explain_cause).min_by_key(|(rank, _)| *rank);
    explained.map(|(_, error)| error).unwrap_or_else(|| {
        let mut texts: Vec<String> = Vec::new();
        for text in causes(error).map(ToString::to_string) {
            // most errors repeat their cause
            if !texts.iter().any(|before| before.contains(&text)) {
                texts.push(text);
            }
        }
        StoreError::new(NO_ANSWER, format!("it failed: {}", in_one_line(&texts.join(": "))))
    })
}

/// Explains one error of a chain. Of several explanations the one of the lowest rank counts.
fn explain_cause(cause: &(dyn StdError + 'static)) -> Option<(u8, StoreError)> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        let kind = match failure {
            Failure::PlainHttp => ErrorKind::InvalidInput,
            Failure::UnknownHost => ErrorKind::HostUnreachable,
            Failure::NoRanges => ErrorKind::Unsupported,
            _ => NO_ANSWER,
        };
        return Some((0, StoreError::new(kind, failure.to_string())));
    }
    let (rank, kind, text) = if let Some(error) = cause.downcast_ref::<TlsError>() {
        match error {
            TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented | TlsError::UnsupportedNameType => (
                1,
                NO_ANSWER,
                "the certificate of the store is not accepted (TLS); add its authority to those of this machine, or name \
                 it in SSL_CERT_FILE",
            ),
            TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => (1, NO_ANSWER, NO_TLS),
            _ => return None,
        }
    } else if let Some(error) = cause.downcast_ref::<io::Error>() {
        let text = match error.kind() {
            ErrorKind::ConnectionRefused => {
                "nothing answers at its endpoint (connection refused); check the address and the port"
            }
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                "its host cannot be reached; check the network of this machine"
            }
            _ => return None,
        };
        (2, error.kind(), text)
    } else {
        let error = cause.downcast_ref::<HttpError>()?;
        let is_end = |cause: &(dyn StdError + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof)
        };
        let (kind, text) = match error.kind() {
            HttpErrorKind::Timeout => {
                (ErrorKind::TimedOut, "it did not answer in time; is it overloaded, or the network slow?")
            }
            // it ends while both agree on ciphers
            HttpErrorKind::Connect if causes(error).any(is_end) => (NO_ANSWER, NO_TLS),
            HttpErrorKind::Connect => {
                (ErrorKind::ConnectionRefused, "no connection to it; check the endpoint and the network")
            }
            HttpErrorKind::Interrupted | HttpErrorKind::Request => {
                (ErrorKind::ConnectionReset, "it broke off the connection")
            }
            // only services of credentials speak JSON
            HttpErrorKind::Decode if causes(error).any(|cause| cause.is::<serde_json::Error>()) => {
                (NO_ANSWER, NO_CREDENTIALS)
            }
            _ => return None,
        };
        (3, kind, text)
    };
    Some((rank, StoreError::new(kind, text)))
}

/// Returns an error and what has caused it, from the top down.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // an error of the system hides the one that it was made of
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map_or_else(|| error.source(), |inner| Some(inner as &(dyn StdError + 'static)))
    })
}

/// Returns a text in one line, without what may be a signature, and not longer than a line should be.
fn in_one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.split_once('?').map_or(word, |(before, _)| before));
    words.collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> StoreError {
        StoreError::from_library(&Error::Generic { store: "S3", source: source.into() }).unwrap()
    }

    /// An answer, as the library makes a text of it.
    fn refused(status: &str, code: &str) -> Box<dyn StdError + Send + Sync> {
        format!("{REFUSED}{status}: {code}").into()
    }

    fn transport(kind: HttpErrorKind, error: impl StdError + Send + Sync + 'static) -> HttpError {
        HttpError::new(kind, error)
    }

    #[test]
    fn answers_are_told_apart_by_status_and_code() {
        for (status, code, says) in [
            ("403 Forbidden", "RequestTimeTooSkewed", "clock"),
            ("400 Bad Request", "AuthorizationHeaderMalformed", "AWS_REGION"),
            ("403 Forbidden", "SignatureDoesNotMatch", "does not accept the credentials"),
            ("403 Forbidden", "", "denies it (403)"),
            ("401 Unauthorized", "", "asks for credentials"),
            ("429 Too Many Requests", "", "too many requests"),
            ("503 Service Unavailable", "SlowDown", "too many requests"),
            ("404 Not Found", NO_CREDENTIALS_CODE, "no credentials"),
            ("418 I'm a teapot", "", "(418 I'm a teapot)"),
            ("500 Internal Server Error", "InternalError", "(500 Internal Server Error)"),
        ] {
            let said = generic(refused(status, code));
            assert!(said.text.contains(says) && !said.is_beyond_end, "{status} {code}: {}", said.text);
        }
        assert!(generic(refused("416 Range Not Satisfiable", "")).is_beyond_end);
        assert!(generic(format!("{BEYOND_END}7, but object was only 3 bytes long")).is_beyond_end);
    }

    #[test]
    fn what_is_no_answer_is_told_apart_by_types() {
        use HttpErrorKind::{Connect, Decode, Interrupted, Timeout};
        let tls = |error: TlsError| io::Error::new(ErrorKind::InvalidData, error);
        let unknown = TlsError::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let plain = TlsError::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let no_json = serde_json::from_str::<u8>("{").unwrap_err();
        for (error, says) in [
            (transport(Connect, Failure::UnknownHost), "host is not known"),
            (transport(Connect, io::Error::from(ErrorKind::ConnectionRefused)), "connection refused"),
            (transport(Connect, io::Error::from(ErrorKind::UnexpectedEof)), "does not speak TLS"),
            (transport(Connect, io::Error::from(ErrorKind::NetworkUnreachable)), "cannot be reached"),
            (transport(Connect, tls(unknown)), "SSL_CERT_FILE"),
            (transport(Connect, tls(plain)), "does not speak TLS"),
            (transport(Connect, io::Error::other("odd")), "no connection"),
            (transport(Timeout, io::Error::other("odd")), "in time"),
            (transport(Interrupted, io::Error::other("odd")), "broke off"),
            (transport(Decode, no_json), "no credentials"),
        ] {
            let text = format!("{error:?}");
            assert!(generic(error).text.contains(says), "{text}");
        }
        let said = generic("odd\nthings at https://host/x?sig=hunter2&se=1").text;
        assert_eq!(said, "it failed: Generic S3 error: odd things at https://host/x");
    }

    #[test]
    fn names_of_objects_are_no_signs() {
        let names = ["certificates/AccessDenied.zgy", "NoSuchBucket", "InvalidRange/416", "http://169.254.169.254/x"];
        for name in names {
            let text = format!("Error performing GET https://h/b/{name} in 1ms - {REFUSED}500 Internal Server Error: ");
            let said = generic(text);
            assert!(!said.is_beyond_end && said.text.starts_with("it failed"), "{name}: {}", said.text);
            let absent = Error::NotFound { path: name.into(), source: refused("404 Not Found", "NoSuchKey") };
            assert_eq!(StoreError::from_library(&absent), None, "{name}");
        }
    }

    #[test]
    fn an_absent_object_is_an_answer_and_an_absent_bucket_an_error() {
        let not_found = |code: &str| {
            StoreError::from_library(&Error::NotFound { path: "k".into(), source: refused("404 Not Found", code) })
        };
        assert_eq!((not_found("NoSuchKey"), not_found("")), (None, None));
        assert_eq!(not_found("NoSuchBucket").unwrap().kind, ErrorKind::NotFound);
        for (code, is_answer) in [("ExpiredToken", false), ("AccessDenied", true)] {
            let failure = generic(refused("403 Forbidden", code)).to_source_error("cannot read it");
            assert_eq!(failure.is_failure_of_system(), !is_answer, "{code}");
        }
        let other = StoreError::from_library(&Error::Precondition { path: "k".into(), source: "412".into() }).unwrap();
        assert_eq!(other.to_source_error("read"), SourceError::Changed);
    }
}
