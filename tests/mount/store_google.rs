//! Datasets in Google Cloud Storage: a server of the test's own speaks what the client asks for. It proves that requests
//! are signed and addressed as Google documents them, and not that Google's servers answer alike.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::store_faults::raw_files;
use crate::support::tls::openssl;
use crate::support::{
    Answer, HttpServer, Mount, Objects, Request, comes_true, copy_all, fuse_or_skip, one_line_of_failure, test_data,
    text, volfs,
};

const ACCOUNT: &str = "reader@volfs.example.org";

/// Returns whether a token is a claim of the account, signed with its key.
fn is_signed(token: &str, public: &[u8]) -> bool {
    let Some((claim, signature)) = token.rsplit_once('.') else { return false };
    let Ok(signature) = BASE64_URL_SAFE_NO_PAD.decode(signature) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    let body = claim.split('.').nth(1).and_then(|body| BASE64_URL_SAFE_NO_PAD.decode(body).ok());
    let body: Option<Value> = body.and_then(|body| serde_json::from_slice(&body).ok());
    key.verify(claim.as_bytes(), &signature).is_ok() && body.is_some_and(|body| body["iss"] == ACCOUNT)
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
        "client_email": ACCOUNT});
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
    let other = test_data("zgy/v3_float32.zgy");
    objects.put("top/demo/north.zgy", fs::read(&other).unwrap(), &[]);
    let wanted = volfs().arg("cat").arg(&other).output().unwrap().stdout;
    let raw = mount.data("demo/north.zgy", "lod0.raw");
    assert!(comes_true(Duration::from_secs(20), || fs::read(&raw).is_ok_and(|now| now == wanted)));
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
