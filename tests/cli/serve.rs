//! `volfs serve`: the bytes, names and headers of the tree over HTTP.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::support::volfs_server::{Answer, Server};
use super::support::{StoreServer, damaged, one_line_of_failure, skip, source_of, test_data, volfs};
use super::{demo, output};

fn demo_server(arguments: &[&str]) -> Server {
    Server::start(&test_data("demo"), arguments)
}

fn listing(server: &Server, path: &str) -> Value {
    let listing = server.request("GET", path, &[("Accept", "application/json")]);
    assert_eq!(listing.header("content-type"), "application/json");
    listing.json()
}

/// Returns the names of a listing with their kinds.
fn listed(server: &Server, path: &str) -> BTreeSet<(String, String)> {
    let listing = listing(server, path);
    assert_eq!((&listing["schema"], listing["path"].as_str()), (&Value::from(1), Some(path)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    listing["entries"].as_array().unwrap().iter().map(|entry| (text(&entry["href"]), text(&entry["kind"]))).collect()
}

fn entry(href: &str, kind: &str) -> (String, String) {
    (href.to_owned(), kind.to_owned())
}

#[test]
fn files_have_the_bytes_that_cat_prints() {
    let server = demo_server(&[]);
    for (place, dataset, layer) in [
        ("north.zgy/data", "north.zgy", "data"),
        ("cells/color", "cells", "color"),
        ("south.vds/Amplitude", "south.vds", "Amplitude"),
    ] {
        for lod in ["0", "1"] {
            let answer = server.get(&format!("/{place}/lod{lod}.raw"));
            let path = test_data("demo").join(dataset);
            assert_eq!(answer.status, 200);
            assert!(answer.bytes() == output("cat", &["--layer", layer, "--lod", lod], &path), "{place} {lod}");
            assert_eq!(answer.header("content-type"), "application/octet-stream");
        }
    }
    let status = server.get("/.volfs/status.json");
    assert_eq!(status.header("cache-control"), "no-store");
    assert!(!status.has("etag") && status.json()["counters"]["reads"].as_u64().unwrap() > 0);
    assert_eq!(server.get("/.volfs/log").header("content-type"), "text/plain; charset=utf-8");
    let metrics = server.get("/.volfs/metrics");
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let bytes = format!("\nvolfs_read_bytes_total{{mountpoint=\"\",source=\"{}\"}} ", test_data("demo").display());
    let (_, bytes) = metrics.text().split_once(&bytes).unwrap_or_else(|| panic!("{metrics:?}"));
    assert!(bytes.lines().next().unwrap().parse::<u64>().unwrap() > 9 << 20);
    assert_eq!(server.get("/.volfs/metrics/").status, 404);
}

#[test]
fn layers_and_axes_are_found_by_names_that_are_not_listed() {
    let server = demo_server(&[]);
    for (typed, listed) in [
        ("south.vds/data/lod1.raw", "south.vds/Amplitude/lod1.raw"),
        ("south.vds/amplitude/lod1.by-sample.npy", "south.vds/Amplitude/lod1.by-Sample.npy"),
        ("south.vds/data.zarr/lod1/sample/c/0", "south.vds/Amplitude.zarr/lod1/Sample/c/0"),
        ("cells/data/lod1.raw?box=3", "cells/color/lod1.raw?box=3"),
    ] {
        let (other, own) = (server.get(&format!("/{typed}")), server.get(&format!("/{listed}")));
        assert_eq!((other.status, other.header("content-type")), (200, own.header("content-type")), "{typed}");
        assert!(other.bytes() == own.bytes() && other.header("etag") == own.header("etag"), "{typed}");
    }
    assert!(!listed(&server, "/south.vds/").contains(&entry("data/", "folder")));
    assert_eq!(server.get("/cells/colour/lod0.raw").status, 404);
}

#[test]
fn folders_are_listed_for_programs_that_ask_and_shown_to_browsers() {
    let server = demo_server(&[]);
    let top =
        [("cells/", "dataset"), ("cloud-survey/", "dataset"), ("north.zgy/", "dataset"), ("south.vds/", "dataset")];
    let top: BTreeSet<_> =
        top.into_iter().chain([(".volfs/", "folder")]).map(|(href, kind)| entry(href, kind)).collect();
    assert_eq!(listed(&server, "/"), top);
    let dataset = listed(&server, "/north.zgy/");
    assert!(dataset.contains(&entry("data/", "folder")) && dataset.contains(&entry("dataset.json", "file")));
    // several pieces, and a page of the first thousand
    let slices = "/north.zgy/data/lod0.slices/inline/";
    assert_eq!(listed(&server, slices).len(), 128);
    // links to the entries and to nothing else, for programs that ask for nothing in particular
    for headers in [&[][..], &[("Accept", "*/*")]] {
        let links = server.request("GET", "/north.zgy/", headers);
        assert!(links.header("content-type") == "text/html; charset=utf-8" && varies_by_accept(&links));
        let hrefs = links.text().split("href=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
        let hrefs: BTreeSet<&str> = hrefs.collect();
        assert!(hrefs.iter().copied().eq(dataset.iter().map(|(href, _)| href.as_str())), "{hrefs:?}");
    }
    assert_eq!(server.get(slices).text().matches("<a href=").count(), 128);
    for (from, to) in [("/north.zgy", "north.zgy/"), ("/north.zgy/data?x=1", "data/?x=1")] {
        let moved = server.get(from);
        assert_eq!((moved.status, moved.header("location")), (307, to));
    }
    let page = server.request("GET", "/north.zgy/", &[("Accept", "text/html,*/*;q=0.8")]);
    assert!(page.header("content-type").starts_with("text/html") && varies_by_accept(&page));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; script-src 'self'"));
    assert!(page.text().contains("<a href=\"data/\">data/</a>") && page.text().contains("data-kind=\"dataset\""));
    // further pages lead back to the first, which leads nowhere
    for (query, is_first) in [("", true), ("?from=0", true), ("?from=1", false)] {
        let page = server.request("GET", &format!("/north.zgy/{query}"), &[("Accept", "text/html")]);
        assert_eq!(page.text().contains("First entries"), !is_first, "{query}");
    }
    for file in ["page.js", "page.css", "icon.svg"] {
        assert!(page.text().contains(&format!("\"../.volfs/page/{file}\"")));
        let file = server.get(&format!("/.volfs/page/{file}"));
        assert_eq!(file.status, 200);
        let again = server.request("GET", "/.volfs/page/page.js", &[("If-None-Match", file.header("etag"))]);
        assert!(again.status == 304 || file.header("content-type") != "text/javascript; charset=utf-8");
    }
}

#[test]
fn the_page_needs_nothing_but_this_server() {
    let server = demo_server(&[]);
    let page = server.request("GET", "/north.zgy/", &[("Accept", "text/html")]);
    let page = page.text();
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("<script type=\"module\" src=\"../.volfs/page/page.js\">"), "{page}");
    let script = server.get("/.volfs/page/page.js");
    assert_eq!((script.status, script.header("content-type")), (200, "text/javascript; charset=utf-8"));
    let script = script.text();
    // all modules are in it, each once, and nothing else is asked for
    assert!(!script.lines().any(|line| line.starts_with("import ") || line.starts_with("export ")));
    for module in ["main", "plane", "samples"] {
        assert_eq!(script.matches(&format!("const ${module} = (() =>")).count(), 1, "{module}");
    }
    assert_eq!(script.matches("://").count(), script.matches("http://www.w3.org/").count());
}

#[test]
fn ranges_are_those_of_the_standard() {
    let server = demo_server(&[]);
    let whole = output("cat", &[], &demo());
    let get = |range: &str| server.request("GET", "/north.zgy/data/lod0.raw", &[("Range", range)]);
    let size = whole.len();
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=1000000-3000000", 1_000_000, 3_000_001),
        ("bytes=-5", size - 5, size),
        ("bytes=9437183-", size - 1, size),
    ] {
        let answer = get(range);
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.header("content-range"), format!("bytes {from}-{}/{size}", to - 1));
        assert!(answer.bytes() == &whole[from..to], "{range}");
    }
    let outside = get("bytes=9437184-");
    assert_eq!((outside.status, outside.header("content-range")), (416, "bytes */9437184"));
    for whole_range in ["bytes=5-2", "lines=1-2", "bytes=x"] {
        assert_eq!(get(whole_range).status, 200);
    }
    let several = get("bytes=0-3, 500-599,-4");
    assert_eq!(several.status, 206);
    let boundary = several.header("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let mut expected = Vec::new();
    for (n, (from, to)) in [(0, 4), (500, 600), (size - 4, size)].into_iter().enumerate() {
        let start = if n == 0 { "" } else { "\r\n" };
        let head = format!(
            "{start}--{boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes {from}-{}/{size}\r\n\r\n",
            to - 1
        );
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(&whole[from..to]);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert!(several.bytes() == expected);
    let head = server.request("HEAD", "/north.zgy/data/lod0.raw", &[("Range", "bytes=0-1")]);
    assert_eq!((head.status, head.header("content-length"), head.header("accept-ranges")), (200, "9437184", "bytes"));
}

#[test]
fn boxes_are_the_regions_of_cat() {
    let server = demo_server(&[]);
    let raw = "/north.zgy/data/lod0.raw?box=";
    for region in ["64", "3:5,10:20", ":,:,100", "127,95,191", "0:128", "5:100,7:90,3:190"] {
        let answer = server.get(&format!("{raw}{region}"));
        assert_eq!(answer.status, 200);
        assert!(answer.bytes() == output("cat", &["--region", region], &demo()), "{region}");
    }
    for bad in ["", "128", "3:3", "a", "1,2,3,4"] {
        let answer = server.get(&format!("{raw}{bad}"));
        assert!(answer.status == 400 && answer.text().lines().count() == 1, "{bad}");
    }
    let part = server.request("GET", &format!("{raw}64"), &[("Range", "bytes=100-199")]);
    assert_eq!((part.status, part.header("content-range")), (206, "bytes 100-199/73728"));
    assert!(part.bytes() == &output("cat", &["--region", "64"], &demo())[100..200]);
}

#[test]
fn boxes_are_files_in_every_form() {
    let server = demo_server(&[]);
    for (path, arguments, kind) in [
        ("lod0.npy?box=3:5,10:20", &["--format", "npy", "--region", "3:5,10:20"][..], "application/octet-stream"),
        (
            "lod0.sgy?box=1:100,7:90,3:190",
            &["--format", "sgy", "--region", "1:100,7:90,3:190"],
            "application/octet-stream",
        ),
        ("lod1.raw?format=sgy", &["--format", "sgy", "--lod", "1"], "application/octet-stream"),
        ("tiff/lod0.tif?box=:,5:9", &["--format", "tif", "--region", ":,5:9"], "image/tiff"),
        ("lod0.npy?format=raw&box=7", &["--region", "7"], "application/octet-stream"),
        ("lod0.sgy?format=csv&box=7:9,:,3:5", &["--format", "csv", "--region", "7:9,:,3:5"], "text/csv; charset=utf-8"),
    ] {
        let answer = server.get(&format!("/north.zgy/data/{path}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{path}");
        assert!(answer.bytes() == output("cat", arguments, &demo()), "{path}");
        assert!(answer.header("content-disposition").starts_with("attachment; filename=\"lod"), "{path}");
        let is_table = path.contains("csv");
        assert_eq!(
            (answer.has("content-length"), answer.header("accept-ranges")),
            (!is_table, if is_table { "none" } else { "bytes" })
        );
    }
    // a box of a whole level is the file of the level
    let whole = [("lod0.npy", "npy"), ("tiff/lod0.tif", "tif"), ("lod0.sgy", "sgy")];
    for (path, format) in whole {
        let file = server.get(&format!("/north.zgy/data/{path}"));
        assert!(file.bytes() == output("cat", &["--format", format], &demo()), "{path}");
        assert!(file.bytes() == server.get(&format!("/north.zgy/data/lod0.raw?format={format}")).bytes(), "{path}");
    }
    for (path, why) in [
        ("north.zgy/data/lod0.by-sample.npy?box=1", "no samples in the order of the array"),
        ("north.zgy/data/lod0.json?box=1", "boxes are of files of samples"),
        ("north.zgy/data/lod0.raw?format=jpg", "format is one of raw, npy, sgy, tif, csv"),
        ("north.zgy/data/lod0.raw?box=1:2,3,x&format=sgy", "box, axis 2: write START:STOP"),
        ("cells/color/lod0.raw?format=sgy", "it is no survey"),
    ] {
        let answer = server.get(&format!("/{path}"));
        assert!(answer.status == 400 && answer.text().contains(why), "{path}: {}", answer.text());
    }
}

#[test]
fn scaled_boxes_have_values() {
    let server = Server::start(&test_data("zgy"), &[]);
    let values = server.get("/v3_int16.zgy/data/lod0.float32.npy");
    let path = test_data("zgy/v3_int16.zgy");
    assert!(values.bytes() == output("cat", &["--format", "npy", "--scaled"], &path));
    assert!(values.bytes() == server.get("/v3_int16.zgy/data/lod0.raw?format=npy&scaled").bytes());
    let of_box = server.get("/v3_int16.zgy/data/lod0.float32.npy?box=2:9,3");
    assert!(of_box.bytes() == output("cat", &["--format", "npy", "--scaled", "--region", "2:9,3"], &path));
}

fn varies_by_accept(answer: &Answer) -> bool {
    answer.header("vary").split(',').any(|name| name.trim() == "accept")
}

#[test]
fn a_client_that_has_a_file_does_not_get_it_again() {
    let server = demo_server(&[]);
    let path = "/north.zgy/data/lod1.raw";
    let first = server.get(path);
    if !first.has("etag") {
        return skip("the test data were written a moment ago, so they have no entity tags yet");
    }
    let version = |path: &str| server.get(path).header("volfs-version").to_owned();
    assert_eq!(first.header("volfs-version"), version("/north.zgy/data/lod0.raw"));
    assert_ne!(first.header("volfs-version"), version("/south.vds/Amplitude/lod0.raw"));
    let (tag, date) = (first.header("etag"), first.header("last-modified"));
    assert!(tag.starts_with('"') && !date.is_empty() && first.header("cache-control") == "no-cache");
    let with = |headers: &[(&str, &str)]| server.request("GET", path, headers);
    assert_eq!(with(&[("If-None-Match", tag)]).status, 304);
    assert_eq!(with(&[("If-None-Match", "\"other\"")]).status, 200);
    assert_eq!(with(&[("If-Match", "\"other\"")]).status, 412);
    assert_eq!(with(&[("If-Match", tag), ("Range", "bytes=0-9")]).status, 206);
    assert_eq!(with(&[("If-Range", tag), ("Range", "bytes=0-9")]).status, 206);
    assert_eq!(with(&[("If-Range", "\"other\""), ("Range", "bytes=0-9")]).bytes(), first.bytes());
    // the bytes that are sent compressed are not those of the file
    let json = |headers: &[(&str, &str)]| server.request("GET", "/north.zgy/dataset.json", headers);
    let (plain, packed) = (json(&[]), json(&[("Accept-Encoding", "gzip")]));
    assert_eq!(packed.header("etag"), format!("W/{}", plain.header("etag")));
    assert_eq!(packed.header("content-encoding"), "gzip");
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.bytes()), &mut unpacked).unwrap();
    assert_eq!(unpacked, plain.bytes());
    assert_eq!(json(&[("If-None-Match", packed.header("etag"))]).status, 304);
    // another server of the same files must not take its tags for its own
    let other = demo_server(&[]);
    assert_eq!(other.request("GET", path, &[("If-None-Match", tag)]).status, 200);
}

#[test]
fn listings_can_be_compressed() {
    let server = demo_server(&[]);
    let headers = [("Accept-Encoding", "gzip"), ("Accept", "application/json")];
    let packed = server.request("GET", "/north.zgy/data/lod0.slices/inline/", &headers);
    assert_eq!(packed.header("content-encoding"), "gzip");
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.bytes()), &mut unpacked).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&unpacked).unwrap()["entries"].as_array().unwrap().len(), 128);
}

#[test]
fn bad_data_are_an_error_and_never_other_bytes() {
    let server = Server::start(&test_data("zgy"), &[]);
    let (mut refused, mut broken_off) = (0, 0);
    for fixture in damaged("read") {
        let answer = server.get(&format!("/{}/data/lod0.raw", fixture.name));
        match (answer.status, &answer.body) {
            (500, Ok(reason)) => {
                assert_eq!(reason.iter().filter(|byte| **byte == b'\n').count(), 1);
                refused += 1;
            }
            // the connection is broken off where the bytes end
            (200, Err(_)) => broken_off += 1,
            (status, body) => panic!("{}: status {status}, {:?}", fixture.name, body.as_ref().map(Vec::len)),
        }
        assert!(server.get("/.volfs/log").text().contains(&fixture.name));
    }
    assert!(refused > 0, "{refused} refused, {broken_off} broken off");
    assert!(server.get("/bad_magic.zgy/error.txt").text().starts_with("bad_magic.zgy: "));
}

#[test]
fn a_changed_file_is_another_one() {
    let source = source_of("demo", &["north.zgy"]);
    let server = Server::start(source.path(), &[]);
    let path = "/north.zgy/data/lod0.raw";
    // what was written a moment ago is not taken for what it will be
    let first = server.request("HEAD", path, &[]);
    assert_eq!((first.status, first.has("etag"), first.header("cache-control")), (200, false, "no-store"));
    fs::remove_file(source.path().join("north.zgy")).unwrap();
    super::support::wait_until("it is gone", || server.get(path).status == 404);
}

#[test]
fn only_reading_by_the_own_name_is_allowed() {
    let server = demo_server(&["--allow-host", "data.example"]);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"] {
        let answer = server.request(method, "/", &[]);
        assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"), "{method}");
    }
    for (host, status) in
        [("evil.example", 421), ("localhost:80", 200), ("[::1]:9", 200), ("DATA.example", 200), ("10.0.0.1", 421)]
    {
        assert_eq!(server.request("GET", "/", &[("Host", host)]).status, status, "{host}");
    }
    let foreign = server.request("GET", "/", &[("Origin", "https://viewer.example")]);
    assert!(!foreign.has("access-control-allow-origin"));
    assert_eq!(foreign.header("cross-origin-resource-policy"), "same-origin");
    let shared = demo_server(&["--allow-origin", "https://viewer.example"]);
    let open = demo_server(&["--allow-origin", "*"]);
    let viewer = demo_server(&["--neuroglancer", "http://127.0.0.1:9000/v/"]);
    let origin = [("Origin", "https://viewer.example")];
    let allowed = shared.request("GET", "/north.zgy/data/lod0.json", &origin);
    assert_eq!(allowed.header("access-control-allow-origin"), "https://viewer.example");
    // pictures are for that origin alone, too, and for none that is not said
    let picture = "/north.zgy/data/preview.png";
    for (server, origin, policy) in [
        (&shared, Some("https://viewer.example"), "cross-origin"),
        (&shared, Some("https://other.example"), "same-origin"),
        (&shared, Some("null"), "same-origin"),
        (&shared, Some("*"), "same-origin"),
        (&shared, None, "same-origin"),
        (&open, None, "cross-origin"),
        (&open, Some("https://other.example"), "cross-origin"),
        (&viewer, Some("http://127.0.0.1:9000"), "cross-origin"),
        (&viewer, Some("http://127.0.0.1:9001"), "same-origin"),
    ] {
        for path in [picture, "/", "/nothing"] {
            let headers: Vec<(&str, &str)> = origin.map(|origin| ("Origin", origin)).into_iter().collect();
            let answer = server.request("GET", path, &headers);
            assert_eq!(answer.header("cross-origin-resource-policy"), policy, "{origin:?} {path}");
            assert!(answer.header("vary").split(", ").any(|name| name == "origin"), "{}", answer.header("vary"));
        }
    }
    let asked = [
        ("Origin", "https://viewer.example"),
        ("Access-Control-Request-Method", "GET"),
        ("Access-Control-Request-Headers", "range"),
    ];
    assert!(shared.request("OPTIONS", "/", &asked).header("access-control-allow-headers").contains("range"));
    assert!(!shared.request("GET", "/", &[("Origin", "https://other.example")]).has("access-control-allow-origin"));
}

#[test]
fn what_is_not_there_leads_to_what_is() {
    let server = demo_server(&[]);
    for (path, folder, up) in [
        ("/north.zgy/data/lod9.raw", "/north.zgy/data/", "./"),
        ("/north.zgy/data/lod9/x/y", "/north.zgy/data/", "../../"),
        ("/north.zgy/data/lod0.raw/x", "/north.zgy/data/", "../"),
        ("/north.zgy/data/lod0.raw/", "/north.zgy/data/", "../"),
        ("/a%3Cb/c/", "/", "../../"),
        ("/north.zgy/../x", "/", "../../"),
        ("/nothing", "/", "./"),
    ] {
        let line = server.get(path);
        assert_eq!(
            (line.status, line.text()),
            (404, &format!("not found; the folder above that is there: {folder}\n")[..])
        );
        let page = server.request("GET", path, &[("Accept", "text/html,*/*;q=0.8")]);
        assert_eq!((page.status, page.header("cache-control")), (404, "no-store"), "{path}");
        assert!(page.header("content-type").starts_with("text/html") && varies_by_accept(&page));
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
        assert!(page.text().contains(&format!("<a href=\"{up}\">{folder}</a>")), "{path}: {}", page.text());
        assert!(page.text().contains("/page/page.css\""));
    }
}

#[test]
fn heads_are_those_of_the_responses() {
    let server = demo_server(&[]);
    for (path, accept) in [
        ("/", "*/*"),
        ("/", "text/html"),
        ("/north.zgy/data/", "text/html"),
        ("/north.zgy/data/lod0.json", "*/*"),
        ("/.volfs/page/main.js", "*/*"),
        ("/north.zgy/data/lod1.raw?format=csv&box=0,0,0:5", "*/*"),
        ("/nothing", "*/*"),
        ("/nothing", "text/html"),
    ] {
        let [get, head] = ["GET", "HEAD"].map(|method| server.request(method, path, &[("Accept", accept)]));
        assert_eq!(head.status, get.status);
        for name in ["content-type", "content-length", "cache-control", "vary"] {
            assert_eq!(
                (head.has(name), head.header(name)),
                (get.has(name), get.header(name)),
                "{path} {accept} {name}"
            );
        }
        assert!(!head.has("content-length") || head.header("content-length") != "0", "{path} {accept}");
    }
    let tag = server.request("GET", "/.volfs/page/main.js", &[]).header("etag").to_owned();
    let head = server.request("HEAD", "/.volfs/page/main.js", &[("If-None-Match", &tag)]);
    assert_eq!((head.status, head.has("content-length")), (304, false));
}

#[test]
fn what_cannot_be_served_is_said_in_one_line() {
    let fails = |arguments: &[&str], status, words: &str| {
        let output = volfs().arg("serve").args(arguments).output().unwrap();
        let line = one_line_of_failure(&output, status);
        assert!(line.contains(words), "{line}");
    };
    let demo = test_data("demo");
    let demo = demo.to_str().unwrap();
    fails(&[demo, "--listen", "0.0.0.0:0"], 2, "--allow-remote");
    fails(&["/nowhere"], 1, "cannot find the source");
    let taken = demo_server(&[]);
    fails(&[demo, "--listen", &taken.address.to_string()], 1, "cannot listen at");
}

#[test]
fn curl_speaks_both_versions() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("curl is not installed");
    }
    let server = demo_server(&[]);
    let whole = output("cat", &[], &demo());
    let url = format!("http://{}/north.zgy/data/lod0.raw", server.address);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let curl = |arguments: &[&str]| {
            Command::new("curl").args(["-sS", version]).args(arguments).arg(&url).output().unwrap()
        };
        let all = curl(&[]);
        if !all.status.success() && version != "--http1.1" {
            return skip("this curl has no HTTP/2");
        }
        assert!(all.stdout == whole, "{version}");
        assert!(curl(&["-r", "4096-999999"]).stdout == whole[4096..1_000_000], "{version}");
    }
}

#[test]
fn names_are_encoded_as_links_say() {
    let source = tempfile::tempdir().unwrap();
    let odd = "a b%2F#?&é.zgy";
    fs::copy(demo(), source.path().join(odd)).unwrap();
    let server = Server::start(source.path(), &[]);
    let listing = listing(&server, "/");
    let entry = listing["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == "dataset").unwrap();
    assert_eq!((entry["name"].as_str(), entry["href"].as_str()), (Some(odd), Some("a%20b%252F%23%3F%26%C3%A9.zgy/")));
    let path = format!("/{}dataset.json", entry["href"].as_str().unwrap());
    assert_eq!(server.get(&path).json()["name"], odd);
    let links = server.get("/");
    assert!(links.text().contains("<a href=\"a%20b%252F%23%3F%26%C3%A9.zgy/\">a b%2F#?&amp;é.zgy/</a>"), "{links:?}");
}

#[test]
fn a_store_is_served_like_a_folder() {
    let Some(store) = StoreServer::start() else { return };
    store.put_all("north.zgy", &demo());
    let mut command = volfs();
    command.arg("serve").arg(StoreServer::url("north.zgy")).args(["--listen", "127.0.0.1:0"]);
    let server = Server::run(command.envs(StoreServer::environment(store.address())));
    assert!(server.get("/north.zgy/data/lod0.raw").bytes() == output("cat", &[], &demo()));
    assert_eq!(listed(&server, "/north.zgy/").len(), 4);
}
