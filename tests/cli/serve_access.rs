//! `volfs serve` and the users of its machine: who may connect, over TCP and over a Unix socket, and tokens.
//!
//! Threads of these tests act as other users, so most of them need root.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::process::Uid;
use tempfile::TempDir;

use super::support::volfs_server::{Answer, Server, is_closed_within};
use super::support::{
    SOON, comes_true, one_line_of_failure, program, signal, skip, stop, test_data, volfs, wait_for, wait_until,
};

/// Users who need not have names.
const OWNER: u32 = 65531;
const FRIEND: u32 = 65532;
const STRANGER: u32 = 65533;

const JSON: &str = "/north.zgy/data/lod0.json";
const TOKEN: &str = "0123456789abcdefABCDEF-._~";

fn is_root_or_skip() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("only root can act as other users");
    }
    is_root
}

/// Does something on a thread that is another user's for the kernel.
fn as_user<T: Send>(user: u32, act: impl FnOnce() -> T + Send) -> T {
    let run = || {
        let user = Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// The program and data where every user can read them.
struct Shared(TempDir);

impl Shared {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // in another process: children that other tests start at this moment would inherit the open file, and a program
        // that is open for writing cannot be run
        assert!(Command::new("cp").arg(program()).arg(folder.path().join("volfs")).status().unwrap().success());
        fs::create_dir(folder.path().join("source")).unwrap();
        fs::copy(test_data("demo/north.zgy"), folder.path().join("source/north.zgy")).unwrap();
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a folder of the owner's.
    fn folder(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.at(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&path, Some(OWNER), Some(OWNER)).unwrap();
        path
    }

    /// Returns a server that the owner starts.
    fn command(&self, listen: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.at("volfs"));
        command.arg("serve").arg(self.at("source")).args(["--listen", listen, "--cache-size", "32MiB"]).args(arguments);
        command.uid(OWNER).gid(OWNER).stdin(Stdio::null()).env("HOME", "/nonexistent");
        command
    }

    fn serve(&self, listen: &str, arguments: &[&str]) -> Server {
        Server::run(&mut self.command(listen, arguments))
    }
}

/// A server at a Unix socket.
struct UnixServer {
    child: Child,
    path: PathBuf,
    line: String,
}

impl UnixServer {
    fn start(mut command: Command, path: PathBuf) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, path, line }
    }

    fn get(&self, path: &str) -> io::Result<Answer> {
        let mut stream = UnixStream::connect(&self.path)?;
        stream.set_read_timeout(Some(SOON))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a.name.of.nginx\r\nConnection: close\r\n\r\n")?;
        Answer::read(&mut BufReader::new(stream), false)
    }

    fn status(&self, user: u32) -> Option<u16> {
        as_user(user, || self.get(JSON).ok().map(|answer| answer.status))
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn other_users_of_the_machine_are_refused() {
    if !is_root_or_skip() {
        return;
    }
    let shared = Shared::new();
    for listen in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
        if listen.starts_with("[::1]") && std::net::TcpListener::bind(listen).is_err() {
            skip("this machine has no IPv6");
            continue;
        }
        let server = shared.serve(listen, &[]);
        for user in [OWNER, 0] {
            assert_eq!(as_user(user, || server.get(JSON).status), 200, "{listen} {user}");
        }
        for path in [JSON, "/", "/.volfs/metrics", "/.volfs/page/main.js", "/nothing"] {
            let refused = as_user(STRANGER, || server.get(path));
            assert_eq!((refused.status, refused.header("connection")), (403, "close"), "{listen} {path}");
            let line = refused.text();
            assert!(
                line.lines().count() == 1 && line.contains("--allow-user") && line.contains("--allow-other"),
                "{line}"
            );
        }
        assert!(server.get("/.volfs/log").text().contains(&format!("of uid {STRANGER} are refused")));
    }
    let friend = shared.serve("127.0.0.1:0", &["--allow-user", &FRIEND.to_string()]);
    for (user, status) in [(OWNER, 200), (0, 200), (FRIEND, 200), (STRANGER, 403)] {
        assert_eq!(as_user(user, || friend.get(JSON).status), status, "{user}");
    }
    let open = shared.serve("127.0.0.1:0", &["--allow-other"]);
    assert_eq!(as_user(STRANGER, || open.get(JSON).status), 200);
}

#[test]
fn a_peer_that_is_gone_or_half_gone_is_nobody() {
    if !is_root_or_skip() {
        return;
    }
    let shared = Shared::new();
    let server = shared.serve("127.0.0.1:0", &[]);
    // what the server has not accepted yet is changed meanwhile
    stop(server.pid());
    let half = as_user(STRANGER, || {
        let mut stream = server.connect();
        write!(stream, "GET {JSON} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream
    });
    for _ in 0..20 {
        let mut gone = as_user(STRANGER, || server.connect());
        write!(gone, "GET {JSON} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    signal(server.pid(), Signal::SIGCONT).unwrap();
    // one that has ended its own half may get no answer at all
    assert!(!Answer::read(&mut BufReader::new(half), false).is_ok_and(|answer| answer.status != 403));
    let log = || server.get("/.volfs/log").text().to_owned();
    assert!(comes_true(SOON, || log().contains("refused because their user is not known")), "{}", log());
    assert_eq!(server.get(JSON).status, 200);
}

#[test]
fn strangers_who_connect_without_end_keep_nobody_out() {
    if !is_root_or_skip() {
        return;
    }
    let shared = Shared::new();
    let token = shared.at("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&token, Some(OWNER), None).unwrap();
    for arguments in [vec![], vec!["--token-file", token.to_str().unwrap()]] {
        let server = shared.serve("127.0.0.1:0", &[&arguments[..], &["--max-connections", "16"]].concat());
        let path = if arguments.is_empty() { JSON.to_owned() } else { format!("/{TOKEN}{JSON}") };
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let flood = || {
                rustix::thread::set_thread_res_uid(
                    Uid::from_raw(STRANGER),
                    Uid::from_raw(STRANGER),
                    Uid::from_raw(STRANGER),
                )
                .unwrap();
                let mut held = std::collections::VecDeque::new();
                while !ends.load(Ordering::SeqCst) {
                    if let Ok(mut stream) = TcpStream::connect_timeout(&server.address, SOON) {
                        let _ = write!(stream, "GET {JSON} HTTP/1.1\r\n");
                        held.push_back(stream);
                    }
                    if held.len() > 150 {
                        held.pop_front();
                    }
                }
            };
            let floods = [scope.spawn(flood), scope.spawn(flood)];
            for _ in 0..30 {
                let answer = as_user(OWNER, || server.get(&path));
                assert_eq!(answer.status, 200);
                thread::sleep(Duration::from_millis(10));
            }
            ends.store(true, Ordering::SeqCst);
            assert!(floods.into_iter().all(|flood| flood.join().is_ok()));
        });
    }
}

#[test]
fn a_unix_socket_is_its_owners() {
    if !is_root_or_skip() {
        return;
    }
    let shared = Shared::new();
    let path = shared.folder("run", 0o755).join("socket");
    let listen = format!("unix:{}", path.display());
    let mut server = UnixServer::start(shared.command(&listen, &[]), path.clone());
    assert!(server.line.ends_with(&format!(" at {listen}\n")), "{}", server.line);
    assert_eq!(mode(&path), 0o600);
    assert_eq!([OWNER, 0].map(|user| server.status(user)), [Some(200); 2]);
    assert_eq!(server.status(STRANGER), None, "the file's mode");
    // whoever gets past the mode is known by the kernel
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(server.status(STRANGER), Some(403));
    let taken = shared.command(&listen, &[]).output().unwrap();
    assert!(one_line_of_failure(&taken, 1).contains("another program listens there"));
    signal(i32::try_from(server.child.id()).unwrap(), Signal::SIGTERM).unwrap();
    assert_eq!(wait_for(&mut server.child).code(), Some(0));
    assert!(!path.exists(), "it goes with the server");
    // what a server leaves that was killed is replaced
    let mut killed = UnixServer::start(shared.command(&listen, &[]), path.clone());
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert!(path.exists());
    let friends = UnixServer::start(shared.command(&listen, &["--allow-user", &FRIEND.to_string()]), path.clone());
    assert_eq!([OWNER, FRIEND, STRANGER].map(|user| friends.status(user)), [Some(200), Some(200), Some(403)]);
    drop(friends);
    let open = UnixServer::start(shared.command(&listen, &["--allow-other"]), path);
    assert_eq!(open.status(STRANGER), Some(200));
}

#[test]
fn a_unix_socket_is_not_put_where_others_can_write() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let fails = |path: &Path, words: &str| {
        let listen = format!("unix:{}", path.display());
        let output = volfs().arg("serve").arg(test_data("demo")).args(["--listen", &listen]).output().unwrap();
        let line = one_line_of_failure(&output, 1);
        assert!(line.contains(words), "{line}");
    };
    fails(&folder.path().join("socket"), "others can write to");
    fails(&std::env::temp_dir().join("volfs-test-socket"), "$XDG_RUNTIME_DIR");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    fails(&folder.path().join("file"), "not a socket of yours");
    fails(&folder.path().join("x".repeat(150)), "cannot listen at");
    fails(&folder.path().join("none/socket"), "cannot listen at");
}

struct TokenFile(TempDir);

impl TokenFile {
    fn new(text: &str, mode: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token"), text).unwrap();
        fs::set_permissions(folder.path().join("token"), fs::Permissions::from_mode(mode)).unwrap();
        Self(folder)
    }

    fn path(&self) -> String {
        self.0.path().join("token").to_str().unwrap().to_owned()
    }
}

#[test]
fn a_token_comes_in_three_ways_and_is_in_no_log() {
    let file = TokenFile::new(&format!("{TOKEN}\n"), 0o600);
    let log = file.0.path().join("log");
    let mut command = volfs();
    command.arg("serve").arg(test_data("demo")).args(["--listen", "127.0.0.1:0", "--token-file", &file.path()]);
    command.arg("--log-file").arg(&log).env("RUST_LOG", "trace");
    let server = Server::run(&mut command);
    assert_eq!(server.printed.trim_end().rsplit_once("http://").unwrap().1, format!("{}/{TOKEN}/", server.address));
    let bearer = format!("Bearer {TOKEN}");
    let whole = server.request("GET", "/north.zgy/data/lod1.raw", &[("Authorization", &bearer)]);
    assert_eq!(whole.status, 200);
    let below = |path: &str| format!("/{TOKEN}{path}");
    assert!(server.get(&below("/north.zgy/data/lod1.raw")).bytes() == whole.bytes());
    assert_eq!(server.get(&below("/north.zgy/data/lod0.raw?box=1,2,3")).bytes().len(), 4);
    let listing = server.request("GET", &below("/"), &[("Accept", "application/json")]);
    assert_eq!(listing.json()["path"], "/");
    for (from, to) in [("", format!("{TOKEN}/")), ("/north.zgy", "north.zgy/".to_owned())] {
        let moved = server.get(&below(from));
        assert_eq!((moved.status, moved.header("location")), (307, &to[..]));
    }

    // a browser opens the link, and then another address of the same server
    let page = server.request("GET", &below("/north.zgy/"), &[("Accept", "text/html")]);
    assert_eq!((page.status, page.header("referrer-policy")), (200, "no-referrer"));
    assert!(!page.text().contains(TOKEN) && page.text().contains("href=\"../.volfs/page/page.css\""));
    let set = page.header("set-cookie");
    assert!(set.contains("HttpOnly; SameSite=Strict") && set.contains("; Path=/;") && !set.contains(TOKEN), "{set}");
    let cookie = set.split(';').next().unwrap();
    let with_cookie = |path: &str, accept: &str| server.request("GET", path, &[("Cookie", cookie), ("Accept", accept)]);
    assert!(with_cookie("/north.zgy/data/lod1.raw", "*/*").bytes() == whole.bytes());
    let moved = with_cookie("/north.zgy/data/?from=1", "text/html");
    assert_eq!((moved.status, moved.header("location")), (307, &format!("../../{TOKEN}/north.zgy/data/?from=1")[..]));

    let (upper, longer) = (TOKEN.to_uppercase(), format!("{TOKEN}1"));
    for wrong in ["", "x", &upper, &longer, &TOKEN[1..]] {
        let headers =
            [("Authorization", format!("Bearer {wrong}")), ("Cookie", format!("volfs={wrong}; volfs={TOKEN}"))];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for path in [format!("/{wrong}{JSON}"), JSON.to_owned(), "/".to_owned(), "/.volfs/metrics".to_owned()] {
            let refused = server.request("GET", &path, &headers);
            assert_eq!((refused.status, refused.header("www-authenticate")), (401, "Bearer"), "{wrong} {path}");
            assert_eq!(refused.text().lines().count(), 1);
        }
    }
    assert_eq!(server.get(&below("/nothing")).status, 404);
    assert_eq!(server.get(&below(&below("/"))).status, 404);
    assert_eq!(server.request("POST", &below("/"), &[]).status, 405);
    if Command::new("curl").arg("--version").output().is_ok() {
        let url = format!("http://{}{}", server.address, below(JSON));
        let curl = Command::new("curl").args(["-sS", "-f", "--http2-prior-knowledge", &url]).output().unwrap();
        assert!(curl.status.success() && curl.stdout == server.get(&below(JSON)).bytes());
    }
    let status = server.get(&below("/.volfs/status.json"));
    assert!(!status.text().contains(TOKEN) && status.json()["options"]["token"] == true, "{}", status.text());
    assert!(!server.get(&below("/.volfs/log")).text().contains(TOKEN));
    let logged = || fs::read_to_string(&log).unwrap();
    assert!(comes_true(SOON, || logged().contains("GET /north.zgy/data/lod1.raw: 200 OK")), "{}", logged());
    for part in [TOKEN, &upper, &TOKEN[1..], &cookie[cookie.find('=').unwrap()..]] {
        assert!(!logged().contains(part), "{part}");
    }
}

#[test]
fn a_token_is_enough_but_a_cookie_is_its_users() {
    if !is_root_or_skip() {
        return;
    }
    let file = TokenFile::new(TOKEN, 0o600);
    let server = Server::start(&test_data("demo"), &["--token-file", &file.path()]);
    let path = format!("/{TOKEN}/");
    let page = server.request("GET", &path, &[("Accept", "text/html")]);
    let cookie = page.header("set-cookie").split(';').next().unwrap().to_owned();
    let of = |user| as_user(user, || server.request("GET", JSON, &[("Cookie", &cookie)]).status);
    // browsers send it to the servers of other users on this machine, too
    assert_eq!((of(0), of(STRANGER)), (200, 401));
    assert_eq!(as_user(STRANGER, || server.get(&path).status), 200);
    // those who are named need the token besides
    let both = Server::start(&test_data("demo"), &["--token-file", &file.path(), "--allow-user", &FRIEND.to_string()]);
    for (user, path, status) in [(FRIEND, &path[..], 200), (FRIEND, "/", 401), (STRANGER, &path, 403), (0, &path, 200)]
    {
        assert_eq!(as_user(user, || both.get(path).status), status, "{user} {path}");
    }
}

#[test]
fn what_nobody_can_mean_is_said_in_one_line() {
    let demo = test_data("demo");
    let fails = |arguments: &[&str], status, words: &str| {
        let output = volfs().arg("serve").arg(&demo).args(arguments).output().unwrap();
        let line = one_line_of_failure(&output, status);
        assert!(line.contains(words), "{line}");
    };
    fails(&["--allow-user", "no such user"], 2, "no user no such user");
    for (text, mode, words) in [
        ("too-short", 0o600, "has no token"),
        ("", 0o600, "has no token"),
        ("a/b/c/d/e/f/g/h/i/j/k", 0o600, "has no token"),
        (TOKEN, 0o644, "chmod 600"),
        (TOKEN, 0o640, "chmod 600"),
    ] {
        fails(&["--token-file", &TokenFile::new(text, mode).path()], 1, words);
    }
    fails(&["--token-file", "/nowhere"], 1, "cannot read the token file");
    fails(&["--listen", "0.0.0.0:0", "--allow-remote", "--allow-user", "root"], 2, "--allow-user");
    fails(&["--listen", "localhost"], 2, "write it as ADDRESS:PORT");
    fails(&["--listen", "no-such-host.invalid:0"], 2, "cannot find the address of no-such-host.invalid");
    // a name of 0.0.0.0
    fails(&["--listen", "0:0"], 2, "through 0.0.0.0:0: add --allow-remote");
}

#[test]
fn a_name_is_served_at_all_of_its_addresses() {
    let mut command = volfs();
    let mut server = Server::run(command.arg("serve").arg(test_data("demo")).args(["--listen", "localhost:0"]));
    let port = server.address.port();
    assert!(server.printed.ends_with(&format!(" at http://localhost:{port}/\n")), "{}", server.printed);
    let addresses: Vec<_> = ("localhost", port).to_socket_addrs().unwrap().collect();
    // no other user may listen at one of them
    let mut usable = addresses.into_iter().filter(|address| TcpListener::bind((address.ip(), 0)).is_ok()).peekable();
    assert!(usable.peek().is_some());
    for address in usable {
        server.address = address;
        let of = |host: &str| server.request("GET", JSON, &[("Host", host)]).status;
        let hosts = ["localhost", &format!("localhost:{port}"), &address.to_string(), "evil.example"];
        assert_eq!(hosts.map(of), [200, 200, 200, 421], "{address}");
    }
}

#[test]
fn the_journal_gets_no_token() {
    let file = TokenFile::new(TOKEN, 0o600);
    let output = fs::File::create(file.0.path().join("journal")).unwrap();
    let about = rustix::fs::fstat(&output).unwrap();
    let mut command = volfs();
    command.arg("serve").arg(test_data("demo")).args(["--listen", "127.0.0.1:0", "--token-file", &file.path()]);
    command.env("JOURNAL_STREAM", format!("{}:{}", about.st_dev, about.st_ino)).stdout(output).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let printed = || fs::read_to_string(file.0.path().join("journal")).unwrap();
    wait_until("it serves", || printed().ends_with('\n'));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(printed().contains(" at http://127.0.0.1:") && !printed().contains(TOKEN), "{}", printed());
}

#[test]
fn a_connection_that_is_refused_is_closed_soon() {
    if !is_root_or_skip() {
        return;
    }
    let shared = Shared::new();
    let server = shared.serve("127.0.0.1:0", &[]);
    let silent = as_user(STRANGER, || server.connect());
    assert!(is_closed_within(&silent, SOON));
}
