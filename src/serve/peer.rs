//! Finds the user at the other end of a connection.
//!
//! On loopback both ends are sockets of this machine, and the kernel knows the owner of each. The socket of the client
//! is looked up by its two addresses: with sock_diag (one exact query), or in `/proc/net/tcp` and `tcp6` where there is
//! no netlink (seccomp, RestrictAddressFamilies=, a kernel without tcp_diag).
//!
//! Only an established socket that a process holds counts: the kernel shows user 0 for one that was closed (FIN_WAIT,
//! TIME_WAIT) and for one that nobody has accepted yet, and for an address without a connection it finds the listener.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recvfrom, sendto, socket_with};
use tokio::sync::{mpsc, oneshot};

use crate::sync::thread;

/// TCP_ESTABLISHED of the kernel.
const ESTABLISHED: u8 = 1;
/// IPPROTO_TCP.
const TCP: u8 = 6;
/// SOCK_DIAG_BY_FAMILY, the type of the query and of its answer.
const BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const ENOENT: i32 = 2;
/// Lengths of nlmsghdr, of inet_diag_req_v2 and inet_diag_msg after it, and of inet_diag_sockid in both.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const ANSWER: usize = HEADER + 72;
/// Queries that wait to be answered. Connections beyond wait to ask.
const QUEUED: usize = 1024;
/// How long the kernel may take: it answers at once.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The user and the address at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// The user whose socket it is; `None` if that cannot be told.
    pub(super) user: Option<u32>,
    /// The address; `None` for a Unix socket.
    pub(super) address: Option<IpAddr>,
    /// Whether the other end is on this machine, so that its user could be told.
    pub(super) is_local: bool,
}

/// The two ends of a TCP connection. An IPv4 address is one, also where a socket of IPv6 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) client: (IpAddr, u16),
    server: (IpAddr, u16),
}

impl Ends {
    /// Returns the ends of a connection that the server has accepted.
    pub(super) fn new(client: SocketAddr, server: SocketAddr) -> Self {
        let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        Self { client: canonical(client), server: canonical(server) }
    }

    /// Returns whether the client is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.client.0.is_loopback() || self.server.0.is_loopback() || self.client.0 == self.server.0
    }
}

/// The ends of a connection, and where its user is sent.
type Query = (Ends, oneshot::Sender<Option<u32>>);

/// Finds users, on a separate thread: the kernel may take its time, and one look at a table serves all connections that
/// wait.
#[derive(Debug)]
pub(super) struct Peers {
    queries: mpsc::Sender<Query>,
    /// Whether users can be found here at all.
    pub(super) can_tell: bool,
}

impl Peers {
    pub(super) fn start(server: IpAddr) -> io::Result<Self> {
        let lookup = Lookup::choose(server);
        let can_tell = lookup.is_some();
        let (queries, received) = mpsc::channel(QUEUED);
        thread::Builder::new().name("volfs-peers".to_owned()).spawn(move || answer_all(received, lookup))?;
        Ok(Self { queries, can_tell })
    }

    /// Returns the user of the socket at the client's end, as things are now.
    pub(super) async fn user(&self, ends: Ends) -> Option<u32> {
        let (answer, receive) = oneshot::channel();
        self.queries.send((ends, answer)).await.ok()?;
        receive.await.ok()?
    }
}

fn answer_all(mut queries: mpsc::Receiver<Query>, mut lookup: Option<Lookup>) {
    let mut batch = Vec::new();
    while queries.blocking_recv_many(&mut batch, QUEUED) > 0 {
        let all: Vec<Ends> = batch.iter().map(|(ends, _): &Query| *ends).collect();
        let users = lookup.as_mut().map(|lookup| lookup.users(&all)).unwrap_or_default();
        for (ends, answer) in batch.drain(..) {
            // a connection may have ended meanwhile
            let _ = answer.send(users.get(&ends).copied());
        }
    }
}

/// Returns the number that the kernel shows for users without a number in this user namespace; `None` where all have
/// one.
pub(crate) fn overflow_user() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let counts = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    if counts.sum::<u64>() >= u64::from(u32::MAX) {
        return None;
    }
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok().and_then(|text| text.trim().parse().ok());
    Some(overflow.unwrap_or(65534))
}

/// How the owner of a socket is found: by sock_diag, or without it in the tables below `/proc/net`.
#[derive(Debug)]
struct Lookup(Option<SockDiag>);

impl Lookup {
    /// Returns the way that works here, tried with a connection of this process: sock_diag fails with ENOENT also where
    /// the kernel has no tcp_diag.
    fn choose(server: IpAddr) -> Option<Self> {
        let listener = TcpListener::bind((server, 0)).ok()?;
        let client = TcpStream::connect(listener.local_addr().ok()?).ok()?;
        let ends = Ends::new(client.local_addr().ok()?, client.peer_addr().ok()?);
        let own = rustix::process::geteuid().as_raw();
        let mut ways = SockDiag::open().ok().map(Some).into_iter().chain([None]).map(Self);
        ways.find_map(|mut way| (way.users(&[ends]).get(&ends) == Some(&own)).then_some(way))
    }

    /// Returns the users of those connections that are established.
    fn users(&mut self, of: &[Ends]) -> HashMap<Ends, u32> {
        let (mut users, mut unasked) = (HashMap::new(), Vec::new());
        for ends in of {
            match self.0.as_mut().and_then(|kernel| kernel.user(ends).ok()) {
                Some(user) => users.extend(user.map(|user| (*ends, user))),
                None => unasked.push(*ends),
            }
        }
        if !unasked.is_empty() {
            for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
                if let Ok(file) = File::open(table) {
                    find_in_table(BufReader::new(file), &unasked, &mut users);
                }
            }
        }
        users
    }
}

/// A socket of sock_diag.
#[derive(Debug)]
struct SockDiag {
    socket: OwnedFd,
    sequence: u32,
}

impl SockDiag {
    fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Returns the user of an established connection; `None` if it is not established.
    fn user(&mut self, ends: &Ends) -> io::Result<Option<u32>> {
        self.sequence = self.sequence.wrapping_add(1);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request(ends, self.sequence), SendFlags::empty(), &kernel)?;
        loop {
            // room for an error, which repeats the request
            let mut bytes = [0; 512];
            let (length, _, from) = recvfrom(&self.socket, &mut bytes, RecvFlags::empty())?;
            let is_kernel = from.and_then(|from| SocketAddrNetlink::try_from(from).ok()).is_some_and(|a| a.pid() == 0);
            let answer = bytes.get(..length).unwrap_or_default();
            // an answer that came too late for the query before this one is dropped
            if is_kernel && number(answer, 8).map(u32::from_ne_bytes) == Some(self.sequence) {
                return read_answer(answer, ends);
            }
        }
    }
}

/// Returns the bytes at a position.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Returns a query for the one socket that has these ends; inet_diag_req_v2 after nlmsghdr.
fn request(ends: &Ends, sequence: u32) -> Vec<u8> {
    let family = if ends.client.0.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => [&address.octets()[..], &[0; 12]].concat(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let any_interface_and_generation = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    [
        &(REQUEST as u32).to_ne_bytes()[..],
        &[BY_FAMILY.to_ne_bytes(), NLM_F_REQUEST.to_ne_bytes()].concat(),
        &sequence.to_ne_bytes(),
        &[0; 4],
        &[family.as_raw() as u8, TCP, 0, 0],
        &(1_u32 << ESTABLISHED).to_ne_bytes(),
        &[ends.client.1.to_be_bytes(), ends.server.1.to_be_bytes()].concat(),
        &octets(ends.client.0),
        &octets(ends.server.0),
        &any_interface_and_generation,
    ]
    .concat()
}

/// Returns the user that an answer names, if it is about an established socket with these ends.
fn read_answer(answer: &[u8], ends: &Ends) -> io::Result<Option<u32>> {
    let read = || {
        let kind = u16::from_ne_bytes(number(answer, 4)?);
        if kind == NLMSG_ERROR {
            let error = i32::from_ne_bytes(number(answer, HEADER)?).wrapping_neg();
            return Some(if error == ENOENT { Ok(None) } else { Err(io::Error::from_raw_os_error(error)) });
        }
        let [family, state] = number(answer, HEADER).filter(|_| kind == BY_FAMILY && answer.len() >= ANSWER)?;
        let end = |address: usize, port: usize| {
            let address = match u16::from(family) == AddressFamily::INET.as_raw() {
                true => number::<4>(answer, address).map(IpAddr::from),
                false => number::<16>(answer, address).map(IpAddr::from),
            };
            Some(SocketAddr::new(address?, number(answer, port).map(u16::from_be_bytes)?))
        };
        let id = HEADER + 4;
        let found = Ends::new(end(id + 4, id)?, end(id + 20, id + 2)?);
        let user = u32::from_ne_bytes(number(answer, HEADER + 64)?);
        let inode = u32::from_ne_bytes(number(answer, HEADER + 68)?);
        Some(Ok((state == ESTABLISHED && inode != 0 && found == *ends).then_some(user)))
    };
    read().unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
}

/// Adds the users of connections that a table of `/proc/net` shows as established. A connection that two sockets of
/// different users claim has none.
fn find_in_table(table: impl BufRead, of: &[Ends], users: &mut HashMap<Ends, u32>) {
    let wanted: HashSet<&Ends> = of.iter().collect();
    let mut claimed_twice = HashSet::new();
    for (ends, user) in table.lines().map_while(Result::ok).filter_map(|line| read_line(&line)) {
        if wanted.contains(&ends) && users.insert(ends, user).is_some_and(|other| other != user) {
            claimed_twice.insert(ends);
        }
    }
    users.retain(|ends, _| !claimed_twice.contains(ends));
}

/// Reads a line: number, local address, remote address, state, queues, timer, retransmissions, user, timeouts, inode.
fn read_line(line: &str) -> Option<(Ends, u32)> {
    let mut words = line.split_whitespace();
    words.next()?;
    let (client, server) = (read_address(words.next()?)?, read_address(words.next()?)?);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let user = words.nth(3)?.parse().ok()?;
    let inode: u64 = words.nth(1)?.parse().ok()?;
    (state == ESTABLISHED && inode != 0).then(|| (Ends::new(client, server), user))
}

/// Reads an address of a table: words of 32 bits as the processor has them in memory, and the port.
fn read_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let address = match address.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::from(<[u8; 16]>::try_from(words.concat()).ok()?)
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::time::Instant;

    use super::*;

    fn ways() -> Vec<Lookup> {
        SockDiag::open().ok().map(Some).into_iter().chain([None]).map(Lookup).collect()
    }

    fn connection(server: &str, client: &str) -> Option<(TcpStream, TcpStream, Ends)> {
        let listener = TcpListener::bind((server, 0)).ok()?;
        let client = TcpStream::connect((client, listener.local_addr().unwrap().port())).ok()?;
        let (accepted, address) = listener.accept().unwrap();
        let ends = Ends::new(address, accepted.local_addr().unwrap());
        Some((client, accepted, ends))
    }

    #[test]
    fn the_owner_of_a_connection_is_found_by_its_ends() {
        let own = rustix::process::geteuid().as_raw();
        for (server, client) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            // a client of IPv6 at a server of IPv4, and the other way round
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("::ffff:127.0.0.1", "127.0.0.1"),
            ("127.4.5.6", "127.4.5.6"),
        ] {
            let Some((_client, _accepted, ends)) = connection(server, client) else { continue };
            assert!(ends.is_local());
            for mut way in ways() {
                assert_eq!(way.users(&[ends]).get(&ends), Some(&own), "{way:?} {server} {client}");
                // the server's own end is another socket, and a port without a connection finds its listener
                let turned = Ends { client: ends.server, server: ends.client };
                assert_eq!(way.users(&[turned]).len(), 1);
                let other = Ends { client: (ends.client.0, 1), ..ends };
                assert!(way.users(&[other]).is_empty(), "{way:?} {server} {client}");
            }
        }
    }

    #[test]
    fn a_socket_that_was_closed_or_half_closed_has_no_user() {
        for mut way in ways() {
            let (client, accepted, ends) = connection("127.0.0.1", "127.0.0.1").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            assert!(way.users(&[ends]).is_empty(), "half-closed, {way:?}");
            drop(client);
            assert!(way.users(&[ends]).is_empty(), "an orphan, {way:?}");
            drop(accepted);
            let until = Instant::now() + Duration::from_millis(200);
            while Instant::now() < until {
                assert!(way.users(&[ends]).is_empty(), "TIME_WAIT, {way:?}");
            }
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (at, nowhere) = (listener.local_addr().unwrap(), "127.0.0.1:9".parse().unwrap());
            assert!(way.users(&[Ends::new(at, nowhere)]).is_empty(), "a listener, {way:?}");
            // the end that nobody has accepted yet is user 0's for the kernel
            let waiting = TcpStream::connect(at).unwrap();
            let unaccepted = Ends::new(at, waiting.local_addr().unwrap());
            assert!(way.users(&[unaccepted]).is_empty(), "in the queue of a listener, {way:?}");
        }
    }

    #[test]
    fn only_established_lines_of_a_table_count() {
        let ends = Ends::new("127.0.0.1:16".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        let v6 = "0000000000000000FFFF00000100007F:0010 0000000000000000FFFF00000100007F:1F90";
        let line = |ends: &str, state: &str, user: u32, inode: u32| {
            format!(
                "   0: {ends} {state} 00000000:00000000 00:00000000 00000000 {user:5} 0 {inode} 1 0 20 4 30 10 -1\n"
            )
        };
        let v4 = "0100007F:0010 0100007F:1F90";
        let found = |table: &str| {
            let mut users = HashMap::new();
            find_in_table(table.as_bytes(), &[ends], &mut users);
            users.get(&ends).copied()
        };
        if cfg!(target_endian = "little") {
            assert_eq!(found(&line(v4, "01", 1000, 7)), Some(1000));
            assert_eq!(found(&line(v6, "01", 1000, 7)), Some(1000));
            assert_eq!(found(&(line(v4, "06", 0, 0) + &line(v6, "01", 1001, 7))), Some(1001));
            assert_eq!(found(&(line(v4, "01", 1000, 7) + &line(v6, "01", 1001, 8))), None, "two claim it");
        }
        for state in ["02", "03", "04", "05", "06", "08", "0A", "0C"] {
            assert_eq!(found(&line(v4, state, 0, 7)), None);
        }
        assert_eq!(found(&line(v4, "01", 0, 0)), None, "nobody holds it");
        for bad in ["", "sl local_address\n", "0: 1:2 3:4 01\n", "0: 0100007F:0010 0100007F:1F90 01 x y z u 0 9\n"] {
            assert_eq!(found(bad), None, "{bad}");
        }
    }

    #[test]
    fn answers_about_other_sockets_and_errors_are_told_apart() {
        let ends = Ends::new("127.0.0.1:16".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        // an answer has the request's sockid at the same place
        let mut answer = request(&ends, 1);
        answer.splice(HEADER..HEADER + 8, [2, ESTABLISHED, 0, 0]);
        answer.extend([0; 12]);
        answer.extend(7_u32.to_ne_bytes());
        answer.extend(9_u32.to_ne_bytes());
        assert_eq!((answer.len(), read_answer(&answer, &ends).unwrap()), (ANSWER, Some(7)));
        let other = Ends::new("127.0.0.1:17".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(read_answer(&answer, &other).unwrap(), None);
        for (at, byte) in [(HEADER + 1, 6), (HEADER + 1, 10), (HEADER + 68, 0)] {
            let mut changed = answer.clone();
            changed[at] = byte;
            assert_eq!(read_answer(&changed, &ends).unwrap(), None);
        }
        for length in 0..answer.len() {
            assert!(read_answer(&answer[..length], &ends).is_err());
        }
        let mut refused = [0; 36];
        refused[4] = NLMSG_ERROR as u8;
        refused[HEADER..HEADER + 4].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert!(read_answer(&refused, &ends).is_err());
        refused[HEADER..HEADER + 4].copy_from_slice(&(-ENOENT).to_ne_bytes());
        assert_eq!(read_answer(&refused, &ends).unwrap(), None);
    }
}
