//! Credentials that a machine, a container or a cluster gives, and those in files: they are found, they are fetched anew
//! before they end, and where there are none one line says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::support::tls::Certificate;
use crate::support::{
    Answer, HttpServer, Mount, Objects, Request, fuse_or_skip, names, one_line_of_failure, set, test_data, text, volfs,
};

/// How long a key that is lent holds, and how much longer the store accepts it: requests are under way.
const LENT: SignedDuration = SignedDuration::from_secs(2);
const GRACE: Duration = Duration::from_secs(1);

const BRIEF: [&str; 2] = ["--store-option=retries=1", "--store-option=retry_seconds=3"];

/// What lends keys, and the keys that were used.
#[derive(Default)]
struct Bank {
    lent: Mutex<Vec<(String, Instant)>>,
    used: Mutex<BTreeSet<String>>,
    refused: Mutex<usize>,
}

impl Bank {
    /// Lends a new key, as the JSON that all services of AWS answer with.
    fn lend(&self) -> Answer {
        let [id, secret, token, end] = self.key();
        let keys = json!({"Code": "Success", "AccessKeyId": id, "SecretAccessKey": secret, "Token": token,
            "Expiration": end});
        Answer::new(200, keys.to_string()).with("content-type", "application/json")
    }

    /// Lends a new key, as the XML of the token service.
    fn lend_for_token(&self) -> Answer {
        let [id, secret, token, end] = self.key();
        let keys = format!(
            "<Credentials><SessionToken>{token}</SessionToken><SecretAccessKey>{secret}</SecretAccessKey>\
             <AccessKeyId>{id}</AccessKeyId><Expiration>{end}</Expiration></Credentials>"
        );
        let kind = "AssumeRoleWithWebIdentity";
        Answer::new(200, format!("<{kind}Response><{kind}Result>{keys}</{kind}Result></{kind}Response>"))
    }

    fn key(&self) -> [String; 4] {
        let mut lent = self.lent.lock().unwrap();
        let (id, end) = (format!("LENT{}", lent.len()), Timestamp::now() + LENT);
        lent.push((id.clone(), Instant::now()));
        [id.clone(), format!("secret-of-{id}"), format!("token-of-{id}"), end.to_string()]
    }

    /// Refuses a request that is not signed with a key that holds.
    fn check(&self, request: &Request) -> Option<Answer> {
        let signature = request.header("authorization").unwrap_or("");
        let id = signature.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or("");
        let lent = self.lent.lock().unwrap();
        let at = lent.iter().find(|(known, _)| known == id).map(|(_, at)| *at);
        let is_token = request.header("x-amz-security-token") == Some(&format!("token-of-{id}"));
        let limit = Duration::try_from(LENT).unwrap() + GRACE;
        let refused = match at {
            Some(at) if is_token && at.elapsed() < limit => {
                self.used.lock().unwrap().insert(id.to_owned());
                return None;
            }
            Some(_) if is_token => Answer::error(400, "ExpiredToken"),
            _ => Answer::error(403, "InvalidAccessKeyId"),
        };
        *self.refused.lock().unwrap() += 1;
        Some(refused)
    }
}

/// Starts a store whose keys only `bank` gives, at the paths of the services of AWS; with it a dataset.
fn start(bank: &Arc<Bank>, certificate: Option<Certificate>) -> HttpServer {
    let objects = Objects::default();
    objects.put_all("demo/north.zgy", &test_data("demo/north.zgy"));
    let bank = Arc::clone(bank);
    let answer = move |request: &Request| match (request.method.as_str(), request.path.as_str()) {
        ("PUT", "/latest/api/token") => Answer::new(200, "session"),
        (_, path) if path.starts_with("/latest/") && request.header("x-aws-ec2-metadata-token") != Some("session") => {
            Answer::new(401, "")
        }
        ("GET", "/latest/meta-data/iam/security-credentials/") => Answer::new(200, "reader"),
        ("GET", "/latest/meta-data/iam/security-credentials/reader") => bank.lend(),
        ("GET", "/pod") if request.header("authorization") == Some("a-pod") => bank.lend(),
        ("POST", "/sts") if request.asked("WebIdentityToken") == Some("who-i-am") => bank.lend_for_token(),
        (_, path) if path.starts_with("/volfs") => bank.check(request).unwrap_or_else(|| objects.answer(request)),
        _ => Answer::new(404, ""),
    };
    match certificate {
        Some(certificate) => HttpServer::with_tls(certificate, answer),
        None => HttpServer::start(answer),
    }
}

/// Returns the environment of a client that knows where the store is, and nothing else.
fn environment_of(home: &Path, server: &HttpServer) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", format!("http://{}", server.address())),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("HOME", home.to_string_lossy().into_owned()),
    ]
}

fn ls(environment: &[(&str, String)]) -> std::process::Output {
    let mut command = volfs();
    command.args(["ls", "s3://volfs/demo"]).args(BRIEF);
    command.envs(environment.iter().map(|(name, value)| (name, value))).output().unwrap()
}

fn assert_listed(environment: &[(&str, String)]) {
    let output = ls(environment);
    assert!(text(&output.stdout).contains("north.zgy"), "{}", text(&output.stderr));
}

#[test]
fn the_role_of_a_machine_is_used_and_its_keys_are_fetched_anew() {
    if !fuse_or_skip() {
        return;
    }
    let (bank, home) = (Arc::new(Bank::default()), tempfile::tempdir().unwrap());
    let server = start(&bank, None);
    let mut environment = environment_of(home.path(), &server);
    environment.push(("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}/", server.address())));
    let Some(mount) = Mount::of_store("s3://volfs/demo", &environment, &["--cache-size=1MiB"]) else { return };
    let file = mount.data("north.zgy", "lod0.raw");
    let wanted = volfs().arg("cat").arg(test_data("demo/north.zgy")).output().unwrap().stdout;
    let until = Instant::now() + Duration::try_from(LENT).unwrap() + 2 * GRACE;
    while Instant::now() < until {
        assert!(fs::read(&file).unwrap() == wanted);
        // a listing is fresh for a second, so each round asks the store
        assert_eq!(names(mount.point()), set([".volfs", "north.zgy"]));
        thread::sleep(Duration::from_millis(300));
    }
    assert!(bank.used.lock().unwrap().len() > 1, "the first key has ended");
    assert_eq!((mount.counter("errors"), *bank.refused.lock().unwrap()), (0, 0), "{}", mount.log());
    for seen in [mount.log(), fs::read_to_string(mount.path(".volfs/status.json")).unwrap()] {
        assert!(!seen.contains("secret-of-") && !seen.contains("token-of-"), "{seen}");
    }
}

#[test]
fn keys_come_from_a_pod_and_from_files() {
    let (bank, home) = (Arc::new(Bank::default()), tempfile::tempdir().unwrap());
    let server = start(&bank, None);
    let place = environment_of(home.path(), &server);
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    fs::write(at("token"), "a-pod").unwrap();
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("http://{}/pod", server.address())),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", at("token")),
    ];
    assert_listed(&[&place[..], &pod].concat());
    let in_environment = ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-pod".to_owned());
    assert_listed(&[&place[..], &pod[..1], &[in_environment]].concat());
    let [id, secret, token, _] = bank.key();
    let keys = format!("aws_access_key_id = {id}\naws_secret_access_key = {secret}\naws_session_token = {token}\n");
    fs::create_dir(at(".aws")).unwrap();
    fs::write(at(".aws/credentials"), format!("[default]\n{keys}[work]\n{keys}")).unwrap();
    assert_listed(&place);
    // a profile with the place of the store, in files of other names
    fs::write(at("config"), format!("[profile lab]\nendpoint_url = http://{}\n", server.address())).unwrap();
    fs::write(at("keys"), format!("[lab]\n{keys}")).unwrap();
    let lab = [
        ("AWS_PROFILE", "lab".to_owned()),
        ("AWS_CONFIG_FILE", at("config")),
        ("AWS_SHARED_CREDENTIALS_FILE", at("keys")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    assert_listed(&lab);
    let used = bank.used.lock().unwrap();
    assert!(used.contains(&id) && used.contains("LENT0"), "{used:?}");
}

#[test]
fn a_token_of_a_cluster_is_exchanged_for_keys() {
    let Some(certificate) = Certificate::make() else { return };
    let (bank, home) = (Arc::new(Bank::default()), tempfile::tempdir().unwrap());
    let authority = certificate.file().to_string_lossy().into_owned();
    let server = start(&bank, Some(certificate));
    let token = home.path().join("token");
    fs::write(&token, "who-i-am").unwrap();
    let environment = [
        ("AWS_ENDPOINT_URL", format!("https://{}", server.address())),
        ("HOME", home.path().to_string_lossy().into_owned()),
        ("AWS_ENDPOINT_URL_STS", format!("https://{}/sts", server.address())),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_string_lossy().into_owned()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/reader".to_owned()),
        ("SSL_CERT_FILE", authority),
    ];
    assert_listed(&environment);
    // the same server, whose certificate nobody knows
    let line = one_line_of_failure(&ls(&environment[..5]), 1);
    assert!(line.contains("certificate") && line.contains("SSL_CERT_FILE"), "{line}");
}

#[test]
fn who_gets_no_keys_is_told_so_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let bodies = ["", "{}", "{\"Code\": \"AssumeRoleUnauthorizedAccess\", \"Message\": \"no\"}"];
    for (status, body) in [(404, bodies[0]), (500, bodies[0]), (200, bodies[1]), (200, bodies[2])] {
        let server = HttpServer::start(move |request| match request.path.rsplit('/').next() {
            Some("token") => Answer::new(200, "session"),
            // the name of the role, where there is one
            Some("") if status == 200 => Answer::new(200, "reader"),
            _ => Answer::new(status, body),
        });
        let mut environment = environment_of(home.path(), &server);
        environment.push(("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}", server.address())));
        let line = one_line_of_failure(&ls(&environment), 1);
        assert!(line.contains("no credentials were found"), "{status} {body}: {line}");
    }
    // a machine of which it is known that it has no such service
    let server = HttpServer::start(|_| Answer::new(200, "reader"));
    let mut environment = environment_of(home.path(), &server);
    environment.push(("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}", server.address())));
    environment.push(("AWS_EC2_METADATA_DISABLED", "true".to_owned()));
    let line = one_line_of_failure(&ls(&environment), 1);
    assert!(line.contains("no credentials were found"), "{line}");
    assert_eq!(server.log().len(), 0);
    // the library takes whatever it is told for the name of a role, and panics where that is none
    let server = HttpServer::start(|_| Answer::new(200, "<html>\n{} not a role"));
    let mut environment = environment_of(home.path(), &server);
    environment.push(("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}", server.address())));
    let output = ls(&environment);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    // a container's service that refuses, and one that is not there
    let server = HttpServer::start(|_| Answer::new(403, "not you"));
    for uri in [format!("http://{}/pod", server.address()), "http://127.0.0.1:1/pod".to_owned()] {
        let mut environment = environment_of(home.path(), &server);
        let token = home.path().join("token");
        fs::write(&token, "a-pod").unwrap();
        environment.push(("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri.clone()));
        environment.push(("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_string_lossy().into_owned()));
        let line = one_line_of_failure(&ls(&environment), 1);
        assert!(line.contains("no credentials were found"), "{uri}: {line}");
    }
    // a profile that is nowhere, and one that logs in in a way that volfs does not know
    fs::write(home.path().join("config"), "[profile sso]\nsso_session = us\n").unwrap();
    let mut environment = environment_of(home.path(), &server);
    environment.push(("AWS_CONFIG_FILE", home.path().join("config").to_string_lossy().into_owned()));
    environment.push(("AWS_PROFILE", "sso".to_owned()));
    let line = one_line_of_failure(&ls(&environment), 1);
    assert!(line.contains("export-credentials --profile sso"), "{line}");
}
