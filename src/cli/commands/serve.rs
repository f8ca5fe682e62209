//! `volfs serve`: checks the arguments, listens, and answers requests until a signal ends it.

use std::sync::Arc;

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
use crate::logging::{self, RecentLines, Target};
use crate::memory::{keep_reserve, limit_arenas};
use crate::serve::{ServeOptions, Server};
use crate::source::Origin;

/// Serves until a signal arrives.
///
/// # Errors
/// [`CliError`]: why there is nothing to serve, or no server.
pub fn run(args: ServeArgs) -> Result<(), CliError> {
    limit_arenas();
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(CliError::Argument(format!(
            "other machines could read everything through {}: add --allow-remote if they may, or leave out --listen",
            args.listen
        )));
    }
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
    let server_options = serve_options(&args);
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
    let line = format!("serving {shown} at http://{}/", server.address());
    let mut printed = Ok(());
    let signals: Vec<i32> = ending_signals().into_iter().map(|signal| signal as i32).collect();
    server.run(fs, &signals, || {
        printed = output::line(&line);
        printed.is_ok()
    })?;
    printed
}

fn serve_options(args: &ServeArgs) -> ServeOptions {
    ServeOptions {
        listen: args.listen,
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
