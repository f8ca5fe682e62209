//! A bucket with a million objects is entered at once: with a few requests, whatever lies beside what is asked for.

use std::fs;

use crate::support::objects::page;
use crate::support::{Answer, HttpServer, Mount, Objects, Request, fuse_or_skip, names, test_data};

const CROWD: usize = 1_000_000;
/// Names on a page of a listing.
const PAGE: usize = 1000;

/// Answers a listing of a folder of a million objects, and of a folder `survey` among them.
fn crowd(request: &Request, prefix: &str) -> Answer {
    let first: usize = request.asked("continuation-token").map_or(0, |token| token.parse().unwrap());
    let end = CROWD.min(first + PAGE);
    let name = |n: usize| (format!("{prefix}{n:07}"), 1, format!("etag{n}"));
    let files: Vec<_> = (first..end).map(name).collect();
    let survey = format!("{prefix}survey/");
    // in the order of the names, so on the last page
    let folders = if end == CROWD { vec![survey.as_str()] } else { Vec::new() };
    page(&files, folders.into_iter(), (end < CROWD).then(|| end.to_string()).as_deref())
}

/// Starts a store with a crowd at the top and another one in `deep/`, and a dataset in each.
fn start() -> HttpServer {
    let objects = Objects::default();
    for key in ["survey", "deep/survey"] {
        objects.put_all(key, &test_data("vds/pages"));
    }
    HttpServer::start(move |request| match request.asked("prefix") {
        None | Some("") if request.asked("list-type").is_some() => crowd(request, ""),
        Some("deep/") => crowd(request, "deep/"),
        _ => objects.answer(request),
    })
}

#[test]
fn a_bucket_of_a_million_objects_is_entered_with_a_few_requests() {
    if !fuse_or_skip() {
        return;
    }
    let server = start();
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", server.address())),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_SKIP_SIGNATURE", "true".to_owned()),
    ];
    for key in ["s3://volfs", "s3://volfs/deep"] {
        server.forget();
        let Some(mount) = Mount::of_store(key, &environment, &[]) else { return };
        let mounted = server.log();
        assert!(mounted.len() <= 12, "{key}: {mounted:#?}");
        server.forget();
        assert!(names(mount.path("survey")).contains("Amplitude"), "{:?}", names(mount.path("survey")));
        let entered = server.log();
        assert!(entered.len() <= 20, "{key}: {entered:#?}");
        // and what is in it is read
        assert!(!fs::read(mount.path("survey/Amplitude/lod0.raw")).unwrap().is_empty());
        assert!(server.log().len() < 200, "{}", server.log().len());
    }
}
