//! A store that sends its clients somewhere else: what may be secret does not go with them.

use std::sync::{Arc, Mutex};

use crate::support::tls::Certificate;
use crate::support::{Answer, HttpServer, Objects, Request, one_line_of_failure, test_data, text, volfs};

const BRIEF: [&str; 2] = ["--store-option=retries=1", "--store-option=retry_seconds=2"];
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// What must be seen by nobody but the store.
const SECRET: &str = "hunter2";

/// The server to which a store redirects, and the requests that it got.
struct Stranger {
    server: HttpServer,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Stranger {
    /// Starts a server that would answer, so that nobody notices.
    fn start() -> Self {
        let objects = Objects::default();
        objects.put_all("demo/north.zgy", &test_data("demo/north.zgy"));
        let asked = Arc::<Mutex<Vec<Request>>>::default();
        let log = Arc::clone(&asked);
        let server = HttpServer::start(move |request| {
            log.lock().unwrap().push(request.clone());
            objects.answer(request)
        });
        Self { server, asked }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.server.address())
    }

    fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// Starts a store that redirects everything to the same path and query at `origin`.
fn redirecting(status: u16, origin: &str, region: Option<&'static str>) -> HttpServer {
    let origin = origin.to_owned();
    HttpServer::start(move |request| {
        let encoded = |value: &str| value.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let query: Vec<_> = request.query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let location = format!("{origin}{}?{}", request.path, query.join("&"));
        let answer = Answer::new(status, "").with("location", location);
        region.map_or(answer.clone(), |region| answer.with("x-amz-bucket-region", region))
    })
}

fn run(arguments: &[&str], environment: &[(&str, String)]) -> std::process::Output {
    let mut command = volfs();
    command.args(arguments).args(BRIEF).envs(environment.iter().map(|(name, value)| (*name, value)));
    command.output().unwrap()
}

/// Returns the environments of clients of each kind of store with credentials, and a URL of it.
fn with_credentials(server: &HttpServer) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let endpoint = format!("http://{}", server.address());
    let s3 = vec![
        ("AWS_ENDPOINT_URL", endpoint.clone()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "KEY".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_SESSION_TOKEN", SECRET.to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    let azure = |secret: &str| {
        vec![(
            "AZURE_STORAGE_CONNECTION_STRING",
            format!("DefaultEndpointsProtocol=http;AccountName=me;BlobEndpoint={endpoint}/me;{secret}"),
        )]
    };
    vec![
        ("s3://volfs/demo", s3),
        ("az://volfs/demo", azure("AccountKey=aHVudGVyMg==;")),
        ("az://volfs/demo", azure(&format!("SharedAccessSignature=sv=2021&sig={SECRET};"))),
    ]
}

#[test]
fn a_redirect_takes_no_credentials_to_another_host() {
    let stranger = Stranger::start();
    for status in STATUSES {
        let server = redirecting(status, &stranger.origin(), None);
        for (url, environment) in with_credentials(&server) {
            let line = one_line_of_failure(&run(&["ls", url], &environment), 1);
            assert!(line.contains(&stranger.origin()) && line.contains("endpoint"), "{status} {url}: {line}");
            assert!(!line.contains(SECRET), "{line}");
        }
        assert!(!server.log().is_empty());
        let seen = stranger.requests();
        assert!(seen.is_empty(), "{status}: {seen:?}");
    }
    // S3 names the region in which the bucket is
    let server = redirecting(307, &stranger.origin(), Some("eu-west-1"));
    let (url, environment) = with_credentials(&server).swap_remove(0);
    let line = one_line_of_failure(&run(&["ls", url], &environment), 1);
    assert!(line.contains("AWS_REGION=eu-west-1"), "{line}");
    assert!(stranger.requests().is_empty());
}

#[test]
fn without_credentials_redirects_are_followed() {
    let stranger = Stranger::start();
    for status in STATUSES {
        let server = redirecting(status, &stranger.origin(), None);
        let web = format!("http://{}/data/demo/north.zgy", server.address());
        let mut environment = with_credentials(&server).swap_remove(0).1;
        environment.retain(|(name, _)| matches!(*name, "AWS_ENDPOINT_URL" | "AWS_REGION" | "AWS_ALLOW_HTTP"));
        let output = run(&["ls", &web], &[]);
        assert!(text(&output.stdout).contains("north"), "{status}: {}", text(&output.stderr));
        let output = run(&["ls", "s3://volfs/demo", "--store-option=anonymous=true"], &environment);
        assert!(text(&output.stdout).contains("north.zgy"), "{status}: {}", text(&output.stderr));
        let seen = stranger.requests();
        let odd = seen.iter().flat_map(|request| &request.headers).find(|(name, _)| {
            !matches!(name.as_str(), "accept" | "content-length" | "host" | "if-match" | "range" | "user-agent")
        });
        assert!(seen.len() > 1 && odd.is_none(), "{odd:?}");
    }
}

#[test]
fn redirects_end_and_never_lead_from_tls_to_plain_http() {
    let own = Arc::new(Mutex::new(String::new()));
    let place = Arc::clone(&own);
    let server = HttpServer::start(move |request| {
        Answer::new(302, "").with("location", format!("{}{}x", place.lock().unwrap(), request.path))
    });
    *own.lock().unwrap() = format!("http://{}", server.address());
    let line = one_line_of_failure(&run(&["ls", &format!("http://{}/a.zgy", server.address())], &[]), 1);
    assert!(line.contains("again and again"), "{line}");
    let requests = server.log().len();
    assert!(requests < 100, "{requests}");
    let Some(certificate) = Certificate::make() else { return };
    let stranger = Stranger::start();
    let (authority, origin) = (certificate.file().to_string_lossy().into_owned(), stranger.origin());
    let target = format!("{origin}/data/demo/north.zgy");
    let server = HttpServer::with_tls(certificate, move |_| Answer::new(302, "").with("location", target.clone()));
    let url = format!("https://{}/a.zgy", server.address());
    let line = one_line_of_failure(&run(&["ls", &url], &[("SSL_CERT_FILE", authority)]), 1);
    assert!(line.contains("from https://") && line.contains(&origin), "{line}");
    assert!(stranger.requests().is_empty());
}
