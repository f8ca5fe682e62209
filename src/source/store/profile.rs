//! The files in which programs of AWS keep credentials: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;

/// The keys of one profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile(HashMap<String, String>);

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, or the one called `default`. Empty if there is none.
    pub(crate) fn read() -> Self {
        let name = chosen().unwrap_or_else(|| "default".to_owned());
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

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the key by which the profile gets credentials in a way that volfs does not know.
    pub(crate) fn unknown_way(&self) -> Option<&'static str> {
        if self.get("aws_access_key_id").is_some() {
            return None;
        }
        ["sso_session", "sso_start_url", "role_arn", "credential_process"]
            .into_iter()
            .find(|key| self.get(key).is_some())
    }
}

/// Returns the profile that the environment names.
pub(crate) fn chosen() -> Option<String> {
    env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# all of us\n[default]\naws_access_key_id = A\naws_secret_access_key=B=\n\n\
        [profile work]\nregion = eu-west-1\n; no\ns3 =\n  max_concurrent_requests = 20\n  region = nested\n\
        [profile sso]\nsso_session = us\n[other";

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
        assert_eq!(profile("none"), Profile::default());
    }
}
