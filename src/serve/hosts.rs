//! By which names a client may call this server.
//!
//! A page of another site can have the name of its own server resolved to this machine (DNS rebinding), and then read
//! responses as if they were of that site. Its requests carry that name, so they are refused.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::request::Parts;

use super::listener::Listen;

/// The names of this server.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    allowed: Vec<String>,
    /// Whether names are checked at all.
    checks: bool,
    address: Option<IpAddr>,
}

impl Hosts {
    /// Creates the names of a server. Names are checked if only this machine reaches it, or if some were named. No
    /// browser reaches a Unix socket: a web server in front of it passes on the names that it has itself.
    pub(crate) fn new(listen: &Listen, allowed: &[String]) -> Self {
        let address = match listen {
            Listen::Tcp(address) => Some(address.ip()),
            Listen::Unix(_) => None,
        };
        let checks = address.is_some() && !listen.is_remote() || !allowed.is_empty();
        Self { allowed: allowed.iter().map(|host| host.to_ascii_lowercase()).collect(), checks, address }
    }

    /// Returns whether a request calls this server by one of its names. A client that uses no name is no browser.
    pub(crate) fn allow(&self, request: &Parts) -> bool {
        if !self.checks {
            return true;
        }
        let mut named = request.headers.get_all(HOST).iter().map(|host| host.to_str().ok());
        let of_uri = request.uri.authority().map(|authority| Some(authority.as_str()));
        of_uri.into_iter().chain(named.by_ref()).all(|host| host.is_some_and(|host| self.is_own(host)))
    }

    fn is_own(&self, authority: &str) -> bool {
        let host = without_port(authority).to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_local =
            bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback() || Some(ip) == self.address);
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
    use axum::http::Request;

    use super::*;

    fn allowed(listen: &str, names: &[&str], host: Option<&str>) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut request = Request::get("/");
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        Hosts::new(&Listen::read(listen.as_ref()).unwrap(), &names).allow(&request.body(()).unwrap().into_parts().0)
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
