//! The HTTP client below the stores: counts requests, decides on redirects, tells failures apart while they are values
//! and no text, and keeps the headers that describe an object.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, RANGE};
use reqwest::tls::Certificate;
use reqwest::{ClientBuilder, NoProxy, Proxy, StatusCode, redirect};
use tokio::task::JoinSet;

use super::super::url::StoreKind;
use super::error::{Failure, NO_CREDENTIALS_CODE};
use super::metrics::Metrics;
use super::redirect::{MAX_REDIRECTS, follow};

/// The longest value of a header that is kept, and the most headers of one answer.
const MAX_VALUE: usize = 1024;
const MAX_HEADERS: usize = 16;

/// Bytes of the body of an error that are looked at for its code, and the longest code. A longer body is read on as far
/// as that is faster than a new connection.
const MAX_ERROR: usize = 16 << 10;
const MAX_CODE: usize = 64;
const MAX_DRAINED: usize = 256 << 10;

/// Where machines and containers give credentials, whatever the store.
const CREDENTIAL_SERVICES: [&str; 3] =
    ["http://169.254.169.254", "http://169.254.170.2", "http://metadata.google.internal"];

/// What this program calls itself.
const USER_AGENT: &str = concat!("volfs/", env!("CARGO_PKG_VERSION"));

/// The headers of an answer that stores keep with an object for its writer: those with `meta` in their names, and of web
/// servers also those without a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserHeaders(pub Vec<(Box<str>, Box<[u8]>)>);

/// Makes the HTTP clients of one store.
#[derive(Clone, Debug)]
pub(crate) struct StoreConnector {
    /// Counts the requests.
    pub metrics: Arc<Metrics>,
    /// What kind of store is asked.
    pub kind: StoreKind,
    /// The addresses of services that give credentials, besides those that everybody knows.
    pub credential_services: Vec<String>,
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = is_set(options, ClientConfigKey::AllowHttp)?;
        let inner = HttpClient::new(client(options, allows_http)?);
        Ok(HttpClient::new(StoreService { inner, allows_http, connector: self.clone() }))
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP client", source: Box::new(error) }
}

/// Makes the client that the library would make of its options, but one that does not follow redirects.
fn client(options: &ClientOptions, allows_http: bool) -> object_store::Result<reqwest::Client> {
    use ClientConfigKey as Key;
    let mut builder = ClientBuilder::new().redirect(redirect::Policy::none());
    builder = builder.user_agent(text(options, Key::UserAgent).unwrap_or_else(|| USER_AGENT.to_owned()));
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
    if let Some(timeout) = duration(options, Key::Timeout)? {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = duration(options, Key::ConnectTimeout)? {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = duration(options, Key::ReadTimeout)? {
        builder = builder.read_timeout(timeout);
    }
    if let Some(timeout) = duration(options, Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(timeout);
    }
    if let Some(most) = number(options, Key::PoolMaxIdlePerHost)? {
        builder = builder.pool_max_idle_per_host(most);
    }
    if let Some(interval) = duration(options, Key::Http2KeepAliveInterval)? {
        builder = builder.http2_keep_alive_interval(interval);
    }
    if let Some(timeout) = duration(options, Key::Http2KeepAliveTimeout)? {
        builder = builder.http2_keep_alive_timeout(timeout);
    }
    if let Some(size) = number(options, Key::Http2MaxFrameSize)? {
        builder = builder.http2_max_frame_size(Some(size));
    }
    builder = builder.http2_keep_alive_while_idle(is_set(options, Key::Http2KeepAliveWhileIdle)?);
    if is_set(options, Key::Http1Only)? {
        builder = builder.http1_only();
    }
    if is_set(options, Key::Http2Only)? {
        builder = builder.http2_prior_knowledge();
    }
    builder = builder.danger_accept_invalid_certs(is_set(options, Key::AllowInvalidCertificates)?);
    let resolver = Resolver { shuffles: is_set(options, Key::RandomizeAddresses)? };
    // a compressed answer would have another length
    builder = builder.no_gzip().no_brotli().no_zstd().no_deflate().dns_resolver(Arc::new(resolver));
    builder.https_only(!allows_http).build().map_err(invalid)
}

fn text(options: &ClientOptions, key: ClientConfigKey) -> Option<String> {
    options.get_config_value(&key).filter(|value| !value.is_empty())
}

/// Returns what an option says, by `parse`.
fn parsed<T>(
    options: &ClientOptions,
    key: ClientConfigKey,
    parse: impl FnOnce(&str) -> Option<T>,
) -> object_store::Result<Option<T>> {
    let Some(value) = text(options, key) else { return Ok(None) };
    let wrong = || object_store::Error::Generic {
        store: "HTTP client",
        source: format!("{}={value} cannot be understood", key.as_ref()).into(),
    };
    parse(&value).map(Some).ok_or_else(wrong)
}

fn duration(options: &ClientOptions, key: ClientConfigKey) -> object_store::Result<Option<Duration>> {
    parsed(options, key, |value| humantime::parse_duration(value).ok())
}

fn number<T: FromStr>(options: &ClientOptions, key: ClientConfigKey) -> object_store::Result<Option<T>> {
    parsed(options, key, |value| value.parse().ok())
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
            let metrics = &self.connector.metrics;
            let (_in_flight, began) = (metrics.begin(), Instant::now());
            let answer = self.send(request).await;
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
    /// Sends a request, also to where it is redirected.
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

/// Returns the code of an error: the element `Code` of S3, Azure and Google, a header of Azure where there is no body, or
/// what services of tokens give as JSON.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
