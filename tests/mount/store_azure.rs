//! Datasets in Azure Blob Storage, with each kind of credentials, and in a public container.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::store_faults::raw_files;
use crate::support::azurite::{ACCOUNT, CONTAINER, PUBLIC};
use crate::support::{Azurite, Mount, comes_true, copy_all, one_line_of_failure, test_data, text, volfs};

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

fn mount(url: &str, environment: &[(&str, String)]) -> Option<Mount> {
    Mount::of_store(url, environment, &[])
}

#[test]
fn a_mount_of_azure_shows_the_same_as_one_of_a_folder_and_changes() {
    let Some(server) = Azurite::start() else { return };
    if !crate::support::fuse_or_skip() {
        return;
    }
    let truth = fill(&server, CONTAINER);
    let environment = [("AZURE_STORAGE_CONNECTION_STRING", server.connection_string())];
    let mount = mount(&format!("az://{CONTAINER}/top"), &environment).unwrap();
    assert!(raw_files(mount.point()) == truth);
    assert_eq!(mount.counter("errors"), 0);
    // an object that is replaced is another dataset
    let other = fs::read(test_data("zgy/v3_float32.zgy")).unwrap();
    server.put(CONTAINER, "top/demo/north.zgy", &other, &[]);
    let wanted = volfs().arg("cat").arg(test_data("zgy/v3_float32.zgy")).output().unwrap().stdout;
    let raw = mount.data("demo/north.zgy", "lod0.raw");
    assert!(comes_true(Duration::from_secs(20), || fs::read(&raw).is_ok_and(|now| now == wanted)));
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
