//! `volfs serve` and clients that are slow, gone, many or hostile.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::support::http2::{CONTINUATION, DATA, HEADERS, Http2, PING, RST_STREAM, SETTINGS, WHOLE, field, head};
use super::support::volfs_server::{Answer, Server, is_closed_within};
use super::support::{SOON, memory, test_data, wait_until};

const RAW: &str = "/north.zgy/data/lod0.raw";

fn demo_server(arguments: &[&str]) -> Server {
    Server::start(&test_data("demo"), arguments)
}

fn request(server: &Server, path: &str) -> TcpStream {
    let mut stream = server.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

fn open_files(server: &Server) -> u64 {
    server.get("/.volfs/status.json").json()["now"]["open_files"].as_u64().unwrap()
}

#[test]
fn slow_clients_hold_little_memory_and_let_others_go_on() {
    let server = demo_server(&[]);
    // all that is decoded is in memory before
    assert_eq!(server.get(RAW).bytes().len(), 9 << 20);
    let before = memory(server.pid(), "VmRSS");
    let slow: Vec<TcpStream> = (0..300).map(|_| request(&server, RAW)).collect();
    wait_until("all are being answered", || open_files(&server) == 300);
    assert_eq!(server.get(RAW).bytes().len(), 9 << 20);
    let grown = memory(server.pid(), "VmRSS").saturating_sub(before);
    // the budget of long pieces, and for each client a short piece and what a connection needs
    assert!(grown < (20 << 20) + 300 * (96 << 10), "{} KiB", grown >> 10);
    drop(slow);
    wait_until("their files are closed", || open_files(&server) == 0);
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let server = demo_server(&["--idle-timeout", "0.5"]);
    let mut stalled = request(&server, RAW);
    wait_until("it is being answered", || open_files(&server) == 1);
    wait_until("it is given up", || open_files(&server) == 0);
    let mut taken = Vec::new();
    assert!(stalled.read_to_end(&mut taken).map_or(true, |n| n < 9 << 20));
    // one that takes its time, but takes it
    let mut slow = request(&server, RAW);
    let mut left = 9 << 20;
    let mut part = vec![0; 1 << 20];
    while left > 0 {
        let taken = slow.read(&mut part).unwrap();
        assert!(taken > 0);
        left -= taken.min(left);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Streams of one connection.
const STREAMS: u32 = 64;

/// Requests a path on all streams of a connection, which have this window.
fn all_streams(server: &Server, window: u32, path: &str) -> Http2 {
    let mut client = Http2::new(server.connect(), window);
    for n in 0..STREAMS {
        client.get(2 * n + 1, path).unwrap();
    }
    client
}

#[test]
fn http2_streams_that_take_nothing_end_and_so_does_their_connection() {
    let server = demo_server(&["--idle-timeout", "1"]);
    for path in [RAW, "/north.zgy/data/lod0.raw?box=0:9", "/north.zgy/data/lod0.json", "/", "/.volfs/page/plane.js"] {
        let mut stalled = all_streams(&server, 0, path);
        let frames = stalled.read_to_end(SOON).unwrap_or_else(|| panic!("{path}: the connection stays"));
        assert!(!frames.iter().any(|frame| frame.kind == DATA && !frame.bytes.is_empty()), "{path}");
        assert!(frames.iter().any(|frame| frame.kind == RST_STREAM), "{path}");
        wait_until(&format!("the files of {path} are closed"), || open_files(&server) == 0);
    }
    // the window of the connection has 65,535 bytes at first
    let mut stalled = all_streams(&server, 1 << 20, RAW);
    assert!(stalled.read_to_end(SOON).is_some());
    wait_until("its files are closed", || open_files(&server) == 0);
}

#[test]
fn http2_streams_that_take_a_byte_now_and_then_end() {
    let server = demo_server(&["--idle-timeout", "1"]);
    let mut trickle = all_streams(&server, 0, RAW);
    wait_until("all are being answered", || open_files(&server) == u64::from(STREAMS));
    let began = Instant::now();
    while (0..STREAMS).all(|n| trickle.allow(2 * n + 1, 1).is_ok()) {
        assert!(began.elapsed() < SOON, "they are being answered still");
        std::thread::sleep(Duration::from_millis(100));
    }
    wait_until("their files are closed", || open_files(&server) == 0);
}

#[test]
fn an_http2_client_that_takes_its_time_gets_all() {
    let server = demo_server(&["--idle-timeout", "1"]);
    let mut slow = Http2::new(server.connect(), 0);
    slow.get(1, RAW).unwrap();
    slow.allow(0, 100 << 20).unwrap();
    let (mut taken, began) = (0, Instant::now());
    // longer than the timeout
    while began.elapsed() < Duration::from_secs(2) {
        slow.allow(1, 64 << 10).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    slow.allow(1, 16 << 20).unwrap();
    while taken < 9 << 20 {
        let frame = slow.next(SOON).expect("it is broken off");
        assert_ne!(frame.kind, RST_STREAM);
        taken += if frame.kind == DATA { frame.bytes.len() } else { 0 };
    }
}

#[test]
fn clients_that_take_nothing_make_room_for_others() {
    // as long as nobody else wants anything, they have a minute
    let server = demo_server(&["--max-requests", "64"]);
    let streams = [all_streams(&server, 0, RAW), all_streams(&server, 0, RAW)];
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..3 {
        assert_eq!(server.get("/north.zgy/data/lod0.json").status, 200);
    }
    drop(streams);
    let server = demo_server(&["--max-requests", "64"]);
    let connections: Vec<TcpStream> = (0..80).map(|_| request(&server, RAW)).collect();
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..3 {
        assert_eq!(server.get("/north.zgy/data/lod0.json").status, 200);
    }
    drop(connections);
}

#[test]
fn many_ranges_cost_no_more_than_a_slow_client() {
    let server = demo_server(&[]);
    assert_eq!(server.get(RAW).bytes().len(), 9 << 20);
    let before = memory(server.pid(), "RssAnon");
    // nothing after the first one fits the buffers of a connection
    let ranges: String = (0..1000).map(|n| format!(",{}-{}", 2 * n, 2 * n)).collect();
    let head = format!("GET {RAW} HTTP/1.1\r\nHost: localhost\r\nRange: bytes=100000-9000000{ranges}\r\n\r\n");
    let clients = 300;
    let slow: Vec<TcpStream> = (0..clients)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    wait_until("all are being answered", || open_files(&server) == clients);
    assert_eq!(server.get("/north.zgy/data/lod0.json").status, 200);
    let grown = memory(server.pid(), "RssAnon").saturating_sub(before);
    assert!(grown < (20 << 20) + clients * (96 << 10), "{} KiB", grown >> 10);
    drop(slow);
    wait_until("the memory is given back", || memory(server.pid(), "RssAnon").saturating_sub(before) < 16 << 20);
}

#[test]
fn compressed_responses_that_nobody_takes_hold_little_memory() {
    let server = demo_server(&[]);
    let path = "/.volfs/page/plane.js";
    let gzip = field("accept-encoding", "gzip");
    assert_eq!(server.request("GET", path, &[("Accept-Encoding", "gzip")]).header("content-encoding"), "gzip");
    let before = memory(server.pid(), "RssAnon");
    let connections = 8;
    let mut stalled: Vec<Http2> = (0..connections).map(|_| Http2::new(server.connect(), 0)).collect();
    for client in &mut stalled {
        (0..STREAMS)
            .for_each(|n| client.send(HEADERS, WHOLE, 2 * n + 1, &[head(path), gzip.clone()].concat()).unwrap());
        let heads = (0..).map_while(|_| client.next(SOON)).filter(|frame| frame.kind == HEADERS);
        assert_eq!(heads.take(STREAMS as usize).count(), STREAMS as usize);
    }
    let grown = memory(server.pid(), "RssAnon").saturating_sub(before);
    assert!(grown < (20 << 20) + u64::from(connections * STREAMS) * (64 << 10), "{} KiB", grown >> 10);
}

#[test]
fn many_ranges_are_the_right_bytes() {
    let server = demo_server(&[]);
    let whole = server.get(RAW);
    // small and large ones
    let ends = |n: usize| (n * 9000, n * 9000 + [1, 20_000, 7, 700][n % 4]);
    let ranges: Vec<String> = (0..1000).map(ends).map(|(from, to)| format!("{from}-{}", to - 1)).collect();
    let answer = server.request("GET", RAW, &[("Range", &format!("bytes={}", ranges.join(",")))]);
    assert_eq!((answer.status, answer.bytes().len().to_string().as_str()), (206, answer.header("content-length")));
    let mut left = answer.bytes();
    for (from, to) in (0..1000).map(ends) {
        let head = left.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        assert!(String::from_utf8_lossy(&left[..head]).ends_with(&format!("bytes {from}-{}/9437184", to - 1)));
        assert!(left[head + 4..].starts_with(&whole.bytes()[from..to]), "{from}");
        left = &left[head + 4 + to - from + 2..];
    }
    assert!(left.ends_with(b"--\r\n"));
}

#[test]
fn floods_of_http2_frames_end_or_cost_nothing() {
    let server = demo_server(&["--idle-timeout", "5"]);
    let before = memory(server.pid(), "RssAnon");
    let flood = |frames: &dyn Fn(&mut Http2, u32) -> std::io::Result<()>| {
        let mut client = Http2::new(server.connect(), 65_535);
        let sent = (0..20_000).take_while(|n| frames(&mut client, *n).is_ok()).count();
        assert_eq!(server.get("/north.zgy/data/lod0.json").status, 200);
        let grown = memory(server.pid(), "RssAnon").saturating_sub(before);
        assert!(grown < 32 << 20, "{} KiB", grown >> 10);
        sent
    };
    // requests that are taken back at once
    flood(&|client, n| {
        client.get(2 * n + 1, RAW)?;
        client.send(RST_STREAM, 0, 2 * n + 1, &8_u32.to_be_bytes())
    });
    // a head without an end
    let part = field("x", &"y".repeat(4000));
    let sent = flood(&|client, n| match n {
        0 => client.send(HEADERS, 1, 1, &head(RAW)),
        _ => client.send(CONTINUATION, 0, 1, &part),
    });
    assert!(sent < 20_000, "it is read for ever");
    flood(&|client, _| client.send(PING, 0, 0, &[0; 8]));
    flood(&|client, _| client.send(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // many header fields that are short, and sent again from the table
    flood(&|client, n| {
        let fields: Vec<u8> = (0..4000).map(|_| 0xbe).collect();
        client.send(HEADERS, WHOLE, 2 * n + 1, &[head(RAW), [&[0x40], &field("x", "")[1..]].concat(), fields].concat())
    });
}

#[test]
fn idle_connections_and_endless_heads_are_closed() {
    let server = demo_server(&["--idle-timeout", "1", "--header-timeout", "0.3"]);
    assert!(is_closed_within(&server.connect(), SOON), "nothing was asked");
    let mut kept = request(&server, "/north.zgy/data/lod0.json");
    let mut reader = BufReader::new(kept.try_clone().unwrap());
    assert_eq!(Answer::read(&mut reader, false).unwrap().status, 200);
    write!(kept, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(Answer::read(&mut reader, false).unwrap().status, 200);
    assert!(is_closed_within(&kept, SOON), "nothing more was asked");
    let mut trickle = server.connect();
    let began = Instant::now();
    let ended = (0..1000).any(|n| {
        std::thread::sleep(Duration::from_millis(20));
        let line = if n == 0 { "GET / HTTP/1.1\r\n".to_owned() } else { format!("X-{n}: 1\r\n") };
        trickle.write_all(line.as_bytes()).is_err()
    });
    assert!(ended && began.elapsed() < SOON);
}

#[test]
fn connections_and_requests_are_bounded() {
    let server = demo_server(&["--max-connections", "2"]);
    let mut held: Vec<TcpStream> = (0..2).map(|_| request(&server, "/")).collect();
    for stream in &held {
        assert_eq!(Answer::read(&mut BufReader::new(stream.try_clone().unwrap()), false).unwrap().status, 200);
    }
    let third = request(&server, "/");
    third.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!((&third).read(&mut [0]).is_err(), "it has to wait");
    held.pop();
    third.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(Answer::read(&mut BufReader::new(third), false).unwrap().status, 200);
    drop(held);
    let server = demo_server(&["--max-requests", "1"]);
    let slow = request(&server, RAW);
    std::thread::sleep(Duration::from_millis(200));
    let waits = request(&server, "/north.zgy/data/lod0.json");
    drop(slow);
    assert_eq!(Answer::read(&mut BufReader::new(waits), false).unwrap().status, 200);
}

#[test]
fn a_signal_ends_the_server_soon() {
    let mut server = demo_server(&[]);
    let _stalled = request(&server, RAW);
    wait_until("it is being answered", || open_files(&server) == 1);
    let began = Instant::now();
    assert_eq!(server.stop(), Some(0));
    assert!(began.elapsed() < SOON);
}

/// Returns lists of pairs of numbers, some of which are missing or too large for any file.
fn list(between: &'static str) -> impl Strategy<Value = String> {
    let number = || prop_oneof![3 => "[0-9]{0,3}", 1 => "[0-9]{19,25}"];
    let pair = (number(), number()).prop_map(move |(first, last)| format!("{first}{between}{last}"));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join(","))
}

#[test]
fn no_request_breaks_the_server_or_leads_out_of_the_tree() {
    let outer = tempfile::tempdir().unwrap();
    let source = outer.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(test_data("demo/north.zgy"), source.join("north.zgy")).unwrap();
    fs::write(outer.path().join("secret"), "a secret").unwrap();
    fs::write(source.join("not-shown.txt"), "a secret").unwrap();
    let server = Server::start(&source, &[]);
    let name = prop_oneof![
        Just(".."),
        Just("."),
        Just("%2e%2e"),
        Just("..%2f.."),
        Just("secret"),
        Just("not-shown.txt"),
        Just("north.zgy"),
        Just("data"),
        Just("lod0.raw"),
        Just("lod0.json"),
        Just("%00"),
        Just("%ff%fe"),
        Just(""),
        Just("%"),
        Just("a b"),
        Just(".volfs"),
        Just("page"),
        Just("..%5c"),
        Just("data.ome.zarr"),
        Just("\u{e9}"),
        Just("?box=1"),
        Just("#"),
    ];
    let anywhere = prop::collection::vec(name, 0..7).prop_map(|names| format!("/{}", names.join("/")));
    // boxes, and ranges, of a file that is there
    let form =
        prop_oneof![3 => Just(""), 1 => Just("&format=sgy"), 1 => Just("&format=csv&scaled"), 1 => Just("&format=tif")];
    let there = (list(":"), form).prop_map(|(query, form)| format!("/north.zgy/data/lod1.raw?box={query}{form}"));
    let path = prop_oneof![anywhere, there, Just("/north.zgy/data/lod1.raw".to_owned())];
    let range = prop_oneof![3 => list("-").prop_map(|list| format!("bytes={list}")), 1 => "bytes=[0-9,\\-]{0,30}", 1 => "[ -~]{0,40}", 1 => Just("bytes=0-".to_owned() + &",0-".repeat(5000))];
    let method =
        prop_oneof![4 => Just("GET"), 1 => Just("HEAD"), 1 => Just("POST"), 1 => Just("G\u{0}T"), 1 => Just("")];
    let header = prop_oneof![
        "[a-zA-Z-]{0,12}: [ -~]{0,60}",
        "[\\x00-\\xff]{0,30}",
        Just("X: ".to_owned() + &"y".repeat(80_000))
    ];
    let headers = prop_oneof![Just(Vec::new()), prop::collection::vec(header, 1..3)];
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let run = runner.run(&(method, path, range, headers), |(method, path, range, headers)| {
        let headers = headers.join("\r\n");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nRange: {range}\r\nConnection: close\r\n{headers}\r\n\r\n"
        );
        // a connection may be closed without an answer to what is no HTTP
        if let Ok(answer) = server.send(head.as_bytes()) {
            prop_assert!(
                [200, 206, 307, 400, 404, 405, 414, 416, 431].contains(&answer.status),
                "{}: {head:?}",
                answer.status
            );
            let body = answer.body.unwrap_or_default();
            prop_assert!(!body.windows(8).any(|part| part == b"a secret"), "{head:?}");
        }
        Ok(())
    });
    run.unwrap();
    let json: PathBuf = "/north.zgy/data/lod0.json".into();
    assert_eq!(server.get(json.to_str().unwrap()).status, 200);
    let complaints: Vec<String> = server.logged().into_iter().filter(|line| line.contains("bug in volfs")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}
