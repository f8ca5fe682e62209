//! `volfs serve`: checks the arguments, listens, and answers requests until a signal ends it.

use std::collections::BTreeSet;
use std::sync::Arc;

use nix::unistd::{User, geteuid};
use serde_json::{Map, Value, json};

use crate::cli::args::ServeArgs;
use crate::cli::chosen_source::checked_source;
use crate::cli::error::CliError;
use crate::cli::file_system_options;
use crate::cli::interrupt::ending_signals;
use crate::cli::machine::limits;
use crate::cli::output;
use crate::cli::text::escape;
use crate::fs::Volfs;
use crate::logging::{self, RecentLines, Target, one_line};
use crate::memory::{keep_reserve, limit_arenas};
use crate::serve::{Access, Listen, ServeError, ServeOptions, Server, Token, overflow_user};
use crate::source::Origin;

/// Serves until a signal arrives.
pub(crate) fn run(args: ServeArgs) -> Result<(), CliError> {
    limit_arenas();
    if args.listen.is_remote() && !args.allow_remote {
        return Err(CliError::Argument(format!(
            "other machines could read everything through {}: add --allow-remote if they may, or leave out --listen",
            args.listen
        )));
    }
    let access = Arc::new(access(&args)?);
    if let Some(reason) = limits::too_few_open_files() {
        return Err(CliError::Machine(reason));
    }
    let typed = Origin {
        path: args.source.clone(),
        follow_links: args.file_system.follow_links,
        store_options: args.file_system.store_option.clone(),
        ..Origin::default()
    };
    let source = checked_source(&typed)?.path;
    let own = own_options(&args);
    let server_options = serve_options(&args, Arc::clone(&access));
    let mut options = file_system_options::chosen(args.file_system, source, None)?;
    let recent = Arc::new(RecentLines::default());
    logging::start(args.log_file.map_or(Target::Stderr, Target::File), Arc::clone(&recent))?;
    let server = Server::listen(server_options)?;
    // there is no kernel that keeps pages
    options.direct_io = true;
    options.shown.insert("listen".to_owned(), json!(server.address().to_string()));
    options.shown.extend(own);
    let shown = escape::path(&options.source);
    let failed = |error| CliError::ListSource { source_path: options.source.clone(), error };
    let fs = Arc::new(Volfs::new(options.clone(), recent).map_err(failed)?);
    keep_reserve();
    let line = format!("serving {shown} at {}", shown_address(server.address(), &access));
    let mut printed = Ok(());
    let signals: Vec<i32> = ending_signals().into_iter().map(|signal| signal as i32).collect();
    server.run(fs, &signals, || {
        printed = output::line(&line);
        printed.is_ok()
    })?;
    printed
}

/// Returns who may connect: by default this user and root, and with a token whoever has it.
fn access(args: &ServeArgs) -> Result<Access, CliError> {
    let token = args.token_file.as_deref().map(Token::read).transpose().map_err(ServeError::from)?;
    if args.listen.is_remote() && !args.allow_user.is_empty() {
        return Err(CliError::Argument(format!(
            "--allow-user is for users of this machine, and others reach {}: leave out --allow-user or --listen",
            args.listen
        )));
    }
    let is_for_all = args.allow_other
        || args.listen.is_remote()
        || token.is_some() && args.allow_user.is_empty() && matches!(args.listen, Listen::Tcp(_));
    if is_for_all {
        return Ok(Access { users: None, token });
    }
    let named = args.allow_user.iter().map(|name| user_number(name)).collect::<Result<Vec<u32>, _>>()?;
    let users: BTreeSet<u32> = named.into_iter().chain([0, geteuid().as_raw()]).collect();
    if let Some(overflow) = overflow_user().filter(|overflow| users.contains(overflow)) {
        return Err(CliError::Argument(format!(
            "user {overflow} cannot be told from users of other user namespaces here: use --token-file or --allow-other"
        )));
    }
    Ok(Access { users: Some(users), token })
}

/// Returns the number of a user, who may be given by it.
fn user_number(name: &str) -> Result<u32, CliError> {
    let found = User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    let number = found.or_else(|| name.parse().ok());
    number.ok_or_else(|| CliError::Argument(format!("--allow-user: this machine has no user {}", one_line(name))))
}

/// Returns the address for people, with the token; without it where the line goes to the journal, which others may read.
fn shown_address(address: &Listen, access: &Access) -> String {
    let token = access.token.as_ref().filter(|_| !is_journal()).map(|token| format!("{}/", token.text()));
    match (address, token) {
        (Listen::Tcp(address), token) => format!("http://{address}/{}", token.unwrap_or_default()),
        (Listen::Unix(_), Some(token)) => format!("{address} (http://localhost/{token})"),
        (Listen::Unix(_), None) => address.to_string(),
    }
}

/// Returns whether standard output is systemd's journal, which says so in the environment as DEVICE:INODE.
fn is_journal() -> bool {
    let journal = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|file| journal == format!("{}:{}", file.st_dev, file.st_ino))
}

fn serve_options(args: &ServeArgs, access: Arc<Access>) -> ServeOptions {
    ServeOptions {
        listen: args.listen.clone(),
        access,
        allow_hosts: args.allow_host.clone(),
        allow_origins: args.allow_origin.clone(),
        max_connections: args.max_connections,
        max_requests: args.max_requests,
        header_timeout: args.header_timeout,
        idle_timeout: args.idle_timeout,
        neuroglancer: args.neuroglancer.clone(),
    }
}

/// Returns the options of the server as status.json shows them, but for the address, which is known when it listens.
fn own_options(args: &ServeArgs) -> Map<String, Value> {
    let shown = [
        ("allow_user", json!(args.allow_user)),
        ("allow_other", json!(args.allow_other)),
        ("token", json!(args.token_file.is_some())),
        ("allow_remote", json!(args.allow_remote)),
        ("allow_host", json!(args.allow_host)),
        ("allow_origin", json!(args.allow_origin)),
        ("neuroglancer", json!(args.neuroglancer)),
        ("max_connections", json!(args.max_connections)),
        ("max_requests", json!(args.max_requests)),
        ("header_timeout", json!(args.header_timeout.as_secs_f64())),
        ("idle_timeout", json!(args.idle_timeout.as_secs_f64())),
        ("log_file", json!(args.log_file.as_ref().map(|file| file.to_string_lossy()))),
    ];
    shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
