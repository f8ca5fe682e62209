//! `volfs serve` and clients that are slow, gone, many or hostile.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

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
    let there = list(":").prop_map(|query| format!("/north.zgy/data/lod1.raw?box={query}"));
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
