//! SOURCE as a URL of an object store or a web server, and the options of the store.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    S3,
    Azure,
    Gcs,
    /// A web server, whose files are read by their names.
    Http,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreUrl {
    pub(crate) kind: StoreKind,
    /// The scheme, and the bucket, container or host with its port: `s3://surveys`.
    pub(crate) base: String,
    /// The bucket, the container, or the host with its port.
    pub(crate) bucket: String,
    /// The names behind it, with `/` between them; empty for all of it.
    pub(crate) key: String,
}

/// Why a URL is not accepted. The texts have nothing of the URL but its scheme, since it may hold a secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum UrlError {
    #[error(
        "{0}:// is no scheme that volfs knows; give s3://BUCKET/KEY, az://CONTAINER/KEY, gs://BUCKET/KEY or https://HOST/PATH"
    )]
    Scheme(String),
    #[error("{0}:// needs a name behind it, as in {0}://NAME/KEY")]
    NoBucket(String),
    #[error(
        "a URL must not have a user name or password in it, where other users see it; give them in the environment \
         (docs/object-stores.md names the variables)"
    )]
    UserInfo,
    #[error(
        "a URL must have no part behind ? or #, where other users see it; give a signature (SAS) in the environment \
         as AZURE_STORAGE_SAS_TOKEN"
    )]
    Query,
    /// A name in the key is empty, `.` or `..`, or is not text.
    #[error("the names behind the bucket must be text, and none of them empty, \".\" or \"..\"")]
    Key,
}

/// Returns whether SOURCE is a URL and no path of this machine.
pub(crate) fn is_url(source: &Path) -> bool {
    scheme_of(source).is_some()
}

fn scheme_of(source: &Path) -> Option<&str> {
    // a path that is not text has no scheme either
    let text = source.to_str().or_else(|| std::str::from_utf8(source.as_os_str().as_encoded_bytes().get(..8)?).ok())?;
    let (scheme, _) = text.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    is_scheme.then_some(scheme)
}

/// Returns SOURCE without what may be secret, for messages.
pub(crate) fn shown(source: &Path) -> PathBuf {
    if !is_url(source) {
        return source.to_owned();
    }
    StoreUrl::parse(source).map_or_else(|_| PathBuf::from("the URL"), |url| url.path())
}

impl StoreUrl {
    pub(crate) fn parse(source: &Path) -> Result<Self, UrlError> {
        let typed = scheme_of(source).unwrap_or_default();
        let text = source.to_str().ok_or(UrlError::Key)?;
        let (kind, scheme) = match typed.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => (StoreKind::S3, "s3"),
            "az" | "azure" => (StoreKind::Azure, "az"),
            "gs" | "gcs" => (StoreKind::Gcs, "gs"),
            "http" => (StoreKind::Http, "http"),
            "https" => (StoreKind::Http, "https"),
            _ => return Err(UrlError::Scheme(typed.to_owned())),
        };
        let rest = text.get(typed.len() + 3..).unwrap_or_default();
        if kind == StoreKind::Http && rest.contains(['?', '#']) || rest.contains("?s") || rest.contains("sig=") {
            return Err(UrlError::Query);
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(UrlError::UserInfo);
        }
        if bucket.is_empty() {
            return Err(UrlError::NoBucket(scheme.to_owned()));
        }
        let key = key.trim_end_matches('/');
        let key = if kind == StoreKind::Http { decoded(key).ok_or(UrlError::Key)? } else { key.to_owned() };
        if !is_key(&key) {
            return Err(UrlError::Key);
        }
        Ok(Self { kind, base: format!("{scheme}://{bucket}"), bucket: bucket.to_owned(), key })
    }

    /// Returns the URL as a path: the names behind it can be joined.
    pub(crate) fn path(&self) -> PathBuf {
        let slash = if self.key.is_empty() { "" } else { "/" };
        PathBuf::from([&self.base, slash, &self.key].concat())
    }

    /// Returns the key of a path that was made by joining names to [`StoreUrl::path`], or to a part of it; `None` if it
    /// is no key of this bucket.
    pub(crate) fn key_of(&self, path: &Path) -> Option<String> {
        let names: Option<Vec<&str>> = path.strip_prefix(&self.base).ok()?.iter().map(OsStr::to_str).collect();
        Some(names?.join("/")).filter(|key| is_key(key))
    }
}

/// Returns whether a text is the key of something: names with `/` between them, or nothing.
fn is_key(key: &str) -> bool {
    key.is_empty() || key.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Decodes what a URL writes as `%20`; `None` if that is no text.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or(("25", part));
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Words in the names of options whose values are secret.
const SECRET: [&str; 9] =
    ["secret", "access_key", "account_key", "master_key", "sas", "token", "password", "encryption_key", "customer_key"];

/// One option: `region=eu-west-1`. Never a secret: other users see the arguments of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreOption {
    /// The name, in lower case and with `_` for `-`.
    pub(crate) name: String,
    /// The value; empty if it is refused.
    pub(crate) value: String,
    /// Why it cannot be used. No error of the parser: those repeat what was typed.
    refusal: Option<String>,
}

impl StoreOption {
    /// Returns why one of these options cannot be used.
    pub(crate) fn refusal(options: &[Self]) -> Option<&str> {
        options.iter().find_map(|option| option.refusal.as_deref())
    }
}

impl FromStr for StoreOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').unwrap_or_default();
        let name = name.trim().to_ascii_lowercase().replace('-', "_");
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err("write it as NAME=VALUE, as in region=eu-west-1".to_owned());
        }
        let is_file = name.ends_with("_file") || name.ends_with("_path");
        let refusal = if !is_file && SECRET.iter().any(|word| name.contains(word)) {
            let variable = variable(&name);
            let why = "is secret, and other users see the arguments of a process: give it in the environment, as";
            Some(format!("{name} {why} {variable}"))
        } else if value.contains('@') && value.contains("://") {
            Some(format!("{name} has a user name or password in it; other users see the arguments of a process"))
        } else {
            None
        };
        let value = if refusal.is_some() { "" } else { value };
        Ok(Self { name, value: value.to_owned(), refusal })
    }
}

impl fmt::Display for StoreOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// Returns the environment variable that an option is usually given in.
fn variable(name: &str) -> String {
    let known = ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix));
    match name {
        _ if known => name.to_ascii_uppercase(),
        "secret_access_key" | "access_key_id" | "session_token" => format!("AWS_{}", name.to_ascii_uppercase()),
        "account_key" | "access_key" => "AZURE_STORAGE_ACCOUNT_KEY".to_owned(),
        "sas_key" | "sas_token" => "AZURE_STORAGE_SAS_TOKEN".to_owned(),
        "service_account_key" => "GOOGLE_SERVICE_ACCOUNT_KEY".to_owned(),
        _ => "AWS_SECRET_ACCESS_KEY, AZURE_STORAGE_ACCOUNT_KEY or GOOGLE_APPLICATION_CREDENTIALS".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StoreUrl, UrlError> {
        StoreUrl::parse(Path::new(text))
    }

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://b/k", "https://host", "x-y://", "file:///a", "AZURE://c"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in ["/a/s3://b", "s3:/b", "://", "a b://c", "surveys", "/x"] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn all_spellings_lead_to_one_form() {
        for (typed, kind, path) in [
            ("s3://b/k/l/", StoreKind::S3, "s3://b/k/l"),
            ("s3a://b", StoreKind::S3, "s3://b"),
            ("azure://c/k", StoreKind::Azure, "az://c/k"),
            ("GS://b/a b", StoreKind::Gcs, "gs://b/a b"),
            ("https://host:8080/a%20b/c", StoreKind::Http, "https://host:8080/a b/c"),
        ] {
            let url = parse(typed).unwrap();
            assert_eq!((url.kind, url.path()), (kind, PathBuf::from(path)), "{typed}");
            assert_eq!(url.key_of(&url.path()), Some(url.key.clone()));
            assert_eq!(url.key_of(&url.path().join("x/y")).unwrap().rsplit('/').next(), Some("y"));
        }
        let url = parse("s3://b/k").unwrap();
        assert_eq!((url.key_of(Path::new("s3://other/k")), url.key_of(Path::new("/b/k"))), (None, None));
        assert_eq!(url.key_of(Path::new("s3://b/k/../l")), None);
    }

    #[test]
    fn what_may_hold_a_secret_is_refused_and_not_repeated() {
        for text in [
            "https://user:hunter2@host/x",
            "s3://hunter2@bucket/key",
            "https://host/x?sig=hunter2",
            "az://c/x?sv=1&sig=hunter2",
            "https://host/x#hunter2",
            "ftp://user:hunter2@host/x",
            "s3://b/../hunter2",
            "s3://b//hunter2",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
        }
        assert!(matches!(parse("s3://"), Err(UrlError::NoBucket(_))));
        assert!(matches!(parse("hdfs://name/x"), Err(UrlError::Scheme(scheme)) if scheme == "hdfs"));
    }

    #[test]
    fn options_are_names_and_values() {
        let option: StoreOption = "Allow-HTTP=true".parse().unwrap();
        assert_eq!((option.to_string(), &*option.value), ("allow_http=true".to_owned(), "true"));
        assert!("endpoint=http://127.0.0.1:9000".parse::<StoreOption>().is_ok());
        assert!("web_identity_token_file=/run/token".parse::<StoreOption>().is_ok());
        for odd in ["region", "=x", "a b=c", ""] {
            assert!(odd.parse::<StoreOption>().is_err(), "{odd}");
        }
    }

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        for text in [
            "aws_secret_access_key=hunter2",
            "access-key-id=hunter2",
            "account_key=hunter2",
            "SAS_TOKEN=hunter2",
            "token=hunter2",
            "proxy_url=http://me:hunter2@proxy",
            "endpoint=https://hunter2@host",
        ] {
            let option: StoreOption = text.parse().unwrap();
            assert!(!format!("{option} {option:?}").contains("hunter2"), "{option:?}");
            assert!(StoreOption::refusal(&[option]).is_some());
        }
        let option: StoreOption = "secret_access_key=x".parse().unwrap();
        assert!(option.refusal.is_some_and(|why| why.contains("AWS_SECRET_ACCESS_KEY")));
    }
}
