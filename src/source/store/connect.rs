//! Makes the client of a store from a URL, the environment and the options of the command line.

use std::env;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, RetryConfig};

use super::super::store_options::StoreOption;
use super::super::url::{StoreKind, StoreUrl};
use super::container_token::with_token;
use super::error::{NO_CREDENTIALS, Patience, StoreError};
use super::http::StoreConnector;
use super::metrics::Metrics;
use super::profile::{self, Profile};

/// Options that hold unless the environment or the command line has others: how long a connection and a whole answer may
/// take. A store that loses a machine may need 8 seconds for the first answer after that.
const DEFAULTS: [(&str, &str); 2] = [("connect_timeout", "5 seconds"), ("timeout", "30 seconds")];

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A pause is chosen at random between the shortest one and so many times the one before. Pauses do not grow, on
/// average, if this is less than 2.8.
const GROWTH: f64 = 4.0;

/// The requests that a store understands.
#[derive(Clone)]
pub(crate) struct Backend {
    /// Objects by their keys.
    pub objects: Arc<dyn ObjectStore>,
    /// Listings, page by page; `None` for a web server, which has none.
    pub pages: Option<Arc<dyn PaginatedListStore>>,
    /// Where the bucket is: the endpoint or the account, as far as they are not the usual ones. No secret.
    pub endpoint: String,
}

/// Makes the client of the store that a URL names. Nothing is sent yet.
pub(crate) fn connect(
    url: &StoreUrl,
    options: &[StoreOption],
    patience: Patience,
    metrics: &Arc<Metrics>,
) -> Result<Backend, StoreError> {
    let (patience, options) = patience_of(patience, options)?;
    let options = &options[..];
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: LONGEST_PAUSE, base: GROWTH, ..BackoffConfig::default() },
        max_retries: patience.retries,
        retry_timeout: patience.time,
    };
    let connector = StoreConnector { metrics: Arc::clone(metrics), kind: url.kind, credential_services: Vec::new() };
    let built = match url.kind {
        StoreKind::S3 => {
            let builder = s3(url, options)?;
            let endpoint = host_of(&builder.get_config_value(&AmazonS3ConfigKey::Endpoint).unwrap_or_default());
            let connector = StoreConnector { credential_services: credential_services(&builder), ..connector };
            builder.with_retry(retry).with_http_connector(connector).build().map(|store| both(store, endpoint))
        }
        StoreKind::Azure => {
            let builder = azure(url, options)?;
            let get = |key| host_of(&builder.get_config_value(&key).unwrap_or_default());
            let place = [get(AzureConfigKey::AccountName), get(AzureConfigKey::Endpoint)].join(" ").trim().to_owned();
            builder.with_retry(retry).with_http_connector(connector).build().map(|store| both(store, place))
        }
        StoreKind::Gcs => {
            let builder = gcs(url, options)?.with_retry(retry).with_http_connector(connector);
            builder.build().map(|store| both(store, String::new()))
        }
        StoreKind::Http => {
            let built = http(url, options)?.with_retry(retry).with_http_connector(connector).build();
            built.map(|store| Backend { objects: Arc::new(store), pages: None, endpoint: String::new() })
        }
    };
    built.map_err(|error| not_configured(&error))
}

fn both<S: ObjectStore + PaginatedListStore>(store: S, endpoint: String) -> Backend {
    let store = Arc::new(store);
    Backend { objects: Arc::clone(&store) as _, pages: Some(store), endpoint }
}

/// Returns the host and the port of a URL, without anything that may be secret.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default().to_owned()
}

/// Takes the options out that say how long a store is asked again.
fn patience_of(mut patience: Patience, options: &[StoreOption]) -> Result<(Patience, Vec<StoreOption>), StoreError> {
    let number = |option: &StoreOption| {
        let wrong = || StoreError::new(io::ErrorKind::InvalidInput, format!("{option}: not a number from 0 to 600"));
        option.value.parse().ok().filter(|number| *number <= 600).ok_or_else(wrong)
    };
    let mut others = Vec::new();
    for option in options {
        match option.name.as_str() {
            "retries" => patience.retries = usize::try_from(number(option)?).unwrap_or(0),
            "retry_seconds" => patience.time = Duration::from_secs(number(option)?),
            _ => others.push(option.clone()),
        }
    }
    Ok((patience, others))
}

fn not_configured(error: &Error) -> StoreError {
    let absent = || StoreError::new(io::ErrorKind::InvalidInput, "its options are not complete");
    let explained = StoreError::of(error).unwrap_or_else(absent);
    StoreError::new(io::ErrorKind::InvalidInput, explained.text)
}

fn unknown(option: &str) -> StoreError {
    let text = format!("there is no option {option} for this kind of store; docs/object-stores.md lists them");
    StoreError::new(io::ErrorKind::InvalidInput, text)
}

/// Returns the name of an option as the library has it.
fn known_name(name: &str) -> &str {
    match name {
        "anonymous" => "skip_signature",
        other => other,
    }
}

/// Applies options to a builder: `set` gets each with its key. Defaults count only where `is_set` says that there is no
/// other value.
fn apply<B, K: FromStr>(
    mut builder: B,
    options: &[StoreOption],
    is_set: impl Fn(&B, &K) -> bool,
    set: impl Fn(B, K, &str) -> B,
) -> Result<B, StoreError> {
    for (name, value) in DEFAULTS {
        let key: K = name.parse().map_err(|_| unknown(name))?;
        if !is_set(&builder, &key) {
            builder = set(builder, key, value);
        }
    }
    for StoreOption { name, value, .. } in options {
        builder = set(builder, known_name(name).parse().map_err(|_| unknown(name))?, value);
    }
    Ok(builder)
}

fn s3(url: &StoreUrl, options: &[StoreOption]) -> Result<AmazonS3Builder, StoreError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&url.bucket);
    let has_keys = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId).is_some();
    if !has_keys || profile::chosen().is_some() {
        builder = with_profile(builder)?;
    }
    builder = with_token(builder)?;
    // the library knows it by another name than the SDKs
    if let Ok(endpoint) = env::var("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        builder = builder.with_metadata_endpoint(endpoint.trim_end_matches('/'));
    }
    let builder = apply(
        builder,
        options,
        |builder, key| builder.get_config_value(key).is_some_and(|value| !value.is_empty()),
        |builder, key, value| builder.with_config(key, value),
    )?;
    let is_disabled = |value: String| value.eq_ignore_ascii_case("true");
    if env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(is_disabled) && !has_credentials(&builder) {
        return Err(StoreError::new(io::ErrorKind::PermissionDenied, NO_CREDENTIALS));
    }
    Ok(builder)
}

/// Returns whether there are credentials, or none are needed, without the role of a virtual machine.
fn has_credentials(builder: &AmazonS3Builder) -> bool {
    let is_set = |key| builder.get_config_value(&key).is_some_and(|value| !value.is_empty() && value != "false");
    is_set(AmazonS3ConfigKey::AccessKeyId)
        || is_set(AmazonS3ConfigKey::SkipSignature)
        || is_set(AmazonS3ConfigKey::WebIdentityTokenFile)
        || is_set(AmazonS3ConfigKey::ContainerCredentialsRelativeUri)
        || is_set(AmazonS3ConfigKey::ContainerCredentialsFullUri)
}

/// Returns the addresses at which keys are asked for, as far as they are set.
fn credential_services(builder: &AmazonS3Builder) -> Vec<String> {
    let get = |key| builder.get_config_value(&key).filter(|value| !value.is_empty());
    let of_machine = get(AmazonS3ConfigKey::MetadataEndpoint).into_iter();
    let of_machine = of_machine.flat_map(|at| ["api/token", "meta-data/iam"].map(|name| format!("{at}/latest/{name}")));
    of_machine.chain(get(AmazonS3ConfigKey::ContainerCredentialsFullUri)).collect()
}

/// Adds what the files of AWS have and the environment has not.
fn with_profile(mut builder: AmazonS3Builder) -> Result<AmazonS3Builder, StoreError> {
    let profile = Profile::read();
    let is_set = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
        && !is_set(&builder, AmazonS3ConfigKey::AccessKeyId)
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = profile.get("aws_session_token") {
            builder = builder.with_token(token);
        }
    } else if let (Some(way), Some(name)) = (profile.unknown_way(), profile::chosen())
        && !is_set(&builder, AmazonS3ConfigKey::AccessKeyId)
    {
        let text = format!(
            "the profile {name} has {way}, which volfs does not know; type: eval \"$(aws configure export-credentials \
             --profile {name} --format env)\""
        );
        return Err(StoreError::new(io::ErrorKind::PermissionDenied, text));
    }
    let region_is_set = is_set(&builder, AmazonS3ConfigKey::Region) || env::var_os("AWS_DEFAULT_REGION").is_some();
    if let Some(region) = profile.get("region").filter(|_| !region_is_set) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = profile.get("endpoint_url").filter(|_| !is_set(&builder, AmazonS3ConfigKey::Endpoint)) {
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
    apply(
        builder,
        options,
        |builder, key| builder.get_config_value(key).is_some_and(|value| !value.is_empty()),
        |builder, key, value| builder.with_config(key, value),
    )
}

/// Returns what a connection string of Azure says.
fn connection_string(text: &str) -> Vec<(AzureConfigKey, String)> {
    let parts: Vec<(&str, &str)> = text.split(';').filter_map(|part| part.trim().split_once('=')).collect();
    let get = |name: &str| parts.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let mut found = Vec::new();
    let mut add = |key: AzureConfigKey, value: Option<String>| found.extend(value.map(|value| (key, value)));
    add(AzureConfigKey::AccountName, get("AccountName").map(str::to_owned));
    add(AzureConfigKey::AccessKey, get("AccountKey").map(str::to_owned));
    add(AzureConfigKey::SasKey, get("SharedAccessSignature").map(str::to_owned));
    let suffixed = || {
        let (name, suffix) = (get("AccountName")?, get("EndpointSuffix")?);
        Some(format!("{}://{name}.blob.{suffix}", get("DefaultEndpointsProtocol").unwrap_or("https")))
    };
    let endpoint = get("BlobEndpoint").map(|endpoint| endpoint.trim_end_matches('/').to_owned()).or_else(suffixed);
    add(AzureConfigKey::Endpoint, endpoint.clone());
    // who writes http:// there means it
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    add(AzureConfigKey::Client(ClientConfigKey::AllowHttp), is_plain.then(|| "true".to_owned()));
    if get("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        found.push((AzureConfigKey::UseEmulator, "true".to_owned()));
    }
    found
}

fn gcs(url: &StoreUrl, options: &[StoreOption]) -> Result<GoogleCloudStorageBuilder, StoreError> {
    apply(
        GoogleCloudStorageBuilder::from_env().with_bucket_name(&url.bucket),
        options,
        |builder, key: &GoogleConfigKey| builder.get_config_value(key).is_some_and(|value| !value.is_empty()),
        |builder, key, value| builder.with_config(key, value),
    )
}

fn http(url: &StoreUrl, options: &[StoreOption]) -> Result<HttpBuilder, StoreError> {
    // who types http:// means it
    let plain = if url.base.starts_with("http://") { "true" } else { "false" };
    let builder = HttpBuilder::new().with_url(&url.base).with_config(ClientConfigKey::AllowHttp, plain);
    apply(builder, options, |_, _| false, |builder, key: ClientConfigKey, value| builder.with_config(key, value))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PATIENCE: Patience = Patience { retries: 0, time: Duration::ZERO };

    fn attempt(url: &str, options: &[&str]) -> Result<Backend, StoreError> {
        let url = StoreUrl::parse(Path::new(url)).unwrap();
        let options: Vec<StoreOption> = options.iter().map(|option| option.parse().unwrap()).collect();
        // the constructors of HTTP clients look for the runtime's provider of ciphers
        super::super::runtime::handle().unwrap();
        connect(&url, &options, PATIENCE, &Arc::default())
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
}
