//! Who may use a server: which users of this machine may connect, and the token that requests carry.
//!
//! A token comes in one of three ways: in the header `Authorization: Bearer TOKEN`, as the first name of the path (for
//! programs that know nothing but a URL, and for links), or as a cookie that a browser gets with a page.
//!
//! The cookie is not the token: browsers send it to every port of a host, also to servers of other users there. It is a
//! code that is worth something only from the address and the user that it was made for, until the server ends.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{hmac, rand::SystemRandom};
use rustix::process::geteuid;
use thiserror::Error;

use super::paths::segment;
use super::peer::Peer;
use super::problem::Problem;
use crate::logging::one_line;

/// Characters of a token.
const SHORTEST: usize = 16;
const LONGEST: usize = 200;
/// The name of the cookie, before the port.
const COOKIE_NAME: &str = "volfs";

/// Who may use a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    /// The users whose connections are accepted; `None`: everybody's.
    pub users: Option<BTreeSet<u32>>,
    /// What requests have to carry, if anything.
    pub token: Option<Token>,
}

impl Access {
    /// Returns whether the user of a connection has to be known.
    pub(crate) fn needs_user(&self, is_local: bool) -> bool {
        self.users.is_some() || self.token.is_some() && is_local
    }

    /// Returns whether users besides the own one and root may connect.
    pub(crate) fn is_for_others(&self) -> bool {
        self.users.as_ref().is_none_or(|users| !users.iter().all(|user| is_own(*user)))
    }

    /// Returns why a connection is refused, if it is.
    pub(crate) fn refuses(&self, peer: &Peer) -> Option<Problem> {
        let users = self.users.as_ref()?;
        match peer.user {
            Some(user) if users.contains(&user) => None,
            Some(_) => Some(Problem::OtherUser),
            None => Some(Problem::UnknownUser),
        }
    }

    /// Returns whether a connection is of somebody who may be kept from it by others: on this machine, and neither of
    /// the server's user nor of root. Connections of these others are bounded apart.
    pub(crate) fn is_guest(&self, peer: &Peer) -> bool {
        self.token.is_some() && peer.is_local && !peer.user.is_some_and(is_own)
    }
}

/// Returns whether a user is the one who runs the server, or root.
fn is_own(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

/// Why a token cannot be used.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {path}: {error}", path = one_line(&.0.to_string_lossy()), error = .1)]
    Read(PathBuf, io::Error),
    /// The file is not secret.
    #[error(
        "the token file {} can be read or written by others: make it yours alone (chmod 600)",
        one_line(&.0.to_string_lossy())
    )]
    Public(PathBuf),
    /// The file has no token.
    #[error(
        "the token file {} has no token: {SHORTEST} to {LONGEST} letters, digits and - . _ ~, as openssl rand -hex 24 makes",
        one_line(&.0.to_string_lossy())
    )]
    NotOne(PathBuf),
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
}

/// A token, which is never shown: what is compared are codes of equal length, in constant time.
#[derive(Clone)]
pub(crate) struct Token {
    text: String,
    /// Made anew by each server.
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
pub(crate) enum Proof {
    /// No token is needed.
    Unneeded,
    /// By a header.
    Header,
    /// By its path, which is now without the token.
    Path,
    /// By its path, which is the token without a slash behind it: links of a page would not lead below it.
    BarePath,
    /// By a cookie.
    Cookie,
}

impl Token {
    /// Reads the file of a token, which nobody but this user and root may be able to read.
    pub(crate) fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |error| TokenError::Read(path.to_owned(), error);
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let own = geteuid().as_raw();
        // a file of root's for a group is how services are given one; a file of the user's own has no reason to be
        let is_secret = match found.uid() {
            user if user == own => found.mode() & 0o077 == 0,
            0 => found.mode() & 0o027 == 0,
            _ => false,
        };
        if !is_secret {
            return Err(TokenError::Public(path.to_owned()));
        }
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(failed)?;
        Self::new(text.trim())?.ok_or_else(|| TokenError::NotOne(path.to_owned()))
    }

    /// Returns a token; `None` for a text that is none.
    fn new(text: &str) -> Result<Option<Self>, TokenError> {
        let is_unreserved = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_' | b'~');
        if !(SHORTEST..=LONGEST).contains(&text.len()) || !text.bytes().all(is_unreserved) {
            return Ok(None);
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| TokenError::NoRandom)?;
        let code = hmac::sign(&key, &message(b"token", text.as_bytes()));
        Ok(Some(Self { text: text.to_owned(), key, code }))
    }

    /// Returns the text, for the links that carry it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a text for the log, where the token must not be.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        text.replace(&self.text, "TOKEN")
    }

    fn is(&self, text: &[u8]) -> bool {
        hmac::verify(&self.key, &message(b"token", text), self.code.as_ref()).is_ok()
    }

    /// Looks for the token in a request, and takes it out of the path.
    pub(crate) fn prove(&self, request: &mut Parts, peer: &Peer) -> Result<Proof, Problem> {
        let below = request.uri.path_and_query().and_then(|path| {
            let path = path.as_str().strip_prefix('/')?;
            let (first, rest) = path.split_at(path.find(['/', '?']).unwrap_or(path.len()));
            self.is(first.as_bytes()).then(|| rest.to_owned())
        });
        if let Some(below) = below {
            let is_bare = !below.starts_with('/');
            let without = if is_bare { format!("/{below}") } else { below };
            request.uri = Uri::try_from(without).map_err(|_| Problem::Bad("the path cannot be read".into()))?;
            return Ok(if is_bare { Proof::BarePath } else { Proof::Path });
        }
        let mut bearers = request.headers.get_all(AUTHORIZATION).iter().filter_map(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(b"Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
        });
        if bearers.any(|token| self.is(token)) {
            return Ok(Proof::Header);
        }
        let mut cookies = request.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        match holder(peer) {
            Some(holder) if cookies.any(|cookies| self.has_code(cookies, &holder)) => Ok(Proof::Cookie),
            _ => Err(Problem::Token),
        }
    }

    fn has_code(&self, cookies: &str, holder: &[u8]) -> bool {
        let values = cookies.split(';').filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            URL_SAFE_NO_PAD.decode(name.starts_with(COOKIE_NAME).then_some(value)?).ok()
        });
        values.into_iter().any(|code| hmac::verify(&self.key, &message(b"cookie", holder), &code).is_ok())
    }

    /// Returns the cookie for a client, named after the port that it uses: browsers send the cookies of a host to all of
    /// its ports. `None` for one that cannot be told from others.
    pub(crate) fn cookie(&self, request: &Parts, peer: &Peer) -> Option<HeaderValue> {
        let code = URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &message(b"cookie", &holder(peer)?)));
        let host = request.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = request.uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or_default();
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
        let name = port.map_or_else(|| COOKIE_NAME.to_owned(), |port| format!("{COOKIE_NAME}-{port}"));
        HeaderValue::try_from(format!("{name}={code}; Path=/; HttpOnly; SameSite=Strict")).ok()
    }
}

/// Returns what is signed: codes of one kind are none of another.
fn message(kind: &[u8], of: &[u8]) -> Vec<u8> {
    [kind, b"\0", of].concat()
}

/// Returns who a cookie is for: an address, and the user where one can be told.
fn holder(peer: &Peer) -> Option<Vec<u8>> {
    let user = match (peer.user, peer.is_local) {
        (None, true) => return None,
        (user, _) => user.map(u32::to_be_bytes),
    };
    let address = match peer.address {
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets().to_vec(),
        None => Vec::new(),
    };
    Some([&user.unwrap_or_default()[..], &[u8::from(user.is_some())], &address].concat())
}

/// Returns the way from a folder to the same one below the token, for links that are to be carried on.
pub(crate) fn below_token(token: &Token, names: &[std::ffi::OsString], query: Option<&str>) -> String {
    let path: String = names.iter().map(|name| segment(name) + "/").collect();
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{}/{path}{query}", "../".repeat(names.len()), token.text())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use axum::http::Request;

    use super::*;

    const TEXT: &str = "a-secret_of~24.characters";
    const LOCAL: Peer =
        Peer { user: Some(1000), address: Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)), is_local: true };

    fn token() -> Token {
        Token::new(TEXT).unwrap().unwrap()
    }

    fn proof(token: &Token, path: &str, headers: &[(&str, &str)], peer: &Peer) -> (Result<Proof, Problem>, String) {
        let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        let mut parts = request.body(()).unwrap().into_parts().0;
        (token.prove(&mut parts, peer), parts.uri.to_string())
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
    fn a_cookie_is_worth_nothing_to_another_user_or_address() {
        let token = token();
        let request = Request::get("/").header(HOST, "localhost:8080").body(()).unwrap().into_parts().0;
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
        assert_eq!(below_token(&token, &[], None), format!("{TEXT}/"));
        assert_eq!(
            below_token(&token, &["a b".into(), "c".into()], Some("from=1")),
            format!("../../{TEXT}/a%20b/c/?from=1")
        );
    }
}
