//! The options of the file system that `volfs mount` and `volfs serve` make, from their arguments.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::FileSystemArgs;
use super::disk_cache_folder;
use super::error::CliError;
use super::machine::limits;
use super::text::size::Size;
use crate::fs::{Options, Ownership};

/// Returns the options of a file system over `source`, which is mounted at `mountpoint` if it is. What holds for a mount
/// or a server alone is the caller's to set: what it shows in status.json, and how the kernel is used.
pub(crate) fn chosen(args: FileSystemArgs, source: PathBuf, mountpoint: Option<&Path>) -> Result<Options, CliError> {
    let cache_size = args.cache_size.map_or_else(limits::default_cache_size, Size::bytes);
    if let Some(reason) = limits::too_little_memory(cache_size) {
        return Err(CliError::Machine(reason));
    }
    let threads = args.threads.unwrap_or_else(limits::default_threads);
    let zfp = args.zfp.unwrap_or_default();
    let disk_cache = disk_cache_folder::chosen(args.disk_cache.as_deref(), args.disk_cache_size, &source, mountpoint)?;
    // none of them is secret
    let store_options = args.store_option.iter().map(ToString::to_string).collect::<Vec<_>>();
    let shown = [
        ("cache_size", json!(cache_size)),
        ("threads", json!(threads)),
        ("follow_links", json!(args.follow_links)),
        ("quality", json!(args.quality)),
        ("store_option", json!((!store_options.is_empty()).then_some(store_options))),
        ("disk_cache", json!(disk_cache.as_ref().map(|disk| disk.dir.to_string_lossy()))),
        ("disk_cache_size", json!(disk_cache.as_ref().map(|disk| disk.budget))),
        ("views", json!(args.views.as_ref().map(ToString::to_string))),
        ("zfp", json!(zfp.name())),
    ];
    Ok(Options {
        source,
        cache_size,
        threads,
        direct_io: false,
        follow_links: args.follow_links,
        store_options: args.store_option,
        disk_cache,
        quality: args.quality,
        zfp: zfp.decoder(),
        views: args.views.map(|views| views.0),
        allow_other: false,
        ownership: Ownership::default(),
        shown: shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    })
}
