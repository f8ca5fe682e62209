//! The HTTP client below the stores: counts requests, and keeps the headers that describe an object.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

use super::metrics::Metrics;

/// The longest value of a header that is kept, and the most headers of one answer.
const MAX_VALUE: usize = 1024;
const MAX_HEADERS: usize = 16;

/// The headers of an answer that stores keep with an object for its writer: those with `meta` in their names, and of web
/// servers also those without a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserHeaders(pub Vec<(Box<str>, Box<[u8]>)>);

/// Makes HTTP clients whose requests are counted.
#[derive(Debug)]
pub struct CountingConnector(pub Arc<Metrics>);

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(CountingService { inner, metrics: Arc::clone(&self.0) }))
    }
}

#[derive(Debug)]
struct CountingService {
    inner: HttpClient,
    metrics: Arc<Metrics>,
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for CountingService {
    fn call<'life, 'future>(&'life self, request: HttpRequest) -> Answer<'future>
    where
        'life: 'future,
        Self: 'future,
    {
        Box::pin(async move {
            let (_in_flight, began) = (self.metrics.begin(), Instant::now());
            let mut answer = self.inner.execute(request).await;
            let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            self.metrics.answered(began.elapsed(), matches!(status, 0 | 408 | 429 | 500..));
            if let Ok(answer) = &mut answer {
                let kept = user_headers(answer);
                if !kept.0.is_empty() {
                    answer.extensions_mut().insert(kept);
                }
            }
            answer
        })
    }
}

fn user_headers(answer: &HttpResponse) -> UserHeaders {
    let kept = answer.headers().iter().filter(|(name, value)| {
        name.as_str().contains("meta") && value.len() <= MAX_VALUE && !name.as_str().starts_with("access-control")
    });
    UserHeaders(kept.take(MAX_HEADERS).map(|(name, value)| (name.as_str().into(), value.as_bytes().into())).collect())
}
