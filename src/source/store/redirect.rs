//! Which redirects are followed.
//!
//! The HTTP library would follow them all and take away only `Authorization` and cookies, so that a session token, or
//! another header that identifies, would go to any host that a store names. Here a request with anything that may be
//! secret goes to no other origin.

use object_store::client::{HttpRequest, HttpResponse};
use reqwest::header::{HOST, LOCATION};
use reqwest::{Method, Url};

use super::super::url::StoreKind;
use super::error::Failure;

/// The most redirects of one request that are followed.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// The headers that a request may have which goes to another origin. All others may sign or identify.
const HARMLESS_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "content-length",
    "content-type",
    "date",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "range",
    "user-agent",
    "x-ms-date",
    "x-ms-version",
];

/// The parts of a query that name what is asked for. All others may be signatures, which a store that redirects would
/// repeat in the address.
const HARMLESS_QUERY: &[&str] = &[
    "comp",
    "continuation-token",
    "delimiter",
    "encoding-type",
    "include",
    "list-type",
    "marker",
    "max-keys",
    "maxresults",
    "prefix",
    "restype",
    "start-after",
];

/// The longest name of a host or region that is repeated in a message.
const MAX_NAME: usize = 80;

/// Returns the request that follows the redirect of `answer`; `None` if it is none.
pub(crate) fn follow(
    request: &HttpRequest,
    answer: &HttpResponse,
    kind: StoreKind,
) -> Result<Option<HttpRequest>, Failure> {
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
    if !matches!(to.scheme(), "http" | "https") || (from.scheme() == "https" && to.scheme() == "http") {
        return Err(Failure::InsecureRedirect(origin()));
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

/// Returns whether a request has anything that may sign it or tell who sends it.
fn may_be_secret(request: &HttpRequest, url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    has_user
        || request.headers().keys().any(|name| !HARMLESS_HEADERS.contains(&name.as_str()))
        || url.query_pairs().any(|(name, _)| !HARMLESS_QUERY.contains(&&*name))
}

fn is_amazon(url: &Url) -> bool {
    let is_of = |host: &str| host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
    url.host_str().is_some_and(is_of)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use object_store::client::HttpRequestBody;
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

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
}
