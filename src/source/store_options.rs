//! The options of an object store, as the command line has them.

use std::fmt;
use std::str::FromStr;

/// Words in the names of options whose values are secret.
const SECRET: [&str; 10] = [
    "secret",
    "access_key",
    "account_key",
    "master_key",
    "sas",
    "token",
    "password",
    "service_account_key",
    "encryption_key",
    "customer_key",
];

/// One option: `region=eu-west-1`. Never a secret: other users see the arguments of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreOption {
    /// The name, in lower case and with `_` for `-`.
    pub name: String,
    /// The value; empty if it is refused.
    pub value: String,
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
        let Some((name, value)) = text.split_once('=') else {
            return Err("write it as NAME=VALUE, as in region=eu-west-1".to_owned());
        };
        let name = name.trim().to_ascii_lowercase().replace('-', "_");
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err("write it as NAME=VALUE, as in region=eu-west-1".to_owned());
        }
        let is_file = name.ends_with("_file") || name.ends_with("_path");
        if !is_file && SECRET.iter().any(|word| name.contains(word)) {
            let refusal = Some(format!(
                "{name} is secret, and other users see the arguments of a process: give it in the environment, as {}",
                variable(&name)
            ));
            return Ok(Self { name, value: String::new(), refusal });
        }
        if value.contains('@') && value.contains("://") {
            let refusal =
                format!("{name} has a user name or password in it; other users see the arguments of a process");
            return Ok(Self { name, value: String::new(), refusal: Some(refusal) });
        }
        Ok(Self { name, value: value.to_owned(), refusal: None })
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
