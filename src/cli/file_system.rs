//! The options of `volfs mount` and `volfs serve` that say what is shown and how it is read, and those of object stores.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::error::CliError;
use super::machine::{self, default_cache_size, default_threads};
use super::mounts::{all_mounts, resolve};
use super::source::mountpoint_of;
use super::text::{Size, escaped_path, number_in, similar};
use crate::fs::{Options, Ownership};
use crate::source::disk_cache::{DiskCache, DiskCacheOptions};
use crate::source::{StoreOption, is_url};
use crate::view::{VIEW_NAMES, with_needed};

/// The size of a disk cache if none is given.
const DEFAULT_DISK_CACHE: u64 = 10 << 30;
/// The smallest disk cache: it has room for a few dozen bricks of any size.
const SMALLEST_DISK_CACHE: u64 = 64 << 20;
/// A limit beyond any useful number of threads.
const MAX_THREADS: usize = 1024;
/// The lowest quality.
pub(super) const MAX_QUALITY: u8 = 15;

#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// An option of the object store, for a SOURCE that is a URL; may be repeated
    ///
    /// For instance region=eu-west-1, endpoint=http://127.0.0.1:9000, allow_http=true, anonymous=true (public data) or
    /// timeout=60s. Credentials are taken from the environment, by the names that the tools of the provider use, and never
    /// from the command line. docs/object-stores.md lists all.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) store_option: Vec<StoreOption>,
}

#[derive(Debug, Args)]
pub(super) struct FileSystemArgs {
    /// Memory for decoded bricks, as 512MiB or 2GiB
    ///
    /// Takes KiB, MiB and GiB; K, M and G mean the same, a plain number means bytes. [default: a quarter of the memory
    /// allowed to this process, control groups and limits (ulimit -v, -d) included, at most 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub(super) cache_size: Option<Size>,

    /// Threads that decode
    ///
    /// [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = number_in(1..=MAX_THREADS))]
    pub(super) threads: Option<usize>,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown.
    #[arg(long)]
    pub(super) follow_links: bool,

    #[command(flatten)]
    pub(super) store: StoreArgs,

    /// Keep what an object store has sent in this folder, for other mounts and for later
    ///
    /// The folder must be empty, or a disk cache already; it is made if it does not exist. Only this user may read it.
    /// Several mounts may share it. Delete from it with: volfs cache --clear DIR
    #[arg(long, value_name = "DIR")]
    disk_cache: Option<PathBuf>,

    /// Disk space that --disk-cache may take, as 500GiB
    ///
    /// For all mounts together that share the folder. Files that were not used for the longest time are deleted first.
    /// [default: 10GiB]
    #[arg(long, value_name = "SIZE", value_parser = disk_cache_size)]
    disk_cache_size: Option<Size>,

    /// Decode only a part of the data: 0 to 15; 0 is the best quality
    ///
    /// For wavelet-coded VDS layers: level 0 leaves out the data that makes lossy samples exact, and each further level
    /// one more bit plane. Less is read and decoded, for a coarse look at slow or remote data. Other layers are not
    /// affected. [default: decode everything]
    #[arg(long, value_name = "LEVEL", value_parser = number_in(0..=MAX_QUALITY))]
    pub(super) quality: Option<u8>,

    /// Show these views only
    #[arg(long, value_name = "LIST", value_parser = views, long_help = views_help())]
    views: Option<Views>,
}

/// The names of views, and of the views that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Views(Vec<&'static str>);

/// Parses names with commas or colons between: an option of `-o` can only have colons.
fn views(text: &str) -> Result<Views, String> {
    let known = VIEW_NAMES.map(|(name, _)| name);
    let mut names = Vec::new();
    let all = known.join(", ");
    for name in text.split([',', ':']).map(str::trim).filter(|name| !name.is_empty()) {
        names.push(*known.iter().find(|known| **known == name).ok_or_else(|| {
            let meant = similar(&known, name).map(|name| format!("did you mean {name}? ")).unwrap_or_default();
            format!("there is no view {name}; {meant}there are {all}")
        })?);
    }
    if names.is_empty() { Err(format!("it needs at least one of {all}")) } else { Ok(Views(with_needed(&names))) }
}

fn views_help() -> String {
    let width = VIEW_NAMES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: String = VIEW_NAMES.iter().map(|(name, about)| format!("  {name:width$}  {about}\n")).collect();
    format!(
        "Show these views only: their names with commas between (in -o with colons)\n\n{lines}\n\
        The headers of lodN.raw bring lodN.raw along. dataset.json and lodN.json are always shown. [default: all that fit \
        the dataset]"
    )
}

/// Returns the options of a file system over `source`, mounted at `mountpoint` if it is a mount. Options of a mount or a
/// server alone, and how the kernel is used, are the caller's to set.
pub(super) fn options(args: FileSystemArgs, source: PathBuf, mountpoint: Option<&Path>) -> Result<Options, CliError> {
    let cache_size = args.cache_size.map_or_else(default_cache_size, |size| size.0);
    machine::check_memory(cache_size)?;
    let threads = args.threads.unwrap_or_else(default_threads);
    let disk_cache = disk_cache(args.disk_cache.as_deref(), args.disk_cache_size, &source, mountpoint)?;
    // none of them is secret
    let store_options = args.store.store_option.iter().map(ToString::to_string).collect::<Vec<_>>();
    let shown = entries(json!({
        "cache_size": cache_size,
        "threads": threads,
        "follow_links": args.follow_links,
        "quality": args.quality,
        "store_option": (!store_options.is_empty()).then_some(store_options),
        "disk_cache": disk_cache.as_ref().map(|disk| disk.dir.to_string_lossy()),
        "disk_cache_size": disk_cache.as_ref().map(|disk| disk.budget),
        "views": args.views.as_ref().map(|views| views.0.join(",")),
    }));
    Ok(Options {
        source,
        cache_size,
        threads,
        direct_io: false,
        follow_links: args.follow_links,
        store_options: args.store.store_option,
        disk_cache,
        quality: args.quality,
        views: args.views.map(|views| views.0),
        allow_other: false,
        ownership: Ownership::default(),
        shown,
    })
}

pub(super) fn entries(object: Value) -> Map<String, Value> {
    if let Value::Object(entries) = object { entries } else { Map::new() }
}

/// Returns the chosen disk cache for `source`, and makes its folder.
fn disk_cache(
    dir: Option<&Path>,
    size: Option<Size>,
    source: &Path,
    mountpoint: Option<&Path>,
) -> Result<Option<DiskCacheOptions>, CliError> {
    let Some(dir) = dir else {
        let missing = "--disk-cache-size needs --disk-cache DIR";
        return if size.is_some() { Err(CliError::argument(missing)) } else { Ok(None) };
    };
    if !is_url(source) {
        let text = "--disk-cache is for object stores: a SOURCE on this machine is read where it is";
        return Err(CliError::argument(text));
    }
    let failed = |error: io::Error| {
        let what = format!("cannot use {} as a disk cache: {error}", escaped_path(dir));
        CliError::new(what, "give a folder that you may write to")
    };
    let dir = std::path::absolute(dir).map_err(failed)?;
    let place = resolve(&dir, &all_mounts()?).map_err(failed)?;
    let is_around = |at: &&Path| place.starts_with(at);
    if let Some(mount) = mountpoint_of(&dir)?.or_else(|| mountpoint.filter(is_around).map(Path::to_owned)) {
        // it could not be written to, and reading it would wait for itself
        let what = format!("the disk cache {} lies inside the mount at {}", escaped_path(&dir), escaped_path(&mount));
        return Err(CliError::new(what, "give a folder outside of it"));
    }
    DiskCache::check(&dir)?;
    Ok(Some(DiskCacheOptions { dir, budget: size.map_or(DEFAULT_DISK_CACHE, |size| size.0) }))
}

fn disk_cache_size(text: &str) -> Result<Size, String> {
    match Size::read(text)? {
        Size(bytes) if bytes < SMALLEST_DISK_CACHE => {
            Err(format!("a disk cache needs {} or more", Size(SMALLEST_DISK_CACHE)))
        }
        size => Ok(size),
    }
}

/// Parses a size of the cache, at most the memory of this machine.
fn cache_size(text: &str) -> Result<Size, String> {
    let size = Size::read(text)?;
    match machine::memory_of_machine() {
        Some(memory) if size.0 > memory => Err(format!("this machine has {} of memory", Size(memory))),
        _ => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_read_with_commas_or_colons() {
        assert_eq!(views("npy,raw").unwrap().0, ["raw", "npy"]);
        assert_eq!(views("npy: tiff:").unwrap().0, ["npy", "tiff"]);
        assert_eq!(views("nrrd").unwrap().0, ["raw", "nrrd"]);
    }

    #[test]
    fn other_names_are_refused_with_the_nearest() {
        let error = views("raw,tif").unwrap_err();
        assert!(error.starts_with("there is no view tif; did you mean tiff? there are raw, npy, "), "{error}");
        let error = views("zzz").unwrap_err();
        assert!(error.starts_with("there is no view zzz; there are raw, npy, "), "{error}");
        for empty in ["", ",", " : "] {
            assert!(views(empty).unwrap_err().starts_with("it needs at least one of raw, "), "{empty}");
        }
    }

    #[test]
    fn the_help_explains_each() {
        let help = views_help();
        assert!(help.contains("\n  raw      lodN.raw: ") && help.contains("\n  by-axis  lodN.by-AXIS.npy: "), "{help}");
        assert!(!help.contains('\n') || help.lines().all(|line| line.len() < 200));
    }

    #[test]
    fn a_cache_is_for_urls_and_outside_of_the_mount() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let mountpoint = top.join("mount");
        fs::create_dir(&mountpoint).unwrap();
        std::os::unix::fs::symlink(&mountpoint, top.join("link")).unwrap();
        let url = Path::new("s3://bucket");
        let chosen = |dir: &str, source| disk_cache(Some(&top.join(dir)), None, source, Some(&mountpoint));
        let error = |dir: &str, source| chosen(dir, source).unwrap_err().to_string();
        let good = chosen("a/b", url).unwrap().unwrap();
        assert_eq!((good.dir, good.budget), (top.join("a/b"), DEFAULT_DISK_CACHE));
        assert!(top.join("a/b/CACHEDIR.TAG").exists());
        for inside in ["mount", "mount/x/y", "link/x"] {
            assert!(error(inside, url).contains("lies inside the mount at"), "{inside}");
        }
        assert_eq!(fs::read_dir(&mountpoint).unwrap().count(), 0);
        assert!(error("a/b", &top).starts_with("--disk-cache is for object stores"));
        fs::write(top.join("a/other"), "").unwrap();
        assert!(error("a", url).contains("holds files that are not of a disk cache"), "{}", error("a", url));
        let size = Some(Size(1 << 30));
        assert_eq!(disk_cache(None, size, url, Some(&mountpoint)).unwrap_err().exit_status(), 2);
        assert_eq!(disk_cache(None, None, url, None).unwrap(), None);
    }
}
