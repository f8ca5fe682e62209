//! Why a request gets no file, as a status and one line of text.

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use thiserror::Error;

use crate::fs::FsError;

/// Why a request fails.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The path or the query cannot be understood.
    #[error("bad request: {0}")]
    Bad(String),
    /// There is no such file or folder.
    #[error("not found")]
    NotFound,
    /// The connection is of a user of this machine who may not use the server.
    #[error(
        "this server is for the user who started it; that user can start it with --allow-user NAME for you, or with \
         --allow-other for all users of this machine"
    )]
    OtherUser,
    /// Nothing says which user of this machine the connection is of.
    #[error(
        "this server is for the user who started it, and cannot tell whose connection this is; start it with --listen \
         unix:PATH, with --token-file FILE, or with --allow-other for all users of this machine"
    )]
    UnknownUser,
    /// The request does not carry the token.
    #[error(
        "this server needs a token: open the address that it printed, or send the header Authorization: Bearer TOKEN, or \
         put the token before the path, as in /TOKEN/"
    )]
    Token,
    /// The server may not read the source.
    #[error("the server may not read this")]
    Denied,
    /// Files can only be read.
    #[error("this server is read-only: GET and HEAD")]
    Method,
    /// A precondition of the request does not hold.
    #[error("the file is not the one that the request is for")]
    Precondition,
    /// None of the requested ranges lies in the file, which has this size.
    #[error("no such range; the file has {0} bytes")]
    Range(u64),
    /// The name that the client uses for this server is not one of its own.
    #[error("this server is not called that; start it with --allow-host NAME to allow it")]
    Host,
    /// Too many requests are in progress.
    #[error("too many requests; try again")]
    Busy,
    /// The source changes all the time.
    #[error("the source is being changed; try again")]
    Changing,
    /// There is no memory for the response.
    #[error("out of memory; try again")]
    NoMemory,
    /// The source does not answer.
    #[error("the source does not answer; try again")]
    NoAnswer,
    /// The content cannot be read.
    #[error("the data cannot be read; /.volfs/log says why")]
    Unreadable,
}

impl Problem {
    fn status(&self) -> StatusCode {
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
            Self::Unreadable => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the response.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(format!("{self}\n")));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self {
            Self::Method => drop(headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"))),
            Self::Token => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Self::Range(size) => {
                if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
                    headers.insert(CONTENT_RANGE, value);
                }
            }
            Self::Busy | Self::Changing | Self::NoMemory | Self::NoAnswer => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
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
        }
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
}
