//! Responses: their bodies and types, and problems as a status and one line of text.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::{Request, StatusCode};
use thiserror::Error;

use crate::fs::FsError;
use crate::logging::one_line;

/// A request without its body, which this server never reads.
pub(super) type Head = Request<()>;
pub(super) type Response = hyper::Response<Body>;

pub(super) enum Body {
    Whole(Bytes),
    /// Pieces that are made while they are sent. An error breaks the connection off, so that the client knows.
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::Whole(text.into())
    }
}

impl Body {
    /// Makes a body whose pieces `next` returns, each with the state for the one after it, if there is one.
    pub(super) fn stream<S, F>(state: S, mut next: impl FnMut(S) -> F + Send + 'static) -> Self
    where
        S: Send + 'static,
        F: Future<Output = Option<(io::Result<Bytes>, Option<S>)>> + Send + 'static,
    {
        let pieces = unfold(Some(state), move |state| {
            let piece = state.map(&mut next);
            async { piece?.await }
        });
        Self::Stream(pieces.fuse().boxed())
    }

    /// Returns the number of bytes, if that is known.
    pub(super) fn len(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Stream(_) => None,
        }
    }

    /// Returns the next piece; `None` at the end.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self {
            Self::Whole(bytes) => Poll::Ready(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()).map(Ok)),
            Self::Stream(pieces) => pieces.poll_next_unpin(context),
        }
    }
}

pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Samples and other bytes.
const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const JSON: &str = "application/json";
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Returns the media type of a file by its name.
pub(super) fn content_type(name: &OsStr) -> &'static str {
    match Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default() {
        "json" => JSON,
        "png" => "image/png",
        "tif" => "image/tiff",
        "nc" => "application/x-netcdf",
        "geojson" => "application/geo+json",
        "csv" => "text/csv; charset=utf-8",
        "txt" | "hdr" | "nhdr" | "mhd" => TEXT,
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ if name == "log" => TEXT,
        _ => BYTES,
    }
}

/// Returns whether bytes of a type become much fewer when they are compressed.
pub(super) fn is_text(content_type: &str) -> bool {
    content_type.starts_with(JSON) || content_type.starts_with("text/")
}

/// Why a request fails.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum Problem {
    #[error("bad request: {0}")]
    Bad(String),
    #[error("not found")]
    NotFound,
    #[error(
        "this server is for the user who started it; that user can start it with --allow-user NAME for you, or with \
         --allow-other for all users of this machine"
    )]
    OtherUser,
    #[error(
        "this server is for the user who started it, and cannot tell whose connection this is; start it with --listen \
         unix:PATH, with --token-file FILE, or with --allow-other for all users of this machine"
    )]
    UnknownUser,
    #[error(
        "this server needs a token: open the address that it printed, or send the header Authorization: Bearer TOKEN, or \
         put the token before the path, as in /TOKEN/"
    )]
    Token,
    #[error("the server may not read this")]
    Denied,
    #[error("this server is read-only: GET and HEAD")]
    Method,
    #[error("the file is not the one that the request is for")]
    Precondition,
    /// None of the requested ranges lies in the file, which has this size.
    #[error("no such range; the file has {0} bytes")]
    Range(u64),
    #[error("this server is not called that; start it with --allow-host NAME to allow it")]
    Host,
    #[error("too many requests; try again")]
    Busy,
    #[error("the source is being changed; try again")]
    Changing,
    #[error("out of memory; try again")]
    NoMemory,
    #[error("the source does not answer; try again")]
    NoAnswer,
    #[error("the data cannot be read; /.volfs/log says why")]
    Unreadable,
    /// Samples cannot be read: the brick, and why.
    #[error("the data cannot be read: {0}")]
    Samples(String),
}

impl Problem {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Denied | Self::OtherUser | Self::UnknownUser => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Precondition => StatusCode::PRECONDITION_FAILED,
            Self::Range(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Busy | Self::Changing | Self::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoAnswer => StatusCode::GATEWAY_TIMEOUT,
            Self::Unreadable | Self::Samples(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(super) fn response(&self) -> Response {
        let mut response = Response::new(format!("{self}\n").into());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        set(headers, CONTENT_TYPE, TEXT);
        set(headers, CACHE_CONTROL, "no-store");
        match self {
            Self::Method => set(headers, ALLOW, "GET, HEAD"),
            Self::Token => set(headers, WWW_AUTHENTICATE, "Bearer"),
            Self::Range(size) => set(headers, CONTENT_RANGE, &format!("bytes */{size}")),
            Self::Busy | Self::Changing | Self::NoMemory | Self::NoAnswer => set(headers, RETRY_AFTER, "1"),
            _ => {}
        }
        response
    }
}

impl From<FsError> for Problem {
    fn from(error: FsError) -> Self {
        match error {
            FsError::NotFound
            | FsError::NameTooLong
            | FsError::NotAFolder
            | FsError::NoAttribute
            | FsError::AttributeNotSupported => Self::NotFound,
            FsError::Stale => Self::Changing,
            FsError::Denied => Self::Denied,
            FsError::ReadOnly => Self::Method,
            FsError::NoMemory => Self::NoMemory,
            FsError::WouldBlock | FsError::IsAFolder | FsError::BadHandle | FsError::Io => Self::Unreadable,
            FsError::Samples(reason) => Self::Samples(one_line(&reason).into_owned()),
        }
    }
}

impl From<Problem> for io::Error {
    fn from(problem: Problem) -> Self {
        Self::other(problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_status_and_one_line() {
        let problems = [
            (Problem::Bad("no".into()), 400),
            (Problem::from(FsError::NotAFolder), 404),
            (Problem::from(FsError::Denied), 403),
            (Problem::OtherUser, 403),
            (Problem::UnknownUser, 403),
            (Problem::Token, 401),
            (Problem::Method, 405),
            (Problem::Range(7), 416),
            (Problem::Host, 421),
            (Problem::from(FsError::Io), 500),
            (Problem::from(FsError::Stale), 503),
            (Problem::NoAnswer, 504),
        ];
        for (problem, status) in problems {
            assert_eq!(problem.response().status(), status, "{problem}");
            assert!(!problem.to_string().contains('\n'));
        }
        assert_eq!(Problem::Token.response().headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(Problem::Method.response().headers()[ALLOW], "GET, HEAD");
        assert_eq!(Problem::Range(7).response().headers()[CONTENT_RANGE], "bytes */7");
    }

    #[test]
    fn samples_are_bytes_and_headers_text() {
        let of = |name: &str| content_type(OsStr::new(name));
        assert_eq!(of("lod0.raw"), BYTES);
        assert_eq!(of("0"), BYTES);
        assert_eq!(of("lod0.zarr.json"), JSON);
        assert_eq!(of("preview.png"), "image/png");
        assert!(is_text(of("log")) && is_text(of("lod0.mhd")) && is_text(of("zarr.json")) && !is_text(of("lod0.npy")));
    }
}
