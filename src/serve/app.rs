//! One request, from its path to its response.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, ORIGIN, RANGE,
    REFERRER_POLICY, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use axum::middleware::{Next, from_fn_with_state, map_response, map_response_with_state};
use futures_util::stream::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::accept::prefers_html;
use super::access::{Proof, below_token};
use super::app_state::App;
use super::calls::find_or_nearest;
use super::connection::RequestSlot;
use super::content_types::{HTML, is_text};
use super::file::set;
use super::html::{self, CONTENT_SECURITY_POLICY};
use super::options::origin_of;
use super::paths::TreePath;
use super::peer::Peer;
use super::problem::Problem;
use super::{file, folder, page};

/// Fewer bytes are not compressed.
const COMPRESSED_FROM: u64 = 1024;
/// Responses that are compressed at a time, each of which takes a third of a MiB until its client has taken it.
const ENCODERS: usize = 32;
/// How long a browser need not ask again whether an origin is allowed.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3600);

impl App {
    /// Returns the service that answers requests.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let compression =
            CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest).compress_when(has_encoder);
        let encoders = Arc::new(Semaphore::new(ENCODERS));
        let router = Router::new().fallback(answer).with_state(Arc::clone(self));
        let router = router.layer(map_response_with_state(encoders, take_encoder)).layer(compression);
        let router = router.layer(map_response(finish_compressed));
        let origins = self.origins();
        let router = match self.cors(&origins) {
            Some(cors) => router.layer(cors),
            None => router,
        };
        router.layer(from_fn_with_state(origins, resource_policy))
    }

    /// Returns the other origins whose pages may read responses; `*` is all.
    fn origins(&self) -> Arc<[HeaderValue]> {
        let of_viewer = self.options.neuroglancer.as_deref().and_then(origin_of);
        let named = self.options.allow_origins.iter().cloned().chain(of_viewer);
        named.filter_map(|origin| origin.parse().ok()).collect()
    }

    fn cors(&self, origins: &[HeaderValue]) -> Option<CorsLayer> {
        let origin = match origins.iter().any(|origin| origin == "*") {
            _ if origins.is_empty() => return None,
            true => AllowOrigin::any(),
            false => AllowOrigin::list(origins.iter().cloned()),
        };
        let conditions =
            [RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, AUTHORIZATION];
        let exposed = [ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED];
        let cors = CorsLayer::new().allow_origin(origin).allow_methods([Method::GET, Method::HEAD]);
        Some(cors.allow_headers(conditions).expose_headers(exposed).max_age(PREFLIGHT_AGE))
    }

    /// Checks the name of this server and the token, and takes the token out of the path. Returns how it came, and a
    /// cookie that may be set.
    fn enter(&self, request: &mut Parts) -> Result<(Proof, Option<HeaderValue>), Problem> {
        if !self.hosts.allow(request) {
            return Err(Problem::Host);
        }
        let Some(token) = &self.options.access.token else { return Ok((Proof::Unneeded, None)) };
        let unknown = Peer { user: None, address: None, is_local: true };
        let peer = request.extensions.get::<Peer>().copied().unwrap_or(unknown);
        // as the client calls this server, which is no longer there once the path is another
        let cookie = token.cookie(request, &peer);
        let proof = token.prove(request, &peer)?;
        Ok((proof, cookie.filter(|_| proof == Proof::Path)))
    }

    /// Returns the way to the same page below the token, so that its links and lines to copy carry it on; `None` if it
    /// is there already, or is no page.
    fn onto_token(&self, request: &Parts, proof: Proof, path: &TreePath) -> Option<Response<Body>> {
        let token = self.options.access.token.as_ref()?;
        let is_page = proof == Proof::Cookie && path.folder && prefers_html(&request.headers);
        if !is_page && proof != Proof::BarePath {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        set(response.headers_mut(), LOCATION, &below_token(token, &path.names, request.uri.query()));
        set(response.headers_mut(), CACHE_CONTROL, "no-store");
        Some(response)
    }

    /// Returns the path of a request without the token.
    fn loggable_path<'a>(&self, request: &'a Parts, is_let_in: bool) -> Cow<'a, str> {
        match &self.options.access.token {
            None => request.uri.path().into(),
            Some(token) if is_let_in => token.hidden_in(request.uri.path()).into(),
            // it may have another server's token, or this one's with a typing error
            Some(_) => "(not shown)".into(),
        }
    }

    async fn respond(&self, request: &Parts, proof: Proof) -> Result<Response<Body>, Problem> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Problem::Method);
        }
        let path = match TreePath::read(request.uri.path()) {
            Err(Problem::NotFound) => return Ok(not_found(request, &[])),
            path => path?,
        };
        if let Some(redirect) = self.onto_token(request, proof, &path) {
            return Ok(redirect);
        }
        if let Some(slot) = request.extensions.get::<RequestSlot>()
            && !slot.has_turn().await
        {
            return Err(Problem::Busy);
        }
        if let Some(answer) = page::answer(request, &path) {
            return answer;
        }
        let found = match find_or_nearest(&self.fs, &path.names).await {
            Err((Problem::NotFound, folders)) => {
                return Ok(not_found(request, path.names.get(..folders).unwrap_or_default()));
            }
            found => found.map_err(|(problem, _)| problem)?,
        };
        match (found.folder, path.folder) {
            (true, _) => folder::answer(self, request, &path, found).await,
            // a file is no folder
            (false, true) => Ok(not_found(request, path.names.split_last().map_or(&[], |(_, above)| above))),
            (false, false) => file::answer(self, request, &path, found).await,
        }
    }
}

/// Answers a request.
async fn answer(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (mut request, _) = request.into_parts();
    let entered = app.enter(&mut request);
    let is_let_in = entered.is_ok();
    let (answered, cookie) = match entered {
        Ok((proof, cookie)) => (app.respond(&request, proof).await, cookie),
        Err(problem) => (Err(problem), None),
    };
    let mut response = answered.unwrap_or_else(|problem| problem.response());
    log::debug!("{} {}: {}", request.method, app.loggable_path(&request, is_let_in), response.status());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if headers.get(CONTENT_TYPE).is_some_and(|kind| kind == HTML) {
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    }
    response
}

/// Says that there is nothing at a path, and which folder above it is there.
fn not_found(request: &Parts, above: &[OsString]) -> Response<Body> {
    let slashes = request.uri.path().bytes().filter(|byte| *byte == b'/').count();
    let up = "../".repeat(slashes.saturating_sub(above.len() + 1));
    let mut response = Problem::NotFound.response();
    let is_page = prefers_html(&request.headers);
    *response.body_mut() = Body::from(if is_page {
        html::not_found(above, &up)
    } else {
        format!("{}; the folder above that is there: {}\n", Problem::NotFound, html::shown_path(above))
    });
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if is_page {
        set(headers, CONTENT_TYPE, HTML);
        set(headers, axum::http::header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    }
    response
}

/// An encoder of a response, until its body has ended.
#[derive(Clone)]
struct Encoder(#[expect(dead_code, reason = "it comes back when it is dropped")] Arc<OwnedSemaphorePermit>);

/// Takes an encoder for a response that becomes shorter: text of some length, as a whole. If there is none it is sent as
/// it is.
async fn take_encoder(State(encoders): State<Arc<Semaphore>>, mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let is_worth = response.status() == StatusCode::OK
        && text(CONTENT_TYPE).is_some_and(is_text)
        && length.is_none_or(|n| n >= COMPRESSED_FROM);
    if is_worth && let Ok(encoder) = encoders.try_acquire_owned() {
        response.extensions_mut().insert(Encoder(Arc::new(encoder)));
    }
    response
}

fn has_encoder(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<Encoder>().is_some()
}

/// Keeps the encoder of a compressed response until its body has ended, and marks its tag as weak: its bytes are others
/// than those of the file.
async fn finish_compressed(mut response: Response<Body>) -> Response<Body> {
    let encoder = response.extensions_mut().remove::<Encoder>();
    if !response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    if let Some(tag) = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok())
        && tag.starts_with('"')
        && let Ok(weak) = HeaderValue::try_from(format!("W/{tag}"))
    {
        response.headers_mut().insert(ETAG, weak);
    }
    response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            let _held = &encoder;
        }))
    })
}

/// Forbids pages of other sites to embed what they may not read. A request to embed that says no origin (`<img>` without
/// `crossorigin`) may be of any. CorsLayer has written `Vary: origin` where origins are told apart.
async fn resource_policy(
    State(origins): State<Arc<[HeaderValue]>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let origin = request.headers().get(ORIGIN);
    let is_allowed = origins.iter().any(|allowed| allowed == "*" || Some(allowed) == origin);
    let policy = if is_allowed { "cross-origin" } else { "same-origin" };
    let mut response = next.run(request).await;
    let name = HeaderName::from_static("cross-origin-resource-policy");
    response.headers_mut().insert(name, HeaderValue::from_static(policy));
    response
}
