//! One request, from its path to its response.

use std::ffi::OsString;
use std::future::poll_fn;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::{Hosts, Proof};
use super::connection::{RequestSlot, Turns};
use super::file::Files;
use super::opendap::{Asked, Levels};
use super::page::{self, SECURITY_POLICY, prefers_html, quality};
use super::peer::Peer;
use super::response::{Body, HTML, Head, Problem, Response, is_text, set};
use super::tree::{TreePath, find};
use super::{ServeOptions, folder, origin_of};
use crate::fs::{DOT_VOLFS, Volfs};

/// Fewer bytes are not compressed.
const COMPRESSED_FROM: u64 = 1024;
/// Responses that are compressed at a time, each of which takes a third of a MiB until its client has taken it.
const ENCODERS: usize = 32;
/// Bytes that are compressed at a time.
const ENCODED_PIECE: usize = 64 << 10;
/// For how many seconds a browser need not ask again whether an origin is allowed.
const PREFLIGHT_AGE: &str = "3600";
/// The headers that pages of other origins may send and read.
const ALLOWED_HEADERS: &str =
    "range,if-match,if-none-match,if-modified-since,if-unmodified-since,if-range,authorization";
const EXPOSED_HEADERS: &str =
    "accept-ranges,content-encoding,content-length,content-range,etag,last-modified,volfs-version";
/// The file of `.volfs` with the state of this server for Prometheus, and its type.
const METRICS: &str = "metrics";
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What all requests share.
pub(super) struct App {
    pub(super) options: ServeOptions,
    /// As many turns as there may be requests in progress.
    pub(super) turns: Arc<Turns>,
    files: Files,
    levels: Levels,
    hosts: Hosts,
    /// The other origins whose pages may read responses; `*` is all.
    origins: Vec<HeaderValue>,
    encoders: Arc<Semaphore>,
}

impl App {
    pub(super) fn new(fs: Arc<Volfs>, options: ServeOptions) -> Self {
        let of_viewer = options.neuroglancer.as_deref().and_then(origin_of);
        let files = Files::new(fs);
        let named = options.allow_origins.iter().cloned().chain(of_viewer);
        Self {
            origins: named.filter_map(|origin| origin.parse().ok()).collect(),
            turns: Turns::new(options.max_requests),
            levels: Levels::new(&files.fs, &files.budget),
            files,
            hosts: Hosts::new(&options.listen, &options.allow_hosts),
            encoders: Arc::new(Semaphore::new(ENCODERS)),
            options,
        }
    }

    pub(super) async fn respond(&self, mut request: Head, peer: &Peer, slot: &RequestSlot) -> Response {
        let origin = request.headers().get(ORIGIN).cloned();
        let is_preflight = request.method() == Method::OPTIONS && !self.origins.is_empty();
        let mut response = match is_preflight {
            true => Response::default(),
            false => self.answer(&mut request, peer, slot).await,
        };
        self.compress(request.headers(), &mut response);
        self.add_cross_origin(origin.as_ref(), is_preflight, response.headers_mut());
        if request.method() == Method::HEAD {
            let body = std::mem::take(response.body_mut());
            // that of the response which the client has is not known here
            let has_length = response.status() == StatusCode::NOT_MODIFIED;
            let has_length = has_length || response.headers().contains_key(CONTENT_LENGTH);
            if let (Some(length), false) = (body.len(), has_length) {
                set(response.headers_mut(), CONTENT_LENGTH, &length.to_string());
            }
        }
        response
    }

    async fn answer(&self, request: &mut Head, peer: &Peer, slot: &RequestSlot) -> Response {
        let entered = self.enter(request, peer);
        let path = request.uri().path();
        let loggable = match &self.options.access.token {
            None => path.to_owned(),
            Some(token) if entered.is_ok() => token.hidden_in(path),
            // it may have another server's token, or this one's with a typing error
            Some(_) => "(not shown)".to_owned(),
        };
        let (answered, cookie) = match entered {
            Ok((proof, cookie)) => (self.find(request, proof, slot).await, cookie),
            Err(problem) => (Err(problem), None),
        };
        let mut response = answered.unwrap_or_else(|problem| problem.response());
        log::debug!("{} {loggable}: {}", request.method(), response.status());
        let headers = response.headers_mut();
        set(headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
        if headers.get(CONTENT_TYPE).is_some_and(|kind| kind == HTML) {
            set(headers, CONTENT_SECURITY_POLICY, SECURITY_POLICY);
            set(headers, REFERRER_POLICY, "no-referrer");
            headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        }
        response
    }

    /// Checks the name of this server and the token, and takes the token out of the path. Returns how it came, and a
    /// cookie that may be set.
    fn enter(&self, request: &mut Head, peer: &Peer) -> Result<(Proof, Option<HeaderValue>), Problem> {
        if !self.hosts.allow(request) {
            return Err(Problem::Host);
        }
        let Some(token) = &self.options.access.token else { return Ok((Proof::Unneeded, None)) };
        // by the address that the client uses, which is gone once the path is another
        let cookie = token.cookie(request, peer);
        let proof = token.prove(request, peer)?;
        Ok((proof, cookie.filter(|_| proof == Proof::Path)))
    }

    async fn find(&self, request: &Head, proof: Proof, slot: &RequestSlot) -> Result<Response, Problem> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Problem::Method);
        }
        let path = match TreePath::read(request.uri().path()) {
            Err(Problem::NotFound) => return Ok(not_found(request, &[])),
            path => path?,
        };
        if let Some(redirect) = self.onto_token(request, proof, &path) {
            return Ok(redirect);
        }
        if !slot.take_turn().await {
            return Err(Problem::Busy);
        }
        if let Some(answer) = page::answer(request, &path) {
            return answer;
        }
        if !path.folder && path.names == [DOT_VOLFS, METRICS] {
            return Ok(self.metrics());
        }
        if let Some((name, folder)) = path.names.split_last()
            && let Some(asked) = Asked::read(name).filter(|_| !path.folder)
            && let Some(answer) = self.levels.answer(asked, request, folder).await
        {
            return Ok(answer);
        }
        let found = match find(&self.files.fs, &path.names).await {
            Err((Problem::NotFound, folders)) => {
                return Ok(not_found(request, path.names.get(..folders).unwrap_or_default()));
            }
            found => found.map_err(|(problem, _)| problem)?,
        };
        match (found.folder, path.folder) {
            (true, _) => {
                let neuroglancer = self.options.neuroglancer.as_deref();
                folder::answer(&self.files.fs, neuroglancer, request, &path, found).await
            }
            // the path of a folder leads to a file
            (false, true) => Ok(not_found(request, path.names.split_last().map_or(&[], |(_, above)| above))),
            (false, false) => self.files.answer(request, &path, found).await,
        }
    }

    /// Answers what Prometheus asks for.
    fn metrics(&self) -> Response {
        let mut response = Response::new(self.files.fs.metrics().into());
        set(response.headers_mut(), CONTENT_TYPE, METRICS_TYPE);
        set(response.headers_mut(), CACHE_CONTROL, "no-store");
        response
    }

    /// Returns the way to the same page below the token, so that its links and lines to copy carry it on; `None` if it
    /// is there already, or is no page.
    fn onto_token(&self, request: &Head, proof: Proof, path: &TreePath) -> Option<Response> {
        let token = self.options.access.token.as_ref()?;
        let is_page = proof == Proof::Cookie && path.folder && prefers_html(request.headers());
        if !is_page && proof != Proof::BarePath {
            return None;
        }
        let mut response = Response::default();
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        set(response.headers_mut(), LOCATION, &token.way_below(&path.names, request.uri().query()));
        set(response.headers_mut(), CACHE_CONTROL, "no-store");
        Some(response)
    }

    /// Says which other origins may read or embed a response. A request to embed that says no origin (`<img>` without
    /// `crossorigin`) may be of any page, so it is refused like an origin that is not named.
    fn add_cross_origin(&self, origin: Option<&HeaderValue>, is_preflight: bool, headers: &mut HeaderMap) {
        let any = self.origins.iter().find(|allowed| *allowed == "*");
        let allowed = any.or_else(|| self.origins.iter().find(|allowed| Some(*allowed) == origin));
        set(headers, RESOURCE_POLICY, if allowed.is_some() { "cross-origin" } else { "same-origin" });
        if self.origins.is_empty() {
            return;
        }
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Some(allowed) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed.clone());
        }
        if is_preflight {
            set(headers, ACCESS_CONTROL_ALLOW_METHODS, "GET,HEAD");
            set(headers, ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
            set(headers, ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
        } else {
            set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }

    /// Compresses text that is sent as a whole for clients that accept that, if an encoder is free. Its entity tag
    /// becomes weak: its bytes are others than those of the file.
    fn compress(&self, request: &HeaderMap, response: &mut Response) {
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok()).or(response.body().len());
        let is_worth = response.status() == StatusCode::OK
            && text(CONTENT_TYPE).is_some_and(is_text)
            && length.is_none_or(|n| n >= COMPRESSED_FROM);
        if !is_worth {
            return;
        }
        let weak = text(ETAG).filter(|tag| tag.starts_with('"')).map(|tag| format!("W/{tag}"));
        response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
        let gzip = quality(request, ACCEPT_ENCODING, "gzip");
        if gzip <= 0.0 || gzip < quality(request, ACCEPT_ENCODING, "identity") {
            return;
        }
        let Ok(permit) = Arc::clone(&self.encoders).try_acquire_owned() else { return };
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.remove(ACCEPT_RANGES);
        set(headers, CONTENT_ENCODING, "gzip");
        if let Some(weak) = weak {
            set(headers, ETAG, &weak);
        }
        let body = std::mem::take(response.body_mut());
        *response.body_mut() = compressed(body, permit);
    }
}

/// Returns a body compressed. The permit of its encoder is held until it has ended.
fn compressed(body: Body, permit: OwnedSemaphorePermit) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    Body::stream((body, Bytes::new(), encoder, permit), |(mut body, mut piece, mut encoder, permit)| async move {
        loop {
            if piece.is_empty() {
                piece = match poll_fn(|context| body.poll_next(context)).await {
                    Some(Ok(piece)) => piece,
                    Some(error) => return Some((error, None)),
                    None => return Some((encoder.finish().map(Bytes::from), None)),
                };
            }
            let part = piece.split_to(piece.len().min(ENCODED_PIECE));
            if let Err(error) = encoder.write_all(&part) {
                return Some((Err(error), None));
            }
            let packed = std::mem::take(encoder.get_mut());
            if !packed.is_empty() {
                return Some((Ok(packed.into()), Some((body, piece, encoder, permit))));
            }
        }
    })
}

/// Says that there is nothing at a path, and which folder above it is there.
fn not_found(request: &Head, above: &[OsString]) -> Response {
    let slashes = request.uri().path().bytes().filter(|byte| *byte == b'/').count();
    let up = "../".repeat(slashes.saturating_sub(above.len() + 1));
    let mut response = Problem::NotFound.response();
    if prefers_html(request.headers()) {
        *response.body_mut() = page::not_found(above, &up).into();
        set(response.headers_mut(), CONTENT_TYPE, HTML);
    } else {
        let shown = page::shown_path(above);
        *response.body_mut() = format!("{}; the folder above that is there: {shown}\n", Problem::NotFound).into();
    }
    set(response.headers_mut(), VARY, "accept");
    response
}
