//! One request, from its path to its response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use tokio::time::timeout;
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::app_state::App;
use super::calls::find;
use super::connection::RequestSlot;
use super::content_types::is_text;
use super::options::origin_of;
use super::paths::TreePath;
use super::problem::Problem;
use super::{file, folder, page};

/// How long a request waits for others to end, if there are too many.
const TURN: Duration = Duration::from_secs(10);
/// Fewer bytes are not compressed.
const COMPRESSED_FROM: u64 = 1024;
/// How long a browser need not ask again whether an origin is allowed.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3600);

impl App {
    /// Returns the service that answers requests.
    pub fn router(self: &Arc<Self>) -> Router {
        let compression =
            CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest).compress_when(is_worth_compressing);
        let router = Router::new().fallback(answer).with_state(Arc::clone(self)).layer(compression);
        let router = router.layer(axum::middleware::map_response(weaken_tag));
        match self.cors() {
            Some(cors) => router.layer(cors),
            None => router.layer(axum::middleware::map_response(own_origin_only)),
        }
    }

    /// Returns which pages of other origins may read responses; `None`: none.
    fn cors(&self) -> Option<CorsLayer> {
        let of_viewer = self.options.neuroglancer.as_deref().and_then(origin_of);
        let named: Vec<String> = self.options.allow_origins.iter().cloned().chain(of_viewer).collect();
        let origins: Vec<HeaderValue> = named.iter().filter_map(|origin| origin.parse().ok()).collect();
        let origin = match named.iter().any(|origin| origin == "*") {
            _ if origins.is_empty() => return None,
            true => AllowOrigin::any(),
            false => AllowOrigin::list(origins),
        };
        let conditions = [RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE];
        let exposed = [ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED];
        let cors = CorsLayer::new().allow_origin(origin).allow_methods([Method::GET, Method::HEAD]);
        Some(cors.allow_headers(conditions).expose_headers(exposed).max_age(PREFLIGHT_AGE))
    }

    async fn respond(&self, request: &Parts) -> Result<Response<Body>, Problem> {
        if !self.hosts.allow(request) {
            return Err(Problem::Host);
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(Problem::Method);
        }
        let path = TreePath::read(request.uri.path())?;
        if let Some(answer) = page::answer(request, &path) {
            return answer;
        }
        let turn = timeout(TURN, Arc::clone(&self.requests).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(Problem::Busy) };
        if let Some(slot) = request.extensions.get::<RequestSlot>() {
            slot.hold(turn);
        }
        let found = find(&self.fs, &path.names).await?;
        match (found.folder, path.folder) {
            (true, _) => folder::answer(self, request, &path, found).await,
            (false, true) => Err(Problem::NotFound),
            (false, false) => file::answer(self, request, &path, found).await,
        }
    }
}

/// Answers a request.
async fn answer(State(app): State<Arc<App>>, request: Request<Body>) -> Response<Body> {
    let (request, _) = request.into_parts();
    let mut response = app.respond(&request).await.unwrap_or_else(|problem| problem.response());
    log::debug!("{} {}: {}", request.method, request.uri.path(), response.status());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if request.method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Returns whether a response becomes shorter: text of some length, as a whole.
fn is_worth_compressing(status: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    status == StatusCode::OK && text(CONTENT_TYPE).is_some_and(is_text) && length.is_none_or(|n| n >= COMPRESSED_FROM)
}

/// Marks the tag of a compressed response as weak: its bytes are others than those of the file.
async fn weaken_tag(mut response: Response<Body>) -> Response<Body> {
    if response.headers().contains_key(CONTENT_ENCODING)
        && let Some(tag) = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok())
        && tag.starts_with('"')
        && let Ok(weak) = HeaderValue::try_from(format!("W/{tag}"))
    {
        response.headers_mut().insert(ETAG, weak);
    }
    response
}

/// Forbids pages of other sites to embed what they may not read.
async fn own_origin_only(mut response: Response<Body>) -> Response<Body> {
    let name = HeaderName::from_static("cross-origin-resource-policy");
    response.headers_mut().insert(name, HeaderValue::from_static("same-origin"));
    response
}
