//! Certificates and keys of a test's own, made by the program openssl.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::skip;

const REQUEST: &str = "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = extensions\n\
    [name]\nCN = localhost\n[extensions]\nbasicConstraints = critical,CA:FALSE\nsubjectAltName = IP:127.0.0.1\n";

/// A certificate for 127.0.0.1 that nobody has signed but its own key.
pub struct Certificate {
    config: Arc<ServerConfig>,
    folder: TempDir,
}

impl Certificate {
    /// Makes a certificate; `None` (after reporting why) if openssl is not there.
    pub fn make() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("request"), REQUEST).unwrap();
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -config request \
            -keyout key.pem -out certificate.pem";
        openssl(folder.path(), words)?;
        let certificate = CertificateDer::from_pem_file(folder.path().join("certificate.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(builder.with_single_cert(vec![certificate], key).unwrap());
        Some(Self { config, folder })
    }

    /// Returns the file of the certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Speaks TLS with a client.
    pub fn accept(&self, client: TcpStream) -> impl Read + Write + use<> {
        StreamOwned::new(ServerConnection::new(Arc::clone(&self.config)).unwrap(), client)
    }
}

/// Runs openssl in a folder; `None` (after reporting it) if it is not there.
pub fn openssl(folder: &Path, words: &str) -> Option<()> {
    let mut command = Command::new("openssl");
    let ran = command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output();
    let Ok(output) = ran else {
        skip("the program openssl is not there");
        return None;
    };
    assert!(output.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}
