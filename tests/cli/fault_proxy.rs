//! The proxy of the store tests: a test of faults that do not happen would tell nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Fault, FaultProxy, wait_until};

/// Starts a server whose every answer is ten digits, with an etag.
fn server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut request = BufReader::new(client.try_clone().unwrap()).lines();
            while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n0123456789");
        }
    });
    address
}

/// Sends requests over one connection, and returns all that comes back.
fn ask(proxy: &FaultProxy, requests: &str, time: Duration) -> String {
    let mut connection = TcpStream::connect(proxy.address()).unwrap();
    connection.write_all(requests.as_bytes()).unwrap();
    // the proxy answers what it got, and then closes the connection, too
    connection.shutdown(Shutdown::Write).unwrap();
    connection.set_read_timeout(Some(time)).unwrap();
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

const GET: &str = "GET /bucket/key HTTP/1.1\r\nHost: x\r\nRange: bytes=2-5\r\n\r\n";
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn the_proxy_passes_on_and_counts() {
    let proxy = FaultProxy::before(server());
    let answer = ask(&proxy, &GET.repeat(2), LIMIT);
    assert_eq!(answer.matches("0123456789").count(), 2, "the connection is kept: {answer}");
    assert!(answer.contains("etag: \"a\""), "{answer}");
    let passed = proxy.passed();
    assert_eq!((passed.requests, passed.faults, passed.bytes, passed.most_in_flight), (2, 0, 20, 1));
    assert_eq!(passed.log[1], "GET /bucket/key");
}

#[test]
fn the_proxy_fails_as_it_is_told() {
    let proxy = FaultProxy::before(server());
    let answer = |fault| {
        proxy.set(move |request| (request.range.as_deref() == Some("bytes=2-5")).then_some(fault));
        ask(&proxy, GET, LIMIT)
    };
    assert_eq!(answer(Fault::Drop), "");
    assert!(answer(Fault::Truncate(3)).ends_with("content-length: 10\r\nconnection: keep-alive\r\n\r\n012"));
    assert!(answer(Fault::Status(503)).starts_with("HTTP/1.1 503 "));
    let other = answer(Fault::WrongEtag);
    assert!(other.contains("etag: \"of-another-version\"") && other.ends_with("0123456789"), "{other}");
    let began = Instant::now();
    proxy.set(|_| Some(Fault::Delay(Duration::from_millis(100))));
    assert!(ask(&proxy, GET, LIMIT).ends_with("0123456789"));
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert_eq!((proxy.passed().requests, proxy.passed().faults), (5, 5));
    proxy.clear();
    proxy.forget();
    assert!(ask(&proxy, "HEAD / HTTP/1.1\r\n\r\n", LIMIT).ends_with("\r\n\r\n"), "no body");
    assert_eq!((proxy.passed().requests, proxy.passed().bytes), (1, 0));
}

#[test]
fn random_faults_are_the_same_in_each_run_and_not_all_alike() {
    let choices = || {
        let proxy = FaultProxy::before(server());
        proxy.set_random(7, 3, vec![Fault::Drop, Fault::Status(500)]);
        let answers = (0..40).map(|_| ask(&proxy, GET, LIMIT));
        answers.map(|answer| answer.get(9..12).map(str::to_owned)).collect::<Vec<_>>()
    };
    let first = choices();
    assert_eq!(first, choices());
    let count = |status: Option<&str>| first.iter().filter(|found| found.as_deref() == status).count();
    assert!(count(None) >= 2 && count(Some("500")) >= 2 && count(Some("200")) >= 15, "{first:?}");
}

#[test]
fn a_proxy_that_hangs_lets_go_of_who_leaves() {
    let proxy = FaultProxy::before(server());
    proxy.set(|_| Some(Fault::Hang));
    let connections: Vec<_> = (0..3)
        .map(|_| {
            let mut connection = TcpStream::connect(proxy.address()).unwrap();
            connection.write_all(GET.as_bytes()).unwrap();
            connection
        })
        .collect();
    wait_until("all hang", || proxy.passed().most_in_flight == 3);
    drop(connections);
    proxy.forget();
    wait_until("all are gone", || {
        proxy.set(|_| Some(Fault::Status(500)));
        ask(&proxy, GET, LIMIT);
        let alone = proxy.passed().most_in_flight == 1;
        proxy.forget();
        alone
    });
}
