//! The clients that may use a server: the users of this machine that may connect, the token that requests carry, and
//! the names that clients may call the server by.
//!
//! A token comes in one of three ways: in the header `Authorization: Bearer TOKEN`, as the first name of the path (for
//! programs that know nothing but a URL, and for links), or as a cookie that a browser gets with a page.
//!
//! The cookie is not the token: browsers send it to every port of a host, also to servers of other users there. It is a
//! code that is valid only from the address and the user that it was made for, until the server ends.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderValue};
use ring::{hmac, rand::SystemRandom};
use rustix::process::geteuid;
use thiserror::Error;

use super::listener::Listen;
use super::peer::Peer;
use super::response::{Head, Problem};
use super::tree::segment;
use crate::logging::one_line;
use crate::safe_open::is_trusted;

/// Characters of a token.
const SHORTEST: usize = 16;
const LONGEST: usize = 200;
/// The name of the cookie, before the port.
const COOKIE_NAME: &str = "volfs";

/// The clients that may use a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// The users whose connections are accepted; `None` means all.
    pub(crate) users: Option<BTreeSet<u32>>,
    /// What requests have to carry, if anything.
    pub(crate) token: Option<Token>,
}

impl Access {
    /// Returns whether the user of a connection has to be known.
    pub(super) fn needs_user(&self, is_local: bool) -> bool {
        self.users.is_some() || self.token.is_some() && is_local
    }

    /// Returns whether users besides the server's own and root may connect.
    pub(super) fn is_for_others(&self) -> bool {
        self.users.as_ref().is_none_or(|users| !users.iter().all(|user| is_trusted(*user)))
    }

    /// Returns why a connection is refused, if it is.
    pub(super) fn refuses(&self, peer: &Peer) -> Option<Problem> {
        let users = self.users.as_ref()?;
        match peer.user {
            Some(user) if users.contains(&user) => None,
            Some(_) => Some(Problem::OtherUser),
            None => Some(Problem::UnknownUser),
        }
    }

    /// Returns whether a connection is a guest's: neither of the server's user on this machine nor of root. Guests may
    /// have the token or not, so their connections are bounded apart.
    pub(super) fn is_guest(&self, peer: &Peer) -> bool {
        self.token.is_some() && !(peer.is_local && peer.user.is_some_and(is_trusted))
    }
}

/// Why a token cannot be used. Files are named as they are shown.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    #[error("cannot read the token file {0}: {1}")]
    Read(String, io::Error),
    #[error("the token file {0} can be read or written by others: make it yours alone (chmod 600)")]
    Public(String),
    #[error(
        "the token file {0} has no token: {SHORTEST} to {LONGEST} letters, digits and - . _ ~, as openssl rand -hex 24 makes"
    )]
    NotOne(String),
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// A token, which is never shown. Codes of equal length are compared in its place, in constant time.
#[derive(Clone)]
pub(crate) struct Token {
    text: String,
    /// Each server makes a new one.
    key: hmac::Key,
    code: hmac::Tag,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// How a request has shown that it may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    Unneeded,
    Header,
    /// By its path, which is now without the token.
    Path,
    /// By its path, which is the token without a slash at the end: links of a page would not lead below it.
    BarePath,
    Cookie,
}

impl Token {
    /// Reads the file of a token, which must be readable by this user and root only.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let shown = one_line(&path.to_string_lossy()).into_owned();
        let failed = |error| TokenError::Read(shown.clone(), error);
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let own = geteuid().as_raw();
        // a service gets its token in a file of root's for a group; a file of the user's own needs no group
        let is_secret = match found.uid() {
            user if user == own => found.mode() & 0o077 == 0,
            0 => found.mode() & 0o027 == 0,
            _ => false,
        };
        if !is_secret {
            return Err(TokenError::Public(shown));
        }
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(failed)?;
        Self::new(text.trim())?.ok_or(TokenError::NotOne(shown))
    }

    /// Returns a token; `None` for a text that cannot be one.
    fn new(text: &str) -> Result<Option<Self>, TokenError> {
        let is_unreserved = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_' | b'~');
        if !(SHORTEST..=LONGEST).contains(&text.len()) || !text.bytes().all(is_unreserved) {
            return Ok(None);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| TokenError::NoRandom)?;
        let code = hmac::sign(&key, &message("token", text.as_bytes()));
        Ok(Some(Self { text: text.to_owned(), key, code }))
    }

    /// Returns the text, for the links that carry it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a text for the log, where the token must not be.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.text, "TOKEN")
    }

    fn is(&self, text: &[u8]) -> bool {
        hmac::verify(&self.key, &message("token", text), self.code.as_ref()).is_ok()
    }

    /// Looks for the token in a request, and takes it out of the path. Fails with [`Problem::Token`] if it is not
    /// there.
    pub(super) fn prove(&self, request: &mut Head, peer: &Peer) -> Result<Proof, Problem> {
        let below = request.uri().path_and_query().and_then(|path| {
            let path = path.as_str().strip_prefix('/')?;
            let (first, rest) = path.split_at(path.find(['/', '?']).unwrap_or(path.len()));
            self.is(first.as_bytes()).then(|| rest.to_owned())
        });
        if let Some(below) = below {
            let is_bare = !below.starts_with('/');
            let without = if is_bare { format!("/{below}") } else { below };
            *request.uri_mut() = Uri::try_from(without).map_err(|_| Problem::Bad("the path cannot be read".into()))?;
            return Ok(if is_bare { Proof::BarePath } else { Proof::Path });
        }
        let mut bearers = request.headers().get_all(AUTHORIZATION).iter().filter_map(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(b"Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
        });
        if bearers.any(|token| self.is(token)) {
            return Ok(Proof::Header);
        }
        let mut cookies = request.headers().get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        match holder(peer) {
            Some(holder) if cookies.any(|cookies| self.has_code(cookies, &holder)) => Ok(Proof::Cookie),
            _ => Err(Problem::Token),
        }
    }

    fn has_code(&self, cookies: &str, holder: &str) -> bool {
        let message = message("cookie", holder.as_bytes());
        cookies.split(';').any(|cookie| {
            let value = cookie.trim().split_once('=').filter(|(name, _)| name.starts_with(COOKIE_NAME));
            let code = value.and_then(|(_, value)| URL_SAFE_NO_PAD.decode(value).ok());
            code.is_some_and(|code| hmac::verify(&self.key, &message, &code).is_ok())
        })
    }

    /// Returns the cookie for a client, named after the port that it uses: browsers send the cookies of a host to all
    /// of its ports. `None` for a client that cannot be told from others.
    pub(super) fn cookie(&self, request: &Head, peer: &Peer) -> Option<HeaderValue> {
        let code = hmac::sign(&self.key, &message("cookie", holder(peer)?.as_bytes()));
        let code = URL_SAFE_NO_PAD.encode(code);
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = request.uri().authority().map(|authority| authority.as_str()).or(host).unwrap_or_default();
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
        let name = port.map_or_else(|| COOKIE_NAME.to_owned(), |port| format!("{COOKIE_NAME}-{port}"));
        HeaderValue::try_from(format!("{name}={code}; Path=/; HttpOnly; SameSite=Strict")).ok()
    }

    /// Returns the way from a folder to the same one below the token, for links that are to carry it on.
    pub(super) fn way_below(&self, names: &[OsString], query: Option<&str>) -> String {
        let path: String = names.iter().map(|name| segment(name) + "/").collect();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}/{path}{query}", "../".repeat(names.len()), self.text)
    }
}

/// Returns what is signed: a code of one kind is not valid as another.
fn message(kind: &str, of: &[u8]) -> Vec<u8> {
    [kind.as_bytes(), b"\0", of].concat()
}

/// Returns the holder of a cookie: an address, and the user where that can be told.
fn holder(peer: &Peer) -> Option<String> {
    (peer.user.is_some() || !peer.is_local).then(|| format!("{:?} {:?}", peer.user, peer.address))
}

/// The names that clients may call this server by.
///
/// A page of another site can have the name of its own server resolved to this machine (DNS rebinding), and then read
/// responses as if they were of that site. Its requests carry that name, so they are refused.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    allowed: Vec<String>,
    /// Whether names are checked at all.
    checks: bool,
    addresses: Vec<IpAddr>,
}

impl Hosts {
    /// Names are checked if only this machine reaches the server, or if some were named. The name that it listens by is
    /// one of them. No browser reaches a Unix socket: a web server in front of it passes on the names that it has itself.
    pub(super) fn new(listen: &Listen, allowed: &[String]) -> Self {
        let (own, is_unix) = match listen {
            Listen::Tcp { name, .. } => (name.as_ref(), false),
            Listen::Unix(_) => (None, true),
        };
        Self {
            allowed: allowed.iter().chain(own).map(|host| host.to_ascii_lowercase()).collect(),
            checks: !is_unix && listen.remote().is_none() || !allowed.is_empty(),
            addresses: listen.addresses().iter().map(SocketAddr::ip).collect(),
        }
    }

    /// Returns whether a request calls this server by one of its names. A client that uses no name is not a browser.
    pub(super) fn allow(&self, request: &Head) -> bool {
        let named = request.headers().get_all(HOST).iter().map(|host| host.to_str().ok());
        let of_uri = request.uri().authority().map(|authority| Some(authority.as_str()));
        !self.checks || of_uri.into_iter().chain(named).all(|host| host.is_some_and(|host| self.is_own(host)))
    }

    fn is_own(&self, authority: &str) -> bool {
        let host = without_port(authority).to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_local =
            bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback() || self.addresses.contains(&ip));
        is_local || host == "localhost" || host.ends_with(".localhost") || self.allowed.contains(&host)
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use hyper::Request;

    use super::*;

    const TEXT: &str = "a-secret_of~24.characters";
    const LOCAL: Peer =
        Peer { user: Some(1000), address: Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)), is_local: true };

    fn token() -> Token {
        Token::new(TEXT).unwrap().unwrap()
    }

    fn proof(token: &Token, path: &str, headers: &[(&str, &str)], peer: &Peer) -> (Result<Proof, Problem>, String) {
        let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(()).unwrap();
        (token.prove(&mut request, peer), request.uri().to_string())
    }

    #[test]
    fn a_token_comes_by_path_header_or_cookie() {
        let token = token();
        let of = |path: &str, headers: &[(&str, &str)]| proof(&token, path, headers, &LOCAL);
        for path in ["/", "/a/b?box=1", "//a"] {
            assert_eq!(of(&format!("/{TEXT}{path}"), &[]), (Ok(Proof::Path), path.to_owned()));
        }
        for query in ["", "?from=3"] {
            assert_eq!(of(&format!("/{TEXT}{query}"), &[]), (Ok(Proof::BarePath), format!("/{query}")));
        }
        let bearer = format!("bearer  {TEXT} ");
        assert_eq!(of("/a", &[("authorization", &bearer)]), (Ok(Proof::Header), "/a".to_owned()));
        let wrong = [TEXT.to_uppercase(), TEXT[1..].to_owned(), format!("{TEXT}x"), String::new(), "cookie".to_owned()];
        for wrong in &wrong {
            let headers = [("authorization", format!("Bearer {wrong}")), ("cookie", format!("volfs={wrong}"))];
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            assert_eq!(of(&format!("/{wrong}/a"), &headers).0, Err(Problem::Token), "{wrong}");
        }
        for (name, value) in [("authorization", format!("Basic {TEXT}")), ("cookie", format!("volfs={TEXT}"))] {
            assert_eq!(of("/a", &[(name, &value)]).0, Err(Problem::Token), "{value}");
        }
        assert_eq!(of(&format!("/a/{TEXT}/"), &[]).0, Err(Problem::Token));
        assert!(!format!("{token:?}").contains("secret"));
    }

    #[test]
    fn a_cookie_is_invalid_for_another_user_or_address() {
        let token = token();
        let request = Request::get("/").header(HOST, "localhost:8080").body(()).unwrap();
        let set = token.cookie(&request, &LOCAL).unwrap();
        let cookie = set.to_str().unwrap().split(';').next().unwrap();
        assert!(
            cookie.starts_with("volfs-8080=") && set.to_str().unwrap().ends_with("; Path=/; HttpOnly; SameSite=Strict")
        );
        let others = format!("a=b; volfs-1=x; {cookie}; c");
        let of = |peer: &Peer| proof(&token, "/a", &[("cookie", &others)], peer).0;
        assert_eq!(of(&LOCAL), Ok(Proof::Cookie));
        let remote = Some("10.0.0.1".parse().unwrap());
        for peer in [
            Peer { user: Some(1001), ..LOCAL },
            Peer { user: None, ..LOCAL },
            Peer { address: remote, ..LOCAL },
            Peer { address: remote, user: None, is_local: false },
        ] {
            assert_eq!(of(&peer), Err(Problem::Token), "{peer:?}");
        }
        assert_eq!(token.cookie(&request, &Peer { user: None, ..LOCAL }), None);
        // of another server with the same token
        assert_eq!(proof(&self::token(), "/a", &[("cookie", cookie)], &LOCAL).0, Err(Problem::Token));
    }

    #[test]
    fn a_token_file_is_secret_and_has_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        assert_eq!(read(&format!("\n {TEXT}\n"), 0o600).unwrap().text(), TEXT);
        for mode in [0o644, 0o660, 0o604, 0o602, 0o640] {
            let refused = read(TEXT, mode);
            // root's own file is this user's own
            assert!(matches!(refused, Err(TokenError::Public(_))), "{mode:o}");
        }
        for bad in [
            "",
            "short",
            "with space in it 123456",
            "sl/ash/in/it/123456",
            "two-lines-of-it\nx234567890123456",
            &"x".repeat(201),
        ] {
            let error = read(bad, 0o600).unwrap_err();
            assert!(matches!(error, TokenError::NotOne(_)) && !error.to_string().contains('\n'), "{bad}");
        }
        assert!(matches!(Token::read(&folder.path().join("none")), Err(TokenError::Read(..))));
        assert!(Token::read(folder.path()).is_err());
    }

    #[test]
    fn only_the_users_named_are_let_in() {
        let access = Access { users: Some([0, 1000].into()), token: None };
        assert!(access.needs_user(true) && !Access::default().needs_user(true));
        let of = |user| access.refuses(&Peer { user, ..LOCAL });
        assert_eq!((of(Some(0)), of(Some(1000))), (None, None));
        assert_eq!((of(Some(1001)), of(None)), (Some(Problem::OtherUser), Some(Problem::UnknownUser)));
        assert_eq!(Access::default().refuses(&Peer { user: None, ..LOCAL }), None);
    }

    #[test]
    fn a_page_goes_on_below_the_token() {
        let token = token();
        assert_eq!(token.way_below(&[], None), format!("{TEXT}/"));
        assert_eq!(
            token.way_below(&["a b".into(), "c".into()], Some("from=1")),
            format!("../../{TEXT}/a%20b/c/?from=1")
        );
    }

    fn allowed(listen: &str, names: &[&str], host: Option<&str>) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut request = Request::get("/");
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        Hosts::new(&Listen::read(listen.as_ref()).unwrap(), &names).allow(&request.body(()).unwrap())
    }

    #[test]
    fn only_names_of_this_machine_are_allowed_on_loopback() {
        let own = ["localhost", "localhost:8080", "127.0.0.1:8080", "127.1.2.3", "[::1]:80", "[::1]", "x.localhost"];
        assert!(own.iter().all(|host| allowed("127.0.0.1:8080", &[], Some(host))));
        let others = ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil"];
        assert!(others.iter().all(|host| !allowed("127.0.0.1:8080", &[], Some(host))));
        assert!(allowed("127.0.0.1:8080", &["Data.Example"], Some("data.example:443")));
        assert!(allowed("127.0.0.1:8080", &[], None));
        assert!(!allowed("[::ffff:127.0.0.1]:8080", &[], Some("evil.example")));
        assert!(own.iter().all(|host| allowed("localhost:8080", &[], Some(host))));
        assert!(others.iter().all(|host| !allowed("localhost:8080", &[], Some(host))));
    }

    #[test]
    fn a_server_may_be_called_by_the_name_that_it_listens_by() {
        let at =
            |address: &str| Listen::Tcp { name: Some("Build5".to_owned()), addresses: vec![address.parse().unwrap()] };
        let allows = |hosts: &Hosts, host: &str| hosts.allow(&Request::get("/").header(HOST, host).body(()).unwrap());
        let local = Hosts::new(&at("127.0.1.1:8080"), &[]);
        assert!(allows(&local, "build5:8080") && allows(&local, "localhost") && !allows(&local, "evil.example"));
        let remote = at("10.0.0.7:8080");
        assert!(allows(&Hosts::new(&remote, &[]), "anything"));
        let named = Hosts::new(&remote, &["data.example".to_owned()]);
        assert!(allows(&named, "build5") && allows(&named, "10.0.0.7:8080") && !allows(&named, "anything"));
    }

    #[test]
    fn elsewhere_names_are_checked_if_there_are_some() {
        assert!(allowed("0.0.0.0:8080", &[], Some("anything")));
        assert!(!allowed("0.0.0.0:8080", &["data.example"], Some("anything")));
        assert!(allowed("10.0.0.7:8080", &["data.example"], Some("10.0.0.7:8080")));
        assert!(allowed("unix:/run/socket", &[], Some("anything")));
        assert!(!allowed("unix:/run/socket", &["data.example"], Some("anything")));
    }
}
