//! The token with which a container asks for its credentials, where the environment has the token itself. The library
//! reads it from a file: here from one that is in memory alone.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::StoreError;

/// The variable by which all SDKs of AWS know it.
const VARIABLE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

/// The file, which the library opens again whenever it asks for credentials.
static FILE: OnceLock<File> = OnceLock::new();

/// Gives the builder the token of the environment, if there is one and no file that has it.
pub(super) fn with_token(builder: AmazonS3Builder) -> Result<AmazonS3Builder, StoreError> {
    let key = AmazonS3ConfigKey::ContainerAuthorizationTokenFile;
    let token = env::var(VARIABLE).ok().filter(|token| !token.trim().is_empty());
    let (true, Some(token)) = (builder.get_config_value(&key).is_none(), token) else { return Ok(builder) };
    let file = match FILE.get() {
        Some(file) => file,
        None => {
            let made = in_memory(&token).map_err(|error| no_file(&error))?;
            FILE.get_or_init(|| made)
        }
    };
    Ok(builder.with_config(key, format!("/proc/self/fd/{}", file.as_raw_fd())))
}

fn no_file(error: &io::Error) -> StoreError {
    let text = format!("{VARIABLE} cannot be used ({error}); name a file that has it in {VARIABLE}_FILE");
    StoreError::new(error.kind(), text)
}

fn in_memory(token: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("token", MemfdFlags::CLOEXEC)?);
    file.write_all(token.trim().as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_in_memory_can_be_read_again_and_again() {
        let file = in_memory("secret\n").unwrap();
        for _ in 0..2 {
            assert_eq!(fs::read(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(), b"secret");
        }
    }
}
