//! Makes the client of a store from a URL, the environment, the files of AWS and the options of the command line.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, RetryConfig};
#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::{NO_CREDENTIALS, StoreError};
use super::http::{Metrics, StoreConnector};
use crate::source::{StoreKind, StoreOption, StoreUrl};
use crate::sync::LazyPerProcess;

/// Options that hold unless the environment or the command line has others: how long a connection and a whole answer
/// may take. A store that loses a machine may need 8 seconds for the first answer after that.
const DEFAULTS: [(&str, &str); 2] = [("connect_timeout", "5 seconds"), ("timeout", "30 seconds")];
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A pause is chosen at random between the shortest one and so many times the one before. Pauses do not grow, on
/// average, if this is less than 2.8.
const GROWTH: f64 = 4.0;
/// The variable in which all SDKs of AWS look for the token of a container.
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

/// How long a store is asked again after failures that may pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    retries: usize,
    /// No further attempt begins after this time.
    timeout: Duration,
}

impl RetryPolicy {
    /// A store that loses a machine may need some 8 seconds until it answers again; one that does not answer at all
    /// ends in an error after a minute and a half at most.
    pub(crate) const MOUNT: Self = Self { retries: 60, timeout: Duration::from_secs(60) };
    /// Of a command before there is a mount: somebody waits for it.
    pub(crate) const CLI: Self = Self { retries: 3, timeout: Duration::from_secs(12) };
}

#[derive(Clone)]
pub(super) struct Backend {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Listings, page by page; `None` for a web server, which has none.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// Where the bucket is: the endpoint or the account, as far as they are not the usual ones. No secret.
    pub(super) endpoint: String,
    pub(super) metrics: Arc<Metrics>,
}

/// Makes the client of the store that a URL names. Nothing is sent yet.
pub(super) fn connect(url: &StoreUrl, options: &[StoreOption], policy: RetryPolicy) -> Result<Backend, StoreError> {
    let (mut policy, mut others) = (policy, Vec::new());
    for option in options {
        let number = || {
            let wrong = format!("{option}: not a number from 0 to 600");
            let number = option.value.parse::<u64>().ok().filter(|number| *number <= 600);
            number.ok_or_else(|| StoreError::new(io::ErrorKind::InvalidInput, wrong))
        };
        match option.name.as_str() {
            "retries" => policy.retries = usize::try_from(number()?).unwrap_or(0),
            "retry_seconds" => policy.timeout = Duration::from_secs(number()?),
            _ => others.push(option.clone()),
        }
    }
    let options = &others[..];
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: LONGEST_PAUSE, base: GROWTH, ..BackoffConfig::default() },
        max_retries: policy.retries,
        retry_timeout: policy.timeout,
    };
    let metrics = Arc::<Metrics>::default();
    let connector = StoreConnector { metrics: Arc::clone(&metrics), kind: url.kind, credential_services: Vec::new() };
    let built = match url.kind {
        StoreKind::S3 => {
            let builder = s3(url, options)?;
            let endpoint = host_of(&builder.get_config_value(&S3Key::Endpoint).unwrap_or_default());
            let connector = StoreConnector { credential_services: credential_services(&builder), ..connector };
            builder.with_retry(retry).with_http_connector(connector).build().map(|store| both(store, endpoint, metrics))
        }
        StoreKind::Azure => {
            let builder = azure(url, options)?;
            let get = |key| host_of(&builder.get_config_value(&key).unwrap_or_default());
            let place = [get(AzureConfigKey::AccountName), get(AzureConfigKey::Endpoint)].join(" ").trim().to_owned();
            builder.with_retry(retry).with_http_connector(connector).build().map(|store| both(store, place, metrics))
        }
        StoreKind::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&url.bucket);
            let get = GoogleCloudStorageBuilder::get_config_value;
            let builder = apply(builder, options, get, |builder, key, value| builder.with_config(key, value))?;
            let built = builder.with_retry(retry).with_http_connector(connector).build();
            built.map(|store| both(store, String::new(), metrics))
        }
        StoreKind::Http => {
            let built = http(url, options)?.with_retry(retry).with_http_connector(connector).build();
            built.map(|store| Backend { objects: Arc::new(store), pages: None, endpoint: String::new(), metrics })
        }
    };
    built.map_err(|error| not_configured(&error))
}

fn both<S: ObjectStore + PaginatedListStore>(store: S, endpoint: String, metrics: Arc<Metrics>) -> Backend {
    let store = Arc::new(store);
    Backend { objects: Arc::clone(&store) as _, pages: Some(store), endpoint, metrics }
}

/// Returns the host and the port of a URL, without anything that may be secret.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default().to_owned()
}

fn not_configured(error: &Error) -> StoreError {
    let explained = StoreError::from_library(error).map(|explained| explained.text);
    StoreError::new(io::ErrorKind::InvalidInput, explained.unwrap_or_else(|| "its options are not complete".to_owned()))
}

/// Applies options to a builder by `set`. Defaults count only where `get` has no other value.
fn apply<B, K: FromStr>(
    mut builder: B,
    options: &[StoreOption],
    get: impl Fn(&B, &K) -> Option<String>,
    set: impl Fn(B, K, &str) -> B,
) -> Result<B, StoreError> {
    let key = |name: &str| {
        // the name that the library has for it
        let known = if name == "anonymous" { "skip_signature" } else { name };
        let unknown = format!("there is no option {name} for this kind of store; docs/object-stores.md lists them");
        known.parse::<K>().map_err(|_| StoreError::new(io::ErrorKind::InvalidInput, unknown))
    };
    for (name, value) in DEFAULTS {
        let key = key(name)?;
        if get(&builder, &key).is_none_or(|value| value.is_empty()) {
            builder = set(builder, key, value);
        }
    }
    for StoreOption { name, value, .. } in options {
        builder = set(builder, key(name)?, value);
    }
    Ok(builder)
}

fn s3(url: &StoreUrl, options: &[StoreOption]) -> Result<AmazonS3Builder, StoreError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&url.bucket);
    let has_keys = builder.get_config_value(&S3Key::AccessKeyId).is_some();
    if !has_keys || chosen_profile().is_some() {
        builder = with_profile(builder)?;
    }
    builder = with_token(builder)?;
    // the library knows it by another name than the SDKs
    if let Ok(endpoint) = env::var("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        builder = builder.with_metadata_endpoint(endpoint.trim_end_matches('/'));
    }
    let builder =
        apply(builder, options, AmazonS3Builder::get_config_value, |b, key, value| b.with_config(key, value))?;
    let is_disabled = |value: String| value.eq_ignore_ascii_case("true");
    if env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(is_disabled) && !has_credentials(&builder) {
        return Err(StoreError::new(io::ErrorKind::PermissionDenied, NO_CREDENTIALS));
    }
    Ok(builder)
}

/// Returns whether there are credentials, or none are needed, without the role of a virtual machine.
fn has_credentials(builder: &AmazonS3Builder) -> bool {
    let is_set = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty() && value != "false");
    is_set(S3Key::AccessKeyId)
        || is_set(S3Key::SkipSignature)
        || is_set(S3Key::WebIdentityTokenFile)
        || is_set(S3Key::ContainerCredentialsRelativeUri)
        || is_set(S3Key::ContainerCredentialsFullUri)
}

/// Returns the addresses at which keys are asked for.
fn credential_services(builder: &AmazonS3Builder) -> Vec<String> {
    let get = |key| builder.get_config_value(&key).filter(|value| !value.is_empty());
    let of_machine = get(S3Key::MetadataEndpoint).into_iter();
    let of_machine = of_machine.flat_map(|at| ["api/token", "meta-data/iam"].map(|name| format!("{at}/latest/{name}")));
    of_machine.chain(get(S3Key::ContainerCredentialsFullUri)).collect()
}

/// Adds what the files of AWS have and the environment has not.
fn with_profile(mut builder: AmazonS3Builder) -> Result<AmazonS3Builder, StoreError> {
    let profile = Profile::read();
    let is_set = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    let has_keys = is_set(&builder, S3Key::AccessKeyId);
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
        && !has_keys
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = profile.get("aws_session_token") {
            builder = builder.with_token(token);
        }
    } else if let (false, Some(way), Some(name)) = (has_keys, profile.unknown_way(), chosen_profile()) {
        let text = format!(
            "the profile {name} has {way}, which volfs does not know; type: eval \"$(aws configure export-credentials \
             --profile {name} --format env)\""
        );
        return Err(StoreError::new(io::ErrorKind::PermissionDenied, text));
    }
    let region_is_set = is_set(&builder, S3Key::Region) || env::var_os("AWS_DEFAULT_REGION").is_some();
    if let Some(region) = profile.get("region").filter(|_| !region_is_set) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = profile.get("endpoint_url").filter(|_| !is_set(&builder, S3Key::Endpoint)) {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(builder)
}

fn azure(url: &StoreUrl, options: &[StoreOption]) -> Result<MicrosoftAzureBuilder, StoreError> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(&url.bucket);
    if let Ok(text) = env::var("AZURE_STORAGE_CONNECTION_STRING") {
        for (key, value) in connection_string(&text) {
            // what is not set is "false" where it is a switch
            if builder.get_config_value(&key).is_none_or(|set| set == "false") {
                builder = builder.with_config(key, value);
            }
        }
    }
    apply(builder, options, MicrosoftAzureBuilder::get_config_value, |b, key, value| b.with_config(key, value))
}

fn connection_string(text: &str) -> Vec<(AzureConfigKey, String)> {
    let parts: Vec<(&str, &str)> = text.split(';').filter_map(|part| part.trim().split_once('=')).collect();
    let get = |name: &str| parts.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let suffixed = || {
        let (name, suffix) = (get("AccountName")?, get("EndpointSuffix")?);
        Some(format!("{}://{name}.blob.{suffix}", get("DefaultEndpointsProtocol").unwrap_or("https")))
    };
    let endpoint = get("BlobEndpoint").map(|endpoint| endpoint.trim_end_matches('/').to_owned()).or_else(suffixed);
    // a user who writes http:// there means it
    let is_plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let is_emulator = get("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let found = [
        (AzureConfigKey::AccountName, get("AccountName")),
        (AzureConfigKey::AccessKey, get("AccountKey")),
        (AzureConfigKey::SasKey, get("SharedAccessSignature")),
        (AzureConfigKey::Endpoint, endpoint.as_deref()),
        (AzureConfigKey::Client(ClientConfigKey::AllowHttp), is_plain.then_some("true")),
        (AzureConfigKey::UseEmulator, is_emulator.then_some("true")),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key, value?.to_owned()))).collect()
}

fn http(url: &StoreUrl, options: &[StoreOption]) -> Result<HttpBuilder, StoreError> {
    // a user who types http:// means it
    let plain = if url.base.starts_with("http://") { "true" } else { "false" };
    let builder = HttpBuilder::new().with_url(&url.base).with_config(ClientConfigKey::AllowHttp, plain);
    apply(builder, options, |_, _| None, |builder, key: ClientConfigKey, value| builder.with_config(key, value))
}

/// The keys of one profile in the files in which programs of AWS keep credentials: `~/.aws/credentials` and
/// `~/.aws/config`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile(HashMap<String, String>);

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, or the one called `default`. Empty if there is none.
    fn read() -> Self {
        let name = chosen_profile().unwrap_or_else(|| "default".to_owned());
        let mut profile = Self::default();
        for (variable, file, prefix) in
            [("AWS_CONFIG_FILE", "config", "profile "), ("AWS_SHARED_CREDENTIALS_FILE", "credentials", "")]
        {
            let usual = || Some(PathBuf::from(env::var_os("HOME")?).join(".aws").join(file));
            let path = env::var_os(variable).map(PathBuf::from).or_else(usual);
            let text = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
            let section = if name == "default" { name.clone() } else { format!("{prefix}{name}") };
            profile.add(&text, &section);
        }
        profile
    }

    /// Adds the keys of one section of a file.
    fn add(&mut self, text: &str, section: &str) {
        let mut is_wanted = false;
        for line in text.lines() {
            // the keys of a nested section are indented
            let is_nested = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_wanted = name.trim() == section;
            } else if let (true, false, Some((key, value))) = (is_wanted, is_nested, line.split_once('=')) {
                self.0.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the key by which the profile gets credentials in a way that volfs does not know.
    fn unknown_way(&self) -> Option<&'static str> {
        let has_keys = self.get("aws_access_key_id").is_some();
        let ways = ["sso_session", "sso_start_url", "role_arn", "credential_process"];
        ways.into_iter().find(|way| !has_keys && self.get(way).is_some())
    }
}

fn chosen_profile() -> Option<String> {
    env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty())
}

/// Gives the builder the token with which a container asks for its credentials, if the environment has it and no file
/// that has it. The library reads it from a file whenever it asks for credentials: here from one that is in memory
/// alone.
#[cfg(target_os = "linux")]
fn with_token(builder: AmazonS3Builder) -> Result<AmazonS3Builder, StoreError> {
    static FILE: LazyPerProcess<OnceLock<io::Result<File>>> = LazyPerProcess::new(OnceLock::new);
    let key = S3Key::ContainerAuthorizationTokenFile;
    let token = env::var(TOKEN).ok().filter(|token| !token.trim().is_empty());
    let (true, Some(token)) = (builder.get_config_value(&key).is_none(), token) else { return Ok(builder) };
    let file = FILE.get_or_init(|| in_memory(&token)).as_ref().map_err(|error| {
        let text = format!("{TOKEN} cannot be used ({error}); name a file that has it in {TOKEN}_FILE");
        StoreError::new(error.kind(), text)
    })?;
    Ok(builder.with_config(key, format!("/proc/self/fd/{}", file.as_raw_fd())))
}

/// Elsewhere there are no containers that give one.
#[cfg(not(target_os = "linux"))]
fn with_token(builder: AmazonS3Builder) -> Result<AmazonS3Builder, StoreError> {
    Ok(builder)
}

#[cfg(target_os = "linux")]
fn in_memory(token: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("token", MemfdFlags::CLOEXEC)?);
    file.write_all(token.trim().as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const NO_RETRIES: RetryPolicy = RetryPolicy { retries: 0, timeout: Duration::ZERO };

    fn attempt(url: &str, options: &[&str]) -> Result<Backend, StoreError> {
        let url = StoreUrl::parse(Path::new(url)).unwrap();
        let options: Vec<StoreOption> = options.iter().map(|option| option.parse().unwrap()).collect();
        // the constructors of HTTP clients look for the runtime's provider of ciphers
        crate::source::store::client::runtime().unwrap();
        connect(&url, &options, NO_RETRIES)
    }

    #[test]
    fn options_reach_each_kind_of_store_and_unknown_ones_are_named() {
        let keys = ["anonymous=true", "allow_http=true"];
        assert!(attempt("s3://b", &[&keys[..], &["region=x", "endpoint=http://127.0.0.1:1"]].concat()).is_ok());
        assert!(
            attempt("az://c", &[&keys[..], &["account_name=me", "endpoint=http://127.0.0.1:1/me"]].concat()).is_ok()
        );
        assert!(attempt("gs://b", &["anonymous=true", "timeout=20s"]).is_ok());
        assert!(attempt("https://host/x", &["timeout=20s", "retries=2", "retry_seconds=5"]).is_ok());
        assert!(attempt("https://host/x", &["retries=many"]).is_err());
        for url in ["s3://b", "gs://b", "https://host"] {
            let error = attempt(url, &["colour=red"]).err().unwrap();
            assert!(error.text.contains("colour") && error.kind == io::ErrorKind::InvalidInput, "{error}");
        }
    }

    #[test]
    fn the_place_of_a_bucket_has_no_secret() {
        for (url, host) in [("http://me:hunter2@host:9000/x?sig=1", "host:9000"), ("host/a", "host"), ("", "")] {
            assert_eq!(host_of(url), host);
        }
        let place = |url, options: &[&str]| attempt(url, options).map(|backend| backend.endpoint).unwrap();
        let endpoint = ["anonymous=true", "allow_http=true", "endpoint=http://127.0.0.1:1"];
        assert_eq!(place("s3://b", &endpoint), "127.0.0.1:1");
        assert!(place("az://c", &[&endpoint[..], &["account_name=me"]].concat()).starts_with("me"));
    }

    #[test]
    fn connection_strings_are_taken_apart() {
        let text = "DefaultEndpointsProtocol=http;AccountName=me;AccountKey=a+b==;BlobEndpoint=http://127.0.0.1:1/me/;";
        let found = connection_string(text);
        let get = |key: AzureConfigKey| found.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
        assert_eq!((get(AzureConfigKey::AccountName), get(AzureConfigKey::AccessKey)), (Some("me"), Some("a+b==")));
        assert_eq!(get(AzureConfigKey::Endpoint), Some("http://127.0.0.1:1/me"));
        assert_eq!(get(AzureConfigKey::Client(ClientConfigKey::AllowHttp)), Some("true"));
        let found = connection_string("AccountName=me;EndpointSuffix=core.windows.net");
        assert!(found.contains(&(AzureConfigKey::Endpoint, "https://me.blob.core.windows.net".to_owned())));
        assert_eq!(connection_string("nonsense"), []);
    }

    const TEXT: &str = "# all of us\n[default]\naws_access_key_id = A\naws_secret_access_key=B=\n\n\
        [profile work]\nregion = eu-west-1\n; no\ns3 =\n  max_concurrent_requests = 20\n  region = nested\n\
        [profile sso]\nsso_session = us\n[profile both]\nrole_arn = r\naws_access_key_id = A\n[other";

    #[test]
    fn keys_of_the_section_are_found_and_no_others() {
        let profile = |section: &str| {
            let mut profile = Profile::default();
            profile.add(TEXT, section);
            profile
        };
        let default = profile("default");
        assert_eq!((default.get("aws_access_key_id"), default.get("aws_secret_access_key")), (Some("A"), Some("B=")));
        assert_eq!((default.get("region"), default.unknown_way()), (None, None));
        assert_eq!(profile("profile work").get("region"), Some("eu-west-1"));
        assert_eq!(profile("profile sso").unknown_way(), Some("sso_session"));
        assert_eq!(profile("profile both").unknown_way(), None, "its keys do");
        assert_eq!(profile("none"), Profile::default());
    }

    #[test]
    fn a_file_in_memory_can_be_read_again_and_again() {
        let file = in_memory("secret\n").unwrap();
        for _ in 0..2 {
            assert_eq!(fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(), b"secret");
        }
    }
}
