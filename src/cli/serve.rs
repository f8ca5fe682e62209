//! `volfs serve`: checks the arguments, listens, and answers requests until a signal ends it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nix::unistd::{User, geteuid};
use serde_json::json;

use super::error::CliError;
use super::file_system::{self, FileSystemArgs, entries};
use super::interrupt::ending_signals;
use super::source::checked_source;
use super::text::{escaped, escaped_path, number_in, seconds};
use super::{machine, output};
use crate::fs::Volfs;
use crate::logging::{self, RecentLines, Target};
use crate::memory::{keep_reserve, limit_arenas};
use crate::serve::{Access, Listen, ServeError, ServeOptions, Server, Token, is_origin, overflow_user};
use crate::source::Origin;

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLE)]
pub(super) struct ServeArgs {
    /// A folder of volumes, searched in depth, or one volume; or a URL of an object store, as for volfs mount
    source: PathBuf,

    /// The address and port to listen at, or unix:PATH for a Unix socket; port 0 is any free one
    ///
    /// A name in place of the address, such as localhost, means all of its addresses. The server listens at each that
    /// this machine has, and needs --allow-remote unless all are loopback; clients may call it by that name.
    ///
    /// A Unix socket has mode 0600 and lies in a folder that only you (or root) can write to, such as $XDG_RUNTIME_DIR:
    /// curl --unix-socket PATH http://localhost/ and nginx speak to it.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: OsString,

    /// Let another user of this machine connect, such as www-data; may be repeated
    ///
    /// Without this, only you and root can: connections of others get status 403.
    #[arg(long, value_name = "NAME", conflicts_with = "allow_other")]
    allow_user: Vec<String>,

    /// Let all users of this machine connect, and read everything below SOURCE that you can read
    #[arg(long)]
    allow_other: bool,

    /// Let other machines read everything below SOURCE: for a --listen that they can reach
    ///
    /// The server has no encryption, and no password except --token-file. docs/serve.md shows how to put a web server in
    /// front that has both.
    #[arg(long)]
    allow_remote: bool,

    /// Ask for the token in this file: only clients that have it may connect
    ///
    /// A token has 16 to 200 letters, digits and - . _ ~; only you may be able to read the file. The token goes into the
    /// address, as in http://127.0.0.1:8080/TOKEN/north.zgy/ (the address that is printed has it), or into the header
    /// Authorization: Bearer TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A name by which clients may call this server, besides localhost; may be repeated
    ///
    /// Where only this machine reaches the server, requests that call it by another name are refused: they may come from
    /// a web page that tries to read your data. A web server in front of this one that passes its own name on needs this.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// An origin whose web pages may read the data, as https://viewer.example, or * for all; may be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Vec<String>,

    /// The address of a Neuroglancer, to which pages of images then have a link
    ///
    /// Its origin may then read the data, as with --allow-origin.
    #[arg(long, value_name = "URL", value_parser = viewer)]
    neuroglancer: Option<String>,

    /// Connections at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = number_in(1..=MOST_AT_A_TIME))]
    max_connections: usize,

    /// Requests at a time; further ones wait for a while, then get status 503
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = number_in(1..=MOST_AT_A_TIME))]
    max_requests: usize,

    /// Seconds that a client may take to send the head of a request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    header_timeout: Duration,

    /// Seconds that a connection may be without a request, and a client without taking anything of a response
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    idle_timeout: Duration,

    #[command(flatten)]
    file_system: FileSystemArgs,

    /// Log to the end of this file
    ///
    /// [default: standard error]. The environment variable RUST_LOG sets the level: error, warn, info (the default), debug
    /// (each request) or trace.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

fn origin(text: &str) -> Result<String, String> {
    is_origin(text).then(|| text.to_owned()).ok_or_else(|| "write it as https://host, http://host:port or *".to_owned())
}

fn viewer(text: &str) -> Result<String, String> {
    let is_url =
        ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) && !text.contains(['#', '"', ' ']);
    is_url.then(|| text.to_owned()).ok_or_else(|| "write it as http://host:port/path/".to_owned())
}

/// A limit beyond any useful number of connections or requests.
const MOST_AT_A_TIME: usize = 1_000_000;

const SERVE_EXAMPLE: &str = "\
Example:
  volfs serve ~/surveys
  xdg-open http://127.0.0.1:8080/
  curl -O http://127.0.0.1:8080/north.zgy/data/lod0.npy
  curl --unix-socket ~/run/volfs.sock http://localhost/      (with --listen unix:$HOME/run/volfs.sock)
  python3 -c 'import zarr; print(zarr.open(\"http://127.0.0.1:8080/north.zgy/data.zarr\").tree())'";

pub(super) fn run(args: ServeArgs) -> Result<(), CliError> {
    limit_arenas();
    let listen = Listen::read(&args.listen)
        .map_err(|error| CliError::argument(format!("--listen {}: {error}", args.listen.to_string_lossy())))?;
    if let Some(remote) = listen.remote().filter(|_| !args.allow_remote) {
        return Err(CliError::argument(format!(
            "other machines could read everything through {remote}: add --allow-remote if they may, or leave out --listen"
        )));
    }
    let access = Arc::new(access(&args, &listen)?);
    machine::check_open_files()?;
    let typed = Origin {
        path: args.source.clone(),
        follow_links: args.file_system.follow_links,
        store_options: args.file_system.store.store_option.clone(),
        ..Origin::default()
    };
    let source = checked_source(&typed)?.path;
    let shown = json!({
        "allow_user": args.allow_user,
        "allow_other": args.allow_other,
        "token": args.token_file.is_some(),
        "allow_remote": args.allow_remote,
        "allow_host": args.allow_host,
        "allow_origin": args.allow_origin,
        "neuroglancer": args.neuroglancer,
        "max_connections": args.max_connections,
        "max_requests": args.max_requests,
        "header_timeout": args.header_timeout.as_secs_f64(),
        "idle_timeout": args.idle_timeout.as_secs_f64(),
        "log_file": args.log_file.as_ref().map(|file| file.to_string_lossy()),
    });
    let mut options = file_system::options(args.file_system, source, None)?;
    let recent = Arc::new(RecentLines::default());
    logging::start(args.log_file.map_or(Target::Stderr, Target::File), Arc::clone(&recent))?;
    let server = Server::listen(ServeOptions {
        listen,
        access: Arc::clone(&access),
        allow_hosts: args.allow_host,
        allow_origins: args.allow_origin,
        max_connections: args.max_connections,
        max_requests: args.max_requests,
        header_timeout: args.header_timeout,
        idle_timeout: args.idle_timeout,
        neuroglancer: args.neuroglancer,
    })?;
    // there is no kernel that keeps pages
    options.direct_io = true;
    options.shown.insert("listen".to_owned(), json!(server.address.to_string()));
    options.shown.extend(entries(shown));
    let shown = escaped_path(&options.source);
    let failed = |error| CliError::cannot_list(&options.source, &error);
    let fs = Arc::new(Volfs::new(options.clone(), recent).map_err(failed)?);
    keep_reserve();
    let line = format!("serving {shown} at {}", shown_address(&server.address, &access));
    let mut printed = Ok(());
    let signals: Vec<i32> = ending_signals().into_iter().map(|signal| signal as i32).collect();
    server.run(fs, &signals, || {
        printed = output::line(&line);
        printed.is_ok()
    })?;
    printed
}

/// Returns the users that may connect: by default this user and root; with a token every client that has it.
fn access(args: &ServeArgs, listen: &Listen) -> Result<Access, CliError> {
    let token = args.token_file.as_deref().map(Token::read).transpose().map_err(ServeError::from)?;
    if let Some(remote) = listen.remote().filter(|_| !args.allow_user.is_empty()) {
        return Err(CliError::argument(format!(
            "--allow-user is for users of this machine, and other machines reach {remote}: leave out --allow-user or \
             --listen"
        )));
    }
    let is_for_all = args.allow_other
        || listen.remote().is_some()
        || token.is_some() && args.allow_user.is_empty() && matches!(listen, Listen::Tcp { .. });
    if is_for_all {
        return Ok(Access { users: None, token });
    }
    let named = args.allow_user.iter().map(|name| user_number(name)).collect::<Result<Vec<u32>, _>>()?;
    let users: BTreeSet<u32> = named.into_iter().chain([0, geteuid().as_raw()]).collect();
    if let Some(overflow) = overflow_user().filter(|overflow| users.contains(overflow)) {
        return Err(CliError::argument(format!(
            "user {overflow} may be any user of another user namespace here: use --token-file or --allow-other"
        )));
    }
    Ok(Access { users: Some(users), token })
}

fn user_number(name: &str) -> Result<u32, CliError> {
    let found = User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    let number = found.or_else(|| name.parse().ok());
    number.ok_or_else(|| CliError::argument(format!("--allow-user: this machine has no user {}", escaped(name))))
}

/// Returns the address for people, with the token unless the line goes to the journal, which others may read.
fn shown_address(address: &Listen, access: &Access) -> String {
    let token = access.token.as_ref().filter(|_| !is_journal()).map(|token| format!("{}/", token.text()));
    match (address, token) {
        (Listen::Tcp { .. }, token) => format!("http://{address}/{}", token.unwrap_or_default()),
        (Listen::Unix(_), Some(token)) => format!("{address} (http://localhost/{token})"),
        (Listen::Unix(_), None) => address.to_string(),
    }
}

/// Returns whether standard output is systemd's journal, which the environment names as DEVICE:INODE.
fn is_journal() -> bool {
    let journal = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|file| journal == format!("{}:{}", file.st_dev, file.st_ino))
}
