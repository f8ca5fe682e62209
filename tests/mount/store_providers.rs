//! Stores of several providers, credentials, and redirects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use humantime::format_rfc3339_millis;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::store::{raw_files, shows_another};
use crate::support::http::{Certificate, openssl};
use crate::support::stores::{ACCOUNT, CONTAINER, PUBLIC};
use crate::support::{
    Answer, Azurite, HttpServer, Mount, Objects, Request, copy_all, fuse_or_skip, names, one_line_of_failure, set,
    test_data, text, volfs,
};

/// Datasets that take listings, ranges, metadata of objects, and objects of no bytes.
const DATASETS: [&str; 3] = ["vds/no-pages", "vds/wavelet-no-pages", "demo/north.zgy"];

/// Puts the datasets below the key `top`, and returns what their raw files have.
fn fill(server: &Azurite, container: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let local = tempfile::tempdir().unwrap();
    for dataset in DATASETS {
        server.put_all(container, &format!("top/{dataset}"), &test_data(dataset));
        copy_all(&test_data(dataset), &local.path().join(dataset));
    }
    let mount = Mount::of(local.path()).unwrap();
    let truth = raw_files(mount.point());
    assert!(truth.len() > 5, "{:?}", truth.keys());
    truth
}

#[test]
fn a_mount_of_azure_shows_the_same_as_one_of_a_folder_and_changes() {
    let Some(server) = Azurite::start() else { return };
    if !crate::support::fuse_or_skip() {
        return;
    }
    let truth = fill(&server, CONTAINER);
    let environment = [("AZURE_STORAGE_CONNECTION_STRING", server.connection_string())];
    let mount = Mount::of_store(&format!("az://{CONTAINER}/top"), &environment, &[]).unwrap();
    assert!(raw_files(mount.point()) == truth);
    assert_eq!(mount.counter("errors"), 0);
    shows_another(&mount, "demo/north.zgy", |bytes| server.put(CONTAINER, "top/demo/north.zgy", &bytes, &[]));
    let seen = mount.log() + &fs::read_to_string(mount.path(".volfs/status.json")).unwrap();
    assert!(!seen.contains(&Azurite::key()) && seen.contains(CONTAINER));
}

#[test]
fn each_kind_of_credentials_of_azure_opens_the_door_and_no_other() {
    let Some(server) = Azurite::start() else { return };
    let ls = |url: &str, environment: &[(&str, String)], options: &[&str]| {
        let mut command = volfs();
        command.args(["ls", url, "--store-option=retries=1", "--store-option=retry_seconds=5"]).args(options);
        command.envs(environment.iter().map(|(name, value)| (name, value))).output().unwrap()
    };
    for container in [CONTAINER, PUBLIC] {
        server.put_all(container, "demo/north.zgy", &test_data("demo/north.zgy"));
        server.put_all(container, "tagged", &test_data("vds/no-pages"));
    }
    let name = ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned());
    let place = ("AZURE_STORAGE_ENDPOINT", server.endpoint());
    let plain = ("AZURE_ALLOW_HTTP", "true".to_owned());
    let (key, signature) = (Azurite::key(), Azurite::signature());
    let signed = format!("BlobEndpoint={};AccountName={ACCOUNT};SharedAccessSignature={signature}", server.endpoint());
    let private = format!("az://{CONTAINER}/demo");
    let good: [&[(&str, String)]; 4] = [
        &[("AZURE_STORAGE_CONNECTION_STRING", server.connection_string())],
        &[name.clone(), place.clone(), plain.clone(), ("AZURE_STORAGE_ACCOUNT_KEY", key)],
        &[name.clone(), place.clone(), plain.clone(), ("AZURE_STORAGE_SAS_TOKEN", signature)],
        &[("AZURE_STORAGE_CONNECTION_STRING", signed)],
    ];
    for environment in good {
        let output = ls(&private, environment, &[]);
        assert!(text(&output.stdout).contains("north.zgy"), "{environment:?}: {}", text(&output.stderr));
    }
    let anonymous = [name.clone(), place.clone(), plain.clone()];
    let public = ls(&format!("azure://{PUBLIC}/demo"), &anonymous, &["--store-option=anonymous=true"]);
    assert!(text(&public.stdout).contains("north.zgy"), "{}", text(&public.stderr));
    let wrong = [name, place, plain, ("AZURE_STORAGE_ACCOUNT_KEY", "aHVudGVyMg==".to_owned())];
    for (environment, options) in [(&wrong[..], &[][..]), (&anonymous[..], &["--store-option=anonymous=true"][..])] {
        let line = one_line_of_failure(&ls(&private, environment, options), 1);
        assert!(line.contains("cannot use az://") && !line.contains("aHVudGVyMg"), "{line}");
    }
    // as files of a web server: what is written with the chunks comes with the answers here, too
    let at = |path: &str| format!("{}/{PUBLIC}/{path}", server.endpoint());
    let cat = |source: &Path| volfs().arg("cat").arg(source).output().unwrap();
    for (path, here) in [("demo/north.zgy", "demo/north.zgy"), ("tagged", "vds/no-pages")] {
        let (there, here) = (cat(Path::new(&at(path))), cat(&test_data(here)));
        assert!(there.status.success(), "{path}: {}", text(&there.stderr));
        assert!(!here.stdout.is_empty() && there.stdout == here.stdout, "{path}");
    }
    let line = one_line_of_failure(&ls(&at("none"), &[], &[]), 1);
    assert!(line.contains("no such object"), "{line}");
}

const SERVICE_ACCOUNT: &str = "reader@volfs.example.org";

/// Returns whether a token is a claim of the account, signed with its key.
fn is_signed(token: &str, public: &[u8]) -> bool {
    let Some((claim, signature)) = token.rsplit_once('.') else { return false };
    let Ok(signature) = BASE64_URL_SAFE_NO_PAD.decode(signature) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    let body = claim.split('.').nth(1).and_then(|body| BASE64_URL_SAFE_NO_PAD.decode(body).ok());
    let body: Option<Value> = body.and_then(|body| serde_json::from_slice(&body).ok());
    key.verify(claim.as_bytes(), &signature).is_ok() && body.is_some_and(|body| body["iss"] == SERVICE_ACCOUNT)
}

fn bearer(request: &Request) -> Option<&str> {
    request.header("authorization")?.strip_prefix("Bearer ")
}

fn objects() -> Arc<Objects> {
    let objects = Objects::default();
    objects.put_all("top/demo/north.zgy", &test_data("demo/north.zgy"));
    objects.put_all("top/pages", &test_data("vds/pages"));
    // Google's name of what is written with an object
    let generation = [("x-goog-generation", "1"), ("x-goog-meta-anything", "else")];
    objects.put("top/readme.txt", "no dataset", &generation);
    Arc::new(objects)
}

#[test]
fn a_mount_of_google_shows_the_same_as_one_of_a_folder_and_changes() {
    let (keys, local) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let made = openssl(keys.path(), "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out private.pem");
    if made.is_none() || !fuse_or_skip() {
        return;
    }
    openssl(keys.path(), "rsa -in private.pem -RSAPublicKey_out -outform DER -out public.der");
    let public = fs::read(keys.path().join("public.der")).unwrap();
    let (objects, refused) = (objects(), Arc::new(AtomicUsize::new(0)));
    let (served, counted) = (Arc::clone(&objects), Arc::clone(&refused));
    let server = HttpServer::start(move |request| {
        if bearer(request).is_some_and(|token| is_signed(token, &public)) {
            return served.answer(request);
        }
        counted.fetch_add(1, Relaxed);
        Answer::error(401, "Unauthorized")
    });
    let private = fs::read_to_string(keys.path().join("private.pem")).unwrap();
    let account = json!({"type": "service_account", "private_key": private, "private_key_id": "1",
        "client_email": SERVICE_ACCOUNT});
    let file = keys.path().join("account.json");
    fs::write(&file, account.to_string()).unwrap();
    let environment = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_string_lossy().into_owned())];
    let place = format!("base_url=http://{}", server.address());
    let options = ["--store-option=allow_http=true", "--store-option", &place];
    let mount = Mount::of_store("gs://volfs/top", &environment, &options).unwrap();
    copy_all(&test_data("demo/north.zgy"), &local.path().join("demo/north.zgy"));
    copy_all(&test_data("vds/pages"), &local.path().join("pages"));
    let here = Mount::of(local.path()).unwrap();
    let truth = raw_files(here.point());
    assert!(truth.len() > 3 && raw_files(mount.point()) == truth, "{}", mount.log());
    assert_eq!((mount.counter("errors"), refused.load(Relaxed)), (0, 0));
    shows_another(&mount, "demo/north.zgy", |bytes| objects.put("top/demo/north.zgy", bytes, &[]));
    assert!(!mount.log().contains("PRIVATE KEY"));
}

#[test]
fn google_is_asked_as_a_machine_and_as_nobody() {
    let (objects, token) = (objects(), Arc::new(Mutex::new("of-the-machine")));
    let expected = Arc::clone(&token);
    let server = HttpServer::start(move |request| match request.path.as_str() {
        path if path.starts_with("/computeMetadata/") && request.header("metadata-flavor") != Some("Google") => {
            Answer::new(403, "")
        }
        "/computeMetadata/v1/instance/service-accounts/default/token" => {
            let token = json!({"access_token": "of-the-machine", "expires_in": 3600, "token_type": "Bearer"});
            Answer::new(200, token.to_string()).with("content-type", "application/json")
        }
        _ if bearer(request).unwrap_or("") == *expected.lock().unwrap() => objects.answer(request),
        _ => Answer::error(403, "AccessDenied"),
    });
    let home = tempfile::tempdir().unwrap();
    let ls = |options: &[&str]| {
        let mut command = volfs();
        command.args(["ls", "gs://volfs/top", "--store-option=allow_http=true", "--store-option=retries=1"]);
        command.arg(format!("--store-option=base_url=http://{}", server.address())).args(options);
        command.env("GCE_METADATA_HOST", server.address().to_string()).env("HOME", home.path()).output().unwrap()
    };
    let listed = ls(&[]);
    assert!(text(&listed.stdout).contains("north.zgy"), "{}", text(&listed.stderr));
    *token.lock().unwrap() = "";
    let listed = ls(&["--store-option=anonymous=true"]);
    assert!(text(&listed.stdout).contains("north.zgy"), "{}", text(&listed.stderr));
    let line = one_line_of_failure(&ls(&[]), 1);
    assert!(line.contains("403"), "{line}");
}

/// How long a key that is lent holds, and how much longer the store accepts it: requests are under way.
const LENT: Duration = Duration::from_secs(2);
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
        let (id, end) = (format!("LENT{}", lent.len()), SystemTime::now() + LENT);
        lent.push((id.clone(), Instant::now()));
        [id.clone(), format!("secret-of-{id}"), format!("token-of-{id}"), format_rfc3339_millis(end).to_string()]
    }

    /// Refuses a request that is not signed with a key that holds.
    fn check(&self, request: &Request) -> Option<Answer> {
        let signature = request.header("authorization").unwrap_or("");
        let id = signature.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or("");
        let lent = self.lent.lock().unwrap();
        let at = lent.iter().find(|(known, _)| known == id).map(|(_, at)| *at);
        let is_token = request.header("x-amz-security-token") == Some(&format!("token-of-{id}"));
        let limit = LENT + GRACE;
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
    let until = Instant::now() + LENT + 2 * GRACE;
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
    let asked = |server: &HttpServer, more: &[(&'static str, String)]| {
        ls(&[&environment_of(home.path(), server)[..], more].concat())
    };
    let refused = |server: &HttpServer, more: &[(&'static str, String)], says: &str| {
        let line = one_line_of_failure(&asked(server, more), 1);
        assert!(line.contains(says), "{more:?}: {line}");
    };
    let none = "no credentials were found";
    let machine = |server: &HttpServer| ("AWS_EC2_METADATA_SERVICE_ENDPOINT", format!("http://{}", server.address()));
    let bodies = ["", "{}", "{\"Code\": \"AssumeRoleUnauthorizedAccess\", \"Message\": \"no\"}"];
    for (status, body) in [(404, bodies[0]), (500, bodies[0]), (200, bodies[1]), (200, bodies[2])] {
        let server = HttpServer::start(move |request| match request.path.rsplit('/').next() {
            Some("token") => Answer::new(200, "session"),
            // the name of the role, where there is one
            Some("") if status == 200 => Answer::new(200, "reader"),
            _ => Answer::new(status, body),
        });
        refused(&server, &[machine(&server)], none);
    }
    // a machine of which it is known that it has no such service
    let server = HttpServer::start(|_| Answer::new(200, "reader"));
    refused(&server, &[machine(&server), ("AWS_EC2_METADATA_DISABLED", "true".to_owned())], none);
    assert_eq!(server.log().len(), 0);
    // the library takes whatever it is told for the name of a role, and panics where that is none
    let server = HttpServer::start(|_| Answer::new(200, "<html>\n{} not a role"));
    let output = asked(&server, &[machine(&server)]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    // a container's service that refuses, and one that is not there
    let server = HttpServer::start(|_| Answer::new(403, "not you"));
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    fs::write(at("token"), "a-pod").unwrap();
    for uri in [format!("http://{}/pod", server.address()), "http://127.0.0.1:1/pod".to_owned()] {
        let token = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", at("token"));
        refused(&server, &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri), token], none);
    }
    // a profile that is nowhere, and one that logs in in a way that volfs does not know
    fs::write(at("config"), "[profile sso]\nsso_session = us\n").unwrap();
    let profile = [("AWS_CONFIG_FILE", at("config")), ("AWS_PROFILE", "sso".to_owned())];
    refused(&server, &profile, "export-credentials --profile sso");
}

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
