//! The HTTP client below the stores: makes it of the library's options, decides on redirects, tells failures apart
//! while they are values and not text, keeps the headers that describe an object, and counts requests and how long they
//! take.
//!
//! The HTTP library would follow all redirects and take away only `Authorization` and cookies, so that a session token,
//! or another header that identifies, would go to any host that a store names. Here a request with anything that may be
//! secret goes to no other origin.

use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{HOST, HeaderMap, LOCATION, RANGE};
use reqwest::tls::Certificate;
use reqwest::{ClientBuilder, Method, NoProxy, Proxy, StatusCode, Url};
use tokio::task::JoinSet;

use super::error::{Failure, NO_CREDENTIALS_CODE};
use crate::counters::Counter;
use crate::source::{StoreKind, StoreStatus};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The longest value of a header that is kept, and the most headers of one answer.
const MAX_VALUE: usize = 1024;
const MAX_HEADERS: usize = 16;

/// Bytes of the body of an error that are looked at for its code, and the longest code. A longer body is read on as far
/// as that is faster than a new connection.
const MAX_ERROR: usize = 16 << 10;
const MAX_CODE: usize = 64;
const MAX_DRAINED: usize = 256 << 10;

/// The longest page of a listing, whose thousand keys have 1,024 bytes each at most, and the longest answer of a service
/// of credentials. The library takes all of them into memory, and a name among credentials into an address.
const MAX_LISTING: usize = 16 << 20;
const MAX_CREDENTIALS: usize = 32 << 10;

/// Where machines and containers give credentials, whatever the store.
const CREDENTIAL_SERVICES: [&str; 3] =
    ["http://169.254.169.254", "http://169.254.170.2", "http://metadata.google.internal"];

const USER_AGENT: &str = concat!("volfs/", env!("CARGO_PKG_VERSION"));

const MAX_REDIRECTS: usize = 5;

/// The headers that a request may have which goes to another origin. All others may sign or identify.
const HARMLESS_HEADERS: &str = "accept accept-encoding content-length content-type date host if-match if-modified-since \
    if-none-match if-unmodified-since range user-agent x-ms-date x-ms-version";

/// The parts of a query that name what is asked for. All others may be signatures, which a store that redirects would
/// repeat in the address.
const HARMLESS_QUERY: &str = "comp continuation-token delimiter encoding-type include list-type marker max-keys maxresults \
    prefix restype start-after";

/// The longest name of a host or region that is repeated in a message.
const MAX_NAME: usize = 80;

/// Classes of latencies: four for each doubling, from 1 microsecond on. The last has all beyond an hour.
const CLASSES: usize = 128;

/// The headers of an answer that stores keep with an object for its writer: those with `meta` in their names, and of
/// web servers also those without a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UserHeaders(pub(super) Vec<(Box<str>, Box<[u8]>)>);

#[derive(Clone, Debug)]
pub(super) struct StoreConnector {
    pub(super) metrics: Arc<Metrics>,
    pub(super) kind: StoreKind,
    /// The addresses of services that give credentials, besides those that everybody knows.
    pub(super) credential_services: Vec<String>,
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = is_set(options, ClientConfigKey::AllowHttp)?;
        let inner = HttpClient::new(client(options, allows_http)?);
        Ok(HttpClient::new(StoreService { inner, allows_http, connector: self.clone() }))
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP client", source: error.into() }
}

type SetDuration = fn(ClientBuilder, Duration) -> ClientBuilder;

/// Makes the client that the library would make of its options, but one that does not follow redirects.
fn client(options: &ClientOptions, allows_http: bool) -> object_store::Result<reqwest::Client> {
    use ClientConfigKey as Key;
    let resolver = Resolver { shuffles: is_set(options, Key::RandomizeAddresses)? };
    let mut builder = ClientBuilder::new()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(text(options, Key::UserAgent).unwrap_or_else(|| USER_AGENT.to_owned()))
        .http2_keep_alive_while_idle(is_set(options, Key::Http2KeepAliveWhileIdle)?)
        .danger_accept_invalid_certs(is_set(options, Key::AllowInvalidCertificates)?)
        .https_only(!allows_http)
        .dns_resolver(Arc::new(resolver));
    // a compressed answer would have another length
    builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
    if let Some(url) = text(options, Key::ProxyUrl) {
        let mut proxy = Proxy::all(url).map_err(invalid)?;
        if let Some(pem) = text(options, Key::ProxyCaCertificate) {
            builder = builder.tls_certs_merge([Certificate::from_pem(pem.as_bytes()).map_err(invalid)?]);
        }
        if let Some(excludes) = text(options, Key::ProxyExcludes) {
            proxy = proxy.no_proxy(NoProxy::from_string(&excludes));
        }
        builder = builder.proxy(proxy);
    }
    if is_set(options, Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only([]);
    }
    if is_set(options, Key::Http1Only)? {
        builder = builder.http1_only();
    }
    if is_set(options, Key::Http2Only)? {
        builder = builder.http2_prior_knowledge();
    }
    let durations: [(Key, SetDuration); 6] = [
        (Key::Timeout, ClientBuilder::timeout),
        (Key::ConnectTimeout, ClientBuilder::connect_timeout),
        (Key::ReadTimeout, ClientBuilder::read_timeout),
        (Key::PoolIdleTimeout, |builder, time| builder.pool_idle_timeout(time)),
        (Key::Http2KeepAliveInterval, |builder, time| builder.http2_keep_alive_interval(time)),
        (Key::Http2KeepAliveTimeout, ClientBuilder::http2_keep_alive_timeout),
    ];
    for (key, set) in durations {
        if let Some(time) = parsed(options, key, |value| humantime::parse_duration(value).ok())? {
            builder = set(builder, time);
        }
    }
    if let Some(most) = parsed(options, Key::PoolMaxIdlePerHost, |value| value.parse().ok())? {
        builder = builder.pool_max_idle_per_host(most);
    }
    if let Some(size) = parsed(options, Key::Http2MaxFrameSize, |value| value.parse::<u32>().ok())? {
        builder = builder.http2_max_frame_size(size);
    }
    builder.build().map_err(invalid)
}

fn text(options: &ClientOptions, key: ClientConfigKey) -> Option<String> {
    options.get_config_value(&key).filter(|value| !value.is_empty())
}

fn parsed<T>(
    options: &ClientOptions,
    key: ClientConfigKey,
    parse: impl FnOnce(&str) -> Option<T>,
) -> object_store::Result<Option<T>> {
    let Some(value) = text(options, key) else { return Ok(None) };
    parse(&value).map(Some).ok_or_else(|| invalid(format!("{}={value} cannot be understood", key.as_ref())))
}

fn is_set(options: &ClientOptions, key: ClientConfigKey) -> object_store::Result<bool> {
    let parse = |value: &str| match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "y" => Some(true),
        "0" | "false" | "off" | "no" | "n" => Some(false),
        _ => None,
    };
    Ok(parsed(options, key, parse)?.unwrap_or(false))
}

/// Finds the addresses of a host with the system's resolver.
struct Resolver {
    /// Whether their order is random, so that the machines behind a name get the same share of requests.
    shuffles: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let shuffles = self.shuffles;
        Box::pin(async move {
            // as part of a set it does not begin if nobody waits for it any more
            let mut task = JoinSet::new();
            // the port is that of the URL
            task.spawn_blocking(move || (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter));
            let found = task.join_next().await.and_then(Result::ok).and_then(Result::ok);
            let mut addresses: Vec<SocketAddr> = found.ok_or(Failure::UnknownHost)?;
            if shuffles {
                let random = RandomState::new();
                addresses.sort_by_cached_key(|address| random.hash_one(address));
            }
            Ok(Box::new(addresses.into_iter()) as _)
        })
    }
}

#[derive(Debug)]
struct StoreService {
    inner: HttpClient,
    allows_http: bool,
    connector: StoreConnector,
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for StoreService {
    fn call<'life, 'future>(&'life self, request: HttpRequest) -> Answer<'future>
    where
        'life: 'future,
        Self: 'future,
    {
        Box::pin(async move {
            let is_for_credentials = self.gives_credentials(&request.uri().to_string());
            let is_text = !request.headers().contains_key(RANGE);
            let metrics = &self.connector.metrics;
            let (_sent, began) = (metrics.begin(), Instant::now());
            let answer = match self.send(request).await {
                Ok(answer) if is_text && answer.status().is_success() => {
                    with_whole_text(answer, if is_for_credentials { MAX_CREDENTIALS } else { MAX_LISTING }).await
                }
                answer => answer,
            };
            let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            metrics.answered(began.elapsed(), matches!(status, 0 | 408 | 429 | 500..));
            match answer {
                Ok(mut answer) if answer.status().is_success() => {
                    let kept = user_headers(&answer);
                    if !kept.0.is_empty() {
                        answer.extensions_mut().insert(kept);
                    }
                    Ok(answer)
                }
                Ok(answer) if is_for_credentials => Ok(answer.map(|_| NO_CREDENTIALS_CODE.to_owned().into())),
                Ok(answer) => Ok(with_code_alone(answer).await),
                Err(error) if is_for_credentials => Err(HttpError::new(error.kind(), Failure::NoCredentials)),
                Err(error) => Err(error),
            }
        })
    }
}

impl StoreService {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |failure| HttpError::new(HttpErrorKind::Unknown, failure);
        let wants_range = request.headers().contains_key(RANGE);
        for _ in 0..=MAX_REDIRECTS {
            if request.uri().scheme_str() == Some("http") && !self.allows_http {
                return Err(failed(Failure::PlainHttp));
            }
            let answer = self.inner.execute(request.clone()).await?;
            match follow(&request, &answer, self.connector.kind).map_err(failed)? {
                Some(next) => request = next,
                None if wants_range && answer.status() == StatusCode::OK => return Err(failed(Failure::NoRanges)),
                None => return Ok(answer),
            }
        }
        Err(failed(Failure::TooManyRedirects))
    }

    fn gives_credentials(&self, url: &str) -> bool {
        let own = self.connector.credential_services.iter().map(String::as_str);
        CREDENTIAL_SERVICES.into_iter().chain(own).any(|service| {
            url.strip_prefix(service).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        })
    }
}

fn user_headers(answer: &HttpResponse) -> UserHeaders {
    let kept = answer.headers().iter().filter(|(name, value)| {
        name.as_str().contains("meta") && value.len() <= MAX_VALUE && !name.as_str().starts_with("access-control")
    });
    UserHeaders(kept.take(MAX_HEADERS).map(|(name, value)| (name.as_str().into(), value.as_bytes().into())).collect())
}

/// Collects the body of an answer, which is an error if it is too long.
async fn with_whole_text(answer: HttpResponse, most: usize) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let (mut bytes, mut stream) = (Vec::new(), body.bytes_stream());
    while let Some(part) = stream.next().await {
        bytes.extend_from_slice(&part?);
        if bytes.len() > most {
            return Err(HttpError::new(HttpErrorKind::Unknown, Failure::EndlessText));
        }
    }
    Ok(HttpResponse::from_parts(parts, bytes.into()))
}

/// Replaces the body of an error by its code, or by nothing. The library makes a text of status and body, in which no
/// name of an object must be taken for a code.
async fn with_code_alone(answer: HttpResponse) -> HttpResponse {
    let (parts, body) = answer.into_parts();
    let (mut bytes, mut drained, mut stream) = (Vec::new(), 0, body.bytes_stream());
    while let Some(Ok(part)) = stream.next().await {
        bytes.extend(part.iter().take(MAX_ERROR - bytes.len()));
        drained += part.len();
        if drained >= MAX_DRAINED {
            break;
        }
    }
    let code = code_of(&parts.headers, &bytes).unwrap_or_default();
    HttpResponse::from_parts(parts, code.into())
}

/// Returns the code of an error: the element `Code` of S3, Azure and Google, a header of Azure where there is no body,
/// or what services of tokens give as JSON.
fn code_of(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let is_code = |code: &str| {
        (1..=MAX_CODE).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    let of_header = || headers.get("x-ms-error-code")?.to_str().ok().map(str::to_owned);
    let body = String::from_utf8_lossy(body);
    let of_xml = || Some(body.split_once("<Code>")?.1.split_once("</Code>")?.0.trim().to_owned());
    let of_json = || {
        let json: serde_json::Value = serde_json::from_str(&body).ok()?;
        let error = json.get("error")?;
        let code = error.as_str().or_else(|| error.get("status")?.as_str());
        code.or_else(|| error.get("errors")?.get(0)?.get("reason")?.as_str()).map(str::to_owned)
    };
    of_header().or_else(of_xml).or_else(of_json).filter(|code| is_code(code))
}

/// Returns the request that follows the redirect of `answer`; `None` for another answer.
fn follow(request: &HttpRequest, answer: &HttpResponse, kind: StoreKind) -> Result<Option<HttpRequest>, Failure> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let text = |name: &str| answer.headers().get(name)?.to_str().ok().map(str::to_owned);
    let is_word =
        |text: &String| text.len() <= MAX_NAME && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let region = text("x-amz-bucket-region").filter(is_word);
    let from = Url::parse(&request.uri().to_string()).ok();
    let place = from.and_then(|from| Some((from.join(&text(LOCATION.as_str())?).ok()?, from)));
    let Some((mut to, from)) = place.filter(|(to, _)| to.has_host()) else {
        // S3 tells by a redirect without an address that the bucket is in another region
        return Err(if kind == StoreKind::S3 { Failure::OtherRegion(region) } else { Failure::RedirectToNowhere });
    };
    let is_other = from.origin() != to.origin();
    let origin = || to.origin().ascii_serialization().chars().take(MAX_NAME).collect::<String>();
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(Failure::InsecureRedirect(origin()));
    }
    if !matches!(to.scheme(), "http" | "https") {
        return Err(Failure::RedirectToNowhere);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) || (is_other && may_be_secret(request, &from)) {
        // it is signed for one host and region, so it cannot follow
        let is_region = is_other && kind == StoreKind::S3 && (region.is_some() || (is_amazon(&from) && is_amazon(&to)));
        return Err(if is_region { Failure::OtherRegion(region) } else { Failure::SecretRedirect(origin()) });
    }
    // a user name there would be sent as credentials
    let _ = (to.set_username(""), to.set_password(None));
    to.set_fragment(None);
    let mut next = request.clone();
    *next.uri_mut() = to.as_str().parse().map_err(|_| Failure::RedirectToNowhere)?;
    next.headers_mut().remove(HOST);
    Ok(Some(next))
}

/// Returns whether a request has anything that may sign it or identify its sender.
fn may_be_secret(request: &HttpRequest, url: &Url) -> bool {
    let is_one_of = |words: &str, name: &str| words.split(' ').any(|word| word == name);
    let has_user = !url.username().is_empty() || url.password().is_some();
    has_user
        || request.headers().keys().any(|name| !is_one_of(HARMLESS_HEADERS, name.as_str()))
        || url.query_pairs().any(|(name, _)| !is_one_of(HARMLESS_QUERY, &name))
}

fn is_amazon(url: &Url) -> bool {
    let is_of = |host: &str| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
    url.host_str().is_some_and(is_of)
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: Counter,
    /// Bytes that have arrived as content of objects.
    pub(super) bytes: Counter,
    failed: Counter,
    in_flight: AtomicUsize,
    latencies: [[AtomicU64; 32]; CLASSES / 32],
}

/// A request that is in flight until this value is dropped.
struct Sent<'a>(&'a Metrics);

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    fn begin(&self) -> Sent<'_> {
        self.requests.add(1);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Sent(self)
    }

    /// Counts an answer that began after `took`. One that is `bad` (no answer at all, or an answer that says to try
    /// again) is tried again.
    fn answered(&self, took: Duration, bad: bool) {
        self.failed.add(u64::from(bad));
        self.latencies.as_flattened()[class_of(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters; `staged` is the number of bytes that wait in memory for their readers.
    pub(super) fn status(&self, staged: usize) -> StoreStatus {
        let counts: Vec<u64> =
            self.latencies.as_flattened().iter().map(|class| class.load(Ordering::Relaxed)).collect();
        StoreStatus {
            requests: self.requests.get(),
            bytes: self.bytes.get(),
            retries: self.failed.get(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            staged_bytes: staged,
            disk: None,
            latency_p50: quantile(&counts, 50),
            latency_p99: quantile(&counts, 99),
        }
    }
}

/// Returns the class of a latency: `4 log2` of its microseconds.
fn class_of(took: Duration) -> usize {
    ((4.0 * (1e6 * took.as_secs_f64()).log2()) as usize).min(CLASSES - 1)
}

fn middle_of(class: usize) -> Duration {
    Duration::from_secs_f64(1e-6 * ((class as f64 + 0.5) / 4.0).exp2())
}

fn quantile(counts: &[u64], percent: u64) -> Option<Duration> {
    let total: u64 = counts.iter().sum();
    let mut left = (total.saturating_mul(percent)).div_ceil(100).max(1);
    let class = counts.iter().position(|count| {
        let found = left <= *count;
        left = left.saturating_sub(*count);
        found
    });
    class.filter(|_| total > 0).map(middle_of)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use object_store::client::HttpRequestBody;
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::source::store::client::wait_for;

    #[test]
    fn the_code_of_an_error_is_found_and_nothing_else() {
        let none = HeaderMap::new();
        let azure = HeaderMap::from_iter([("x-ms-error-code".parse().unwrap(), "BlobNotFound".parse().unwrap())]);
        for (headers, body, code) in [
            (&none, "<?xml?><Error><Code>NoSuchKey</Code><Key>AccessDenied</Key></Error>", Some("NoSuchKey")),
            (&none, "<Error><Message>AccessDenied</Message><Key>&lt;Code&gt;x</Key></Error>", None),
            (&none, "<Code>two words</Code>", None),
            (&azure, "", Some("BlobNotFound")),
            (&none, "{\"error\": \"invalid_grant\"}", Some("invalid_grant")),
            (&none, "{\"error\": {\"code\": 403, \"errors\": [{\"reason\": \"forbidden\"}]}}", Some("forbidden")),
            (&none, "<html>AccessDenied</html>", None),
            (&none, "\u{0}", None),
        ] {
            assert_eq!(code_of(headers, body.as_bytes()).as_deref(), code, "{body}");
        }
    }

    #[test]
    fn options_of_the_library_are_understood() {
        let options = ClientOptions::new();
        let duration = |options, key| parsed(options, key, |value| humantime::parse_duration(value).ok());
        assert_eq!(duration(&options, ClientConfigKey::Timeout).unwrap(), Some(Duration::from_secs(30)));
        let given = |key: ClientConfigKey, value: &str| ClientOptions::new().with_config(key, value);
        let timeout = given(ClientConfigKey::ReadTimeout, "1m 5s");
        assert_eq!(duration(&timeout, ClientConfigKey::ReadTimeout).unwrap(), Some(Duration::from_secs(65)));
        assert!(is_set(&given(ClientConfigKey::Http2Only, "ON"), ClientConfigKey::Http2Only).unwrap());
        for key in [ClientConfigKey::ConnectTimeout, ClientConfigKey::Http2Only, ClientConfigKey::PoolMaxIdlePerHost] {
            let error = client(&given(key, "some"), false).unwrap_err().to_string();
            assert!(error.contains(key.as_ref()), "{error}");
        }
    }

    fn request(url: &str, headers: &[(&'static str, &'static str)]) -> HttpRequest {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.parse().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        request
    }

    fn redirect(status: u16, headers: &[(&'static str, &str)]) -> HttpResponse {
        let mut answer = HttpResponse::new(Bytes::new().into());
        *answer.status_mut() = status.try_into().unwrap();
        for (name, value) in headers {
            answer.headers_mut().insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        answer
    }

    fn to(request: &HttpRequest, kind: StoreKind, location: &str) -> Result<String, Failure> {
        let next = follow(request, &redirect(302, &[("location", location)]), kind)?.unwrap();
        Ok(next.uri().to_string())
    }

    #[test]
    fn headers_that_users_set_are_kept_and_no_others() {
        let long = "x".repeat(MAX_VALUE + 1);
        let answer = redirect(
            200,
            &[
                ("x-amz-meta-vdschunkmetadata", "AAAA"),
                ("x-ms-meta-other", "b"),
                ("x-goog-meta-long", &long),
                ("access-control-allow-metadata", "no"),
                ("content-type", "text/plain"),
            ],
        );
        let mut kept = user_headers(&answer).0;
        kept.sort();
        let kept: Vec<(&str, &[u8])> = kept.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(kept, [("x-amz-meta-vdschunkmetadata", &b"AAAA"[..]), ("x-ms-meta-other", b"b")]);
    }

    /// A server that has one answer.
    #[derive(Debug)]
    struct Fixed(u16, Vec<(&'static str, &'static str)>);

    impl HttpService for Fixed {
        fn call<'life, 'future>(&'life self, _: HttpRequest) -> Answer<'future>
        where
            'life: 'future,
            Self: 'future,
        {
            Box::pin(async move { Ok(redirect(self.0, &self.1)) })
        }
    }

    #[test]
    fn headers_of_users_come_with_an_answer_that_has_some() {
        let kept = |status, headers: &[(&'static str, &'static str)]| {
            let connector =
                StoreConnector { metrics: Arc::default(), kind: StoreKind::Http, credential_services: vec![] };
            let inner = HttpClient::new(Fixed(status, headers.to_vec()));
            let service = StoreService { inner, allows_http: false, connector };
            let answer = wait_for(service.call(request("https://host/k", &[]))).unwrap().unwrap();
            answer.extensions().get::<UserHeaders>().map(|kept| kept.0.len())
        };
        assert_eq!(kept(200, &[("x-amz-meta-a", "1"), ("etag", "2")]), Some(1));
        assert_eq!((kept(200, &[("etag", "2")]), kept(404, &[("x-amz-meta-a", "1")])), (None, None));
    }

    #[test]
    fn what_may_be_secret_goes_to_no_other_origin() {
        let secrets = ["authorization", "x-amz-security-token", "cookie", "proxy-authorization", "x-goog-user-project"];
        let refused = Err(Failure::SecretRedirect("https://other:8443".to_owned()));
        for (kind, url, headers) in [
            secrets.map(|name| (StoreKind::S3, "https://host/b/k", vec![(name, "hunter2")])).to_vec(),
            vec![
                (StoreKind::Azure, "https://host/c/k?sv=1&sig=hunter2", vec![]),
                (StoreKind::Gcs, "https://host/b/k?x-goog-signature=hunter2", vec![]),
                (StoreKind::Http, "https://me:hunter2@host/k", vec![]),
            ],
        ]
        .concat()
        {
            let request = request(url, &headers);
            for location in ["https://other:8443/x", "//other:8443/x"] {
                assert_eq!(to(&request, kind, location), refused, "{url} {headers:?}");
            }
            assert!(to(&request, kind, "https://host:444/x").is_err(), "{url}: another port");
            assert_eq!(to(&request, kind, "/x"), Ok("https://host/x".to_owned()), "{url}: the same origin");
        }
    }

    #[test]
    fn without_a_secret_a_redirect_is_followed_but_never_to_plain_http() {
        let harmless = [("range", "bytes=0-1"), ("if-match", "\"1\"")];
        let asked = request("https://host/a/k?prefix=x&list-type=2", &harmless);
        let found = follow(&asked, &redirect(308, &[("location", "https://me:pw@cdn/k#x")]), StoreKind::Http);
        let found = found.unwrap().unwrap();
        // the client adds that of the new address
        let with_host = request("https://host/a/k", &[("host", "host"), ("range", "bytes=0-1")]);
        let next = follow(&with_host, &redirect(302, &[("location", "/b")]), StoreKind::Http).unwrap().unwrap();
        assert_eq!(next.headers().keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["range"]);
        assert_eq!((found.uri().to_string().as_str(), found.headers().len()), ("https://cdn/k", 2));
        for plain in ["http://host/a", "http://cdn/a", "ftp://cdn/a"] {
            assert!(matches!(to(&asked, StoreKind::Http, plain), Err(Failure::InsecureRedirect(_))), "{plain}");
        }
        assert_eq!(to(&request("http://host/k", &[]), StoreKind::Http, "https://host/k"), Ok("https://host/k".into()));
        assert_eq!(follow(&asked, &redirect(304, &[]), StoreKind::Http).unwrap().map(|_| ()), None);
        assert_eq!(to(&asked, StoreKind::Http, "https://"), Err(Failure::RedirectToNowhere));
        let mut posted = request("https://host/token", &[]);
        *posted.method_mut() = Method::POST;
        assert!(to(&posted, StoreKind::Gcs, "https://other/token").is_err(), "its body is the secret");
    }

    #[test]
    fn a_bucket_in_another_region_is_told_from_a_redirect_to_a_stranger() {
        let signed = request("https://b.s3.amazonaws.com/k", &[("authorization", "x")]);
        let answer = |headers: &[(&'static str, &str)]| {
            follow(&signed, &redirect(307, headers), StoreKind::S3).map(drop).unwrap_err()
        };
        assert_eq!(answer(&[]), Failure::OtherRegion(None));
        let region = ("x-amz-bucket-region", "eu-west-1");
        assert_eq!(answer(&[region]), Failure::OtherRegion(Some("eu-west-1".to_owned())));
        assert_eq!(answer(&[("location", "https://b.s3-eu-west-1.amazonaws.com/k")]), Failure::OtherRegion(None));
        let stranger = ("location", "https://amazonaws.com.example/k");
        assert!(matches!(answer(&[stranger]), Failure::SecretRedirect(_)));
        let forged = ("x-amz-bucket-region", "eu west 1; rm");
        assert_eq!(answer(&[forged]), Failure::OtherRegion(None));
    }

    #[test]
    fn percentiles_are_within_an_eighth() {
        let metrics = Metrics::default();
        assert_eq!(metrics.status(0).latency_p50, None);
        for n in 1..=1000 {
            drop(metrics.begin());
            metrics.answered(Duration::from_micros(100 * n), n % 10 == 0);
        }
        let held = metrics.begin();
        let status = metrics.status(7);
        drop(held);
        assert_eq!((status.requests, status.retries, status.in_flight, status.staged_bytes), (1001, 100, 1, 7));
        assert_eq!(metrics.status(0).in_flight, 0);
        for (found, wanted) in [(status.latency_p50, 0.05), (status.latency_p99, 0.099)] {
            let found = found.unwrap().as_secs_f64();
            assert!((found / wanted - 1.0).abs() < 0.15, "{found} is not about {wanted}");
        }
    }

    #[test]
    fn every_latency_has_a_class() {
        for took in [0, 1, 3, 4, 5, 7, 8, 1 << 20, u64::MAX] {
            let took = Duration::from_micros(took);
            assert!(class_of(took) < CLASSES);
            assert!(took.as_micros() < 4 || class_of(middle_of(class_of(took))) == class_of(took));
        }
    }
}
