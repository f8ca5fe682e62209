//! The arguments of `volfs serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::file_system::FileSystemArgs;
use crate::serve::{Listen, is_origin};

/// The arguments of `volfs serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLE)]
pub(crate) struct ServeArgs {
    /// A folder of volumes, searched in depth, or one volume; or a URL of an object store, as for volfs mount
    pub source: PathBuf,

    /// The address and port to listen at, or unix:PATH for a Unix socket; port 0 is any free one
    ///
    /// A Unix socket has mode 0600 and lies in a folder that only you (or root) can write to, such as $XDG_RUNTIME_DIR:
    /// curl --unix-socket PATH http://localhost/ and nginx speak to it.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = OsStringValueParser::new().try_map(|text| Listen::read(&text)))]
    pub listen: Listen,

    /// Let another user of this machine connect, such as www-data; may be repeated
    ///
    /// Without this, only you and root can: connections of others get status 403.
    #[arg(long, value_name = "NAME", conflicts_with = "allow_other")]
    pub allow_user: Vec<String>,

    /// Let all users of this machine connect, and read everything below SOURCE that you can read
    #[arg(long)]
    pub allow_other: bool,

    /// Let other machines read everything below SOURCE: for a --listen that they can reach
    ///
    /// There is no encryption, and no password but that of --token-file. docs/serve.md shows how to put a web server in
    /// front that has both.
    #[arg(long)]
    pub allow_remote: bool,

    /// Ask for the token in this file: all who have it may connect, and nobody else
    ///
    /// A token has 16 to 200 letters, digits and - . _ ~; nobody else may be able to read the file. It goes into the
    /// address, as in http://127.0.0.1:8080/TOKEN/north.zgy/ (the address that is printed has it), or into the header
    /// Authorization: Bearer TOKEN.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// A name by which clients may call this server, besides localhost; may be repeated
    ///
    /// Where only this machine reaches the server, requests that call it by another name are refused: they may come from
    /// a web page that tries to read your data. A web server in front of this one that passes its own name on needs this.
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,

    /// An origin whose web pages may read the data, as https://viewer.example, or * for all; may be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub allow_origin: Vec<String>,

    /// The address of a Neuroglancer, to which pages of images then have a link
    ///
    /// Its origin may then read the data, as with --allow-origin.
    #[arg(long, value_name = "URL", value_parser = viewer)]
    pub neuroglancer: Option<String>,

    /// Connections at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = count)]
    pub max_connections: usize,

    /// Requests at a time; further ones wait for a while and then get status 503
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = count)]
    pub max_requests: usize,

    /// Seconds that a client may take to send the head of a request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub header_timeout: Duration,

    /// Seconds that a connection may be without a request, and a client without taking anything of a response
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub idle_timeout: Duration,

    /// What is shown, and with what means.
    #[command(flatten)]
    pub file_system: FileSystemArgs,

    /// Log to the end of this file
    ///
    /// [default: standard error]. The environment variable RUST_LOG sets the level: error, warn, info (the default), debug
    /// (each request) or trace.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

fn origin(text: &str) -> Result<String, String> {
    is_origin(text).then(|| text.to_owned()).ok_or_else(|| "write it as https://host, http://host:port or *".to_owned())
}

fn viewer(text: &str) -> Result<String, String> {
    let is_url =
        ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) && !text.contains(['#', '"', ' ']);
    is_url.then(|| text.to_owned()).ok_or_else(|| "write it as http://host:port/path/".to_owned())
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1_000_000) => Ok(n),
        _ => Err("not a number from 1 to 1000000".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(n) if (0.1..=86_400.0).contains(&n) => Ok(Duration::from_secs_f64(n)),
        _ => Err("not a number of seconds from 0.1 to 86400".to_owned()),
    }
}

const SERVE_EXAMPLE: &str = "\
Example:
  volfs serve ~/surveys
  xdg-open http://127.0.0.1:8080/
  curl -O http://127.0.0.1:8080/north.zgy/data/lod0.npy
  curl --unix-socket ~/run/volfs.sock http://localhost/      (with --listen unix:$HOME/run/volfs.sock)
  python3 -c 'import zarr; print(zarr.open(\"http://127.0.0.1:8080/north.zgy/data.ome.zarr\").tree())'";
