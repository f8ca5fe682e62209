//! `volfs serve`: checks the arguments, listens, and answers requests until a signal ends it.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::cli::args::ServeArgs;
use crate::cli::chosen_source::checked_source;
use crate::cli::disk_cache_folder;
use crate::cli::error::CliError;
use crate::cli::interrupt::ending_signals;
use crate::cli::machine::limits;
use crate::cli::output;
use crate::cli::text::escape;
use crate::cli::text::size::Size;
use crate::fs::{Options, Volfs};
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
        return Err(CliError::CannotServe(reason));
    }
    let typed = Origin { path: args.source.clone(), store_options: args.store_option.clone(), ..Origin::default() };
    let source = checked_source(&Origin { follow_links: args.follow_links, ..typed })?.path;
    let cache_size = args.cache_size.map_or_else(limits::default_cache_size, Size::bytes);
    if let Some(reason) = limits::too_little_memory(cache_size) {
        return Err(CliError::CannotServe(reason));
    }
    let recent = Arc::new(RecentLines::default());
    logging::start(args.log_file.clone().map_or(Target::Stderr, Target::File), Arc::clone(&recent))?;
    let server = Server::listen(serve_options(&args))?;
    let options = options(args, source, cache_size, &server)?;
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

/// Returns the options of the file system.
fn options(args: ServeArgs, source: std::path::PathBuf, cache_size: u64, server: &Server) -> Result<Options, CliError> {
    let threads = args.threads.unwrap_or_else(limits::default_threads);
    let zfp = args.zfp.unwrap_or_default();
    // there is no mount that the cache could lie in
    let nowhere = Path::new("/dev/null/none");
    let disk_cache = disk_cache_folder::chosen(args.disk_cache.as_deref(), args.disk_cache_size, &source, nowhere)?;
    // none of them is secret
    let store_options = args.store_option.iter().map(ToString::to_string).collect::<Vec<_>>();
    let shown = [
        ("listen", json!(server.address().to_string())),
        ("allow_remote", json!(args.allow_remote)),
        ("allow_host", json!(args.allow_host)),
        ("allow_origin", json!(args.allow_origin)),
        ("neuroglancer", json!(args.neuroglancer)),
        ("max_connections", json!(args.max_connections)),
        ("max_requests", json!(args.max_requests)),
        ("header_timeout", json!(args.header_timeout.as_secs_f64())),
        ("idle_timeout", json!(args.idle_timeout.as_secs_f64())),
        ("cache_size", json!(cache_size)),
        ("threads", json!(threads)),
        ("follow_links", json!(args.follow_links)),
        ("log_file", json!(args.log_file.as_ref().map(|file| file.to_string_lossy()))),
        ("quality", json!(args.quality)),
        ("store_option", json!((!store_options.is_empty()).then_some(store_options))),
        ("disk_cache", json!(disk_cache.as_ref().map(|disk| disk.dir.to_string_lossy()))),
        ("disk_cache_size", json!(disk_cache.as_ref().map(|disk| disk.budget))),
        ("views", json!(args.views.as_ref().map(ToString::to_string))),
        ("zfp", json!(zfp.name())),
    ];
    let shown = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Options {
        source,
        cache_size,
        threads,
        direct_io: true,
        follow_links: args.follow_links,
        store_options: args.store_option,
        disk_cache,
        quality: args.quality,
        zfp: zfp.decoder(),
        views: args.views.map(|views| views.0),
        allow_other: false,
        shown,
    })
}
