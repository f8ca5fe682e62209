//! What a store, or the way to it, refuses is one line that says what, where, and what to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::tls::Certificate;
use crate::support::{Answer, HttpServer, Objects, one_line_of_failure, test_data, text, volfs};

const BRIEF: [&str; 2] = ["--store-option=retries=1", "--store-option=retry_seconds=2"];

fn environment(endpoint: String) -> [(&'static str, String); 6] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "KEY".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hunter2".to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt".to_owned()),
    ]
}

/// Returns the line that `volfs ls` fails with.
fn line(endpoint: String, url: &str) -> String {
    let mut command = volfs();
    let output = command.args(["ls", url]).args(BRIEF).envs(environment(endpoint)).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains(url) && !line.contains("hunter2") && line.len() < 400, "{line}");
    line
}

#[test]
fn refusals_of_a_store_are_one_line_that_says_what_to_do() {
    for (status, code, says) in [
        (403, "RequestTimeTooSkewed", "set the clock"),
        (400, "AuthorizationHeaderMalformed", "AWS_REGION"),
        (301, "PermanentRedirect", "AWS_REGION"),
        (307, "TemporaryRedirect", "AWS_REGION"),
        (403, "SignatureDoesNotMatch", "check the key and the secret"),
        (400, "ExpiredToken", "have expired"),
        (403, "AccessDenied", "denies it (403)"),
        (404, "NoSuchBucket", "no such bucket"),
        (503, "SlowDown", "too many requests"),
        (500, "InternalError", "500"),
    ] {
        // the answer to a look at one object has no text
        let server = HttpServer::start(move |_| Answer::error(status, code));
        let line = line(format!("http://{}", server.address()), "s3://volfs/survey");
        assert!(line.contains(says), "{status} {code}: {line}");
    }
}

#[test]
fn what_is_wrong_on_the_way_to_a_store_is_one_line() {
    let plain = HttpServer::start(|_| Answer::error(404, "NoSuchKey"));
    let line_at = |endpoint: String| line(endpoint, "s3://volfs/survey");
    let said = line_at(format!("https://{}", plain.address()));
    assert!(said.contains("does not speak TLS"), "{said}");
    let said = line_at("http://no-such-host.invalid".to_owned());
    assert!(said.contains("host is not known"), "{said}");
    let said = line_at("http://127.0.0.1:1".to_owned());
    assert!(said.contains("connection refused"), "{said}");
    let Some(certificate) = Certificate::make() else { return };
    let server = HttpServer::with_tls(certificate, |_| Answer::error(404, "NoSuchKey"));
    let said = line_at(format!("https://{}", server.address()));
    assert!(said.contains("certificate") && said.contains("SSL_CERT_FILE"), "{said}");
    let said = line_at(format!("http://{}", server.address()));
    assert!(said.contains("http") && !said.contains("no credentials"), "{said}");
}

#[test]
fn the_name_of_an_object_is_no_sign_of_what_failed() {
    // each is a word by which a failure is known, as the name of a folder of the store
    for name in ["certificates", "AccessDenied", "NoSuchBucket", "InvalidRange", "SlowDown", "169.254.169.254"] {
        let objects = Objects::default();
        objects.put_all(&format!("{name}/AccessDenied.zgy"), &test_data("demo/north.zgy"));
        let (url, fails) = (format!("s3://volfs/{name}"), Arc::new(AtomicBool::new(false)));
        let failing = Arc::clone(&fails);
        let server = HttpServer::start(move |request| match failing.load(Relaxed) {
            true => Answer::new(500, format!("<Error><Code>InternalError</Code><Key>{}</Key></Error>", request.path)),
            false => objects.answer(request),
        });
        let endpoint = format!("http://{}", server.address());
        let mut command = volfs();
        let output = command.args(["ls", &url]).args(BRIEF).envs(environment(endpoint.clone())).output().unwrap();
        assert!(text(&output.stdout).contains("AccessDenied.zgy"), "{name}: {}", text(&output.stderr));
        let absent = line(endpoint.clone(), &format!("{url}/AccessDenied.zgy/x"));
        assert!(!absent.contains("403") && !absent.contains("credentials"), "{name}: {absent}");
        fails.store(true, Relaxed);
        let said = line(endpoint, &format!("{url}/AccessDenied.zgy"));
        assert!(said.contains("500"), "{name}: {said}");
    }
}
